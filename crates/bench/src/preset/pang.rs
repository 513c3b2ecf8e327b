//! Pang and Maheshwari: TIB/Rendezvous beside SonicMQ.

use super::work::Case;
use super::{Baseline, Broker, History, PLAIN, Parameters, Plot, Points, Preset, Work};
use crate::client::Protocol;
use crate::load::{End, Plan};

const TEXT: &str = "Pang & Maheshwari, TIB/RV and SonicMQ";
const RUNS: (&str, &str) = ("runs", "3");
const COLUMNS: &[&str] = &[
    "publish_rate",
    "receive_rate",
    "duration",
    "transfer_rate",
    "bandwidth",
    "mean_us",
    "broker_us",
    "tool_us",
];
const PLOTS: &[Plot] = &[
    Plot::Against("publish_rate"),
    Plot::Against("receive_rate"),
    Plot::Against("duration"),
    Plot::Against("transfer_rate"),
];

const fn constant(system: &'static str, metric: &'static str, value: f64) -> History {
    History { system, series: "", metric, points: Points::All(value) }
}

/// The presets.
pub(super) static PRESETS: &[Preset] = &[
    Preset {
        name: "pang-1a",
        text: TEXT,
        about: "1 publisher, 1 to 9 subscribers, 2,000 messages of 10 KB",
        axis: "subscribers",
        columns: COLUMNS,
        plots: PLOTS,
        parameters: &[("subscribers", "1..9"), ("messages", "2000"), ("size", "10240"), RUNS],
        quick: &[("subscribers", "1,3,6,9"), ("runs", "1")],
        baseline: Baseline::Relay,
        cases: subscribers,
        history: &[
            constant("TIB/RV", "publish_rate", 141.26),
            constant("SonicMQ", "publish_rate", 184.42),
            constant("SonicMQ", "receive_rate", 108.4),
        ],
        ..PLAIN
    },
    Preset {
        name: "pang-1b",
        text: TEXT,
        about: "1 to 9 publishers, 1 subscriber, 2,000 messages of 10 KB each",
        notes: &["SonicMQ's publish rate fell from 6 publishers on; the text prints no figure"],
        axis: "publishers",
        columns: COLUMNS,
        plots: PLOTS,
        parameters: &[("publishers", "1..9"), ("messages", "2000"), ("size", "10240"), RUNS],
        quick: &[("publishers", "1,3,6,9"), ("runs", "1")],
        baseline: Baseline::Relay,
        cases: publishers,
        history: &[constant("TIB/RV", "publish_rate", 116.0)],
        ..PLAIN
    },
    Preset {
        name: "pang-2",
        text: TEXT,
        about: "1 to 5 sender and receiver pairs, point to point, 2,000 messages of 10 KB each",
        axis: "pairs",
        columns: COLUMNS,
        plots: PLOTS,
        parameters: &[("pairs", "1..5"), ("messages", "2000"), ("size", "10240"), RUNS],
        quick: &[("pairs", "1,3,5"), ("runs", "1")],
        baseline: Baseline::Relay,
        cases: pairs,
        history: &[
            constant("TIB/RV", "receive_rate", 40.0),
            constant("SonicMQ", "receive_rate", 31.0),
        ],
        ..PLAIN
    },
    Preset {
        name: "pang-3",
        text: TEXT,
        about: "connection time: from a subscriber's start to its first message, while others are published",
        notes: &[
            "counted from the connect: a subscriber here is a connection, and the start of a process \
             (the text's included a Java machine's) is not part of it",
        ],
        axis: "message octets",
        columns: &["connect_ms"],
        parameters: &[("size", "10240"), ("rate", "1000"), ("attempts", "50"), RUNS],
        quick: &[("attempts", "20"), ("runs", "1")],
        cases: first_message,
        history: &[
            constant("TIB/RV", "connect_ms", 560.0),
            constant("SonicMQ", "connect_ms", 2_550.0),
        ],
        ..PLAIN
    },
    Preset {
        name: "pang-4",
        text: TEXT,
        about: "CPU and memory of broker, publishers and consumers, every second throughout a run",
        notes: &[
            "the text prints broker start 2% and 10 to 20% of memory, CPU up to 70 to 85% on the \
             publisher's side",
            "`pairs` beyond 15 put more than 300 MB in flight, which SonicMQ did not survive",
        ],
        axis: "pairs",
        columns: &[
            "broker_cores",
            "publisher_cores",
            "consumer_cores",
            "broker_mib",
            "broker_mib_peak",
            "out_rate",
            "broker_us",
            "switches",
        ],
        plots: &[Plot::Seconds],
        parameters: &[
            ("pairs", "1,5"),
            ("size", "10240"),
            ("seconds", "10"),
            ("warm_up", "1"),
            RUNS,
        ],
        quick: &[("pairs", "5"), ("seconds", "3"), ("warm_up", "0.3"), ("runs", "1")],
        fresh: true,
        cases: resources,
        ..PLAIN
    },
    Preset {
        name: "pang-ping",
        text: TEXT,
        about: "overloaded queues: more than 300 MB in flight before anybody consumes",
        notes: &["TIB/RV survived, SonicMQ ran out of heap"],
        axis: "MB in flight",
        columns: &["spool_rate", "unspool_rate", "broker_mib_peak"],
        parameters: &[("megabytes", "300"), ("size", "10240"), RUNS],
        quick: &[("runs", "1")],
        cases: overload,
        ..PLAIN
    },
];

fn subscribers(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let case = |count: f64| {
        let end = End::Count(parameters.count("messages"));
        let plan = Plan { end, ..broker.plan(parameters.size()) }.fanned_out(count as usize);
        Case::load("", count, plan)
    };
    parameters.list("subscribers").into_iter().map(case).collect()
}

fn publishers(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let case = |count: f64| {
        let plan = Plan {
            producers: count as usize,
            end: End::Count(parameters.count("messages") * count as u64),
            ..broker.plan(parameters.size())
        };
        Case::load("", count, plan)
    };
    parameters.list("publishers").into_iter().map(case).collect()
}

fn pairs(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let case = |count: f64| {
        let end = End::Count(parameters.count("messages") * count as u64);
        let plan = Plan { end, ..broker.plan(parameters.size()) }.in_pairs(count as usize);
        Case::load("", count, plan)
    };
    parameters.list("pairs").into_iter().map(case).collect()
}

fn first_message(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let work = Work::FirstMessage {
        target: broker.target.clone(),
        size_bytes: parameters.size(),
        rate: parameters.count("rate"),
        attempts: parameters.count("attempts") as usize,
    };
    vec![Case::of("", parameters.real("size"), parameters.size(), work)]
}

fn resources(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let case = |count: f64| {
        let end = super::work::timed(parameters);
        let plan = Plan { end, ..broker.direct(parameters.size(), count as usize) };
        Case::load("", count, plan.in_pairs(count as usize))
    };
    parameters.list("pairs").into_iter().map(case).collect()
}

fn overload(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let case = |megabytes: f64| {
        let count = (megabytes * 1e6) as u64 / parameters.count("size").max(1);
        // Without queues, only persistent messages are kept while nobody consumes.
        let protocol = broker.target.protocol();
        let plan = match protocol.drops() {
            // A stream of Redis keeps messages that are not persistent, too, as queues do.
            true => Plan {
                persistent: protocol != Protocol::Resp,
                ..broker.persistent(parameters.size(), 100)
            },
            false => broker.plan(parameters.size()),
        };
        let plan = Plan { end: End::Count(count), ahead: 0, ..plan };
        Case::of("", megabytes, parameters.size(), Work::Spool(plan))
    };
    parameters.list("megabytes").into_iter().map(case).collect()
}

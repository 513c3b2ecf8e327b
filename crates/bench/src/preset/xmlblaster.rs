//! xmlBlaster: small messages one by one, many clients, bursts, memory, protocols.

use super::work::Case;
use super::{Baseline, Broker, History, PLAIN, Parameters, Points, Preset, Work};
use crate::load::{End, Plan};
use std::time::Duration;

const TEXT: &str = "xmlBlaster";
/// The text says "small": about what its own examples carry.
const SMALL: &str = "the text says small messages; 100 octets here";
/// An axis with one place.
const ONCE: &str = "clients";

const fn figure(system: &'static str, metric: &'static str, value: f64) -> History {
    History { system, series: "", metric, points: Points::All(value) }
}

/// The presets.
pub(super) static PRESETS: &[Preset] = &[
    Preset {
        name: "xmlblaster-throughput",
        text: TEXT,
        about: "10,000 small messages one by one, one subscriber, publish and update acknowledged",
        notes: &[
            SMALL,
            "the publisher waits for each confirm; direct protocols have none and run ahead",
        ],
        axis: "subscribers",
        columns: &[
            "transfer_rate",
            "duration",
            "mean_us",
            "confirm_p50_us",
            "broker_us",
            "flushes",
        ],
        parameters: &[("messages", "10000"), ("size", "100"), ("runs", "3")],
        quick: &[("messages", "3000"), ("runs", "1")],
        cases: throughput,
        history: &[figure("xmlBlaster", "transfer_rate", 672.0)],
        ..PLAIN
    },
    Preset {
        name: "xmlblaster-clients",
        text: TEXT,
        about: "10,000 clients logged in, all subscribed to one message: memory, one publish to all",
        notes: &["the text's server took 9 KB (RMI) and 11 KB (CORBA) a login"],
        axis: ONCE,
        columns: &["kib_each", "wave_ms", "wave_rate", "opened_rate", "idle_cores"],
        parameters: &[("clients", "10000"), ("waves", "5"), ("settle", "2"), ("runs", "1")],
        quick: &[("clients", "1000"), ("waves", "3"), ("settle", "0.4")],
        fresh: true,
        cases: clients,
        history: &[
            figure("xmlBlaster, RMI", "kib_each", 9.0),
            figure("xmlBlaster, CORBA", "kib_each", 11.0),
            figure("xmlBlaster", "wave_rate", 435.0),
        ],
        ..PLAIN
    },
    Preset {
        name: "xmlblaster-burst",
        text: TEXT,
        about: "burst mode: messages collected and published in bulk, nobody subscribed",
        notes: &[SMALL],
        axis: "publishers",
        columns: &["publish_rate", "confirm_rate", "bandwidth", "broker_us"],
        parameters: &[("messages", "10000"), ("size", "100"), ("window", "10000"), ("runs", "3")],
        quick: &[("runs", "1")],
        baseline: Baseline::Relay,
        cases: burst,
        history: &[
            figure("xmlBlaster, CORBA", "publish_rate", 2_647.0),
            figure("xmlBlaster, RMI", "publish_rate", 2_763.0),
            figure("xmlBlaster, XML-RPC", "publish_rate", 1_431.0),
        ],
        ..PLAIN
    },
    Preset {
        name: "xmlblaster-latency",
        text: TEXT,
        about: "publish to server to update to parsed in the client, one at a time",
        notes: &["a closed loop, as in the text; over the Internet it had 105 and 320 ms"],
        axis: "message octets",
        columns: &["p50_us", "mean_us", "p99_us", "broker_us"],
        parameters: &[("size", "100"), ("seconds", "3"), ("runs", "3")],
        quick: &[("seconds", "1"), ("runs", "1")],
        baseline: Baseline::RoundTrip,
        cases: latency,
        history: &[
            figure("xmlBlaster, CORBA", "mean_us", 6_000.0),
            figure("xmlBlaster, XML-RPC", "mean_us", 16_000.0),
        ],
        ..PLAIN
    },
    Preset {
        name: "xmlblaster-memory",
        text: TEXT,
        about: "memory per stored message: 1,000 different 8-octet messages, and a hundred times as many",
        notes: &[
            "a thousand messages disappear in what a broker has allocated already: the larger number tells",
        ],
        axis: "messages",
        axis_log: true,
        columns: &["bytes_each", "broker_mib"],
        parameters: &[("messages", "1000,100000"), ("size", "8"), ("runs", "3")],
        quick: &[("runs", "1")],
        fresh: true,
        cases: memory,
        history: &[figure("xmlBlaster", "bytes_each", 2_400.0)],
        ..PLAIN
    },
    Preset {
        name: "xmlblaster-protocols",
        text: TEXT,
        about: "the same test over each protocol that the broker and this tool speak",
        notes: &[
            SMALL,
            "direct messages; each broker's fastest protocol is its 100%, as in the text",
        ],
        axis: "subscribers",
        columns: &["out_rate", "of_fastest", "mean_us", "broker_us", "tool_us"],
        parameters: &[("size", "100"), ("seconds", "3"), ("warm_up", "0.5"), ("runs", "3")],
        quick: &[("seconds", "1"), ("warm_up", "0.2"), ("runs", "1")],
        baseline: Baseline::Relay,
        cases: protocols,
        ..PLAIN
    },
];

fn throughput(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let plan = broker.plan(parameters.size());
    let acknowledged = !broker.at_most_once();
    let plan = Plan {
        persistent: acknowledged,
        window: usize::from(acknowledged),
        ack_every: u32::from(acknowledged),
        prefetch: if acknowledged { 100 } else { 0 },
        end: End::Count(parameters.count("messages")),
        ..plan
    };
    vec![Case::load("", 1.0, plan)]
}

fn clients(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let work = |connections: f64| Work::Idle {
        target: broker.target.clone(),
        connections: connections as usize,
        waves: parameters.count("waves") as usize,
        settle: Duration::from_secs_f64(parameters.real("settle")),
        storm: false,
    };
    let case = |connections| Case::of("", connections, 100, work(connections));
    parameters.list("clients").into_iter().map(case).collect()
}

fn burst(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let plan = Plan {
        consumers: 0,
        ahead: 0,
        window: if broker.at_most_once() { 0 } else { parameters.count("window") as usize },
        end: End::Count(parameters.count("messages")),
        ..broker.plan(parameters.size())
    };
    vec![Case::load("", 1.0, plan)]
}

fn latency(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let span = Duration::from_secs_f64(parameters.real("seconds"));
    let size_bytes = parameters.size();
    let work = Work::RoundTrips { target: broker.target.clone(), size_bytes, span };
    vec![Case::of("", size_bytes as f64, size_bytes, work)]
}

fn memory(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let case = |messages: f64| {
        let size_bytes = parameters.size();
        let target = broker.target.clone();
        let work = Work::Stored { target, messages: messages as u64, size_bytes };
        Case::of("", messages, size_bytes, work)
    };
    parameters.list("messages").into_iter().map(case).collect()
}

fn protocols(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let case = |target| {
        let broker = Broker { target, targets: broker.targets };
        let end = super::work::timed(parameters);
        let plan = Plan { end, ..broker.direct(parameters.size(), 1) };
        Case::load(target.protocol().direct_name(), 1.0, plan)
    };
    broker.targets.iter().map(case).collect()
}

//! Subramoni and others (OSU): AMQP benchmarks on Apache Qpid, and a stock exchange.

use super::work::{Case, by_size};
use super::{Baseline, Broker, History, PLAIN, Parameters, Plot, Points, Preset, Work};
use crate::load::{End, Plan};
use std::time::Duration;

const TEXT: &str = "Subramoni et al. (OSU), Qpid";
const SIZES: &str = "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072,\
                     262144,524288,1048576";
const SIZES_QUICK: (&str, &str) = ("sizes", "1,64,1024,16384,262144");
const COLUMNS: &[&str] =
    &["bandwidth", "out_rate", "mean_us", "p50_us", "p99_us", "broker_us", "tool_us"];
const PLOTS: &[Plot] =
    &[Plot::Against("bandwidth"), Plot::Against("out_rate"), Plot::Against("mean_us")];
const REPLY: &str = "the text's empty reply at the end of a size's set is the consumer's clock here: both \
                     ends are one process";
const SET: &str =
    "the text does not say how many messages a size's set has: `set_bytes`, at most `messages`";

/// The presets.
pub(super) static PRESETS: &[Preset] = &[
    Preset {
        name: "osu-de-spsc",
        text: TEXT,
        about: "direct exchange, 1 publisher, 1 consumer, 1 B to 1 MB",
        notes: &[REPLY, SET],
        axis: "message octets",
        axis_log: true,
        columns: COLUMNS,
        plots: PLOTS,
        parameters: &[
            ("sizes", SIZES),
            ("set_bytes", "200000000"),
            ("messages", "200000"),
            ("runs", "3"),
        ],
        quick: &[SIZES_QUICK, ("set_bytes", "50000000"), ("messages", "50000"), ("runs", "1")],
        baseline: Baseline::Relay,
        cases: one_pair,
        history: &[History {
            system: "Qpid, IPoIB",
            series: "",
            metric: "bandwidth",
            points: Points::At(&[(1_048_576.0, 350.0)]),
        }],
        ..PLAIN
    },
    Preset {
        name: "osu-de-mpmc",
        text: TEXT,
        about: "1 to 8 independent pairs on a direct exchange, with everybody's CPU",
        notes: &[
            "Qpid's rate held to 4 pairs and dropped drastically at 8; the text prints a plot",
        ],
        axis: "pairs",
        columns: &[
            "out_rate",
            "bandwidth",
            "publisher_cores",
            "consumer_cores",
            "broker_cores",
            "broker_us",
            "mean_us",
        ],
        plots: &[
            Plot::Against("out_rate"),
            Plot::Against("broker_cores"),
            Plot::Against("publisher_cores"),
            Plot::Against("consumer_cores"),
        ],
        parameters: &[
            ("pairs", "1,2,4,8"),
            ("sizes", "16,1024,16384"),
            ("seconds", "5"),
            ("warm_up", "1"),
            ("runs", "3"),
        ],
        quick: &[("sizes", "1024"), ("seconds", "1"), ("warm_up", "0.2"), ("runs", "1")],
        baseline: Baseline::Relay,
        cases: many_pairs,
        ..PLAIN
    },
    Preset {
        name: "osu-de-pp",
        text: TEXT,
        about: "ping-pong: a reply of the same size for each message, 1 B to 64 KB",
        notes: &[
            "closed loop, as in the text: it says nothing about a loaded broker",
            "messages end at 64 KB: larger ones would wait in the sockets of both sides",
        ],
        axis: "message octets",
        axis_log: true,
        columns: &["p50_us", "mean_us", "p99_us", "broker_us"],
        plots: &[Plot::Against("p50_us")],
        parameters: &[
            ("sizes", "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536"),
            ("seconds", "3"),
            ("runs", "3"),
        ],
        quick: &[("sizes", "1,1024,65536"), ("seconds", "0.8"), ("runs", "1")],
        baseline: Baseline::RoundTrip,
        cases: ping_pong,
        ..PLAIN
    },
    Preset {
        name: "osu-fe-spmc",
        text: TEXT,
        about: "fanout exchange, 1 publisher, 1 to 32 consumers",
        notes: &[SET],
        axis: "consumers",
        axis_log: true,
        columns: COLUMNS,
        plots: PLOTS,
        parameters: &[
            ("consumers", "1,2,4,8,16,32"),
            ("sizes", "16,1024,16384"),
            ("seconds", "5"),
            ("warm_up", "1"),
            ("runs", "3"),
        ],
        quick: &[
            ("consumers", "1,8,32"),
            ("sizes", "1024"),
            ("seconds", "1"),
            ("warm_up", "0.2"),
            ("runs", "1"),
        ],
        baseline: Baseline::Relay,
        cases: fan_out,
        ..PLAIN
    },
    Preset {
        name: "osu-te-spsc",
        text: TEXT,
        about: "topic exchange, one matching binding among 1 to 1,024 patterns",
        notes: &["Qpid's rate fell as bindings grew; the text prints a plot"],
        axis: "bindings",
        axis_log: true,
        columns: COLUMNS,
        plots: &[Plot::Against("out_rate"), Plot::Against("broker_us")],
        parameters: &[
            ("bindings", "1,2,4,8,16,32,64,128,256,512,1024"),
            ("sizes", "16,1024"),
            ("seconds", "5"),
            ("warm_up", "1"),
            ("runs", "3"),
        ],
        quick: &[
            ("bindings", "1,32,1024"),
            ("sizes", "1024"),
            ("seconds", "1"),
            ("warm_up", "0.2"),
            ("runs", "1"),
        ],
        baseline: Baseline::Relay,
        cases: bindings,
        ..PLAIN
    },
    Preset {
        name: "stock-exchange",
        text: TEXT,
        about: "gateway, matching engine, statistics reporter: 1,000 to 8,000 orders/s, and unlimited",
        notes: &[
            "messages are 9 octets: kind, number, price, checksum; open loop, completion counts from when \
             an order was due",
            "coalescing is Nagle's algorithm on the programs' sockets: the broker's own are as it has them",
            "segments are those of all sockets of the machine (/proc/net/snmp), counted over the run",
            "Qpid failed beyond 8,000 orders/s",
        ],
        axis: "orders/s (0: as fast as it goes)",
        zero_is_free: true,
        columns: &[
            "p50_us",
            "mean_us",
            "p99_us",
            "orders_in",
            "orders_out",
            "quotes_out",
            "broker_cores",
            "gateway_cores",
            "engine_cores",
            "segments",
            "segment_bytes",
            "segment_gap_us",
        ],
        plots: &[Plot::Against("mean_us"), Plot::Against("p99_us"), Plot::Against("orders_out")],
        parameters: &[
            ("rates", "1000,2000,4000,6000,8000,0"),
            ("orders", "1000000"),
            ("coalesce", "0,1"),
            ("runs", "1"),
        ],
        quick: &[("orders", "0"), ("rates", "1000,8000,0")],
        baseline: Baseline::RoundTrip,
        cases: exchange,
        history: &[
            History {
                system: "Qpid, IPoIB",
                series: "no coalescing",
                metric: "mean_us",
                points: Points::At(&[(8_000.0, 9_300.0)]),
            },
            History {
                system: "Qpid, IPoIB",
                series: "coalescing",
                metric: "mean_us",
                points: Points::At(&[(8_000.0, 7_000.0)]),
            },
            History {
                system: "Qpid, IPoIB",
                series: "no coalescing",
                metric: "segments",
                points: Points::At(&[(1_000.0, 5_097_597.0), (8_000.0, 4_775_966.0)]),
            },
            History {
                system: "Qpid, IPoIB",
                series: "coalescing",
                metric: "segments",
                points: Points::At(&[(1_000.0, 2_269_111.0), (8_000.0, 2_277_870.0)]),
            },
            History {
                system: "Qpid, IPoIB",
                series: "no coalescing",
                metric: "segment_bytes",
                points: Points::At(&[(1_000.0, 159.0), (8_000.0, 170.0)]),
            },
            History {
                system: "Qpid, IPoIB",
                series: "coalescing",
                metric: "segment_bytes",
                points: Points::At(&[(1_000.0, 359.0), (8_000.0, 358.0)]),
            },
            History {
                system: "Qpid, IPoIB",
                series: "no coalescing",
                metric: "segment_gap_us",
                points: Points::At(&[(1_000.0, 196.0), (8_000.0, 26.0)]),
            },
            History {
                system: "Qpid, IPoIB",
                series: "coalescing",
                metric: "segment_gap_us",
                points: Points::At(&[(1_000.0, 440.0), (8_000.0, 55.0)]),
            },
        ],
        ..PLAIN
    },
];

/// Seconds of a run with a rate, where no number of orders is given.
const SECONDS_QUICK: u64 = 2;
/// Orders of a run without a rate, where no number is given.
const ORDERS_QUICK: u64 = 50_000;

fn one_pair(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let case = |size: f64| {
        let set = parameters.count("set_bytes") / (size as u64).max(1);
        let count = set.clamp(1, parameters.count("messages").max(1));
        let plan = Plan { end: End::Count(count), ..broker.direct(size as usize, 1) };
        Case::load("", size, plan)
    };
    parameters.list("sizes").into_iter().map(case).collect()
}

fn many_pairs(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    by_size(parameters, "pairs", |size, pairs| broker.direct(size, pairs).in_pairs(pairs))
}

fn fan_out(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    by_size(parameters, "consumers", |size, consumers| broker.direct_fan_out(size, consumers))
}

fn bindings(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    by_size(parameters, "bindings", |size, bindings| Plan {
        bystanders: bindings.saturating_sub(1),
        topic: true,
        ..broker.direct(size, 1)
    })
}

fn ping_pong(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let span = Duration::from_secs_f64(parameters.real("seconds"));
    let case = |size: f64| {
        let size_bytes = size as usize;
        let work = Work::RoundTrips { target: broker.target.clone(), size_bytes, span };
        Case::of("", size, size_bytes, work)
    };
    parameters.list("sizes").into_iter().map(case).collect()
}

fn exchange(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let mut cases = Vec::new();
    for coalesce in parameters.list("coalesce") {
        let coalesce = coalesce != 0.0;
        for rate in parameters.list("rates") {
            let orders = match (parameters.count("orders"), rate as u64) {
                (0, 0) => ORDERS_QUICK,
                (0, rate) => rate * SECONDS_QUICK,
                (orders, _) => orders,
            };
            let (target, rate_whole) = (broker.target.clone(), rate as u64);
            let work = Work::Exchange { target, rate: rate_whole, orders, coalesce };
            let series = if coalesce { "coalescing" } else { "no coalescing" };
            cases.push(Case::of(series, rate, crate::exchange::MESSAGE_BYTES, work));
        }
    }
    cases
}

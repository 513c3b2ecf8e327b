//! Solace VMR 8.6 and the 3560 appliance: direct and persistent, point to point and fan-out.

use super::work::{Case, by_size, timed};
use super::{Baseline, Broker, History, PLAIN, Parameters, Plot, Points, Preset, Work};
use crate::load::{End, Plan};
use std::time::Duration;

const TEXT: &str = "Solace VMR 8.6 and 3560 appliance";
const COLUMNS: &[&str] = &[
    "out_rate",
    "bandwidth",
    "mean_us",
    "p99_us",
    "broker_us",
    "tool_us",
    "broker_cores",
    "disk_bytes",
    "flushes",
];
const PLOTS: &[Plot] = &[Plot::Against("out_rate"), Plot::Against("broker_us")];
const TIMES: [(&str, &str); 3] = [("seconds", "5"), ("warm_up", "1"), ("runs", "3")];
const GROUPS: &str =
    "the text's 20 parallel groups; of several values in `groups` the fastest counts";
const NIC: &str = "from 10 KB on, and in fan-out from 1 KB to more than 2 subscribers, the text's rates \
                   were those of its 10 GbE network card";

/// The presets.
pub(super) static PRESETS: &[Preset] = &[
    Preset {
        name: "solace-t2",
        text: TEXT,
        about: "T2: direct, point to point, 100 B to 50 KB",
        notes: &[GROUPS, NIC],
        axis: "message octets",
        axis_log: true,
        columns: COLUMNS,
        plots: PLOTS,
        parameters: &[
            ("sizes", "100,1024,2048,10240,20480,51200"),
            ("groups", "20"),
            TIMES[0],
            TIMES[1],
            TIMES[2],
        ],
        quick: &[
            ("sizes", "100,1024,10240"),
            ("groups", "5"),
            ("seconds", "1"),
            ("warm_up", "0.3"),
            ("runs", "1"),
        ],
        baseline: Baseline::Relay,
        cases: direct,
        history: &[
            History {
                system: "VMR",
                series: "",
                metric: "out_rate",
                points: Points::At(&[
                    (100.0, 1.54e6),
                    (1_024.0, 784e3),
                    (2_048.0, 474e3),
                    (10_240.0, 104e3),
                    (20_480.0, 53e3),
                    (51_200.0, 21e3),
                ]),
            },
            History {
                system: "appliance",
                series: "",
                metric: "out_rate",
                points: Points::At(&[
                    (100.0, 9.29e6),
                    (1_024.0, 4.05e6),
                    (2_048.0, 2.44e6),
                    (10_240.0, 885e3),
                    (20_480.0, 443e3),
                    (51_200.0, 170e3),
                ]),
            },
        ],
        ..PLAIN
    },
    Preset {
        name: "solace-t3",
        text: TEXT,
        about: "T3: direct fan-out to 1 to 100 subscribers",
        notes: &[
            "one publisher: the text's parallel groups are `groups` of the other presets",
            NIC,
        ],
        axis: "subscribers",
        axis_log: true,
        columns: COLUMNS,
        plots: PLOTS,
        parameters: &[
            ("subscribers", "1,2,5,10,50,100"),
            ("sizes", "100,1024,2048"),
            TIMES[0],
            TIMES[1],
            TIMES[2],
        ],
        quick: &[
            ("subscribers", "1,10,50"),
            ("sizes", "100,1024"),
            ("seconds", "0.8"),
            ("warm_up", "0.3"),
            ("runs", "1"),
        ],
        baseline: Baseline::Relay,
        cases: direct_fan_out,
        history: DIRECT_FAN_OUT,
        ..PLAIN
    },
    Preset {
        name: "solace-t4",
        text: TEXT,
        about: "T4: persistent, point to point, 512 B to 20 KB",
        notes: &[GROUPS],
        axis: "message octets",
        axis_log: true,
        columns: COLUMNS,
        plots: PLOTS,
        parameters: &[
            ("sizes", "512,1024,2048,4096,20480"),
            ("groups", "20"),
            ("window", "200"),
            TIMES[0],
            TIMES[1],
            TIMES[2],
        ],
        quick: &[
            ("sizes", "1024,20480"),
            ("groups", "10"),
            ("seconds", "1.5"),
            ("warm_up", "0.3"),
            ("runs", "1"),
        ],
        baseline: Baseline::Disk,
        cases: persistent,
        history: PERSISTENT,
        ..PLAIN
    },
    Preset {
        name: "solace-t5",
        text: TEXT,
        about: "T5: persistent fan-out to 1 to 50 durable queues",
        notes: &["one publisher for each fan-out"],
        axis: "subscribers",
        axis_log: true,
        columns: COLUMNS,
        plots: PLOTS,
        parameters: &[
            ("subscribers", "1,2,5,10,50"),
            ("sizes", "1024,2048,20480"),
            ("window", "1000"),
            TIMES[0],
            TIMES[1],
            TIMES[2],
        ],
        quick: &[
            ("subscribers", "1,10"),
            ("sizes", "1024"),
            ("seconds", "1.5"),
            ("warm_up", "0.3"),
            ("runs", "1"),
        ],
        baseline: Baseline::Disk,
        cases: persistent_fan_out,
        history: PERSISTENT_FAN_OUT,
        ..PLAIN
    },
    Preset {
        name: "solace-t6",
        text: TEXT,
        about: "T6: spool to 1, 10 and 50 durable queues that nobody consumes, then unspool; flat is good",
        notes: &["`messages` bounds the spool; the text spools for a time it does not name"],
        axis: "queues",
        axis_log: true,
        columns: &["spool_rate", "unspool_rate", "bandwidth", "broker_us", "broker_mib_peak"],
        plots: &[Plot::Against("spool_rate"), Plot::Against("unspool_rate")],
        parameters: &[
            ("queues", "1,10,50"),
            ("size", "2048"),
            ("messages", "500000"),
            ("window", "1000"),
            ("runs", "3"),
        ],
        quick: &[("queues", "1,10"), ("messages", "40000"), ("runs", "1")],
        baseline: Baseline::Disk,
        cases: spool,
        history: &[
            at("VMR", "", "spool_rate", &[(1.0, 123e3), (10.0, 122e3), (50.0, 123e3)]),
            at("VMR", "", "unspool_rate", &[(1.0, 221e3), (10.0, 215e3), (50.0, 167e3)]),
            at("VMR with HA", "", "spool_rate", &[(1.0, 82e3), (10.0, 79e3), (50.0, 80e3)]),
            at("VMR with HA", "", "unspool_rate", &[(1.0, 218e3), (10.0, 208e3), (50.0, 147e3)]),
            at("appliance", "", "spool_rate", &[(1.0, 519e3), (10.0, 515e3), (50.0, 509e3)]),
            at("appliance", "", "unspool_rate", &[(1.0, 305e3), (10.0, 232e3), (50.0, 229e3)]),
        ],
        ..PLAIN
    },
];

const fn at(
    system: &'static str,
    series: &'static str,
    metric: &'static str,
    points: &'static [(f64, f64)],
) -> History {
    History { system, series, metric, points: Points::At(points) }
}

const fn out(system: &'static str, series: &'static str, points: &'static [(f64, f64)]) -> History {
    at(system, series, "out_rate", points)
}

static DIRECT_FAN_OUT: &[History] = &[
    out(
        "VMR",
        "100 B",
        &[
            (1.0, 1.54e6),
            (2.0, 2.62e6),
            (5.0, 3.20e6),
            (10.0, 4.27e6),
            (50.0, 4.85e6),
            (100.0, 5.2e6),
        ],
    ),
    out(
        "VMR",
        "1 KB",
        &[
            (1.0, 784e3),
            (2.0, 1.04e6),
            (5.0, 1.09e6),
            (10.0, 1.10e6),
            (50.0, 1.10e6),
            (100.0, 1.08e6),
        ],
    ),
    out(
        "VMR",
        "2 KB",
        &[(1.0, 474e3), (2.0, 542e3), (5.0, 553e3), (10.0, 546e3), (50.0, 552e3), (100.0, 545e3)],
    ),
    out(
        "appliance",
        "100 B",
        &[
            (1.0, 9.29e6),
            (2.0, 15.9e6),
            (5.0, 24.2e6),
            (10.0, 27.1e6),
            (50.0, 28.0e6),
            (100.0, 28.4e6),
        ],
    ),
    out(
        "appliance",
        "1 KB",
        &[
            (1.0, 4.05e6),
            (2.0, 5.51e6),
            (5.0, 7.93e6),
            (10.0, 7.82e6),
            (50.0, 8.00e6),
            (100.0, 8.66e6),
        ],
    ),
    out(
        "appliance",
        "2 KB",
        &[
            (1.0, 2.44e6),
            (2.0, 3.80e6),
            (5.0, 4.00e6),
            (10.0, 4.02e6),
            (50.0, 4.06e6),
            (100.0, 4.39e6),
        ],
    ),
];

static PERSISTENT: &[History] = &[
    out(
        "VMR",
        "",
        &[(512.0, 145e3), (1_024.0, 130e3), (2_048.0, 101e3), (4_096.0, 76e3), (20_480.0, 26e3)],
    ),
    out(
        "VMR with HA",
        "",
        &[(512.0, 97e3), (1_024.0, 84e3), (2_048.0, 62e3), (4_096.0, 43e3), (20_480.0, 10e3)],
    ),
    out(
        "appliance",
        "",
        &[(512.0, 646e3), (1_024.0, 646e3), (2_048.0, 502e3), (4_096.0, 283e3), (20_480.0, 60e3)],
    ),
];

static PERSISTENT_FAN_OUT: &[History] = &[
    out("VMR", "1 KB", &[(1.0, 130e3), (2.0, 227e3), (5.0, 453e3), (10.0, 652e3), (50.0, 858e3)]),
    out("VMR", "2 KB", &[(1.0, 101e3), (2.0, 181e3), (5.0, 365e3), (10.0, 483e3), (50.0, 541e3)]),
    out("VMR", "20 KB", &[(1.0, 26e3), (2.0, 46e3), (5.0, 55e3), (10.0, 56e3), (50.0, 56e3)]),
    out(
        "VMR with HA",
        "1 KB",
        &[(1.0, 84e3), (2.0, 174e3), (5.0, 361e3), (10.0, 493e3), (50.0, 695e3)],
    ),
    out(
        "VMR with HA",
        "2 KB",
        &[(1.0, 62e3), (2.0, 132e3), (5.0, 284e3), (10.0, 376e3), (50.0, 462e3)],
    ),
    out(
        "VMR with HA",
        "20 KB",
        &[(1.0, 10e3), (2.0, 21e3), (5.0, 44e3), (10.0, 50e3), (50.0, 53e3)],
    ),
    out(
        "appliance",
        "1 KB",
        &[(1.0, 645e3), (2.0, 1.25e6), (5.0, 2.69e6), (10.0, 3.87e6), (50.0, 5.53e6)],
    ),
    out(
        "appliance",
        "2 KB",
        &[(1.0, 502e3), (2.0, 938e3), (5.0, 1.85e6), (10.0, 3.10e6), (50.0, 4.18e6)],
    ),
    out(
        "appliance",
        "20 KB",
        &[(1.0, 60e3), (2.0, 120e3), (5.0, 301e3), (10.0, 316e3), (50.0, 434e3)],
    ),
];

fn groups(parameters: &Parameters, plan: impl Fn(usize) -> Plan) -> Work {
    let in_groups = |groups: f64| {
        let groups = groups as usize;
        Plan { end: timed(parameters), ..plan(groups) }.in_pairs(groups)
    };
    let plans: Vec<Plan> = parameters.list("groups").into_iter().map(in_groups).collect();
    match <[Plan; 1]>::try_from(plans) {
        Ok([plan]) => Work::Load(plan),
        Err(plans) => Work::Fastest(plans),
    }
}

fn direct(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let case = |size: f64| {
        let work = groups(parameters, |groups| broker.direct(size as usize, groups));
        Case::of("", size, size as usize, work)
    };
    parameters.list("sizes").into_iter().map(case).collect()
}

fn direct_fan_out(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    by_size(parameters, "subscribers", |size, count| broker.direct_fan_out(size, count))
}

fn persistent_fan_out(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let window = parameters.count("window");
    by_size(parameters, "subscribers", |size, count| {
        broker.persistent(size, window).fanned_out(count)
    })
}

fn persistent(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let case = |size: f64| {
        let window = parameters.count("window");
        let work = groups(parameters, |_| broker.persistent(size as usize, window));
        Case::of("", size, size as usize, work)
    };
    parameters.list("sizes").into_iter().map(case).collect()
}

fn spool(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let size = parameters.size();
    let case = |queues: f64| {
        let (end, drain) = (End::Count(parameters.count("messages")), Duration::from_secs(20));
        let plan = Plan { end, drain, ..broker.persistent(size, parameters.count("window")) };
        Case::of("", queues, size, Work::Spool(plan.in_pairs(queues as usize)))
    };
    parameters.list("queues").into_iter().map(case).collect()
}

//! Measurements that the texts lack: latency at a rate, isolation, connections, durability of confirms, and
//! soak.

use super::work::{Case, timed};
use super::{Baseline, Broker, PLAIN, Parameters, Plot, Preset, Work};
use crate::client::Protocol;
use crate::load::isolation::IsolationPlan;
use crate::load::{End, Misbehaving, Plan};
use std::time::Duration;

const TEXT: &str = "Angarium's own";

/// The presets.
pub(super) static PRESETS: &[Preset] = &[
    Preset {
        name: "latency",
        text: TEXT,
        about: "open loop: latency at given rates, from when each message was due",
        notes: &[
            "one pair of direct messages; where the tool itself fell behind there are no percentiles",
        ],
        axis: "messages/s",
        axis_log: true,
        columns: &["p50_us", "p99_us", "p999_us", "max_us", "mean_us", "out_rate", "broker_us"],
        plots: &[Plot::Against("p50_us"), Plot::Against("p99_us"), Plot::Against("p999_us")],
        parameters: &[
            ("rates", "500,5000,20000,50000,100000"),
            ("size", "100"),
            ("seconds", "10"),
            ("warm_up", "2"),
            ("runs", "3"),
        ],
        quick: &[
            ("rates", "500,5000,50000"),
            ("seconds", "1.5"),
            ("warm_up", "0.3"),
            ("runs", "1"),
        ],
        baseline: Baseline::RoundTrip,
        cases: latency,
        ..PLAIN
    },
    Preset {
        name: "isolation",
        text: TEXT,
        about: "healthy pairs alone, then beside a stalled, slow and flooding clients",
        notes: &[
            "misbehaving clients yield this machine's cores to others; what the machine still takes from the \
             healthy shows in the control, where they load a null broker of the tool at the same pace",
        ],
        axis: "pairs",
        columns: &[
            "rate_left",
            "p99_times",
            "p99_times_control",
            "p99_us",
            "p99_control_us",
            "out_rate",
            "cut_off",
            "broker_us",
        ],
        parameters: &[
            ("pairs", "20"),
            ("rate", "20000"),
            ("size", "1024"),
            ("seconds", "10"),
            ("warm_up", "3"),
            ("stalled", "1"),
            ("slow", "10"),
            ("flooding", "1"),
            ("runs", "3"),
        ],
        quick: &[
            ("pairs", "5"),
            ("rate", "5000"),
            ("seconds", "2"),
            ("warm_up", "0.5"),
            ("runs", "1"),
        ],
        cases: isolation,
        ..PLAIN
    },
    Preset {
        name: "connections",
        text: TEXT,
        about: "a ramp of idle clients: memory and time of each, then all of them reconnect at once",
        axis: "clients",
        axis_log: true,
        columns: &["kib_each", "opened_rate", "storm_ms", "idle_cores"],
        plots: &[Plot::Against("kib_each"), Plot::Against("opened_rate")],
        parameters: &[("clients", "100,1000,10000"), ("settle", "2"), ("runs", "1")],
        quick: &[("clients", "100,1000"), ("settle", "0.4")],
        fresh: true,
        cases: connections,
        ..PLAIN
    },
    Preset {
        name: "durability",
        text: TEXT,
        about: "kill -9 amid confirms, restart, count what was confirmed and is gone; flushes per confirm",
        notes: &[
            "a kill spares what is in the kernel's page cache; whether confirms wait for the disk shows in \
             the flushes of the machine's disks while one producer waits for each confirm",
            "only for brokers that this tool starts",
        ],
        axis: "producers",
        columns: &["confirmed_lost", "confirmed", "flushes_per_confirm", "restart_ms"],
        parameters: &[
            ("size", "1024"),
            ("producers", "4"),
            ("window", "200"),
            ("seconds", "2"),
            ("runs", "3"),
        ],
        quick: &[("seconds", "1"), ("runs", "1")],
        cases: durability,
        ..PLAIN
    },
    Preset {
        name: "soak",
        text: TEXT,
        about: "a steady mix for a long time: does the rate hold, does memory grow",
        notes: &["`seconds` is a short soak; set it to hours"],
        axis: "pairs",
        columns: &[
            "out_rate",
            "slowest_second",
            "p99_us",
            "broker_mib",
            "broker_mib_peak",
            "broker_us",
        ],
        plots: &[Plot::Seconds],
        parameters: &[
            ("pairs", "5"),
            ("size", "1024"),
            ("rate", "20000"),
            ("seconds", "600"),
            ("warm_up", "5"),
            ("runs", "1"),
        ],
        quick: &[("seconds", "3"), ("warm_up", "0.3")],
        cases: soak,
        ..PLAIN
    },
];

fn latency(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let case = |rate: f64| {
        let plan = Plan {
            rate: rate as u64,
            ahead: 0,
            end: timed(parameters),
            ..broker.plan(parameters.size())
        };
        Case::load("", rate, plan)
    };
    parameters.list("rates").into_iter().map(case).collect()
}

fn isolation(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let pairs = parameters.count("pairs") as usize;
    let (rate, end) = (parameters.count("rate"), timed(parameters));
    let healthy = Plan { rate, ahead: 0, end, ..broker.plan(parameters.size()) }.in_pairs(pairs);
    let misbehaving = Misbehaving {
        stalled: parameters.count("stalled") as usize,
        slow: parameters.count("slow") as usize,
        flooding: parameters.count("flooding") as usize,
        unacking: 0,
        backlog_bytes: 0,
    };
    let work = Work::Isolation(IsolationPlan { healthy, misbehaving });
    vec![Case::of("", pairs as f64, parameters.size(), work)]
}

fn connections(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let case = |clients: f64| {
        let work = Work::Idle {
            target: broker.target.clone(),
            connections: clients as usize,
            waves: 0,
            settle: Duration::from_secs_f64(parameters.real("settle")),
            storm: true,
        };
        Case::of("", clients, 100, work)
    };
    parameters.list("clients").into_iter().map(case).collect()
}

fn durability(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let producers = parameters.count("producers") as usize;
    let plan = broker.persistent(parameters.size(), parameters.count("window"));
    let plan = Plan { end: End::Count(u64::MAX / 2), ..plan }.in_pairs(producers);
    let kill_after = Duration::from_secs_f64(parameters.real("seconds"));
    let work = Work::Durability { plan, kill_after };
    vec![Case::of("", producers as f64, parameters.size(), work)]
}

fn soak(parameters: &Parameters, broker: &Broker<'_>) -> Vec<Case> {
    let pairs = parameters.count("pairs") as usize;
    let (rate, end) = (parameters.count("rate"), timed(parameters));
    let plan = Plan { rate, end, ..broker.plan(parameters.size()) }.in_pairs(pairs);
    let mut cases = vec![Case::load("direct", pairs as f64, Plan { ahead: 0, ..plan.clone() })];
    if broker.target.protocol() != Protocol::Nats {
        let window = 200;
        let kept = Plan { persistent: true, window, ack_every: 50, prefetch: 500, ..plan };
        cases.push(Case::load("persistent", pairs as f64, kept));
    }
    cases
}

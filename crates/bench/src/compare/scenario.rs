//! The loads that PerfTest runs, and their targets.

/// One load.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scenario {
    /// Its name in the report.
    pub(crate) name: &'static str,
    /// PerfTest's arguments.
    pub(crate) arguments: &'static str,
    /// Our messages per second must be at least this many times theirs.
    pub(crate) rate_min: Option<f64>,
    /// Their broker CPU per message must be at least this many times ours.
    pub(crate) cpu_min: Option<f64>,
}

/// All loads. Without confirms a backlog may build up, on both sides alike; `-c` is the confirm window.
pub(crate) fn all() -> Vec<Scenario> {
    let scenario =
        |name, arguments, rate_min, cpu_min| Scenario { name, arguments, rate_min, cpu_min };
    vec![
        scenario("100 B auto-ack 1 pair", "-s 100 -a -u perf -x 1 -y 1", Some(1.5), Some(12.0)),
        scenario("100 B auto-ack 10 pairs", TEN_PAIRS_100, Some(1.5), Some(12.0)),
        scenario(
            "1 KiB persistent window 200, 1 pair",
            "-s 1024 -f persistent -c 200 -q 500 -u perf -x 1 -y 1",
            Some(3.0),
            None,
        ),
        scenario("1 KiB persistent window 200, 10 pairs", TEN_PAIRS_PERSISTENT, Some(3.0), None),
        scenario(
            "1 KiB persistent window 1, 1 pair",
            "-s 1024 -f persistent -c 1 -q 500 -u perf -x 1 -y 1",
            Some(1.5),
            None,
        ),
        scenario("100 B fan-out 10", "-s 100 -a -t fanout -e perf-10 -x 1 -y 10", None, Some(12.0)),
        scenario("100 B fan-out 50", "-s 100 -a -t fanout -e perf-50 -x 1 -y 50", None, Some(12.0)),
    ]
}

const TEN_PAIRS_100: &str = "-s 100 -a \
    --queue-pattern perf-%d --queue-pattern-from 1 --queue-pattern-to 10 -x 10 -y 10";
const TEN_PAIRS_PERSISTENT: &str = "-s 1024 -f persistent -c 200 -q 500 \
    --queue-pattern perf-%d --queue-pattern-from 1 --queue-pattern-to 10 -x 10 -y 10";

//! Measures the drivers' cost over real sockets: checks that each is measured, never how fast it is.

use crate::campaigns::bench;
use angarium_bench::load::drivers::{self, DriversPlan, Side, Step};
use std::time::Duration;

#[test]
fn both_sides_of_every_driver_are_measured_and_no_message_is_lost() {
    for (size_bytes, checksum, latency) in [(100, true, true), (100_000, false, false)] {
        let (span, schemes) = (Duration::from_millis(10), Vec::new());
        let plan = DriversPlan { size_bytes, span, runs: 2, checksum, latency, schemes };
        assert_eq!(plan.check(), Ok(()));
        let (mut begun, mut ended) = (0, 0);
        let costs = drivers::measure(&plan, |step| match step {
            Step::Begin(..) => begun += 1,
            Step::End(_) => ended += 1,
        });
        let costs = costs.expect("loopback works");
        assert_eq!((begun, ended, costs.drivers.len()), (14, 14, plan.steps()));
        for cost in &costs.drivers {
            let counted = (cost.verdict.expected, cost.verdict.delivered);
            assert!(cost.verdict.is_clean() && cost.messages > 0, "{cost:?}");
            assert_eq!(counted, (cost.messages, cost.messages), "{cost:?}");
            assert!(cost.cpu_ns > 0.0 && cost.bare_ns > 0.0, "{cost:?}");
            assert_eq!(cost.own_ns, cost.cpu_ns - cost.bare_ns);
            assert!(cost.own_ns_min <= cost.own_ns && cost.own_ns <= cost.own_ns_max, "{cost:?}");
            assert!(cost.wire_bytes > size_bytes as u64, "{cost:?}");
        }
        let consumers = costs.drivers.iter().filter(|cost| cost.side == Side::Consumer);
        assert_eq!(consumers.count(), 7);
    }
}

#[test]
fn costs_are_said_as_a_table_and_as_json() {
    let place = std::env::temp_dir();
    let arguments = ["drivers", "--driver", "nats", "--duration", "0.01", "--runs", "1"];
    let output = bench(&place, &arguments);
    // 2 means that the limit was exceeded, as unoptimized builds do.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("it is text");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("NATS")).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows[0].contains("producer") && rows[1].contains("consumer"), "{text}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("[2/2"), "progress");
    let output = bench(&place, &[&arguments[..], &["--json"]].concat());
    let costs: drivers::DriverCosts = serde_json::from_slice(&output.stdout).expect("our own");
    assert_eq!((costs.drivers.len(), costs.size_bytes, costs.limit_ns), (2, 100, 100.0));
    let refused = bench(&place, &["drivers", "--driver", "http"]);
    assert_eq!(refused.status.code(), Some(1));
}

//! Costs from runs, the limit, and lost messages.

use super::fake_server::FakeServer;
use super::plan::DRIVERS;
use super::run::{Round, consume};
use super::{DriverCosts, DriversPlan, Side, cost};
use crate::load::Verdict;
use std::io::Write;
use std::time::Duration;

fn plan(size_bytes: usize) -> DriversPlan {
    let (span, runs, schemes) = (Duration::ZERO, 3, Vec::new());
    DriversPlan { size_bytes, span, runs, checksum: true, latency: true, schemes }
}

fn round(driver_ns: f64, bare_ns: f64) -> Round {
    let verdict = Verdict { expected: 10, delivered: 10, ..Verdict::default() };
    Round { messages: 10, wire_bytes: 150, driver_ns, bare_ns, verdict }
}

#[test]
fn the_median_of_the_own_shares_counts() {
    // The least total is not the one with the least own share.
    let rounds = vec![round(150.0, 40.0), round(120.0, 20.0), round(130.0, 60.0)];
    let cost = cost("NATS", Side::Consumer, &plan(100), rounds);
    assert_eq!((cost.cpu_ns, cost.bare_ns, cost.own_ns), (120.0, 20.0, 100.0));
    assert_eq!((cost.own_ns_min, cost.own_ns_max), (70.0, 110.0));
    assert_eq!((cost.messages, cost.verdict.delivered, cost.limit_kept), (30, 30, Some(true)));
}

#[test]
fn the_limit_is_about_one_size_and_the_own_share() {
    for (size_bytes, own_ns, kept) in
        [(100, 100.0, Some(true)), (100, 100.1, Some(false)), (99, 500.0, None), (200, 1.0, None)]
    {
        let cost =
            cost("NATS", Side::Producer, &plan(size_bytes), vec![round(own_ns + 50.0, 50.0)]);
        assert_eq!(cost.limit_kept, kept, "{size_bytes} {own_ns}");
        let costs = DriverCosts { drivers: vec![cost], ..DriverCosts::default() };
        assert_eq!(costs.is_good(), kept != Some(false));
    }
}

#[test]
fn a_harmed_message_is_no_good_result() {
    let mut harmed = round(60.0, 50.0);
    (harmed.verdict.delivered, harmed.verdict.lost) = (9, 1);
    let drivers = vec![cost("NATS", Side::Consumer, &plan(100), vec![round(60.0, 50.0), harmed])];
    assert!(!DriverCosts { drivers, ..DriverCosts::default() }.is_good());
    assert!(!DriverCosts { interrupted: true, ..DriverCosts::default() }.is_good());
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let of = |scheme: &str| DriversPlan { schemes: vec![scheme.to_owned()], ..plan(100) };
    assert_eq!((plan(24).check(), plan(24).steps()), (Ok(()), 14));
    assert_eq!((of("mqtt5").check(), of("mqtt5").steps()), (Ok(()), 2));
    for plan in [plan(23), plan(usize::MAX), DriversPlan { runs: 0, ..plan(100) }, of("http")] {
        assert!(plan.check().is_err(), "{plan:?}");
    }
}

#[test]
fn what_a_counterpart_says_it_played_and_did_not_is_lost_and_not_waited_for() {
    let plan = plan(100);
    for (scheme, _) in DRIVERS {
        let server = FakeServer::listen(scheme, &plan).expect("loopback has ports");
        let driven = consume(&server, |mut stream, batch, _, _| {
            stream.write_all(batch.stamp(3, 0, |_| 1))?;
            Ok(4)
        });
        let verdict = driven.expect("it is there").verdict;
        assert_eq!((verdict.expected, verdict.delivered, verdict.lost), (4, 3, 1), "{scheme}");
    }
}

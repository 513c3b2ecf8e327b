//! PerfTest's lines, medians, targets and the table, on values alone.

use super::comparison::octets;
use super::disk_share::Flushed;
use super::perftest::{Second, parse_second};
use super::relay::{Relay, Round};
use super::runs::{Runs, SideRuns, ToolRun};
use super::side::{OURS, RABBITMQ};
use super::table::{Check, Report, Section, median, spread};
use super::{loads, nats_bench, perftest};
use crate::load::Plan;
use crate::measure::bare_sockets::Relayed;
use std::time::Duration;

#[test]
fn seconds_are_read_and_other_lines_are_not() {
    let plain = "id: test-1, time 5.002 s, sent: 15020 msg/s, received: 12493 msg/s, \
                 min/median/75th/95th/99th consumer latency: 165/16571/60483/188941/229084 us";
    assert_eq!(parse_second(plain), Some(Second { time_s: 5.002, received_per_s: 12493.0 }));
    let confirms = "id: test-1, time 3.000 s, sent: 1 msg/s, confirmed: 2 msg/s, nacked: 0 msg/s, \
                    received: 7 msg/s, min/median";
    assert_eq!(parse_second(confirms), Some(Second { time_s: 3.0, received_per_s: 7.0 }));
    for other in ["", "id: test-1, receiving rate avg: 6457 msg/s", "id: x, starting consumer #0"] {
        assert_eq!(parse_second(other), None, "{other}");
    }
}

#[test]
fn medians_and_spreads() {
    assert_eq!(median([]), 0.0);
    assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
    assert_eq!(spread([1234.0], 0), "1,234");
    assert_eq!(spread([1.0, 3.0, 2.0], 1), "2.0 (1.0 to 3.0)");
}

/// Deliveries per second and broker nanoseconds of one run on each side.
fn runs(ours: [f64; 2], theirs: [f64; 2]) -> Runs<ToolRun> {
    let one = |side: &str, [delivered_per_s, broker_ns]: [f64; 2]| SideRuns {
        side: side.to_owned(),
        runs: vec![ToolRun { delivered_per_s, broker_ns, tool_ns: 12.0 }],
    };
    Runs(vec![one(OURS, ours), one(RABBITMQ, theirs)])
}

fn is_met(runs: &Runs<ToolRun>) -> bool {
    let mut report = Report::new(&[RABBITMQ]);
    report.add(perftest::section(&perftest::SCENARIOS[0], runs));
    report.all_met()
}

#[test]
fn a_target_is_met_at_its_value_and_missed_below() {
    assert!(is_met(&runs([150.0, 1.0], [100.0, 12.0])));
    assert!(!is_met(&runs([149.0, 1.0], [100.0, 12.0])));
    assert!(!is_met(&runs([150.0, 1.0], [100.0, 11.9])));
}

#[test]
fn ratios_are_to_the_peer_that_is_meant() {
    let one = |side: &str, delivered_per_s: f64| SideRuns {
        side: side.to_owned(),
        runs: vec![ToolRun { delivered_per_s, ..ToolRun::default() }],
    };
    let runs = Runs(vec![one(OURS, 60.0), one("Mosquitto 2.1.2", 20.0), one("rumqttd 0.20", 30.0)]);
    let ratio = |peer: &str| runs.medians_beside(peer, |run| run.delivered_per_s).ratio();
    assert_eq!([ratio("Mosquitto"), ratio("rumqttd")], [Some(3.0), Some(2.0)]);
    assert_eq!([ratio(""), ratio("another")], [Some(3.0), None]);
}

#[test]
fn every_peer_has_a_column() {
    let mut section = Section::new("a load");
    section.value("rumqttd 0.20", "msgs/s", "5".to_owned());
    section.value("machine", "msgs/s", "6".to_owned());
    let mut report = Report::new(&["Mosquitto 2.1.2", "rumqttd 0.20"]);
    report.add(section);
    let wanted = "| load | Angarium | Mosquitto 2.1.2 | rumqttd 0.20 | machine | targets |\n\
                  |---|---|---|---|---|---|\n\
                  | a load |  |  | msgs/s 5 | msgs/s 6 |  |\n";
    assert_eq!(report.render(), wanted);
}

#[test]
fn every_load_is_one_that_its_protocol_has() {
    for (loads, target) in [
        (loads::AMQP091, "amqp://h"),
        (loads::NATS, "nats://h"),
        (loads::AMQP10, "amqp10://h"),
        (loads::MQTT, "mqtt://h"),
    ] {
        for load in loads {
            let mut plan = Plan::new(target.parse().expect("it is an address"));
            (load.shape)(&mut plan);
            assert_eq!(plan.check(), Ok(()), "{} on {target}", load.name);
        }
    }
}

#[test]
fn one_side_alone_has_no_target() {
    let mut runs = runs([1.0, 1.0], [100.0, 1.0]);
    runs.0.remove(1);
    assert!(is_met(&runs));
}

#[test]
fn the_table_names_what_was_missed() {
    let mut section = Section::new("a load");
    section.value(OURS, "msgs/s", "5".to_owned());
    section.value(RABBITMQ, "msgs/s", "6".to_owned());
    section.value("disk", "flushes/s", "7".to_owned());
    section.check(Check::at_least("msgs/s", 5.0, 4.0));
    section.check(Check::at_most("ns", 5000.0, 350.0));
    section.check(Check::holds("clean", true));
    let mut report = Report::new(&[RABBITMQ]);
    report.add(section);
    let wanted = "| a load | msgs/s 5 | msgs/s 6 | flushes/s 7 | met: 5.00 msgs/s, at least 4.00<br>\
                  **MISSED**: 5,000 ns, at most 350<br>met: clean |";
    assert_eq!(report.render().lines().last(), Some(wanted));
    assert!(!report.all_met());
}

#[test]
fn a_relay_is_the_machine_s_and_has_no_target() {
    let relayed = |bytes| Relayed { bytes, seconds: 2.0, relay_cpu_ns: 1_000_000_000 };
    let row = |rounds: Vec<Round>| {
        let mut section = Section::new("a load");
        Relay { rounds }.describe(&mut section);
        let mut report = Report::new(&[RABBITMQ]);
        report.add(section);
        report.render().lines().last().expect("it has a row").to_owned()
    };
    let round =
        |bare| Round { wire_bytes: 125, bare: relayed(bare), relabelled: relayed(2_000_000_000) };
    let rounds = vec![round(1_000_000_000), round(2_000_000_000)];
    let wanted = "| a load |  |  | bare relay msgs/s 6,000,000 (4,000,000 to 8,000,000)<br>\
                  its CPU 94 (62 to 125) ns<br>\
                  relay with lines of its own msgs/s 8,000,000 (8,000,000 to 8,000,000)<br>\
                  its CPU 62 (62 to 62) ns |  |";
    assert_eq!(row(rounds), wanted);
    assert_eq!(row(Vec::new()), "| a load |  |  |  |  |");
}

#[test]
fn a_relay_stands_beside_loads_with_one_connection_on_each_side() {
    let pair = Plan::new("nats://h".parse().expect("it is an address"));
    let fan_out = pair.clone().fanned_out(10);
    let silent = Plan { consumers: 0, ..pair.clone() };
    for (plan, wanted) in [(pair.clone(), 1), (pair.in_pairs(10), 0), (fan_out, 0), (silent, 0)] {
        let mut relay = Relay::default();
        relay.measure("a load", &plan, Duration::from_millis(5)).expect("loopback works");
        assert_eq!(relay.rounds.len(), wanted, "{plan:?}");
        let mut rounds = relay.rounds.iter();
        assert!(
            rounds.all(|round| round.bare.bytes > 0 && round.relabelled.bytes > 0),
            "{relay:?}"
        );
    }
}

#[test]
fn deliveries_of_nats_bench_are_those_of_all_subscribers() {
    let both = "Starting benchmark [msgs=200000, msgsize=100, pubs=1, subs=2]\n\
                NATS Pub/Sub stats: 662,044 msgs/sec ~ 63.14 MB/sec\n \
                Pub stats: 340,615 msgs/sec ~ 32.48 MB/sec\n \
                Sub stats: 441,605 msgs/sec ~ 42.11 MB/sec\n  \
                [1] 224,687 msgs/sec ~ 21.43 MB/sec (200000 msgs)\n";
    assert_eq!(nats_bench::parse_deliveries(both), Some(441_605.0));
    assert_eq!(nats_bench::parse_deliveries("NATS Pub/Sub stats: 340,615 msgs/sec"), None);
    assert_eq!(nats_bench::parse_deliveries(""), None);
}

#[test]
fn octets_have_units() {
    let said = ["512", "100M", "10G", "", "1K", "99999999999G"].map(|said| octets(said).ok());
    assert_eq!(said, [Some(512), Some(100_000_000), Some(10_000_000_000), None, None, None]);
}

#[test]
fn flushes_are_read_from_the_metrics() {
    let metrics = "HTTP/1.1 200 OK\r\n\r\n# TYPE angarium_journal_flushes counter\n\
                   angarium_journal_flushes_total 868\n\
                   angarium_journal_flushed_bytes_total 1598656512\n# EOF\n";
    assert!(Flushed::parse(metrics).is_some());
    assert_ne!(Flushed::parse(metrics), Flushed::parse(&metrics.replace("868", "869")));
    assert_eq!(Flushed::parse("angarium_journal_flushes_total_other 1"), None);
}

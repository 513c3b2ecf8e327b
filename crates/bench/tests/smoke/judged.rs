//! Verdicts on measurements other than loads: each kind finds the broker's faults, or says why it cannot
//! judge.

use crate::campaigns::{Place, bench};
use crate::fake::{self, Fault};
use crate::fake_topics::Speech;
use crate::workers::workers;
use crate::{check_faults, fake_nats, nats_plan, plan, topic_plan};
use angarium_bench::client::Target;
use angarium_bench::load::idle::{self, IdlePlan};
use angarium_bench::load::round_trip::RoundTrips;
use angarium_bench::load::{self, Plan, Verdict, backlog, first_message, round_trip};
use std::time::Duration;

/// The drain time. Without losses no run waits for it, and it leaves time for a busy machine.
fn drain(fault: Fault) -> Duration {
    let loses = matches!(fault, Fault::Drop | Fault::Swap);
    Duration::from_millis(if loses { 100 } else { 10_000 })
}

/// The faults, in the order of their counts.
const FAULTS: [Fault; 4] = [Fault::Drop, Fault::Duplicate, Fault::Swap, Fault::FlipBit];

/// Lost, duplicated, reordered and damaged messages.
fn counts(verdict: &Verdict) -> [u64; 4] {
    [verdict.lost, verdict.duplicated, verdict.reordered, verdict.corrupt]
}

/// A NATS server that strikes one message in `every`.
fn nats(fault: Fault, every: u64) -> Target {
    let port = fake_nats::start_striking(fault, every).port;
    format!("nats://127.0.0.1:{port}").parse().expect("it is an address")
}

/// Round trips until a message is struck, or enough of them.
fn trips_enough(target: &Target, size_bytes: usize, fault: Fault) -> RoundTrips {
    let mut span = Duration::from_millis(50);
    loop {
        let trips = round_trip::measure(target, None, size_bytes, span, drain(fault));
        let trips = trips.expect("the fake answers");
        if !trips.verdict.is_clean() || trips.verdict.expected > 400 {
            return trips;
        }
        span *= 3;
    }
}

#[test]
fn a_round_trip_that_goes_wrong_is_found_out() {
    let plan_of = |what: &str, fault: Fault| match what {
        "amqp" => plan(fault),
        "nats" => nats_plan(fault),
        "mqtt" => topic_plan(Speech::Mqtt, fault),
        _ => topic_plan(Speech::Stomp, fault),
    };
    for what in ["amqp", "nats", "mqtt", "stomp"] {
        for size_bytes in [8, 100, 20_000] {
            for fault in [Fault::Drop, Fault::Duplicate, Fault::FlipBit] {
                let trips = trips_enough(&plan_of(what, fault).target, size_bytes, fault);
                let [lost, duplicated, reordered, corrupt] = counts(&trips.verdict);
                let told = trips.latency.is_some();
                let at = format!("{what} {fault:?} {size_bytes} B: {:?}", trips.verdict);
                match fault {
                    // The loop ends there.
                    Fault::Drop => {
                        assert_eq!([lost, duplicated, reordered, corrupt], [1, 0, 0, 0], "{at}");
                    }
                    Fault::Duplicate => assert!(duplicated > 0 && lost == 0 && !told, "{at}"),
                    // Too short for a checksum: only counted.
                    _ if size_bytes == 8 => assert!(trips.verdict.is_clean(), "{at}"),
                    _ => assert!(corrupt > 0 && lost + duplicated == 0 && told, "{at}"),
                }
            }
        }
    }
}

#[test]
fn a_message_to_all_that_goes_wrong_is_found_out() {
    let (connections, all) = (100, 100);
    // The second message is struck: lost for all, or duplicated or damaged for all.
    for (fault, wanted) in [
        (Fault::None, [0, 0, 0, 0]),
        (Fault::Drop, [all, 0, 0, 0]),
        (Fault::Duplicate, [0, all, 0, 0]),
        (Fault::Swap, [all, 0, 0, 0]),
        (Fault::FlipBit, [0, 0, 0, all]),
    ] {
        let idle = IdlePlan { waves: 2, drain: drain(fault), ..IdlePlan::of(connections) };
        let cost = idle::measure(&nats(fault, 2), std::process::id(), &idle);
        let cost = cost.expect("the fake answers");
        assert_eq!(counts(&cost.verdict), wanted, "{fault:?}");
        assert_eq!((cost.verdict.expected, cost.verdict.invented), (2 * all, 0));
        // An incomplete wave has no time.
        assert_eq!(cost.waves_ms.len(), if wanted[0] > 0 { 1 } else { 2 }, "{fault:?}");
    }
}

#[test]
fn clients_that_reconnect_must_hear_again() {
    for (fault, lost) in [(Fault::None, 0), (Fault::Drop, 100)] {
        let idle = IdlePlan { storm: true, drain: drain(fault), ..IdlePlan::of(100) };
        let cost = idle::measure(&nats(fault, 2), std::process::id(), &idle);
        let cost = cost.expect("the fake answers");
        assert!(cost.waves_ms.is_empty() && cost.storm_ms.is_some(), "nobody asked for a time");
        assert_eq!((cost.verdict.expected, cost.verdict.lost), (200, lost), "{fault:?}");
    }
}

#[test]
fn what_a_new_subscriber_hears_is_judged_from_its_first_message_on() {
    for (index, fault) in FAULTS.into_iter().enumerate() {
        let first =
            first_message::measure(&nats(fault, 5), 1_000, 2_000, 10).expect("the fake answers");
        let counts = counts(&first.verdict);
        assert!(first.times.is_some() && counts[index] > 0, "{fault:?}: {:?}", first.verdict);
        counts[..index].iter().chain(&counts[index + 1..]).for_each(|it| assert_eq!(*it, 0));
    }
    for size_bytes in [8, 1_000] {
        let first = first_message::measure(&nats(Fault::None, 5), size_bytes, 2_000, 10);
        let verdict = first.expect("the fake answers").verdict;
        assert!(verdict.is_clean() && verdict.delivered >= 110, "{verdict:?}");
    }
}

#[test]
fn what_nobody_consumes_is_read_back() {
    check_faults("kept", 2, |fault| Plan { consumers: 0, window: 100, ..plan(fault) });
    check_faults("kept, short", 2, |fault| {
        let short = if fault == Fault::FlipBit || fault == Fault::Swap { 25 } else { 8 };
        Plan { consumers: 0, size_bytes: short, checksum: short > 8, ..plan(fault) }
    });
}

#[test]
fn what_workers_left_is_read_back_by_who_told_them_to() {
    for (fault, lost) in [(Fault::None, 0), (Fault::Drop, 50)] {
        let plan = Plan { consumers: 0, ..plan(fault) };
        let outcome = load::run_by(&plan, &workers(2), None).expect("the fake answers");
        let verdict = outcome.verdict.expect("it was not broken off");
        assert_eq!((verdict.expected, counts(&verdict)), (5_000, [lost, 0, 0, 0]), "{fault:?}");
    }
}

#[test]
fn a_first_message_must_come_unharmed() {
    for (fault, wanted) in [(Fault::None, None), (Fault::FlipBit, Some("1 corrupted"))] {
        let first =
            first_message::deliver_first(&nats(fault, 1)).err().map(|error| error.to_string());
        let said = first.as_deref().map(|text| text.contains(wanted.unwrap_or("nothing")));
        assert_eq!(said, wanted.map(|_| true), "{first:?}");
    }
}

#[test]
fn what_nobody_keeps_cannot_be_judged_and_that_is_said() {
    for plan in [nats_plan(Fault::None), topic_plan(Speech::Mqtt, Fault::None)] {
        let outcome = load::run(&Plan { consumers: 0, ..plan }, None).expect("the fake answers");
        assert_eq!((outcome.published, outcome.verdict), (5_000, None));
        assert!(outcome.unjudged.is_some_and(|why| why.starts_with("without subscribers")));
    }
}

#[test]
fn stored_messages_are_read_back_after_the_look() {
    for (fault, size_bytes, wanted) in [
        (Fault::None, 8, [0, 0, 0, 0]),
        (Fault::Drop, 8, [20, 0, 0, 0]),
        (Fault::FlipBit, 100, [0, 0, 0, 20]),
    ] {
        let target = plan(fault).target;
        let stored = backlog::memory_per_message(
            &target,
            std::process::id(),
            2_000,
            size_bytes,
            drain(fault),
        );
        let verdict = stored.expect("the fake answers").verdict.expect("it was not broken off");
        assert_eq!(counts(&verdict), wanted, "{fault:?}");
        // Including the one before the measurement.
        assert_eq!(verdict.expected, 2_001);
    }
}

/// Presets with each kind of run without queues, in quick mode.
const PRESETS: [&str; 6] = [
    "osu-de-pp",
    "xmlblaster-latency",
    "xmlblaster-clients",
    "connections",
    "pang-3",
    "xmlblaster-burst",
];
/// Keeps the load low enough for a fake.
const SET: [&str; 4] =
    ["xmlblaster-clients.clients=50", "connections.clients=50", "settle=0", "seconds=0.1"];

fn run(name: &str, target: &str, presets: &[&str]) -> (Place, String, Option<i32>) {
    let place = Place::new(name);
    let mut arguments = presets.to_vec();
    arguments.extend(["--quick", "--drain", "0.5", "--target", target, "--output", "r.json"]);
    let output = bench(&place.0, &arguments);
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (place, said, output.status.code())
}

#[test]
fn every_run_of_a_preset_ends_in_a_verdict_or_says_why_not() {
    let target = nats(Fault::None, 100).to_string();
    let set = SET.iter().flat_map(|set| ["--set", set]);
    let presets: Vec<&str> = PRESETS.into_iter().chain(set).collect();
    let (place, said, code) = run("kinds", &target, &presets);
    assert_eq!(code, Some(0), "{said}");
    let result = place.result();
    for (index, name) in PRESETS.into_iter().enumerate() {
        for case in result["presets"][index]["cases"].as_array().expect("there are cases") {
            let run = &case["sides"][0][0]["done"];
            let burst = name == "xmlblaster-burst";
            let delivered = run["verdict"]["delivered"].as_u64().is_some_and(|count| count > 0);
            assert!(delivered != burst && run["unjudged"].is_string() == burst, "{name}: {run}");
        }
    }
    for words in [
        "messages, counted only: nats://",
        "messages, by checksums: nats://",
        "not judged: without",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let page = std::fs::read_to_string(place.0.join("r.html")).expect("it was written");
    assert!(page.contains("messages, by checksums: ") && page.contains("not judged: without"));
}

#[test]
fn harm_is_a_failure_and_loss_of_direct_messages_a_loss_in_every_kind_of_run() {
    let check = |fault: Fault, marks: [&str; 2], wanted: i32| {
        let check_at = |name: &str, target: &str, presets: &[&str], set: &[&str]| {
            let arguments: Vec<&str> = presets.iter().chain(set).copied().collect();
            let (_place, said, code) = run(name, target, &arguments);
            assert_eq!(code, Some(wanted), "{fault:?}: {said}");
            let found = said.lines().filter(|line| marks.iter().all(|mark| line.contains(mark)));
            // Once while it runs, and once below the table.
            assert_eq!(found.count(), 2 * presets.len(), "{fault:?}: {said}");
        };
        let amqp = format!("amqp://127.0.0.1:{}", fake::start(fault));
        check_at("amqp", &amqp, &["xmlblaster-burst"], &[]);
        let nats = nats(fault, 2).to_string();
        let presets = ["xmlblaster-latency", "xmlblaster-clients", "pang-3"];
        let set = ["--set", "clients=50", "--set", "settle=0", "--set", "seconds=0.2"];
        check_at("nats", &nats, &presets, &set);
    };
    check(Fault::Drop, ["LOSS: ", " lost"], 0);
    check(Fault::FlipBit, ["FAIL: ", " corrupted"], 2);
}

#[test]
fn commands_end_with_what_they_found() {
    let place = Place::new("commands");
    let own = std::process::id().to_string();
    for (fault, code, words) in [(Fault::None, 0, " clean: "), (Fault::FlipBit, 2, "NOT CLEAN: ")] {
        let target = nats(fault, 2).to_string();
        let ping = ["ping", "--duration", "0.1", "--target", &target];
        let idle = ["idle", "--connections", "20", "--settle", "0", "--waves", "2"];
        let idle = [&idle[..], &["--pid", &own, "--target", &target]].concat();
        for arguments in [&ping[..], &idle] {
            let output = bench(&place.0, arguments);
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
            assert!(said.contains(words), "{arguments:?}: {said}");
        }
    }
}

//! The load generator over real sockets against fake brokers, faultless and faulty.

mod campaigns;
mod drivers;
mod fake;
mod fake_jetstream;
mod fake_nats;
mod fake_redis;
mod fake_topics;
mod faults;
mod jetstream;
mod judged;
mod redis;
mod streams;
mod workers;

use angarium_bench::client::Error;
use angarium_bench::exchange::{self, ExchangePlan};
use angarium_bench::load::backlog;
use angarium_bench::load::durability::{self, RestartableBroker};
use angarium_bench::load::idle::{self, IdlePlan};
use angarium_bench::load::isolation::{self, IsolationPlan};
use angarium_bench::load::{self, End, Misbehaving, Plan, Verdict, round_trip};
use fake::{Fake, Fault};
use fake_topics::Speech;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn plan(fault: Fault) -> Plan {
    let port = fake::start(fault);
    let target = format!("amqp://127.0.0.1:{port}").parse().expect("it is an address");
    Plan {
        producers: 2,
        consumers: 2,
        queues: 2,
        end: End::Count(5_000),
        drain: Duration::from_millis(300),
        checksum: true,
        ..Plan::new(target)
    }
}

fn verdict(plan: &Plan) -> Verdict {
    let outcome = load::run(plan, None).expect("the fake answers");
    assert_eq!((outcome.published, outcome.cut_off.as_slice()), (5_000, &[][..]));
    outcome.verdict.expect("there are consumers")
}

/// Checks the verdict on 5,000 messages of which one in a hundred is struck. The `last` ones are struck
/// as the last of their queues, and no others follow them.
fn check_faults(what: &str, last: u64, plan: impl Fn(Fault) -> Plan) {
    for (fault, wanted) in [
        (Fault::None, [0, 0, 0, 0]),
        (Fault::Drop, [50, 0, 0, 0]),
        (Fault::Duplicate, [0, 50, 0, 0]),
        (Fault::Swap, [last, 0, 50 - last, 0]),
        (Fault::FlipBit, [0, 0, 0, 50]),
    ] {
        let Verdict { lost, duplicated, reordered, corrupt, .. } = verdict(&plan(fault));
        assert_eq!([lost, duplicated, reordered, corrupt], wanted, "{what} {fault:?}");
    }
}

#[test]
fn an_honest_broker_is_clean() {
    let plan = plan(Fault::None);
    let verdict = verdict(&plan);
    assert!(verdict.is_clean(), "{verdict:?}");
    assert_eq!((verdict.expected, verdict.delivered), (5_000, 5_000));
}

#[test]
fn confirms_acknowledgements_latencies_and_large_bodies_work_together() {
    let plan = Plan {
        window: 50,
        ack_every: 7,
        prefetch: 100,
        ahead: 500,
        size_bytes: 20_000,
        latency: true,
        ..plan(Fault::None)
    };
    let outcome = load::run(&plan, None).expect("the fake answers");
    assert_eq!((outcome.published, outcome.confirmed, outcome.refused), (5_000, 5_000, 0));
    assert!(outcome.verdict.is_some_and(|verdict| verdict.is_clean()));
    assert!(outcome.latency.is_some() && outcome.confirm_latency.is_some());
}

#[test]
fn a_broker_with_a_fault_is_found_out_for_exactly_that() {
    check_faults("amqp", 2, plan);
}

#[test]
fn nobody_listening_is_an_error() {
    let target = "amqp://127.0.0.1:1".parse().expect("it is an address");
    assert!(load::run(&Plan { target, ..plan(Fault::None) }, None).is_err());
}

fn nats_plan(fault: Fault) -> Plan {
    let target = format!("nats://127.0.0.1:{}", fake_nats::start(fault).port);
    Plan { target: target.parse().expect("it is an address"), ..plan(Fault::None) }
}

#[test]
fn an_honest_nats_broker_is_clean() {
    let verdict = verdict(&Plan { ahead: 500, latency: true, ..nats_plan(Fault::None) });
    assert!(verdict.is_clean(), "{verdict:?}");
    assert_eq!((verdict.expected, verdict.delivered), (5_000, 5_000));
}

#[test]
fn nats_fan_out_reaches_every_subscriber() {
    let plan = Plan { fan_out: true, consumers: 4, queues: 4, ..nats_plan(Fault::None) };
    let verdict = verdict(&plan);
    assert!(verdict.is_clean(), "{verdict:?}");
    assert_eq!(verdict.delivered, 20_000);
}

#[test]
fn a_nats_group_shares_its_subject() {
    let plan = Plan { consumers: 4, queues: 2, size_bytes: 20_000, ..nats_plan(Fault::None) };
    let verdict = verdict(&plan);
    assert!(verdict.is_clean(), "{verdict:?}");
    assert_eq!(verdict.delivered, 5_000);
}

#[test]
fn a_nats_broker_with_a_fault_is_found_out() {
    check_faults("nats", 1, |fault| Plan { producers: 1, ..nats_plan(fault) });
}

#[test]
fn messages_spread_over_subjects_reach_one_pattern() {
    let verdict = verdict(&Plan { spread: 1_000, ..nats_plan(Fault::None) });
    assert!(verdict.is_clean(), "{verdict:?}");
}

#[test]
fn a_subscriber_that_is_cut_off_is_named_and_what_it_missed_is_lost() {
    let plan = Plan { producers: 1, consumers: 1, queues: 1, ..nats_plan(Fault::CutOff) };
    let outcome = load::run(&plan, None).expect("the producer is served on");
    assert_eq!(outcome.cut_off.len(), 1, "{outcome:?}");
    let verdict = outcome.verdict.expect("there is a consumer");
    assert!(verdict.lost > 0 && verdict.lost == verdict.expected - verdict.delivered);
}

#[test]
fn subscriptions_that_match_nothing_change_nothing() {
    let verdict = verdict(&Plan { bystanders: 3_000, ..nats_plan(Fault::None) });
    assert!(verdict.is_clean(), "{verdict:?}");
}

#[test]
fn round_trips_are_timed_one_by_one() {
    for plan in [plan(Fault::None), nats_plan(Fault::None)] {
        let span = Duration::from_millis(100);
        let trips = round_trip::measure(&plan.target, None, 100, span, Duration::from_secs(10));
        let trips = trips.expect("the fake answers");
        assert!(trips.latency.is_some_and(|latency| latency.count > 0), "{}", trips.broker_uri);
        let verdict = trips.verdict;
        assert!(verdict.is_clean() && verdict.delivered > 0, "{}: {verdict:?}", trips.broker_uri);
    }
}

#[test]
fn one_message_reaches_all_idle_connections() {
    let idle = IdlePlan { waves: 3, storm: true, ..IdlePlan::of(200) };
    let target = nats_plan(Fault::None).target;
    let cost = idle::measure(&target, std::process::id(), &idle).expect("the fake answers");
    assert_eq!((cost.connections, cost.waves_ms.len()), (200, 3));
    assert!(cost.waves_ms.iter().all(|ms| *ms > 0.0) && cost.storm_ms.is_some());
    let verdict = cost.verdict;
    assert!(verdict.is_clean() && verdict.delivered == 800, "{verdict:?}");
}

#[test]
fn the_healthy_are_measured_alone_and_beside_the_misbehaving() {
    for (plan, backlog_bytes) in [(plan(Fault::None), 50_000), (nats_plan(Fault::None), 0)] {
        // The fake has one consumer per queue and no limits, so no client floods it.
        let misbehaving =
            Misbehaving { stalled: 1, slow: 0, flooding: 0, unacking: 0, backlog_bytes };
        let measure = |span_ms| {
            let measured = Duration::from_millis(span_ms);
            let end = End::After { warm_up: Duration::ZERO, measured };
            let healthy = Plan { rate: 2_000, latency: true, end, ..plan.clone() };
            let plan = IsolationPlan { healthy, misbehaving };
            assert_eq!(plan.check(), Ok(()));
            isolation::measure(&plan, None).expect("the fake answers")
        };
        // The draining client yields to all other threads: on a busy machine a short run ends before it
        // drains.
        let mut found = [300, 3_000, 20_000].into_iter().map(measure);
        let found = found.find(|it| it.drained == it.backlog).expect("nobody drained");
        assert_eq!(found.backlog, backlog_bytes / 100);
        assert_eq!(found.verdicts().filter(|it| it.is_clean() && it.delivered > 0).count(), 4);
        assert!(found.rate_part > 0.0);
        let p99 = |outcome: &load::Outcome| outcome.latency.as_ref().map(|it| it.p99_us);
        let ratio = p99(&found.beside).zip(p99(&found.control));
        // On a busy machine a run may have no p99, and a stalled one cannot be compared.
        if let Some(times) = found.p99_times_control {
            assert_eq!(Some(times), ratio.map(|(beside, control)| beside / control));
        }
        let runs = || found.alone.iter().chain([&found.beside]);
        assert!(found.p99_times.is_none() || runs().all(|it| p99(it).is_some()));
    }
}

fn topic_plan(speech: Speech, fault: Fault) -> Plan {
    let scheme = if speech == Speech::Mqtt { "mqtt" } else { "stomp" };
    let target = format!("{scheme}://127.0.0.1:{}", fake_topics::start(speech, fault).port);
    Plan { target: target.parse().expect("it is an address"), ..plan(Fault::None) }
}

#[test]
fn mqtt_and_stomp_brokers_are_judged_alike() {
    for (what, speech) in [("mqtt", Speech::Mqtt), ("stomp", Speech::Stomp)] {
        check_faults(what, 1, |fault| topic_plan(speech, fault).in_pairs(1));
    }
}

#[test]
fn mqtt_and_stomp_confirm_and_acknowledge() {
    for speech in [Speech::Mqtt, Speech::Stomp] {
        for ack_every in [1, 7] {
            let plan = Plan {
                persistent: true,
                window: 50,
                ack_every,
                prefetch: 100,
                size_bytes: 3_000,
                latency: true,
                ..topic_plan(speech, Fault::None)
            };
            assert_eq!(plan.check(), Ok(()));
            let outcome = load::run(&plan, None).expect("the fake answers");
            assert_eq!((outcome.published, outcome.confirmed), (5_000, 5_000), "{speech:?}");
            assert!(outcome.verdict.is_some_and(|verdict| verdict.is_clean()), "{speech:?}");
        }
    }
}

#[test]
fn one_message_goes_to_all_subscribers_of_a_topic() {
    for speech in [Speech::Mqtt, Speech::Stomp] {
        let fan_out =
            Plan { fan_out: true, consumers: 4, queues: 4, ..topic_plan(speech, Fault::None) };
        let verdict = verdict(&fan_out);
        assert!(verdict.is_clean() && verdict.delivered == 20_000, "{speech:?}: {verdict:?}");
    }
}

#[test]
fn what_was_spooled_comes_out_again() {
    for plan in [plan(Fault::None), topic_plan(Speech::Mqtt, Fault::None)] {
        let plan = Plan { persistent: true, window: 100, ack_every: 10, ..plan };
        let outcome = backlog::measure(&plan, None).expect("the fake answers");
        assert!(outcome.verdict.is_clean(), "{:?}", outcome.verdict);
        assert_eq!((outcome.messages, outcome.verdict.delivered), (5_000, 5_000));
    }
}

#[test]
fn a_stock_exchange_completes_every_order_and_misses_what_is_dropped() {
    let measure = |target, rate| {
        let plan = ExchangePlan { target, rate, orders: 3_000, coalesce: false };
        exchange::measure(&plan, None).expect("the fake answers")
    };
    for rate in [0, 20_000] {
        for target in [plan(Fault::None).target, nats_plan(Fault::None).target] {
            let outcome = measure(target, rate);
            assert!(outcome.verdict.is_clean(), "{:?}", outcome.verdict);
            assert_eq!(outcome.verdict.delivered, 3_000);
            assert!(outcome.quotes_out > outcome.orders_out && outcome.engine_share > 0.0);
        }
    }
    let outcome = measure(nats_plan(Fault::Drop).target, 20_000);
    assert!(outcome.verdict.lost > 0, "{:?}", outcome.verdict);
}

/// A fake that can be killed and restarted with its queues, or without them.
struct Patient {
    cut_off: Box<dyn Fn()>,
    come_back: Box<dyn Fn()>,
    folder: PathBuf,
}

impl RestartableBroker for Patient {
    fn kill(&mut self) -> Result<(), Error> {
        (self.cut_off)();
        Ok(())
    }

    fn restart(&mut self) -> Result<(), Error> {
        (self.come_back)();
        Ok(())
    }

    fn folder(&self) -> &Path {
        &self.folder
    }
}

#[test]
fn a_broker_that_forgets_what_it_confirmed_is_caught() {
    let check = |target: String, cut_off: Box<dyn Fn()>, forget: Option<Box<dyn Fn()>>| {
        let plan = Plan {
            target: target.parse().expect("it is an address"),
            persistent: true,
            window: 20,
            ack_every: 10,
            prefetch: 100,
            end: End::Count(u64::MAX / 2),
            ..plan(Fault::None)
        };
        let (forgets, folder) = (forget.is_some(), std::env::temp_dir());
        let come_back = forget.unwrap_or_else(|| Box::new(|| ()));
        let mut patient = Patient { cut_off, come_back, folder };
        let kill_after = Duration::from_millis(100);
        let outcome = durability::measure(&plan, kill_after, &mut patient).expect("it came back");
        assert!(outcome.confirmed > 0, "{outcome:?}");
        let lost = if forgets { outcome.confirmed } else { 0 };
        assert_eq!(outcome.confirmed_lost, lost, "{outcome:?}");
        assert_eq!(outcome.faults(true, false).len(), usize::from(forgets));
        let Verdict { expected, delivered, lost, .. } = outcome.verdict;
        assert_eq!((expected, delivered, lost), (delivered + lost, expected - lost, lost));
        assert!(expected >= outcome.confirmed && outcome.verdict.is_clean() != forgets);
    };
    for forgets in [false, true] {
        let fake = Arc::new(Fake::start(Fault::None));
        let (cut, forgetful) = (Arc::clone(&fake), Arc::clone(&fake));
        let forget: Box<dyn Fn()> = Box::new(move || forgetful.forget());
        let target = format!("amqp://127.0.0.1:{}", fake.port);
        check(target, Box::new(move || cut.cut_off()), forgets.then_some(forget));
    }
    let topics = fake_topics::start(Speech::Mqtt, Fault::None);
    check(format!("mqtt://127.0.0.1:{}", topics.port), Box::new(move || topics.cut_off()), None);
}

#[test]
fn a_broker_that_confirms_before_it_flushes_is_caught_if_it_says_otherwise() {
    let outcome = |flushes| durability::Durability {
        confirmed: 100,
        flushes_per_confirm: flushes,
        ..durability::Durability::default()
    };
    for (flushes, said, faults) in
        [(Some(0.0), true, 1), (Some(0.0), false, 0), (Some(1.0), true, 0), (None, true, 0)]
    {
        assert_eq!(outcome(flushes).faults(true, said).len(), faults, "{flushes:?} {said}");
    }
}

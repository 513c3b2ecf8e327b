//! Tests of the checks by histories made by hand, which keep or break each promise.

mod amqp10;
mod direct;
mod sessions;

use super::*;
use crate::history::{
    Consume, DISK_FULL, Delivery, Ending, Event, MessageId, Outcome, Publish, Sample,
};
use crate::plan::amqp091::{Acks, Consumer, Role};
use crate::plan::{Client, Exchange, Faults, Plan, Queue, Shards, Sizes, Spill};
use crate::workload;
use angarium_engine::SlowConsumerPolicy;
use angarium_engine::{ExchangeKind, Time};

/// Queue 0 is durable and plain, 1 is limited to two messages and a second, 2 dead-letters into 3.
fn plan() -> Plan {
    let queue = |name: &str| Queue { name: name.to_owned(), durable: true, ..Queue::default() };
    let limited = Queue {
        length_max: Some(2),
        ttl: Some(1_000),
        delivery_limit: Some(1),
        ..queue("limited")
    };
    let dying = Queue { dead_letters_to: Some(3), ttl: Some(1_000), ..queue("dying") };
    Plan {
        workload: "by hand",
        exchanges: vec![Exchange { kind: ExchangeKind::Fanout, ..workload::draw::exchange("x") }],
        queues: vec![queue("plain"), limited, dying, queue("dead")],
        bindings: Vec::new(),
        clients: Vec::new(),
        sessions: Vec::new(),
        duration: 0,
        sizes: Sizes {
            resident_bytes_max: 1 << 20,
            queue_resident_bytes_max: 1 << 20,
            segment_bytes: 1 << 20,
            checkpoint_bytes: 1 << 20,
            backlog_bytes_max: 1 << 20,
            outbox_bytes_max: 1 << 20,
            disk_bytes: 1 << 20,
        },
        faults: Faults::default(),
        shards: Shards::ONE,
        slow_consumer_policy: SlowConsumerPolicy::DropNew,
        spill: Spill::default(),
        may_refuse: false,
    }
}

fn id(sequence: u32) -> MessageId {
    MessageId::new(1, sequence)
}

fn published(sequence: u32) -> Publish {
    Publish {
        message: id(sequence),
        to: vec![0],
        persistent: true,
        priority: 0,
        transaction: None,
        expires: false,
        held_until: None,
    }
}

fn publish(sequence: u32) -> Event {
    Event::Publish(published(sequence))
}

fn publish_to(sequence: u32, queue: usize) -> Event {
    Event::Publish(Publish { to: vec![queue], ..published(sequence) })
}

fn publish_in(sequence: u32, transaction: u32) -> Event {
    Event::Publish(Publish { transaction: Some(transaction), ..published(sequence) })
}

fn confirm(sequence: u32) -> Event {
    Event::Confirm { message: id(sequence), accepted: true }
}

fn refuse(sequence: u32) -> Event {
    Event::Confirm { message: id(sequence), accepted: false }
}

fn consume(consumer: u32, messages_max: u64, bytes_max: u64) -> Event {
    let queue = 0;
    Event::Consume(Consume { consumer, queue, messages_max, bytes_max, presettled: false })
}

fn delivered(consumer: u32, sequence: u32) -> Delivery {
    Delivery {
        consumer,
        queue: 0,
        message: Some(id(sequence)),
        redelivered: false,
        bytes: 100,
        requeues: 0,
    }
}

fn deliver(consumer: u32, sequence: u32) -> Event {
    Event::Deliver(delivered(consumer, sequence))
}

fn redeliver(consumer: u32, sequence: u32) -> Event {
    Event::Deliver(Delivery { redelivered: true, ..delivered(consumer, sequence) })
}

fn deliver_from(queue: usize, sequence: u32) -> Event {
    Event::Deliver(Delivery { queue, ..delivered(9, sequence) })
}

fn settle(consumer: u32, sequence: u32, outcome: Outcome) -> Event {
    Event::Settle { consumer, queue: 0, message: id(sequence), outcome, transaction: None }
}

fn settle_in(sequence: u32, transaction: u32) -> Event {
    Event::Settle {
        consumer: 1,
        queue: 0,
        message: id(sequence),
        outcome: Outcome::Accept,
        transaction: Some(transaction),
    }
}

fn ended(transaction: u32, ending: Ending) -> Event {
    Event::Transaction { transaction, ending }
}

fn history(events: Vec<Event>) -> History {
    history_of(plan(), events)
}

fn history_of(plan: Plan, events: Vec<Event>) -> History {
    let mut history = History::new(plan);
    for (second, event) in events.into_iter().enumerate() {
        history.note(Time(second as u64 * 1_000_000), event);
    }
    history
}

/// All checks accept the history.
fn kept(events: Vec<Event>) {
    kept_in(&history(events));
}

fn kept_in(history: &History) {
    assert_eq!(all(history), Ok(()));
}

/// The named check rejects the history with a text that contains `says`.
fn broken(name: &str, says: &str, events: Vec<Event>) {
    broken_in(name, says, &history(events));
}

fn broken_in(name: &str, says: &str, history: &History) {
    let promise = ALL.iter().find(|check| check.name == name).expect("a check of that name");
    let what = (promise.check)(history).expect_err("a broken history");
    assert!(what.contains(says), "{what:?} does not say {says:?}");
}

fn drained(mut events: Vec<Event>, left: Vec<Event>) -> Vec<Event> {
    events.push(Event::Draining);
    events.extend(left);
    events.push(Event::Drained);
    events
}

#[test]
fn an_orderly_history_keeps_everything() {
    let settled = vec![
        consume(1, 2, 0),
        publish(1),
        publish(2),
        confirm(1),
        deliver(1, 1),
        settle(1, 1, Outcome::Accept),
        Event::Synced { consumer: 1 },
        confirm(2),
        Event::Crashed,
    ];
    kept(drained(settled, vec![redeliver(2, 2)]));
}

#[test]
fn lost_confirmed_messages_are_found() {
    let check = "confirmed is kept";
    broken(check, "is not in queue", drained(vec![publish(1), confirm(1)], vec![]));
    let requeued = vec![publish(1), confirm(1), deliver(1, 1), settle(1, 1, Outcome::Requeue)];
    broken(check, "is not in queue", drained(requeued, vec![]));
    let committed = vec![publish_in(1, 5), ended(5, Ending::Committed)];
    broken(check, "is not in queue", drained(committed, vec![]));
    let rolled_back = vec![publish(1), confirm(1), settle_in(1, 5), ended(5, Ending::RolledBack)];
    broken(check, "is not in queue", drained(rolled_back, vec![]));
    let discarded = Event::Settle {
        consumer: 1,
        queue: 2,
        message: id(1),
        outcome: Outcome::Discard,
        transaction: None,
    };
    broken(check, "'dying'", drained(vec![publish_to(1, 2), confirm(1), discarded], vec![]));
}

#[test]
fn messages_that_may_be_dropped_need_not_be_kept() {
    let transient = Event::Publish(Publish { persistent: false, ..published(1) });
    kept(drained(vec![transient, confirm(1), Event::Crashed], vec![]));
    kept(drained(vec![publish_to(1, 1), confirm(1)], vec![]));
    kept(drained(vec![publish(1)], vec![]));
    kept(drained(vec![publish_to(1, 2), confirm(1)], vec![deliver_from(3, 1)]));
    kept(vec![publish(1), confirm(1)]);
    let dying = Event::Publish(Publish { persistent: false, to: vec![2], ..published(1) });
    kept(drained(vec![Event::Fault(DISK_FULL), dying, confirm(1)], vec![]));
}

#[test]
fn transient_messages_may_only_be_lost_by_a_restart() {
    let transient = Event::Publish(Publish { persistent: false, ..published(1) });
    let events = vec![Event::Crashed, transient, confirm(1)];
    broken("confirmed is kept", "is not in queue", drained(events, vec![]));
    let dying = Event::Publish(Publish { persistent: false, to: vec![2], ..published(1) });
    let events = vec![Event::Crashed, dying, confirm(1)];
    broken("confirmed is kept", "is not in queue", drained(events, vec![]));
}

#[test]
fn routable_messages_must_not_be_returned() {
    let events = vec![publish(1), Event::Return { message: id(1) }];
    broken("confirmed is kept", "unroutable", events);
    broken("confirmed is kept", "never published", vec![Event::Return { message: id(1) }]);
}

#[test]
fn inventions_are_found() {
    let check = "nothing invented";
    broken(check, "nobody published", vec![deliver(1, 1)]);
    let garbled = Event::Deliver(Delivery { message: None, ..delivered(1, 1) });
    broken(check, "a body", vec![publish(1), garbled]);
    broken(check, "not published to queue", vec![publish(1), deliver_from(1, 1)]);
    let transient = Event::Publish(Publish { persistent: false, ..published(1) });
    broken(check, "survive", vec![transient, Event::Crashed, redeliver(1, 1)]);
    broken(check, "not committed", vec![publish_in(1, 5), deliver(1, 1)]);
    let rolled_back = vec![publish_in(1, 5), ended(5, Ending::RolledBack), deliver(1, 1)];
    broken(check, "not committed", rolled_back);
    broken(check, "refused", vec![publish(1), refuse(1), deliver(1, 1)]);
    kept(vec![publish(1), Event::Fault("the disk is full"), refuse(1), deliver(1, 1)]);
}

#[test]
fn disorder_is_found() {
    let check = "order kept";
    broken(check, "before", vec![publish(1), publish(2), deliver(1, 2), deliver(1, 1)]);
    // Two consumers say nothing about the order, nor does a redelivery.
    kept(vec![publish(1), publish(2), deliver(1, 2), deliver(2, 1)]);
    kept(vec![publish(1), publish(2), deliver(1, 2), redeliver(1, 1)]);
    let last = vec![redeliver(3, 2), redeliver(3, 1)];
    broken(check, "before", drained(vec![publish(1), publish(2)], last));
}

#[test]
fn unmarked_duplicates_are_found() {
    let check = "no unmarked duplicate";
    broken(check, "twice", vec![publish(1), deliver(1, 1), deliver(2, 1)]);
    broken(check, "twice", vec![publish(1), deliver(1, 1), Event::Crashed, deliver(2, 1)]);
    kept(vec![publish(1), deliver(1, 1), redeliver(2, 1)]);
}

#[test]
fn settled_messages_that_come_again_are_found() {
    let check = "settled is gone";
    let synced = || {
        vec![
            publish(1),
            deliver(1, 1),
            settle(1, 1, Outcome::Accept),
            Event::Synced { consumer: 1 },
        ]
    };
    let later = || vec![consume(2, 0, 0), redeliver(2, 1)];
    let with = |mut events: Vec<Event>, more: Vec<Event>| {
        events.extend(more);
        events
    };
    broken(check, "again", with(synced(), later()));
    kept(with(synced(), with(vec![Event::Crashed], later())));
    let flushed = || with(synced(), vec![publish(2), confirm(2), Event::Crashed]);
    broken(check, "flushed", with(flushed(), later()));
    let in_parts = |events| with(vec![Event::SettlesInParts(true)], events);
    kept(with(in_parts(flushed()), later()));
    let done = vec![Event::SettlesInParts(false), Event::Synced { consumer: 1 }];
    broken(check, "again", with(with(in_parts(synced()), done), later()));
    let committed = vec![
        publish(1),
        deliver(1, 1),
        settle_in(1, 5),
        ended(5, Ending::Committed),
        Event::Crashed,
    ];
    broken(check, "flushed", with(committed, later()));
    let unsure = vec![publish(1), deliver(1, 1), settle(1, 1, Outcome::Accept)];
    kept(with(unsure, later()));
    // The delivery to the second consumer may have been sent before: the request was answered
    // later.
    let begin = || vec![consume(2, 0, 0), Event::Asking { consumer: 2 }];
    let before = || with(begin(), synced());
    let answer = || vec![Event::Synced { consumer: 2 }, redeliver(2, 1)];
    kept(with(before(), vec![redeliver(2, 1), Event::Synced { consumer: 2 }]));
    kept(with(before(), answer()));
    let ask = vec![Event::Asking { consumer: 2 }];
    broken(check, "again", with(with(synced(), begin()), answer()));
    broken(
        check,
        "again",
        with(with(before(), vec![Event::Synced { consumer: 2 }]), with(ask, answer())),
    );
}

#[test]
fn a_confirm_of_an_unstored_message_says_nothing_of_settles() {
    let taker = consumer_of(0, Acks::Auto);
    let events = || {
        vec![
            publish(1),
            deliver(1, 1),
            settle(1, 1, Outcome::Accept),
            Event::Synced { consumer: 1 },
            publish(2),
            confirm(2),
            Event::Crashed,
            consume(2, 0, 0),
            redeliver(2, 1),
        ]
    };
    let check = |clients| {
        let mut history = History::new(Plan { clients, ..plan() });
        history.events = events().into_iter().map(|event| (Time(0), event)).collect();
        settled_is_gone::check(&history)
    };
    assert!(check(Vec::new()).is_err());
    assert_eq!(check(vec![taker]), Ok(()));
}

fn consumer_of(queue: usize, acks: Acks) -> Client {
    let role = Role::Consumer(Consumer {
        queue,
        acks,
        prefetch: 0,
        prefetch_bytes: 0,
        requeue_percent: 0,
        discard_percent: 0,
        think_max: 1,
        gets: false,
        life_max: None,
    });
    role.into()
}

#[test]
fn too_much_credit_is_found() {
    let check = "credit respected";
    let two = || vec![publish(1), publish(2), deliver(1, 1)];
    let begin = |messages, bytes| {
        let mut events = vec![consume(1, messages, bytes)];
        events.extend(two());
        events
    };
    let with = |mut events: Vec<Event>, more: Vec<Event>| {
        events.extend(more);
        events
    };
    broken(check, "more than 1", with(begin(1, 0), vec![deliver(1, 2)]));
    broken(check, "of 150 bytes", with(begin(0, 150), vec![deliver(1, 2)]));
    let settled = || vec![settle(1, 1, Outcome::Accept), deliver(1, 2)];
    kept(with(begin(1, 0), settled()));
    // One message always passes, however large.
    kept(with(begin(0, 10), settled()));
}

#[test]
fn torn_transactions_are_found() {
    let check = "transactions atomic";
    let asked = |events: Vec<Event>| {
        let mut all = vec![publish(9), publish_in(1, 5), publish_in(2, 5)];
        all.extend(events);
        all.extend([Event::Committing { transaction: 5 }, Event::Crashed]);
        all
    };
    let one = vec![consume(2, 0, 0), redeliver(2, 1)];
    broken(check, "is there and", drained(asked(vec![]), one));
    let both = || vec![consume(2, 0, 0), redeliver(2, 1), redeliver(2, 2)];
    kept(drained(asked(vec![]), both()));
    kept(drained(asked(vec![]), vec![]));
    // Another transaction took one of them.
    let mut taken = asked(vec![]);
    taken.splice(4..4, [deliver(1, 2), settle_in(2, 6), Event::Committing { transaction: 6 }]);
    taken.insert(7, Event::Transaction { transaction: 6, ending: Ending::Committed });
    let one = vec![consume(2, 0, 0), redeliver(2, 1)];
    kept(drained(taken, one));
    let settled = vec![deliver(1, 9), settle_in(9, 5)];
    let mut left = both();
    left.push(redeliver(2, 9));
    broken(check, "not settled", drained(asked(settled), left));
}

#[test]
fn overrun_limits_are_found() {
    let check = "limits kept";
    broken(check, "3 of 2", vec![Event::Depth { queue: 1, messages: 3 }]);
    kept(vec![Event::Depth { queue: 1, messages: 2 }]);
    let requeued = Delivery { queue: 1, requeues: 2, redelivered: true, ..delivered(1, 1) };
    broken(check, "requeues", vec![publish_to(1, 1), Event::Deliver(requeued)]);
    let mut late = vec![publish_to(1, 1), Event::Draining];
    late.extend((0..6).map(|_| Event::Depth { queue: 1, messages: 1 }));
    late.push(deliver_from(1, 1));
    broken(check, "after its time", late);
}

#[test]
fn growing_memory_is_found() {
    let check = "memory bounded";
    let much = 10 << 20;
    let samples = [
        ("resident", Sample { resident_bytes: much, ..Sample::default() }),
        ("unsent", Sample { unsent_bytes: much, ..Sample::default() }),
        ("backlog", Sample { backlog_bytes: much, ..Sample::default() }),
    ];
    for (says, sample) in samples {
        broken(check, says, vec![Event::Measured(sample)]);
    }
    kept(vec![Event::Measured(Sample::default())]);
}

#[test]
fn replies_that_stray_are_found() {
    let check = "replies come";
    // Message `sequence` is a reply to consumer `to`.
    let reply = |sequence, to| {
        let publish = Publish { to: Vec::new(), persistent: false, ..published(sequence) };
        vec![Event::Publish(publish), Event::Reply { message: id(sequence), requester: to }]
    };
    let came = |consumer, sequence| Event::Replied { consumer, message: Some(id(sequence)) };
    let inbox = |consumer| Event::Inbox { consumer };
    let (ask, answer) = (Event::Asking { consumer: 1 }, Event::Synced { consumer: 1 });
    let two = |more: Vec<Event>| {
        let mut events = vec![inbox(1), inbox(2)];
        events.extend(reply(1, 1));
        events.extend(reply(2, 1));
        events.extend(more);
        events
    };
    kept(two(vec![came(1, 1), came(1, 2), confirm(1), confirm(2), ask.clone(), answer.clone()]));
    kept(two(vec![ask.clone(), confirm(1), answer.clone()]));
    kept(two(vec![confirm(1), ask.clone(), came(1, 1), answer.clone()]));
    kept(two(vec![confirm(1), ask.clone(), Event::Ended { consumer: 1 }]));
    broken(check, "did not come", two(vec![confirm(1), ask.clone(), answer.clone()]));
    broken(check, "twice", two(vec![came(1, 1), came(1, 1)]));
    broken(check, "a reply to", two(vec![came(2, 1)]));
    broken(check, "a reply to", two(vec![came(1, 7)]));
    broken(check, "nobody", two(vec![Event::Replied { consumer: 1, message: None }]));
    broken(check, "came before", two(vec![came(1, 2), came(1, 1)]));
    let returned = || Event::Return { message: id(1) };
    kept(two(vec![returned(), confirm(1), Event::Ended { consumer: 1 }]));
    broken(check, "was there", two(vec![returned(), confirm(1), ask, answer]));
    broken(check, "and came", two(vec![returned(), came(1, 1)]));
}

#[test]
fn leases_that_are_broken_are_found() {
    let check = |times: &[(u64, Event)]| {
        let mut plan = plan();
        plan.queues[0].expires = Some(100);
        let mut history = History::new(plan);
        let events = times.iter().cloned();
        history.events = events.map(|(millis, event)| (Time(millis * 1_000), event)).collect();
        leases_kept::check(&history)
    };
    // Asked at one time, answered at another.
    let visit = |asked: u64, answered, messages| {
        (answered, Event::LeaseRenewed { queue: 0, asked: Time(asked * 1_000), messages })
    };
    let left = |at| [(at, publish(1)), (at, confirm(1))];
    let [sent, told] = left(20);
    let marked = |more: (u64, Event)| check(&[visit(0, 10, 0), sent.clone(), told.clone(), more]);
    assert_eq!(marked(visit(60, 99, 1)), Ok(()));
    assert_eq!(marked(visit(60, 100, 0)), Ok(()), "at the end of its time");
    assert!(marked(visit(60, 99, 0)).unwrap_err().contains("before its time"));
    assert_eq!(
        marked(visit(111, 150, 1)),
        Ok(()),
        "it was perhaps declared just before the answer"
    );
    assert!(marked(visit(112, 150, 1)).unwrap_err().contains("after its time"));
    assert_eq!(check(&[visit(0, 10, 0), visit(60, 99, 0)]), Ok(()), "nothing was left in it");
    let down = (50, Event::Crashed);
    assert_eq!(check(&[visit(0, 10, 1), down.clone(), visit(120, 130, 1)]), Ok(()));
    let cut = (50, Event::LeaseUnanswered { queue: 0 });
    let longer = [visit(0, 10, 0), cut, visit(120, 130, 1), visit(240, 250, 1)];
    assert_eq!(check(&longer[..3]), Ok(()), "it was perhaps declared without an answer");
    assert!(check(&longer).unwrap_err().contains("after its time"));
    let late = [visit(0, 10, 0), down, visit(40, 60, 0), visit(170, 180, 1)];
    assert_eq!(check(&late), Ok(()), "the answer was under way when the broker went down");
}

#[test]
fn early_deliveries_of_delayed_messages_are_found() {
    let held = Publish { held_until: Some(Time(5_000_000)), ..published(1) };
    broken("limits kept", "before its time", vec![Event::Publish(held), deliver(1, 1)]);
    let held = Publish { held_until: Some(Time(0)), ..published(1) };
    kept(vec![Event::Publish(held), deliver(1, 1)]);
}

#[test]
fn wrong_refusals_are_found() {
    let check = "refused rightly";
    let refused = |code| Event::Refused { code, text: "why".to_owned() };
    broken(check, "541", vec![Event::Fault("flushes fail"), refused(541)]);
    broken(check, "404", vec![refused(404)]);
    kept(vec![refused(320)]);
    kept(vec![Event::Fault("flushes fail"), refused(406)]);
}

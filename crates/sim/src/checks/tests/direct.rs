//! Direct messages: histories made by hand that keep or break each promise.

use super::{
    broken_in, confirm, deliver, drained, ended, history_of, id, kept_in, plan, publish, published,
    redeliver,
};
use crate::history::{
    DISK_FULL, DirectMessage, DirectPublish, Ending, Event, HeadersSeen, MessageId, Publish,
    SPILL_CORRUPTED, Subscription,
};
use crate::plan::nats::{self, Part, Publishing};
use crate::plan::{Faults, Plan, Spill};
use angarium_engine::SlowConsumerPolicy;

/// A plan without slow consumers.
fn roomy() -> Plan {
    plan()
}

/// A plan with slow consumers.
fn tight() -> Plan {
    let publishing = Publishing {
        subjects: vec!["a.b".to_owned()],
        messages: 100,
        burst_max: 1,
        body_max: 1 << 20,
        headers_percent: 0,
        pause_max: 1,
    };
    let client = nats::Client { parts: vec![Part::Publish(publishing)], ..nats::Client::default() };
    Plan { clients: vec![client.into()], ..plan() }
}

fn direct_publish(sequence: u32) -> DirectPublish {
    let subject = "a.b".to_owned();
    DirectPublish {
        message: id(sequence),
        subject,
        connection: 1,
        echo: true,
        ..DirectPublish::default()
    }
}

fn publish_direct(sequence: u32) -> Event {
    Event::DirectPublish(direct_publish(sequence))
}

fn flushed(sequence: u32) -> Event {
    Event::Flushed { message: id(sequence) }
}

fn subscription(number: u32) -> Subscription {
    let (connection, pattern) = (10 + number, "a.*".to_owned());
    Subscription { number, connection, pattern, takes_headers: true, ..Subscription::default() }
}

/// Subscribes, and is known to be subscribed.
fn subscribe(number: u32) -> Vec<Event> {
    vec![Event::Subscribe(subscription(number)), Event::Subscribed { subscription: number }]
}

fn member(number: u32, pattern: &str) -> Vec<Event> {
    let (group, pattern) = (Some("g".to_owned()), pattern.to_owned());
    vec![
        Event::Subscribe(Subscription { group, pattern, ..subscription(number) }),
        Event::Subscribed { subscription: number },
    ]
}

fn received(subscription: u32, sequence: u32) -> DirectMessage {
    let subject = "a.b".to_owned();
    DirectMessage { subscription, message: Some(id(sequence)), subject, ..DirectMessage::default() }
}

fn receive(subscription: u32, sequence: u32) -> Event {
    Event::Receive(received(subscription, sequence))
}

fn receive_after(subscription: u32, sequence: u32, missed: u64) -> Event {
    Event::Receive(DirectMessage { missed, ..received(subscription, sequence) })
}

fn disconnected(subscription: u32) -> Event {
    Event::Disconnected { connection: 10 + subscription }
}

fn all(parts: Vec<Vec<Event>>) -> Vec<Event> {
    parts.concat()
}

fn kept(events: Vec<Event>) {
    kept_in(&history_of(roomy(), events));
}

fn broken(name: &str, says: &str, events: Vec<Event>) {
    broken_in(name, says, &history_of(roomy(), events));
}

#[test]
fn an_orderly_history_keeps_everything() {
    kept(all(vec![
        subscribe(1),
        vec![
            publish_direct(1),
            receive(1, 1),
            publish_direct(2),
            flushed(2),
            receive(1, 2),
            Event::AllReceived,
            disconnected(1),
        ],
    ]));
}

#[test]
fn messages_received_twice_are_found() {
    let twice = vec![publish_direct(1), receive(1, 1), receive(1, 1)];
    broken("received at most once", "twice", all(vec![subscribe(1), twice]));
    kept(all(vec![
        subscribe(1),
        subscribe(2),
        vec![publish_direct(1), receive(1, 1), receive(2, 1)],
    ]));
}

#[test]
fn altered_messages_are_found() {
    let check = "received as sent";
    let one = |direct: DirectMessage| {
        all(vec![subscribe(1), vec![publish_direct(1), Event::Receive(direct)]])
    };
    broken(check, "a body", one(DirectMessage { message: None, ..received(1, 1) }));
    broken(check, "nobody published", one(received(1, 2)));
    broken(
        check,
        "another subject",
        one(DirectMessage { subject: "a.c".to_owned(), ..received(1, 1) }),
    );
    broken(
        check,
        "another reply",
        one(DirectMessage { reply: Some("r".to_owned()), ..received(1, 1) }),
    );
    broken(
        check,
        "other headers",
        one(DirectMessage { headers: HeadersSeen::Own, ..received(1, 1) }),
    );
    let elsewhere = DirectPublish { subject: "b".to_owned(), ..direct_publish(1) };
    let other = DirectMessage { subject: "b".to_owned(), ..received(1, 1) };
    let stray = vec![Event::DirectPublish(elsewhere), Event::Receive(other)];
    broken(check, "does not subscribe to", all(vec![subscribe(1), stray]));
    let with_headers =
        Event::DirectPublish(DirectPublish { has_headers: true, ..direct_publish(1) });
    broken(
        check,
        "other headers",
        all(vec![subscribe(1), vec![with_headers.clone(), receive(1, 1)]]),
    );
    let plain = Event::Subscribe(Subscription { takes_headers: false, ..subscription(1) });
    kept(vec![plain, with_headers, receive(1, 1)]);
}

#[test]
fn rolled_back_messages_must_not_be_received() {
    let published = Event::Publish(Publish { transaction: Some(5), ..published(1) });
    let events = vec![published, publish_direct(1), ended(5, Ending::RolledBack), receive(1, 1)];
    broken("received as sent", "transaction", all(vec![subscribe(1), events.clone()]));
    let mut asked = events;
    asked[2] = Event::Committing { transaction: 5 };
    kept(all(vec![subscribe(1), asked]));
}

#[test]
fn disorder_is_found() {
    let events = vec![publish_direct(1), publish_direct(2), receive(1, 2), receive(1, 1)];
    broken("received in order", "before", all(vec![subscribe(1), events]));
    let other = MessageId::new(2, 1);
    let of_two = vec![
        Event::DirectPublish(DirectPublish { message: other, ..direct_publish(1) }),
        publish_direct(1),
        receive(1, 1),
        Event::Receive(DirectMessage { message: Some(other), ..received(1, 1) }),
    ];
    kept(all(vec![subscribe(1), of_two]));
}

#[test]
fn disorder_in_a_group_is_found_unless_another_member_has_left() {
    let member_of = |subscription| member(subscription, "a.*");
    let judge = |count, left: Vec<Event>| {
        let events = vec![
            publish_direct(1),
            publish_direct(2),
            receive(1, 2),
            receive(1, 1),
            flushed(2),
            Event::AllReceived,
        ];
        let mut plan = plan();
        plan.shards.count = count;
        history_of(plan, all(vec![member_of(1), member_of(2), left, events]))
    };
    let left = || vec![Event::Unsubscribe { subscription: 2, after: None }];
    kept_in(&judge(3, left()));
    broken_in("received in order", "before", &judge(3, Vec::new()));
    broken_in("received in order", "before", &judge(1, left()));
}

#[test]
fn gaps_are_found() {
    let check = "received completely";
    let gap = || vec![publish_direct(1), publish_direct(2), flushed(2), receive(1, 2)];
    broken(check, "misses 1", all(vec![subscribe(1), gap()]));
    broken(check, "misses 1", all(vec![subscribe(1), gap(), vec![disconnected(1)]]));
    let confirmed = vec![publish_direct(1), confirm(1), publish_direct(2), receive(1, 2)];
    broken(check, "misses 1", all(vec![subscribe(1), confirmed]));
    // Not known to be subscribed, or not known to be processed.
    kept(all(vec![vec![Event::Subscribe(subscription(1))], gap()]));
    kept(all(vec![subscribe(1), vec![publish_direct(1), publish_direct(2), receive(1, 2)]]));
}

#[test]
fn messages_that_never_arrive_are_found() {
    let check = "received completely";
    let never = || vec![publish_direct(1), flushed(1), Event::AllReceived];
    broken(check, "never received", all(vec![subscribe(1), never()]));
    kept(all(vec![subscribe(1), vec![disconnected(1)], never()]));
    kept(all(vec![subscribe(1), vec![publish_direct(1), flushed(1)]]));
    kept(all(vec![subscribe(1), vec![publish_direct(1), Event::AllReceived]]));
    let at_once = vec![Event::Unsubscribe { subscription: 1, after: None }];
    kept(all(vec![subscribe(1), at_once, never()]));
    let later = vec![Event::Unsubscribe { subscription: 1, after: Some(1) }];
    broken(check, "never received", all(vec![subscribe(1), later, never()]));
}

#[test]
fn missed_messages_must_be_counted() {
    let check = "received completely";
    let gap = |missed| {
        vec![publish_direct(1), publish_direct(2), flushed(2), receive_after(1, 2, missed)]
    };
    let slow = |missed| history_of(tight(), all(vec![subscribe(1), gap(missed)]));
    broken_in(check, "0 of them counted", &slow(0));
    kept_in(&slow(1));
    broken_in(check, "did not miss", &slow(2));
    broken(check, "did not miss", all(vec![subscribe(1), gap(1)]));
    let plain = Event::Subscribe(Subscription { takes_headers: false, ..subscription(1) });
    let plain = vec![plain, Event::Subscribed { subscription: 1 }];
    kept_in(&history_of(tight(), all(vec![plain, gap(0)])));
}

/// Slow consumers miss the oldest messages.
fn oldest() -> Plan {
    Plan { slow_consumer_policy: SlowConsumerPolicy::DropOldest, ..tight() }
}

/// Messages of slow consumers are spilled to a disk with faults.
fn spilling() -> Plan {
    Plan {
        slow_consumer_policy: SlowConsumerPolicy::Spool,
        spill: Spill { corruptions: 1, ..Spill::default() },
        ..tight()
    }
}

#[test]
fn final_messages_count_what_the_spill_lost() {
    let check = "received completely";
    let damage = || vec![Event::Fault(SPILL_CORRUPTED)];
    let gap = || vec![publish_direct(1), publish_direct(2), flushed(2), receive(1, 2)];
    let last = |missed| vec![Event::CaughtUp, publish_direct(3), receive_after(1, 3, missed)];
    let slow =
        |missed| history_of(spilling(), all(vec![subscribe(1), damage(), gap(), last(missed)]));
    kept_in(&slow(1));
    broken_in(check, "0 of them counted", &slow(0));
    broken_in(check, "did not miss", &slow(2));
    // No message counts a final message that is lost itself.
    let lost_final =
        vec![Event::CaughtUp, publish_direct(1), publish_direct(2), flushed(2), receive(1, 2)];
    kept_in(&history_of(spilling(), all(vec![subscribe(1), damage(), lost_final.clone()])));
    // Nor one that was dropped for others of the same read.
    kept_in(&history_of(oldest(), all(vec![subscribe(1), lost_final])));
    let dropped = |missed| history_of(oldest(), all(vec![subscribe(1), gap(), last(missed)]));
    kept_in(&dropped(1));
    broken_in(check, "0 of them counted", &dropped(0));
    // The dropped message took its count with it.
    let after_lost =
        vec![Event::CaughtUp, publish_direct(3), publish_direct(4), flushed(4), receive(1, 4)];
    kept_in(&history_of(oldest(), all(vec![subscribe(1), gap(), after_lost])));
    // Without faults of the disk nothing is missed.
    let sound = || Plan { spill: Spill::default(), ..spilling() };
    let counted = || all(vec![subscribe(1), gap(), last(1)]);
    broken_in(check, "did not miss", &history_of(sound(), counted()));
    // The spill makes room for the journal on a full disk.
    let full = Plan { faults: Faults { disk_fulls: 1, ..Faults::default() }, ..sound() };
    let was_full = vec![Event::Fault(DISK_FULL)];
    kept_in(&history_of(full, all(vec![subscribe(1), was_full, gap(), last(1)])));
}

#[test]
fn losses_of_the_spill_on_a_sound_disk_are_found() {
    let check = "spill kept";
    let gap = || vec![publish_direct(1), publish_direct(2), flushed(2), receive_after(1, 2, 1)];
    let damage = || vec![Event::Fault(SPILL_CORRUPTED)];
    broken_in(check, "without faults", &history_of(spilling(), all(vec![subscribe(1), gap()])));
    broken_in(
        check,
        "without faults",
        &history_of(spilling(), all(vec![subscribe(1), gap(), damage()])),
    );
    kept_in(&history_of(spilling(), all(vec![subscribe(1), damage(), gap()])));
    let full = vec![Event::Fault(DISK_FULL)];
    kept_in(&history_of(spilling(), all(vec![subscribe(1), full, gap()])));
    let small = Spill { chunks_max: Some(1), ..Spill::default() };
    let small = Plan { spill: small, ..spilling() };
    kept_in(&history_of(small, all(vec![subscribe(1), gap()])));
}

#[test]
fn two_of_a_group_are_found() {
    let check = "one of a group";
    let both = vec![publish_direct(1), receive(1, 1), receive(2, 1)];
    broken(check, "of group 'g'", all(vec![member(1, "a.*"), member(2, "a.b"), both]));
}

#[test]
fn a_group_without_a_receiver_is_found() {
    let check = "one of a group";
    let silence = || vec![publish_direct(1), flushed(1), Event::AllReceived];
    broken(check, "nobody", all(vec![member(1, "a.*"), member(2, "a.b"), silence()]));
    // The message may have been handed to a member whose connection was lost.
    let lost = vec![publish_direct(1), flushed(1), disconnected(2), Event::AllReceived];
    kept(all(vec![member(1, "a.*"), member(2, "a.b"), lost]));
    kept_in(&history_of(tight(), all(vec![member(1, "a.*"), silence()])));
    let forgotten = vec![disconnected(2), Event::Crashed];
    broken(check, "nobody", all(vec![member(2, "a.b"), forgotten, member(1, "a.*"), silence()]));
}

fn request() -> Vec<Event> {
    let inbox = Subscription { connection: 1, pattern: "in.*".to_owned(), ..subscription(9) };
    let reply = Some("in.1".to_owned());
    vec![
        Event::Subscribe(inbox),
        Event::Subscribed { subscription: 9 },
        Event::DirectPublish(DirectPublish { reply, ..direct_publish(1) }),
        flushed(1),
    ]
}

fn responder(number: u32) -> Vec<Event> {
    let subscription = Subscription { answers: true, ..subscription(number) };
    vec![Event::Subscribe(subscription), Event::Subscribed { subscription: number }]
}

fn take_request(subscription: u32) -> Event {
    Event::Receive(DirectMessage { reply: Some("in.1".to_owned()), ..received(subscription, 1) })
}

fn answer() -> Vec<Event> {
    let (message, subject) = (MessageId::new(2, 1), "in.1".to_owned());
    let publish =
        DirectPublish { message, subject: subject.clone(), connection: 12, ..direct_publish(1) };
    let direct = DirectMessage {
        subscription: 9,
        message: Some(message),
        subject,
        ..DirectMessage::default()
    };
    vec![Event::DirectPublish(publish), Event::Flushed { message }, Event::Receive(direct)]
}

fn no_responders() -> Event {
    Event::NoResponders { inbox: "in.1".to_owned(), subject: "a.b".to_owned() }
}

#[test]
fn requests_without_answers_are_found() {
    let check = "requests answered";
    let end = || vec![Event::AllReceived];
    kept(all(vec![responder(1), request(), vec![take_request(1)], answer(), end()]));
    let taken = || vec![take_request(1)];
    broken(check, "no answer came", all(vec![responder(1), request(), taken(), end()]));
    broken(check, "no 503 came", all(vec![request(), end()]));
    kept(all(vec![request(), vec![no_responders()], end()]));
    // The responder may be gone, and so may the requester.
    kept(all(vec![responder(1), request(), taken(), vec![disconnected(1)], end()]));
    kept(all(vec![request(), vec![Event::Disconnected { connection: 1 }], end()]));
}

#[test]
fn wrong_no_responders_answers_are_found() {
    let check = "requests answered";
    broken(check, "nobody asked", vec![no_responders()]);
    broken(check, "twice", all(vec![request(), vec![no_responders(), no_responders()]]));
    let both = all(vec![request(), vec![no_responders()], answer()]);
    broken(check, "an answer, and 503", both);
    let there = all(vec![responder(1), request(), vec![no_responders(), Event::AllReceived]]);
    broken(check, "was there", there);
}

#[test]
fn messages_after_an_unsubscribe_are_found() {
    let unsubscribe = |after| {
        vec![
            Event::Unsubscribe { subscription: 1, after },
            publish_direct(1),
            Event::Unsubscribed { subscription: 1 },
        ]
    };
    let at_once = || all(vec![subscribe(1), unsubscribe(None)]);
    broken("unsubscribed receives nothing", "had ended", all(vec![at_once(), vec![receive(1, 1)]]));
    let on_its_way =
        vec![publish_direct(1), receive(1, 1), Event::Unsubscribed { subscription: 1 }];
    let asked = vec![Event::Unsubscribe { subscription: 1, after: None }];
    kept(all(vec![subscribe(1), asked, on_its_way]));

    let after_one = || all(vec![subscribe(1), unsubscribe(Some(1)), vec![receive(1, 1)]]);
    kept(after_one());
    broken(
        "until exact",
        "wanted 1",
        all(vec![after_one(), vec![publish_direct(2), receive(1, 2)]]),
    );
}

#[test]
fn echoes_are_found() {
    let own = Subscription { connection: 1, ..subscription(1) };
    let silent = Event::DirectPublish(DirectPublish { echo: false, ..direct_publish(1) });
    let events = vec![Event::Subscribe(own.clone()), silent, receive(1, 1)];
    broken("no echo", "its own", events);
    kept(vec![Event::Subscribe(own), publish_direct(1), receive(1, 1)]);
}

#[test]
fn lost_messages_of_subject_queues_are_found() {
    let check = "confirmed is kept";
    let publishes = || vec![publish(1), publish_direct(1), flushed(1)];
    let routed = || all(vec![vec![publish(9), confirm(9)], publishes()]);
    broken(check, "was routed", drained(routed(), vec![deliver(1, 9)]));
    kept(drained(routed(), vec![deliver(1, 1), deliver(1, 9)]));
    // Without a confirm it need not survive, nor be in a queue that may not have existed yet.
    kept(drained(all(vec![routed(), vec![Event::Crashed]]), vec![redeliver(1, 9)]));
    kept(drained(publishes(), vec![]));
    // A confirm that arrives after a restart is of a publish before it.
    let late = vec![publish(9), Event::Closed, Event::Recovered, confirm(9)];
    kept(drained(all(vec![late, publishes()]), vec![redeliver(1, 9)]));
}

#[test]
fn disconnects_without_a_cause_are_found() {
    let check = "only slow consumers are closed";
    let dropped = |why: &str| vec![Event::Dropped { client: 0, why: why.to_owned() }];
    let slow = "slow consumer: more than 1 bytes unsent";
    broken(check, "slow", dropped(slow));
    let going = || Plan { slow_consumer_policy: SlowConsumerPolicy::Disconnect, ..tight() };
    kept_in(&history_of(going(), dropped(slow)));
    broken_in(check, "slow", &history_of(tight(), dropped(slow)));
    broken_in(check, "Stale", &history_of(going(), dropped("Stale Connection")));
    let text = "Unknown Protocol Operation".to_owned();
    broken("refused rightly", "Unknown", vec![Event::ErrorReported { connection: 1, text }]);
}

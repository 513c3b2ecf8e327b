//! Direct messages: histories made by hand that keep or break each promise.

use super::{
    broken_in, confirm, deliver, drained, ended, history_of, id, kept_in, plan, publish, published,
    redeliver,
};
use crate::history::{
    DISK_FULL, Emit, Ending, Event, HeadersSeen, Hear, Listen, MessageId, Publish, SPOOL_ROTS,
};
use crate::plan::nats::{Nats, Part, Publishing};
use crate::plan::{Faults, Plan, Role, Spool};
use angarium_engine::SlowConsumerPolicy;

/// Nobody can be behind.
fn roomy() -> Plan {
    plan()
}

/// Anybody can.
fn tight() -> Plan {
    let publishing = Publishing {
        subjects: vec!["a.b".to_owned()],
        messages: 100,
        burst_max: 1,
        body_max: 1 << 20,
        headers_percent: 0,
        pause_max: 1,
    };
    let client = Nats { parts: vec![Part::Publish(publishing)], ..Nats::default() };
    Plan { clients: vec![Role::Nats(client)], ..plan() }
}

fn emitted(sequence: u32) -> Emit {
    let subject = "a.b".to_owned();
    Emit { message: id(sequence), subject, connection: 1, echo: true, ..Emit::default() }
}

fn emit(sequence: u32) -> Event {
    Event::Emit(emitted(sequence))
}

fn flushed(sequence: u32) -> Event {
    Event::Flushed { message: id(sequence) }
}

fn listening(listener: u32) -> Listen {
    let (connection, pattern) = (10 + listener, "a.*".to_owned());
    Listen { listener, connection, pattern, takes_headers: true, ..Listen::default() }
}

/// Listens from a time on that is known.
fn listen(listener: u32) -> Vec<Event> {
    vec![Event::Listen(listening(listener)), Event::Listens { listener }]
}

fn member(listener: u32, pattern: &str) -> Vec<Event> {
    let (group, pattern) = (Some("g".to_owned()), pattern.to_owned());
    vec![
        Event::Listen(Listen { group, pattern, ..listening(listener) }),
        Event::Listens { listener },
    ]
}

fn heard(listener: u32, sequence: u32) -> Hear {
    let subject = "a.b".to_owned();
    Hear { listener, message: Some(id(sequence)), subject, ..Hear::default() }
}

fn hear(listener: u32, sequence: u32) -> Event {
    Event::Hear(heard(listener, sequence))
}

fn hear_after(listener: u32, sequence: u32, missed: u64) -> Event {
    Event::Hear(Hear { missed, ..heard(listener, sequence) })
}

fn parted(listener: u32) -> Event {
    Event::Parted { connection: 10 + listener }
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
        listen(1),
        vec![emit(1), hear(1, 1), emit(2), flushed(2), hear(1, 2), Event::AllSaid, parted(1)],
    ]));
}

#[test]
fn hearing_twice_is_found() {
    let twice = vec![emit(1), hear(1, 1), hear(1, 1)];
    broken("heard at most once", "twice", all(vec![listen(1), twice]));
    kept(all(vec![listen(1), listen(2), vec![emit(1), hear(1, 1), hear(2, 1)]]));
}

#[test]
fn what_was_not_sent_so_is_found() {
    let check = "heard as sent";
    let one = |hear: Hear| all(vec![listen(1), vec![emit(1), Event::Hear(hear)]]);
    broken(check, "a body", one(Hear { message: None, ..heard(1, 1) }));
    broken(check, "nobody published", one(heard(1, 2)));
    broken(check, "another subject", one(Hear { subject: "a.c".to_owned(), ..heard(1, 1) }));
    broken(check, "another reply", one(Hear { reply: Some("r".to_owned()), ..heard(1, 1) }));
    broken(check, "other headers", one(Hear { headers: HeadersSeen::Own, ..heard(1, 1) }));
    let elsewhere = Emit { subject: "b".to_owned(), ..emitted(1) };
    let other = Hear { subject: "b".to_owned(), ..heard(1, 1) };
    let stray = vec![Event::Emit(elsewhere), Event::Hear(other)];
    broken(check, "does not listen to", all(vec![listen(1), stray]));
    let with_headers = Event::Emit(Emit { has_headers: true, ..emitted(1) });
    broken(check, "other headers", all(vec![listen(1), vec![with_headers.clone(), hear(1, 1)]]));
    let plain = Event::Listen(Listen { takes_headers: false, ..listening(1) });
    kept(vec![plain, with_headers, hear(1, 1)]);
}

#[test]
fn what_was_rolled_back_is_not_heard() {
    let published = Event::Publish(Publish { transaction: Some(5), ..published(1) });
    let events = vec![published, emit(1), ended(5, Ending::RolledBack), hear(1, 1)];
    broken("heard as sent", "transaction", all(vec![listen(1), events.clone()]));
    let mut asked = events;
    asked[2] = Event::Committing { transaction: 5 };
    kept(all(vec![listen(1), asked]));
}

#[test]
fn disorder_is_found() {
    let events = vec![emit(1), emit(2), hear(1, 2), hear(1, 1)];
    broken("heard in order", "before", all(vec![listen(1), events]));
    let other = MessageId::new(2, 1);
    let of_two = vec![
        Event::Emit(Emit { message: other, ..emitted(1) }),
        emit(1),
        hear(1, 1),
        Event::Hear(Hear { message: Some(other), ..heard(1, 1) }),
    ];
    kept(all(vec![listen(1), of_two]));
}

#[test]
fn disorder_in_a_group_is_found_unless_another_member_has_left() {
    let member_of = |listener| member(listener, "a.*");
    let judge = |count, left: Vec<Event>| {
        let events = vec![emit(1), emit(2), hear(1, 2), hear(1, 1), flushed(2), Event::AllSaid];
        let mut plan = plan();
        plan.shards.count = count;
        history_of(plan, all(vec![member_of(1), member_of(2), left, events]))
    };
    let left = || vec![Event::Unlisten { listener: 2, after: None }];
    kept_in(&judge(3, left()));
    broken_in("heard in order", "before", &judge(3, Vec::new()));
    broken_in("heard in order", "before", &judge(1, left()));
}

#[test]
fn gaps_are_found() {
    let check = "heard completely";
    let gap = || vec![emit(1), emit(2), flushed(2), hear(1, 2)];
    broken(check, "misses 1", all(vec![listen(1), gap()]));
    broken(check, "misses 1", all(vec![listen(1), gap(), vec![parted(1)]]));
    let confirmed = vec![emit(1), confirm(1), emit(2), hear(1, 2)];
    broken(check, "misses 1", all(vec![listen(1), confirmed]));
    // Not known to listen, or not known to be processed.
    kept(all(vec![vec![Event::Listen(listening(1))], gap()]));
    kept(all(vec![listen(1), vec![emit(1), emit(2), hear(1, 2)]]));
}

#[test]
fn what_never_came_is_found() {
    let check = "heard completely";
    let never = || vec![emit(1), flushed(1), Event::AllSaid];
    broken(check, "never heard", all(vec![listen(1), never()]));
    kept(all(vec![listen(1), vec![parted(1)], never()]));
    kept(all(vec![listen(1), vec![emit(1), flushed(1)]]));
    kept(all(vec![listen(1), vec![emit(1), Event::AllSaid]]));
    let at_once = vec![Event::Unlisten { listener: 1, after: None }];
    kept(all(vec![listen(1), at_once, never()]));
    let later = vec![Event::Unlisten { listener: 1, after: Some(1) }];
    broken(check, "never heard", all(vec![listen(1), later, never()]));
}

#[test]
fn who_is_behind_must_be_told() {
    let check = "heard completely";
    let gap = |missed| vec![emit(1), emit(2), flushed(2), hear_after(1, 2, missed)];
    let lagging = |missed| history_of(tight(), all(vec![listen(1), gap(missed)]));
    broken_in(check, "told of 0", &lagging(0));
    kept_in(&lagging(1));
    broken_in(check, "and did not", &lagging(2));
    broken(check, "and did not", all(vec![listen(1), gap(1)]));
    let plain = Event::Listen(Listen { takes_headers: false, ..listening(1) });
    let plain = vec![plain, Event::Listens { listener: 1 }];
    kept_in(&history_of(tight(), all(vec![plain, gap(0)])));
}

/// Slow clients miss the oldest.
fn oldest() -> Plan {
    Plan { slow_consumer_policy: SlowConsumerPolicy::DropOldest, ..tight() }
}

/// Slow clients' messages wait on a disk that fails now and then.
fn spooling() -> Plan {
    Plan {
        slow_consumer_policy: SlowConsumerPolicy::Spool,
        spool: Spool { rots: 1, ..Spool::default() },
        ..tight()
    }
}

#[test]
fn what_a_spool_lost_is_told_by_the_last_words() {
    let check = "heard completely";
    let rot = || vec![Event::Fault(SPOOL_ROTS)];
    let gap = || vec![emit(1), emit(2), flushed(2), hear(1, 2)];
    let last = |missed| vec![Event::CaughtUp, emit(3), hear_after(1, 3, missed)];
    let lagging = |missed| history_of(spooling(), all(vec![listen(1), rot(), gap(), last(missed)]));
    kept_in(&lagging(1));
    broken_in(check, "told of 0", &lagging(0));
    broken_in(check, "and did not", &lagging(2));
    // One of them that gets lost itself is told of by none.
    let lost_word = vec![Event::CaughtUp, emit(1), emit(2), flushed(2), hear(1, 2)];
    kept_in(&history_of(spooling(), all(vec![listen(1), rot(), lost_word.clone()])));
    // Nor may one that was taken out for others that came with it.
    kept_in(&history_of(oldest(), all(vec![listen(1), lost_word])));
    let taken_out = |missed| history_of(oldest(), all(vec![listen(1), gap(), last(missed)]));
    kept_in(&taken_out(1));
    broken_in(check, "told of 0", &taken_out(0));
    // It took what it told of with it.
    let after_lost = vec![Event::CaughtUp, emit(3), emit(4), flushed(4), hear(1, 4)];
    kept_in(&history_of(oldest(), all(vec![listen(1), gap(), after_lost])));
    // Where the disk does not fail, nobody misses anything.
    let sound = || Plan { spool: Spool::default(), ..spooling() };
    let told = || all(vec![listen(1), gap(), last(1)]);
    broken_in(check, "and did not", &history_of(sound(), told()));
    // It makes room where the journal has none.
    let full = Plan { faults: Faults { disk_fulls: 1, ..Faults::default() }, ..sound() };
    let was_full = vec![Event::Fault(DISK_FULL)];
    kept_in(&history_of(full, all(vec![listen(1), was_full, gap(), last(1)])));
}

#[test]
fn what_a_spool_loses_on_a_sound_disk_is_found() {
    let check = "spool kept";
    let gap = || vec![emit(1), emit(2), flushed(2), hear_after(1, 2, 1)];
    let rot = || vec![Event::Fault(SPOOL_ROTS)];
    broken_in(check, "without faults", &history_of(spooling(), all(vec![listen(1), gap()])));
    broken_in(check, "without faults", &history_of(spooling(), all(vec![listen(1), gap(), rot()])));
    kept_in(&history_of(spooling(), all(vec![listen(1), rot(), gap()])));
    let full = vec![Event::Fault(DISK_FULL)];
    kept_in(&history_of(spooling(), all(vec![listen(1), full, gap()])));
    let small = Spool { chunks_max: Some(1), ..Spool::default() };
    let small = Plan { spool: small, ..spooling() };
    kept_in(&history_of(small, all(vec![listen(1), gap()])));
}

#[test]
fn two_of_a_group_are_found() {
    let check = "one of a group";
    let both = vec![emit(1), hear(1, 1), hear(2, 1)];
    broken(check, "of group 'g'", all(vec![member(1, "a.*"), member(2, "a.b"), both]));
}

#[test]
fn a_group_of_which_nobody_hears_is_found() {
    let check = "one of a group";
    let silence = || vec![emit(1), flushed(1), Event::AllSaid];
    broken(check, "nobody", all(vec![member(1, "a.*"), member(2, "a.b"), silence()]));
    // It may have been handed to one that was lost.
    let lost = vec![emit(1), flushed(1), parted(2), Event::AllSaid];
    kept(all(vec![member(1, "a.*"), member(2, "a.b"), lost]));
    kept_in(&history_of(tight(), all(vec![member(1, "a.*"), silence()])));
    let forgotten = vec![parted(2), Event::Crashed];
    broken(check, "nobody", all(vec![member(2, "a.b"), forgotten, member(1, "a.*"), silence()]));
}

fn request() -> Vec<Event> {
    let inbox = Listen { connection: 1, pattern: "in.*".to_owned(), ..listening(9) };
    let reply = Some("in.1".to_owned());
    vec![
        Event::Listen(inbox),
        Event::Listens { listener: 9 },
        Event::Emit(Emit { reply, ..emitted(1) }),
        flushed(1),
    ]
}

fn responder(listener: u32) -> Vec<Event> {
    let listen = Listen { answers: true, ..listening(listener) };
    vec![Event::Listen(listen), Event::Listens { listener }]
}

fn take_request(listener: u32) -> Event {
    Event::Hear(Hear { reply: Some("in.1".to_owned()), ..heard(listener, 1) })
}

fn answer() -> Vec<Event> {
    let (message, subject) = (MessageId::new(2, 1), "in.1".to_owned());
    let emit = Emit { message, subject: subject.clone(), connection: 12, ..emitted(1) };
    let hear = Hear { listener: 9, message: Some(message), subject, ..Hear::default() };
    vec![Event::Emit(emit), Event::Flushed { message }, Event::Hear(hear)]
}

fn no_responders() -> Event {
    Event::NoResponders { inbox: "in.1".to_owned(), subject: "a.b".to_owned() }
}

#[test]
fn requests_without_answers_are_found() {
    let check = "requests answered";
    let end = || vec![Event::AllSaid];
    kept(all(vec![responder(1), request(), vec![take_request(1)], answer(), end()]));
    let taken = || vec![take_request(1)];
    broken(check, "no answer came", all(vec![responder(1), request(), taken(), end()]));
    broken(check, "no 503 came", all(vec![request(), end()]));
    kept(all(vec![request(), vec![no_responders()], end()]));
    // Whoever was to answer may be gone, and whoever asked.
    kept(all(vec![responder(1), request(), taken(), vec![parted(1)], end()]));
    kept(all(vec![request(), vec![Event::Parted { connection: 1 }], end()]));
}

#[test]
fn wrong_words_that_there_is_no_responder_are_found() {
    let check = "requests answered";
    broken(check, "nobody asked", vec![no_responders()]);
    broken(check, "twice", all(vec![request(), vec![no_responders(), no_responders()]]));
    let both = all(vec![request(), vec![no_responders()], answer()]);
    broken(check, "an answer, and 503", both);
    let there = all(vec![responder(1), request(), vec![no_responders(), Event::AllSaid]]);
    broken(check, "was there", there);
}

#[test]
fn hearing_after_the_end_is_found() {
    let unlisten = |after| {
        vec![Event::Unlisten { listener: 1, after }, emit(1), Event::Unlistened { listener: 1 }]
    };
    let at_once = || all(vec![listen(1), unlisten(None)]);
    broken("unsubscribed is deaf", "had ended", all(vec![at_once(), vec![hear(1, 1)]]));
    let on_its_way = vec![emit(1), hear(1, 1), Event::Unlistened { listener: 1 }];
    let asked = vec![Event::Unlisten { listener: 1, after: None }];
    kept(all(vec![listen(1), asked, on_its_way]));

    let after_one = || all(vec![listen(1), unlisten(Some(1)), vec![hear(1, 1)]]);
    kept(after_one());
    broken("until exact", "wanted 1", all(vec![after_one(), vec![emit(2), hear(1, 2)]]));
}

#[test]
fn echoes_are_found() {
    let own = Listen { connection: 1, ..listening(1) };
    let silent = Event::Emit(Emit { echo: false, ..emitted(1) });
    let events = vec![Event::Listen(own.clone()), silent, hear(1, 1)];
    broken("no echo", "its own", events);
    kept(vec![Event::Listen(own), emit(1), hear(1, 1)]);
}

#[test]
fn caught_messages_that_are_gone_are_missed() {
    let check = "confirmed is kept";
    let emitted = || vec![publish(1), emit(1), flushed(1)];
    let caught = || all(vec![vec![publish(9), confirm(9)], emitted()]);
    broken(check, "was caught", drained(caught(), vec![deliver(1, 9)]));
    kept(drained(caught(), vec![deliver(1, 1), deliver(1, 9)]));
    // Without a confirm it need not survive, nor be caught by what may not have been there yet.
    kept(drained(all(vec![caught(), vec![Event::Crashed]]), vec![redeliver(1, 9)]));
    kept(drained(emitted(), vec![]));
    // One that comes behind a restart is of before.
    let late = vec![publish(9), Event::Closed, Event::Recovered, confirm(9)];
    kept(drained(all(vec![late, emitted()]), vec![redeliver(1, 9)]));
}

#[test]
fn clients_that_go_without_a_cause_are_found() {
    let check = "only slow consumers are closed";
    let dropped = |why: &str| vec![Event::Dropped { client: 0, why: why.to_owned() }];
    let slow = "slow consumer: more than 1 bytes unsent";
    broken(check, "slow", dropped(slow));
    let going = || Plan { slow_consumer_policy: SlowConsumerPolicy::Disconnect, ..tight() };
    kept_in(&history_of(going(), dropped(slow)));
    broken_in(check, "slow", &history_of(tight(), dropped(slow)));
    broken_in(check, "Stale", &history_of(going(), dropped("Stale Connection")));
    let text = "Unknown Protocol Operation".to_owned();
    broken("refused rightly", "Unknown", vec![Event::Complained { connection: 1, text }]);
}

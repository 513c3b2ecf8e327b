//! Promises to clients of AMQP 1.0: returns, drains, rollbacks, and browses.

use super::{
    broken_in, confirm, consume, delivered, ended, history_of, id, kept_in, plan, publish,
    published, settle, settle_in,
};
use crate::history::{Delivery, Ending, Event, History, Outcome, Publish, Sight};
use crate::plan::Plan;
use crate::plan::amqp10::{Browser, Client, Taker};

/// Queue 0 has a client that takes from it alone.
fn taken() -> Plan {
    let taker = Taker {
        queue: 0,
        credit_max: 1,
        fail_percent: 0,
        release_percent: 0,
        drain_percent: 0,
        think_max: 1,
        life_max: None,
    };
    Plan { clients: vec![Client::Taker(taker).into()], ..plan() }
}

/// Queue 0 is browsed, and nobody consumes from it.
fn shown() -> Plan {
    let browser = Browser { queue: 0, credit_max: 1, is_settled: true, think_max: 1 };
    Plan { clients: vec![Client::Browser(browser).into()], ..plan() }
}

/// Two messages are in the queue, and the first has come to consumer 1.
fn one_came(more: Vec<Event>) -> History {
    let mut events = vec![publish(1), confirm(1), publish(2), confirm(2), consume(1, 0, 0)];
    events.push(came(1, 0));
    events.extend(more);
    history_of(taken(), events)
}

/// A message comes to consumer 1 after that many failed deliveries.
fn came(sequence: u32, requeues: u64) -> Event {
    Event::Deliver(Delivery { redelivered: requeues > 0, requeues, ..delivered(1, sequence) })
}

/// The same, marked as delivered before.
fn came_again(sequence: u32, requeues: u64) -> Event {
    Event::Deliver(Delivery { redelivered: true, requeues, ..delivered(1, sequence) })
}

#[test]
fn returns_that_are_counted_wrongly_are_found() {
    let check = "returns counted";
    let released =
        |requeues| one_came(vec![settle(1, 1, Outcome::Release), came_again(1, requeues)]);
    kept_in(&released(0));
    broken_in(check, "1 failed deliveries of 0", &released(1));
    let failed = |requeues| one_came(vec![settle(1, 1, Outcome::Requeue), came_again(1, requeues)]);
    kept_in(&failed(1));
    broken_in(check, "0 failed deliveries, and 1", &failed(0));
    broken_in(check, "2 failed deliveries of 1", &failed(2));
    // A rollback counts, whether its client knows of it or not.
    let back = |requeues| {
        let undone = Event::Undone { transaction: 5 };
        let back = ended(5, Ending::RolledBack);
        one_came(vec![settle_in(1, 5), back, undone, came_again(1, requeues)])
    };
    kept_in(&back(1));
    broken_in(check, "0 failed deliveries, and 1", &back(0));
    kept_in(&one_came(vec![settle_in(1, 5), came_again(1, 1), ended(5, Ending::RolledBack)]));
}

#[test]
fn returns_that_come_behind_newer_messages_are_found() {
    let check = "returns in place";
    let (back, undone) = (ended(5, Ending::RolledBack), Event::Undone { transaction: 5 });
    let after = |events: &[Event], next: Vec<Event>| one_came([events, &next[..]].concat());
    let rollback = [settle_in(1, 5), back.clone(), undone];
    kept_in(&after(&rollback, vec![came_again(1, 1), came(2, 0)]));
    broken_in(check, "before", &after(&rollback, vec![came(2, 0)]));
    // It may have been under way before the broker knew of the rollback.
    kept_in(&after(&[settle_in(1, 5), back], vec![came(2, 0), came_again(1, 1)]));
    let asking = [Event::Asking { consumer: 1 }, Event::Synced { consumer: 1 }];
    let release = [&[settle(1, 1, Outcome::Release)][..], &asking].concat();
    kept_in(&after(&release, vec![came_again(1, 0), came(2, 0)]));
    broken_in(check, "before", &after(&release, vec![came(2, 0)]));
}

#[test]
fn drains_that_are_answered_early_are_found() {
    let (ask, answer) = (Event::Asking { consumer: 1 }, Event::NothingLeft { consumer: 1 });
    kept_in(&one_came(vec![ask.clone(), came(2, 0), answer.clone()]));
    broken_in("drains complete", "nothing left but", &one_came(vec![ask.clone(), answer.clone()]));
    let transient = Event::Publish(Publish { persistent: false, ..published(3) });
    let restart = [Event::Ended { consumer: 1 }, Event::Crashed, Event::Recovered];
    let late = [&[transient][..], &restart, &[confirm(3), consume(1, 0, 0), ask, answer]].concat();
    kept_in(&one_came(late));
}

/// Queue 0 has messages 1 and 2, and browse 7 begins.
fn browse(more: Vec<Event>) -> History {
    let mut events = vec![publish(1), confirm(1), publish(2), confirm(2)];
    events.push(Event::Browse { browse: 7, queue: 0 });
    events.extend(more);
    history_of(shown(), events)
}

fn saw(sequence: u32) -> Event {
    Event::Saw(Sight { browse: 7, message: Some(id(sequence)), is_marked: false })
}

fn asks() -> Event {
    Event::BrowseAsks { browse: 7 }
}

fn told() -> Event {
    Event::Browsed { browse: 7 }
}

#[test]
fn browses_that_show_the_wrong_messages_are_found() {
    let check = "browses complete";
    kept_in(&browse(vec![asks(), saw(1), saw(2), told()]));
    kept_in(&browse(vec![saw(2)]));
    broken_in(check, "all but", &browse(vec![asks(), saw(1), told()]));
    broken_in(check, "twice", &browse(vec![saw(1), saw(1)]));
    broken_in(check, "before", &browse(vec![saw(2), saw(1)]));
    broken_in(check, "nobody published", &browse(vec![saw(3)]));
    let marked = Sight { browse: 7, message: Some(id(1)), is_marked: true };
    broken_in(check, "marked", &browse(vec![Event::Saw(marked.clone())]));
    let other = Publish { to: vec![1], ..published(3) };
    broken_in(check, "another queue", &browse(vec![Event::Publish(other), saw(3)]));
    let within = Publish { transaction: Some(5), ..published(3) };
    let open = vec![Event::Publish(within), saw(3)];
    broken_in(check, "not committed", &browse(open.clone()));
    kept_in(&browse([vec![Event::Committing { transaction: 5 }], open].concat()));
    // What was confirmed after the drain was asked for need not be shown; what survives a crash is.
    kept_in(&browse(vec![asks(), publish(3), confirm(3), saw(1), saw(2), told()]));
    let again = Event::Browse { browse: 7, queue: 0 };
    let crash = vec![Event::Crashed, Event::Recovered, again, asks(), saw(1)];
    broken_in(check, "all but", &browse([crash.clone(), vec![told()]].concat()));
    let again = vec![Event::Crashed, Event::Browse { browse: 7, queue: 0 }];
    kept_in(&browse([again, vec![Event::Saw(marked)]].concat()));
}

#[test]
fn browses_that_take_are_found() {
    let check = "browses take nothing";
    let at_the_end = |redelivered, requeues| {
        let delivery = Delivery { redelivered, requeues, ..delivered(2, 1) };
        browse(vec![saw(1), Event::Draining, consume(2, 0, 0), Event::Deliver(delivery)])
    };
    kept_in(&at_the_end(false, 0));
    broken_in(check, "is marked", &at_the_end(true, 0));
    broken_in(check, "is marked", &at_the_end(true, 1));
}

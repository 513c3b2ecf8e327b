//! Exactly once, through crashes and takeovers: a client publishes with numbers that it uses again, another
//! one consumes and remembers the numbers of what it has not released. Whatever is lost in a crash, each
//! message arrives once. Handlers that answer too early are found out.

use super::TestHost;
use super::sessions::host_with;
use crate::foundation::random::Random;
use crate::interface::limits::Limits;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Numbers that the publisher has: few, so that it uses them again soon.
const NUMBERS: u64 = 3;
const MESSAGES: u64 = 12;

/// A mistake of a protocol handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// The publisher may use a number again before it is known to be forgotten.
    FreesEarly,
    /// The consumer forgets a number before the release is stored.
    ReleasesEarly,
    /// The queue hands out what a crash may take back.
    HandsOutEarly,
    /// Publishes have no numbers.
    PublishesTwice,
}

/// What has become of a number that the publisher has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// It names that message, which is not confirmed.
    Sent(u64),
    /// It is to be forgotten.
    Confirmed,
    /// That has been asked for.
    Forgetting,
}

#[derive(Default)]
struct Publisher {
    next: u64,
    numbers: BTreeMap<u64, Number>,
    /// Publishes on this channel.
    sent: u64,
    /// Which of them are not confirmed, in order, and their numbers.
    unconfirmed: VecDeque<(u64, u64)>,
    /// Numbers whose forgetting was asked for, in order.
    forgetting: VecDeque<u64>,
}

#[derive(Default)]
struct Consumer {
    /// What arrived, in order.
    got: Vec<String>,
    /// Numbers that it remembers, which are places.
    remembered: BTreeSet<u64>,
    /// Deliveries that it has not answered: tag and place.
    unanswered: VecDeque<(u64, u64)>,
    /// Places of requests for release, and (`None`) of others, in order.
    requests: VecDeque<Option<u64>>,
    /// Places that the broker has said to be released.
    released: VecDeque<u64>,
}

struct World {
    host: TestHost,
    random: Random,
    mistake: Option<Mistake>,
    /// Records that are flushed.
    flushed: usize,
    /// The name of the consumer's channel.
    channel: &'static str,
    publisher: Publisher,
    consumer: Consumer,
}

impl World {
    fn new(seed: u8, mistake: Option<Mistake>) -> World {
        let mut host = host_with(Limits::default());
        host.fx.shows_places = true;
        let random = Random::new([seed; 32]);
        let (publisher, consumer) = (Publisher::default(), Consumer::default());
        let mut world =
            World { host, random, mistake, flushed: 0, channel: "s", publisher, consumer };
        world.connect_consumer();
        world.consumer.requests.push_back(None);
        world.run("s bind amq.topic amq.session-sub #");
        world.flush();
        world.connect_publisher();
        world
    }

    fn below(&mut self, most: u64) -> u64 {
        self.random.next() % most
    }

    /// Runs a line, and hands both clients its effects.
    fn run(&mut self, line: &str) {
        for line in self.host.run(line) {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["p", "confirm", ..] => self.confirmed(words[2].parse().unwrap()),
                ["p", "ok"] => self.forgotten(),
                [who, "deliver", _, tag, body, place, ..] if who == self.channel => {
                    let tag = tag[1..].parse().unwrap();
                    self.delivered(tag, body, place[1..].parse().unwrap());
                }
                [who, "ok"] if who == self.channel => self.answered(),
                [who, "session", ..] if who == self.channel => {
                    let list = line.split_once("released=[").map_or("", |(_, list)| list);
                    let list = list.trim_end_matches(']').split(", ").filter(|it| !it.is_empty());
                    self.consumer.released = list.map(|place| place.parse().unwrap()).collect();
                }
                // Also what comes late for a channel that was taken over from.
                ["p", "session", ..] | [_, "consuming", ..] | ["s" | "u", ..] => {}
                _ => panic!("{line}"),
            }
        }
    }

    fn flush(&mut self) {
        self.flushed = self.host.fx.records.len();
        self.run("flush");
    }

    fn connect_publisher(&mut self) {
        for line in ["login p ann", "p claim pub recorded expiry=-"] {
            self.run(line);
        }
        self.flush();
        self.host.run("p confirms");
        self.publisher.sent = 0;
        self.publisher.unconfirmed.clear();
        self.publisher.forgetting.clear();
        // It asks again for what was not answered; another message may come before.
        let unanswered = self.publisher.numbers.clone();
        if self.below(2) == 0 {
            self.publish_next();
        }
        for (number, state) in unanswered {
            match state {
                Number::Sent(message) => self.publish(number, message),
                Number::Confirmed => {}
                Number::Forgetting => self.forget(number),
            }
        }
    }

    fn connect_consumer(&mut self) {
        self.consumer.unanswered.clear();
        self.consumer.requests.clear();
        let name = self.channel;
        self.run(&format!("login {name} ann"));
        self.run(&format!("{name} claim sub recorded expiry=- queue"));
        self.flush();
        if self.mistake != Some(Mistake::HandsOutEarly) {
            self.consumer.requests.push_back(None);
            self.run(&format!("{name} change sub flushed=on"));
        }
        self.run(&format!(
            "{name} consume amq.session-sub t granted on-loss=release on-close=release"
        ));
        self.run(&format!("{name} grant t 1000"));
        self.flush();
    }

    fn publish(&mut self, number: u64, message: u64) {
        self.publisher.numbers.insert(number, Number::Sent(message));
        self.publisher.sent += 1;
        self.publisher.unconfirmed.push_back((self.publisher.sent, number));
        let once = if self.mistake == Some(Mistake::PublishesTwice) { "" } else { "once=" };
        self.run(&format!("p publish amq.topic k m{message} persistent {once}{number}"));
    }

    fn confirmed(&mut self, up_to: u64) {
        while let Some((sent, number)) = self.publisher.unconfirmed.front().copied()
            && sent <= up_to
        {
            self.publisher.unconfirmed.pop_front();
            self.publisher.numbers.insert(number, Number::Confirmed);
        }
    }

    fn forget(&mut self, number: u64) {
        self.publisher.numbers.insert(number, Number::Forgetting);
        self.publisher.forgetting.push_back(number);
        self.run(&format!("p forget {number}"));
        if self.mistake == Some(Mistake::FreesEarly) {
            self.publisher.numbers.remove(&number);
        }
    }

    fn forgotten(&mut self) {
        let number = self.publisher.forgetting.pop_front().unwrap();
        if self.publisher.numbers.get(&number) == Some(&Number::Forgetting) {
            self.publisher.numbers.remove(&number);
        }
    }

    fn delivered(&mut self, tag: u64, body: &str, place: u64) {
        if self.consumer.remembered.insert(place) {
            self.consumer.got.push(body.to_owned());
        }
        self.consumer.unanswered.push_back((tag, place));
    }

    /// The answer to a request of the consumer: a release is stored.
    fn answered(&mut self) {
        if let Some(place) = self.consumer.requests.pop_front().unwrap() {
            self.consumer.released.push_back(place);
        }
    }

    fn step(&mut self) {
        match self.below(20) {
            0..=5 => self.step_publisher(),
            6..=11 => self.step_consumer(),
            12..=14 => self.flush(),
            15 => self.run("time 1"),
            16 => {
                self.run("p disconnect");
                self.connect_publisher();
            }
            17 => {
                if self.below(2) == 0 {
                    self.run(&format!("{} disconnect", self.channel));
                } else {
                    self.channel = if self.channel == "s" { "u" } else { "s" };
                }
                self.connect_consumer();
                for gone in ["s", "u"].into_iter().filter(|it| *it != self.channel) {
                    self.host.run(&format!("{gone} disconnect"));
                }
            }
            _ => self.crash(),
        }
    }

    fn crash(&mut self) {
        let unflushed = (self.host.fx.records.len() - self.flushed) as u64;
        let lost = self.below(unflushed + 1);
        let how = if self.below(2) == 0 { "killed" } else { "" };
        self.run(&format!("restart lose={lost} {how}"));
        self.flushed = self.host.fx.records.len();
        self.connect_publisher();
        self.connect_consumer();
    }

    fn step_publisher(&mut self) {
        let is_confirmed = |(_, state): &(&u64, &Number)| **state == Number::Confirmed;
        let confirmed = self.publisher.numbers.iter().find(is_confirmed).map(|(number, _)| *number);
        match confirmed {
            None => self.publish_next(),
            Some(number) => self.forget(number),
        }
    }

    /// Publishes another message, if there is one and a number for it.
    fn publish_next(&mut self) {
        let free = (1..=NUMBERS).find(|number| !self.publisher.numbers.contains_key(number));
        if let Some(free) = free.filter(|_| self.publisher.next < MESSAGES) {
            self.publisher.next += 1;
            self.publish(free, self.publisher.next);
        }
    }

    fn step_consumer(&mut self) {
        let name = self.channel;
        if let Some(place) = self.consumer.released.pop_front() {
            self.consumer.remembered.remove(&place);
            self.consumer.requests.push_back(None);
            self.run(&format!("{name} let-in {place}"));
        } else if let Some((tag, place)) = self.consumer.unanswered.pop_front() {
            self.consumer.requests.push_back(Some(place));
            self.run(&format!("{name} let-out {tag}"));
            if self.mistake == Some(Mistake::ReleasesEarly) {
                self.consumer.remembered.remove(&place);
            }
        }
    }

    /// Goes on without crashes until nothing is left to do; returns what arrived.
    fn finish(mut self) -> Vec<String> {
        for _ in 0..40 * MESSAGES {
            self.step_publisher();
            self.step_consumer();
            self.flush();
        }
        assert_eq!(self.publisher.numbers, BTreeMap::new());
        assert_eq!(self.consumer.unanswered, []);
        self.consumer.got.sort_by_key(|body| body[1..].parse::<u64>().unwrap());
        self.consumer.got
    }
}

/// Whether each message arrived once in the run of that seed.
fn holds(seed: u8, mistake: Option<Mistake>) -> bool {
    let mut world = World::new(seed, mistake);
    for _ in 0..120 {
        world.step();
    }
    let sent: Vec<String> = (1..=MESSAGES).map(|message| format!("m{message}")).collect();
    world.finish() == sent
}

#[test]
fn each_message_arrives_once() {
    for seed in 0..40 {
        assert!(holds(seed, None), "seed {seed}");
    }
}

#[test]
fn mistakes_of_handlers_are_noticed() {
    for mistake in [
        Mistake::FreesEarly,
        Mistake::ReleasesEarly,
        Mistake::HandsOutEarly,
        Mistake::PublishesTwice,
    ] {
        assert!((0..60).any(|seed| !holds(seed, Some(mistake))), "{mistake:?}");
    }
}

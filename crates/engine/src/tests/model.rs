//! Random inputs against a queue that is nothing but a sorted list.

use super::TestHost;
use crate::foundation::random::Random;
use crate::interface::limits::Limits;
use crate::{ChannelId, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// What a queue is: messages by number, each ready or out.
#[derive(Default)]
struct Model {
    ready: BTreeSet<u64>,
    out: BTreeMap<(ChannelId, u64), u64>,
    persistent: BTreeSet<u64>,
    /// Was delivered, or may have been before a restart.
    redelivered: BTreeSet<u64>,
    next: u64,
}

impl Model {
    /// Checks deliveries in order: each is the first message that is ready.
    fn deliver(&mut self, host: &mut TestHost) {
        for (channel, tag, body, redelivered) in std::mem::take(&mut host.fx.delivered) {
            let number: u64 = body[1..].parse().unwrap();
            assert_eq!(Some(&number), self.ready.first(), "not the first one");
            assert_eq!(redelivered, self.redelivered.contains(&number), "redelivered {number}");
            self.ready.remove(&number);
            self.redelivered.insert(number);
            self.out.insert((channel, tag), number);
        }
    }

    fn back(&mut self, number: u64) {
        self.ready.insert(number);
    }
}

struct Run {
    host: TestHost,
    model: Model,
    random: Random,
    consumers: BTreeSet<String>,
    /// What was done, for the message of a failure.
    lines: Vec<String>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let limits = Limits {
            queue_resident_bytes_max: 3_000,
            resident_bytes_max: 6_000,
            snapshot_at_once: 1 << (seed % 12),
            given_back_at_once: 1 << (seed % 10),
            page_entries: 1 << (seed % 11),
            ..Limits::default()
        };
        let mut host = TestHost::with(limits);
        host.fx.quiet = true;
        host.run("a queue q durable");
        let consumers = BTreeSet::new();
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Run {
            host,
            model: Model::default(),
            random: Random::new(key),
            consumers,
            lines: Vec::new(),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.random.next() >> 11) % bound
    }

    fn run(&mut self, line: &str) {
        self.lines.push(line.to_owned());
        self.host.run(line);
        self.model.deliver(&mut self.host);
    }

    fn publish(&mut self, count: u64) {
        for _ in 0..count {
            let number = self.model.next;
            self.model.next += 1;
            let padding = "0".repeat(self.below(40) as usize);
            let persistent = self.below(3) > 0;
            let word = if persistent { "persistent" } else { "" };
            if persistent {
                self.model.persistent.insert(number);
            }
            self.model.ready.insert(number);
            self.host.act_on(&format!("a publish - q m{padding}{number} {word}"));
        }
        self.run("a passive q");
    }

    fn settle(&mut self) {
        let count = self.model.out.len() as u64;
        if count == 0 {
            return;
        }
        let index = self.below(count) as usize;
        let (channel, tag) = *self.model.out.keys().nth(index).unwrap();
        let multiple = self.below(4) == 0;
        let outcome = [
            Outcome::Accept,
            Outcome::Accept,
            Outcome::REQUEUE,
            Outcome::RELEASE,
            Outcome::Discard,
        ];
        let outcome = outcome[self.below(5) as usize];
        let settled: Vec<u64> = if multiple {
            self.model.out.keys().filter(|(s, t)| *s == channel && *t <= tag).map(|k| k.1).collect()
        } else {
            vec![tag]
        };
        for tag in settled {
            let number = self.model.out.remove(&(channel, tag)).unwrap();
            if matches!(outcome, Outcome::Return(_)) {
                self.model.back(number);
            }
        }
        let word = match outcome {
            Outcome::Accept => "accept",
            Outcome::REQUEUE => "requeue",
            Outcome::Return(_) => "release",
            Outcome::Discard => "discard",
        };
        let name = self.host.fx.names[&channel].clone();
        self.run(&format!("{name} {word} {tag} {}", if multiple { "multiple" } else { "" }));
    }

    fn consume(&mut self) {
        let name = ["b", "c", "d"][self.below(3) as usize].to_owned();
        if self.consumers.remove(&name) {
            let mut returned = Vec::new();
            let channel = self.host.channel(&name);
            self.model.out.retain(|(owner, _), number| {
                if *owner == channel {
                    returned.push(*number);
                }
                *owner != channel
            });
            for number in returned {
                self.model.back(number);
            }
            self.run(&format!("{name} close"));
        } else {
            let credit = self.below(60) + 1;
            self.run(&format!("{name} consume q {name} credit={credit}"));
            self.consumers.insert(name);
        }
    }

    fn restart(&mut self) {
        self.consumers.clear();
        let out = std::mem::take(&mut self.model.out);
        self.model.ready.extend(out.into_values());
        let persistent = &self.model.persistent;
        self.model.ready.retain(|number| persistent.contains(number));
        self.model.redelivered.extend(self.model.ready.iter().copied());
        self.run("restart");
    }

    fn step(&mut self) {
        match self.below(100) {
            0..30 => {
                let count = self.below(20);
                self.publish(count);
            }
            30..33 => {
                let count = self.below(3_000);
                self.publish(count);
            }
            33..80 => self.settle(),
            80..90 => self.consume(),
            90..92 => {
                self.model.ready.clear();
                self.run("a purge q");
            }
            92..94 => self.run("checkpoint"),
            94 => self.run("snapshot"),
            95..97 => self.restart(),
            _ => self.run("a get q"),
        }
        let lines = self.host.run("a passive q");
        let ready = self.model.ready.len();
        assert!(
            lines.last().unwrap().starts_with(&format!("a queue q {ready} ")),
            "{lines:?}, {ready} expected after {:?}",
            self.lines
        );
    }
}

#[test]
fn a_queue_does_what_a_list_does() {
    for seed in 0..12 {
        let mut run = Run::new(seed);
        for _ in 0..150 {
            run.step();
        }
    }
}

#[test]
fn the_same_inputs_have_the_same_effects() {
    let records = |seed| {
        let mut run = Run::new(seed);
        run.host.fx.quiet = false;
        for _ in 0..100 {
            run.step();
        }
        run.host.fx.records
    };
    assert!(records(3) == records(3));
    assert!(records(3) != records(4));
}

//! Consumers with filters on queues of which most is in the journal, over restarts, against plain lists.

use super::TestHost;
use crate::foundation::random::Random;
use crate::interface::limits::Limits;
use std::collections::BTreeMap;

/// Pages of these sizes are tried.
const PAGE_ENTRIES: [usize; 4] = [2, 7, 40, 1024];
/// Those who consume, each what has a remainder by three, and how many at a time at most.
const CONSUMERS: [(&str, u64, usize); 3] = [("b", 0, 3), ("c", 1, 1), ("d", 2, 40)];

/// A queue, what waits in it, and what is out of it by channel and tag.
struct Run {
    host: TestHost,
    random: Random,
    priorities: u64,
    waiting: Vec<u64>,
    out: BTreeMap<(String, u64), u64>,
    next: u64,
    is_durable: bool,
    lines: Vec<String>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut host = TestHost::with(Limits {
            queue_resident_bytes_max: 2_000,
            resident_bytes_max: 5_000,
            snapshot_at_once: 1 << (seed % 11),
            page_entries: PAGE_ENTRIES[seed as usize % PAGE_ENTRIES.len()],
            ..Limits::default()
        });
        host.fx.quiet = true;
        let (priorities, is_durable) = (1 + seed / 4 % 2, seed % 5 != 4);
        let durable = if is_durable { "durable" } else { "" };
        host.run(&format!("a queue q {durable} priorities={}", priorities - 1));
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let random = Random::new(key);
        let (waiting, out, lines) = (Vec::new(), BTreeMap::new(), Vec::new());
        Run { host, random, priorities, waiting, out, next: 0, is_durable, lines }
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.random.next() >> 11) % bound
    }

    fn priority(&self, number: u64) -> u64 {
        number / 5 % self.priorities
    }

    /// What a channel gets next.
    fn next_for(&self, channel: &str) -> Option<u64> {
        let own = CONSUMERS.iter().find(|(name, ..)| *name == channel).map(|(_, own, _)| *own);
        let selected = self.waiting.iter().filter(|it| own.is_none_or(|own| **it % 3 == own));
        selected.copied().min_by_key(|it| (u64::MAX - self.priority(*it), *it))
    }

    fn run(&mut self, line: &str) {
        self.lines.push(line.to_owned());
        self.host.run(line);
        for (id, tag, body, _) in std::mem::take(&mut self.host.fx.delivered) {
            let channel = self.host.fx.names[&id].clone();
            let number: u64 = body.parse().unwrap();
            assert_eq!(Some(number), self.next_for(&channel), "{channel}: {:?}", self.lines);
            self.waiting.retain(|other| *other != number);
            self.out.insert((channel, tag), number);
        }
    }

    fn publish(&mut self) {
        for _ in 0..=self.below(40) {
            let number = self.next;
            self.next += 1;
            self.waiting.push(number);
            let (priority, own) = (self.priority(number), number % 3);
            self.run(&format!(
                "a publish - q {number} persistent priority={priority} props=own:{own}"
            ));
        }
    }

    fn consume(&mut self) {
        for (name, own, credit) in CONSUMERS {
            self.run(&format!("{name} consume q it credit={credit} filter=own_=_{own}"));
        }
    }

    /// Settles something that is out.
    fn settle(&mut self, verb: &str) {
        let Some(at) = self.out.len().checked_sub(1).map(|last| self.below(last as u64 + 1)) else {
            return;
        };
        let ((channel, tag), number) = self.out.iter().nth(at as usize).unwrap();
        let (channel, tag, number) = (channel.clone(), *tag, *number);
        self.out.remove(&(channel.clone(), tag));
        if verb != "accept" {
            self.waiting.push(number);
        }
        self.run(&format!("{channel} {verb} {tag}"));
    }

    fn restart(&mut self) {
        if !self.is_durable {
            return;
        }
        self.waiting.extend(std::mem::take(&mut self.out).into_values());
        let kind = ["restart", "restart clean", "restart killed"][self.below(3) as usize];
        self.run(kind);
        self.consume();
    }

    fn step(&mut self) {
        match self.below(40) {
            0..4 => self.publish(),
            4..22 => self.settle("accept"),
            22..29 => self.settle("requeue"),
            29..32 => self.run("e get q"),
            32 => self.run("snapshot"),
            33 => self.run("checkpoint"),
            34 => {
                let segment = self.below(4);
                self.run(&format!("relocate {segment}"));
            }
            35..37 => self.restart(),
            37 => {
                let (name, own, credit) = CONSUMERS[self.below(3) as usize];
                self.run(&format!("{name} cancel it"));
                self.run(&format!("{name} consume q it credit={credit} filter=own_=_{own}"));
            }
            _ => self.settle("accept"),
        }
    }

    /// All that is left comes to those who take everything.
    fn end(mut self) {
        for (name, ..) in CONSUMERS {
            self.run(&format!("{name} cancel it"));
        }
        while !self.out.is_empty() {
            self.settle("requeue");
        }
        self.run("e consume q all presettled");
        assert_eq!(self.waiting, [], "{:?}", self.lines);
        let queue = self.host.engine.list_queues().next().unwrap();
        assert_eq!(queue.ready, 0, "{:?}", self.lines);
    }
}

#[test]
fn consumers_with_filters_get_theirs_in_order_from_pages_and_over_restarts() {
    for seed in 0..16 {
        let mut run = Run::new(seed);
        for _ in 0..seed % 4 {
            run.publish();
        }
        run.consume();
        for _ in 0..80 {
            run.step();
        }
        run.end();
    }
}

/// What a consumer selects of a long queue is found without the queue's taking in what it passes.
#[test]
fn a_long_queue_is_looked_through_beside_its_memory() {
    let limits = Limits {
        queue_resident_bytes_max: 4_000,
        resident_bytes_max: 10_000,
        page_entries: 100,
        ..Limits::default()
    };
    for options in ["persistent", ""] {
        let mut host = TestHost::with(limits.clone());
        host.run("a queue q durable");
        host.fx.quiet = true;
        for number in 0..3_000 {
            let own = number % 100;
            host.run(&format!("a publish - q {number} {options} props=own:{own}"));
        }
        host.fx.delivered.clear();
        host.run("b consume q it filter=own_=_99");
        let found: Vec<u64> =
            host.fx.delivered.iter().map(|(_, _, body, _)| body.parse().unwrap()).collect();
        assert_eq!(found, (0..30).map(|it| it * 100 + 99).collect::<Vec<_>>());
        let queue = host.engine.list_queues().next().unwrap();
        assert_eq!((queue.ready, queue.unsettled), (2_970, 30));
        assert!(host.engine.resident() < 10_000, "{}", host.engine.resident());
        let lanes = host.engine.queues.iter().flat_map(|(_, queue)| queue.lanes.iter());
        assert!(lanes.map(|lane| lane.pages.len()).sum::<usize>() > 20, "pages stay pages");
    }
}

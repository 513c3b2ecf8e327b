//! Long queues whose pages are read back, cut anew and recovered, against plain lists.

use super::TestHost;
use crate::foundation::random::Random;
use crate::interface::limits::Limits;
use std::collections::VecDeque;

/// Pages of these sizes are tried.
const PAGE_ENTRIES: [usize; 4] = [1024, 2, 30, 200];

/// A queue with one list for each priority, of messages that all survive a restart.
struct Run {
    host: TestHost,
    random: Random,
    lists: Vec<VecDeque<u64>>,
    next: u64,
    /// A message was asked for and is being read.
    is_waiting: bool,
    /// What was done, for the message of a failure.
    lines: Vec<String>,
}

impl Run {
    fn new(seed: u64, priorities: usize) -> Run {
        let mut host = TestHost::with(Limits {
            queue_resident_bytes_max: 2_000,
            resident_bytes_max: 5_000,
            snapshot_at_once: 1 << (seed % 11),
            page_entries: PAGE_ENTRIES[seed as usize % PAGE_ENTRIES.len()],
            ..Limits::default()
        });
        host.fx.quiet = true;
        host.run(&format!("a queue q durable priorities={}", priorities - 1));
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Run {
            host,
            random: Random::new(key),
            lists: vec![VecDeque::new(); priorities],
            next: 0,
            is_waiting: false,
            lines: Vec::new(),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.random.next() >> 11) % bound
    }

    fn run(&mut self, line: &str) {
        self.lines.push(line.to_owned());
        self.host.run(line);
        for (_, _, body, _) in std::mem::take(&mut self.host.fx.delivered) {
            let expected = self.lists.iter_mut().rev().find_map(|list| list.pop_front());
            assert_eq!(body.parse().ok(), expected, "{:?}", self.lines);
            self.is_waiting = false;
        }
    }

    fn publish(&mut self, count: u64) {
        self.lines.push(format!("{count} messages"));
        self.publish_by("a", count);
        self.run("a passive q");
    }

    /// Publishes messages of which none is in the queue before all are.
    fn publish_together(&mut self, count: u64) {
        self.run("t transactions");
        self.lines.push(format!("{count} messages together"));
        self.publish_by("t", count);
        self.run("t commit");
    }

    fn publish_by(&mut self, channel: &str, count: u64) {
        for _ in 0..count {
            let priority = self.below(self.lists.len() as u64) as usize;
            let number = self.next;
            self.next += 1;
            self.lists[priority].push_back(number);
            let line = format!("{channel} publish - q {number} persistent priority={priority}");
            self.host.act_on(&line);
        }
    }

    fn take(&mut self, count: u64) {
        for _ in 0..count {
            if self.is_waiting || self.lists.iter().all(VecDeque::is_empty) {
                return;
            }
            self.is_waiting = true;
            self.run("b get q presettled");
        }
    }

    fn step(&mut self) {
        match self.below(22) {
            20..22 => {
                let count = self.below(50);
                self.publish_together(count);
            }
            0..4 => {
                let count = self.below(1_000);
                self.publish(count);
            }
            4..9 => {
                let count = self.below(600);
                self.take(count);
            }
            9..13 => self.run("load"),
            13..15 => self.run("loads hold"),
            15 => self.run("loads"),
            16 => {
                let how = ["snapshot", "checkpoint"][self.below(2) as usize];
                self.run(how);
            }
            17 => {
                let segment = self.below(1 + self.next / 16);
                self.run(&format!("relocate {segment}"));
            }
            _ => {
                self.is_waiting = false;
                self.run("restart");
            }
        }
    }

    /// All that is left comes in order, and nothing is referred to any more.
    fn end(mut self) {
        self.run("loads");
        self.is_waiting = false;
        self.run("restart");
        self.run("z consume q z presettled");
        assert!(self.lists.iter().all(VecDeque::is_empty), "{:?}", self.lines);
        assert!(self.host.fx.references.is_empty(), "{:?}", self.host.fx.references);
    }
}

#[test]
fn pages_that_were_read_back_and_cut_anew_are_recovered() {
    for seed in 0..12 {
        let mut run = Run::new(seed, if seed % 3 == 2 { 2 } else { 1 });
        for _ in 0..40 {
            run.step();
        }
        run.end();
    }
}

#[test]
fn any_beginning_of_the_records_is_recovered() {
    for seed in 20..23 {
        let mut run = Run::new(seed, 1);
        while run.host.fx.records.len() < 6_000 {
            match run.below(8) {
                0..2 => run.publish(300),
                2..4 => run.take(100),
                4 => run.run("loads"),
                5 => run.run("loads hold"),
                _ => run.run("load"),
            }
        }
        for _ in 0..8 {
            let lost = run.below(700);
            run.host.fx.quiet = true;
            run.host.run(&format!("restart lose={lost}"));
        }
    }
}

#[test]
fn pages_that_many_queues_fill_together_are_written_over_several_turns() {
    let (queues, at_once) = (100, 16);
    let mut host = TestHost::with(Limits {
        resident_bytes_max: 0,
        page_entries: 4,
        // A message stored in that many queues uses up the turn, which leaves no page to be
        // written.
        handed_at_once: 40 << 10,
        ..Limits::default()
    });
    host.run("a exchange x fanout");
    for queue in 0..queues {
        host.run(&format!("a queue q{queue}"));
        host.run(&format!("a bind x q{queue} k"));
    }
    let pages = |host: &TestHost| -> usize {
        let lanes = host.engine.queues.iter().flat_map(|(_, queue)| queue.lanes.iter());
        lanes.map(|lane| lane.pages.len()).sum()
    };
    for number in 0..4 {
        host.engine.begin_work_budget();
        host.act_on(&format!("a publish x k {number}"));
    }
    let mut written = vec![pages(&host)];
    while host.engine.has_work() {
        host.engine.dispatch(host.now, &mut host.fx);
        host.engine.check_invariants(&host.fx.references);
        written.push(pages(&host));
    }
    assert_eq!(written.last(), Some(&queues), "{written:?}");
    assert!(written.windows(2).all(|pair| pair[1] - pair[0] <= at_once), "{written:?}");
    assert!(written[0] <= at_once, "{written:?}");
    for queue in [0, queues / 2, queues - 1] {
        host.fx.delivered.clear();
        host.run(&format!("b consume q{queue} c{queue} presettled"));
        let bodies = host.fx.delivered.iter().map(|it| it.2.as_str());
        assert_eq!(bodies.collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    }
}

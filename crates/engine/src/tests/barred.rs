//! Messages that consumers return for others to take, and what consumers add to messages.

use super::{TestHost, check, check_in};
use crate::foundation::random::Random;
use crate::interface::limits::Limits;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn what_a_consumer_returns_for_others_does_not_come_back_to_it() {
    check(
        "a queue q
         > a queue q 0 0
         a consume q c granted
         > a consuming c
         b publish - q 1
         b publish - q 2
         b publish - q 3
         a grant c 1
         > a deliver c #1 1
         a release 1 elsewhere
         a grant c 9 drain
         > a deliver c #2 2
         > a deliver c #3 3
         > a drained c 3
         a release 3
         b consume q d granted
         > b consuming d
         b grant d 9 drain
         > b deliver d #1 1 redelivered
         > b deliver d #2 3 redelivered
         > b drained d 2
         // It is still not for the first.
         b release 1 to=2
         a grant c 9
         > a deliver c #4 3 redelivered
         a cancel c
         > a ok
         a consume q c granted
         > a consuming c
         a grant c 9
         > a deliver c #5 1 redelivered",
    );
}

#[test]
fn what_nobody_else_can_take_dies_if_the_queue_says_where() {
    check(
        "a queue dead
         > a queue dead 0 0
         a queue q dlx=- dlk=dead
         > a queue q 0 0
         a consume q c
         > a consuming c
         b consume q d
         > b consuming d
         a publish - q 1
         > a deliver c #1 1
         a requeue 1 elsewhere
         > b deliver d #1 1 redelivered count=1
         b release 1 elsewhere
         a get dead
         > a deliver  #2 1 died=Rejected:q:1
         > a got, 0 left
         a passive q
         > a queue q 0 2",
    );
}

#[test]
fn they_keep_their_place_and_wait_for_a_get_or_another_consumer() {
    check(
        "a queue q priorities=2
         > a queue q 0 0
         a consume q c granted
         > a consuming c
         b publish - q 1
         b publish - q 2 priority=1
         b publish - q 3
         b publish - q 4 priority=1
         a grant c 3
         > a deliver c #1 2
         > a deliver c #2 4
         > a deliver c #3 1
         a release 1 elsewhere
         a release 3 elsewhere
         a release 2
         b passive q
         > b queue q 4 1
         b get q
         > b deliver  #1 2 redelivered
         > b got, 3 left
         b consume q d granted
         > b consuming d
         b grant d 2
         > b deliver d #2 4 redelivered
         > b deliver d #3 1 redelivered
         b consume q look browse
         > b consuming look
         > b deliver look #4 3
         b get q
         > b deliver  #5 3
         > b got, 0 left",
    );
}

#[test]
fn they_expire_are_purged_and_make_room_as_others_do() {
    check(
        "a queue q length=2
         > a queue q 0 0
         a consume q c granted
         > a consuming c
         a grant c 2
         b publish - q 1 ttl=1000
         > a deliver c #1 1
         b publish - q 2
         > a deliver c #2 2
         a release 1 to=2 elsewhere
         b passive q
         > b queue q 2 1
         time 1000
         b passive q
         > b queue q 1 1
         b publish - q 3
         b publish - q 4
         b passive q
         > b queue q 2 1
         a grant c 3
         > a deliver c #3 4 dropped=1
         a release 3 elsewhere
         b purge q
         > b messages 2
         b publish - q 5
         a grant c 9 drain
         > a deliver c #4 5
         > a drained c 4",
    );
}

#[test]
fn they_are_read_back_and_are_for_everybody_after_a_restart() {
    let limits = Limits {
        queue_resident_bytes_max: 100,
        resident_bytes_max: 400,
        page_entries: 4,
        ..Limits::default()
    };
    check_in(
        TestHost::with(limits),
        "a queue q durable
         > a queue q 0 0
         a consume q c granted
         > a consuming c
         b publish - q 1 persistent
         b publish - q 2 persistent
         b publish - q 3 persistent
         b publish - q 4
         a grant c 4
         > a deliver c #1 1
         > a deliver c #2 2
         > a deliver c #3 3
         > a deliver c #4 4
         checkpoint
         a release 1 to=4 elsewhere
         b consume q d granted
         > b consuming d
         b grant d 1
         > b deliver d #1 1 redelivered
         b grant d 4 drain
         > b deliver d #2 2 redelivered
         > b deliver d #3 3 redelivered
         > b deliver d #4 4 redelivered
         > b drained d 4
         b release 1 to=4 elsewhere
         restart
         a consume q c
         > a consuming c
         > a deliver c #1 1 redelivered
         > a deliver c #2 2 redelivered
         > a deliver c #3 3 redelivered",
    );
}

#[test]
fn what_is_added_to_a_message_stays_with_it_until_it_is_gone() {
    check(
        "a queue dead durable
         > a queue dead 0 0
         a queue q durable limit=1 dlx=- dlk=dead
         > a queue q 0 0
         a consume q c
         > a consuming c
         a publish - q 1 persistent
         > a deliver c #1 1
         a release 1 changed=x
         > a deliver c #2 1 redelivered changed=x
         a requeue 2 changed=y
         > a deliver c #3 1 redelivered count=1 changed=xy
         restart
         a consume q c
         > a consuming c
         > a deliver c #1 1 redelivered count=1 changed=xy
         a release 1
         > a deliver c #2 1 redelivered count=1 changed=xy
         restart clean
         a consume q look browse
         > a consuming look
         > a deliver look #1 1 redelivered count=1 changed=xy
         a get q
         > a deliver  #2 1 redelivered count=1 changed=xy
         > a got, 0 left
         a requeue 2 changed=z
         restart
         a get dead
         > a deliver  #1 1 redelivered changed=xyz died=DeliveryLimit:q:1
         > a got, 0 left
         a release 1 changed=!
         a get dead
         > a deliver  #2 1 redelivered changed=xyz! died=DeliveryLimit:q:1
         > a got, 0 left
         a accept 2
         a publish - q 2 persistent
         a get q
         > a deliver  #3 2
         > a got, 0 left",
    );
}

#[test]
fn more_than_a_message_may_have_is_refused() {
    let mut host = TestHost::new();
    host.run("a queue q");
    host.run("a publish - q 1");
    host.run("a get q");
    let much = "x".repeat(crate::limits::ANNOTATION_BYTES_MAX + 1);
    assert_eq!(
        host.run(&format!("a release 1 changed={much}")),
        ["a refused LimitExceeded: annotations of 4097 bytes; the limit is 4096"]
    );
}

/// Consumers that settle at random, messages that are read back, snapshots, restarts.
struct Run {
    host: TestHost,
    random: Random,
    published: u64,
    /// Messages that nobody has accepted.
    live: BTreeSet<u64>,
    granted: BTreeMap<&'static str, u64>,
    /// Who has returned which message for others.
    had: BTreeSet<(String, u64)>,
    /// Whose, by which tag, which message.
    out: Vec<(String, u64, u64)>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let limits = Limits {
            queue_resident_bytes_max: 1_000,
            resident_bytes_max: 2_000,
            page_entries: 1 << (seed % 6),
            snapshot_at_once: 1 << (seed % 5),
            settles_at_once: 1 << (seed % 4),
            ..Limits::default()
        };
        let mut host = TestHost::with(limits);
        host.fx.quiet = true;
        host.run("a queue q durable");
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let (granted, had) = (BTreeMap::new(), BTreeSet::new());
        let (live, out, random) = (BTreeSet::new(), Vec::new(), Random::new(key));
        Run { host, random, published: 0, live, granted, had, out }
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.random.next() >> 11) % bound
    }

    fn step(&mut self) {
        let who = ["a", "b", "c"][self.below(3) as usize];
        match self.below(12) {
            0..4 => {
                self.published += 1;
                self.live.insert(self.published);
                self.host.run(&format!("d publish - q {} persistent", self.published));
            }
            4 => {
                self.host.run("checkpoint");
            }
            5 if self.below(8) == 0 => {
                let how = ["restart clean", "restart"][self.below(2) as usize];
                self.host.run(how);
                self.granted.clear();
                self.had.clear();
                self.out.clear();
            }
            6 if self.below(4) == 0 => {
                self.host.run(&format!("{who} close"));
                self.out.retain(|(whose, ..)| whose != who);
                self.had.retain(|(whose, _)| whose != who);
                self.granted.remove(who);
            }
            7..9 => {
                let more = self.below(4);
                if !self.granted.contains_key(who) {
                    self.host.run(&format!("{who} consume q {who} granted on-close=release"));
                }
                let up_to = self.granted.entry(who).or_default();
                *up_to += more;
                self.host.run(&format!("{who} grant {who} {up_to}"));
            }
            _ => self.settle(),
        }
        self.take();
    }

    fn settle(&mut self) {
        if self.out.is_empty() {
            return;
        }
        let index = self.below(self.out.len() as u64) as usize;
        let (whose, tag, number) = self.out.swap_remove(index);
        let how = ["accept", "release", "requeue"][self.below(3) as usize];
        let mut line = format!("{whose} {how} {tag}");
        if how == "accept" {
            self.live.remove(&number);
        } else if self.below(3) > 0 {
            self.had.insert((whose, number));
            line.push_str(" elsewhere");
        }
        self.host.run(&line);
    }

    fn take(&mut self) {
        for (channel, tag, body, _) in std::mem::take(&mut self.host.fx.delivered) {
            let (whose, number) = (self.host.fx.names[&channel].clone(), body.parse().unwrap());
            assert!(!self.had.contains(&(whose.clone(), number)), "{number} to {whose} again");
            assert!(self.live.contains(&number), "{number} is gone");
            self.out.push((whose, tag, number));
        }
    }
}

#[test]
fn at_random_none_comes_back_to_one_that_returned_it_for_others_and_none_is_lost() {
    for seed in 0..12 {
        let mut run = Run::new(seed);
        (0..300).for_each(|_| run.step());
        run.host.run("restart");
        run.host.run("e consume q e presettled");
        let came = run.host.fx.delivered.iter().map(|(_, _, body, _)| body.parse::<u64>().unwrap());
        assert!(came.eq(run.live.iter().copied()), "all that is left, in order");
    }
}

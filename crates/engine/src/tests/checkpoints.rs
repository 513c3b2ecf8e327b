//! Snapshots written over many turns, whatever happens between these. [`TestHost`] compares each with one
//! that was taken as a whole when it was begun, and the references with what refers.

use super::recovery::{fill, small};
use super::{TestHost, check_in};
use crate::foundation::random::Random;
use crate::interface::limits::Limits;
use std::collections::BTreeSet;

/// Runs `before`, begins a snapshot in small parts, runs `after` in its middle, and restarts.
fn check(before: &str, after: &str, at_the_end: &str) {
    for snapshot_at_once in [1, 2, 3, 5, 1000] {
        for settles_at_once in [1, 1000] {
            for turns in 0..12 {
                let limits = Limits { snapshot_at_once, settles_at_once, ..Limits::default() };
                let wait = "a passive none\n".repeat(turns);
                let mut host = TestHost::with(limits);
                for line in format!("{before}\ncheckpoint\n{wait}{after}\nrestart").lines() {
                    host.run(line.trim());
                }
                check_in(host, at_the_end);
            }
        }
    }
}

const THREE_OUT: &str = "a queue q durable
    a queue r durable
    a publish - q 1 persistent
    a publish - q 2 persistent
    a publish - q 3
    a publish - q 4 persistent
    a publish - r 5 persistent
    a publish - q 6 persistent
    b consume q c credit=4
    c consume r c";

#[test]
fn what_is_settled_meanwhile_is_gone() {
    check(
        THREE_OUT,
        "b accept 2
         b requeue 1
         c accept 1
         a publish - q 7 persistent",
        "a passive r
         > a queue r 0 0
         z consume q c presettled
         > z consuming c
         > z deliver c #1 1 redelivered count=1
         > z deliver c #2 4 redelivered
         > z deliver c #3 6 redelivered
         > z deliver c #4 7 redelivered",
    );
}

#[test]
fn what_comes_back_meanwhile_is_there() {
    for back in ["b close", "b disconnect", "b requeue 4 multiple"] {
        check(
            THREE_OUT,
            back,
            "a passive r
             > a queue r 1 0
             a passive q
             > a queue q 4 0",
        );
    }
}

#[test]
fn what_is_deleted_or_purged_meanwhile_is_gone() {
    let gone = "a passive q
                > a refused NotFound: no queue 'q' in vhost '/'
                a passive r
                > a queue r 1 0";
    check(THREE_OUT, "a delete q", gone);
    check(THREE_OUT, "a delete q\nb accept 4 multiple", gone);
    check(
        THREE_OUT,
        "a purge q",
        "a passive q
         > a queue q 3 0",
    );
}

/// References of unsettled messages of a deleted queue end with their channel.
#[test]
fn what_was_out_of_a_queue_deleted_before_leaves_nothing_behind() {
    for begin in ["snapshot", "checkpoint"] {
        let mut host = TestHost::new();
        for line in THREE_OUT.lines().map(str::trim).chain(["a delete q", begin, "restart"]) {
            host.run(line);
        }
        host.run("a purge r");
        assert!(host.fx.references.is_empty(), "{begin}: {:?}", host.fx.references);
    }
}

#[test]
fn a_virtual_host_may_go_meanwhile_with_what_it_holds_back() {
    for snapshot_at_once in [1, 2, 1000] {
        for turns in 0..6 {
            let mut host = TestHost::with(Limits { snapshot_at_once, ..Limits::default() });
            host.run("a create-vhost v");
            let channel = crate::ChannelId { connection: crate::ConnectionId(7), number: 1 };
            host.enter_vhost("h", channel, "v");
            for (name, key) in [("a", "here"), ("h", "there")] {
                host.run(&format!("{name} exchange x direct durable delaying"));
                host.run(&format!("{name} queue q durable"));
                host.run(&format!("{name} bind x q {key}"));
                host.run(&format!("{name} publish x {key} 1 persistent delay=100"));
                host.run(&format!("{name} publish x {key} 2 persistent delay=200"));
            }
            host.run("checkpoint");
            for _ in 0..turns {
                host.run("a passive q");
            }
            host.run("time 100");
            host.run("h disconnect");
            host.run("a delete-vhost v");
            host.run("restart");
            host.run("time 200");
            assert_eq!(host.run("a passive q"), ["a queue q 2 0"]);
            assert_eq!(host.run("a purge q"), ["a messages 2"]);
            assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
        }
    }
}

/// However many messages there are, no turn looks at more of them than the limit says.
#[test]
fn a_turn_looks_at_so_many_messages_and_no_more() {
    for (out, ready, delayed) in [(5_000, 0, 0), (0, 5_000, 0), (0, 0, 5_000), (3_000, 2_000, 50)] {
        let snapshot_at_once = 100;
        let mut host = TestHost::with(Limits { snapshot_at_once, ..Limits::default() });
        host.fx.quiet = true;
        for line in ["a queue q durable", "a exchange x direct durable delaying", "a bind x q k"] {
            host.run(line);
        }
        fill(&mut host, 0, out, "persistent");
        host.run(&format!("b consume q c credit={}", out.max(1)));
        let delivered = host.fx.delivered.len();
        assert_eq!(delivered, out);
        if out == 0 {
            host.run("b close");
        }
        fill(&mut host, out, out + ready, "persistent");
        for _ in 0..delayed {
            host.act_on("a publish x k later persistent delay=1000");
        }
        let empty = header_bytes(&mut host);
        host.engine.begin_snapshot();
        let mut turns = 0;
        let mut written = host.engine.written_of_snapshot();
        assert!(
            written <= empty,
            "what comes first has messages: {written} bytes, {empty} without"
        );
        let pieces = loop {
            turns += 1;
            if let Some(pieces) = host.engine.take_snapshot() {
                break pieces;
            }
            let (before, now) = (written, host.engine.written_of_snapshot());
            assert!(now - before <= snapshot_at_once * 64, "{} bytes in a turn", now - before);
            written = now;
        };
        let all = out + ready + delayed;
        assert!((all / snapshot_at_once..all / snapshot_at_once + 8).contains(&turns), "{turns}");
        assert!(pieces[1..].iter().all(|piece| piece.capacity() <= 128 << 10), "a piece grew");
    }
}

/// Bytes of a snapshot without any message.
fn header_bytes(host: &mut TestHost) -> usize {
    let mut bytes = Vec::new();
    host.engine.write_snapshot(&mut bytes, true);
    bytes.len()
}

#[test]
fn records_may_move_meanwhile() {
    for snapshot_at_once in [1, 30] {
        let mut host = small_with(snapshot_at_once);
        host.run("a exchange x direct durable delaying");
        host.run("a queue q durable");
        host.run("a bind x q later");
        for _ in 0..20 {
            host.act_on("a publish x later message persistent delay=100000");
        }
        host.fx.quiet = true;
        host.run("b consume q c credit=50");
        fill(&mut host, 0, 2_000, "persistent");
        for round in 0..10 {
            host.run("checkpoint");
            for segment in round * 15..(round + 1) * 15 {
                host.run(&format!("relocate {segment}"));
            }
            if round % 5 == 4 {
                host.run("restart");
                host.run("b consume q c credit=50");
            }
        }
        host.run("restart");
        host.run("a purge q");
        assert_eq!(host.fx.references.values().sum::<i64>(), 20);
    }
}

#[test]
fn messages_may_leave_for_a_page_meanwhile() {
    for snapshot_at_once in [1, 10, 100, 1000] {
        let mut host = small_with(snapshot_at_once);
        host.run("a queue q durable");
        fill(&mut host, 0, 900, "persistent");
        host.run("checkpoint");
        fill(&mut host, 900, 2_500, "persistent");
        host.run("restart");
        assert_eq!(host.run("a purge q"), ["a messages 2500"]);
        assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
    }
}

/// Has a message of queue `q` become a dead letter of `dead`, which it cannot be before it is read.
pub(super) fn let_a_letter_die(host: &mut TestHost) {
    host.run("a queue dead durable");
    host.run("a queue q durable dlx=- dlk=dead limit=0");
    for other in ["r", "s"] {
        host.run(&format!("a queue {other}"));
        for number in 0..20 {
            host.act_on(&format!("a publish - {other} message-{number}"));
        }
    }
    host.run("a publish - q letter persistent");
    host.run("b consume q c credit=1");
    host.run("loads hold");
    host.run("b requeue 1");
    assert_eq!(host.fx.loads.len(), 1, "it has to be read before it is a dead letter");
}

/// A message that has to be read to become a dead letter: it does, cannot be read and returns, or its
/// queue is deleted.
#[test]
fn messages_may_die_meanwhile() {
    for lines in [&["load"][..], &["damage letter", "load"], &["a delete q", "load"], &[]] {
        for turns in 0..12 {
            let mut host = small_with(1);
            let_a_letter_die(&mut host);
            host.run("checkpoint");
            for _ in 0..turns {
                host.run("a passive dead");
            }
            for line in lines {
                host.run(line);
            }
            host.run("repair");
            host.run("restart");
            host.run("loads");
            let counts = [host.run("a purge q"), host.run("a purge dead")].concat();
            let messages = counts.iter().filter(|line| *line == "a messages 1").count();
            assert_eq!(messages, usize::from(!lines.contains(&"a delete q")), "{lines:?}");
            assert!(host.fx.references.is_empty(), "{lines:?} {:?}", host.fx.references);
        }
    }
}

#[test]
fn many_settles_may_be_under_way() {
    for snapshot_at_once in [1, 2, 3, 7, 1000] {
        for settles_at_once in [1, 2, 5, 9] {
            let limits = Limits { snapshot_at_once, settles_at_once, ..Limits::default() };
            let mut host = TestHost::with(limits);
            host.fx.quiet = true;
            host.run("a queue q durable");
            fill(&mut host, 0, 40, "persistent");
            for name in ["b", "c", "d", "e"] {
                host.run(&format!("{name} consume q {name} credit=10"));
            }
            host.act_on("b close");
            host.act_on("c accept 10 multiple");
            host.act_on("d close");
            host.begin_snapshot();
            host.act_on("e close");
            while host.engine.is_taking_snapshot() {
                host.take_part();
                host.engine.dispatch(host.now, &mut host.fx);
                host.engine.check_invariants(&host.fx.references);
            }
            host.settle_down();
            host.run("restart");
            assert_eq!(host.run("a purge q"), ["a messages 30"]);
            assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
        }
    }
}

#[test]
fn delayed_messages_that_cannot_be_read_are_kept() {
    let mut host = small_with(1);
    for line in ["a queue q durable", "a exchange x direct durable delaying", "a bind x q k"] {
        host.run(line);
    }
    for number in 0..10 {
        let body = format!("{number}").repeat(1_500);
        host.act_on(&format!("a publish x k {body}-late persistent delay={}", 100 + number));
    }
    host.run("damage late");
    host.run("time 105");
    assert!(host.engine.counters().unreadable > 0);
    host.run("checkpoint");
    host.run("time 2");
    host.run("repair");
    host.run("restart");
    host.run("time 100");
    assert_eq!(host.run("a purge q"), ["a messages 10"]);
    assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
}

fn small_with(snapshot_at_once: usize) -> TestHost {
    let mut host = small();
    host.set_snapshot_at_once(snapshot_at_once);
    host
}

/// Anything that may happen to messages, in any order.
struct Run {
    host: TestHost,
    random: Random,
    consumers: BTreeSet<&'static str>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut random = Random::new(key);
        let host = TestHost::with(Limits {
            queue_resident_bytes_max: 3_000,
            resident_bytes_max: 6_000,
            settles_at_once: 20 + (random.next() % 40) as usize,
            snapshot_at_once: 1 << (random.next() % 11),
            given_back_at_once: 1 + (random.next() % 100) as usize,
            loaded_at_once: 1 + (random.next() % 10) as usize,
            ..Limits::default()
        });
        let mut run = Run { host, random, consumers: BTreeSet::new() };
        run.host.fx.quiet = true;
        run.host.fx.ignores_groups = true;
        run.declare();
        run
    }

    fn declare(&mut self) {
        for line in [
            "a exchange x direct durable delaying",
            "a queue dead durable length=300",
            "a queue q durable dlx=- dlk=dead limit=3",
            "a queue r durable priorities=2 ttl=5000 dlx=- dlk=dead",
            "a bind x q q",
            "a bind x r r",
        ] {
            self.host.run(line);
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.random.next() >> 11) % bound
    }

    fn one_of<T: Copy>(&mut self, these: &[T]) -> T {
        these[self.below(these.len() as u64) as usize]
    }

    fn publish(&mut self) {
        let most = self.one_of(&[5, 50, 50, 50, 50, 50, 50, 1_300]);
        let queue = self.one_of(&["q", "r"]);
        let delay = self.one_of(&["", "", "", "delay=50", "delay=5000"]);
        for _ in 0..self.below(most) {
            let persistent = self.one_of(&["persistent", "persistent", ""]);
            let exchange = if delay.is_empty() { "-" } else { "x" };
            let priority = self.below(3);
            self.host.act_on(&format!(
                "a publish {exchange} {queue} message {persistent} priority={priority} {delay}"
            ));
        }
        self.host.run("a passive q");
    }

    fn settle(&mut self) {
        let count = self.host.fx.delivered.len() as u64;
        if count == 0 {
            return;
        }
        let index = self.below(count) as usize;
        let (channel, tag, _, _) = self.host.fx.delivered.swap_remove(index);
        let name = self.host.fx.names[&channel].clone();
        let outcome = self.one_of(&["accept", "accept", "requeue", "discard"]);
        let multiple = self.one_of(&["", "", "", "multiple"]);
        // It may be settled, or its channel be gone, already.
        self.host.run(&format!("{name} {outcome} {tag} {multiple}"));
    }

    fn consume(&mut self) {
        let name = self.one_of(&["b", "c", "d"]);
        if self.consumers.remove(name) {
            let how = self.one_of(&["close", "disconnect"]);
            self.host.run(&format!("{name} {how}"));
        } else {
            let (queue, credit) = (self.one_of(&["q", "r", "dead"]), 1 + self.below(150));
            self.host.run(&format!("{name} consume {queue} {name} credit={credit}"));
            self.consumers.insert(name);
        }
    }

    fn step(&mut self) {
        match self.below(100) {
            0..25 => self.publish(),
            25..60 => self.settle(),
            60..72 => self.consume(),
            72..75 => {
                let queue = self.one_of(&["q", "r", "dead"]);
                self.host.run(&format!("a purge {queue}"));
            }
            75..77 => {
                let queue = self.one_of(&["q", "r", "dead"]);
                self.host.run(&format!("a delete {queue}"));
                self.declare();
            }
            77..81 => {
                let segment = self.below(2 + self.host.fx.records.len() as u64 / 16);
                self.host.run(&format!("relocate {segment}"));
            }
            81..84 => drop(self.host.run("loads hold")),
            84..87 => drop(self.host.run("loads")),
            87..90 => {
                let millis = self.below(2_000);
                self.host.run(&format!("time {millis}"));
            }
            90..96 => drop(self.host.run("checkpoint")),
            _ => {
                let lost = self.one_of(&[0, 0, 3, 1000]);
                let early = self.one_of(&["", "early"]);
                self.host.run(&format!("restart {early} lose={lost}"));
                self.host.fx.delivered.clear();
                self.consumers.clear();
            }
        }
    }
}

#[test]
fn whatever_happens_meanwhile_a_snapshot_is_of_its_beginning() {
    for seed in 0..4 {
        let mut run = Run::new(seed);
        for _ in 0..100 {
            run.step();
        }
        for line in ["loads", "restart", "time 10000", "a purge q", "a purge r", "a purge dead"] {
            run.host.run(line);
        }
        assert!(run.host.fx.references.is_empty(), "{seed}: {:?}", run.host.fx.references);
    }
}

/// Settles of several channels are carried out in turn, whichever channel began first: a snapshot that is
/// taken meanwhile has all that they have not come to.
#[test]
fn settles_that_give_way_to_others_are_in_it() {
    let limits = Limits { settles_at_once: 256, snapshot_at_once: 100, ..Limits::default() };
    let mut host = TestHost::with(limits);
    host.fx.quiet = true;
    host.run("a queue q durable");
    for number in 0..2_000 {
        host.act_on(&format!("a publish - q {number} persistent"));
    }
    host.settle_down();
    host.run("b consume q t credit=1000");
    host.run("c consume q t credit=1000");
    host.act_on("b requeue 1000 multiple");
    host.act_on("c requeue 1000 multiple");
    host.engine.dispatch(host.now, &mut host.fx);
    host.begin_snapshot();
    while host.engine.is_taking_snapshot() {
        host.take_part();
    }
    host.fx.quiet = false;
    host.run("restart");
    assert_eq!(host.run("a passive q"), ["a queue q 2000 0"]);
}

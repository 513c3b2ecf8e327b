//! Snapshots written over many turns, whatever happens between these. [`World`] compares each with one
//! that was taken as a whole when it was begun, and the references with what refers.

use super::recovery::{fill, small};
use super::{World, check_in};
use crate::foundation::random::Random;
use crate::interface::limits::Limits;
use std::collections::BTreeSet;

/// Runs `before`, begins a snapshot of which so many messages are looked at in a turn, runs `after` in
/// its middle, and restarts.
fn check(before: &str, after: &str, at_the_end: &str) {
    for snapshot_at_once in [1, 2, 3, 4, 5, 7, 10, 1000] {
        for settles_at_once in [1, 1000] {
            for turns in 0..12 {
                let limits = Limits { snapshot_at_once, settles_at_once, ..Limits::default() };
                let wait = "a passive none\n".repeat(turns);
                let mut world = World::with(limits);
                for line in format!("{before}\ncheckpoint\n{wait}{after}\nrestart").lines() {
                    world.run(line.trim());
                }
                check_in(world, at_the_end);
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
    b subscribe q c credit=4
    c subscribe r c";

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
         z subscribe q c presettled
         > z subscribed c
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

/// References of what is out of a queue that is gone end with whoever had it.
#[test]
fn what_was_out_of_a_queue_deleted_before_leaves_nothing_behind() {
    for begin in ["snapshot", "checkpoint"] {
        let mut world = World::new();
        for line in THREE_OUT.lines().map(str::trim).chain(["a delete q", begin, "restart"]) {
            world.run(line);
        }
        world.run("a purge r");
        assert!(world.fx.references.is_empty(), "{begin}: {:?}", world.fx.references);
    }
}

#[test]
fn a_virtual_host_may_go_meanwhile_with_what_it_holds_back() {
    for snapshot_at_once in [1, 2, 1000] {
        for turns in 0..6 {
            let mut world = World::with(Limits { snapshot_at_once, ..Limits::default() });
            world.run("a create-vhost v");
            let session = crate::SessionId { connection: crate::ConnectionId(7), number: 1 };
            world.enter_vhost("h", session, "v");
            for (name, key) in [("a", "here"), ("h", "there")] {
                world.run(&format!("{name} exchange x direct durable delaying"));
                world.run(&format!("{name} queue q durable"));
                world.run(&format!("{name} bind x q {key}"));
                world.run(&format!("{name} publish x {key} 1 persistent delay=100"));
                world.run(&format!("{name} publish x {key} 2 persistent delay=200"));
            }
            world.run("checkpoint");
            for _ in 0..turns {
                world.run("a passive q");
            }
            world.run("time 100");
            world.run("h disconnect");
            world.run("a delete-vhost v");
            world.run("restart");
            world.run("time 200");
            assert_eq!(world.run("a passive q"), ["a queue q 2 0"]);
            assert_eq!(world.run("a purge q"), ["a messages 2"]);
            assert!(world.fx.references.is_empty(), "{:?}", world.fx.references);
        }
    }
}

/// However many messages there are, no turn looks at more of them than the limit says.
#[test]
fn a_turn_looks_at_so_many_messages_and_no_more() {
    for (out, ready, delayed) in [(5_000, 0, 0), (0, 5_000, 0), (0, 0, 5_000), (3_000, 2_000, 50)] {
        let snapshot_at_once = 100;
        let mut world = World::with(Limits { snapshot_at_once, ..Limits::default() });
        world.fx.quiet = true;
        for line in ["a queue q durable", "a exchange x direct durable delaying", "a bind x q k"] {
            world.run(line);
        }
        fill(&mut world, 0, out, "persistent");
        world.run(&format!("b subscribe q c credit={}", out.max(1)));
        let delivered = world.fx.delivered.len();
        assert_eq!(delivered, out);
        if out == 0 {
            world.run("b close");
        }
        fill(&mut world, out, out + ready, "persistent");
        for _ in 0..delayed {
            world.act_on("a publish x k later persistent delay=1000");
        }
        let empty = header_bytes(&mut world);
        world.engine.begin_snapshot();
        let mut turns = 0;
        let mut written = world.engine.written_of_snapshot();
        assert!(
            written <= empty,
            "what comes first has messages: {written} bytes, {empty} without"
        );
        let pieces = loop {
            turns += 1;
            if let Some(pieces) = world.engine.take_snapshot() {
                break pieces;
            }
            let (before, now) = (written, world.engine.written_of_snapshot());
            assert!(now - before <= snapshot_at_once * 64, "{} bytes in a turn", now - before);
            written = now;
        };
        let all = out + ready + delayed;
        assert!((all / snapshot_at_once..all / snapshot_at_once + 8).contains(&turns), "{turns}");
        assert!(pieces[1..].iter().all(|piece| piece.capacity() <= 128 << 10), "a piece grew");
    }
}

/// Bytes of a snapshot without any message.
fn header_bytes(world: &mut World) -> usize {
    let mut bytes = Vec::new();
    world.engine.write_snapshot(&mut bytes, true);
    bytes.len()
}

#[test]
fn records_may_move_meanwhile() {
    for snapshot_at_once in [1, 30] {
        let mut world = small_with(snapshot_at_once);
        world.run("a exchange x direct durable delaying");
        world.run("a queue q durable");
        world.run("a bind x q later");
        for _ in 0..20 {
            world.act_on("a publish x later message persistent delay=100000");
        }
        world.fx.quiet = true;
        world.run("b subscribe q c credit=50");
        fill(&mut world, 0, 4_000, "persistent");
        for round in 0..20 {
            world.run("checkpoint");
            for segment in round * 15..(round + 1) * 15 {
                world.run(&format!("relocate {segment}"));
            }
            if round % 5 == 4 {
                world.run("restart");
                world.run("b subscribe q c credit=50");
            }
        }
        world.run("restart");
        world.run("a purge q");
        assert_eq!(world.fx.references.values().sum::<i64>(), 20);
    }
}

#[test]
fn messages_may_leave_for_a_page_meanwhile() {
    for snapshot_at_once in [1, 10, 100, 1000] {
        let mut world = small_with(snapshot_at_once);
        world.run("a queue q durable");
        fill(&mut world, 0, 900, "persistent");
        world.run("checkpoint");
        fill(&mut world, 900, 2_500, "persistent");
        world.run("restart");
        assert_eq!(world.run("a purge q"), ["a messages 2500"]);
        assert!(world.fx.references.is_empty(), "{:?}", world.fx.references);
    }
}

/// Has a message of queue `q` become a dead letter of `dead`, which it cannot be before it is read.
pub(super) fn let_a_letter_die(world: &mut World) {
    world.run("a queue dead durable");
    world.run("a queue q durable dlx=- dlk=dead limit=0");
    for other in ["r", "s"] {
        world.run(&format!("a queue {other}"));
        for number in 0..20 {
            world.act_on(&format!("a publish - {other} message-{number}"));
        }
    }
    world.run("a publish - q letter persistent");
    world.run("b subscribe q c credit=1");
    world.run("loads hold");
    world.run("b requeue 1");
    assert_eq!(world.fx.loads.len(), 1, "it has to be read before it is a dead letter");
}

/// A message that has to be read to become a dead letter: it does, cannot be read and returns, or its
/// queue is deleted.
#[test]
fn messages_may_die_meanwhile() {
    for lines in [&["load"][..], &["damage letter", "load"], &["a delete q", "load"], &[]] {
        for turns in 0..12 {
            let mut world = small_with(1);
            let_a_letter_die(&mut world);
            world.run("checkpoint");
            for _ in 0..turns {
                world.run("a passive dead");
            }
            for line in lines {
                world.run(line);
            }
            world.run("repair");
            world.run("restart");
            world.run("loads");
            let counts = [world.run("a purge q"), world.run("a purge dead")].concat();
            let messages = counts.iter().filter(|line| *line == "a messages 1").count();
            assert_eq!(messages, usize::from(!lines.contains(&"a delete q")), "{lines:?}");
            assert!(world.fx.references.is_empty(), "{lines:?} {:?}", world.fx.references);
        }
    }
}

#[test]
fn many_settles_may_be_under_way() {
    for snapshot_at_once in [1, 2, 3, 7, 1000] {
        for settles_at_once in [1, 2, 5, 9] {
            let limits = Limits { snapshot_at_once, settles_at_once, ..Limits::default() };
            let mut world = World::with(limits);
            world.fx.quiet = true;
            world.run("a queue q durable");
            fill(&mut world, 0, 40, "persistent");
            for name in ["b", "c", "d", "e"] {
                world.run(&format!("{name} subscribe q {name} credit=10"));
            }
            world.act_on("b close");
            world.act_on("c accept 10 multiple");
            world.act_on("d close");
            world.begin_snapshot();
            world.act_on("e close");
            while world.engine.is_taking_snapshot() {
                world.take_part();
                world.engine.dispatch(world.now, &mut world.fx);
                world.engine.check_invariants(&world.fx.references);
            }
            world.settle_down();
            world.run("restart");
            assert_eq!(world.run("a purge q"), ["a messages 30"]);
            assert!(world.fx.references.is_empty(), "{:?}", world.fx.references);
        }
    }
}

#[test]
fn delayed_messages_that_cannot_be_read_are_kept() {
    let mut world = small_with(1);
    for line in ["a queue q durable", "a exchange x direct durable delaying", "a bind x q k"] {
        world.run(line);
    }
    for number in 0..10 {
        let body = format!("{number}").repeat(1_500);
        world.act_on(&format!("a publish x k {body}-late persistent delay={}", 100 + number));
    }
    world.run("damage late");
    world.run("time 105");
    assert!(world.engine.counters().unreadable > 0);
    world.run("checkpoint");
    world.run("time 2");
    world.run("repair");
    world.run("restart");
    world.run("time 100");
    assert_eq!(world.run("a purge q"), ["a messages 10"]);
    assert!(world.fx.references.is_empty(), "{:?}", world.fx.references);
}

fn small_with(snapshot_at_once: usize) -> World {
    let mut world = small();
    world.set_snapshot_at_once(snapshot_at_once);
    world
}

/// Anything that may happen to messages, in any order.
struct Run {
    world: World,
    random: Random,
    consumers: BTreeSet<&'static str>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut random = Random::new(key);
        let world = World::with(Limits {
            queue_resident_bytes_max: 3_000,
            resident_bytes_max: 6_000,
            settles_at_once: 20 + (random.next() % 40) as usize,
            snapshot_at_once: 1 << (random.next() % 11),
            given_back_at_once: 1 + (random.next() % 100) as usize,
            loaded_at_once: 1 + (random.next() % 10) as usize,
            ..Limits::default()
        });
        let mut run = Run { world, random, consumers: BTreeSet::new() };
        run.world.fx.quiet = true;
        run.world.fx.ignores_groups = true;
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
            self.world.run(line);
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
            self.world.act_on(&format!(
                "a publish {exchange} {queue} message {persistent} priority={priority} {delay}"
            ));
        }
        self.world.run("a passive q");
    }

    fn settle(&mut self) {
        let count = self.world.fx.delivered.len() as u64;
        if count == 0 {
            return;
        }
        let index = self.below(count) as usize;
        let (session, tag, _, _) = self.world.fx.delivered.swap_remove(index);
        let name = self.world.fx.names[&session].clone();
        let outcome = self.one_of(&["accept", "accept", "requeue", "discard"]);
        let multiple = self.one_of(&["", "", "", "multiple"]);
        // It may be settled, or its session be gone, already.
        self.world.run(&format!("{name} {outcome} {tag} {multiple}"));
    }

    fn consume(&mut self) {
        let name = self.one_of(&["b", "c", "d"]);
        if self.consumers.remove(name) {
            let how = self.one_of(&["close", "disconnect"]);
            self.world.run(&format!("{name} {how}"));
        } else {
            let (queue, credit) = (self.one_of(&["q", "r", "dead"]), 1 + self.below(150));
            self.world.run(&format!("{name} subscribe {queue} {name} credit={credit}"));
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
                self.world.run(&format!("a purge {queue}"));
            }
            75..77 => {
                let queue = self.one_of(&["q", "r", "dead"]);
                self.world.run(&format!("a delete {queue}"));
                self.declare();
            }
            77..81 => {
                let segment = self.below(2 + self.world.fx.records.len() as u64 / 16);
                self.world.run(&format!("relocate {segment}"));
            }
            81..84 => drop(self.world.run("loads hold")),
            84..87 => drop(self.world.run("loads")),
            87..90 => {
                let millis = self.below(2_000);
                self.world.run(&format!("time {millis}"));
            }
            90..96 => drop(self.world.run("checkpoint")),
            _ => {
                let lost = self.one_of(&[0, 0, 3, 1000]);
                let early = self.one_of(&["", "early"]);
                self.world.run(&format!("restart {early} lose={lost}"));
                self.world.fx.delivered.clear();
                self.consumers.clear();
            }
        }
    }
}

#[test]
fn whatever_happens_meanwhile_a_snapshot_is_of_its_beginning() {
    for seed in 0..6 {
        let mut run = Run::new(seed);
        for _ in 0..120 {
            run.step();
        }
        for line in ["loads", "restart", "time 10000", "a purge q", "a purge r", "a purge dead"] {
            run.world.run(line);
        }
        assert!(run.world.fx.references.is_empty(), "{seed}: {:?}", run.world.fx.references);
    }
}

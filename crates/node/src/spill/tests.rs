//! The log by itself: slow consumers as letters, messages as numbers, a disk in memory.

mod bodies;
mod expiry;
mod shards;

use super::record::tests::delivery;
use super::*;
use crate::tests::draw_from;
use angarium_engine::{Annotations, DirectMessage, MessageView};
use angarium_journal::{Fault, FaultyStorage, Storage};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// The log, its disk and its slow consumers.
struct TestHost {
    spill: Spill,
    store: Rc<RefCell<SpillStore>>,
    disk: Rc<FaultyStorage>,
    jobs: VecDeque<SpillJob>,
    slow_consumers: BTreeMap<char, u32>,
    emission: u64,
    missed: BTreeMap<char, u64>,
    /// How long messages live.
    ttl: Option<Duration>,
}

impl TestHost {
    fn new(bytes_max: u64) -> TestHost {
        TestHost::of(&SpillOptions { bytes_max, ..SpillOptions::default() })
    }

    fn of(options: &SpillOptions) -> TestHost {
        TestHost::shards(options, 1).remove(0)
    }

    /// The logs of `shards` shards with a common store and disk.
    fn shards(options: &SpillOptions, shards: usize) -> Vec<TestHost> {
        let store = Rc::new(RefCell::new(SpillStore::new(options)));
        let disk = Rc::new(FaultyStorage::new(1));
        let effects = |shard| TestHost {
            spill: Spill::new(options.clone(), ShardId(shard as u8), shards),
            store: Rc::clone(&store),
            disk: Rc::clone(&disk),
            jobs: VecDeque::new(),
            slow_consumers: BTreeMap::new(),
            emission: 0,
            missed: BTreeMap::new(),
            ttl: None,
        };
        (0..shards).map(effects).collect()
    }

    /// Stores a message of `bytes` for slow_consumers; says who of them it was taken for.
    fn store(&mut self, slow_consumers: &str, bytes: usize) -> String {
        self.emission += 1;
        let (key, body) = (self.emission.to_string(), Bytes::from(vec![7; bytes]));
        let mut taken = String::new();
        for name in slow_consumers.chars() {
            let channel = ChannelId { connection: ConnectionId(name.into()), number: 0 };
            let message = delivery(&key, &body);
            let shared = MessageView { shared: Some(&body), ttl: self.ttl, ..message.message };
            let message =
                DirectMessage { channel, emission: self.emission, message: shared, ..message };
            let known = self.slow_consumers.get(&name).copied();
            if let Some(number) = self.spill.store(known, &message) {
                self.slow_consumers.insert(name, number);
                taken.push(name);
            }
        }
        taken
    }

    /// Carries out what there is to do for the disk.
    fn work(&mut self) {
        loop {
            self.jobs.extend(std::iter::from_fn(|| self.spill.next_job()));
            if !self.do_next() {
                break;
            }
        }
        for (channel, _, count) in std::mem::take(&mut self.spill.lost) {
            let name = char::from_u32(channel.connection.0).unwrap();
            *self.missed.entry(name).or_default() += count.messages;
        }
    }

    /// Carries out the oldest job, if there is one.
    fn do_next(&mut self) -> bool {
        let Some(job) = self.jobs.pop_front() else { return false };
        self.spill.done(self.store.borrow_mut().run(job, &*self.disk));
        true
    }

    /// What a slow consumer reads, at most `most`, without any work of the disk; `~` where it has to
    /// wait, `-` where it rests, `.` where it has caught up and is none any more.
    fn read(&mut self, name: char, most: usize) -> (Vec<u64>, char) {
        let number = self.slow_consumers[&name];
        let mut read = Vec::new();
        while read.len() < most {
            match self.spill.next(number) {
                Ok(delivery) => {
                    assert_eq!(delivery.channel.connection.0, u32::from(name));
                    let MessageView { body, shared, .. } = delivery.message;
                    assert!(body.iter().all(|byte| *byte == 7));
                    assert!(shared.is_none_or(|shared| shared == body));
                    read.push(delivery.message.routing_key.parse().unwrap());
                }
                Err(NoMessage::Waits) => return (read, '~'),
                Err(NoMessage::Rests) => return (read, '-'),
                Err(NoMessage::CaughtUp) => {
                    self.spill.end(number);
                    self.slow_consumers.remove(&name);
                    return (read, '.');
                }
            }
        }
        (read, '+')
    }

    /// All that is there for a slow consumer.
    fn drain(&mut self, name: char) -> Vec<u64> {
        let mut all = Vec::new();
        loop {
            let (mut read, end) = self.read(name, usize::MAX);
            all.append(&mut read);
            if end == '.' {
                return all;
            }
            self.work();
        }
    }

    fn files(&self) -> usize {
        self.disk.list().unwrap().len()
    }
}

const LARGE: usize = 100_000;
const MANY: u64 = 1 << 30;

#[test]
fn what_fits_memory_never_sees_the_disk() {
    let mut effects = TestHost::new(MANY);
    assert_eq!(effects.store("ab", 10), "ab");
    effects.store("b", 10);
    effects.store("a", 10);
    effects.work();
    assert_eq!(effects.read('a', 9), (vec![1, 3], '.'));
    assert_eq!(effects.read('b', 1), (vec![1], '+'));
    effects.store("b", 10);
    assert_eq!(effects.read('b', 9), (vec![2, 4], '.'));
    assert_eq!((effects.files(), effects.disk.operations()), (0, 0));
    assert_eq!(effects.spill.stats().bytes, 0);
}

#[test]
fn each_reads_its_own_in_order_and_each_message_is_stored_once() {
    let mut effects = TestHost::new(MANY);
    let mut expected: BTreeMap<char, Vec<u64>> = BTreeMap::new();
    for number in 1..=100 {
        let whose = match number % 3 {
            0 => "abc",
            1 => "a",
            _ => "bc",
        };
        assert_eq!(effects.store(whose, LARGE), whose);
        for name in whose.chars() {
            expected.entry(name).or_default().push(number);
        }
        effects.work();
    }
    let stats = effects.spill.stats();
    assert_eq!((stats.messages, stats.slow_consumers), (100, 3));
    assert!(stats.bytes < 110 * LARGE as u64, "{stats:?}");
    assert!(effects.disk.used() < 110 * LARGE as u64, "{}", effects.disk.used());
    for name in ['b', 'a', 'c'] {
        assert_eq!(effects.drain(name), expected[&name], "{name}");
        effects.work();
    }
    assert_eq!((effects.files(), effects.spill.stats().bytes), (0, 0));
    assert!(effects.missed.is_empty());
}

#[test]
fn files_are_used_again_and_go_when_nobody_lags() {
    let mut effects = TestHost::new(MANY);
    effects.store("a", LARGE);
    let mut read = Vec::new();
    for _ in 0..300 {
        effects.store("a", LARGE);
        effects.work();
        read.append(&mut effects.read('a', 1).0);
        effects.work();
    }
    assert!(effects.files() <= 25, "{} files", effects.files());
    read.append(&mut effects.drain('a'));
    assert_eq!(read, (1..=301).collect::<Vec<u64>>());
    effects.work();
    assert_eq!(effects.files(), 0);
}

#[test]
fn memory_is_freed_once_it_is_written_and_bounded_before() {
    let mut effects = TestHost::new(MANY);
    let mut taken = 0;
    while taken < 1_000 && effects.store("a", LARGE) == "a" {
        taken += 1;
    }
    assert!(taken * LARGE <= UNWRITTEN_BYTES_MAX, "{taken}");
    assert!(taken * LARGE > UNWRITTEN_BYTES_MAX / 2, "{taken}");
    effects.work();
    while taken < 1_000 {
        assert_eq!(effects.store("a", LARGE), "a");
        taken += 1;
        effects.work();
    }
    let in_memory = effects.spill.chunks.iter().filter(|chunk| chunk.content.is_some());
    assert!(in_memory.count() <= SpillOptions::default().loaded_max + KEPT);
    let read = effects.drain('a');
    assert_eq!(read.len(), taken);
    assert!(read.windows(2).all(|pair| pair[0] < pair[1]), "{read:?}");
}

#[test]
fn beyond_its_limit_those_who_are_furthest_behind_miss_the_oldest() {
    let mut effects = TestHost::new(4 << 20);
    effects.store("a", LARGE);
    for _ in 0..20 {
        effects.store("a", LARGE);
    }
    assert_eq!(effects.read('a', 5).0, [1, 2, 3, 4, 5]);
    for _ in 0..100 {
        effects.store("ab", LARGE);
        effects.work();
    }
    let (a, b) = (effects.drain('a'), effects.drain('b'));
    effects.work();
    for (name, read, total) in [('a', &a, 116), ('b', &b, 100)] {
        let missed = effects.missed.get(&name).copied().unwrap_or(0);
        assert_eq!(read.len() as u64 + missed, total, "{name}");
        assert!(missed > 0 && read.windows(2).all(|pair| pair[0] < pair[1]), "{name} {read:?}");
        assert_eq!(read.last(), Some(&121));
    }
    assert_eq!(effects.files(), 0);
}

#[test]
fn a_chunk_that_cannot_be_written_or_read_is_missed_and_nothing_else() {
    for breaks in 0..3 {
        let mut effects = TestHost::new(MANY);
        for number in 0..200 {
            if number == 60 && breaks < 2 {
                let next = effects.disk.operations();
                effects.disk.fail_at(next, Fault::Full, breaks == 1);
            }
            effects.store("ab", LARGE);
            effects.work();
            if number == 160 {
                effects.disk.heal();
            }
        }
        if breaks == 2 {
            effects.disk.flip("spill-7", 70_000, 1);
            effects.spill.chunks.iter_mut().for_each(Chunk::unload);
        }
        let total = 200;
        for name in ['a', 'b'] {
            let read = effects.drain(name);
            let missed = effects.missed[&name];
            assert_eq!(read.len() as u64 + missed, total, "{breaks} {name}");
            assert!(missed > 0 && missed < 120, "{breaks} {name}: {missed}");
        }
        assert!(effects.spill.stats().failures > 0);
        assert!(effects.spill.stats().last_failure.is_some());
        effects.work();
        assert_eq!(effects.files(), 0, "{breaks}");
    }
}

#[test]
fn what_the_disk_has_lost_takes_no_room() {
    const DISK: u64 = 4 << 20;
    let options = SpillOptions::default();
    let mut effects = TestHost::of(&options);
    effects.disk.set_capacity(Some(DISK));
    for _ in 0..200 {
        effects.store("a", LARGE);
        effects.work();
    }
    assert!(effects.missed[&'a'] > 0);
    // Besides what has a file there are those that wait in memory, and the one that is being filled.
    let in_memory = (KEPT as u64 + 1) << 20;
    let bytes = effects.spill.stats().bytes;
    assert!(bytes > DISK / 2 && bytes <= DISK + in_memory, "{bytes}");
    assert!(effects.spill.stored <= bytes, "{} of its own", effects.spill.stored);
    effects.drain('a');
    assert_eq!((effects.spill.stats().bytes, options.bytes.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn where_it_yields_what_has_a_file_is_missed_and_what_fits_memory_waits_there() {
    let options = SpillOptions::default();
    let mut effects = TestHost::of(&options);
    for _ in 0..100 {
        effects.store("ab", LARGE);
        effects.work();
    }
    // One reads from the disk, and one chunk is on its way there.
    effects.spill.chunks.iter_mut().for_each(Chunk::unload);
    assert_eq!(effects.read('b', 9), (vec![], '~'));
    effects.store("ab", 1 << 20);
    effects.jobs.extend(std::iter::from_fn(|| effects.spill.next_job()));
    assert_eq!(effects.jobs.len(), 2);
    effects.spill.set_yields(true);
    effects.work();
    assert_eq!(effects.files(), 0, "the disk is somebody else's");
    let stats = effects.spill.stats();
    assert!(stats.bytes <= (KEPT as u64 + 2) << 20, "{stats:?}");
    let operations = effects.disk.operations();
    let mut taken = 101;
    while effects.store("ab", LARGE) == "ab" {
        taken += 1;
        effects.work();
    }
    assert!((taken - 101) * LARGE as u64 > 24 << 20, "{taken} were taken");
    assert_eq!(effects.disk.operations(), operations, "nothing is written");
    let read = effects.drain('b');
    assert_eq!(read.len() as u64 + effects.missed[&'b'], taken);
    assert_eq!(read.last(), Some(&taken));
    // Later it may write again.
    effects.spill.set_yields(false);
    effects.work();
    assert!(effects.files() > 20, "{} files", effects.files());
    let missed = effects.missed[&'a'];
    assert_eq!(missed, effects.missed[&'b']);
    assert_eq!(effects.drain('a'), read, "and loses no more");
    effects.work();
    assert_eq!((effects.missed[&'a'], effects.files()), (missed, 0));
    assert_eq!((effects.spill.unwritten, options.bytes.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn what_is_missed_is_counted_by_its_reason() {
    let missed = |effects: &TestHost| SpillLoss::ALL.map(|loss| effects.spill.missed(loss));
    let fill = |effects: &mut TestHost, messages: u64, works: bool| {
        let mut refused = 0;
        for _ in 0..messages {
            refused += 2 - effects.store("ab", LARGE).len() as u64;
            if works {
                effects.work();
            }
        }
        refused
    };
    let mut effects = TestHost::new(0);
    assert_eq!(fill(&mut effects, 3, true), 6);
    assert_eq!(missed(&effects), [6, 0, 0, 0, 0]);
    // A disk that keeps up with nothing.
    let mut effects = TestHost::new(MANY);
    let refused = fill(&mut effects, 400, false);
    assert!(refused > 0);
    assert_eq!(missed(&effects), [0, 0, 0, refused, 0]);
    // One that is needed for more.
    effects.work();
    effects.spill.set_yields(true);
    let more = fill(&mut effects, 400, true);
    let lost = effects.missed.values().sum::<u64>();
    assert!(more > 0 && lost > 0);
    assert_eq!(missed(&effects), [0, 0, 0, refused, more + lost]);
    // A small one, and one that has failed.
    for (bytes_max, capacity, at) in [(4 << 20, None, 0), (MANY, Some(4 << 20), 2)] {
        let mut effects = TestHost::new(bytes_max);
        effects.disk.set_capacity(capacity);
        assert_eq!(fill(&mut effects, 200, true), 0);
        let lost = effects.missed.values().sum::<u64>();
        let mut expected = [0; 5];
        expected[at] = lost;
        assert!(lost > 0);
        assert_eq!(missed(&effects), expected);
    }
    let mut effects = TestHost::new(MANY);
    let names: String = ('\u{4e00}'..).take(SLOW_CONSUMERS_MAX + 5).collect();
    effects.store(&names, 1);
    assert_eq!(missed(&effects), [0, 5, 0, 0, 0]);
}

#[test]
fn who_passes_many_messages_of_others_rests_in_between() {
    let mut effects = TestHost::new(MANY);
    for number in 0..40 {
        effects.store(if number % 10 == 0 { "ab" } else { "b" }, LARGE);
    }
    for expected in [vec![1, 11], vec![21], vec![31]] {
        assert_eq!(effects.read('a', 9), (expected, '-'));
        assert_eq!(effects.spill.stirred.pop_front(), Some(ConnectionId('a'.into())));
    }
    assert_eq!(effects.read('a', 9), (vec![], '.'));
}

#[test]
fn who_waits_for_a_chunk_that_is_given_up_goes_on() {
    let mut effects = TestHost::new(4 << 20);
    for _ in 0..35 {
        effects.store("a", LARGE);
        effects.work();
    }
    effects.spill.chunks.iter_mut().for_each(Chunk::unload);
    assert_eq!(effects.read('a', 9), (vec![], '~'));
    for _ in 0..20 {
        effects.store("a", LARGE);
    }
    assert_eq!(effects.spill.stirred.pop_front(), Some(ConnectionId('a'.into())));
    assert_eq!(effects.drain('a').last(), Some(&55));
}

#[test]
fn what_waits_is_as_the_broker_has_changed_it() {
    let annotations = &Annotations { further_keys_removed: true, ..Annotations::default() };
    let properties = b"\0\0NATS/1.0\r\nCC: b\r\nk: v\r\n\r\n";
    let plain = delivery("a", b"");
    let message = MessageView { properties, annotations, ..plain.message };
    let mut spill = Spill::new(SpillOptions::default(), ShardId::HOME, 1);
    let slow_consumer = spill.store(None, &DirectMessage { message, ..plain }).unwrap();
    let Ok(read) = spill.next(slow_consumer) else { panic!("nothing waits") };
    assert_eq!(read.message.properties, b"\0\0NATS/1.0\r\nk: v\r\n\r\n");
}

#[test]
fn one_that_goes_leaves_nothing_behind() {
    let mut effects = TestHost::new(MANY);
    for _ in 0..40 {
        effects.store("ab", LARGE);
        effects.work();
    }
    // A job is out when it goes.
    effects.store("a", LARGE);
    for _ in 0..10 {
        effects.store("a", LARGE);
    }
    effects.jobs.push_back(effects.spill.next_job().unwrap());
    for name in ['a', 'b'] {
        effects.spill.end(effects.slow_consumers[&name]);
    }
    effects.work();
    let stats = effects.spill.stats();
    assert_eq!((effects.files(), stats.bytes, stats.slow_consumers), (0, 0, 0));
    assert_eq!(effects.spill.unwritten, 0);
}

#[test]
fn slow_consumers_are_bounded() {
    let mut effects = TestHost::new(MANY);
    let names = |range: std::ops::Range<u32>| -> String {
        range.map(|number| char::from_u32(0x4e00 + number).unwrap()).collect()
    };
    let most = SLOW_CONSUMERS_MAX as u32;
    assert_eq!(effects.store(&names(0..most + 5), 1), names(0..most));
    assert_eq!(effects.store(&names(most - 1..most + 1), 1), names(most - 1..most));
}

#[test]
fn one_larger_than_a_chunk_has_one_of_its_own() {
    let mut effects = TestHost::new(MANY);
    for bytes in [10, 3 << 20, 10, 2 << 20, 10] {
        effects.store("a", bytes);
        effects.work();
    }
    assert_eq!(effects.drain('a'), [1, 2, 3, 4, 5]);
    effects.work();
    assert_eq!(effects.files(), 0);
}

#[test]
fn large_messages_use_the_room_that_there_is() {
    let mut effects = TestHost::new(MANY);
    let mut taken = 0;
    for _ in 0..10 {
        taken += effects.store("a", 12 << 20).len();
        effects.work();
    }
    assert_eq!(taken, 10);
}

#[test]
fn one_larger_than_the_room_is_missed_and_pushes_nothing_out() {
    let mut effects = TestHost::new(4 << 20);
    for _ in 0..30 {
        effects.store("a", LARGE);
        effects.work();
    }
    assert_eq!(effects.store("a", 5 << 20), "");
    effects.store("a", LARGE);
    effects.work();
    assert!(effects.disk.used() <= 4 << 20, "{}", effects.disk.used());
    assert_eq!(effects.spill.missed(SpillLoss::Limit), 1);
    assert_eq!(effects.drain('a').len(), 31);
}

#[test]
fn files_of_large_messages_are_not_kept() {
    const ROOM: u64 = 32 << 20;
    let mut effects = TestHost::new(ROOM);
    for number in 0..40 {
        // Each a little larger than all before, so that it fits no file that there is.
        effects.store("a", (3 << 20) + number * 10_000);
        effects.work();
    }
    assert!(effects.disk.used() <= ROOM + (8 << 20), "{} bytes on the disk", effects.disk.used());
}

#[test]
fn without_room_nothing_is_taken() {
    let mut effects = TestHost::new(0);
    assert_eq!(effects.store("a", 1), "");
}

#[test]
fn what_an_earlier_process_left_is_removed() {
    let disk = FaultyStorage::new(1);
    for name in ["spill-1", "spill-12", "other"] {
        disk.create(name, 10).unwrap();
    }
    clear_spill(&disk).unwrap();
    assert_eq!(disk.list().unwrap(), ["other"]);
}

#[test]
fn any_history_loses_nothing_and_keeps_order() {
    for seed in 0..20 {
        let shards = if seed % 2 == 0 { 1 } else { 3 };
        let options = SpillOptions { chunk_bytes: 256 << 10, ..SpillOptions::default() };
        let mut worlds = TestHost::shards(&options, shards);
        let mut expected = vec![BTreeMap::new(); shards];
        let mut draw = draw_from(seed);
        for _ in 0..600 * shards {
            let shard = draw(shards as u64) as usize;
            happen(&mut worlds[shard], &mut expected[shard], &mut draw);
        }
        for (effects, mut expected) in worlds.iter_mut().zip(expected) {
            for name in effects.slow_consumers.keys().copied().collect::<Vec<char>>() {
                assert_eq!(effects.drain(name), Vec::from(expected.remove(&name).unwrap()));
            }
            effects.work();
            assert_eq!(effects.spill.unwritten, 0);
        }
        assert_eq!((worlds[0].files(), options.bytes.load(Ordering::Relaxed)), (0, 0));
    }
}

/// Something happens on a shard; the same messages on each of them.
fn happen(
    effects: &mut TestHost,
    expected: &mut BTreeMap<char, VecDeque<u64>>,
    mut draw: impl FnMut(u64) -> u64,
) {
    match draw(4) {
        0 | 1 => {
            let names: String = ['a', 'b', 'c', 'd'].into_iter().filter(|_| draw(2) == 0).collect();
            let bytes = (effects.emission * 7_919 % 30_000) as usize;
            assert_eq!(effects.store(&names, bytes), names);
            for name in names.chars() {
                expected.entry(name).or_default().push_back(effects.emission);
            }
        }
        2 => {
            let jobs = std::iter::from_fn(|| effects.spill.next_job());
            effects.jobs.extend(jobs);
            effects.do_next();
        }
        _ => {
            let Some(name) = effects.slow_consumers.keys().nth(draw(4) as usize).copied() else {
                return;
            };
            let (read, end) = effects.read(name, draw(40) as usize);
            let waiting = expected.get_mut(&name).unwrap();
            for number in read {
                assert_eq!(waiting.pop_front(), Some(number));
            }
            assert!(end != '.' || waiting.is_empty());
        }
    }
    for chunk in &mut effects.spill.chunks {
        if draw(8) == 0 {
            chunk.unload();
        }
    }
}

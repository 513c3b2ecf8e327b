//! The logs of several shards, whose slow_consumers wait for the same messages.

use super::*;

#[test]
fn shards_share_the_room_and_each_keeps_its_part() {
    const CHUNKS: u64 = 12;
    let bytes_max = CHUNKS << 20;
    let options = SpillOptions { bytes_max, ..SpillOptions::default() };
    let mut worlds = TestHost::shards(&options, 3);
    let bytes = |effects: &TestHost| (effects.spill.stored + effects.spill.open.len() as u64) >> 20;
    let store = |effects: &mut TestHost, chunks: u64| {
        for _ in 0..(chunks << 20) / LARGE as u64 {
            assert_eq!(effects.store("a", LARGE), "a");
            effects.work();
        }
        bytes(effects)
    };
    // One alone has all of it.
    assert!((10..=CHUNKS).contains(&store(&mut worlds[0], 20)));
    // Another one takes its part, and the first one gives way as soon as it looks.
    worlds[1].emission = 1_000;
    let part = store(&mut worlds[1], 9);
    assert!((3..=4).contains(&part), "{part}");
    assert!(worlds[0].missed[&'a'] > 0 && worlds[1].missed[&'a'] > 0);
    worlds[0].spill.give_way();
    worlds[0].work();
    let all = options.bytes.load(Ordering::Relaxed);
    assert!(all <= bytes_max, "{all}");
    for effects in &mut worlds {
        for name in effects.slow_consumers.keys().copied().collect::<Vec<_>>() {
            effects.drain(name);
        }
        effects.work();
    }
    assert_eq!(options.bytes.load(Ordering::Relaxed), 0);
    assert_eq!(worlds[0].files(), 0);
}

/// Shards with slow_consumers that hear the same messages, one after the other by so many messages.
fn alike(
    options: &SpillOptions,
    shards: usize,
    behind: u64,
    messages: u64,
    bytes: usize,
) -> Vec<TestHost> {
    let mut worlds = TestHost::shards(options, shards);
    for number in 0..messages + behind * shards as u64 {
        for (effects, behind) in worlds.iter_mut().zip((0..).step_by(behind as usize)) {
            if (behind..messages + behind).contains(&number) {
                effects.store("ab", bytes);
                effects.work();
            }
        }
    }
    worlds
}

#[test]
fn what_several_shards_wait_for_is_stored_once() {
    for (bytes, messages, most) in [(LARGE, 300, 3), (100, 100_000, 60)] {
        let options = SpillOptions::default();
        let used = |shards| alike(&options, shards, 7, messages, bytes)[0].disk.used();
        let (one, four) = (used(1), used(4));
        assert!(one > (messages - 30) * bytes as u64 / 2, "{one}");
        let more = 100 * (four.saturating_sub(one)) / one / 3;
        assert!(more <= most, "{more} in a hundred more for each shard of {bytes} bytes");
    }
}

#[test]
fn what_is_stored_once_is_there_for_each() {
    // Whoever is done first, or loses it, the others have all of it.
    let numbers: Vec<u64> = (1..=400).collect();
    for first in 0..3 {
        let options = SpillOptions::default();
        let mut worlds = alike(&options, 3, 5, 400, LARGE);
        worlds
            .iter_mut()
            .for_each(|effects| effects.spill.chunks.iter_mut().for_each(Chunk::unload));
        worlds.rotate_left(first);
        for effects in &mut worlds {
            assert_eq!(effects.drain('b'), numbers);
            assert_eq!(effects.drain('a'), numbers);
            effects.work();
            assert!(effects.missed.is_empty());
        }
        assert_eq!((worlds[0].files(), options.bytes.load(Ordering::Relaxed)), (0, 0));
    }
}

#[test]
fn where_there_is_too_much_all_who_wait_for_the_same_give_way() {
    let options = SpillOptions { bytes_max: 16 << 20, ..SpillOptions::default() };
    let mut worlds = alike(&options, 3, 5, 800, LARGE);
    let (used, all) = (worlds[0].disk.used(), options.bytes.load(Ordering::Relaxed));
    assert!(used <= 20 << 20 && all <= 16 << 20, "{used} {all}");
    for effects in &mut worlds {
        for name in ['a', 'b'] {
            let read = effects.drain(name);
            let missed = effects.missed.get(&name).copied().unwrap_or(0);
            assert_eq!(read.len() as u64 + missed, 800);
            assert_eq!(read.last(), Some(&800));
            assert!(read.len() > 80, "{} were there", read.len());
        }
        effects.work();
    }
    assert_eq!((worlds[0].files(), options.bytes.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn what_is_in_memory_takes_no_room_on_the_disk() {
    // Sixteen shards wait for the same, as much as there is room for once.
    let options = SpillOptions { bytes_max: 16 << 20, ..SpillOptions::default() };
    let mut worlds = TestHost::shards(&options, 16);
    for _ in 0..150 {
        for effects in &mut worlds {
            assert_eq!(effects.store("a", LARGE), "a");
            effects.work();
        }
    }
    assert!(worlds.iter().all(|effects| effects.missed.is_empty()));
    // What the disk has no time for is missed as that, however little room there is.
    let mut worlds = TestHost::shards(&options, 2);
    for _ in 0..400 {
        worlds[0].store("a", LARGE);
        let _ = worlds[0].spill.next_job();
    }
    let missed = |loss| worlds[0].spill.missed(loss);
    assert!(missed(SpillLoss::SlowDisk) > 50);
    assert_eq!(missed(SpillLoss::Limit), 0);
}

#[test]
fn what_is_kept_for_little_that_is_copied_is_bounded_too() {
    const ROOM: u64 = 32 << 20;
    let options = SpillOptions { bytes_max: ROOM, ..SpillOptions::default() };
    let mut worlds = TestHost::shards(&options, 2);
    // One waits for all, and comes and goes; another one for each fifth only, and stays.
    for number in 1..2_000 {
        worlds[0].store("a", LARGE);
        worlds[0].work();
        worlds[1].emission = number - 1;
        if number % 5 == 0 {
            worlds[1].store("b", LARGE);
        }
        worlds[1].work();
        if number % 250 == 0 {
            worlds[0].drain('a');
            worlds[0].work();
        }
        let all = options.bytes.load(Ordering::Relaxed);
        assert!(all <= ROOM * 3 / 2 + (6 << 20), "{all} at {number}");
    }
    let read = worlds[1].drain('b').len() as u64;
    assert_eq!(read + worlds[1].missed[&'b'], 399);
    assert!(read > 20, "{read} were there");
}

#[test]
fn what_cannot_be_read_is_missed_by_all_who_have_it_in_common() {
    let options = SpillOptions::default();
    let mut worlds = alike(&options, 3, 5, 400, LARGE);
    let disk = Rc::clone(&worlds[0].disk);
    let largest = |disk: &FaultyStorage| {
        let names = disk.list().unwrap();
        names.into_iter().max_by_key(|name| disk.size(name).unwrap()).unwrap()
    };
    disk.flip(&largest(&disk), 70_000, 1);
    for effects in &mut worlds {
        effects.spill.chunks.iter_mut().for_each(Chunk::unload);
        effects.store.borrow_mut().forget_recent();
        for name in ['a', 'b'] {
            let read = effects.drain(name);
            let missed = effects.missed.get(&name).copied().unwrap_or(0);
            assert_eq!(read.len() as u64 + missed, 400);
            assert!((1..=30).contains(&missed), "{missed}");
        }
        effects.work();
    }
    assert_eq!((worlds[0].files(), options.bytes.load(Ordering::Relaxed)), (0, 0));
}

/// Shards whose slow_consumers hear the same messages, and whose chunks begin and end elsewhere: each has half a
/// chunk more of its own before.
fn shifted(options: &SpillOptions, shards: usize) -> Vec<TestHost> {
    let mut worlds = TestHost::shards(options, shards);
    for (at, effects) in worlds.iter_mut().enumerate() {
        effects.emission = 1_000_000 * (at as u64 + 1) - 1;
        effects.store("a", at * options.chunk_bytes / 2);
        effects.emission = 0;
    }
    worlds
}

/// Stores so many messages on each, of which a slow_consumer is always so many behind. Returns most room that was
/// taken.
fn follow(worlds: &mut [TestHost], options: &SpillOptions, messages: u64, behind: u64) -> u64 {
    let (mut room, mut read) = (0, vec![Vec::new(); worlds.len()]);
    for number in 1..=messages {
        for (effects, read) in worlds.iter_mut().zip(&mut read) {
            effects.store("a", LARGE);
            effects.work();
            effects.spill.chunks.iter_mut().for_each(Chunk::unload);
            // Its own, which comes first, has a high number.
            let is_behind = |last: u64| last > messages || last + behind < number;
            while number > behind && read.last().is_none_or(|last| is_behind(*last)) {
                read.append(&mut effects.read('a', 1).0);
                effects.work();
            }
        }
        room = room.max(options.bytes.load(Ordering::Relaxed));
    }
    for (at, (effects, mut read)) in worlds.iter_mut().zip(read).enumerate() {
        read.append(&mut effects.drain('a'));
        effects.work();
        let own = 1_000_000 * (at as u64 + 1);
        assert!(read.into_iter().eq(std::iter::once(own).chain(1..=messages)), "shard {at}");
        assert!(effects.missed.is_empty());
    }
    assert_eq!((worlds[0].files(), options.bytes.load(Ordering::Relaxed)), (0, 0));
    room
}

#[test]
fn what_has_been_read_leaves_no_room_behind() {
    let options = SpillOptions { bytes_max: 64 << 20, ..SpillOptions::default() };
    let behind = 100;
    let room = follow(&mut shifted(&options, 3), &options, 2_000, behind);
    assert!(room < 3 * behind * LARGE as u64, "{room}");
}

#[test]
fn one_damaged_file_costs_what_is_in_it() {
    let options = SpillOptions::default();
    let mut worlds = shifted(&options, 2);
    for _ in 0..300 {
        for effects in &mut worlds {
            effects.store("a", LARGE);
            effects.work();
            effects.spill.chunks.iter_mut().for_each(Chunk::unload);
        }
    }
    let disk = Rc::clone(&worlds[0].disk);
    disk.flip("spill-5", 70_000, 1);
    for effects in &mut worlds {
        effects.store.borrow_mut().forget_recent();
        let read = effects.drain('a').len() as u64;
        let missed = effects.missed.get(&'a').copied().unwrap_or(0);
        assert_eq!(read + missed, 301);
        assert!(missed <= 20, "{missed}");
        effects.work();
    }
    assert!(worlds.iter().any(|effects| !effects.missed.is_empty()));
    assert_eq!((worlds[0].files(), options.bytes.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn a_damaged_list_costs_one_its_chunk_and_the_file_is_not_used_again() {
    let options = SpillOptions::default();
    let mut worlds = alike(&options, 2, 5, 60, LARGE);
    let (file, at) = worlds[0].store.borrow().lists().nth(1).unwrap();
    worlds[0].disk.flip(&file, at, 1);
    let mut missed = Vec::new();
    for effects in &mut worlds {
        // Without them, files would not be kept.
        for _ in 0..100 {
            effects.store("c", LARGE);
            effects.work();
        }
        effects.store.borrow_mut().forget_recent();
        effects.spill.chunks.iter_mut().for_each(Chunk::unload);
        for name in ['a', 'b'] {
            let read = effects.drain(name).len() as u64;
            missed.push(60 - read);
            assert_eq!(effects.missed.get(&name).copied().unwrap_or(0), 60 - read);
        }
        effects.work();
    }
    assert!(matches!(missed[..], [0, 0, 1..=11, 1..=11] | [1..=11, 1..=11, 0, 0]), "{missed:?}");
    let files = worlds[0].disk.list().unwrap();
    assert!(!files.contains(&file), "{files:?}");
}

#[test]
fn what_one_gives_up_that_another_one_has_is_no_reason_to_give_up_more() {
    const ROOM: u64 = 32 << 20;
    let options = SpillOptions { bytes_max: ROOM, ..SpillOptions::default() };
    let mut worlds = alike(&options, 2, 5, 285, LARGE);
    let [one, two] = &mut worlds[..] else { panic!("two shards") };
    assert!(one.missed.is_empty() && two.missed.is_empty());
    // The other one hears nothing more, and has everything still.
    for _ in 0..90 {
        one.store("ab", LARGE);
        one.work();
    }
    let missed = one.missed[&'a'];
    assert!((20..=140).contains(&missed), "{missed} for 90 that came");
    assert!(two.missed.is_empty());
    // As soon as it looks, it gives way, too.
    two.spill.sweep();
    two.work();
    assert!(two.missed[&'a'] > 0);
    let all = options.bytes.load(Ordering::Relaxed);
    assert!(all <= ROOM, "{all}");
}

#[test]
fn messages_that_are_all_the_same_are_stored_once_too() {
    let options = SpillOptions::default();
    let mut worlds = TestHost::shards(&options, 4);
    for _ in 0..3_000 {
        for effects in &mut worlds {
            effects.emission = 0;
            effects.spill.open.forget_message();
            assert_eq!(effects.store("a", 10_000), "a");
            effects.work();
        }
    }
    let (used, stored) = (worlds[0].disk.used(), worlds[0].spill.stored);
    assert!(stored > 20 << 20 && used < stored / 5, "{used} for {stored}");
    for effects in &mut worlds {
        assert_eq!(effects.drain('a').len(), 3_000);
        effects.work();
    }
    assert_eq!((worlds[0].files(), options.bytes.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn what_is_alike_is_bounded_though_it_takes_little_room() {
    const MOST: u64 = 16 << 20;
    let options = SpillOptions { bytes_max: MOST, ..SpillOptions::default() };
    let mut worlds = TestHost::shards(&options, 2);
    for _ in 0..100 {
        worlds[0].emission = 0;
        worlds[0].spill.open.forget_message();
        assert_eq!(worlds[0].store("a", 1_000_000), "a");
        worlds[0].work();
    }
    assert!(worlds[0].spill.stored <= MOST);
    assert!(worlds[0].disk.used() < MOST / 2, "{}", worlds[0].disk.used());
    assert_eq!(worlds[0].drain('a').len() as u64 + worlds[0].missed[&'a'], 100);
}

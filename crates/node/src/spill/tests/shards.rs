//! The logs of several shards, which share the disk space.

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

#[test]
fn where_there_is_too_much_every_shard_gives_way() {
    let options = SpillOptions { bytes_max: 16 << 20, ..SpillOptions::default() };
    let mut worlds = TestHost::shards(&options, 3);
    for _ in 0..800 {
        for effects in &mut worlds {
            effects.store("ab", LARGE);
            effects.work();
        }
    }
    let (used, all) = (worlds[0].disk.used(), options.bytes.load(Ordering::Relaxed));
    assert!(used <= 20 << 20 && all <= 16 << 20, "{used} {all}");
    for effects in &mut worlds {
        for name in ['a', 'b'] {
            let read = effects.drain(name);
            let missed = effects.missed.get(&name).copied().unwrap_or(0);
            assert_eq!(read.len() as u64 + missed, 800);
            assert_eq!(read.last(), Some(&800));
            assert!(read.len() > 30, "{} were there", read.len());
        }
        effects.work();
    }
    assert_eq!((worlds[0].files(), options.bytes.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn what_the_disk_has_no_time_for_is_missed_as_that_however_little_room_there_is() {
    let options = SpillOptions { bytes_max: 16 << 20, ..SpillOptions::default() };
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
fn what_has_been_read_leaves_no_room_behind() {
    const BEHIND: u64 = 100;
    let options = SpillOptions { bytes_max: 64 << 20, ..SpillOptions::default() };
    let mut worlds = TestHost::shards(&options, 3);
    let (mut room, mut read) = (0, vec![Vec::new(); worlds.len()]);
    for number in 1..=600 {
        for (effects, read) in worlds.iter_mut().zip(&mut read) {
            effects.store("a", LARGE);
            effects.work();
            effects.spill.chunks.iter_mut().for_each(Chunk::unload);
            while read.last().copied().unwrap_or(0) + BEHIND < number {
                read.append(&mut effects.read('a', 1).0);
                effects.work();
            }
        }
        room = room.max(options.bytes.load(Ordering::Relaxed));
    }
    assert!(room < 4 * BEHIND * LARGE as u64, "{room}");
    for (effects, mut read) in worlds.iter_mut().zip(read) {
        read.append(&mut effects.drain('a'));
        effects.work();
        assert!(read.into_iter().eq(1..=600));
        assert!(effects.missed.is_empty());
    }
    assert_eq!((worlds[0].files(), options.bytes.load(Ordering::Relaxed)), (0, 0));
}

//! Append, flush, read, reopen, groups, checkpoints, removal.

use super::{Host, encode, open, payload, read, small};
use crate::batch::Buffer;
use crate::format::BLOCK_ALIGN;
use crate::job::Work;
use crate::space::Space;
use crate::{Disk, FaultyStorage, JobKind, Options, ReadBuffer, Recovery, Storage};

#[test]
fn what_is_flushed_is_read_and_replayed() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    let mut positions = Vec::new();
    for length in [8, 100, 4096, 20_000, 60_000, 70_000, 200_000, 9] {
        positions.push((host.publish(length, true), length));
        if length % 3 == 0 {
            host.run(&storage);
        }
    }
    host.run(&storage);
    let last = positions.last().unwrap().0.1;
    assert!(host.journal.durable() > last && host.journal.written() > last);

    let asked = positions.iter().rev().map(|it| it.0.1).collect();
    let read = read(&host.journal, asked, &storage).unwrap();
    for (record, &((number, _), length)) in read.iter().zip(positions.iter().rev()) {
        assert_eq!(**record, *payload(number, length));
    }
    storage.crash();
    let (_, live, clean) = open(&storage, small()).unwrap();
    assert_eq!(live, host.live);
    assert!(!clean);
}

#[test]
fn an_orderly_shutdown_counts_for_one_start() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    host.publish(100, true);
    host.run(&storage);
    host.publish(100, false);
    host.journal.close(encode(&host.live));
    host.run(&storage);
    storage.crash();
    let (mut journal, live, clean) = open(&storage, small()).unwrap();
    assert!(clean);
    assert_eq!(live, host.live);
    // Opened again, it may deliver: a shutdown without `close` is not orderly, even if nothing was appended.
    assert!(journal.next_job().is_none_or(|job| job.kind() == crate::JobKind::Space));
    storage.crash();
    let (_, live, clean) = open(&storage, small()).unwrap();
    assert!(!clean);
    assert_eq!(live, host.live);
}

#[test]
fn an_empty_journal_closes_and_opens() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    host.journal.close(Vec::new());
    host.run(&storage);
    assert!(Recovery::open(&storage, small()).unwrap().clean());
    let mut host = Host::open(&storage, small()).unwrap();
    host.publish(10, true);
    host.run(&storage);
    let (_, live, _) = open(&storage, small()).unwrap();
    assert_eq!(live, host.live);
}

#[test]
fn a_batch_without_durable_records_is_written_and_not_flushed() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    let (_, durable) = host.publish(10, true);
    host.run(&storage);
    let (_, spooled) = host.publish(10, false);
    host.run(&storage);
    assert!(host.journal.durable() > durable && host.journal.durable() <= spooled);
    assert!(host.journal.written() > spooled);
    assert_eq!(host.journal.stats().unsynced, 1);
    host.publish(10, true);
    host.run(&storage);
    assert!(host.journal.durable() > spooled);
}

/// The buffer of a large batch is freed once it is written.
#[test]
fn records_of_megabytes_are_read_back_between_others() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    let mut positions = Vec::new();
    for length in [100, 5 << 20, 5 << 20, 5 << 20, 100, 1_000, 70_000, 100] {
        positions.push((host.publish(length, true).1, length));
        if length > 1_000 {
            host.run(&storage);
        }
    }
    host.run(&storage);
    assert_eq!(host.journal.durable(), host.journal.written());
    for (number, (position, length)) in (1..).zip(positions) {
        let record = read(&host.journal, vec![position], &storage).unwrap();
        assert!(*record[0] == *payload(number, length), "record {number}");
    }
    let flushed = host.journal.stats().flushed_bytes;
    assert!((15 << 20..16 << 20).contains(&flushed), "{flushed}");
    assert_eq!(open(&storage, small()).unwrap().1, host.live);
}

#[test]
fn what_is_appended_during_a_flush_is_the_next_flush() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    host.publish(10, true);
    host.run(&storage);
    host.publish(10, true);
    let first = host.journal.next_job().unwrap();
    for _ in 0..100 {
        host.publish(10, true);
    }
    assert!(host.journal.next_job().is_none_or(|job| job.kind() != crate::JobKind::Flush));
    let before = host.journal.stats().flushes;
    host.journal.finished(first.run(&storage));
    host.run(&storage);
    assert_eq!(host.journal.stats().flushes, before + 2);
}

#[test]
fn segments_go_when_all_in_them_is_settled() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    let mut peak = 0;
    for round in 0..400 {
        for _ in 0..10 {
            host.publish(1000, true);
        }
        host.run(&storage);
        if round >= 10 {
            let first = *host.live.keys().next().unwrap();
            for number in first..first + 10 {
                host.settle(number);
            }
        }
        host.checkpoint_if_due();
        host.run(&storage);
        peak = peak.max(host.journal.stats().disk_bytes);
    }
    assert!(peak < 1 << 20, "{peak} bytes for 100 KB live");
    let (journal, live, _) = open(&storage, small()).unwrap();
    assert_eq!(live, host.live);
    assert_eq!(journal.stats().live_references, host.live.len() as u64);
}

#[test]
fn a_small_backlog_without_durable_records_can_be_deferred() {
    let storage = FaultyStorage::new(1);
    let large = Options { segment_bytes: 1 << 20, backlog_bytes_max: 8 << 20, ..small() };
    let mut host = Host::open(&storage, large).unwrap();
    host.run(&storage);
    assert!(!host.journal.can_defer_write(), "no backlog");
    let check = |host: &mut Host, what: &str, append: &dyn Fn(&mut Host), can_defer: bool| {
        host.publish(1000, false);
        assert!(host.journal.can_defer_write());
        append(host);
        assert_eq!(host.journal.can_defer_write(), can_defer, "{what}");
        host.run(&storage);
        assert_eq!(host.journal.stats().backlog_bytes, 0);
    };
    let publish = |length, durable| {
        move |host: &mut Host| {
            host.publish(length, durable);
        }
    };
    check(&mut host, "nothing durable", &publish(1000, false), true);
    check(&mut host, "a durable record", &publish(1000, true), false);
    check(&mut host, "to be written soon", &|host| host.journal.write_soon(), false);
    check(&mut host, "written soon before", &publish(1000, false), true);
    check(&mut host, "just below the limit", &publish(250 << 10, false), true);
    check(&mut host, "at the limit", &publish(256 << 10, false), false);
    check(&mut host, "a pending checkpoint", &|host| host.checkpoint(), false);
    let flush = |host: &mut Host| drop(host.journal.next_job());
    host.publish(1000, false);
    flush(&mut host);
    assert!(!host.journal.can_defer_write(), "being written");
}

#[test]
fn a_reader_keeps_its_segment() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    let (number, position) = host.publish(1000, true);
    for _ in 0..100 {
        host.publish(1000, true);
    }
    host.run(&storage);
    let read = host.journal.read(vec![position], false);
    let churn = |host: &mut Host| {
        for _ in 0..10 {
            let numbers: Vec<_> = host.live.keys().copied().collect();
            for number in numbers {
                host.settle(number);
            }
            host.checkpoint();
            host.run(&storage);
            for _ in 0..100 {
                host.publish(1000, true);
            }
            host.run(&storage);
        }
    };
    churn(&mut host);
    let mut buffer = ReadBuffer::default();
    assert_eq!(*read.run(&storage, &mut buffer).unwrap()[0], *payload(number, 1000));
    churn(&mut host);
    assert!(host.journal.read(vec![position], false).run(&storage, &mut buffer).is_err());
}

#[test]
fn sparse_segments_are_found_and_removed_once_their_records_are_moved() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    for number in 1..=2000 {
        host.publish(1000, true);
        if number % 100 == 0 {
            host.run(&storage);
        }
    }
    assert_eq!(host.journal.sparse_segment(), None);
    for number in (1..=2000).filter(|number| number % 50 != 0) {
        host.settle(number);
    }
    host.checkpoint();
    host.run(&storage);
    let before = host.journal.stats().disk_bytes;
    let mut moved = 0;
    while let Some(segment) = host.journal.sparse_segment() {
        let there: Vec<_> =
            host.live.iter().filter(|it| it.1.segment() == segment).map(|it| *it.0).collect();
        assert!(!there.is_empty());
        moved += there.len();
        for number in there {
            host.settle(number);
            host.publish(1000, true);
        }
    }
    assert!(moved > 0);
    for _ in 0..2 {
        host.checkpoint();
        host.run(&storage);
    }
    let after = host.journal.stats().disk_bytes;
    assert!(after * 3 < before && after < 1 << 20, "{before} -> {after}");
    assert_eq!(open(&storage, small()).unwrap().1, host.live);
}

/// The snapshot of a checkpoint is handed in after more was published, settled and flushed.
#[test]
fn a_checkpoint_describes_the_moment_it_began() {
    for (before, between, after) in [(0, 0, 0), (0, 5, 5), (5, 0, 0), (300, 700, 300)] {
        let storage = FaultyStorage::new(7);
        let mut host = Host::open(&storage, small()).unwrap();
        let publish = |host: &mut Host, count: u64, settles: bool| {
            for _ in 0..count {
                let (number, _) = host.publish(1000, true);
                if settles && number > 3 {
                    host.settle(number - 3);
                }
                host.run(&storage);
            }
        };
        publish(&mut host, before, true);
        host.begin_checkpoint();
        let segments = host.journal.stats().segments;
        publish(&mut host, between, true);
        assert!(!host.journal.checkpoint_due(), "one is begun");
        assert_eq!(host.journal.stats().checkpoints, 0, "it has no snapshot");
        assert!(host.journal.stats().segments >= segments, "its snapshot may need them");
        host.finish_checkpoint();
        host.run(&storage);
        assert_eq!(host.journal.stats().checkpoints, 1);
        publish(&mut host, after, false);
        storage.crash();
        let (mut journal, live, _) = open(&storage, small()).unwrap();
        assert_eq!(live, host.live, "{before} {between} {after}");
        for position in live.values() {
            journal.release(*position, 1);
        }
        assert_eq!(journal.stats().live_references, 0, "{before} {between} {after}");
    }
}

/// A snapshot that is handed in later says of some things what later records say: it never outlives these.
#[test]
fn a_checkpoint_waits_for_what_was_appended_until_it_was_complete() {
    // What wants no flush of its own is flushed for the checkpoint.
    for durable in [true, false] {
        let storage = FaultyStorage::new(7);
        let mut host = Host::open(&storage, small()).unwrap();
        host.publish(1000, true);
        host.begin_checkpoint();
        host.run(&storage);
        host.publish(1000, durable);
        host.finish_checkpoint();
        let flush = host.journal.next_job().unwrap();
        assert!(host.journal.next_job().is_none(), "the checkpoint");
        let done = flush.run(&storage);
        host.journal.finished(done);
        host.run(&storage);
        assert_eq!(host.journal.stats().checkpoints, 1, "durable: {durable}");
    }
}

/// After a crash before the snapshot is handed in, the older checkpoint is used.
#[test]
fn a_checkpoint_without_a_snapshot_is_ignored() {
    let storage = FaultyStorage::new(8);
    let mut host = Host::open(&storage, small()).unwrap();
    host.publish(1000, true);
    host.checkpoint();
    host.run(&storage);
    host.settle(1);
    host.publish(1000, true);
    host.begin_checkpoint();
    host.publish(1000, true);
    host.run(&storage);
    storage.crash();
    assert_eq!(open(&storage, small()).unwrap().1, host.live);
}

#[test]
fn an_orderly_shutdown_drops_a_checkpoint_that_was_begun() {
    let storage = FaultyStorage::new(9);
    let mut host = Host::open(&storage, small()).unwrap();
    host.publish(1000, true);
    host.begin_checkpoint();
    host.publish(1000, true);
    let snapshot = encode(&host.live);
    host.journal.close(snapshot);
    host.run(&storage);
    storage.crash();
    let (_, live, clean) = open(&storage, small()).unwrap();
    assert!(clean);
    assert_eq!(live, host.live);
}

#[test]
fn a_real_disk_does_the_same() {
    let folder = std::env::temp_dir().join(format!("angarium-journal-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    {
        let disk = Disk::open(&folder).unwrap();
        let locked = Disk::open(&folder).unwrap_err();
        assert!(locked.to_string().contains(&std::process::id().to_string()), "{locked}");
        let recovery =
            Recovery::open(&disk, Options { segment_bytes: 1 << 20, ..small() }).unwrap();
        let mut journal = recovery.replay(&disk, |_, _, _| Ok(())).unwrap();
        let mut positions = Vec::new();
        for number in 0..3000 {
            let position = journal.append(&[&payload(number, 1000)], true);
            journal.retain(position, 1);
            positions.push(position);
            if number % 500 == 0 {
                while let Some(job) = journal.next_job() {
                    journal.finished(job.run(&disk));
                }
            }
        }
        journal.begin_checkpoint();
        journal.finish_checkpoint(vec![b"snapshot".to_vec()]);
        let position = journal.append(&[b"last"], true);
        while let Some(job) = journal.next_job() {
            journal.finished(job.run(&disk));
        }
        positions.push(position);
        let mut buffer = ReadBuffer::default();
        for past_cache in [false, true] {
            let read = journal.read(positions.clone(), past_cache);
            let records = read.run(&disk, &mut buffer).unwrap();
            let expected = (0..3000).map(|number| payload(number, 1000));
            let expected = expected.chain([b"last".to_vec()]);
            assert!(records.iter().map(|record| record.to_vec()).eq(expected), "{past_cache}");
        }
    }
    let disk = Disk::open(&folder).unwrap();
    disk.replace("foreign", b"a note").unwrap();
    let recovery = Recovery::open(&disk, small()).unwrap();
    assert_eq!(recovery.snapshot(), Some(&b"snapshot"[..]));
    let mut records = Vec::new();
    recovery
        .replay(&disk, |_, _, record| {
            records.push(record.to_vec());
            Ok(())
        })
        .unwrap();
    assert_eq!(records, [b"last"]);
    assert!(folder.join("foreign").exists());
    drop(disk);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn past_the_page_cache_and_through_it_the_file_is_the_same() {
    let folder = std::env::temp_dir().join(format!("angarium-direct-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let disk = Disk::open(&folder).unwrap();
    let mut expected = vec![0; 16 * BLOCK_ALIGN];
    disk.create("file", expected.len() as u64).unwrap();
    let mut seen = vec![1; expected.len()];
    let mut past = Buffer::with_capacity(expected.len()).unwrap();
    past.resize(expected.len());
    let mut source = Buffer::with_capacity(expected.len()).unwrap();
    assert_eq!(source.as_ptr().addr() % BLOCK_ALIGN, 0);
    source.resize(expected.len());
    for (at, byte) in source.iter_mut().enumerate() {
        *byte = (at * 7919 / 13) as u8;
    }
    // Offset in the file, then offset and length of each part in the source.
    let writes: [(usize, &[(usize, usize)]); 5] = [
        (0, &[(0, 4096)]),
        (8192, &[(4096, 8192), (0, 4096), (16384, 4096)]),
        (100, &[(4096, 4096)]),
        (4096, &[(7, 4096), (8192, 4096)]),
        (20480, &[(4096, 512), (512, 10), (0, 0)]),
    ];
    for (offset, parts) in writes {
        let parts: Vec<&[u8]> = parts.iter().map(|&(at, length)| &source[at..][..length]).collect();
        let whole = parts.concat();
        expected[offset..offset + whole.len()].copy_from_slice(&whole);
        disk.write_parts("file", offset as u64, &parts).unwrap();
        disk.read_past_cache("file", 0, &mut past).unwrap();
        assert!(past[..] == expected[..], "written at {offset}, read past the page cache");
        disk.sync("file").unwrap();
        disk.read("file", 0, &mut seen).unwrap();
        assert!(seen == expected, "written at {offset}");
    }
    drop(disk);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Bytes that are zeroed while a log of such flushes goes through many segments.
fn zeroed(records_per_flush: usize) -> u64 {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, Options { segment_bytes: 1 << 20, ..small() }).unwrap();
    let mut zeroed = 0;
    for _ in 0..(16 << 20) / (records_per_flush * 1024) {
        for _ in 0..records_per_flush {
            host.publish(1024, true);
        }
        while let Some(job) = host.journal.next_job() {
            if job.kind() == JobKind::Space {
                zeroed += job.bytes();
            }
            host.journal.finished(job.run(&storage));
        }
    }
    zeroed
}

#[test]
fn segments_are_zeroed_where_flushes_are_small() {
    assert!(zeroed(4) > 16 << 20);
    assert!(zeroed(512) < 6 << 20, "only those that were made before the first flushes");
}

/// Segments created while a stream of 64 segments is consumed, `lag` messages behind.
fn created(lag: usize, batch: usize) -> u64 {
    let storage = FaultyStorage::new(1);
    let options =
        Options { segment_bytes: 256 << 10, checkpoint_bytes: 512 << 10, ..Options::default() };
    let mut host = Host::open(&storage, options).unwrap();
    let mut created = 0;
    for _ in 0..(16 << 20) / 1024 / batch {
        for _ in 0..batch {
            host.publish(1000, true);
        }
        let mut out = None;
        while let Some(job) = host.journal.next_job() {
            created += u64::from(matches!(&job.work, Work::Space(Space::Create { .. })));
            match job.kind() {
                JobKind::Flush => out = Some(job),
                _ => host.journal.finished(job.run(&storage)),
            }
        }
        // Settles come while the flush is running.
        let old = host.live.len().saturating_sub(lag);
        for number in host.live.keys().copied().take(old).collect::<Vec<_>>() {
            host.settle(number);
        }
        host.checkpoint_if_due();
        if let Some(flush) = out {
            host.journal.finished(flush.run(&storage));
        }
    }
    created
}

#[test]
fn a_consumed_stream_reuses_segments() {
    for lag in [0, 100, 1_000, 3_000] {
        for batch in [8, 100, 400] {
            let created = created(lag, batch);
            let lag_segments = lag as u64 / 256;
            assert!(created <= 12 + lag_segments, "lag {lag}, batch {batch}: {created} created");
        }
    }
}

//! The bytes on the disk, kept as files: a change of the format must be intended, and get a number.

use super::read;
use crate::{FaultyStorage, Options, Recovery, Storage, check};

const SEGMENT: &[u8] = include_bytes!("golden/v2.segment");
const CHECKPOINT: &[u8] = include_bytes!("golden/v2.checkpoint");
const CLEAN: &[u8] = include_bytes!("golden/v2.clean");

fn options() -> Options {
    Options {
        segment_bytes: 16 << 10,
        checkpoint_bytes: 1 << 20,
        backlog_bytes_max: 1 << 20,
        ..Options::default()
    }
}

/// Two blocks: the first with records of 5 and 0 bytes, the second with one behind the checkpoint.
fn write(storage: &FaultyStorage) {
    let recovery = Recovery::open(storage, options()).unwrap();
    let mut journal = recovery.replay(storage, |_, _, _| Ok(())).unwrap();
    let run = |journal: &mut crate::Journal| {
        while let Some(job) = journal.next_job() {
            journal.finished(job.run(storage));
        }
    };
    let position = journal.append(&[b"he", b"llo"], true);
    journal.retain(position, 2);
    journal.append(&[], true);
    journal.release(position, 1);
    run(&mut journal);
    journal.close(b"snapshot".to_vec());
    run(&mut journal);
    journal.append(&[b"after"], true);
    run(&mut journal);
}

/// The two blocks of the segment: the rest is zeros.
const USED_BYTES: usize = 8 << 10;

#[test]
fn what_is_written_is_what_version_2_wrote() {
    let storage = FaultyStorage::new(1);
    write(&storage);
    let segment = storage.content("00000001.segment").unwrap();
    assert_eq!(segment[..USED_BYTES], *SEGMENT);
    assert!(segment[USED_BYTES..].iter().all(|byte| *byte == 0));
    assert_eq!(storage.content("checkpoint-00000001").unwrap(), CHECKPOINT);
    assert_eq!(storage.content("checkpoint-00000001.copy").unwrap(), CHECKPOINT);
    assert_eq!(storage.content("clean").unwrap(), CLEAN);
}

#[test]
fn what_version_2_wrote_is_read() {
    let storage = FaultyStorage::new(1);
    storage.create("00000001.segment", 16 << 10).unwrap();
    storage.write("00000001.segment", 0, SEGMENT).unwrap();
    storage.replace("checkpoint-00000001", CHECKPOINT).unwrap();
    assert_eq!(check(&storage).unwrap().problems, []);
    let recovery = Recovery::open(&storage, options()).unwrap();
    assert_eq!(recovery.snapshot(), Some(&b"snapshot"[..]));
    assert!(!recovery.clean());
    let mut records = Vec::new();
    let journal = recovery.replay(&storage, |_, position, record| {
        records.push((position.offset(), record.to_vec()));
        Ok(())
    });
    assert_eq!(records, [(4096 + 64, b"after".to_vec())]);
    let journal = journal.unwrap();
    assert_eq!(journal.stats().live_references, 1);
    let first = crate::Position::at(1, 64);
    assert_eq!(*read(&journal, vec![first], &storage).unwrap()[0], *b"hello");
}

#[test]
#[ignore = "writes the golden files anew, after an intended change of the format"]
fn write_the_golden_files() {
    let storage = FaultyStorage::new(1);
    write(&storage);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/golden/v2");
    let segment = storage.content("00000001.segment").unwrap();
    std::fs::write(format!("{folder}.segment"), &segment[..USED_BYTES]).unwrap();
    let checkpoint = storage.content("checkpoint-00000001").unwrap();
    std::fs::write(format!("{folder}.checkpoint"), checkpoint).unwrap();
    std::fs::write(format!("{folder}.clean"), storage.content("clean").unwrap()).unwrap();
}

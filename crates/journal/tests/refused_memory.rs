//! Memory that the system refuses (`RLIMIT_AS`) is an error of the operation that wanted it, and never ends
//! the process. The limit is the whole process's, so this is one test in a program of its own.

use angarium_journal::{
    Disk, Journal, Options, Position, ReadBuffer, Recovery, SharedRecord, State, check, repair,
};
use bytes::Bytes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::path::Path;

/// Larger than what is left, and than the 64 MiB that the allocator may have in store.
const LARGE: usize = 66 << 20;
/// What is left beyond what is in use.
const LEFT: u64 = 12 << 20;

/// Runs `work` with little memory left.
fn with_little_memory<T>(work: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::As);
    let pages = fs::read_to_string("/proc/self/statm").expect("Linux says");
    let pages: u64 = pages.split(' ').next().and_then(|it| it.parse().ok()).expect("a number");
    let current = Some(pages * rustix::param::page_size() as u64 + LEFT);
    setrlimit(Resource::As, Rlimit { current, ..before }).expect("it may be lowered");
    let result = work();
    setrlimit(Resource::As, before).expect("it may be raised again");
    result
}

fn open(disk: &Disk) -> Journal {
    let recovery = Recovery::open(disk, Options::default()).expect("it is whole");
    recovery.replay(disk, |_, _, _| Ok(())).expect("it is whole")
}

/// Runs jobs until there are none.
fn run(journal: &mut Journal, disk: &Disk) {
    while let Some(job) = journal.next_job() {
        journal.finished(job.run(disk));
    }
}

#[track_caller]
fn has_failed(journal: &Journal) {
    let State::Failed(why) = journal.state() else { panic!("{:?}", journal.state()) };
    assert!(why.contains("memory"), "{why}");
}

fn append_large(journal: &mut Journal, body: &Bytes) -> Position {
    let record = SharedRecord { before: &[b"head"], shared: body, after: b"end" };
    let position = journal.append_shared(record, true);
    journal.retain(position, 1);
    position
}

fn a_large_body_waits_for_memory(disk: &Disk, body: &Bytes) {
    let mut journal = open(disk);
    let position = with_little_memory(|| {
        journal.append(&[b"small"], true);
        let position = append_large(&mut journal, body);
        run(&mut journal, disk);
        position
    });
    assert_eq!(*journal.state(), State::Full);
    assert!(journal.shortage().contains("memory"), "{}", journal.shortage());
    assert!(journal.durable() <= position);
    journal.append(&[b"later"], true);
    journal.retry();
    assert_eq!(*journal.state(), State::Full, "until it is written");
    run(&mut journal, disk);
    assert_eq!(*journal.state(), State::Ready);
    assert!(journal.durable() > position);
    assert_eq!(journal.backlog_bytes(), 0);
    let mut records = Vec::new();
    drop(journal);
    let recovery = Recovery::open(disk, Options::default()).expect("it is whole");
    let replayed = recovery.replay(disk, |_, _, record| {
        records.push(record.len());
        Ok(())
    });
    replayed.expect("it is whole");
    assert_eq!(records, [5, LARGE + 7, 5]);
}

fn a_large_group_fails_the_journal(disk: &Disk) {
    let mut journal = open(disk);
    with_little_memory(|| {
        journal.reserve(LARGE, 10_000);
        for _ in 0..10_000 {
            journal.append(&[&[7; LARGE / 10_000]], true);
        }
        run(&mut journal, disk);
    });
    has_failed(&journal);
}

fn a_checkpoint_waits_for_memory(disk: &Disk) {
    let mut journal = open(disk);
    run(&mut journal, disk);
    let pieces = || vec![vec![1; LARGE / 2], vec![2; LARGE / 2]];
    let snapshot = pieces();
    journal.begin_checkpoint();
    journal.finish_checkpoint(snapshot);
    with_little_memory(|| {
        for _ in 0..10 {
            run(&mut journal, disk);
        }
    });
    assert_eq!(*journal.state(), State::Full);
    assert!(journal.shortage().contains("memory"), "{}", journal.shortage());
    journal.retry();
    assert_eq!(*journal.state(), State::Full, "until it is written");
    assert!(journal.checkpoint_due());
    journal.begin_checkpoint();
    journal.finish_checkpoint(pieces());
    run(&mut journal, disk);
    journal.retry();
    run(&mut journal, disk);
    assert_eq!(*journal.state(), State::Ready);
    assert_eq!(journal.stats().checkpoints, 1);
}

fn a_large_record_is_read_once_there_is_memory(disk: &Disk, body: &Bytes) -> Position {
    let mut journal = open(disk);
    let position = append_large(&mut journal, body);
    run(&mut journal, disk);
    // The next flush proves that one.
    journal.append(&[b"small"], true);
    run(&mut journal, disk);
    assert_eq!(journal.state(), &State::Ready);
    let read = || journal.read(vec![position], false).run(disk, &mut ReadBuffer::default());
    let why = with_little_memory(read).expect_err("memory is refused");
    assert!(why.contains("memory"), "{why}");
    assert_eq!(read().expect("there is memory")[0].len(), LARGE + 7);
    position
}

fn a_start_and_a_repair_say_what_they_lack(disk: &Disk, folder: &Path, at: Position) {
    let why = with_little_memory(|| {
        let recovery = Recovery::open(disk, Options::default())?;
        recovery.replay(disk, |_, _, _| Ok(())).map(drop)
    });
    assert!(why.expect_err("memory is refused").contains("memory"));
    let name = format!("{:08}.segment", at.0 >> 32);
    let offset = (at.0 & u64::from(u32::MAX)) as usize + 1_000_000;
    let mut bytes = fs::read(folder.join(&name)).expect("it is there");
    bytes[offset] ^= 1;
    fs::write(folder.join(&name), &bytes).expect("there is room");
    drop(bytes);
    with_little_memory(|| check(disk)).expect_err("memory is refused");
    let report = check(disk).expect("there is memory");
    assert!(!report.problems.is_empty());
    with_little_memory(|| repair(disk, &report)).expect_err("memory is refused");
}

#[test]
fn refused_memory_is_an_error_and_no_end() {
    // What is written here are hundreds of megabytes that nobody wants to keep.
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    let folder = tempfile::tempdir_in(base).expect("there is room");
    let disk = Disk::open(folder.path()).expect("it is a folder");
    let body = Bytes::from(vec![0xee; LARGE]);
    a_large_body_waits_for_memory(&disk, &body);
    a_large_group_fails_the_journal(&disk);
    a_checkpoint_waits_for_memory(&disk);
    let position = a_large_record_is_read_once_there_is_memory(&disk, &body);
    drop(body);
    a_start_and_a_repair_say_what_they_lack(&disk, folder.path(), position);
}

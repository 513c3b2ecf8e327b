//! Measures the journal on this disk, beside plain sequential writes with the same flush size:
//! `cargo run --release -p angarium-journal --example speed -- FOLDER`.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use angarium_journal::{Disk, Journal, Options, Recovery, Storage};

/// Flushes per measurement.
const FLUSHES: usize = 200;

fn main() -> Result<(), String> {
    let folder = std::env::args().nth(1).ok_or("name a folder on the disk to measure")?;
    let folder = std::path::PathBuf::from(folder).join("journal-speed");
    let disk = Disk::open(&folder).map_err(|error| error.to_string())?;
    let recovery = Recovery::open(&disk, Options::default())?;
    let mut journal = recovery.replay(&disk, |_, _, _| Ok(()))?;
    append(&mut journal, &disk);
    for flush_bytes in [4 << 10, 64 << 10, 1 << 20] {
        flush(&mut journal, &disk, &folder, flush_bytes).map_err(|error| error.to_string())?;
    }
    drop(disk);
    std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())
}

fn run(journal: &mut Journal, storage: &dyn Storage) {
    while let Some(job) = journal.next_job() {
        journal.finished(job.run(storage));
    }
}

/// Prints nanoseconds per record, without the disk: for the append, and for checksums on the writing thread.
fn append(journal: &mut Journal, disk: &Disk) {
    let record = [7; 100];
    journal.append(&[&record], true);
    run(journal, disk);
    for round in 0..4 {
        let mut appending = 0.0;
        let mut finishing = 0.0;
        let (batches, count) = (50, 5_000);
        for _ in 0..batches {
            let begin = processor_seconds();
            for _ in 0..count {
                journal.append(&[&record[..20], &record[20..]], true);
            }
            appending += processor_seconds() - begin;
            let job = journal.next_job().expect("there is something to write");
            let begin = processor_seconds();
            journal.finished(job.run(&Nowhere));
            finishing += processor_seconds() - begin;
        }
        let records = f64::from(batches * count) / 1e9;
        println!(
            "100 B records, round {round}: append {:.1} ns; checksums on the journal's thread {:.1} ns",
            appending / records,
            finishing / records
        );
        run(journal, disk);
    }
}

/// Prints microseconds per flush of records of 1 KiB, and of the same number of plain bytes written into a
/// file of zeros, by turns.
fn flush(
    journal: &mut Journal,
    disk: &Disk,
    folder: &std::path::Path,
    bytes: usize,
) -> std::io::Result<()> {
    let size = 64 << 20;
    let path = folder.join("plain");
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
    file.write_all_at(&vec![0; size], 0)?;
    file.sync_all()?;
    let buffer = vec![7; bytes];
    let record = vec![7; 1024 - 8];
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for at in 0..FLUSHES {
        let mut batch = 64;
        while batch + 1024 <= bytes {
            journal.append(&[&record], true);
            batch += 1024;
        }
        let job = journal.next_job().expect("there is something to write");
        let begin = Instant::now();
        let done = job.run(disk);
        ours.push(begin.elapsed());
        journal.finished(done);
        run(journal, disk);

        let begin = Instant::now();
        file.write_all_at(&buffer, (at * bytes % size) as u64)?;
        file.sync_data()?;
        plain.push(begin.elapsed());
    }
    ours.sort();
    plain.sort();
    for (name, share) in [("lower quarter", 4), ("median", 2)] {
        let at = FLUSHES / share;
        let (ours, plain) = (ours[at].as_secs_f64() * 1e6, plain[at].as_secs_f64() * 1e6);
        println!(
            "flush of {:4} KiB, {name}: journal {ours:7.0} us, plain {plain:7.0} us, {:.2} of its speed",
            bytes >> 10,
            plain / ours
        );
    }
    std::fs::remove_file(&path)
}

/// Processor time of this thread, which other load on the machine does not change.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Storage that accepts everything and keeps nothing.
struct Nowhere;

impl Storage for Nowhere {
    fn list(&self) -> std::io::Result<Vec<String>> {
        Ok(Vec::new())
    }
    fn size(&self, _: &str) -> std::io::Result<u64> {
        Ok(0)
    }
    fn create(&self, _: &str, _: u64) -> std::io::Result<()> {
        Ok(())
    }
    fn write(&self, _: &str, _: u64, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }
    fn sync(&self, _: &str) -> std::io::Result<()> {
        Ok(())
    }
    fn read(&self, _: &str, _: u64, _: &mut [u8]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::NotFound.into())
    }
    fn replace(&self, _: &str, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }
    fn rename(&self, _: &str, _: &str) -> std::io::Result<()> {
        Ok(())
    }
    fn remove(&self, _: &str) -> std::io::Result<()> {
        Ok(())
    }
}

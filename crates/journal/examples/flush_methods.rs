//! Measures what a flush costs on this disk, by how it is written and by what the file held before:
//! `cargo run --release -p angarium-journal --example flush_methods -- FOLDER`.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

use rustix::fs::{FallocateFlags, OFlags, fallocate, fdatasync};

/// Rounds; each measures every method once, so that other load on the machine disturbs all alike.
const ROUNDS: usize = 5;
const PAGE: usize = 4096;

/// What the file held before.
#[derive(Clone, Copy, Debug)]
enum Before {
    /// Zeros that were written.
    Zeros,
    /// Space allocated and never written.
    Allocated,
    /// Nothing: each write extends the file.
    Nothing,
}

/// Seconds of each flush, and of processor time.
#[derive(Default)]
struct Costs {
    flush: Vec<f64>,
    processor: Vec<f64>,
}

fn main() -> io::Result<()> {
    let folder = std::env::args().nth(1).ok_or_else(|| io::Error::other("name a folder"))?;
    let path = Path::new(&folder).join("journal-flush-methods");
    for (kib, total_mib) in [(4, 1), (64, 8), (256, 24), (1024, 64), (4096, 128)] {
        let mut methods = Vec::new();
        for before in [Before::Zeros, Before::Allocated, Before::Nothing] {
            for direct in [false, true] {
                methods.push((before, direct, Costs::default()));
            }
        }
        for _ in 0..ROUNDS {
            for (before, direct, costs) in &mut methods {
                measure(&path, *before, *direct, kib << 10, total_mib << 20, costs)?;
            }
        }
        for (before, direct, costs) in &mut methods {
            let method = if *direct { "past the page cache" } else { "through the page cache" };
            let quartile = quantile(&mut costs.flush, 4);
            println!(
                "{kib:5} KiB, before: {:9}, {method:22}: lower quartile {:6.0} us ({:4.0} MB/s), \
                 median {:6.0} us, processor {:5.0} us",
                format!("{before:?}"),
                quartile * 1e6,
                (kib << 10) as f64 / quartile / 1e6,
                quantile(&mut costs.flush, 2) * 1e6,
                quantile(&mut costs.processor, 2) * 1e6,
            );
        }
    }
    Ok(())
}

fn quantile(values: &mut [f64], part: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / part]
}

fn measure(
    path: &Path,
    before: Before,
    direct: bool,
    bytes: usize,
    total: usize,
    costs: &mut Costs,
) -> io::Result<()> {
    let file = prepared(path, before, total)?;
    let flags = if direct { OFlags::DIRECT.bits().cast_signed() } else { 0 };
    let writer = OpenOptions::new().write(true).custom_flags(flags).open(path)?;
    // Aligned to a page, as direct writes need it.
    let mut buffer = vec![7; bytes + PAGE];
    let lead = buffer.as_ptr().align_offset(PAGE);
    for (at, byte) in buffer.iter_mut().enumerate() {
        *byte = (at * 7919 / 13) as u8;
    }
    let begin = processor_seconds();
    for at in (0..total).step_by(bytes) {
        let begin = Instant::now();
        writer.write_all_at(&buffer[lead..lead + bytes], at as u64)?;
        fdatasync(&writer)?;
        costs.flush.push(begin.elapsed().as_secs_f64());
    }
    costs.processor.push((processor_seconds() - begin) / (total / bytes) as f64);
    drop(file);
    std::fs::remove_file(path)
}

fn prepared(path: &Path, before: Before, total: usize) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    if !matches!(before, Before::Nothing) {
        fallocate(&file, FallocateFlags::empty(), 0, total as u64)?;
    }
    if matches!(before, Before::Zeros) {
        let zeros = vec![0; 1 << 20];
        for at in (0..total).step_by(zeros.len()) {
            file.write_all_at(&zeros, at as u64)?;
        }
    }
    file.sync_all()?;
    Ok(file)
}

/// Processor time of this thread, which other load on the machine does not change.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

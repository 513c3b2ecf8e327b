//! Speed of plain sequential writes with fdatasync: the limit of any journal.

use super::latency::{Latencies, Summary};
use rustix::fs::fdatasync;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Size of the file that is overwritten repeatedly.
const FILE_BYTES: u64 = 256 << 20;

/// The result.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskSpeed {
    /// Bytes of each write.
    pub flush_bytes: u64,
    /// Writes with fdatasync per second.
    pub flushes_per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Latency of a write with fdatasync.
    pub latency: Option<Summary>,
}

/// Writes `flush_bytes` at a time for `span`, sequentially and through the page cache, with fdatasync
/// after each, to a zeroed file in `folder`. That is the most favourable case: a growing or merely
/// allocated file has metadata to write with each flush.
pub fn measure(folder: &Path, flush_bytes: u64, span: Duration) -> io::Result<DiskSpeed> {
    let flush_bytes = flush_bytes.clamp(512, FILE_BYTES);
    let path = folder.join(format!("angarium-bench-disk-{}", std::process::id()));
    let outcome = write_for(&path, flush_bytes, span);
    fs::remove_file(&path)?;
    outcome
}

fn write_for(path: &Path, flush_bytes: u64, span: Duration) -> io::Result<DiskSpeed> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let zeros = vec![0; 1 << 20];
    for at in (0..FILE_BYTES).step_by(zeros.len()) {
        file.write_all_at(&zeros, at)?;
    }
    file.sync_all()?;
    // Incompressible, in case the storage compresses.
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let block: Vec<u8> = (0..flush_bytes)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    let mut latencies = Latencies::default();
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < span {
        let before = Instant::now();
        file.write_all_at(&block, count % (FILE_BYTES / flush_bytes) * flush_bytes)?;
        fdatasync(&file)?;
        latencies.record(before.elapsed().as_nanos() as u64);
        count += 1;
    }
    let flushes_per_s = count as f64 / start.elapsed().as_secs_f64();
    Ok(DiskSpeed {
        flush_bytes,
        flushes_per_s,
        bytes_per_s: flushes_per_s * flush_bytes as f64,
        latency: latencies.summary(),
    })
}

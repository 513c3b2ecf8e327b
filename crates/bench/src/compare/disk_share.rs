//! Bytes of message bodies per second in relation to plain writes on the same disk, measured in turn.

use super::runs::rate_of;
use super::side::{OURS, administration, text};
use super::table::{Check, Section, median};
use crate::load::Outcome;
use crate::measure::disk::{self, DiskSpeed};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long plain writes are measured after each run of the load.
const SPAN: Duration = Duration::from_secs(2);

/// Flushes and bytes that our journal has flushed since it was opened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Flushed {
    flushes: f64,
    bytes: f64,
}

/// One run of the load, and plain writes of the same flush size right after it.
pub(super) struct Share {
    flush_bytes: u64,
    plain: DiskSpeed,
    journal_bytes: f64,
}

impl Flushed {
    /// Reads the metrics of our broker from the socket in its data folder.
    pub(super) fn of_ours(folder: &Path) -> Result<Flushed, String> {
        let mut socket = UnixStream::connect(administration(folder)).map_err(text)?;
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        socket.write_all(request.as_bytes()).map_err(text)?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).map_err(text)?;
        Flushed::parse(&answer).ok_or_else(|| "the metrics do not tell of flushes".to_owned())
    }

    pub(super) fn parse(metrics: &str) -> Option<Flushed> {
        let value = |name: &str| {
            let mut values = metrics.lines().filter_map(|line| line.strip_prefix(name));
            values.find_map(|value| value.strip_prefix(' ')?.trim().parse().ok())
        };
        Some(Flushed {
            flushes: value("angarium_journal_flushes_total")?,
            bytes: value("angarium_journal_flushed_bytes_total")?,
        })
    }
}

impl Share {
    /// Measures plain writes of the mean flush between `before` and `after`.
    pub(super) fn measure(folder: &Path, before: Flushed, after: Flushed) -> Result<Share, String> {
        let journal_bytes = after.bytes - before.bytes;
        let mean = journal_bytes / (after.flushes - before.flushes).max(1.0);
        let flush_bytes = (mean as u64).next_multiple_of(4096).max(4096);
        let plain = disk::measure(folder, flush_bytes, SPAN).map_err(text)?;
        Ok(Share { flush_bytes, plain, journal_bytes })
    }
}

/// Adds the shares to a section: bytes of bodies confirmed (and, where they are consumed, delivered) per
/// second over bytes of plain writes per second, each pair measured one after the other. Padding, framing and
/// acknowledgements do not count for the broker.
pub(super) fn judge(
    section: &mut Section,
    outcomes: &[Outcome],
    shares: &[Share],
    body_bytes: usize,
    least: f64,
) {
    let of = |value: fn(&Share) -> f64| median(shares.iter().map(value));
    let limit = format!(
        "{:.0} flushes/s, {:.1} MB/s at {:.0} KiB each",
        of(|it| it.plain.flushes_per_s),
        of(|it| it.plain.bytes_per_s) / 1e6,
        of(|it| it.flush_bytes as f64 / 1024.0),
    );
    section.value("plain disk", "same flush size", limit);
    let journal = of(|it| it.journal_bytes) / 1e6;
    section.value(OURS, "flushed in a run", format!("{journal:.0} MB"));
    let bodies = outcomes.iter().map(|it| rate_of(it) * body_bytes as f64);
    let share = median(bodies.zip(shares).map(|(bodies, share)| bodies / share.plain.bytes_per_s));
    section.check(Check::at_least("of the plain disk's bytes/s in bodies", share, least));
}

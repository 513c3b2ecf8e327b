//! Runs of a queue's index that were left to the journal: what the record holds, and what memory
//! keeps of it.

use super::entry::{Entry, Fetch, NEVER};
use crate::storage::codec::{Malformed, Reader, Writer};
use crate::{Position, Time};

const DURABLE: u8 = 1;
const REDELIVERED: u8 = 2;
const EXPIRES: u8 = 4;
const REQUEUED: u8 = 8;

/// What memory keeps of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// Where its record is.
    pub(crate) position: Position,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Messages in it that are still in the queue.
    pub(crate) count: u32,
    /// Body bytes of those.
    pub(crate) bytes: u64,
    /// Those that survive a restart.
    pub(crate) durable_count: u32,
    pub(crate) durable_bytes: u64,
    /// When the last of them has expired.
    pub(crate) expired_by: Time,
    /// How many messages lie in which segment.
    pub(crate) segments: Vec<SegmentCount>,
    /// It comes from before a restart: what was not durable in it is gone.
    pub(crate) recovered: bool,
    pub(crate) fetch: Fetch,
}

/// How many of a page's messages one segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentCount {
    pub(crate) segment: u32,
    pub(crate) durable: u32,
    pub(crate) transient: u32,
}

impl Page {
    /// Sums up entries, which will be in the record at `position`.
    pub(crate) fn of(position: Position, entries: &[Entry]) -> Page {
        let mut page = Page {
            position,
            first: entries.first().map_or(0, |entry| entry.seq),
            last: entries.last().map_or(0, |entry| entry.seq),
            ..Page::default()
        };
        for entry in entries {
            page.count += 1;
            page.bytes += u64::from(entry.bytes);
            if entry.durable {
                page.durable_count += 1;
                page.durable_bytes += u64::from(entry.bytes);
            }
            page.expired_by = page.expired_by.max(entry.expires);
            page.count_segment(entry);
        }
        page
    }

    pub(crate) fn is_unreadable(&self) -> bool {
        self.fetch == Fetch::Failed
    }

    /// Whether the message of that number, which its record names, is still in it. After recovery the
    /// end may have been cut off.
    pub(crate) fn holds(&self, seq: u64) -> bool {
        (self.first..=self.last).contains(&seq)
    }

    fn count_segment(&mut self, entry: &Entry) {
        let segment = entry.position.segment();
        let known = self.segments.iter().rposition(|count| count.segment == segment);
        let index = known.unwrap_or(self.segments.len());
        if known.is_none() {
            self.segments.push(SegmentCount { segment, durable: 0, transient: 0 });
        }
        let count = &mut self.segments[index];
        if entry.durable {
            count.durable += 1;
        } else {
            count.transient += 1;
        }
    }
}

/// Appends entries, each as the difference to the one before it.
pub(crate) fn write_entries(writer: &mut Writer<'_>, entries: &[Entry]) {
    writer.varint(entries.len() as u64);
    let (mut seq, mut position) = (0_u64, 0_u64);
    for entry in entries {
        let flags = u8::from(entry.durable) * DURABLE
            + u8::from(entry.redelivered) * REDELIVERED
            + u8::from(entry.expires != NEVER) * EXPIRES
            + u8::from(entry.requeues != 0) * REQUEUED;
        writer.u8(flags);
        writer.varint(entry.seq.wrapping_sub(seq));
        writer.varint(entry.position.0.wrapping_sub(position));
        writer.varint(entry.bytes.into());
        if entry.expires != NEVER {
            writer.u64(entry.expires.0);
        }
        if entry.requeues != 0 {
            writer.varint(entry.requeues.into());
        }
        (seq, position) = (entry.seq, entry.position.0);
    }
}

/// Reads what [`write_entries`] wrote; their lane and mark are the reader's to set.
pub(crate) fn read_entries(reader: &mut Reader<'_>) -> Result<Vec<Entry>, Malformed> {
    let count = reader.count()?;
    let mut entries = Vec::new();
    let (mut seq, mut position) = (0_u64, 0_u64);
    for index in 0..count {
        let flags = reader.u8()?;
        let step = reader.varint()?;
        if index > 0 && (step == 0 || seq.checked_add(step).is_none()) {
            return Err(format!("message {seq} is followed by none after it"));
        }
        seq = seq.wrapping_add(step);
        position = position.wrapping_add(reader.varint()?);
        let bytes = number(reader.varint()?)?;
        let expires = if flags & EXPIRES == 0 { NEVER } else { Time(reader.u64()?) };
        let requeues = if flags & REQUEUED == 0 { 0 } else { number(reader.varint()?)? };
        entries.push(Entry {
            seq,
            position: Position(position),
            expires,
            message: None,
            bytes,
            requeues,
            durable: flags & DURABLE != 0,
            redelivered: flags & REDELIVERED != 0,
            fetch: Fetch::Idle,
            lane: 0,
            mark: false,
        });
    }
    Ok(entries)
}

fn number(value: u64) -> Result<u32, Malformed> {
    u32::try_from(value).map_err(|_| format!("{value} is more than 32 bits"))
}

/// Appends what memory keeps of a page.
pub(crate) fn write_page(writer: &mut Writer<'_>, page: &Page) {
    writer.u64(page.position.0);
    writer.varint(page.first);
    writer.varint(page.last);
    writer.varint(page.durable_count.into());
    writer.varint(page.durable_bytes);
    writer.u64(page.expired_by.0);
    writer.varint(page.segments.len() as u64);
    for count in &page.segments {
        writer.varint(count.segment.into());
        writer.varint(count.durable.into());
    }
}

/// Reads what [`write_page`] wrote.
pub(crate) fn read_page(reader: &mut Reader<'_>) -> Result<Page, Malformed> {
    let position = Position(reader.u64()?);
    let (first, last) = (reader.varint()?, reader.varint()?);
    let count = number(reader.varint()?)?;
    let bytes = reader.varint()?;
    let expired_by = Time(reader.u64()?);
    let mut segments = Vec::new();
    for _ in 0..reader.count()? {
        let segment = number(reader.varint()?)?;
        let durable = number(reader.varint()?)?;
        segments.push(SegmentCount { segment, durable, transient: 0 });
    }
    if first > last {
        return Err(format!("a page from message {first} to {last}"));
    }
    Ok(Page {
        position,
        first,
        last,
        count,
        bytes,
        durable_count: count,
        durable_bytes: bytes,
        expired_by,
        segments,
        recovered: true,
        fetch: Fetch::Idle,
    })
}

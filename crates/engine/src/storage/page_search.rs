//! Makes a page whose record is lost anew, from the records of the messages in it.

use crate::interface::page_search::{FoundMessage, PageSearch};
use crate::queue::entry::{Entry, Fetch};
use crate::queue::stored::Stored;
use crate::storage::record::{Kind, Record};
use crate::{Position, Time};
use std::sync::Arc;

impl PageSearch {
    /// Takes a record in, if it is one of a message of the page. Of several of one message the last one in
    /// the journal counts.
    pub fn look(&mut self, position: Position, record: &[u8]) {
        const KINDS: [u8; 3] =
            [Kind::Published as u8, Kind::PublishedOnce as u8, Kind::Moved as u8];
        if !record.get(1).is_some_and(|kind| KINDS.contains(kind)) {
            return;
        }
        let Ok(
            Record::Published { places, message }
            | Record::PublishedOnce { places, message, .. }
            | Record::Moved { places, message },
        ) = Record::parse(record)
        else {
            return;
        };
        for place in places {
            if place.queue != self.queue || !self.seqs.contains(&place.seq) {
                continue;
            }
            let Ok(found) = FoundMessage::of(position, place.expires, message) else { return };
            let is_newer = |before: &FoundMessage| before.position < position;
            if found.priority.min(self.priority_max) == self.lane
                && self.found.get(&place.seq).is_none_or(is_newer)
            {
                self.found.insert(place.seq, found);
            }
        }
    }

    /// A page record with what was found; the answer to the [`Load`](crate::Load) with this search.
    #[must_use]
    pub fn record(self) -> Arc<[u8]> {
        let PageSearch { queue, lane, found, .. } = self;
        let entries = found.into_iter().map(|(seq, found)| found.entry(seq, lane)).collect();
        let mut record = Vec::new();
        Record::Page { queue, lane, durable: true, entries }.write(&mut record);
        record.into()
    }
}

impl FoundMessage {
    /// What the record at `position` says of its message in one queue.
    pub(super) fn of(position: Position, expires: Time, message: &[u8]) -> Result<Self, String> {
        let content = Stored::parse(message)?.content;
        let bytes = u32::try_from(content.body.len()).unwrap_or(u32::MAX);
        Ok(FoundMessage { position, expires, bytes, priority: content.priority })
    }

    /// Its place in its queue. Whether it was delivered before is not known.
    pub(super) fn entry(self, seq: u64, lane: u8) -> Entry {
        let FoundMessage { position, expires, bytes, .. } = self;
        Entry {
            seq,
            position,
            expires,
            message: None,
            bytes,
            requeues: 0,
            durable: true,
            redelivered: true,
            fetch: Fetch::Idle,
            lane,
            mark: false,
        }
    }
}

//! Tests on a disk in memory: a host that drives the journal and remembers what must be durable.

mod basics;
mod crash;
mod damage;
mod every_block;
mod faults;
mod golden;
mod rot;
mod tail_search;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::{FaultyStorage, Journal, Options, Position, ReadBuffer, Recovery, SharedRecord};

/// Small segments, so that a test fills many.
pub(super) fn small() -> Options {
    Options {
        segment_bytes: 64 << 10,
        checkpoint_bytes: 256 << 10,
        backlog_bytes_max: 1 << 20,
        ..Options::default()
    }
}

/// Opens a log and replays the number of each record (its first eight bytes) into a map.
pub(super) fn open(
    storage: &FaultyStorage,
    options: Options,
) -> Result<(Journal, BTreeMap<u64, Position>, bool), String> {
    let recovery = Recovery::open(storage, options)?;
    let clean = recovery.clean();
    let mut live = decode(recovery.snapshot().unwrap_or_default());
    let journal = recovery.replay(storage, |journal, position, record| {
        apply(&mut live, journal, position, record);
        Ok(())
    })?;
    Ok((journal, live, clean))
}

/// Reads records back, with a buffer of its own.
pub(super) fn read(
    journal: &Journal,
    positions: Vec<Position>,
    storage: &FaultyStorage,
) -> Result<Vec<Arc<[u8]>>, String> {
    journal.read(positions, false).run(storage, &mut ReadBuffer::default())
}

/// A record is a number and padding, or a settle: a number with the highest bit set.
pub(super) const SETTLE: u64 = 1 << 63;

fn apply(
    live: &mut BTreeMap<u64, Position>,
    journal: &mut Journal,
    position: Position,
    record: &[u8],
) {
    let number = u64::from_le_bytes(record[..8].try_into().unwrap());
    if number & SETTLE == 0 {
        assert_eq!(
            record,
            payload(number, record.len()),
            "record {number} is not what was written"
        );
        live.insert(number, position);
        journal.retain(position, 1);
    } else if let Some(position) = live.remove(&(number & !SETTLE)) {
        journal.release(position, 1);
    }
}

pub(super) fn payload(number: u64, length: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(length.max(8), number as u8 ^ 0x5a);
    bytes
}

pub(super) fn encode(live: &BTreeMap<u64, Position>) -> Vec<u8> {
    let pairs = live.iter().flat_map(|(number, position)| [*number, position.0]);
    pairs.flat_map(u64::to_le_bytes).collect()
}

fn decode(snapshot: &[u8]) -> BTreeMap<u64, Position> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let pairs = snapshot.chunks(16);
    pairs.map(|pair| (number(&pair[..8]), Position(number(&pair[8..])))).collect()
}

/// A journal and its host: which records are live, and the next number.
pub(super) struct Host {
    pub(super) journal: Journal,
    pub(super) live: BTreeMap<u64, Position>,
    pub(super) next: u64,
    /// The snapshot of a checkpoint that was begun.
    pub(super) begun: Option<Vec<u8>>,
}

impl Host {
    pub(super) fn open(storage: &FaultyStorage, options: Options) -> Result<Host, String> {
        let (journal, live, _) = open(storage, options)?;
        let next = live.keys().next_back().map_or(1, |last| last + 1);
        Ok(Host { journal, live, next, begun: None })
    }
    pub(super) fn publish(&mut self, length: usize, durable: bool) -> (u64, Position) {
        let number = self.next;
        self.next += 1;
        let position = self.append(number, &payload(number, length), durable);
        self.journal.retain(position, 1);
        self.live.insert(number, position);
        (number, position)
    }
    /// Every third record has a shared part.
    fn append(&mut self, number: u64, record: &[u8], durable: bool) -> Position {
        if !number.is_multiple_of(3) {
            return self.journal.append(&[record], durable);
        }
        let (before, rest) = record.split_at(8);
        let (shared, after) = rest.split_at(rest.len() / 2);
        let shared = Bytes::copy_from_slice(shared);
        let record = SharedRecord { before: &[before], shared: &shared, after };
        self.journal.append_shared(record, durable)
    }
    pub(super) fn settle(&mut self, number: u64) -> Position {
        let position = self.live.remove(&number).unwrap();
        self.journal.release(position, 1);
        self.journal.append(&[&(number | SETTLE).to_le_bytes()], true)
    }
    /// Runs jobs until there are none.
    pub(super) fn run(&mut self, storage: &FaultyStorage) {
        while let Some(job) = self.journal.next_job() {
            let done = job.run(storage);
            self.journal.finished(done);
        }
    }
    pub(super) fn checkpoint(&mut self) {
        self.begun = None;
        self.journal.begin_checkpoint();
        self.journal.finish_checkpoint(vec![encode(&self.live)]);
    }
    pub(super) fn begin_checkpoint(&mut self) {
        self.begun = Some(encode(&self.live));
        self.journal.begin_checkpoint();
    }
    /// Hands the snapshot in as pieces, one of them empty.
    pub(super) fn finish_checkpoint(&mut self) {
        let Some(snapshot) = self.begun.take() else { return };
        let (first, second) = snapshot.split_at(snapshot.len() / 3);
        self.journal.finish_checkpoint(vec![first.to_vec(), Vec::new(), second.to_vec()]);
    }
    pub(super) fn checkpoint_if_due(&mut self) {
        if self.journal.checkpoint_due() {
            self.checkpoint();
        }
    }
}

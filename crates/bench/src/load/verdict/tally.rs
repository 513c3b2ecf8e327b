//! The messages that a consumer received, and the verdict over all consumers. Independent of sockets.

use super::bit_runs::{self, GAP_MAX};
use crate::load::stamp::{IDENTITY_BYTES, Stamp};
use serde::{Deserialize, Serialize};

/// What one consumer received of one producer: one bit per message.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Seen {
    #[serde(with = "bit_runs")]
    bits: Vec<u64>,
    /// First deliveries marked as redelivered: another consumer may have had them before.
    #[serde(with = "bit_runs")]
    marked: Vec<u64>,
    next: u64,
    duplicated: u64,
    redelivered: u64,
    reordered: u64,
    foreign: u64,
}

impl Seen {
    #[inline]
    pub(super) fn record(&mut self, sequence: u64, redelivered: bool) -> bool {
        if sequence >= self.next.saturating_add(GAP_MAX) {
            self.foreign += 1;
            return false;
        }
        let (word, bit) = ((sequence / 64) as usize, 1 << (sequence % 64));
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        let before = self.bits[word];
        self.bits[word] = before | bit;
        if redelivered {
            self.redelivered += 1;
            if before & bit == 0 {
                self.marked.resize(self.marked.len().max(word + 1), 0);
                self.marked[word] |= bit;
            }
            self.next = self.next.max(sequence + 1);
        } else if sequence >= self.next {
            self.next = sequence + 1;
        } else if before & bit != 0 {
            self.duplicated += 1;
        } else {
            self.reordered += 1;
        }
        before & bit == 0
    }

    fn merge(&mut self, other: &Seen) {
        self.bits.resize(self.bits.len().max(other.bits.len()), 0);
        self.marked.resize(self.marked.len().max(other.marked.len()), 0);
        for (word, (mine, theirs)) in self.bits.iter_mut().zip(&other.bits).enumerate() {
            let marked = |seen: &Vec<u64>| seen.get(word).copied().unwrap_or(0);
            // A message at two consumers of a queue is a duplicate unless one delivery is marked.
            let twice = *mine & theirs & !(marked(&self.marked) | marked(&other.marked));
            self.duplicated += u64::from(twice.count_ones());
            *mine |= theirs;
        }
        for (mine, theirs) in self.marked.iter_mut().zip(&other.marked) {
            *mine |= theirs;
        }
        self.next = self.next.max(other.next);
        self.duplicated += other.duplicated;
        self.redelivered += other.redelivered;
        self.reordered += other.reordered;
        self.foreign += other.foreign;
    }

    fn has(&self, sequence: u64) -> bool {
        let word = self.bits.get((sequence / 64) as usize);
        word.is_some_and(|word| word >> (sequence % 64) & 1 == 1)
    }

    fn count_below(&self, published: u64) -> u64 {
        let whole = (published / 64) as usize;
        let mut count: u64 =
            self.bits.iter().take(whole).map(|word| u64::from(word.count_ones())).sum();
        if let Some(word) = self.bits.get(whole) {
            count += u64::from((word & ((1 << (published % 64)) - 1)).count_ones());
        }
        count
    }

    fn count(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// What one consumer received of all producers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tally {
    producers: Vec<Seen>,
    foreign: u64,
    corrupt: u64,
    /// Deliveries too short for a stamp.
    bare: u64,
}

impl Tally {
    /// A tally for a run with this many producers.
    pub fn new(producers: usize) -> Tally {
        Tally { producers: vec![Seen::default(); producers], foreign: 0, corrupt: 0, bare: 0 }
    }

    /// Notes one delivery. Returns whether it is the first one of a known producer's message.
    #[inline]
    pub fn record(&mut self, stamp: &Stamp, redelivered: bool) -> bool {
        match self.producers.get_mut(stamp.producer as usize) {
            Some(seen) => return seen.record(stamp.sequence, redelivered),
            None => self.foreign += 1,
        }
        false
    }

    /// Notes a delivery that is too short for a stamp.
    #[inline]
    pub fn record_bare(&mut self) {
        self.bare += 1;
    }

    /// Notes a delivery with a wrong checksum or length.
    pub fn record_corrupt(&mut self) {
        self.corrupt += 1;
    }

    /// Adds what another consumer of the same queue received.
    pub fn merge(&mut self, other: &Tally) {
        for (mine, theirs) in self.producers.iter_mut().zip(&other.producers) {
            mine.merge(theirs);
        }
        self.foreign += other.foreign;
        self.corrupt += other.corrupt;
        self.bare += other.bare;
    }
}

/// How closely messages were checked.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Checked {
    /// Too short for a stamp: losses and duplicates show in the count alone.
    #[default]
    Counted,
    /// By producer and number.
    Identities,
    /// By producer and number, with a checksum over the whole body.
    Checksums,
}

impl Checked {
    /// How closely messages of this size can be checked.
    pub(in crate::load) fn of(size_bytes: usize, checksum: bool) -> Checked {
        match size_bytes {
            0..IDENTITY_BYTES => Checked::Counted,
            _ if checksum => Checked::Checksums,
            _ => Checked::Identities,
        }
    }

    /// The name to display.
    pub fn name(self) -> &'static str {
        match self {
            Checked::Counted => "counted only",
            Checked::Identities => "by their numbers",
            Checked::Checksums => "by checksums",
        }
    }
}

/// What happened to the messages of a run, over all queues.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// How closely they were checked.
    pub checked: Checked,
    /// Expected deliveries: published messages times the queues each went to.
    pub expected: u64,
    /// Expected messages that arrived at least once.
    pub delivered: u64,
    /// Expected messages that did not arrive until the end of the run.
    pub lost: u64,
    /// Deliveries beyond the first that were not marked as redelivered.
    pub duplicated: u64,
    /// Deliveries marked as redelivered, which may be repeated and out of order.
    pub redelivered: u64,
    /// Messages that arrived after a later one of the same producer at the same consumer.
    pub reordered: u64,
    /// Deliveries that were never published.
    pub invented: u64,
    /// Deliveries with a wrong checksum or length.
    pub corrupt: u64,
}

impl Verdict {
    /// An empty verdict on messages that are checked this closely.
    pub(crate) fn new(checked: Checked) -> Verdict {
        Verdict { checked, ..Verdict::default() }
    }

    /// Adds one queue: what its consumers received, and how many messages each producer published to it.
    pub fn add_queue(&mut self, tally: &Tally, published: &[u64]) {
        if tally.bare > 0 {
            return self.add_bare(tally, published.iter().sum());
        }
        for (seen, &published) in tally.producers.iter().zip(published) {
            let delivered = seen.count_below(published);
            self.add_deliveries(published, delivered);
            self.add_faults(seen, delivered);
        }
        self.invented += tally.foreign;
        self.corrupt += tally.corrupt;
    }

    fn add_deliveries(&mut self, expected: u64, delivered: u64) {
        self.expected += expected;
        self.delivered += delivered;
        self.lost += expected - delivered;
    }

    /// Adds the faults of one producer, of whose published messages `arrived` were delivered.
    fn add_faults(&mut self, seen: &Seen, arrived: u64) {
        self.duplicated += seen.duplicated;
        self.redelivered += seen.redelivered;
        self.reordered += seen.reordered;
        self.invented += seen.foreign + (seen.count() - arrived);
    }

    /// Adds a queue whose one producer published until the broker was killed: the messages that were
    /// `confirmed` must be there. Returns how many others are, which is allowed.
    pub fn add_confirmed(&mut self, tally: &Tally, producer: usize, confirmed: &[bool]) -> u64 {
        let count = confirmed.iter().filter(|yes| **yes).count() as u64;
        self.corrupt += tally.corrupt;
        self.invented += tally.foreign;
        let (mut kept, mut others) = (tally.bare.min(count), tally.bare.saturating_sub(count));
        for (index, seen) in tally.producers.iter().enumerate() {
            let sent = if index == producer { confirmed.len() as u64 } else { 0 };
            let (arrived, is_there) = (seen.count_below(sent), |it: &u64| seen.has(*it));
            let wanted = (0..sent).zip(confirmed).filter(|(_, yes)| **yes);
            let kept_here = wanted.map(|(sequence, _)| sequence).filter(is_there).count() as u64;
            kept += kept_here;
            others += arrived - kept_here;
            self.add_faults(seen, arrived);
        }
        self.add_deliveries(count, kept);
        others
    }

    /// Adds a subscriber that came and left while one producer published: every message from its first
    /// to its last must have arrived.
    pub fn add_stretch(&mut self, tally: &Tally, published: u64) {
        let Some(seen) = tally.producers.first().filter(|_| tally.bare == 0) else {
            // Unidentified messages cannot be checked for gaps.
            return self.add_bare(tally, tally.bare);
        };
        let delivered = seen.count_below(published);
        let mut arrived = (0..published.min(seen.next)).filter(|sequence| seen.has(*sequence));
        let first = arrived.next().unwrap_or(0);
        let expected = arrived.next_back().map_or(delivered, |last| last + 1 - first);
        self.add_deliveries(expected, delivered);
        self.add_faults(seen, delivered);
        self.invented += tally.foreign;
        self.corrupt += tally.corrupt;
    }

    fn add_bare(&mut self, tally: &Tally, published: u64) {
        self.add_deliveries(published, tally.bare.min(published));
        self.duplicated += tally.bare.saturating_sub(published);
        self.corrupt += tally.corrupt;
    }

    /// The counts that are not zero, as text.
    pub fn describe(&self) -> String {
        let mut text = format!("{} of {} delivered", self.delivered, self.expected);
        let faults = [
            (self.lost, "lost"),
            (self.duplicated, "duplicated"),
            (self.reordered, "reordered"),
            (self.corrupt, "corrupted"),
            (self.invented, "invented"),
            (self.redelivered, "redelivered"),
        ];
        for (count, what) in faults.into_iter().filter(|(count, _)| *count > 0) {
            text += &format!(", {count} {what}");
        }
        text
    }

    /// Adds the counts of another part of the same run.
    pub fn add(&mut self, other: &Verdict) {
        self.expected += other.expected;
        self.delivered += other.delivered;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.redelivered += other.redelivered;
        self.reordered += other.reordered;
        self.invented += other.invented;
        self.corrupt += other.corrupt;
    }

    /// Together with another part of the same run.
    pub fn with(mut self, other: &Verdict) -> Verdict {
        self.add(other);
        self
    }

    /// Whether everything arrived once, in order and undamaged.
    pub fn is_clean(&self) -> bool {
        self.lost + self.duplicated + self.reordered + self.invented + self.corrupt == 0
    }
}

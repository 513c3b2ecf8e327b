//! A member of a consumer group: which command it sends next. Independent of sockets.

use super::codec::{self, Claimed, EXEC, Id, MULTI};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long a stream read blocks, in milliseconds. A blocked server connection processes no further
/// commands, so acknowledgements sent meanwhile wait as long.
const BLOCK_MS: u64 = 100;
/// Entries per read where unacknowledged deliveries are unlimited.
const COUNT_MAX: u64 = 1_000;
/// Upper bound of the body bytes of one read, estimated from earlier entries: a server holds the whole
/// reply in memory.
const READ_BYTES: usize = 4 << 20;
/// Assumed body size before the first entry.
const FIRST_BYTES: usize = 256 * 1024;
/// Messages between two trims of the stream.
const TRIM_EVERY: u64 = 4_096;
/// How long another member must have held an entry, in milliseconds, before it is claimed: a live member
/// acknowledges or reads again within a few times [`BLOCK_MS`].
const CLAIM_IDLE_MS: u64 = 1_000;
/// In a series of empty reads, the first and then every tenth is followed by a claim.
const CLAIM_EVERY: u64 = 10;
/// Where a round of claims begins, and the continuation that ends one.
const NOWHERE: &[u8] = b"0-0";

/// Trims entries that every group has read and acknowledged; a stream keeps its entries otherwise. Trims
/// whole nodes only (`~`), which costs little per entry.
const TRIM: &[u8] = b"local low, low_ms, low_seq
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local name, id
  for at = 1, #group, 2 do
    if group[at] == 'name' then name = group[at + 1] end
    if group[at] == 'last-delivered-id' then id = group[at + 1] end
  end
  local pending = redis.call('XPENDING', KEYS[1], name)
  if pending[1] > 0 then id = pending[2] end
  local ms, seq = string.match(id, '(%d+)-(%d+)')
  ms, seq = tonumber(ms), tonumber(seq)
  if not low or ms < low_ms or ms == low_ms and seq < low_seq then
    low, low_ms, low_seq = id, ms, seq
  end
end
return low and redis.call('XTRIM', KEYS[1], 'MINID', '~', low) or 0";

/// Counter for consumer names.
static CONSUMERS: AtomicU64 = AtomicU64::new(0);

/// The outstanding command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Entries,
    Claim,
    /// A claim whose entries are arriving; identifiers of deleted entries may follow.
    Claimed {
        names_gone: bool,
    },
    /// The identifiers of a claim's deleted entries are next.
    Gone,
}

/// A member of a group.
#[derive(Debug)]
pub(super) struct GroupConsumer {
    stream: String,
    group: String,
    /// XREADGROUP up to its count, encoded.
    read_head: Vec<u8>,
    /// XREADGROUP after its count, encoded.
    read_tail: Vec<u8>,
    name: String,
    acknowledges: bool,
    /// Limit on unacknowledged entries.
    count_max: u64,
    unacked: VecDeque<(u64, Id)>,
    asked: Asked,
    /// No further reads are sent.
    ending: bool,
    /// Size of the last body.
    size: usize,
    since_trim: u64,
    /// Empty reads since the last entry.
    idle_reads: u64,
    /// Where the next claim begins, if a claim is due instead of a read.
    claim_from: Option<Id>,
}

impl GroupConsumer {
    /// A member with a unique consumer name.
    pub(super) fn new(stream: &str, group: &str, auto_ack: bool, prefetch: u16) -> GroupConsumer {
        let number = CONSUMERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("bench-{}-{number}", std::process::id());
        let (mut read_head, mut read_tail) = (Vec::new(), Vec::new());
        let words: [&[u8]; 7] = [
            b"XREADGROUP",
            b"GROUP",
            group.as_bytes(),
            name.as_bytes(),
            b"BLOCK",
            &BLOCK_MS.to_string().into_bytes(),
            b"COUNT",
        ];
        codec::write_head(&mut read_head, words.len() + 4 + usize::from(auto_ack));
        words.iter().for_each(|word| codec::write_bulk(&mut read_head, word));
        if auto_ack {
            codec::write_bulk(&mut read_tail, b"NOACK");
        }
        for word in [&b"STREAMS"[..], stream.as_bytes(), b">"] {
            codec::write_bulk(&mut read_tail, word);
        }
        GroupConsumer {
            stream: stream.to_owned(),
            group: group.to_owned(),
            read_head,
            read_tail,
            name,
            acknowledges: !auto_ack,
            count_max: if prefetch == 0 { COUNT_MAX } else { u64::from(prefetch) },
            unacked: VecDeque::new(),
            asked: Asked::Nothing,
            ending: false,
            size: FIRST_BYTES,
            since_trim: 0,
            idle_reads: 0,
            claim_from: None,
        }
    }

    /// Notes an entry. Returns whether another member had it before.
    #[inline]
    pub(super) fn delivered(&mut self, tag: u64, id: Id, size: usize) -> bool {
        self.size = size;
        if self.acknowledges {
            self.unacked.push_back((tag, id));
        }
        self.since_trim += 1;
        self.idle_reads = 0;
        matches!(self.asked, Asked::Claimed { .. })
    }

    /// Appends an acknowledgement of a delivery; with `multiple`, of all up to it.
    pub(super) fn acknowledge(
        &mut self,
        tag: u64,
        multiple: bool,
        transacted: bool,
        out: &mut Vec<u8>,
    ) {
        let is_covered = |number: u64| number == tag || multiple && number < tag;
        let count = self.unacked.iter().take_while(|(number, _)| is_covered(*number)).count();
        if count == 0 {
            return;
        }
        if transacted {
            out.extend_from_slice(MULTI);
        }
        codec::write_head(out, 3 + count);
        for word in [&b"XACK"[..], self.stream.as_bytes(), self.group.as_bytes()] {
            codec::write_bulk(out, word);
        }
        for (_, id) in self.unacked.drain(..count) {
            codec::write_bulk(out, id.as_bytes());
        }
        if transacted {
            out.extend_from_slice(EXEC);
        }
    }

    /// Appends the next command, unless one is outstanding or the limit on unacknowledged entries is
    /// reached.
    pub(super) fn read(&mut self, out: &mut Vec<u8>) {
        let count = self.count_max.saturating_sub(self.unacked.len() as u64);
        let count = count.min((READ_BYTES / self.size.max(1)).max(1) as u64);
        if self.asked != Asked::Nothing || self.ending || count == 0 {
            return;
        }
        if let Some(from) = self.claim_from.take() {
            self.claim(from, count, out);
            return;
        }
        if self.since_trim >= TRIM_EVERY {
            self.since_trim = 0;
            codec::write(out, [&b"EVAL"[..], TRIM, b"1", self.stream.as_bytes()].into_iter());
        }
        out.extend_from_slice(&self.read_head);
        codec::write_number_bulk(out, count);
        out.extend_from_slice(&self.read_tail);
        self.asked = Asked::Entries;
    }

    /// Appends a claim of entries that other members have held for long without acknowledging them.
    fn claim(&mut self, from: Id, count: u64, out: &mut Vec<u8>) {
        codec::write_head(out, 8);
        for word in [&b"XAUTOCLAIM"[..], self.stream.as_bytes(), self.group.as_bytes()] {
            codec::write_bulk(out, word);
        }
        codec::write_bulk(out, self.name.as_bytes());
        codec::write_number_bulk(out, CLAIM_IDLE_MS);
        codec::write_bulk(out, from.as_bytes());
        codec::write_bulk(out, b"COUNT");
        codec::write_number_bulk(out, count);
        self.asked = Asked::Claim;
    }

    /// Sends no further reads.
    pub(super) fn end(&mut self) {
        self.ending = true;
    }

    /// A read was empty: another member may hold entries that it will never acknowledge.
    pub(super) fn found_nothing(&mut self) {
        if self.acknowledges && self.idle_reads.is_multiple_of(CLAIM_EVERY) {
            self.claim_from = Id::new(NOWHERE);
        }
        self.idle_reads += 1;
    }

    /// Whether the next read will be a claim.
    #[cfg(test)]
    pub(super) fn is_claim_due(&self) -> bool {
        self.claim_from.is_some()
    }

    /// Whether the next reply is the head or the tail of a claim's.
    #[inline]
    pub(super) fn is_claiming(&self) -> bool {
        matches!(self.asked, Asked::Claim | Asked::Gone)
    }

    /// Whether the tail of a claim's reply is next.
    pub(super) fn awaits_gone(&self) -> bool {
        self.asked == Asked::Gone
    }

    /// The head of a claim's reply arrived.
    pub(super) fn claims(&mut self, claimed: &Claimed) {
        self.asked = Asked::Claimed { names_gone: claimed.names_gone };
        self.claim_from = Some(claimed.next).filter(|next| next.as_bytes() != NOWHERE);
    }

    /// All entries of a reply arrived.
    #[inline]
    pub(super) fn answered(&mut self) {
        self.asked = match self.asked {
            Asked::Claimed { names_gone: true } => Asked::Gone,
            _ => Asked::Nothing,
        };
    }

    /// A claim's reply is complete.
    pub(super) fn claimed(&mut self) {
        self.asked = Asked::Nothing;
    }
}

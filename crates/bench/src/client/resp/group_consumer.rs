//! A member of a group that consumes a stream: what it asks for next. Knows no sockets.

use super::codec::{self, Claimed, EXEC, Id, MULTI};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long a read of a stream waits, in milliseconds. Acknowledgements sent meanwhile wait with it:
/// a server takes nothing more of a connection that it blocks.
const BLOCK_MS: u64 = 100;
/// Entries of a read where no limit on unacknowledged ones is asked for.
const COUNT_MAX: u64 = 1_000;
/// Octets of bodies that one read is to bring at most, as far as the entries before tell: a server keeps
/// the whole answer in its memory.
const READ_BYTES: usize = 4 << 20;
/// What bodies are taken for before the first has come.
const FIRST_BYTES: usize = 256 * 1024;
/// Messages after which a consumer has what all groups are done with taken out of its stream.
const TRIM_EVERY: u64 = 4_096;
/// How long an entry must lie with another member, in milliseconds, to be claimed: one that is there
/// acknowledges or reads on within a few times [`BLOCK_MS`].
const CLAIM_IDLE_MS: u64 = 1_000;
/// Of reads that find nothing, one after the other, the first and then each so manieth is followed by a
/// claim.
const CLAIM_EVERY: u64 = 10;
/// Where the first of a round of claims begins, and what the last of them names as the next.
const NOWHERE: &[u8] = b"0-0";

/// Takes out of a stream what every group has read and acknowledged: a stream keeps its entries until
/// somebody does. Whole nodes only (`~`), which costs next to nothing for each entry.
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

/// Numbers consumers.
static CONSUMERS: AtomicU64 = AtomicU64::new(0);

/// What was asked for and is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Entries,
    Claim,
    /// Its entries are coming; behind them those that are gone may be named.
    Claimed {
        names_gone: bool,
    },
    /// They are next.
    Gone,
}

/// A member of a group.
#[derive(Debug)]
pub(super) struct GroupConsumer {
    stream: String,
    group: String,
    /// XREADGROUP up to its count, and behind it.
    read: (Vec<u8>, Vec<u8>),
    name: String,
    acknowledges: bool,
    /// Unacknowledged entries at most.
    count_max: u64,
    unacked: VecDeque<(u64, Id)>,
    asked: Asked,
    /// No further read is sent.
    ending: bool,
    /// Octets of the last body.
    size: usize,
    since_trim: u64,
    /// Reads since the last that found something.
    idle_reads: u64,
    /// Where the next claim begins, if one is to be sent instead of the next read.
    claim_from: Option<Id>,
}

impl GroupConsumer {
    /// Of this process, under a name that nobody else has.
    pub(super) fn new(stream: &str, group: &str, auto_ack: bool, prefetch: u16) -> GroupConsumer {
        let number = CONSUMERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("bench-{}-{number}", std::process::id());
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        let words: [&[u8]; 7] = [
            b"XREADGROUP",
            b"GROUP",
            group.as_bytes(),
            name.as_bytes(),
            b"BLOCK",
            &BLOCK_MS.to_string().into_bytes(),
            b"COUNT",
        ];
        codec::write_head(&mut before, words.len() + 4 + usize::from(auto_ack));
        words.iter().for_each(|word| codec::write_bulk(&mut before, word));
        if auto_ack {
            codec::write_bulk(&mut behind, b"NOACK");
        }
        for word in [&b"STREAMS"[..], stream.as_bytes(), b">"] {
            codec::write_bulk(&mut behind, word);
        }
        GroupConsumer {
            stream: stream.to_owned(),
            group: group.to_owned(),
            read: (before, behind),
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

    /// Appends an acknowledgement of a delivery, or of all up to it.
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

    /// Appends the next read, unless one is under way or all that may be unacknowledged is.
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
        out.extend_from_slice(&self.read.0);
        codec::write_number_bulk(out, count);
        out.extend_from_slice(&self.read.1);
        self.asked = Asked::Entries;
    }

    /// Appends a claim of what others have had for long and not acknowledged.
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

    /// A read found nothing: nobody waits for this member, and something may wait for nobody.
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

    /// Whether a part of the answer to a claim is next that is no entry.
    #[inline]
    pub(super) fn is_claiming(&self) -> bool {
        matches!(self.asked, Asked::Claim | Asked::Gone)
    }

    /// Whether that is the end of it.
    pub(super) fn awaits_gone(&self) -> bool {
        self.asked == Asked::Gone
    }

    /// The answer to a claim has begun.
    pub(super) fn claims(&mut self, claimed: &Claimed) {
        self.asked = Asked::Claimed { names_gone: claimed.names_gone };
        self.claim_from = Some(claimed.next).filter(|next| next.as_bytes() != NOWHERE);
    }

    /// All entries of an answer have come.
    #[inline]
    pub(super) fn answered(&mut self) {
        self.asked = match self.asked {
            Asked::Claimed { names_gone: true } => Asked::Gone,
            _ => Asked::Nothing,
        };
    }

    /// The answer to a claim has ended.
    pub(super) fn claimed(&mut self) {
        self.asked = Asked::Nothing;
    }
}

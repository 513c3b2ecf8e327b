//! The checkpoint file: an opaque snapshot, the live references of each segment, where replay starts.
//!
//! ```text
//!  0      4        6        8       12      16       24          32        36       40
//!  | AGJC | version| unused | number| epoch | start  | sequence  | previous| count  | snapshot n|
//!  48: checksum u32, unused u32
//!  56: count * | segment u32 | unused u32 | bytes u64 | live u64 | total u64 |, then the snapshot
//! ```
//!
//! Only the newest checkpoint is kept. The older one is removed before any segment that it needs, so that
//! both are usable as long as both exist. A corrupt newest one still stops the start: it is never taken for
//! an empty broker, nor silently replaced by an older one.

use std::io;

use crate::files::{self, CLEAN_NAME};
use crate::format::{VERSION, u32_at, u64_at};
use crate::segments::Usage;
use crate::{Position, Storage, checksum};

const MAGIC: [u8; 4] = *b"AGJC";
const CLEAN_MAGIC: [u8; 4] = *b"AGJK";
const HEADER_BYTES: usize = 56;
const CHECKSUM_AT: usize = 48;
const ENTRY_BYTES: usize = 32;
const CLEAN_BYTES: usize = 16;

/// The end of the chain of blocks, which the next block refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Sequence number of the last block; 0 before the first.
    pub(crate) sequence: u64,
    /// Its checksum.
    pub(crate) checksum: u32,
}

/// A checkpoint without its snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) number: u32,
    pub(crate) epoch: u32,
    /// Replay starts here.
    pub(crate) start: Position,
    pub(crate) chain: Chain,
    pub(crate) segments: Vec<Usage>,
}

impl Checkpoint {
    pub(crate) fn encode(&self, snapshot: &[Vec<u8>]) -> Vec<u8> {
        let entries = self.segments.len() * ENTRY_BYTES;
        let snapshot_bytes: usize = snapshot.iter().map(Vec::len).sum();
        let mut out = vec![0; HEADER_BYTES];
        out.reserve_exact(entries + snapshot_bytes);
        out[0..4].copy_from_slice(&MAGIC);
        out[4..6].copy_from_slice(&VERSION.to_le_bytes());
        out[8..12].copy_from_slice(&self.number.to_le_bytes());
        out[12..16].copy_from_slice(&self.epoch.to_le_bytes());
        out[16..24].copy_from_slice(&self.start.0.to_le_bytes());
        out[24..32].copy_from_slice(&self.chain.sequence.to_le_bytes());
        out[32..36].copy_from_slice(&self.chain.checksum.to_le_bytes());
        out[36..40].copy_from_slice(&(self.segments.len() as u32).to_le_bytes());
        out[40..48].copy_from_slice(&(snapshot_bytes as u64).to_le_bytes());
        for usage in &self.segments {
            out.extend_from_slice(&u64::from(usage.id).to_le_bytes());
            out.extend_from_slice(&usage.bytes.to_le_bytes());
            out.extend_from_slice(&usage.live.to_le_bytes());
            out.extend_from_slice(&usage.total.to_le_bytes());
        }
        for piece in snapshot {
            out.extend_from_slice(piece);
        }
        let checksum = file_checksum(&out);
        out[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// The checkpoint and where in `bytes` its snapshot begins.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Checkpoint, usize), String> {
        if bytes.len() < HEADER_BYTES {
            return Err(format!("only {} bytes long", bytes.len()));
        }
        if bytes[0..4] != MAGIC {
            return Err("not a checkpoint".into());
        }
        let version = u16::from_le_bytes([bytes[4], bytes[5]]);
        if version != VERSION {
            return Err(format!("unknown format version {version}"));
        }
        if file_checksum(bytes) != u32_at(bytes, CHECKSUM_AT) {
            return Err("checksum wrong".into());
        }
        let entries = (u32_at(bytes, 36) as usize).saturating_mul(ENTRY_BYTES);
        let snapshot_at = HEADER_BYTES.saturating_add(entries);
        if bytes.len() as u64 != (snapshot_at as u64).saturating_add(u64_at(bytes, 40)) {
            return Err("length wrong".into());
        }
        let segments = bytes[HEADER_BYTES..snapshot_at]
            .chunks_exact(ENTRY_BYTES)
            .map(|entry| Usage {
                id: u32_at(entry, 0),
                bytes: u64_at(entry, 8),
                live: u64_at(entry, 16),
                total: u64_at(entry, 24),
            })
            .collect();
        let checkpoint = Checkpoint {
            number: u32_at(bytes, 8),
            epoch: u32_at(bytes, 12),
            start: Position(u64_at(bytes, 16)),
            chain: Chain { sequence: u64_at(bytes, 24), checksum: u32_at(bytes, 32) },
            segments,
        };
        Ok((checkpoint, snapshot_at))
    }
}

/// Checksum of a checkpoint file, without the four bytes that hold it.
fn file_checksum(bytes: &[u8]) -> u32 {
    let head = checksum::of(&bytes[..CHECKSUM_AT]);
    checksum::append(head, &bytes[CHECKSUM_AT + 4..])
}

/// Reads a whole small file.
pub(crate) fn read_file(storage: &dyn Storage, name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; storage.size(name)? as usize];
    storage.read(name, 0, &mut bytes)?;
    Ok(bytes)
}

/// The content of the file `clean` for a checkpoint.
pub(crate) fn clean_mark(number: u32, epoch: u32) -> [u8; CLEAN_BYTES] {
    let mut out = [0; CLEAN_BYTES];
    out[0..4].copy_from_slice(&CLEAN_MAGIC);
    out[4..8].copy_from_slice(&number.to_le_bytes());
    out[8..12].copy_from_slice(&epoch.to_le_bytes());
    let checksum = checksum::of(&out[..12]);
    out[12..].copy_from_slice(&checksum.to_le_bytes());
    out
}

/// Whether an orderly shutdown wrote this checkpoint. An unreadable mark counts as none: the log is then
/// searched as after a crash, which is always safe.
pub(crate) fn is_clean(storage: &dyn Storage, names: &[String], newest: &Checkpoint) -> bool {
    names.iter().any(|name| name == CLEAN_NAME)
        && read_file(storage, CLEAN_NAME)
            .is_ok_and(|mark| mark == clean_mark(newest.number, newest.epoch))
}

/// The newest checkpoint among the files, with its snapshot.
pub(crate) fn newest(
    storage: &dyn Storage,
    names: &[String],
) -> Result<Option<(Checkpoint, Vec<u8>)>, String> {
    let Some(number) = names.iter().filter_map(|name| files::parse_checkpoint_name(name)).max()
    else {
        return Ok(None);
    };
    let name = files::checkpoint_name(number);
    let mut bytes = read_file(storage, &name).map_err(|error| format!("{name}: {error}"))?;
    let (checkpoint, snapshot_at) =
        Checkpoint::decode(&bytes).map_err(|why| format!("{name} is corrupt: {why}"))?;
    if checkpoint.number != number {
        return Err(format!("{name} is corrupt: it says that it is number {}", checkpoint.number));
    }
    bytes.drain(..snapshot_at);
    Ok(Some((checkpoint, bytes)))
}

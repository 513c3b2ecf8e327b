//! The checkpoint file: an opaque snapshot, the live references of each segment, where replay starts.
//!
//! ```text
//!  0      4        6        8       12      16       24          32        36       40
//!  | AGJC | version| unused | number| epoch | start  | sequence  | previous| count  | snapshot n|
//!  48: checksum u32, unused u32
//!  56: count * | segment u32 | end u32 | bytes u64 | live u64 | total u64 |, then the snapshot
//! ```
//!
//! `end` is where the log left the segment: everything before it was blocks.
//!
//! A checkpoint is kept in two files of the same content, since everything rests on it. Both are read back
//! before those of the older one go, and these go before any segment that they need: as long as a
//! checkpoint is there, so is everything it needs. So whichever file is whole will do, an older
//! checkpoint's too, whose log leads to the same state. If none is, the start stops: it is never taken for
//! an empty broker.

use std::io;

use crate::batch::Buffer;
use crate::files::{self, CLEAN_NAME};
use crate::format::{self, BLOCK_ALIGN, VERSION, u32_at, u64_at};
use crate::segments::Usage;
use crate::{Position, Storage, checksum};

const MAGIC: [u8; 4] = *b"AGJC";
const CLEAN_MAGIC: [u8; 4] = *b"AGJK";
const HEADER_BYTES: usize = 56;
const CHECKSUM_AT: usize = 48;
const ENTRY_BYTES: usize = 32;
const CLEAN_BYTES: usize = 16;
/// Most pages in which two damaged copies differ and are still merged.
const MERGED_PAGES_MAX: usize = 8;
/// Bytes read back at a time.
const READ_BACK_BYTES: usize = 1 << 20;

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
    /// The whole file. Frees each piece once it is copied, so that the snapshot is in memory once and not
    /// twice; that takes long.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn encode(&self, snapshot: Vec<Vec<u8>>) -> io::Result<Vec<u8>> {
        let entries = self.segments.len() * ENTRY_BYTES;
        let snapshot_bytes: usize = snapshot.iter().map(Vec::len).sum();
        let mut out = Vec::new();
        out.try_reserve_exact(HEADER_BYTES + entries + snapshot_bytes)?;
        out.resize(HEADER_BYTES, 0);
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
            out.extend_from_slice(&usage.id.to_le_bytes());
            out.extend_from_slice(&usage.end.to_le_bytes());
            out.extend_from_slice(&usage.bytes.to_le_bytes());
            out.extend_from_slice(&usage.live.to_le_bytes());
            out.extend_from_slice(&usage.total.to_le_bytes());
        }
        for piece in snapshot {
            out.extend_from_slice(&piece);
        }
        let checksum = file_checksum(&out);
        out[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
        Ok(out)
    }

    /// The checkpoint and where in `bytes` its snapshot begins.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Checkpoint, usize), Unusable> {
        let damaged = |what: &str| Err(Unusable::Damaged(what.to_owned()));
        if bytes.len() < HEADER_BYTES {
            return Err(Unusable::Damaged(format!("it is only {} bytes long", bytes.len())));
        }
        if bytes[0..4] != MAGIC {
            return damaged("it does not begin as a checkpoint does");
        }
        if file_checksum(bytes) != u32_at(bytes, CHECKSUM_AT) {
            return damaged("its checksum is wrong");
        }
        let version = u16::from_le_bytes([bytes[4], bytes[5]]);
        if version != VERSION {
            return Err(Unusable::Version(version));
        }
        let entries = (u32_at(bytes, 36) as usize).saturating_mul(ENTRY_BYTES);
        let snapshot_at = HEADER_BYTES.saturating_add(entries);
        if bytes.len() as u64 != (snapshot_at as u64).saturating_add(u64_at(bytes, 40)) {
            return damaged("its length is wrong");
        }
        let segments = bytes[HEADER_BYTES..snapshot_at]
            .chunks_exact(ENTRY_BYTES)
            .map(|entry| Usage {
                id: u32_at(entry, 0),
                bytes: u64_at(entry, 8),
                live: u64_at(entry, 16),
                total: u64_at(entry, 24),
                end: u32_at(entry, 4),
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

/// Gives a file that a test changed the right checksum.
#[cfg(test)]
pub(crate) fn reseal(bytes: &mut [u8]) {
    let checksum = file_checksum(bytes);
    bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
}

/// Reads a whole small file.
pub(crate) fn read_file(storage: &dyn Storage, name: &str) -> io::Result<Vec<u8>> {
    let size = storage.size(name)? as usize;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size)?;
    bytes.resize(size, 0);
    storage.read(name, 0, &mut bytes)?;
    Ok(bytes)
}

/// Reads a file back from the disk and compares it with what was written.
pub(crate) fn read_back(storage: &dyn Storage, name: &str, written: &[u8]) -> io::Result<()> {
    let mut buffer = Buffer::with_capacity(READ_BACK_BYTES)?;
    for (at, chunk) in written.chunks(READ_BACK_BYTES).enumerate() {
        buffer.resize(0);
        buffer.resize(chunk.len());
        storage.read_past_cache(name, (at * READ_BACK_BYTES) as u64, &mut buffer)?;
        if *buffer != *chunk {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "what was written reads back otherwise",
            ));
        }
    }
    Ok(())
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

/// Why a file cannot be used as a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It is whole and of another version of the format.
    Version(u16),
    /// What is wrong with it.
    Damaged(String),
}

/// A checkpoint file that is not as it should be, though nothing is lost by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) name: String,
    /// `None`: it is missing.
    pub(crate) what: Option<String>,
}

impl Flaw {
    /// The flaw as part of a sentence.
    pub(crate) fn text(&self) -> String {
        match &self.what {
            None => format!("{} is missing", self.name),
            Some(what) => format!("{} is damaged: {what}", self.name),
        }
    }
}

/// The checkpoint that a start uses.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) checkpoint: Checkpoint,
    /// The whole file.
    pub(crate) bytes: Vec<u8>,
    /// Where in `bytes` the snapshot begins.
    pub(crate) snapshot_at: usize,
    /// Files of it, or of newer ones, that cannot be used.
    pub(crate) flaws: Vec<Flaw>,
    /// The highest number that a file of any checkpoint has.
    pub(crate) last_number: u32,
}

impl Stored {
    pub(crate) fn snapshot(&self) -> &[u8] {
        &self.bytes[self.snapshot_at..]
    }

    /// Whether a file is one of the two of this checkpoint.
    pub(crate) fn is_its_own(&self, name: &str) -> bool {
        files::checkpoint_names(self.checkpoint.number).iter().any(|own| own == name)
    }

    /// A flaw, and why it costs nothing.
    pub(crate) fn cost(&self, flaw: &Flaw) -> String {
        let own = self.flaws.iter().filter(|flaw| self.is_its_own(&flaw.name)).count();
        let since = match self.is_its_own(&flaw.name) {
            false => "the checkpoint before it is whole, and the log since",
            true if own > 1 => "the two copies together are whole",
            true => "its copy is whole",
        };
        format!("{}; nothing is lost, since {since}", flaw.text())
    }
}

/// Why there are checkpoint files and none can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// They are of another version of the format.
    Version(u16),
    /// The newest one's file, and what is wrong with all.
    Damaged(String, String),
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Lost::Version(version) => f.write_str(&format::other_version(*version)),
            Lost::Damaged(_, what) => f.write_str(what),
        }
    }
}

/// The newest checkpoint among the files of which anything is whole; `None` if there are no files of any.
pub(crate) fn newest(storage: &dyn Storage, names: &[String]) -> Result<Option<Stored>, Lost> {
    let mut numbers: Vec<u32> =
        names.iter().filter_map(|name| files::parse_checkpoint_name(name)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let Some(&last_number) = numbers.last() else { return Ok(None) };
    let mut flaws = Vec::new();
    for &number in numbers.iter().rev() {
        let pair = files::checkpoint_names(number).map(|name| {
            let is_there = names.contains(&name);
            is_there.then(|| read_file(storage, &name).map_err(|error| error.to_string()))
        });
        let stored = whole(number, pair, &mut flaws)?;
        if let Some((checkpoint, bytes, snapshot_at)) = stored {
            return Ok(Some(Stored { checkpoint, bytes, snapshot_at, flaws, last_number }));
        }
    }
    let what: Vec<String> = flaws.iter().map(Flaw::text).collect();
    Err(Lost::Damaged(flaws[0].name.clone(), what.join("; ")))
}

/// A file that is not there, cannot be read, or its bytes.
type File = Option<Result<Vec<u8>, String>>;

/// What is whole of a checkpoint in two files: either of them, or both together.
fn whole(
    number: u32,
    pair: [File; 2],
    flaws: &mut Vec<Flaw>,
) -> Result<Option<(Checkpoint, Vec<u8>, usize)>, Lost> {
    let mut found: Option<(Checkpoint, Vec<u8>, usize)> = None;
    let mut damaged: Vec<Vec<u8>> = Vec::new();
    for (name, file) in files::checkpoint_names(number).into_iter().zip(pair) {
        let Some(file) = file else {
            flaws.push(Flaw { name, what: None });
            continue;
        };
        let decoded =
            file.map_err(Unusable::Damaged).and_then(|bytes| match Checkpoint::decode(&bytes) {
                Ok((checkpoint, at)) if checkpoint.number == number => Ok((checkpoint, bytes, at)),
                Ok((other, _)) => {
                    Err(Unusable::Damaged(format!("it says that it is number {}", other.number)))
                }
                Err(why) => {
                    damaged.push(bytes);
                    Err(why)
                }
            });
        match decoded {
            // One that was written again may differ from its copy: what begins later has less to replay.
            Ok(new) if found.as_ref().is_none_or(|old| new.0.start > old.0.start) => {
                if found.replace(new).is_some() {
                    let [first, _] = files::checkpoint_names(number);
                    flaws.push(Flaw { name: first, what: Some("its copy is newer".to_owned()) });
                }
            }
            Ok(new) if found.as_ref().is_some_and(|old| new.1 == old.1) => {}
            Ok(_) => flaws.push(Flaw { name, what: Some("it is older than its copy".to_owned()) }),
            Err(Unusable::Version(version)) => return Err(Lost::Version(version)),
            Err(Unusable::Damaged(what)) => flaws.push(Flaw { name, what: Some(what) }),
        }
    }
    if let ([first, second], None) = (&damaged[..], &found) {
        if let Some(version) = claimed_by_both(first, second) {
            return Err(Lost::Version(version));
        }
        let merged = merge(first, second);
        found = merged.and_then(|bytes| {
            let (checkpoint, at) = Checkpoint::decode(&bytes).ok()?;
            Some((checkpoint, bytes, at))
        });
    }
    Ok(found)
}

/// Another version that both files claim to be of: one that has its checksum elsewhere.
fn claimed_by_both(first: &[u8], second: &[u8]) -> Option<u16> {
    let version = |bytes: &[u8]| {
        let is_ours = bytes.len() >= HEADER_BYTES && bytes[0..4] == MAGIC;
        is_ours.then(|| u16::from_le_bytes([bytes[4], bytes[5]]))
    };
    let claimed = version(first).filter(|claimed| *claimed != VERSION);
    claimed.filter(|_| claimed == version(second))
}

/// The whole file of which these are two copies damaged in different places: tries every choice among the
/// pages that differ, since only the right one has the right checksum.
fn merge(first: &[u8], second: &[u8]) -> Option<Vec<u8>> {
    let pages = || first.chunks(BLOCK_ALIGN).zip(second.chunks(BLOCK_ALIGN)).enumerate();
    let differ: Vec<usize> = pages().filter(|(_, (a, b))| a != b).map(|(at, _)| at).collect();
    if first.len() != second.len() || differ.len() > MERGED_PAGES_MAX {
        return None;
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(first.len()).ok()?;
    bytes.extend_from_slice(first);
    let mut is_right = |choice: u32| {
        for (bit, page) in differ.iter().enumerate() {
            let from = if choice >> bit & 1 == 1 { second } else { first };
            let at = page * BLOCK_ALIGN;
            let end = bytes.len().min(at + BLOCK_ALIGN);
            bytes[at..end].copy_from_slice(&from[at..end]);
        }
        Checkpoint::decode(&bytes).is_ok()
    };
    (0..1_u32 << differ.len()).any(&mut is_right).then_some(bytes)
}

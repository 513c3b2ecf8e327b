//! Work on segment files that writes no records: making, reusing and removing them.

use std::io;

use crate::files::SegmentFile;
use crate::format::BLOCK_ALIGN;
use crate::storage::{JobError, failed, is_full};
use crate::{Storage, files};

/// Zeros written and flushed at a time while a segment is made, so that a flush of records never waits
/// long.
pub(crate) const ZERO_BYTES: usize = 1 << 20;

/// Zeros that are aligned for writes past the page cache.
#[repr(align(4096))]
struct Zeros([u8; 16 * BLOCK_ALIGN]);
static ZEROS: Zeros = Zeros([0; 16 * BLOCK_ALIGN]);

/// A piece of work on a segment file.
#[derive(Clone, Debug)]
pub(crate) enum Space {
    /// Creates a file of zeros with its space allocated.
    Create(SegmentFile),
    /// Writes zeros, so that a later flush has no metadata to write.
    Zero {
        id: u32,
        from: u64,
        bytes: u64,
    },
    /// Gives the file its final name.
    Finish(u32),
    /// Makes a segment of a free one.
    Reuse {
        from: u32,
        to: u32,
    },
    Remove(u32),
    /// Removes what is left of a segment that could not be made.
    Abandon(u32),
}

impl Space {
    pub(crate) fn run(&self, storage: &dyn Storage) -> Result<(), JobError> {
        match *self {
            Space::Create(SegmentFile { id, bytes }) => {
                let name = files::preparing_name(id);
                explain("create", &name, storage.create(&name, bytes))
            }
            Space::Zero { id, from, bytes } => {
                let name = files::preparing_name(id);
                let mut zeros = vec![&ZEROS.0[..]; bytes as usize / ZEROS.0.len()];
                zeros.push(&ZEROS.0[..bytes as usize % ZEROS.0.len()]);
                let written = storage.write_parts(&name, from, &zeros);
                explain("write", &name, written.and_then(|()| storage.sync(&name)))
            }
            Space::Finish(id) => rename(storage, &files::preparing_name(id), id),
            Space::Reuse { from, to } => rename(storage, &files::segment_name(from), to),
            Space::Remove(id) => {
                let name = files::segment_name(id);
                explain("remove", &name, storage.remove(&name))
            }
            Space::Abandon(id) => {
                let name = files::preparing_name(id);
                match storage.remove(&name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                    result => explain("remove", &name, result),
                }
            }
        }
    }
}

/// Makes the file the segment `to`.
fn rename(storage: &dyn Storage, name: &str, to: u32) -> Result<(), JobError> {
    explain("rename", name, storage.rename(name, &files::segment_name(to)))
}

/// Tells a lack of space or memory from all other failures.
pub(crate) fn explain<T>(what: &str, name: &str, result: io::Result<T>) -> Result<T, JobError> {
    result.map_err(|error| {
        let (is_full, kind) = (is_full(&error), error.kind());
        let why = failed(what, name)(error);
        match is_full {
            true if kind == io::ErrorKind::OutOfMemory => JobError::NoMemory(why),
            true => JobError::Full(why),
            false => JobError::Failed(why),
        }
    })
}

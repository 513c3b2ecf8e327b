//! Work on segment files that writes no records: making, reusing and removing them.

use std::io;

use crate::format::BLOCK_ALIGN;
use crate::storage::is_full;
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
    Create {
        id: u32,
        bytes: u64,
    },
    /// Writes zeros, so that a later flush has no metadata to write.
    Zero {
        id: u32,
        from: u64,
        bytes: u64,
    },
    /// Gives the file its final name.
    Finish {
        id: u32,
    },
    /// Makes a segment of a free one.
    Reuse {
        from: u32,
        to: u32,
    },
    Remove {
        id: u32,
    },
    /// Removes what is left of a segment that could not be made.
    Abandon {
        id: u32,
    },
}

/// Why work that needs space failed.
#[derive(Debug)]
pub(crate) enum SpaceError {
    /// No space: can be tried again.
    Full,
    /// Anything else.
    Failed(String),
}

impl Space {
    pub(crate) fn run(&self, storage: &dyn Storage) -> Result<(), SpaceError> {
        match *self {
            Space::Create { id, bytes } => {
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
            Space::Finish { id } => {
                let name = files::preparing_name(id);
                explain("rename", &name, storage.rename(&name, &files::segment_name(id)))
            }
            Space::Reuse { from, to } => {
                let name = files::segment_name(from);
                explain("rename", &name, storage.rename(&name, &files::segment_name(to)))
            }
            Space::Remove { id } => {
                let name = files::segment_name(id);
                explain("remove", &name, storage.remove(&name))
            }
            Space::Abandon { id } => {
                let name = files::preparing_name(id);
                match storage.remove(&name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                    result => explain("remove", &name, result),
                }
            }
        }
    }
}

pub(crate) fn explain(what: &str, name: &str, result: io::Result<()>) -> Result<(), SpaceError> {
    result.map_err(|error| {
        if is_full(&error) {
            SpaceError::Full
        } else {
            SpaceError::Failed(format!("cannot {what} {name}: {error}"))
        }
    })
}

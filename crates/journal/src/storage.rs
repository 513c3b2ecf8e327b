//! The trait that stands for a disk.

use std::io;

/// A flat folder of files. Its functions block, and several threads use it at the same time.
pub trait Storage: Send + Sync {
    /// Names of all files.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Size of a file in bytes.
    fn size(&self, name: &str) -> io::Result<u64>;
    /// Creates a file of `bytes` zeros with its space allocated. Its name need not survive a crash before a
    /// [`Storage::rename`]. Error `StorageFull`: nothing was created.
    fn create(&self, name: &str, bytes: u64) -> io::Result<()>;
    /// Writes at an offset within the file's size.
    fn write(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Writes consecutive `parts`, by one call where the disk can.
    fn write_parts(&self, name: &str, mut offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        for part in parts {
            self.write(name, offset, part)?;
            offset += part.len() as u64;
        }
        Ok(())
    }
    /// Makes everything written to the file durable.
    fn sync(&self, name: &str) -> io::Result<()>;
    /// Reads exactly `buffer.len()` bytes.
    fn read(&self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Reads exactly `buffer.len()` bytes, bypassing the page cache where the disk can and the buffer's
    /// address, its length and the offset are multiples of 4 KiB.
    fn read_past_cache(&self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read(name, offset, buffer)
    }
    /// Replaces a whole small file atomically and durably (temporary file, sync, rename, sync of the
    /// folder).
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// Renames a file, durably.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file, durably.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// A number for the machine's current boot; 0: not known. As long as it is the same, everything that
    /// was written can be read, flushed or not, and of an interrupted write the beginning.
    fn boot(&self) -> u32 {
        0
    }
}

/// Why a job failed.
#[derive(Debug)]
pub(crate) enum JobError {
    /// No space: can be tried again. The text says for what.
    Full(String),
    /// No memory: the same, but no space on the disk helps.
    NoMemory(String),
    /// Anything else.
    Failed(String),
}

impl JobError {
    /// Why it failed.
    pub(crate) fn text(self) -> String {
        match self {
            JobError::Full(why) | JobError::NoMemory(why) | JobError::Failed(why) => why,
        }
    }
}

/// The text of a failure: `cannot write 00000001.segment: ...`.
pub(crate) fn failed(what: &str, name: &str) -> impl Fn(io::Error) -> String {
    move |error| format!("cannot {what} {name}: {error}")
}

/// Whether an error says that there is no space (or quota, file handle, memory or size of a file) left:
/// what was written before is not affected, and it can be tried again later.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, OutOfMemory, QuotaExceeded, StorageFull};
    // ENFILE and EMFILE have no stable `ErrorKind`.
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge | OutOfMemory)
        || matches!(error.raw_os_error(), Some(23 | 24))
}

//! The one trait behind which disks are.

use std::io;

/// A flat folder of files. Blocking; used from the journal's thread and from readers at once.
pub trait Storage: Send + Sync {
    /// Names of all files.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Size of a file in bytes.
    fn size(&self, name: &str) -> io::Result<u64>;
    /// Creates a file of `bytes` zeros that are really allocated, and makes its name durable. Error
    /// `StorageFull` leaves nothing behind.
    fn create(&self, name: &str, bytes: u64) -> io::Result<()>;
    /// Writes at an offset within the file's size.
    fn write(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes everything written to the file durable.
    fn sync(&self, name: &str) -> io::Result<()>;
    /// Reads exactly `buffer.len()` bytes.
    fn read(&self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Replaces a whole small file atomically and durably (temporary file, sync, rename, sync of the folder).
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// A real folder, locked against a second process.
#[derive(Debug)]
pub struct Disk {}

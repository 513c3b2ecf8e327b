//! The node's disk: the journal's disk of faults, whose flush can be made to lie.

use angarium_journal::{FaultyStorage, Storage};
use std::io;

/// A disk in memory.
#[derive(Debug)]
pub struct Disk {
    /// Where the bytes are, and the faults.
    pub faulty: FaultyStorage,
    /// Says that it flushed and does not.
    pub lies: bool,
}

impl Storage for Disk {
    fn list(&self) -> io::Result<Vec<String>> {
        self.faulty.list()
    }
    fn size(&self, name: &str) -> io::Result<u64> {
        self.faulty.size(name)
    }
    fn create(&self, name: &str, bytes: u64) -> io::Result<()> {
        self.faulty.create(name, bytes)
    }
    fn write(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.faulty.write(name, offset, bytes)
    }
    fn sync(&self, name: &str) -> io::Result<()> {
        if self.lies { Ok(()) } else { self.faulty.sync(name) }
    }
    fn read(&self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.faulty.read(name, offset, buffer)
    }
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.faulty.replace(name, bytes)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.faulty.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.faulty.remove(name)
    }
}

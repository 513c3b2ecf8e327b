//! Storage in memory that fails on demand: I/O errors, flushes that lie, a full disk, loss of power, bit
//! rot. The same seed gives the same faults.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Storage;

/// Bytes that a disk keeps or loses as a whole.
const SECTOR_BYTES: usize = 512;

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An I/O error. The effect of a write or flush that fails with it is unknown; its bytes can be read
    /// until power is lost.
    Io,
    /// No space; nothing was done.
    Full,
}

/// A disk in memory. Written bytes can be read immediately, and are certain to survive
/// [`FaultyStorage::crash`] only once they are flushed. Creating, renaming, replacing and removing are
/// atomic and durable.
#[derive(Debug)]
pub struct FaultyStorage {
    disk: Mutex<MemoryDisk>,
}

#[derive(Debug, Default)]
struct MemoryDisk {
    files: BTreeMap<String, MemoryFile>,
    random: u64,
    operations: u64,
    planned: Option<PlannedFault>,
    fail_sync: bool,
    lies: bool,
    corrupts_replaced: bool,
    read_bytes: u64,
    capacity: Option<u64>,
    /// How often the machine started.
    boots: u32,
}

/// A fault that comes with the operation of this number.
#[derive(Clone, Copy, Debug)]
struct PlannedFault {
    operation: u64,
    fault: Fault,
    /// Every later operation fails too.
    sticky: bool,
}

#[derive(Clone, Debug, Default)]
struct MemoryFile {
    /// What reads return.
    seen: Vec<u8>,
    /// What survives for certain.
    kept: Vec<u8>,
    /// Writes that are not flushed: offset and bytes, oldest first.
    pending: Vec<(usize, Vec<u8>)>,
}

impl FaultyStorage {
    /// An empty disk.
    pub fn new(seed: u64) -> FaultyStorage {
        let disk = MemoryDisk { random: seed | 1, ..MemoryDisk::default() };
        FaultyStorage { disk: Mutex::new(disk) }
    }

    fn disk(&self) -> MutexGuard<'_, MemoryDisk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many operations have changed the disk.
    pub fn operations(&self) -> u64 {
        self.disk().operations
    }
    /// Makes the operation with this number (from 0) fail, and if `sticky` every one after it.
    pub fn fail_at(&self, operation: u64, fault: Fault, sticky: bool) {
        self.disk().planned = Some(PlannedFault { operation, fault, sticky });
    }
    /// Makes every flush fail, or none.
    pub fn fail_sync(&self, fails: bool) {
        self.disk().fail_sync = fails;
    }
    /// Makes every flush do nothing and report success.
    pub fn lie(&self) {
        self.disk().lies = true;
    }
    /// Bytes read so far.
    pub fn read_bytes(&self) -> u64 {
        self.disk().read_bytes
    }
    /// Makes the next replaced file read otherwise than it was written.
    pub fn corrupt_next_replace(&self) {
        self.disk().corrupts_replaced = true;
    }
    /// Ends every fault except flushes that lie.
    pub fn heal(&self) {
        self.disk().heal();
    }
    /// Limits the bytes of all files together.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.disk().capacity = bytes;
    }
    /// Bytes of all files together.
    pub fn used(&self) -> u64 {
        self.disk().used()
    }
    /// Loses power: any sectors of writes that are not flushed survive, all, some or none, in any order.
    pub fn crash(&self) {
        let mut disk = self.disk();
        let MemoryDisk { files, random, .. } = &mut *disk;
        for file in files.values_mut() {
            file.crash(random);
        }
        disk.boots += 1;
        disk.heal();
    }
    /// Starts the machine anew; the disk keeps everything.
    pub fn reboot(&self) {
        self.disk().boots += 1;
    }
    /// Inverts bits of one byte, durably.
    pub fn flip(&self, name: &str, offset: u64, mask: u8) {
        self.edit(name, |bytes| bytes[offset as usize] ^= mask);
    }
    /// Changes a file's bytes, durably and without an operation.
    pub fn edit(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut disk = self.disk();
        let file = disk.files.entry(name.to_owned()).or_default();
        change(&mut file.seen);
        file.kept = file.seen.clone();
        file.pending.clear();
    }
    /// A file's bytes as reads return them.
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.disk().files.get(name).map(|file| file.seen.clone())
    }
    /// A disk with the same files and no faults.
    pub fn copy(&self) -> FaultyStorage {
        let disk = self.disk();
        let MemoryDisk { random, boots, .. } = *disk;
        let files = disk.files.clone();
        let copy = MemoryDisk { files, random, boots, ..MemoryDisk::default() };
        FaultyStorage { disk: Mutex::new(copy) }
    }
}

/// The next number of xorshift64*, a small generator that is good enough to choose sectors.
fn draw(random: &mut u64) -> u64 {
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
}

impl MemoryFile {
    fn crash(&mut self, random: &mut u64) {
        for (offset, bytes) in std::mem::take(&mut self.pending) {
            // Half of the writes survive or are lost as a whole, the others are torn.
            let kind = draw(random) % 4;
            for (at, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                let survives = match kind {
                    0 => false,
                    1 => true,
                    _ => draw(random).is_multiple_of(2),
                };
                if survives {
                    let start = offset + at * SECTOR_BYTES;
                    self.kept[start..start + sector.len()].copy_from_slice(sector);
                }
            }
        }
        self.seen = self.kept.clone();
    }
}

impl MemoryDisk {
    fn used(&self) -> u64 {
        self.files.values().map(|file| file.seen.len() as u64).sum()
    }

    /// Counts an operation, and returns the fault that it fails with.
    fn operate(&mut self) -> Result<(), Fault> {
        let number = self.operations;
        self.operations += 1;
        match self.planned {
            Some(PlannedFault { operation, fault, sticky })
                if number == operation || (sticky && number > operation) =>
            {
                Err(fault)
            }
            _ => Ok(()),
        }
    }

    /// Adds a file, or replaces it, if there is space for all of it.
    fn add(&mut self, name: &str, bytes: Vec<u8>) -> io::Result<()> {
        if self.capacity.is_some_and(|capacity| self.used() + bytes.len() as u64 > capacity) {
            return Err(Fault::Full.into());
        }
        let file = MemoryFile { seen: bytes.clone(), kept: bytes, pending: Vec::new() };
        self.files.insert(name.to_owned(), file);
        Ok(())
    }

    fn heal(&mut self) {
        self.planned = None;
        self.fail_sync = false;
    }

    fn file(&mut self, name: &str) -> io::Result<&mut MemoryFile> {
        self.files.get_mut(name).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> io::Error {
        match fault {
            Fault::Io => io::Error::other("injected fault"),
            Fault::Full => io::ErrorKind::StorageFull.into(),
        }
    }
}

impl Storage for FaultyStorage {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.disk().files.keys().cloned().collect())
    }
    fn size(&self, name: &str) -> io::Result<u64> {
        Ok(self.disk().file(name)?.seen.len() as u64)
    }
    fn create(&self, name: &str, bytes: u64) -> io::Result<()> {
        let mut disk = self.disk();
        disk.operate()?;
        if disk.files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        disk.add(name, vec![0; bytes as usize])
    }
    fn write(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.disk();
        let outcome = disk.operate();
        if outcome == Err(Fault::Full) {
            return Ok(outcome?);
        }
        let file = disk.file(name)?;
        let start = offset as usize;
        let Some(seen) = file.seen.get_mut(start..start + bytes.len()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "beyond the end"));
        };
        seen.copy_from_slice(bytes);
        file.pending.push((start, bytes.to_vec()));
        Ok(outcome?)
    }
    fn sync(&self, name: &str) -> io::Result<()> {
        let mut disk = self.disk();
        if disk.lies {
            return Ok(());
        }
        let mut outcome = disk.operate();
        if disk.fail_sync && outcome.is_ok() {
            outcome = Err(Fault::Io);
        }
        let MemoryDisk { files, random, .. } = &mut *disk;
        let file = files.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        if outcome.is_err() {
            // As in a kernel's page cache: bytes that did not reach the disk count as clean, can be read,
            // and are never written again.
            let seen = file.seen.clone();
            file.crash(random);
            file.seen = seen;
            return Ok(outcome?);
        }
        for (offset, bytes) in std::mem::take(&mut file.pending) {
            file.kept[offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(())
    }
    fn read(&self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut disk = self.disk();
        disk.read_bytes += buffer.len() as u64;
        let file = disk.file(name)?;
        let start = offset as usize;
        let seen = file.seen.get(start..start + buffer.len());
        buffer.copy_from_slice(seen.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.disk();
        disk.operate()?;
        let mut bytes = bytes.to_vec();
        if std::mem::take(&mut disk.corrupts_replaced)
            && let Some(last) = bytes.last_mut()
        {
            *last ^= 1;
        }
        // The old file takes space until the new one is complete.
        disk.add(name, bytes)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.operate()?;
        let file = disk.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        disk.files.insert(to.to_owned(), file);
        Ok(())
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.operate()?;
        disk.files.remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn boot(&self) -> u32 {
        1 + self.disk().boots
    }
}

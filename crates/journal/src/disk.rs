//! Storage in a real folder, locked against a second process.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{FallocateFlags, FlockOperation, OFlags};
use rustix::io::Errno;

use crate::format::BLOCK_ALIGN;
use crate::{Storage, checksum};

/// Most files that are kept open. Those of the lowest segments are closed first.
const FILES_MAX: usize = 128;
const LOCK_NAME: &str = "lock";
/// Most parts that one system call writes.
const PARTS_MAX: usize = 256;

/// A real folder, locked against a second process for as long as this value lives.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    handle: File,
    boot: u32,
    _lock: File,
    files: Mutex<BTreeMap<String, Arc<Open>>>,
    /// Set once the file system refused a transfer past the page cache.
    only_cached: AtomicBool,
}

/// What tells a file or folder from any other of the same path: device and inode.
type Identity = (u64, u64);

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// An open file.
#[derive(Debug)]
struct Open {
    cached: File,
    identity: Identity,
    /// The file opened past the page cache, once one is needed; `None` if that is not possible.
    direct: OnceLock<Option<File>>,
}

impl Disk {
    /// Opens (and where needed makes) the folder and takes its lock. Error `WouldBlock`: another
    /// process has it; the text says which.
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<Disk> {
        let folder = folder.into();
        fs::create_dir_all(&folder)?;
        let path = folder.join(LOCK_NAME);
        let mut lock = writable().create(true).truncate(false).open(&path)?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            return Err(io::Error::new(
                io::ErrorKind::WouldBlock,
                format!("{} is in use by process {}", folder.display(), holder.trim()),
            ));
        }
        lock.set_len(0)?;
        writeln!(lock, "{}", std::process::id())?;
        let handle = File::open(&folder)?;
        let (files, only_cached) = (Mutex::default(), false.into());
        Ok(Disk { folder, handle, boot: boot(), _lock: lock, files, only_cached })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Open>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, name: &str) -> io::Result<Arc<Open>> {
        let mut files = self.files();
        if let Some(file) = files.get(name) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(Open::new(writable().open(self.folder.join(name))?)?);
        if files.len() >= FILES_MAX {
            files.pop_first();
        }
        files.insert(name.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    /// The file opened past the page cache, if these parts can be transferred so: all begin and end at
    /// multiples of 4 KiB, in memory and in the file.
    fn direct<'a>(
        &self,
        name: &str,
        open: &'a Open,
        offset: u64,
        parts: &[&[u8]],
    ) -> Option<&'a File> {
        let is_aligned = |part: &&[u8]| {
            part.as_ptr().addr().is_multiple_of(BLOCK_ALIGN)
                && part.len().is_multiple_of(BLOCK_ALIGN)
        };
        if self.only_cached.load(Ordering::Relaxed)
            || !offset.is_multiple_of(BLOCK_ALIGN as u64)
            || !parts.iter().all(is_aligned)
        {
            return None;
        }
        let direct = || {
            let flags = OFlags::DIRECT.bits().cast_signed();
            let path = self.folder.join(name);
            writable().custom_flags(flags).open(path).ok()
        };
        open.direct.get_or_init(direct).as_ref()
    }

    /// Bytes that a call past the page cache transferred; 0 where the file system does not support it.
    fn done(&self, result: Result<usize, Errno>) -> io::Result<usize> {
        match result {
            Err(Errno::INVAL | Errno::OPNOTSUPP) => {
                self.only_cached.store(true, Ordering::Relaxed);
                Ok(0)
            }
            Err(Errno::INTR) => Ok(0),
            result => Ok(result?),
        }
    }

    fn allocate(&self, name: &str, bytes: u64) -> io::Result<()> {
        let file = writable().create_new(true).open(self.folder.join(name))?;
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            // Some file systems cannot allocate; writing zeros does it too.
            Err(Errno::OPNOTSUPP) => {
                io::copy(&mut io::repeat(0).take(bytes), &mut &file)?;
                file.sync_all()?;
            }
            result => result?,
        }
        self.files().insert(name.to_owned(), Arc::new(Open::new(file)?));
        Ok(())
    }

    /// An error unless the folder is still the one that was opened: what is written to one that was removed
    /// or replaced is lost with it, and the one in its place is not ours to change.
    fn expect_folder(&self) -> io::Result<()> {
        expect(&self.folder, identity(&self.handle.metadata()?))
    }

    fn write_new(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = writable().create(true).truncate(true).open(self.folder.join(name))?;
        file.write_all(bytes)?;
        file.sync_all()
    }
}

impl Open {
    fn new(cached: File) -> io::Result<Open> {
        let identity = identity(&cached.metadata()?);
        Ok(Open { cached, identity, direct: OnceLock::new() })
    }
}

/// An error unless the path leads to this file or folder.
fn expect(path: &Path, known: Identity) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if identity(&found) == known => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("'{}' was removed or replaced while the broker used it", path.display()),
        )),
    }
}

/// Opens files for reading and writing; only the owner may read those that it makes.
fn writable() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

impl Storage for Disk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.extend(entry.file_name().into_string());
            }
        }
        names.sort();
        Ok(names)
    }
    fn size(&self, name: &str) -> io::Result<u64> {
        Ok(self.file(name)?.cached.metadata()?.len())
    }
    fn create(&self, name: &str, bytes: u64) -> io::Result<()> {
        self.expect_folder()?;
        let result = self.allocate(name, bytes);
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            self.files().remove(name);
            let _ = fs::remove_file(self.folder.join(name));
        }
        result
    }
    fn write(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_parts(name, offset, &[bytes])
    }
    fn write_parts(&self, name: &str, mut offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let file = self.file(name)?;
        for parts in parts.chunks(PARTS_MAX) {
            let mut written = 0;
            if let Some(direct) = self.direct(name, &file, offset, parts) {
                let slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
                written = self.done(rustix::io::pwritev(direct, &slices, offset))?;
            }
            // The rest goes through the page cache.
            for part in parts {
                let done = written.min(part.len());
                written -= done;
                file.cached.write_all_at(&part[done..], offset + done as u64)?;
                offset += part.len() as u64;
            }
        }
        Ok(())
    }
    fn sync(&self, name: &str) -> io::Result<()> {
        let file = self.file(name)?;
        file.cached.sync_data()?;
        // A flush of a file that nobody finds again keeps nothing.
        expect(&self.folder.join(name), file.identity)
    }
    fn read(&self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file(name)?.cached.read_exact_at(buffer, offset)
    }
    fn read_past_cache(&self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let file = self.file(name)?;
        let mut read = 0;
        if let Some(direct) = self.direct(name, &file, offset, &[buffer]) {
            read = self.done(rustix::io::pread(direct, &mut *buffer, offset))?;
        }
        // The rest comes through the page cache.
        file.cached.read_exact_at(&mut buffer[read..], offset + read as u64)
    }
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.expect_folder()?;
        let temporary = format!("{name}.preparing");
        if let Err(error) = self.write_new(&temporary, bytes) {
            let _ = fs::remove_file(self.folder.join(&temporary));
            return Err(error);
        }
        self.rename(&temporary, name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.expect_folder()?;
        fs::rename(self.folder.join(from), self.folder.join(to))?;
        let mut files = self.files();
        files.remove(to);
        if let Some(file) = files.remove(from) {
            files.insert(to.to_owned(), file);
        }
        drop(files);
        self.handle.sync_all()
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.expect_folder()?;
        self.files().remove(name);
        fs::remove_file(self.folder.join(name))?;
        self.handle.sync_all()
    }
    fn boot(&self) -> u32 {
        self.boot
    }
}

/// A number for the machine's current boot, which the kernel names; 0 where it does not.
fn boot() -> u32 {
    let id = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    if id.is_empty() { 0 } else { checksum::of(&id).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens to a folder or its file in use, and whether its file may still be flushed.
    fn check(change: impl FnOnce(&Path), is_kept: bool) {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("journal");
        let disk = Disk::open(&folder).unwrap();
        disk.create("00000001.segment", 8192).unwrap();
        disk.write("00000001.segment", 0, &[1; 4096]).unwrap();
        disk.sync("00000001.segment").unwrap();
        change(&folder);
        disk.write("00000001.segment", 0, &[2; 4096]).unwrap();
        let outcome = disk.sync("00000001.segment").map_err(|error| error.to_string());
        assert_eq!(outcome.is_ok(), is_kept, "{outcome:?}");
        if let Err(why) = outcome {
            assert!(why.contains("removed or replaced"), "{why}");
        }
    }

    #[test]
    fn a_flush_of_what_was_removed_or_replaced_fails() {
        let file = |folder: &Path| folder.join("00000001.segment");
        check(|_| {}, true);
        check(|folder| fs::remove_dir_all(folder).unwrap(), false);
        check(|folder| fs::rename(folder, folder.with_extension("old")).unwrap(), false);
        check(|folder| fs::remove_file(file(folder)).unwrap(), false);
        check(
            |folder| {
                fs::rename(folder, folder.with_extension("old")).unwrap();
                fs::create_dir(folder).unwrap();
                fs::copy(file(&folder.with_extension("old")), file(folder)).unwrap();
            },
            false,
        );
        check(
            |folder| {
                let bytes = fs::read(file(folder)).unwrap();
                fs::remove_file(file(folder)).unwrap();
                fs::write(file(folder), bytes).unwrap();
            },
            false,
        );
    }

    #[test]
    fn a_folder_in_place_of_ours_is_not_changed() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("journal");
        let disk = Disk::open(&folder).unwrap();
        fs::rename(&folder, base.path().join("old")).unwrap();
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("00000001.segment"), "theirs").unwrap();
        assert!(disk.remove("00000001.segment").is_err());
        assert!(disk.rename("00000001.segment", "00000002.segment").is_err());
        assert!(disk.replace("clean", b"ours").is_err());
        assert!(disk.create("00000003.segment", 4096).is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }
}

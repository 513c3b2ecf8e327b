//! Files with a chunk each: created, written, used again, removed. Independent of what is in them.

use angarium_journal::Storage;
use std::io;

/// What their names begin with.
const PREFIX: &str = "spill-";
/// Files without a chunk that are kept.
const FREE_MAX: usize = 16;
/// Sizes are multiples of these: of the smaller one up to four of the larger one.
const STEPS: [u64; 2] = [4 << 10, 64 << 10];

/// A file. It takes one chunk after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct File {
    number: u32,
    /// Bytes it has.
    pub(super) bytes: u64,
}

impl File {
    pub(super) fn name(self) -> String {
        format!("{PREFIX}{}", self.number)
    }
}

/// Removes what an earlier process left: direct messages do not outlive it. Blocks.
pub fn clear_spill(storage: &dyn Storage) -> io::Result<()> {
    for name in storage.list()?.iter().filter(|name| name.starts_with(PREFIX)) {
        storage.remove(name)?;
    }
    Ok(())
}

/// Those without a chunk.
#[derive(Debug)]
pub(super) struct Files {
    free: Vec<File>,
    made: u32,
    /// Larger ones are not kept: they had a single large message.
    kept_bytes_max: u64,
}

impl Files {
    pub(super) fn new(kept_bytes_max: u64) -> Files {
        Files { free: Vec::new(), made: 0, kept_bytes_max }
    }

    /// Writes a chunk into a file that is not much larger.
    pub(super) fn write(&mut self, chunk: &[u8], storage: &dyn Storage) -> io::Result<File> {
        let needed = chunk.len() as u64;
        let bytes = size_for(needed);
        let file = match self.take(needed, bytes + bytes / 4) {
            Some(file) => file,
            None => match self.make(bytes, storage) {
                Ok(file) => file,
                // Where there is no room, one that is too large will do.
                Err(error) => self.take(needed, u64::MAX).ok_or(error)?,
            },
        };
        match storage.write(&file.name(), 0, chunk) {
            Ok(()) => Ok(file),
            Err(error) => {
                remove(file, storage);
                Err(error)
            }
        }
    }

    /// The smallest one of such a size.
    fn take(&mut self, least: u64, most: u64) -> Option<File> {
        let sizes = self.free.iter().map(|file| file.bytes).enumerate();
        let fitting = sizes.filter(|(_, bytes)| (least..=most).contains(bytes));
        let (at, _) = fitting.min_by_key(|(_, bytes)| *bytes)?;
        Some(self.free.swap_remove(at))
    }

    fn make(&mut self, bytes: u64, storage: &dyn Storage) -> io::Result<File> {
        self.made += 1;
        let file = File { number: self.made, bytes };
        storage.create(&file.name(), bytes)?;
        Ok(file)
    }

    /// A file's chunk is no longer needed.
    pub(super) fn give_back(&mut self, file: File, is_broken: bool, storage: &dyn Storage) {
        if is_broken || file.bytes > self.kept_bytes_max || self.free.len() >= FREE_MAX {
            remove(file, storage);
        } else {
            self.free.push(file);
        }
    }

    /// Removes those that were kept.
    pub(super) fn keep_none(&mut self, storage: &dyn Storage) {
        self.free.drain(..).for_each(|file| remove(file, storage));
    }
}

/// One that stays is removed at the next start.
fn remove(file: File, storage: &dyn Storage) {
    let _ = storage.remove(&file.name());
}

/// The size of a file for `bytes` bytes.
fn size_for(bytes: u64) -> u64 {
    let [small, large] = STEPS;
    bytes.next_multiple_of(if bytes <= 4 * large { small } else { large }).max(small)
}

#[cfg(test)]
mod tests {
    use super::*;
    use angarium_journal::FaultyStorage;

    #[test]
    fn a_file_takes_little_more_than_what_is_in_it() {
        for (bytes, expected) in [
            (0, 4 << 10),
            (1, 4 << 10),
            (4_096, 4 << 10),
            (4_097, 8 << 10),
            (256 << 10, 256 << 10),
            ((256 << 10) + 1, 320 << 10),
            (1 << 20, 1 << 20),
            (1_000_000, 1 << 20),
        ] {
            assert_eq!(size_for(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn what_was_left_free_is_used_where_it_fits() {
        let disk = FaultyStorage::new(1);
        let mut files = Files::new(1 << 20);
        let write = |files: &mut Files, bytes| files.write(&vec![1; bytes], &disk);
        let large = write(&mut files, 1_000_000).unwrap();
        let small = write(&mut files, 5_000).unwrap();
        files.give_back(large, false, &disk);
        files.give_back(small, false, &disk);
        assert_eq!(write(&mut files, 900_000).unwrap(), large);
        assert_eq!(write(&mut files, 4_200).unwrap(), small);
        files.give_back(large, false, &disk);
        let other = write(&mut files, 4_200).unwrap();
        assert_eq!((other.number, other.bytes), (3, 8 << 10));
        // A large one for little is better than none.
        disk.set_capacity(Some(disk.used()));
        assert_eq!(write(&mut files, 4_200).unwrap(), large);
        assert!(write(&mut files, 4_200).is_err());
        disk.set_capacity(None);
        // What had a large message is not kept, nor what is broken.
        let largest = write(&mut files, 3 << 20).unwrap();
        files.give_back(largest, false, &disk);
        files.give_back(small, true, &disk);
        assert!(files.free.is_empty());
        for _ in 0..2 * FREE_MAX {
            files.give_back(other, false, &disk);
        }
        assert_eq!(files.free.len(), FREE_MAX);
        files.keep_none(&disk);
        assert_eq!(disk.list().unwrap(), [large.name()]);
    }
}

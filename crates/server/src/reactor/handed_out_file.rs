//! The file that says which messages may have been handed out, for a start after the process was killed. It
//! is written before anything is sent, and not flushed: a kill leaves it whole, and after another boot of the
//! machine it says nothing, so that every message counts as handed out.

use angarium_engine::HandedOut;
use angarium_journal::checksum;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Its name, in the journal's folder: it goes where the journal goes.
const NAME: &str = "handed-out";
const MAGIC: [u8; 4] = *b"AGHO";
const ENTRY_BYTES: usize = 20;
/// Beyond this it is given up until the next start.
const BYTES_MAX: u64 = 16 << 20;

/// That file.
#[derive(Debug)]
pub struct HandedOutFile {
    path: PathBuf,
    /// What the last process left.
    carried: HandedOut,
    /// `None` before recovery, and once it cannot be written.
    file: Option<File>,
    bytes: u64,
}

fn header(boot: &str) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..].copy_from_slice(&checksum(boot.as_bytes()).to_le_bytes());
    bytes
}

fn encode(marks: &HandedOut, out: &mut Vec<u8>) {
    for (queue, before) in marks {
        let start = out.len();
        out.extend_from_slice(&queue.to_le_bytes());
        out.extend_from_slice(&before.to_le_bytes());
        let sum = checksum(&out[start..]);
        out.extend_from_slice(&sum.to_le_bytes());
    }
}

/// The marks in such a file; nothing if it is of another boot, or damaged.
fn decode(bytes: &[u8], boot: &str) -> Option<HandedOut> {
    let entries = bytes.strip_prefix(&header(boot)).filter(|_| !boot.is_empty())?;
    let mut marks = HandedOut::new();
    for entry in entries.chunks(ENTRY_BYTES) {
        let (content, sum) = entry.split_at_checked(16)?;
        if sum != checksum(content).to_le_bytes() {
            return None;
        }
        let (queue, before) = content.split_at(8);
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
        let before = number(before)?;
        let mark = marks.entry(number(queue)?).or_default();
        *mark = before.max(*mark);
    }
    Some(marks)
}

impl HandedOutFile {
    /// The file in the journal's folder, and the marks that the last process left; `None`: they are not
    /// known.
    pub(crate) fn open(folder: &Path) -> (HandedOutFile, Option<HandedOut>) {
        let path = folder.join(NAME);
        let boot = super::clock::boot_id();
        let marks = fs::read(&path).ok().and_then(|bytes| decode(&bytes, &boot));
        let carried = marks.clone().unwrap_or_default();
        (HandedOutFile { path, carried, file: None, bytes: 0 }, marks)
    }

    /// Recovery is over, and these marks moved in it: takes the place of the last process's file.
    pub(super) fn begin(&mut self, marks: HandedOut) {
        let mut all = std::mem::take(&mut self.carried);
        all.extend(marks);
        let mut bytes = header(&super::clock::boot_id()).to_vec();
        encode(&all, &mut bytes);
        let written = self.replace(&bytes);
        self.went(written, bytes.len());
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        let new = self.path.with_extension("preparing");
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        fs::rename(&new, &self.path)?;
        self.file = Some(file);
        Ok(())
    }

    /// Adds marks that moved, before anything is sent.
    #[cold]
    pub(super) fn keep(&mut self, marks: &HandedOut) {
        let Some(file) = &mut self.file else { return };
        let mut bytes = Vec::new();
        encode(marks, &mut bytes);
        let written = file.write_all(&bytes);
        self.went(written, bytes.len());
    }

    /// A file that lacks a mark is worse than none: without one, every message counts as handed out.
    fn went(&mut self, written: io::Result<()>, bytes: usize) {
        self.bytes += bytes as u64;
        if written.is_err() || self.bytes > BYTES_MAX {
            if let Some(file) = self.file.take() {
                let _ = file.set_len(0);
            }
            let _ = fs::remove_file(&self.path);
        }
    }

    /// The broker ended in order: what was handed out and not settled is in the journal.
    pub(crate) fn end(folder: &Path) {
        let _ = fs::remove_file(folder.join(NAME));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_outlive_the_process_and_no_damage() {
        let folder = tempfile::tempdir().unwrap();
        let open = || HandedOutFile::open(folder.path());
        let (mut file, marks) = open();
        assert_eq!(marks, None);
        file.begin(HandedOut::from([(7, 10)]));
        file.keep(&HandedOut::from([(7, 20), (8, 1)]));
        file.keep(&HandedOut::from([(7, 40)]));
        let (mut next, marks) = open();
        assert_eq!(marks, Some(HandedOut::from([(7, 40), (8, 1)])));
        // They are carried on until an orderly end.
        next.begin(HandedOut::from([(9, 5)]));
        let expected = Some(HandedOut::from([(7, 40), (8, 1), (9, 5)]));
        assert_eq!(open().1, expected);
        let path = folder.path().join(NAME);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged, &super::super::clock::boot_id()), None, "byte {at}");
        }
        assert_eq!(decode(&whole, "another boot"), None);
        assert_eq!(decode(&whole[..whole.len() - 1], &super::super::clock::boot_id()), None);
        HandedOutFile::end(folder.path());
        assert_eq!(open().1, None);
    }
}

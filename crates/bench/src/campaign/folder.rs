//! The data folder of one campaign or comparison, below the folder of all: made when it begins, removed when
//! it ends, or by the next one if it was killed.

use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The lock file in a campaign's folder: the lock ends with the process.
const MARK: &str = "angarium-bench.lock";
/// What a folder's name begins with; the process number follows.
const NAME: &str = "run-";

/// A new folder for one campaign.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes a folder, and removes those of campaigns that were killed.
    pub(crate) fn create(parent: &Path) -> Result<Folder, String> {
        let named = |error: io::Error| format!("{}: {error}", parent.display());
        fs::create_dir_all(parent).map_err(named)?;
        let parent = parent.canonicalize().map_err(named)?;
        // While this lock is held, no other campaign sees our folder before it is locked.
        let turn = File::open(&parent).map_err(named)?;
        flock(&turn, FlockOperation::LockExclusive).map_err(|error| named(error.into()))?;
        remove_left(&parent);
        let path = parent.join(format!("{NAME}{}", std::process::id()));
        let lock = fs::create_dir(&path).and_then(|()| locked(&path));
        let lock = lock.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Folder { path, _lock: lock })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("{} could not be removed: {error}", self.path.display());
        }
        if let Some(parent) = self.path.parent() {
            // Removed only if it is empty.
            let _ = fs::remove_dir(parent);
        }
    }
}

fn locked(folder: &Path) -> io::Result<File> {
    let mark = File::create_new(folder.join(MARK))?;
    flock(&mark, FlockOperation::NonBlockingLockExclusive)?;
    Ok(mark)
}

/// Removes the folders of campaigns that were killed.
fn remove_left(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| is_left(path)) {
        match fs::remove_dir_all(&path) {
            Ok(()) => eprintln!("removed {}: its run was killed", path.display()),
            Err(error) => eprintln!("{} could not be removed: {error}", path.display()),
        }
    }
}

/// Whether a campaign made this folder and its lock is free.
fn is_left(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|it| it.strip_prefix(NAME));
    let numbered = name.is_some_and(|pid| pid.parse::<u32>().is_ok());
    // Symbolic links are not followed.
    let is = |path: &Path, right: fn(&fs::Metadata) -> bool| {
        fs::symlink_metadata(path).is_ok_and(|metadata| right(&metadata))
    };
    let mark = path.join(MARK);
    numbered
        && is(path, fs::Metadata::is_dir)
        && is(&mark, fs::Metadata::is_file)
        && File::open(&mark)
            .is_ok_and(|mark| flock(&mark, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_campaigns_that_were_killed_are_removed() {
        let parent = std::env::temp_dir().join(format!("bench-left-{}", std::process::id()));
        let make = |name: &str, mark: Option<&str>| {
            let path = parent.join(name);
            fs::create_dir_all(path.join("data")).expect("there is space");
            mark.into_iter().for_each(|mark| fs::write(path.join(mark), "").expect("there too"));
            path
        };
        let killed = make("run-1", Some(MARK));
        let kept = [
            make("run-2", None),
            make("run-3", Some("other.lock")),
            make("run-x", Some(MARK)),
            make("mine", Some(MARK)),
        ];
        let running = make("run-4", None);
        let lock = locked(&running).expect("nobody has it");
        std::os::unix::fs::symlink(&kept[3], parent.join("run-5")).expect("there is space");
        let folder = Folder::create(&parent).expect("there is space");
        assert!(!killed.exists() && folder.path().is_dir());
        assert!(kept.iter().all(|path| path.join("data").is_dir()) && running.is_dir());
        assert!(!is_left(folder.path()), "it is locked");
        drop((folder, lock));
        // Its lock is free now, so the next campaign removes it.
        drop(Folder::create(&parent).expect("there is space"));
        assert!(!running.exists() && parent.join("run-5").exists());
        fs::remove_dir_all(&parent).expect("it is ours");
    }
}

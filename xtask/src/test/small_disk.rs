//! A disk that tests can fill: a small file system in memory, where mounting is allowed.

use super::broker::{Broker, fresh};
use crate::layout;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Space for some dozens of small segments.
const SIZE: &str = "size=48m";

/// A small disk with a broker on it; unmounted when dropped.
#[derive(Debug)]
pub(super) struct SmallDisk {
    broker: Option<Broker>,
    at: PathBuf,
}

impl SmallDisk {
    /// Mounts the disk and starts the broker; `None` where mounting fails, or another broker is tested.
    pub(super) fn start(
        root: &Path,
        name: &str,
        shards: usize,
    ) -> Result<Option<SmallDisk>, String> {
        let at = layout::target_folder(root)?.join("clients/disk").join(name);
        if Broker::is_given() {
            return Ok(None);
        }
        fresh(&at)?;
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", SIZE, "tmpfs"]).arg(&at).output();
        if !mount.is_ok_and(|output| output.status.success()) {
            return Ok(None);
        }
        let mut disk = SmallDisk { broker: None, at };
        disk.broker = Some(Broker::start_small(root, &disk.at, shards)?);
        Ok(Some(disk))
    }

    /// Tells clients where the disk and the broker are.
    pub(super) fn environment(&self) -> impl Iterator<Item = &(&'static str, String)> {
        self.broker.iter().flat_map(|broker| &broker.environment)
    }

    /// Stops the broker; fails if it ends with an error.
    pub(super) fn stop(mut self) -> Result<(), String> {
        self.broker.take().map_or(Ok(()), Broker::stop)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.broker.take());
        // Lazily, so that open files do not prevent it.
        let _ = Command::new("umount").arg("-l").arg(&self.at).output();
    }
}

//! Virtual hosts in which not all follow the policies as they are now.

use std::collections::BTreeMap;

/// Those virtual hosts, by slot.
#[derive(Debug, Default)]
pub(crate) struct PolicyReviews(BTreeMap<u32, Progress>);

/// How far what is in a virtual host was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// The place of the exchange that is next.
    pub(super) exchange: usize,
    /// The slot of the queue that is next.
    pub(super) queue: u32,
}

impl PolicyReviews {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Has what is in a virtual host looked at, from there on.
    pub(super) fn put(&mut self, vhost: u32, from: Progress) {
        self.0.insert(vhost, from);
    }

    pub(super) fn take(&mut self) -> Option<(u32, Progress)> {
        self.0.pop_first()
    }

    /// A virtual host has gone.
    pub(crate) fn forget(&mut self, vhost: u32) {
        self.0.remove(&vhost);
    }
}

//! The room that files take, counted for as long as a log has something that is in them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// A chunk that is stored, as the log has it whose it is.
#[derive(Debug)]
pub(in crate::spill) struct Stored {
    /// Tells it from all others that are or were.
    pub(in crate::spill) number: u64,
    /// Its bytes, however many of them are copies.
    pub(in crate::spill) bytes: usize,
    /// The room of its file, and of those that it has copies of.
    claims: Box<[Arc<Claim>]>,
}

impl Stored {
    /// One whose file has the first of these claims.
    pub(super) fn new(
        number: u64,
        bytes: usize,
        claims: impl Iterator<Item = Arc<Claim>>,
    ) -> Stored {
        Stored { number, bytes, claims: claims.collect() }
    }

    /// The files that stay when this is given back, by number: others have something in them.
    pub(in crate::spill) fn staying(&self) -> impl Iterator<Item = (u64, Staying)> {
        let are_others = self.claims.iter().filter(|claim| Arc::strong_count(claim) > 1);
        are_others.map(|claim| (claim.number, Staying(Arc::downgrade(claim))))
    }
}

/// The room of a file that somebody else may have something in.
#[derive(Debug)]
pub(in crate::spill) struct Staying(Weak<Claim>);

impl Staying {
    /// So much; `None`: nobody has any more.
    pub(in crate::spill) fn room(&self) -> Option<u64> {
        self.0.upgrade().map(|claim| claim.room)
    }
}

/// The room of a file, which counts for as long as a log has something that is in it.
#[derive(Debug)]
pub(super) struct Claim {
    /// Of the chunk whose file it is.
    number: u64,
    room: u64,
    all: Arc<AtomicU64>,
}

impl Claim {
    pub(super) fn new(number: u64, room: u64, all: &Arc<AtomicU64>) -> Arc<Claim> {
        all.fetch_add(room, Ordering::Relaxed);
        Arc::new(Claim { number, room, all: Arc::clone(all) })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.all.fetch_sub(self.room, Ordering::Relaxed);
    }
}

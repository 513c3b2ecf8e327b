//! Bytes that wait in queues, counted for each queue, for its virtual host and for the user who declared it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that wait in several queues. One thread changes it: the one that has the queues.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored(Arc<AtomicU64>);

impl Stored {
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    fn change(&self, change: impl FnOnce(u64) -> u64) {
        self.0.store(change(self.bytes()), Ordering::Relaxed);
    }
}

/// Bytes that wait in a queue, and where else they count.
#[derive(Debug, Default)]
pub(crate) struct ReadyBytes {
    bytes: u64,
    also_in: [Option<Stored>; 2],
}

impl ReadyBytes {
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.bytes
    }

    #[inline]
    pub(crate) fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.also_in.iter().flatten().for_each(|stored| stored.change(|all| all + bytes));
    }

    #[inline]
    pub(crate) fn take(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.also_in.iter().flatten().for_each(|stored| stored.change(|all| all - bytes));
    }

    /// Nothing waits any more.
    pub(crate) fn clear(&mut self) {
        self.take(self.bytes);
    }

    /// Counts them in a virtual host and, where a user declared the queue, for that user too.
    pub(crate) fn count_in(&mut self, vhost: &Stored, user: Option<&Stored>) {
        let bytes = self.bytes;
        self.clear();
        self.also_in = [Some(vhost.clone()), user.cloned()];
        self.add(bytes);
    }
}

impl Drop for ReadyBytes {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What a user has declared.
#[derive(Debug, Default)]
pub(super) struct Owned {
    pub(super) queues: u64,
    pub(super) stored: Stored,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_in_a_queue_counts_wherever_it_belongs_until_the_queue_is_gone() {
        let (vhost, user) = (Stored::default(), Stored::default());
        let (mut one, mut other) = (ReadyBytes::default(), ReadyBytes::default());
        one.add(5);
        one.count_in(&vhost, Some(&user));
        other.count_in(&vhost, None);
        other.add(7);
        one.add(3);
        one.take(1);
        assert_eq!((one.get(), other.get(), vhost.bytes(), user.bytes()), (7, 7, 14, 7));
        other.clear();
        assert_eq!((other.get(), vhost.bytes()), (0, 7));
        drop(one);
        assert_eq!((vhost.bytes(), user.bytes()), (0, 0));
    }
}

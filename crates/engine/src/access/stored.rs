//! Bytes of messages in queues, counted for each queue, its virtual host and the user who declared it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of several queues. One thread changes it: the one that has the queues.
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

/// Body bytes of a queue's messages, those that wait and those that are out and not settled, and where else
/// they count.
#[derive(Debug, Default)]
pub(crate) struct QueueBytes {
    ready: u64,
    out: u64,
    also_in: Option<AlsoIn>,
}

/// The virtual host of a queue, and the user who declared it.
#[derive(Debug)]
struct AlsoIn {
    vhost: Stored,
    user: Stored,
}

impl QueueBytes {
    /// Those that wait.
    #[inline]
    pub(crate) fn ready(&self) -> u64 {
        self.ready
    }

    /// Those that are out.
    #[cfg(test)]
    pub(crate) fn out(&self) -> u64 {
        self.out
    }

    #[inline]
    fn change(&self, change: impl Fn(u64) -> u64) {
        if let Some(AlsoIn { vhost, user }) = &self.also_in {
            vhost.change(&change);
            user.change(&change);
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, bytes: u64) {
        self.ready += bytes;
        self.change(|all| all + bytes);
    }

    #[inline]
    pub(crate) fn take(&mut self, bytes: u64) {
        self.ready -= bytes;
        self.change(|all| all - bytes);
    }

    /// A message that does not wait is out.
    #[inline]
    pub(crate) fn went_out(&mut self, bytes: u64) {
        self.out += bytes;
        self.change(|all| all + bytes);
    }

    /// One that was out is settled, or comes back.
    #[inline]
    pub(crate) fn ended(&mut self, bytes: u64) {
        self.out -= bytes;
        self.change(|all| all - bytes);
    }

    /// Nothing waits any more.
    pub(crate) fn clear_ready(&mut self) {
        self.take(self.ready);
    }

    /// Counts them in a virtual host and for the user who declared the queue.
    pub(crate) fn count_in(&mut self, vhost: &Stored, user: &Stored) {
        let bytes = self.ready + self.out;
        self.change(|all| all - bytes);
        self.also_in = Some(AlsoIn { vhost: vhost.clone(), user: user.clone() });
        self.change(|all| all + bytes);
    }
}

impl Drop for QueueBytes {
    fn drop(&mut self) {
        let bytes = self.ready + self.out;
        self.change(|all| all - bytes);
    }
}

/// What a user has declared.
#[derive(Debug, Default)]
pub(super) struct Owned {
    pub(super) queues: u64,
    /// Logs that its sessions have to themselves: these are no queues that it has declared.
    pub(super) logs: u64,
    pub(super) stored: Stored,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_queue_count_wherever_it_belongs_until_it_is_gone() {
        let (vhost, user, nobody) = <(Stored, Stored, Stored)>::default();
        let (mut one, mut other) = (QueueBytes::default(), QueueBytes::default());
        one.add(5);
        one.count_in(&vhost, &user);
        other.count_in(&vhost, &nobody);
        other.add(7);
        one.add(3);
        one.take(1);
        assert_eq!((one.ready(), other.ready(), vhost.bytes(), user.bytes()), (7, 7, 14, 7));
        one.take(3);
        one.went_out(3);
        assert_eq!((one.ready(), one.out(), vhost.bytes(), user.bytes()), (4, 3, 14, 7));
        one.ended(1);
        one.clear_ready();
        assert_eq!((one.ready(), one.out(), vhost.bytes(), user.bytes()), (0, 2, 9, 2));
        other.clear_ready();
        assert_eq!((other.ready(), vhost.bytes()), (0, 2));
        drop(one);
        assert_eq!((vhost.bytes(), user.bytes()), (0, 0));
    }
}

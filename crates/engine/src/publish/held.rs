//! A message that is held back, when it leaves, and whose its bytes are.

use crate::access::definitions::Declarer;
use crate::queue::entry::NOWHERE;
use crate::{Position, Time};
use std::collections::BTreeMap;

/// A message that is held back. With its key it is 40 bytes in the nodes of a tree, which are two
/// thirds full: some 70 bytes of memory, whatever its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// Where its record is; only what is persistent has one, or what memory has no room for.
    pub(crate) position: Position,
    pub(crate) vhost: u32,
    /// Bytes that it takes up once it is read.
    pub(crate) bytes: u32,
    /// The user who published it, or nobody.
    pub(crate) by: Declarer,
    pub(crate) persistent: bool,
    /// As in [`Entry`](crate::queue::entry::Entry).
    pub(crate) mark: bool,
}

const _: () = assert!(size_of::<(DelayKey, Held)>() <= 40);

impl Held {
    pub(crate) fn is_stored(&self) -> bool {
        self.position != NOWHERE
    }
}

/// The order in which messages leave: by due time, then by the number they got when they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DelayKey {
    pub(crate) due: Time,
    pub(crate) number: u64,
}

/// Messages that are held back, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    messages: usize,
    bytes: u64,
}

/// What is held back, by virtual host and by who published it.
#[derive(Debug, Default)]
pub(crate) struct HeldSums {
    vhosts: BTreeMap<u32, Sum>,
    users: BTreeMap<Declarer, Sum>,
}

impl HeldSums {
    pub(crate) fn came(&mut self, held: &Held) {
        let sums =
            [self.vhosts.entry(held.vhost).or_default(), self.users.entry(held.by).or_default()];
        for sum in sums {
            sum.messages += 1;
            sum.bytes += u64::from(held.bytes);
        }
    }

    pub(crate) fn went(&mut self, held: &Held) {
        fn take<K: Ord>(sums: &mut BTreeMap<K, Sum>, of: K, less: u32) {
            if let Some(sum) = sums.get_mut(&of) {
                sum.messages -= 1;
                sum.bytes -= u64::from(less);
                if sum.messages == 0 {
                    sums.remove(&of);
                }
            }
        }
        take(&mut self.vhosts, held.vhost, held.bytes);
        take(&mut self.users, held.by, held.bytes);
    }

    /// Bytes of those in a virtual host.
    pub(crate) fn bytes_in_vhost(&self, vhost: u32) -> u64 {
        self.vhosts.get(&vhost).map_or(0, |sum| sum.bytes)
    }

    /// Bytes of those that a user published.
    pub(crate) fn bytes_of_user(&self, user: Declarer) -> u64 {
        self.users.get(&user).map_or(0, |sum| sum.bytes)
    }

    /// How many a user published.
    pub(crate) fn messages_of_user(&self, user: Declarer) -> usize {
        self.users.get(&user).map_or(0, |sum| sum.messages)
    }
}

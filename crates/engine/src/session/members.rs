//! The members of a shared queue, and whose turn it is.

use std::collections::BTreeSet;
use std::sync::Arc;

/// What makes a queue one that sessions share.
#[derive(Debug, Default)]
pub(crate) struct SharedQueue {
    /// The name of the group that its members are.
    pub(crate) group: Arc<str>,
    /// Numbers of the sessions that are its members.
    pub(super) members: BTreeSet<u64>,
    /// Those that can take a message, as far as is known.
    pub(super) able: BTreeSet<u64>,
    /// Who took the last one.
    last: u64,
}

impl SharedQueue {
    pub(super) fn of(group: Arc<str>) -> Box<SharedQueue> {
        Box::new(SharedQueue { group, ..SharedQueue::default() })
    }

    /// The member whose turn it is, among those that can take a message.
    pub(super) fn next_able(&self) -> Option<u64> {
        let later = self.able.range(self.last + 1..).next();
        later.or_else(|| self.able.first()).copied()
    }

    /// A member has taken a message.
    pub(super) fn took(&mut self, member: u64) {
        self.last = member;
    }

    /// A member cannot take a message now.
    pub(super) fn is_not_able(&mut self, member: u64) {
        self.able.remove(&member);
    }
}

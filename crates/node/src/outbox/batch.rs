//! Batches of direct messages: output written for one subscription is copied for the next one of the same
//! name.

use angarium_engine::{ConnectionId, DirectMessage};
use std::ops::Range;

/// What was last written of a batch, and where in its connection's output; that has only grown since.
#[derive(Debug, Default)]
pub(crate) struct LastBatch {
    /// The first of its messages; 0: none.
    emission: u64,
    connection: ConnectionId,
    subscription: String,
    range: Range<usize>,
}

impl LastBatch {
    /// What was written may no longer be where it was.
    pub(crate) fn forget(&mut self) {
        self.emission = 0;
    }

    /// The connection that was sent the same bytes, and where they are.
    #[inline]
    pub(crate) fn same(&self, message: &DirectMessage<'_>) -> Option<(ConnectionId, Range<usize>)> {
        let is_same = self.emission == message.emission
            && self.connection != message.channel.connection
            && self.subscription == message.subscription;
        is_same.then(|| (self.connection, self.range.clone()))
    }

    pub(crate) fn keep(&mut self, message: &DirectMessage<'_>, range: Range<usize>) {
        self.emission = message.emission;
        self.connection = message.channel.connection;
        self.range = range;
        if self.subscription != message.subscription {
            self.subscription.clear();
            self.subscription.push_str(message.subscription);
        }
    }
}

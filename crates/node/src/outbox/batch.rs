//! Batches of direct messages: output written for one subscription is copied for the next one of the same
//! name.

use crate::effects::NodeEffects;
use angarium_engine::{ConnectionId, DirectMessage, SendOutcome};
use std::ops::Range;

/// Bytes that a message takes beside its content and its names, or fewer.
const FRAMING_BYTES: usize = 32;

/// What was last written of a batch, and where in its connection's output; that has only grown since.
#[derive(Debug)]
pub(crate) struct LastBatch {
    /// The first of its messages; 0: none.
    emission: u64,
    connection: ConnectionId,
    subscription: String,
    range: Range<usize>,
}

impl Default for LastBatch {
    fn default() -> LastBatch {
        LastBatch {
            emission: 0,
            connection: ConnectionId(0),
            subscription: String::new(),
            range: 0..0,
        }
    }
}

impl LastBatch {
    /// What was written may no longer be where it was.
    pub(crate) fn forget(&mut self) {
        self.emission = 0;
    }

    /// The connection that was sent the same bytes, and where they are.
    #[inline]
    fn same(&self, message: &DirectMessage<'_>) -> Option<(ConnectionId, Range<usize>)> {
        let is_same = self.emission == message.emission
            && self.connection != message.channel.connection
            && self.subscription == message.subscription;
        is_same.then(|| (self.connection, self.range.clone()))
    }

    fn keep(&mut self, message: &DirectMessage<'_>, range: Range<usize>) {
        self.emission = message.emission;
        self.connection = message.channel.connection;
        self.range = range;
        if self.subscription != message.subscription {
            self.subscription.clear();
            self.subscription.push_str(message.subscription);
        }
    }
}

impl NodeEffects {
    /// Writes messages with these payloads into their connection's output, if there is room for all of them;
    /// says how the last one was sent.
    pub(crate) fn write_direct_batch(
        &mut self,
        message: &DirectMessage<'_>,
        bodies: &[&[u8]],
    ) -> Option<SendOutcome> {
        let connection = message.channel.connection;
        let slot = connection.0 as usize;
        let outbox = &self.outbox[slot];
        let names = message.message.routing_key.len() + message.subscription.len();
        let payload: usize = bodies.iter().map(|body| body.len()).sum();
        let bytes = payload + bodies.len() * (names + FRAMING_BYTES);
        let unsent = outbox.unsent() + bytes;
        if outbox.remote.is_some() || unsent >= outbox.plain_max {
            return None;
        }
        let same = self.last_batch.same(message).filter(|(other, _)| {
            outbox.writer.writes_batches_like(&self.outbox[other.0 as usize].writer)
        });
        if let Some((other, range)) = same {
            self.touch(connection);
            let both = self.outbox.get_disjoint_mut([other.0 as usize, slot]);
            let [from, to] = both.expect("two connections have two places");
            to.writer.output.bytes.extend_from_slice(&from.writer.output.bytes[range]);
            to.writer.output.messages += bodies.len() as u64;
        } else {
            let writer = self.touch(connection);
            let start = writer.output.bytes.len();
            writer.output.bytes.reserve(bytes);
            writer.send_direct_batch(message, bodies);
            let range = start..writer.output.bytes.len();
            self.last_batch.keep(message, range);
        }
        let last = message.emission + bodies.len() as u64 - 1;
        let last_bytes = bodies.last().map_or(0, |body| body.len() + names + FRAMING_BYTES);
        Some(self.has_written(connection, last, unsent - last_bytes))
    }
}

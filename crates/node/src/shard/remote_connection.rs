//! A connection of another shard, as home has it: in a slot like its own connections, so that the
//! engine sees no difference; its output goes back in shard batches.

use crate::shard::message::ChannelName;
use angarium_engine::{ChannelId, ConnectionId, Refusal, ShardId};
use std::cell::Cell;

/// How many times the high-water mark of a local connection may be on its way to a remote one: home learns
/// that deliveries have left only after two shards have woken up. No more than what stops its input there.
const UNDERWAY_TIMES: u64 = 3;

/// A connection of another shard.
#[derive(Debug, Default)]
pub(crate) struct RemoteConnection {
    pub(crate) shard: ShardId,
    /// Its slot on its own shard.
    pub(crate) connection: ConnectionId,
    pub(crate) user: String,
    pub(crate) vhost: String,
    /// Its channels. Requests of a failed one are ignored: its own shard does not know yet.
    pub(super) channels: Vec<RemoteChannel>,
    /// Why home refuses it, and each of its requests.
    pub(crate) refusal: Option<Refusal>,
    /// Bytes of deliveries on their way to it that have not left its shard.
    pub(crate) underway: u64,
    /// The engine was refused room and waits for it.
    pub(crate) wants_room: Cell<bool>,
    /// Its shard knows that it stores messages.
    pub(crate) has_stored: bool,
    /// Its shard has learned in this turn that it outruns consumers.
    pub(crate) has_outrun: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RemoteChannel {
    number: u16,
    opening: u32,
    has_failed: bool,
}

impl RemoteConnection {
    /// Bytes that may be on their way to one, by how many may be unsent to a connection here.
    #[inline]
    pub(crate) fn underway_max(outbox_bytes_max: usize) -> u64 {
        UNDERWAY_TIMES * outbox_bytes_max as u64
    }

    /// A channel began on its own shard.
    pub(crate) fn opened(&mut self, number: u16, opening: u32) {
        self.closed(number);
        self.channels.push(RemoteChannel { number, opening, has_failed: false });
    }

    /// A channel ended on its own shard.
    pub(crate) fn closed(&mut self, number: u16) {
        self.channels.retain(|channel| channel.number != number);
    }

    /// Whether a channel's requests are carried out.
    pub(crate) fn is_served(&self, number: u16) -> bool {
        self.channel(number).is_some_and(|channel| !channel.has_failed)
    }

    /// A channel has failed: its further requests are ignored.
    pub(crate) fn failed(&mut self, number: u16) {
        let mut channels = self.channels.iter_mut();
        if let Some(channel) = channels.find(|channel| channel.number == number) {
            channel.has_failed = true;
        }
    }

    /// A channel's name on its own shard.
    #[inline]
    pub(crate) fn name(&self, number: u16) -> ChannelName {
        let id = ChannelId { connection: self.connection, number };
        let opening = self.channel(number).map_or(0, |channel| channel.opening);
        ChannelName { id, opening }
    }

    /// The name of the channel that began last.
    pub(crate) fn last_name(&self) -> ChannelName {
        self.name(self.channels.last().map_or(0, |channel| channel.number))
    }

    #[inline]
    fn channel(&self, number: u16) -> Option<&RemoteChannel> {
        self.channels.iter().find(|channel| channel.number == number)
    }
}

//! How much memory connections hold in the engine, and what is refused to those that hold too much.
//!
//! How much they may hold is the host's to say.

use super::definitions::Declarer;
use crate::channel::Channel;
use crate::consumer::Consumer;
use crate::consumer::unsettled::Delivered;
use crate::engine::{Engine, Storage};
use crate::interface::refusal::refuse;
use crate::lifetime::Hold;
use crate::{ConnectionId, HeldMemory, MemoryKind, Refusal};
use std::sync::Arc;

/// What a delayed message takes beside its bytes.
const DELAYED_BYTES: u64 = 80;
/// What a consumer takes beside itself: its name and its places in lists.
const CONSUMER_PLACES_BYTES: usize = 96;

impl Engine {
    /// Adds what a connection holds here. Its definitions are its user's.
    pub fn add_held(&self, id: ConnectionId, held: &mut HeldMemory) {
        let Some(connection) = self.clients.connection(id) else { return };
        held.add(MemoryKind::Fanouts, self.agenda.wide.bytes_of(id));
        for slot in connection.transactions.values() {
            let open = self.clients.transactions.get(*slot);
            held.add(MemoryKind::Transactions, open.map_or(0, |it| it.held.bytes()));
        }
        for (_, slot) in &connection.channels {
            let Some(channel) = self.clients.channels.get(*slot) else { continue };
            let consumers =
                channel.consumers.len() * (size_of::<Consumer>() + CONSUMER_PLACES_BYTES);
            let unsettled = channel.unsettled.places() * size_of::<Delivered>();
            let own = channel.transaction.and_then(|slot| self.clients.transactions.get(slot));
            let holds: usize = channel.holds.iter().map(Hold::bytes).sum();
            let places = self.clients.places.bytes_of(channel.id);
            let channel_bytes = (size_of::<Channel>() + consumers + holds + places) as u64;
            let channel_bytes = channel_bytes + channel.filter_bytes;
            held.add(MemoryKind::Channels, channel_bytes);
            held.add(MemoryKind::Unsettled, unsettled as u64);
            held.add(MemoryKind::Transactions, own.map_or(0, |it| it.held.bytes()));
            held.add(MemoryKind::Subscriptions, channel.subscribers.bytes);
        }
    }

    /// What messages take, those of queues, delayed and retained ones, and those on their way to very many
    /// queues whose publisher does not wait.
    #[must_use]
    pub fn message_memory(&self) -> u64 {
        let delayed = self.delays.len() as u64 * DELAYED_BYTES;
        let Storage { resident, loading_bytes, .. } = &self.storage;
        let others = self.agenda.wide.other_bytes() + self.agenda.purges.bytes();
        resident + loading_bytes + delayed + self.retained.index_bytes() + others
    }

    /// The next user whose definitions take more or less memory than when it was last returned here, with
    /// the bytes; the empty name is for what nobody declared since the start.
    pub fn next_change_of_definitions(&mut self) -> Option<(Arc<str>, u64)> {
        self.definitions.next_change()
    }

    /// Whether what would make a connection hold more memory is refused from now on.
    pub fn set_memory_short(&mut self, id: ConnectionId, is_short: bool) {
        if let Some(connection) = self.clients.connection_mut(id) {
            connection.is_short = is_short;
        }
    }

    /// Refuses what would make a connection hold more memory, where it holds too much.
    #[inline]
    pub(crate) fn check_may_hold_more(&self, id: ConnectionId) -> Result<(), Refusal> {
        let Some(connection) = self.clients.connection(id).filter(|it| it.is_short) else {
            return Ok(());
        };
        let user = connection.grant.as_ref().map_or("", |grant| &grant.user);
        refuse!(
            MemoryShort,
            "memory is short: the connection or all that user '{user}' has holds as much as it may"
        );
    }

    /// The connection's user as one who declares.
    pub(crate) fn declarer(&mut self, id: ConnectionId) -> Declarer {
        let user = self.clients.connection(id).and_then(|connection| connection.grant.as_ref());
        self.definitions.declarer(user.map_or("", |grant| &grant.user))
    }
}

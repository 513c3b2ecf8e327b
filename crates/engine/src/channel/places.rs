//! Places that a client has once, over all of its connections: whoever takes one that another connection has
//! takes it over.
//!
//! A client is told apart by virtual host, user and name ([`Engine::name_client`]); without a name it has no
//! places.

use crate::consumer::deferred_settle::Fate;
use crate::engine::Engine;
use crate::interface::limits::{PLACE_BYTES_MAX, SUBSCRIPTION_NAME_BYTES_MAX};
use crate::interface::refusal::refuse;
use crate::{CancelReason, ChannelId, ConnectionId, Effects, Refusal, Reply, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    vhost: u32,
    user: Arc<str>,
    client: Arc<str>,
    name: String,
}

/// Who has a place: a part of a channel, named by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Holder {
    channel: ChannelId,
    name: Arc<str>,
}

/// What a place takes in memory beside its texts.
const PLACE_BYTES: usize = 160;

/// The places of all clients that are taken.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// A connection may have a place several times.
    taken: BTreeSet<(Arc<Place>, Holder)>,
    held: BTreeMap<Holder, Arc<Place>>,
}

impl Places {
    fn take(&mut self, place: &Arc<Place>, holder: Holder) {
        self.release(holder.channel, &holder.name);
        self.taken.insert((Arc::clone(place), holder.clone()));
        self.held.insert(holder, Arc::clone(place));
    }

    /// A holder has ended, or its name is free for another one.
    pub(crate) fn release(&mut self, channel: ChannelId, holder: &str) {
        if self.held.is_empty() {
            return;
        }
        let holder = Holder { channel, name: holder.into() };
        if let Some(place) = self.held.remove(&holder) {
            self.taken.remove(&(place, holder));
        }
    }

    /// A channel has ended.
    pub(crate) fn release_all(&mut self, channel: ChannelId) {
        let first = Holder { channel, name: "".into() };
        while let Some((holder, _)) = self.held.range(&first..).next()
            && holder.channel == channel
        {
            let name = Arc::clone(&holder.name);
            self.release(channel, &name);
        }
    }

    /// Those of other connections that have a place.
    fn others(&self, place: &Arc<Place>, connection: ConnectionId) -> Vec<Holder> {
        let first = Holder { channel: ChannelId::default(), name: "".into() };
        let all = self.taken.range((Arc::clone(place), first)..);
        let its = all.take_while(|(taken, _)| taken == place).map(|(_, holder)| holder);
        its.filter(|holder| holder.channel.connection != connection).cloned().collect()
    }

    /// About how much memory those of a channel take.
    pub(crate) fn bytes_of(&self, channel: ChannelId) -> usize {
        let first = Holder { channel, name: "".into() };
        let its = self.held.range(&first..).take_while(|(holder, _)| holder.channel == channel);
        its.map(|(holder, place)| PLACE_BYTES + holder.name.len() + place.name.len()).sum()
    }
}

impl Engine {
    /// A holder takes a place of its client, from those of other connections that have it.
    pub(crate) fn take_place<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        name: String,
        holder: &str,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        let Some(connection) = self.clients.connection(id.connection) else {
            return Ok(Reply::Done);
        };
        let (Some(grant), Some(client)) = (&connection.grant, &connection.client) else {
            return Ok(Reply::Done);
        };
        let (user, client) = (Arc::clone(&grant.user), Arc::clone(client));
        let vhost = connection.vhost;
        if name.len() > PLACE_BYTES_MAX || holder.len() > SUBSCRIPTION_NAME_BYTES_MAX {
            refuse!(LimitExceeded, "the name of a place or of its holder is too long");
        }
        self.check_may_hold_more(id.connection)?;
        let place = Arc::new(Place { vhost, user, client, name });
        for other in self.clients.places.others(&place, id.connection) {
            self.lose_place(now, &other, fx);
        }
        let holder = Holder { channel: id, name: holder.into() };
        self.clients.places.take(&place, holder);
        Ok(Reply::Done)
    }

    /// A holder loses its place, and all that goes with that: its consumer ends as if its connection were
    /// lost, what it held of temporary queues and topics is released.
    fn lose_place<F: Effects>(&mut self, now: Time, holder: &Holder, fx: &mut F) {
        let Holder { channel, name } = holder;
        self.clients.places.release(*channel, name);
        let Some(slot) = self.channel_slot(*channel) else { return };
        self.end_consumer_named(now, slot, name, Some(Fate::Lost), fx);
        self.release_holder(now, slot, name, fx);
        self.tell_cancelled(slot, String::from(&**name), CancelReason::TakenOver);
    }
}

//! Places that a client has once, over all of its connections: a connection that takes one takes it from the
//! others.
//!
//! Clients are known by virtual host, user and name ([`crate::Engine::name_client`]); one without a name
//! has no places.

use crate::{ChannelId, ConnectionId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) vhost: u32,
    pub(crate) user: Arc<str>,
    pub(crate) client: Arc<str>,
    pub(crate) name: String,
}

/// Who has a place: a part of a channel, named by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Holder {
    pub(crate) channel: ChannelId,
    pub(crate) name: Arc<str>,
}

/// What a place takes in memory beside its texts.
const PLACE_BYTES: usize = 160;

/// The places of all clients that are taken.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// A connection may have a place several times.
    taken: BTreeSet<(Arc<Place>, Holder)>,
    held: BTreeMap<Holder, Arc<Place>>,
    /// Holders that have lost their places and not ended: what they go on to ask for is refused.
    lost: BTreeSet<Holder>,
}

impl Places {
    /// A holder takes a place.
    pub(crate) fn take(&mut self, place: &Arc<Place>, holder: Holder) {
        self.release(holder.channel, &holder.name);
        self.taken.insert((Arc::clone(place), holder.clone()));
        self.held.insert(holder, Arc::clone(place));
    }

    /// A holder has ended, or its name is free for another one.
    pub(crate) fn release(&mut self, channel: ChannelId, holder: &str) {
        if self.held.is_empty() && self.lost.is_empty() {
            return;
        }
        let holder = Holder { channel, name: holder.into() };
        self.lost.remove(&holder);
        if let Some(place) = self.held.remove(&holder) {
            self.taken.remove(&(place, holder));
        }
    }

    /// A holder loses its place to another one.
    pub(crate) fn lose(&mut self, holder: &Holder) {
        self.release(holder.channel, &holder.name);
        self.lost.insert(holder.clone());
    }

    /// Whether a holder has lost its place, and not ended since.
    pub(crate) fn has_lost(&self, channel: ChannelId, holder: &str) -> bool {
        !self.lost.is_empty() && self.lost.contains(&Holder { channel, name: holder.into() })
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
        while let Some(holder) = self.lost.range(&first..).next()
            && holder.channel == channel
        {
            let name = Arc::clone(&holder.name);
            self.release(channel, &name);
        }
    }

    /// Those of other connections that have a place.
    pub(crate) fn others(&self, place: &Arc<Place>, connection: ConnectionId) -> Vec<Holder> {
        let first = Holder { channel: ChannelId::default(), name: "".into() };
        let all = self.taken.range((Arc::clone(place), first)..);
        let its = all.take_while(|(taken, _)| taken == place).map(|(_, holder)| holder);
        its.filter(|holder| holder.channel.connection != connection).cloned().collect()
    }

    /// About how much memory those of a channel take.
    pub(crate) fn bytes_of(&self, channel: ChannelId) -> usize {
        let first = Holder { channel, name: "".into() };
        let its = self.held.range(&first..).take_while(|(holder, _)| holder.channel == channel);
        let held = its.map(|(holder, place)| PLACE_BYTES + holder.name.len() + place.name.len());
        let its = self.lost.range(&first..).take_while(|holder| holder.channel == channel);
        let lost = its.map(|holder| PLACE_BYTES + holder.name.len());
        held.sum::<usize>() + lost.sum::<usize>()
    }
}

//! What clients have open, in plain values for hosts to show: channels and consumers.

use crate::engine::Engine;
use crate::{ChannelId, ConnectionId};
use std::ops::Range;
use std::time::Duration;

/// A channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelListing {
    /// Its number in its connection.
    pub number: u16,
    /// How many consumers it has.
    pub consumers: usize,
    /// How many deliveries to it are not settled.
    pub unsettled: usize,
    /// The largest credit of its consumers, in messages; 0: none has a limit, or there is none.
    pub credit: u32,
    /// Its credit over all its consumers, in messages; 0: no limit.
    pub channel_credit: u32,
    /// Its publishes are confirmed.
    pub confirms: bool,
    /// Publishes that it was not told about yet.
    pub unconfirmed: u64,
    /// It has a transaction of its own.
    pub transactional: bool,
}

/// A consumer of a queue.
#[derive(Clone, Copy, Debug)]
pub struct ConsumerListing<'a> {
    /// Its queue's virtual host.
    pub vhost: &'a str,
    /// Its queue.
    pub queue: &'a str,
    /// Its channel; a remote shard's connection in the slot that home has it in.
    pub channel: ChannelId,
    /// Its name.
    pub name: &'a str,
    /// No other consumer may be beside it.
    pub exclusive: bool,
    /// Deliveries count as accepted once sent.
    pub presettled: bool,
    /// It is served, and does not wait for another to go.
    pub active: bool,
    /// Those of higher priority are served first.
    pub priority: i32,
    /// How many deliveries may be unsettled; 0: no limit.
    pub credit: u32,
    /// How long its deliveries may stay unsettled, where it or its queue says so.
    pub settle_timeout: Option<Duration>,
}

impl Engine {
    /// The channels of a connection.
    pub fn list_channels(&self, id: ConnectionId) -> impl Iterator<Item = ChannelListing> {
        let connection = self.clients.connection(id).into_iter();
        let channels = connection.flat_map(|connection| &connection.channels);
        channels.filter_map(|(number, slot)| {
            let channel = self.clients.channels.get(*slot)?;
            let consumers = channel.consumers.iter();
            let consumers = consumers.filter_map(|slot| self.clients.consumers.get(slot));
            Some(ChannelListing {
                number: *number,
                consumers: channel.consumers.len(),
                unsettled: channel.unsettled.len(),
                credit: consumers.map(|it| it.account.credit.messages).max().unwrap_or(0),
                channel_credit: channel.account.credit.messages,
                confirms: channel.confirms.is_some(),
                unconfirmed: channel.confirms.as_ref().map_or(0, |confirms| confirms.untold()),
                transactional: channel.transaction.is_some(),
            })
        })
    }

    /// The consumers of queues in some of the [`Engine::queue_places`].
    pub fn list_consumers_in(
        &self,
        places: Range<usize>,
    ) -> impl Iterator<Item = ConsumerListing<'_>> {
        self.queues.iter_in(places).flat_map(move |(_, queue)| {
            let first = queue.consumers.first().copied();
            queue.consumers.iter().filter_map(move |slot| {
                let consumer = self.clients.consumers.get(*slot)?;
                let channel = self.clients.channels.get(consumer.channel)?;
                Some(ConsumerListing {
                    vhost: &self.topology.vhosts.get(queue.vhost)?.name,
                    queue: &queue.name,
                    channel: channel.id,
                    name: &consumer.name,
                    exclusive: consumer.exclusive,
                    presettled: consumer.presettled,
                    active: !queue.options.single_active || first == Some(*slot),
                    priority: consumer.priority,
                    credit: consumer.account.credit.messages,
                    settle_timeout: consumer.settle_timeout.or(queue.options.settle_timeout),
                })
            })
        })
    }
}

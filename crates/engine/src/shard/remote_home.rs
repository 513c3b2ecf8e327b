//! What a remote shard does about queues: it hands publishes, settles and requests to home, for its
//! channels.
//!
//! Home hears of a connection, and of a channel, when they first need it.

use crate::engine::Engine;
use crate::{Call, ChannelId, Effects, Grant, Publish, Refusal, Request, Settle, ShardId};

impl Engine {
    /// Whether a channel is the one that home knows by this opening ([`Call::Open`]), and not a later
    /// one of its number.
    #[must_use]
    pub fn is_opening(&self, channel: ChannelId, opening: u32) -> bool {
        self.clients.channel(channel).is_some_and(|channel| channel.opening == opening)
    }

    /// The opening of the channel that home heard of last.
    #[must_use]
    pub fn openings(&self) -> u32 {
        self.clients.openings
    }

    /// Whether this is a remote shard: queues are at home.
    #[inline]
    pub(crate) fn is_away(&self) -> bool {
        self.options.shard != ShardId::HOME
    }

    pub(crate) fn publish_at_home<F: Effects>(
        &mut self,
        id: ChannelId,
        publish: &Publish<'_>,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        self.make_known(id, fx)?;
        self.counters.sent_home += 1;
        fx.call_home(Call::Publish(id, publish));
        Ok(())
    }

    pub(crate) fn settle_at_home<F: Effects>(
        &mut self,
        id: ChannelId,
        settle: Settle,
        annotations: &[u8],
        fx: &mut F,
    ) -> Result<(), Refusal> {
        self.make_known(id, fx)?;
        fx.call_home(Call::Settle(id, settle, annotations));
        Ok(())
    }

    pub(crate) fn grant_at_home<F: Effects>(
        &mut self,
        id: ChannelId,
        consumer: &str,
        grant: Grant,
        fx: &mut F,
    ) {
        if self.make_known(id, fx).is_ok() {
            fx.call_home(Call::Grant(id, consumer, grant));
        }
    }

    pub(crate) fn request_at_home<F: Effects>(
        &mut self,
        id: ChannelId,
        request: Request,
        fx: &mut F,
    ) {
        match self.make_known(id, fx) {
            Ok(()) => fx.call_home(Call::Request(id, request)),
            Err(refusal) => fx.reply(id, Err(refusal)),
        }
    }

    /// Announces a channel and its connection to home, once.
    #[inline]
    pub(crate) fn make_known<F: Effects>(
        &mut self,
        id: ChannelId,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let slot = self.channel_slot(id).ok_or_else(|| Engine::no_channel(id))?;
        if self.clients.channels.get(slot).is_some_and(|channel| channel.opening == 0) {
            self.introduce_channel(id, slot, fx);
        }
        Ok(())
    }

    #[cold]
    fn introduce_channel<F: Effects>(&mut self, channel: ChannelId, slot: u32, fx: &mut F) {
        let connection = self.clients.connections[channel.connection.0 as usize].as_mut();
        let connection = connection.expect("channels end before their connection");
        if !connection.is_at_home {
            connection.is_at_home = true;
            let user = connection.grant.as_ref().map_or("", |grant| &grant.user);
            let vhost = &self.topology.vhosts[connection.vhost].name;
            let client = connection.client.as_deref().unwrap_or_default();
            fx.call_home(Call::Connect { connection: channel.connection, user, vhost, client });
        }
        self.clients.openings += 1;
        let opening = self.clients.openings;
        self.clients.channels[slot].opening = opening;
        fx.call_home(Call::Open { channel, opening });
    }
}

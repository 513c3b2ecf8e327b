//! In-process clients: connections of code in the host itself, which make requests and take replies as values
//! instead of bytes. They have a user and its rights, on any shard, as clients of a protocol do.

use super::in_process_events::{Identity, InProcessEvent};
use crate::node::Node;
use angarium_engine::{ChannelId, ConnectionId, Refusal, Request, Revocation, Time};

/// The only channel of an in-process client.
const CHANNEL: u16 = 1;

impl Node {
    /// An in-process client connects. Refused: as [`angarium_engine::Engine::connect`].
    pub fn connect_in_process(&mut self, user: &str, vhost: &str) -> Result<ConnectionId, Refusal> {
        let id = self.take_slot();
        if let Err(refusal) = self.engine.connect(id, user, vhost) {
            self.connections.free.push(id);
            return Err(refusal);
        }
        self.engine.open(ChannelId { connection: id, number: CHANNEL });
        let identity = Identity { user: user.to_owned(), vhost: vhost.to_owned() };
        self.effects.in_process.clients.insert(id, identity);
        Ok(id)
    }

    /// It makes a request, once its last one is answered. [`Node::next_in_process_event`] has the answer.
    pub fn request_in_process(&mut self, now: Time, id: ConnectionId, request: Request) {
        if !self.effects.in_process.has(id) {
            return;
        }
        self.effects.begin_call(now);
        let channel = ChannelId { connection: id, number: CHANNEL };
        self.engine.request(now, channel, request, &mut self.effects);
        self.answer(now);
    }

    /// It is gone.
    pub fn disconnect_in_process(&mut self, now: Time, id: ConnectionId) {
        if self.effects.in_process.clients.remove(&id).is_none() {
            return;
        }
        self.engine.disconnect(now, id, &mut self.effects);
        self.effects.in_process.events.retain(|(client, _)| *client != id);
        self.free_slot(id);
    }

    /// The next thing that an in-process client gets, in order for each.
    pub fn next_in_process_event(&mut self) -> Option<(ConnectionId, InProcessEvent)> {
        self.effects.in_process.events.pop_front()
    }

    pub(crate) fn end_in_process(&mut self, now: Time, reason: &str) {
        for id in self.effects.in_process.clients.keys().copied().collect::<Vec<_>>() {
            self.end_in_process_client(now, id, reason);
        }
    }

    /// Ends the in-process client in a slot if it rests on what is taken away; says whether it did.
    pub(crate) fn end_in_process_if_included(
        &mut self,
        now: Time,
        id: ConnectionId,
        revocation: Revocation<&str>,
        reason: &str,
    ) -> bool {
        let identity = self.effects.in_process.clients.get(&id);
        let is_included =
            identity.is_some_and(|it| revocation.includes(&it.user, &it.vhost, false));
        if is_included {
            self.end_in_process_client(now, id, reason);
        }
        is_included
    }

    fn end_in_process_client(&mut self, now: Time, id: ConnectionId, reason: &str) {
        self.disconnect_in_process(now, id);
        let closed = InProcessEvent::Closed(reason.to_owned());
        self.effects.in_process.events.push_back((id, closed));
    }
}

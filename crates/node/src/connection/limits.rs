//! Connection limits of users, counted at home for all shards: another shard asks home before it admits a
//! connection that has logged in.

use crate::connection::handler::AnyHandler;
use crate::connection::key::ConnectionKey;
use crate::node::Node;
use crate::shard::message::{FromHome, ShardMessage, ToHome};
use angarium_engine::{ConnectionId, ShardId, Time};
use angarium_protocol::{Identity, Peer};
use std::collections::BTreeMap;

/// Connections that were admitted, and those that wait for it.
#[derive(Debug, Default)]
pub(crate) struct ConnectionLimits {
    /// At home: connections of other shards that are counted, with their users.
    taken: BTreeMap<(ShardId, ConnectionId), String>,
    /// On another shard: connections that have logged in and are not admitted yet.
    asked: BTreeMap<ConnectionId, Identity>,
}

impl Node {
    /// What a client is sent when the broker has too many connections; nothing where its protocol has no
    /// message for that.
    #[must_use]
    pub fn turned_away(&mut self, now: Time, peer: &Peer) -> Vec<u8> {
        let nobody = ConnectionKey { id: ConnectionId(0), serial: 0 };
        let mut session = AnyHandler::new(&self.options, nobody, peer, now);
        session.turned_away(&mut self.engine)
    }

    /// A connection here has logged in: asks home whether it may be.
    pub(crate) fn ask_for_admission(&mut self, id: ConnectionId, serial: u64, identity: Identity) {
        let user = &identity.user;
        self.effects.links.ask_home(&ToHome::Admit { connection: id, serial, user });
        self.connections.connection_limits.asked.insert(id, identity);
    }

    /// Home's answer.
    pub(crate) fn admitted(&mut self, now: Time, id: ConnectionId, serial: u64, is_admitted: bool) {
        // An earlier connection in this slot asked.
        if !self.is_serial(id, serial) {
            return;
        }
        if let Some(identity) = self.connections.connection_limits.asked.remove(&id) {
            // The engine says so where the client asks to be let in.
            self.engine.admitted(id, is_admitted);
            self.logged_in(now, id, Ok(identity));
        }
    }

    /// A connection here has gone.
    pub(crate) fn release_admission(&mut self, id: ConnectionId) {
        self.connections.connection_limits.asked.remove(&id);
        if !self.is_home() {
            self.effects.links.ask_home(&ToHome::Left(id));
        }
    }

    /// At home: counts a connection of another shard in, if it may be.
    pub(crate) fn admit(&mut self, from: ShardId, id: ConnectionId, serial: u64, user: &str) {
        // It may have logged in before as another user.
        self.forget_admission(from, id);
        let is_admitted = self.engine.admit(user).is_ok();
        if is_admitted {
            self.connections.connection_limits.taken.insert((from, id), user.to_owned());
        }
        let answer = FromHome::Admitted { connection: id, serial, is_admitted };
        self.effects.links.say(from, &ShardMessage::FromHome(answer));
    }

    /// At home: a connection of another shard has gone.
    pub(crate) fn forget_admission(&mut self, from: ShardId, id: ConnectionId) {
        if let Some(user) = self.connections.connection_limits.taken.remove(&(from, id)) {
            self.engine.left(&user);
        }
    }
}

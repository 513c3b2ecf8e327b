//! Connection limits of users and virtual hosts, counted at home for all shards: another shard asks home
//! before it admits a connection that has logged in, and before that enters its virtual host.

use crate::connection::handler::AnyHandler;
use crate::connection::key::ConnectionKey;
use crate::node::Node;
use crate::shard::message::{FromHome, ToHome};
use angarium_engine::{ConnectionId, ShardId, Time};
use angarium_protocol::{Identity, Peer, ProtocolHandler, TurnedAway};
use std::collections::BTreeMap;

/// Connections that were admitted, and those that wait for it.
#[derive(Debug, Default)]
pub(crate) struct ConnectionLimits {
    /// At home: connections of other shards that are counted.
    taken: BTreeMap<(ShardId, ConnectionId), Taken>,
    /// On another shard: connections that have logged in and are not admitted yet.
    asked: BTreeMap<ConnectionId, Identity>,
}

/// What such a connection is counted for.
#[derive(Debug)]
struct Taken {
    user: String,
    /// Once it has entered one.
    vhost: Option<String>,
}

impl Node {
    /// What a client is sent that is refused at once; nothing where its protocol has no message for that.
    #[must_use]
    pub fn turned_away(&mut self, now: Time, peer: &Peer, why: TurnedAway) -> Vec<u8> {
        let nobody = ConnectionKey { id: ConnectionId(0), serial: 0 };
        let mut handler = AnyHandler::new(&self.options, nobody, peer, now);
        handler.turned_away(&mut self.engine, why)
    }

    /// A connection here has logged in: asks home whether it may be.
    pub(crate) fn ask_for_admission(&mut self, key: ConnectionKey, identity: Identity) {
        self.effects.links.ask_home(ToHome::Admit { key, user: &identity.user });
        self.connections.connection_limits.asked.insert(key.id, identity);
    }

    /// Home's answer.
    pub(crate) fn admitted(&mut self, now: Time, key: ConnectionKey, is_admitted: bool) {
        // An earlier connection in this slot asked.
        if !self.is_there(key) {
            return;
        }
        if let Some(identity) = self.connections.connection_limits.asked.remove(&key.id) {
            // The engine says so where the client asks to be let in.
            self.engine.admitted(key.id, is_admitted);
            return self.logged_in(now, key.id, Ok(identity));
        }
        self.engine.entered(key.id, is_admitted);
        self.resume_with(now, key.id, |handler, context| handler.entered(context));
        self.apply_quota(key.id);
    }

    /// A connection here has gone.
    pub(crate) fn release_admission(&mut self, id: ConnectionId) {
        self.connections.connection_limits.asked.remove(&id);
        if !self.is_home() {
            self.effects.links.ask_home(ToHome::Left { connection: id });
        }
    }

    /// At home: counts a connection of another shard in, if it may be.
    pub(crate) fn admit(&mut self, from: ShardId, key: ConnectionKey, user: &str) {
        let taken = self.connections.connection_limits.taken.get(&(from, key.id));
        let is_again = taken.is_some_and(|taken| taken.user == user);
        if !is_again {
            // It may have logged in before as another user.
            self.forget_admission(from, key.id);
        }
        let is_admitted = is_again || self.engine.admit(user).is_ok();
        if is_admitted && !is_again {
            let taken = Taken { user: user.to_owned(), vhost: None };
            self.connections.connection_limits.taken.insert((from, key.id), taken);
        }
        self.effects.links.say(from, FromHome::Admitted { key, is_admitted });
    }

    /// Asks home for connections here that want to enter a virtual host.
    pub(crate) fn ask_for_vhosts(&mut self) {
        for (id, vhost) in std::mem::take(&mut self.effects.entering) {
            let Some(connection) = self.connections.get(id) else { continue };
            let key = ConnectionKey { id, serial: connection.serial };
            self.effects.links.ask_home(ToHome::Enter { key, vhost: &vhost });
        }
    }

    /// At home: counts a connection of another shard to a virtual host, if that has room.
    pub(crate) fn enter(&mut self, from: ShardId, key: ConnectionKey, vhost: &str) {
        let taken = self.connections.connection_limits.taken.get_mut(&(from, key.id));
        let is_admitted = taken.is_some_and(|taken| {
            if let Some(before) = taken.vhost.take() {
                self.engine.leave_vhost(&before);
            }
            let has_room = self.engine.enter_vhost(vhost).is_ok();
            taken.vhost = has_room.then(|| vhost.to_owned());
            has_room
        });
        self.effects.links.say(from, FromHome::Admitted { key, is_admitted });
    }

    /// At home: a connection of another shard has gone.
    pub(crate) fn forget_admission(&mut self, from: ShardId, id: ConnectionId) {
        let Some(taken) = self.connections.connection_limits.taken.remove(&(from, id)) else {
            return;
        };
        self.engine.left(&taken.user);
        if let Some(vhost) = taken.vhost {
            self.engine.leave_vhost(&vhost);
        }
    }
}

//! Clients that may be lost without their sockets knowing it: another connection claims what they have.
//!
//! Each is sent something. Where its system does not acknowledge that, ours ends the connection soon, and not
//! after the minutes that it usually tries.

use super::clients::Questioned;
use super::mailbox::Letter;
use super::shard::Shard;
use angarium_engine::ConnectionId;
use rustix::net::sockopt;
use std::time::Duration;

/// How long a system may take to acknowledge, or a client that reads nothing to read.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_millis(1_500);
/// How long the socket of such a client is watched so closely.
const WATCHED_FOR: Duration = Duration::from_secs(4);

impl Shard {
    /// At home: has the clients questioned, on their shards, that the engine doubts.
    pub(super) fn question_clients(&mut self) {
        for (shard, id) in self.node.take_doubted() {
            if shard == self.directory.here {
                self.question(id);
            } else {
                let task = move |shard: &mut Shard| shard.question(id);
                self.directory.send(shard, Letter::Task(Box::new(task)));
            }
        }
    }

    /// Finds out whether a client is there.
    fn question(&mut self, id: ConnectionId) {
        let Some(client) = self.clients.index_of(id).and_then(|at| self.clients.get(at)) else {
            return;
        };
        let within = u32::try_from(ACKNOWLEDGED_WITHIN.as_millis()).unwrap_or(u32::MAX);
        // Unix sockets have no such option, and know at once.
        let otherwise = sockopt::tcp_user_timeout(&client.socket).unwrap_or(0);
        let _ = sockopt::set_tcp_user_timeout(&client.socket, within);
        let until = self.now.plus(WATCHED_FOR);
        match self.clients.questioned.iter_mut().find(|it| it.id == id) {
            Some(before) => before.until = until,
            None => self.clients.questioned.push(Questioned { id, until, otherwise }),
        }
        self.node.doubt(self.now, id);
    }

    /// Leaves those in peace that have been questioned long enough.
    pub(super) fn end_questions(&mut self) {
        let (done, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.clients.questioned)
            .into_iter()
            .partition(|it| it.until <= self.now);
        self.clients.questioned = rest;
        for Questioned { id, otherwise, .. } in done {
            if let Some(client) = self.clients.index_of(id).and_then(|at| self.clients.get(at)) {
                let _ = sockopt::set_tcp_user_timeout(&client.socket, otherwise);
            }
        }
    }
}

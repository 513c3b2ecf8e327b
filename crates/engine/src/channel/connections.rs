//! Connections begin and end: who may connect, and how many connections of a user home counts.

use super::Connection;
use crate::access::Grant;
use crate::engine::Engine;
use crate::{Call, ChannelId, ConnectionId, Effects, Refusal, SubjectPermissions, Time};

impl Engine {
    /// Begins a connection by `user` to `vhost`. Refused: unknown vhost (`NotFound`), no
    /// permission (`AccessRefused`), too many connections of the user (`LimitExceeded`): home
    /// counts them, a remote shard learns it by [`Engine::admitted`].
    pub fn connect(
        &mut self,
        connection: ConnectionId,
        user: &str,
        vhost: &str,
    ) -> Result<(), Refusal> {
        let slot = self.vhost_slot(vhost)?;
        let grant = self.access.grant(user, vhost)?;
        let admitted = if !self.is_away() {
            self.admit(user)
        } else if self.clients.not_admitted.contains(&connection) {
            Err(self.access.too_many(user, self.options.limits.user_connections_max))
        } else {
            Ok(())
        };
        self.counters.not_admitted += u64::from(admitted.is_err());
        admitted?;
        self.add_connection(connection, slot, Some(grant), !self.is_away());
        Ok(())
    }

    /// At home: begins a connection of a remote shard, which was admitted there.
    pub fn connect_guest(
        &mut self,
        connection: ConnectionId,
        user: &str,
        vhost: &str,
    ) -> Result<(), Refusal> {
        let slot = self.vhost_slot(vhost)?;
        let grant = self.access.grant_as_it_is(user, vhost);
        self.add_connection(connection, slot, Some(grant), false);
        Ok(())
    }

    /// Begins a connection of the host itself to `vhost`; it may do everything. Refused:
    /// unknown vhost (`NotFound`).
    pub fn connect_internal(
        &mut self,
        connection: ConnectionId,
        vhost: &str,
    ) -> Result<(), Refusal> {
        let slot = self.vhost_slot(vhost)?;
        self.add_connection(connection, slot, None, false);
        Ok(())
    }

    /// At home: counts a connection of the user to a remote shard. Refused: the user has
    /// reached its limit.
    pub fn admit(&mut self, user: &str) -> Result<(), Refusal> {
        self.access.admit(user, self.options.limits.user_connections_max)
    }

    /// At home: a connection of the user to a remote shard, which was counted, has ended.
    pub fn left(&mut self, user: &str) {
        self.access.left(user);
    }

    /// On a remote shard: home has counted a connection, or found that its user has too many.
    pub fn admitted(&mut self, connection: ConnectionId, is_admitted: bool) {
        if is_admitted {
            self.clients.not_admitted.remove(&connection);
        } else {
            self.clients.not_admitted.insert(connection);
        }
    }

    /// The subject permissions of a connection's user, as of the connection's last request;
    /// `None`: unrestricted.
    #[must_use]
    pub fn subject_permissions(&self, connection: ConnectionId) -> Option<&SubjectPermissions> {
        let slot = self.clients.connections.get(connection.0 as usize)?;
        slot.as_ref()?.grant.as_ref()?.subjects()
    }

    /// Ends a connection: closes its channels, deletes its exclusive queues.
    pub fn disconnect<F: Effects>(&mut self, now: Time, id: ConnectionId, fx: &mut F) {
        while let Some(Some(connection)) = self.clients.connections.get(id.0 as usize) {
            let Some((number, _)) = connection.channels.last() else { break };
            let number = *number;
            self.close(now, ChannelId { connection: id, number }, fx);
        }
        let owned: Vec<u32> = self
            .queues
            .iter()
            .filter(|(_, queue)| queue.owner == Some(id))
            .map(|(slot, _)| slot)
            .collect();
        for slot in owned {
            self.delete_queue(slot, fx);
        }
        let ended = self.clients.connections.get_mut(id.0 as usize).and_then(Option::take);
        if ended.as_ref().is_some_and(|connection| connection.is_at_home) {
            fx.call_home(Call::Disconnect(id));
        }
        let counted = ended.filter(|connection| connection.is_counted);
        if let Some(grant) = counted.and_then(|connection| connection.grant) {
            self.access.left(grant.user());
        }
        self.run_overdue(now, fx);
    }

    fn add_connection(
        &mut self,
        id: ConnectionId,
        vhost: u32,
        grant: Option<Grant>,
        is_counted: bool,
    ) {
        let index = id.0 as usize;
        if self.clients.connections.len() <= index {
            self.clients.connections.resize_with(index + 1, || None);
        }
        debug_assert!(
            self.clients.connections[index].is_none(),
            "the host reuses slots after disconnect"
        );
        self.clients.connections[index] =
            Some(Connection { grant, vhost, channels: Vec::new(), is_counted, is_at_home: false });
    }
}

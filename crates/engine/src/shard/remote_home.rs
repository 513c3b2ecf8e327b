//! What a shard that is not home does about queues: it hands it to home, in the name of its sessions.
//!
//! Home hears of a connection, and of a session, when they first need it.

use crate::engine::Engine;
use crate::{ConnectionId, Effects, Publish, Refusal, Request, SessionId, Settle, ShardId};

/// What home is asked to do for a session of another shard. The host carries it out there, in order,
/// as if the session were home's; what comes of it is carried back.
#[derive(Debug)]
pub enum Call<'a> {
    /// A connection begins.
    Connect {
        /// The connection, on its own shard.
        connection: ConnectionId,
        /// Its user.
        user: &'a str,
        /// Its virtual host.
        vhost: &'a str,
    },
    /// A session of it begins.
    Open {
        /// The session.
        session: SessionId,
        /// Tells it from earlier ones of its number.
        opening: u32,
    },
    /// [`Engine::publish`].
    Publish(SessionId, &'a Publish<'a>),
    /// [`Engine::settle`].
    Settle(SessionId, Settle),
    /// [`Engine::request`].
    Request(SessionId, Request),
    /// The session ends.
    Close(SessionId),
    /// The connection ends.
    Disconnect(ConnectionId),
}

impl Engine {
    /// Whether queues are on another shard.
    #[inline]
    pub(crate) fn is_away(&self) -> bool {
        self.options.shard != ShardId::HOME
    }

    pub(crate) fn publish_at_home<F: Effects>(
        &mut self,
        id: SessionId,
        publish: &Publish<'_>,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        self.make_known(id, fx)?;
        self.counters.sent_home += 1;
        fx.call(Call::Publish(id, publish));
        Ok(())
    }

    pub(crate) fn settle_at_home<F: Effects>(
        &mut self,
        id: SessionId,
        settle: Settle,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        self.make_known(id, fx)?;
        fx.call(Call::Settle(id, settle));
        Ok(())
    }

    pub(crate) fn request_at_home<F: Effects>(
        &mut self,
        id: SessionId,
        request: Request,
        fx: &mut F,
    ) {
        match self.make_known(id, fx) {
            Ok(()) => fx.call(Call::Request(id, request)),
            Err(refusal) => fx.reply(id, Err(refusal)),
        }
    }

    /// Tells home of a session and its connection, where it does not know them yet.
    #[inline]
    fn make_known<F: Effects>(&mut self, id: SessionId, fx: &mut F) -> Result<(), Refusal> {
        let slot = self.session_slot(id).ok_or_else(|| Engine::no_session(id))?;
        if self.sessions.get(slot).is_some_and(|session| session.opening == 0) {
            self.introduce_session(id, slot, fx);
        }
        Ok(())
    }

    #[cold]
    fn introduce_session<F: Effects>(&mut self, session: SessionId, slot: u32, fx: &mut F) {
        let connection = self.connections[session.connection.0 as usize].as_mut();
        let connection = connection.expect("sessions end before their connection");
        if !connection.is_at_home {
            connection.is_at_home = true;
            let user = connection.grant.as_ref().map_or("", |grant| grant.user());
            let vhost = &self.vhosts.get(connection.vhost).expect("sessions end first").name;
            fx.call(Call::Connect { connection: session.connection, user, vhost });
        }
        self.openings += 1;
        let opening = self.openings;
        self.sessions.get_mut(slot).expect("a session's slot is in use").opening = opening;
        fx.call(Call::Open { session, opening });
    }
}

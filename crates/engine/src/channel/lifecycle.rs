//! Connections and sessions come and go.

use super::{Connection, Inbox, Session};
use crate::access::Grant;
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::routing::vhost::Vhost;
use crate::{Call, ConnectionId, Effects, Position, SessionId, StorageState, Time};
use crate::{Refusal, RefusalKind, Reply};

impl Engine {
    pub(crate) fn add_connection(
        &mut self,
        id: ConnectionId,
        vhost: u32,
        grant: Option<Grant>,
        is_counted: bool,
    ) {
        let index = id.0 as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        debug_assert!(self.connections[index].is_none(), "the host reuses slots after disconnect");
        self.connections[index] =
            Some(Connection { grant, vhost, sessions: Vec::new(), is_counted, is_at_home: false });
    }

    pub(crate) fn end_connection<F: Effects>(&mut self, now: Time, id: ConnectionId, fx: &mut F) {
        while let Some(Some(connection)) = self.connections.get(id.0 as usize) {
            let Some((number, _)) = connection.sessions.last() else { break };
            let number = *number;
            self.close_session(now, SessionId { connection: id, number }, fx);
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
        let ended = self.connections.get_mut(id.0 as usize).and_then(Option::take);
        if ended.as_ref().is_some_and(|connection| connection.is_at_home) {
            fx.call(Call::Disconnect(id));
        }
        let counted = ended.filter(|connection| connection.is_counted);
        if let Some(grant) = counted.and_then(|connection| connection.grant) {
            self.access.left(grant.user());
        }
        self.run_overdue(now, fx);
    }

    pub(crate) fn open_session(&mut self, id: SessionId) {
        let Some(Some(connection)) = self.connections.get_mut(id.connection.0 as usize) else {
            debug_assert!(false, "sessions are opened on connections that are there");
            return;
        };
        let index =
            match connection.sessions.binary_search_by_key(&id.number, |(number, _)| *number) {
                Err(index) => index,
                Ok(_) => {
                    debug_assert!(false, "the host has made sure that the session is not open");
                    return;
                }
            };
        let slot = self.sessions.insert(Session::new(id, connection.vhost));
        connection.sessions.insert(index, (id.number, slot));
    }

    pub(crate) fn close_session<F: Effects>(&mut self, now: Time, id: SessionId, fx: &mut F) {
        let Some(slot) = self.session_slot(id) else { return };
        let session = self.sessions.get_mut(slot).expect("a session's slot is in use");
        session.transaction = None;
        // Without flow nothing is delivered to it while what it had goes back.
        session.flow = false;
        let subscriptions = session.subscriptions.clone();
        let queues = self.queues_of(slot);
        for subscription in subscriptions {
            self.end_subscription(now, subscription, fx);
        }
        self.requeue_all(now, slot, &queues, fx);
        self.forget_gets(slot, id);
        if let Some(confirms) =
            self.sessions.get_mut(slot).and_then(|session| session.confirms.as_mut())
        {
            self.counters.confirmed += confirms.tell(id, fx);
        }
        let session = self.sessions.remove(slot).expect("a session's slot is in use");
        self.confirming.retain(|confirming| *confirming != slot);
        if let Some(timer) = session.settle_timer {
            self.timers.clear(timer, Timer::Settle(slot));
        }
        if session.opening != 0 {
            fx.call(Call::Close(id));
        }
        self.end_listeners(id.connection, session.listeners);
        if let Some(inbox) = session.inbox {
            self.remove_inbox(session.vhost, &inbox);
        }
        if let Some(Some(connection)) = self.connections.get_mut(id.connection.0 as usize) {
            connection.sessions.retain(|(number, _)| *number != id.number);
        }
        self.run_overdue(now, fx);
    }

    /// A session that ends waits for no message any more. Only where it does are all queues looked at.
    fn forget_gets(&mut self, slot: u32, id: SessionId) {
        let session = self.sessions.get_mut(slot).expect("a session's slot is in use");
        if std::mem::take(&mut session.gets) == 0 {
            return;
        }
        for (_, queue) in self.queues.iter_mut().filter(|(_, queue)| !queue.gets.is_empty()) {
            queue.gets.retain(|get| get.session != id);
        }
    }

    /// The virtual host of the session in a slot.
    pub(crate) fn vhost_of(&self, slot: u32) -> &Vhost {
        let session = self.sessions.get(slot).expect("a session's slot is in use");
        self.vhosts.get(session.vhost).expect("sessions end first")
    }

    /// Nobody reaches an inbox any more; its session has given it up.
    pub(crate) fn remove_inbox(&mut self, vhost: u32, inbox: &Inbox) {
        if let Some(vhost) = self.vhosts.get_mut(vhost) {
            vhost.inboxes.remove(&inbox.address);
        }
    }

    /// Answers a request once the record at `position` is flushed.
    pub(crate) fn answer_once_flushed(&mut self, slot: u32, position: Position, reply: Reply) {
        let session = self.sessions.get_mut(slot).expect("a session's slot is in use");
        session.unanswered = Some((position, reply));
        let is_listed = session
            .confirms
            .as_mut()
            .is_some_and(|confirms| std::mem::replace(&mut confirms.is_listed, true));
        if !is_listed {
            self.confirming.push(slot);
        }
    }

    /// Tells a session's confirms that are ready at once: what it is told next may be its end.
    pub fn tell_confirms_of<F: Effects>(&mut self, session: SessionId, fx: &mut F) {
        let Some(slot) = self.session_slot(session) else { return };
        let confirms = self.sessions.get_mut(slot).and_then(|session| session.confirms.as_mut());
        self.counters.confirmed += confirms.map_or(0, |confirms| confirms.tell(session, fx));
    }

    /// Tells confirms that are ready; keeps those in mind that wait for a flush.
    pub(crate) fn tell_confirms<F: Effects>(&mut self, fx: &mut F) {
        let mut confirming = std::mem::take(&mut self.confirming);
        confirming.retain(|slot| {
            let Some(session) = self.sessions.get_mut(*slot) else { return false };
            let id = session.id;
            let mut is_waiting = session.unanswered.is_some();
            if let Some(confirms) = &mut session.confirms {
                self.counters.confirmed += confirms.tell(id, fx);
                is_waiting |= confirms.is_waiting();
                confirms.is_listed = is_waiting;
            }
            is_waiting
        });
        self.confirming = confirming;
    }

    /// Everything before `position` is flushed.
    pub(crate) fn flushed<F: Effects>(&mut self, position: Position, fx: &mut F) {
        for slot in &self.confirming {
            let Some(session) = self.sessions.get_mut(*slot) else { continue };
            if let Some(confirms) = &mut session.confirms {
                confirms.flushed(position);
            }
            if let Some((_, reply)) = session.unanswered.take_if(|(last, _)| *last < position) {
                fx.reply(session.id, Ok(reply));
            }
        }
        self.tell_confirms(fx);
    }

    /// The journal's state has changed.
    pub(crate) fn storage_changed<F: Effects>(&mut self, state: StorageState, fx: &mut F) {
        self.storage = state;
        if state != StorageState::Failed {
            return;
        }
        for (_, vhost) in self.vhosts.iter_mut() {
            vhost.router.keep_durable();
        }
        for slot in std::mem::take(&mut self.confirming) {
            let Some(session) = self.sessions.get_mut(slot) else { continue };
            if let Some(confirms) = &mut session.confirms {
                self.counters.confirmed += confirms.fail(session.id, fx);
                confirms.is_listed = false;
            }
            if session.unanswered.take().is_some() {
                let text = "the journal failed: whether that is stored is unknown";
                fx.reply(session.id, Err(Refusal::new(RefusalKind::StorageUnavailable, text)));
            }
        }
    }
}

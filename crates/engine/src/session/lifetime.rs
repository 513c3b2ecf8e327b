//! How sessions are detached, expire and end.

use super::Session;
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::{ChannelId, Effects, SessionExpiry, SessionLoss, Time};

impl Engine {
    /// A channel ends: the sessions that it holds are detached.
    pub(crate) fn detach_sessions_of<F: Effects>(
        &mut self,
        now: Time,
        channel: ChannelId,
        fx: &mut F,
    ) {
        while let Some(slot) = self.sessions.held_by(channel) {
            self.detach_session(now, slot, None, fx);
        }
    }

    /// Takes a session from its holder; it ends now or when its expiry has passed. `expiry`: a new one.
    pub(crate) fn detach_session<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        expiry: Option<SessionExpiry>,
        fx: &mut F,
    ) {
        let expiry = expiry.map(|asked| self.bounded_expiry(asked));
        if let Some(holder) = self.sessions.set_holder(slot, None) {
            self.leave_own_queue(now, slot, holder, fx);
        }
        let session = &mut self.sessions[slot];
        session.expiry = expiry.unwrap_or(session.expiry);
        if !session.expiry.outlives_holder() {
            self.end_session(now, slot, fx);
            return;
        }
        self.begin_expiry(slot, now);
        self.record_detach(slot, fx);
        self.logs.session_detached(self.sessions[slot].number);
        self.begin_will_delay(now, slot, fx);
    }

    /// A session is detached since an instant, from which its expiry counts. One that should have ended with
    /// its holder ends as soon as timers run.
    pub(crate) fn begin_expiry(&mut self, slot: u32, since: Time) {
        let session = &mut self.sessions[slot];
        session.detached_at = Some(since);
        let at = match session.expiry {
            SessionExpiry::After(expiry) => since.plus(expiry),
            SessionExpiry::AtDetach => since,
            SessionExpiry::Never => return,
        };
        session.expires_at = Some(at);
        self.timers.set(at, Timer::Session(slot));
    }

    /// A session is about to have a holder: it does not expire.
    pub(crate) fn attach_session(&mut self, slot: u32) {
        let session = &mut self.sessions[slot];
        session.detached_at = None;
        if let Some(at) = session.expires_at.take() {
            self.timers.clear(at, Timer::Session(slot));
        }
        self.drain_logs_of(slot);
    }

    /// Ends a session whose time has passed.
    pub(crate) fn expire_session<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let session = self.sessions.get(slot);
        if session.and_then(|session| session.expires_at).is_some_and(|at| at <= now) {
            self.counters.session_expiries += 1;
            self.end_session(now, slot, fx);
        }
    }

    /// Ends a session: its will is published, its queue is deleted, and where the journal has it, that is
    /// recorded. Returns it: its holder is to be told.
    pub(crate) fn end_session<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) -> Session {
        self.publish_will(now, slot, fx);
        self.return_handed(now, slot, fx);
        let session = self.remove_session(slot);
        if session.is_stored {
            // With the deletion of its queue.
            fx.reserve(ENDING_BYTES, 2);
            self.record_end(session.number, session.vhost, &session.name, fx);
        }
        if let Some(queue) = self.queues.slot_of(session.queue) {
            self.delete_queue(queue, fx);
        }
        if let Some(cursor) = &session.cursor {
            self.leave_logs(session.number, cursor, fx);
        }
        session
    }

    /// Ends all sessions that `goes` names, because of a record that says so of all of them; their queues go
    /// by records of their own.
    pub(crate) fn drop_sessions<F: Effects>(
        &mut self,
        goes: impl Fn(&Session) -> bool,
        fx: &mut F,
    ) {
        let slots = self.sessions.iter().filter(|(_, session)| goes(session));
        for slot in slots.map(|(slot, _)| slot).collect::<Vec<_>>() {
            let mut session = self.remove_session(slot);
            self.drop_handed(&mut session, fx);
            if let Some(holder) = session.holder {
                self.tell_session_lost(holder, &session.name, SessionLoss::Ended, fx);
            }
            if let Some(cursor) = &session.cursor {
                self.leave_logs(session.number, cursor, fx);
            }
        }
    }

    /// Deletes the queues of a user's sessions, which are about to end with it; what shared queues have
    /// handed over goes to other members first.
    pub(crate) fn delete_session_queues_of<F: Effects>(
        &mut self,
        now: Time,
        user: &str,
        fx: &mut F,
    ) {
        let theirs = self.sessions.iter().filter(|(_, session)| *session.user == *user);
        for session in theirs.map(|(slot, _)| slot).collect::<Vec<_>>() {
            self.return_handed(now, session, fx);
            if let Some(queue) = self.queues.slot_of(self.sessions[session].queue) {
                self.delete_queue(queue, fx);
            }
        }
    }

    /// The only way out for a session, however it ends: what belongs to it goes here, too.
    pub(crate) fn remove_session(&mut self, slot: u32) -> Session {
        self.clear_will_timer(slot);
        let session = self.sessions.remove(slot).expect("the caller found it");
        if let Some(at) = session.expires_at {
            self.timers.clear(at, Timer::Session(slot));
        }
        self.account_removed_session(&session);
        self.end_replays_of_session(session.number);
        session
    }
}

/// Bytes of the records that a session and its queue are gone.
const ENDING_BYTES: usize = 64;

//! How sessions are detached, expire and end, and the records of that.

use super::Session;
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::storage::record::Record;
use crate::{ChannelId, Effects, Position, SessionExpiry, SessionLoss, Time};
use std::sync::Arc;

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
        self.sessions.set_holder(slot, None);
        let session = &mut self.sessions[slot];
        session.expiry = expiry.unwrap_or(session.expiry);
        if !session.expiry.outlives_holder() {
            self.end_session(slot, fx);
            return;
        }
        self.begin_expiry(slot, now);
        self.record_session(slot, fx);
    }

    /// A session is detached since an instant, from which its expiry counts.
    pub(crate) fn begin_expiry(&mut self, slot: u32, since: Time) {
        let session = &mut self.sessions[slot];
        session.detached_at = Some(since);
        if let SessionExpiry::After(expiry) = session.expiry {
            let at = since.plus(expiry);
            session.expires_at = Some(at);
            self.timers.set(at, Timer::Session(slot));
        }
    }

    /// A session is about to have a holder: it does not expire.
    pub(crate) fn attach_session(&mut self, slot: u32) {
        let session = &mut self.sessions[slot];
        session.detached_at = None;
        if let Some(at) = session.expires_at.take() {
            self.timers.clear(at, Timer::Session(slot));
        }
    }

    /// Ends a session whose time has passed.
    pub(crate) fn expire_session<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let session = self.sessions.get(slot);
        if session.and_then(|session| session.expires_at).is_some_and(|at| at <= now) {
            self.counters.session_expiries += 1;
            self.end_session(slot, fx);
        }
    }

    /// Ends a session, and records that where the journal has it. Returns it: its holder is to be told.
    pub(crate) fn end_session<F: Effects>(&mut self, slot: u32, fx: &mut F) -> Session {
        let session = self.remove_session(slot);
        if session.is_stored {
            self.record_end(session.number, session.vhost, &session.name, fx);
        }
        session
    }

    /// Ends all sessions that `goes` names, because of a record that says so of all of them.
    pub(crate) fn drop_sessions<F: Effects>(
        &mut self,
        goes: impl Fn(&Session) -> bool,
        fx: &mut F,
    ) {
        let slots = self.sessions.iter().filter(|(_, session)| goes(session));
        for slot in slots.map(|(slot, _)| slot).collect::<Vec<_>>() {
            let session = self.remove_session(slot);
            if let Some(holder) = session.holder {
                self.tell_session_lost(holder, &session.name, SessionLoss::Ended, fx);
            }
        }
    }

    /// The only way out for a session, however it ends: what belongs to it goes here, too.
    pub(crate) fn remove_session(&mut self, slot: u32) -> Session {
        let session = self.sessions.remove(slot).expect("the caller found it");
        if let Some(at) = session.expires_at {
            self.timers.clear(at, Timer::Session(slot));
        }
        session
    }

    /// Records a session as it is, where that is to survive a restart.
    pub(crate) fn record_session<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let session = &mut self.sessions[slot];
        let outlives_restart = session.outlives_restart();
        let was_stored = std::mem::replace(&mut session.is_stored, outlives_restart);
        let session = &self.sessions[slot];
        if !outlives_restart {
            if was_stored {
                let (number, vhost) = (session.number, session.vhost);
                let name = Arc::clone(&session.name);
                self.record_end(number, vhost, &name, fx);
            }
            return;
        }
        let (number, expiry) = (session.number, session.expiry);
        let record = match session.detached_at {
            Some(at) if was_stored => Record::SessionDetached { number, at, expiry },
            _ => Record::SessionPut(session.record(&self.topology)),
        };
        record.write(&mut self.scratch.record);
        self.append_session(fx);
    }

    /// Records that a session is gone for the journal.
    fn record_end<F: Effects>(&mut self, number: u64, vhost: u32, name: &Arc<str>, fx: &mut F) {
        Record::SessionEnded { number }.write(&mut self.scratch.record);
        let position = self.append_session(fx);
        self.sessions.note_ending(vhost, name, position);
    }

    /// Appends the record that has been written. It is flushed soon, whether or not a request waits for it.
    fn append_session<F: Effects>(&mut self, fx: &mut F) -> Position {
        let position = fx.append(&[&self.scratch.record], true);
        self.storage.changed_at = Some(position);
        position
    }

    /// The request at hand is answered once no crash can bring an earlier session of that name back.
    pub(crate) fn await_ending(&mut self, vhost: u32, name: &Arc<str>) {
        self.storage.changed_at = self.storage.changed_at.max(self.sessions.ending(vhost, name));
    }
}

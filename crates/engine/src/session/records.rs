//! Records about sessions, and their part of a user's memory account.

use super::Session;
use crate::engine::Engine;
use crate::storage::record::Record;
use crate::{Effects, Position};
use bytes::Bytes;
use std::sync::Arc;

/// How far a session's memory may change before the account learns it.
const ACCOUNT_STEP: u64 = 4 << 10;

/// What a record about a session that is held has to say beside its expiry.
#[derive(Debug, Default)]
pub(super) struct SessionChange<'a> {
    /// It has another state.
    pub(super) has_state: bool,
    /// It has another queue.
    pub(super) has_queue: bool,
    /// Attributes that it has from now on.
    pub(super) put: &'a [(Bytes, Bytes)],
    /// Keys of those that it no longer has.
    pub(super) remove: &'a [Bytes],
}

impl Engine {
    /// Records a session that is held, where that is to survive a restart: all of it, or what has changed.
    pub(super) fn record_session<F: Effects>(
        &mut self,
        slot: u32,
        change: &SessionChange<'_>,
        fx: &mut F,
    ) {
        let Some(was_stored) = self.begin_session_record(slot, fx) else { return };
        let session = &self.sessions[slot];
        if was_stored && !change.has_queue {
            let part = |(key, value): &'_ (Bytes, Bytes)| (key.to_vec(), value.to_vec());
            let put: Vec<(Vec<u8>, Vec<u8>)> = change.put.iter().map(part).collect();
            let record = Record::SessionChanged {
                number: session.number,
                expiry: session.expiry,
                state: change.has_state.then_some(&session.state[..]),
                put: put.iter().map(|(key, value)| (&key[..], &value[..])).collect(),
                removed: change.remove.iter().map(|key| &key[..]).collect(),
            };
            record.write(&mut self.scratch.record);
        } else {
            let record = Record::SessionPut(session.record(&self.topology));
            record.write(&mut self.scratch.record);
        }
        self.append_session(fx);
    }

    /// Records that a session has no holder any more.
    pub(super) fn record_detach<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let Some(was_stored) = self.begin_session_record(slot, fx) else { return };
        let session = &self.sessions[slot];
        let (number, expiry) = (session.number, session.expiry);
        let record = match session.detached_at {
            Some(at) if was_stored => Record::SessionDetached { number, at, expiry },
            _ => Record::SessionPut(session.record(&self.topology)),
        };
        record.write(&mut self.scratch.record);
        self.append_session(fx);
    }

    /// Whether the journal had the session; `None`: it is not to have it.
    fn begin_session_record<F: Effects>(&mut self, slot: u32, fx: &mut F) -> Option<bool> {
        let session = &mut self.sessions[slot];
        let outlives_restart = session.outlives_restart();
        let was_stored = std::mem::replace(&mut session.is_stored, outlives_restart);
        if !outlives_restart && was_stored {
            let (number, vhost, name) = (session.number, session.vhost, Arc::clone(&session.name));
            self.record_end(number, vhost, &name, fx);
        }
        outlives_restart.then_some(was_stored)
    }

    /// Records that a session is gone for the journal.
    pub(super) fn record_end<F: Effects>(
        &mut self,
        number: u64,
        vhost: u32,
        name: &Arc<str>,
        fx: &mut F,
    ) {
        Record::SessionEnded { number }.write(&mut self.scratch.record);
        let position = self.append_session(fx);
        self.sessions.note_ending(vhost, name, position);
    }

    /// Appends the record that has been written. It is flushed soon, whether or not a request waits for it.
    pub(super) fn append_session<F: Effects>(&mut self, fx: &mut F) -> Position {
        let position = fx.append(&[&self.scratch.record], true);
        self.storage.changed_at = Some(position);
        position
    }

    /// The request at hand is answered once no crash can bring an earlier session of that name back.
    pub(super) fn await_ending(&mut self, vhost: u32, name: &Arc<str>) {
        self.storage.changed_at = self.storage.changed_at.max(self.sessions.ending(vhost, name));
    }

    /// Tells the account of its user what a session takes, where that is worth it.
    pub(crate) fn account_session(&mut self, slot: u32) {
        let session = &mut self.sessions[slot];
        let bytes = session.memory_bytes();
        if bytes.abs_diff(session.accounted) < ACCOUNT_STEP && session.accounted > 0 {
            return;
        }
        let before = std::mem::replace(&mut session.accounted, bytes);
        let (vhost, user) = (session.vhost, Arc::clone(&session.user));
        self.account(vhost, &user, before, bytes);
    }

    /// A session is gone.
    pub(super) fn account_removed_session(&mut self, session: &Session) {
        self.account(session.vhost, &session.user, session.accounted, 0);
    }

    fn account(&mut self, vhost: u32, user: &str, before: u64, bytes: u64) {
        let by = self.definitions.declarer(user);
        let Some(vhost) = self.topology.vhosts.get_mut(vhost) else { return };
        vhost.router.tally.went(by, before);
        vhost.router.tally.came(by, bytes);
        self.definitions.take(&mut vhost.router.tally);
    }
}

//! Sessions in records and snapshots, and what a restart makes of them.
//!
//! Records about sessions say what is so afterwards, whatever was before: a snapshot that is written over
//! several turns may have sessions as they were later than at its beginning, since the records after its
//! beginning lead to the same state.

use super::Session;
use crate::engine::{Engine, Topology};
use crate::storage::codec::Malformed;
use crate::storage::record::SessionRecord;
use crate::{SessionExpiry, Time};
use bytes::Bytes;

impl Engine {
    /// Takes in a session as a record or snapshot has it. One of the same name or number is replaced.
    pub(crate) fn restore_session(&mut self, record: &SessionRecord<'_>) -> Result<(), Malformed> {
        let vhost = self.vhost_slot(record.vhost)?;
        let before =
            [self.sessions.numbered(record.number), self.sessions.find(vhost, record.name)];
        for slot in before.into_iter().flatten() {
            if self.sessions.get(slot).is_some() {
                self.remove_session(slot);
            }
        }
        self.sessions.insert(Session {
            number: record.number,
            vhost,
            name: record.name.into(),
            user: record.user.into(),
            expiry: record.expiry,
            recorded: true,
            is_stored: true,
            state: Bytes::copy_from_slice(record.state),
            holder: None,
            detached_at: record.detached_at,
            expires_at: None,
        });
        Ok(())
    }

    pub(crate) fn replay_session_detached(&mut self, number: u64, at: Time, expiry: SessionExpiry) {
        let slot = self.sessions.numbered(number);
        if let Some(session) = slot.and_then(|slot| self.sessions.get_mut(slot)) {
            (session.detached_at, session.expiry) = (Some(at), expiry);
        }
    }

    pub(crate) fn replay_session_ended(&mut self, number: u64) {
        if let Some(slot) = self.sessions.numbered(number) {
            self.remove_session(slot);
        }
    }

    /// All records are replayed: every session is detached, and its expiry counts. A detach that lies ahead
    /// of `now` was recorded by a clock that has been set back since.
    pub(crate) fn sessions_recovered(&mut self, now: Time) {
        let slots: Vec<u32> = self.sessions.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            let session = &self.sessions[slot];
            let since = session.detached_at.map_or(now, |at| at.min(now));
            self.begin_expiry(slot, since);
        }
    }
}

impl Session {
    /// It as records and snapshots have it.
    pub(crate) fn record<'a>(&'a self, topology: &'a Topology) -> SessionRecord<'a> {
        SessionRecord {
            number: self.number,
            vhost: &topology.vhosts[self.vhost].name,
            name: &self.name,
            user: &self.user,
            expiry: self.expiry,
            detached_at: self.detached_at,
            state: &self.state,
        }
    }
}

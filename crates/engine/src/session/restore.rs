//! Sessions in records and snapshots, and what a restart makes of them.
//!
//! Records about sessions say what is so afterwards, whatever was before: a snapshot that is written over
//! several turns may have sessions as they were later than at its beginning, since the records after its
//! beginning lead to the same state.

use super::Session;
use crate::engine::Engine;
use crate::storage::codec::{Malformed, Reader, Writer};
use crate::storage::record::{SessionRecord, read_session, write_session};
use crate::{SessionExpiry, Time};
use bytes::Bytes;

impl Engine {
    /// Takes in a session as a record or snapshot has it. One of the same name or number is replaced.
    pub(crate) fn restore_session(&mut self, record: &SessionRecord<'_>) -> Result<(), Malformed> {
        let vhost = self.vhost_slot(record.vhost).map_err(|refusal| refusal.text)?;
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
            let session = self.sessions.get(slot).expect("it was listed just now");
            let since = session.detached_at.map_or(now, |at| at.min(now));
            self.begin_expiry(slot, since);
        }
    }

    /// Writes a session into a snapshot.
    pub(crate) fn write_session_of(&self, writer: &mut Writer<'_>, session: &Session) {
        let vhost = self.topology.vhosts.get(session.vhost).expect("sessions end first");
        let record = SessionRecord {
            number: session.number,
            vhost: &vhost.name,
            name: &session.name,
            user: &session.user,
            expiry: session.expiry,
            detached_at: session.detached_at,
            state: &session.state,
        };
        write_session(writer, &record);
    }

    /// Reads what [`Engine::write_session_of`] wrote. A virtual host that is not there was created after the
    /// snapshot's beginning: the records that follow make it, and the session in it.
    pub(crate) fn read_session_of(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let record = read_session(reader)?;
        if !self.topology.vhost_slots.contains_key(record.vhost) {
            return Ok(());
        }
        self.restore_session(&record)
    }
}

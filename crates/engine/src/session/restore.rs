//! Sessions in records and snapshots, and what a restart makes of them.
//!
//! Records about sessions say what is so afterwards, whatever was before: a snapshot that is written over
//! several turns may have sessions as they were later than at its beginning, since the records after its
//! beginning lead to the same state.

use super::attributes::Attributes;
use super::{Handed, KeptWill, Session};
use crate::engine::{Engine, Topology};
use crate::queue::stored::Stored;
use crate::storage::codec::Malformed;
use crate::storage::record::{Numbers, Record, SessionRecord};
use crate::{Effects, Position, Time};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::time::Duration;

impl Engine {
    /// Takes in a session as a record or snapshot has it. One of the same name or number is replaced.
    pub(crate) fn restore_session(&mut self, record: &SessionRecord<'_>) -> Result<(), Malformed> {
        let vhost = self.vhost_slot(record.vhost)?;
        let will = record
            .will
            .map(|(delay, retain, message)| KeptWill::restored(delay, retain, message))
            .transpose()?;
        let before =
            [self.sessions.numbered(record.number), self.sessions.find(vhost, record.name)];
        for slot in before.into_iter().flatten() {
            if self.sessions.get(slot).is_some() {
                self.remove_session(slot);
            }
        }
        let mut attributes = Attributes::default();
        for (key, value) in &record.attributes {
            attributes.put(key, value);
        }
        let handed = record.handed.iter();
        let handed =
            handed.map(|(place, queue, returns)| (*place, Handed::restored(*queue, *returns)));
        let slot = self.sessions.insert(Session {
            number: record.number,
            vhost,
            name: record.name.into(),
            user: record.user.into(),
            expiry: record.expiry,
            recorded: true,
            is_stored: true,
            state: Bytes::copy_from_slice(record.state),
            attributes,
            queue: record.queue,
            received: record.received.0.iter().map(|number| (*number, None)).collect(),
            forgotten_at: Position::default(),
            underway: BTreeSet::new(),
            released: record.released.0.iter().copied().collect(),
            shared: record.shared.0.iter().copied().collect(),
            handed: handed.collect(),
            will: will.map(Box::new),
            holder: None,
            detached_at: record.detached_at,
            expires_at: None,
            accounted: 0,
            cursor: record.cursor.clone().map(Box::new),
            is_draining: false,
        });
        self.account_session(slot);
        Ok(())
    }

    /// Changes a session as a record says. One that is not there is one that ended later.
    pub(crate) fn replay_session<F: Effects>(
        &mut self,
        record: &Record<'_>,
        fx: &mut F,
    ) -> Result<(), Malformed> {
        // Its queue is settled whether or not the session is there still.
        if let Record::Released { queue, place, .. } = record {
            self.replay_released(*queue, *place, fx)?;
        }
        if let Record::Drained { queue, entries, .. } = record {
            self.replay_drained(*queue, entries, fx)?;
        }
        let slot = record.session().and_then(|number| self.sessions.numbered(number));
        let Some(slot) = slot else { return Ok(()) };
        let session = &mut self.sessions[slot];
        match record {
            Record::SessionChanged { expiry, state, put, removed, .. } => {
                (session.expiry, session.detached_at) = (*expiry, None);
                if let Some(state) = state {
                    session.state = Bytes::copy_from_slice(state);
                }
                removed.iter().for_each(|key| session.attributes.remove(key));
                put.iter().for_each(|(key, value)| session.attributes.put(key, value));
            }
            Record::SessionDetached { at, expiry, .. } => {
                (session.detached_at, session.expiry) = (Some(*at), *expiry);
            }
            Record::SessionEnded { .. } => {
                self.remove_session(slot);
                return Ok(());
            }
            Record::Received { number, .. } => {
                session.received.insert(*number, None);
            }
            Record::ReceivedForgotten { number, .. } => {
                session.received.remove(number);
            }
            Record::Released { place, .. } => {
                session.released.insert(*place);
            }
            Record::ReleasedForgotten { place, .. } => {
                session.released.remove(place);
            }
            Record::WillSet { delay, retain, message, .. } => {
                session.will = Some(Box::new(KeptWill::restored(*delay, *retain, message)?));
            }
            Record::WillGone { .. } => session.will = None,
            Record::SharedJoined { queue, .. } => {
                session.shared.insert(*queue);
            }
            Record::SharedLeft { queue, .. } => {
                session.shared.remove(queue);
            }
            Record::CursorSet { cursor, .. } => session.cursor = cursor.clone().map(Box::new),
            Record::Drained { at, .. } => {
                if let Some(cursor) = &mut session.cursor {
                    cursor.at = *at;
                }
            }
            _ => unreachable!("only records about sessions come here"),
        }
        self.account_session(slot);
        Ok(())
    }

    /// Takes in that a publish with a number was taken.
    pub(crate) fn replay_received(&mut self, session: u64, number: u64) {
        let slot = self.sessions.numbered(session);
        if let Some(session) = slot.and_then(|slot| self.sessions.get_mut(slot)) {
            session.received.insert(number, None);
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
            self.own_queue_recovered(slot);
            self.will_recovered(slot, since);
            self.membership_recovered(slot);
        }
    }
}

impl Session {
    /// It as records and snapshots have it.
    pub(crate) fn record<'a>(&'a self, topology: &'a Topology) -> SessionRecord<'a> {
        let handed = self.handed.iter().map(|(place, it)| (*place, it.queue, it.returns));
        SessionRecord {
            number: self.number,
            vhost: &topology.vhosts[self.vhost].name,
            name: &self.name,
            user: &self.user,
            expiry: self.expiry,
            detached_at: self.detached_at,
            state: &self.state,
            queue: self.queue,
            attributes: self.attributes.iter().map(|(key, value)| (&key[..], &value[..])).collect(),
            received: Numbers(self.received.keys().copied().collect()),
            released: Numbers(self.released.iter().copied().collect()),
            shared: Numbers(self.shared.iter().copied().collect()),
            handed: handed.collect(),
            will: self.will.as_ref().map(|will| (will.delay, will.retain, &will.message[..])),
            cursor: self.cursor.as_deref().cloned(),
        }
    }
}

impl KeptWill {
    /// As a record has it: its delay and its message.
    fn restored(delay: Duration, retain: bool, message: &[u8]) -> Result<KeptWill, Malformed> {
        Stored::parse(message)?.check()?;
        Ok(KeptWill { message: message.into(), retain, delay, due: None })
    }
}

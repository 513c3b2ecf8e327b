//! Publishes that are taken once: those of a session carry numbers of its client, and one whose number the
//! session has already is confirmed and not taken again, until the client has the number forgotten.
//!
//! A number is recorded with the message, in one record, and a session that survives a restart has it then.
//! That of a message to very many queues is recorded once all have it; a repetition waits until then.

use super::Session;
use crate::engine::Engine;
use crate::interface::limits::SESSION_NUMBERS_MAX;
use crate::interface::refusal::refuse;
use crate::publish::taken::{PublishNumber, Taken, Unwanted};
use crate::storage::record::Record;
use crate::{Call, ChannelId, Effects, Position, Publish, Refusal, Retain, Time};

impl Engine {
    /// As [`Engine::publish`], on a channel that holds a session: the message is taken unless one with that
    /// number was, since when the number was not forgotten ([`crate::Request::ForgetPublished`]). Either is
    /// confirmed; one that is refused does not count. Refused beside what [`Engine::publish`] refuses: the
    /// channel holds no session, or the publish is part of a transaction (`PreconditionFailed`), too many
    /// numbers (`LimitExceeded`).
    pub fn publish_once<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        number: u64,
        publish: &Publish<'_>,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        if self.is_away() {
            self.make_known(id, fx)?;
            self.counters.sent_home += 1;
            fx.call_home(Call::PublishOnce(id, number, publish));
            return Ok(());
        }
        let slot = self.channel_slot(id).ok_or_else(|| Engine::no_channel(id))?;
        if let Err(why) = self.try_publish_once(now, slot, id, number, publish, fx) {
            return self.refuse_publish(slot, publish, why, fx);
        }
        self.run_overdue(now, fx);
        Ok(())
    }

    fn try_publish_once<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        id: ChannelId,
        number: u64,
        publish: &Publish<'_>,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let session = self.held_session(id)?;
        if let Some(position) = self.sessions[session].received.get(&number).copied() {
            self.counters.session_duplicates += 1;
            self.count_confirm(
                slot,
                Taken { position: self.to_flush(position), ..Taken::default() },
                fx,
            );
            return Ok(());
        }
        let Session { number: of, is_stored, received, underway, .. } = &self.sessions[session];
        let once =
            PublishNumber { session: *of, number, is_stored: *is_stored, is_repetition: false };
        if underway.contains(&number) {
            self.counters.session_duplicates += 1;
            self.await_publish(slot, publish, once);
            return Ok(());
        }
        if received.len() + underway.len() >= SESSION_NUMBERS_MAX {
            refuse!(
                LimitExceeded,
                "session '{}' has {SESSION_NUMBERS_MAX} numbers of publishes that were not forgotten",
                self.sessions[session].name
            );
        }
        self.check_publish(slot, publish)?;
        if self.transaction_of(slot, publish.transaction)?.is_some() {
            refuse!(PreconditionFailed, "a publish with a number cannot be part of a transaction");
        }
        self.storage.publish_number = Some(once);
        let taken = match publish.retain {
            Retain::No => self.carry_out_publish(now, slot, publish, Some(now), fx),
            _ => self.carry_out_retained(now, slot, publish, false, fx),
        };
        self.storage.publish_number = None;
        let mut taken = taken?;
        if taken.is_underway {
            // It gets its confirm when all queues have it.
            self.sessions[session].underway.insert(number);
        } else {
            self.note_received(session, once, &mut taken, fx);
            self.count_confirm(slot, taken, fx);
        }
        self.account_session(session);
        Ok(())
    }

    /// A publish has been placed, with its record or without: its number counts unless it was refused.
    fn note_received<F: Effects>(
        &mut self,
        slot: u32,
        once: PublishNumber,
        taken: &mut Taken,
        fx: &mut F,
    ) {
        let PublishNumber { session: of, number, .. } = once;
        let is_stored = self.sessions[slot].is_stored;
        if taken.refused.is_some() {
            if taken.is_numbered {
                // Some queues have it, and their record has the number.
                Record::ReceivedForgotten { session: of, number }.write(&mut self.scratch.record);
                let position = fx.append(&[&self.scratch.record], true);
                self.sessions[slot].forgotten_at = position;
                taken.position = Some(position);
            }
            return;
        }
        if is_stored && !taken.is_numbered {
            // No record of the message has it.
            Record::Received { session: of, number }.write(&mut self.scratch.record);
            taken.position = Some(fx.append(&[&self.scratch.record], true));
        }
        self.sessions[slot].received.insert(number, taken.position);
    }

    /// A publish has reached all of its very many queues: its number counts from now on, if `is_taken` and
    /// none has refused it.
    pub(crate) fn end_publish_once<F: Effects>(
        &mut self,
        once: PublishNumber,
        is_taken: bool,
        taken: &mut Taken,
        fx: &mut F,
    ) {
        let slot = self.sessions.numbered(once.session);
        let Some(session) = slot.and_then(|slot| self.sessions.get_mut(slot)) else { return };
        // Not if it was forgotten meanwhile.
        let is_known = session.underway.remove(&once.number);
        if let Some(slot) = slot.filter(|_| is_known && is_taken) {
            self.note_received(slot, once, taken, fx);
            self.account_session(slot);
        }
    }

    /// Whether a publish that was under way when its repetition came has reached all its queues; `taken`:
    /// the answer to the repetition then.
    pub(crate) fn is_decided(&self, once: PublishNumber, taken: &mut Taken) -> bool {
        let slot = self.sessions.numbered(once.session);
        let session = slot.and_then(|slot| self.sessions.get(slot));
        if session.is_some_and(|session| session.underway.contains(&once.number)) {
            return false;
        }
        match session.and_then(|session| session.received.get(&once.number)) {
            Some(position) => taken.position = self.to_flush(*position),
            None => taken.refused = Some(Unwanted::NotStored),
        }
        true
    }

    /// The record at `position`, unless it is flushed.
    fn to_flush(&self, position: Option<Position>) -> Option<Position> {
        position.filter(|position| *position >= self.storage.flushed)
    }

    /// Forgets the number of a publish: the next one with it is another message.
    pub(super) fn forget_published<F: Effects>(
        &mut self,
        id: ChannelId,
        number: u64,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let slot = self.held_session(id)?;
        let session = &mut self.sessions[slot];
        session.underway.remove(&number);
        let is_there = session.received.remove(&number).is_some();
        let (of, is_stored) = (session.number, session.is_stored);
        if is_there && is_stored {
            Record::ReceivedForgotten { session: of, number }.write(&mut self.scratch.record);
            let position = self.append_session(fx);
            self.sessions[slot].forgotten_at = position;
        } else if is_stored {
            // It may have been forgotten just now: the client may use it again once no crash brings it back.
            let position = self.to_flush(Some(self.sessions[slot].forgotten_at));
            self.storage.changed_at = self.storage.changed_at.max(position);
        }
        self.account_session(slot);
        Ok(())
    }
}

//! Publishes that are taken once: those of a session carry numbers of its client, and one whose number the
//! session has already is confirmed and not taken again, until the client has the number forgotten.
//!
//! A number is recorded with the message, in one record, and a session that survives a restart has it then.

use crate::engine::Engine;
use crate::interface::limits::SESSION_NUMBERS_MAX;
use crate::interface::refusal::refuse;
use crate::publish::taken::Taken;
use crate::storage::record::Record;
use crate::{Call, ChannelId, Effects, Position, Publish, Refusal, Time};

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
        if self.sessions[session].received.len() >= SESSION_NUMBERS_MAX {
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
        let stored = self.sessions[session].is_stored.then_some(self.sessions[session].number);
        self.storage.publish_number = stored.map(|session| (session, number));
        let taken = self.carry_out_publish(now, slot, publish, Some(now), fx);
        let is_recorded = self.storage.publish_number.take().is_none();
        let mut taken = taken?;
        if taken.refused.is_none() {
            if let Some(session) = stored.filter(|_| !is_recorded) {
                // No queue stores it.
                Record::Received { session, number }.write(&mut self.scratch.record);
                taken.position = Some(fx.append(&[&self.scratch.record], true));
            }
            self.sessions[session].received.insert(number, taken.position);
            self.account_session(session);
        }
        // One that goes to very many gets its confirm when all have it.
        if !taken.is_underway {
            self.count_confirm(slot, taken, fx);
        }
        Ok(())
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

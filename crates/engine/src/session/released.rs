//! Deliveries whose message is settled while their place stays in use, until the client says that it has
//! forgotten the number that it knows the place by.
//!
//! One record settles the message and says that the place was released: a crash in between would lose the
//! number, or deliver the message again after the client has forgotten it.

use crate::consumer::deferred_settle::Fate;
use crate::engine::Engine;
use crate::interface::refusal::refuse;
use crate::storage::record::Record;
use crate::{ChannelId, Effects, Outcome, Refusal, Settle, Time};

impl Engine {
    /// Settles a delivery of the session's queue as accepted; its place stays in use.
    pub(super) fn release_delivery<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        tag: u64,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let session = self.held_session(id)?;
        let slot = self.channel_slot(id).ok_or_else(|| Engine::no_channel(id))?;
        self.check_tag(slot, Settle::one(tag, Outcome::Accept))?;
        let number = self.sessions[session].queue;
        let channel = &mut self.clients.channels[slot];
        let Some(delivered) = channel.unsettled.take(tag) else {
            refuse!(PreconditionFailed, "unknown delivery tag {tag}");
        };
        if delivered.queue_number != number {
            channel.unsettled.put_back(tag, delivered);
            refuse!(
                PreconditionFailed,
                "delivery {tag} is not of the queue of session '{}'",
                self.sessions[session].name
            );
        }
        let place = delivered.entry.seq;
        self.sessions[session].released.insert(place);
        if self.sessions[session].is_stored && delivered.entry.durable {
            let of = self.sessions[session].number;
            let record = Record::Released { session: of, queue: number, place };
            record.write(&mut self.scratch.record);
            self.append_session(fx);
        }
        self.settle_one(now, Some(slot), delivered, Fate::Same(Outcome::Accept).plain(), fx);
        self.account_session(session);
        Ok(())
    }

    /// A place that was released is in use no longer. Nobody waits for the record: without it the client is
    /// told once more that the place was released.
    pub(super) fn forget_released<F: Effects>(
        &mut self,
        id: ChannelId,
        place: u64,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let slot = self.held_session(id)?;
        let session = &mut self.sessions[slot];
        if !session.released.remove(&place) {
            return Ok(());
        }
        let (of, queue) = (session.number, session.queue);
        if session.is_stored {
            Record::ReleasedForgotten { session: of, place }.write(&mut self.scratch.record);
            fx.append(&[&self.scratch.record], false);
        }
        if let Some(queue) = self.queues.slot_of(queue) {
            self.place_is_free(queue, place);
        }
        self.account_session(slot);
        Ok(())
    }
}

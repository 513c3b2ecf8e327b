//! Publishes whose messages stay behind as the retained ones of their subjects.

use crate::engine::Engine;
use crate::interface::refusal::refuse;
use crate::publish::taken::{Route, Taken, Unwanted};
use crate::queue::stored::Incoming;
use crate::{Effects, Publish, Refusal, Retain, Time};

impl Engine {
    /// Carries out a publish whose message is to stay. It is retained before it is placed: a crash in
    /// between has its publisher send it again, and not believe that it is.
    #[cold]
    pub(crate) fn carry_out_retained<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        publish: &Publish<'_>,
        is_confirmed: bool,
        fx: &mut F,
    ) -> Result<Taken, Refusal> {
        let channel = &self.clients.channels[slot];
        let vhost = channel.vhost;
        let wants_flush = channel.confirms.is_some() || !is_confirmed;
        if publish.retain == Retain::Only {
            if self.retain_message(now, vhost, &Incoming::of(publish), false, fx).is_err() {
                self.counters.not_stored += 1;
            }
            return Ok(Taken::default());
        }
        if !self.may_be_placed(now, slot, publish, wants_flush)? {
            let taken = Taken { refused: Some(Unwanted::NotStored), ..Taken::default() };
            self.counters.published += 1;
            if is_confirmed {
                self.count_confirm(slot, taken, fx);
            }
            return Ok(taken);
        }
        let kept = self.retain_message(now, vhost, &Incoming::of(publish), wants_flush, fx)?;
        // Where nobody else takes it, it is here nevertheless.
        let placed = Publish { retain: Retain::No, mandatory: false, ..*publish };
        self.retained.awaited = kept;
        let taken = self.carry_out_publish(now, slot, &placed, Some(now), fx);
        self.retained.awaited = None;
        let mut taken = taken?;
        taken.position = taken.position.max(kept);
        if is_confirmed && !taken.is_underway {
            self.count_confirm(slot, taken, fx);
        }
        Ok(taken)
    }

    /// Whether queues that a message is for can take it as far as is known before. Refused: it cannot be
    /// published.
    fn may_be_placed(
        &mut self,
        now: Time,
        slot: u32,
        publish: &Publish<'_>,
        wants_flush: bool,
    ) -> Result<bool, Refusal> {
        let channel = &self.clients.channels[slot];
        let (vhost, by) = (channel.vhost, Some(channel.id.connection));
        let mut targets = std::mem::take(&mut self.scratch.targets);
        let routed = self
            .route(now, vhost, by, publish, &mut targets)
            .and_then(|route| self.check_room(by, vhost, publish, route, &targets, wants_flush));
        self.scratch.targets = targets;
        Ok(!matches!(routed?, Route::Refused))
    }

    /// Refuses a message in a transaction that is to stay: its end would not know of that.
    pub(crate) fn check_retained_in_transaction(publish: &Publish<'_>) -> Result<(), Refusal> {
        if publish.retain != Retain::No {
            refuse!(PreconditionFailed, "a message in a transaction cannot be retained");
        }
        Ok(())
    }
}

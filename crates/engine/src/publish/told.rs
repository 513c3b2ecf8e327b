//! What a publisher learns of a message: that it is safe, or why it is not taken.

use crate::engine::Engine;
use crate::publish::taken::{Taken, Unwanted};
use crate::queue::stored::Incoming;
use crate::{Effects, Publish, Refusal, RefusalKind, Retain};

impl Refusal {
    /// The refusal of a message that no queue takes.
    pub(crate) fn unroutable(publish: &Publish<'_>) -> Refusal {
        let text = match publish.exchange {
            "" => format!("no queue '{}' takes the message", publish.routing_key),
            exchange => format!(
                "exchange '{exchange}' leads a message with key '{}' to no queue",
                publish.routing_key
            ),
        };
        Refusal::new(RefusalKind::Unroutable, text)
    }
}

impl Engine {
    /// Whether each publish of a channel is confirmed, with a reason where it is refused.
    pub(crate) fn explains_confirms(&self, slot: u32) -> bool {
        self.clients.channels[slot].confirms.as_ref().is_some_and(|confirms| confirms.explained)
    }

    /// A publish is refused: its transaction, if it has one, can only be rolled back. The channel learns it
    /// by a confirm, where it wants to.
    #[cold]
    pub(crate) fn refuse_publish<F: Effects>(
        &mut self,
        slot: u32,
        publish: &Publish<'_>,
        why: Refusal,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        if publish.retain == Retain::Only {
            return Ok(());
        }
        self.fail_transaction(slot, publish.transaction, &why);
        let channel = &mut self.clients.channels[slot];
        match &mut channel.confirms {
            Some(confirms) if confirms.explained => {
                let number = confirms.count();
                confirms.refused(number, channel.id, &why, fx);
                Ok(())
            }
            _ => Err(why),
        }
    }

    /// No queue takes a message: a mandatory one goes back, or is refused where confirms are explained.
    #[cold]
    pub(super) fn give_back_unroutable<F: Effects>(
        &mut self,
        slot: u32,
        publish: &Publish<'_>,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        self.counters.unroutable += 1;
        if !publish.mandatory {
            return Ok(());
        }
        if self.explains_confirms(slot) {
            return Err(Refusal::unroutable(publish));
        }
        self.counters.returned += 1;
        fx.return_unroutable(self.clients.channels[slot].id, &Incoming::of(publish).view());
        Ok(())
    }

    /// Gives a publish its number, in confirm mode, and has it told when it is safe.
    #[inline]
    pub(crate) fn count_confirm<F: Effects>(&mut self, slot: u32, taken: Taken, fx: &mut F) {
        let channel = &mut self.clients.channels[slot];
        let Some(confirms) = &mut channel.confirms else { return };
        let number = confirms.count();
        if let Some(why) = taken.refused {
            return self.confirm_refused(slot, number, why, fx);
        }
        confirms.taken(number, taken.position);
        if !std::mem::replace(&mut channel.is_confirming, true) {
            self.agenda.confirming.push(slot);
        }
    }

    #[cold]
    fn confirm_refused<F: Effects>(&mut self, slot: u32, number: u64, why: Unwanted, fx: &mut F) {
        let why = self.refusal_of(why);
        let channel = &mut self.clients.channels[slot];
        if let Some(confirms) = &mut channel.confirms {
            confirms.refused(number, channel.id, &why, fx);
        }
    }

    /// Why a message is not taken, in words.
    pub(crate) fn refusal_of(&self, why: Unwanted) -> Refusal {
        match why {
            Unwanted::QueueFull(slot) => {
                let name = self.queues.get(slot).map_or("", |queue| &queue.name);
                Refusal::new(RefusalKind::LimitExceeded, format!("queue '{name}' is full"))
            }
            Unwanted::NotStored => {
                let text = "the message cannot be stored: the disk is full or has failed";
                Refusal::new(RefusalKind::StorageUnavailable, text)
            }
            Unwanted::TooManyDelayed => {
                let most = self.options.limits.delayed_max;
                let text = format!(
                    "as many messages are delayed as may be: {most}, and three quarters of that of one \
                     user"
                );
                Refusal::new(RefusalKind::LimitExceeded, text)
            }
            Unwanted::Unroutable => {
                Refusal::new(RefusalKind::Unroutable, "no queue takes the message")
            }
        }
    }
}

//! A client that takes messages from a queue as far as it gives credit, drains, settles ranges, and returns
//! some messages.

use super::connection::{Context, Pace, Role};
use super::receiver::{Held, Receiver};
use super::wire::{At, Incoming};
use crate::canary::Canary;
use crate::client::Surroundings;
use crate::history::{Event, Outcome};
use crate::plan::amqp10::Taker;
use angarium_protocol::amqp10::codec::{ACCEPTED, DeliveryState, Modified, RELEASED};

/// Percentage of settles that are of all deliveries it holds.
const RANGE_PERCENT: u64 = 25;
/// Its link.
const LINK: At = At { channel: 0, handle: 0 };

/// What it knows of its link.
#[derive(Debug)]
pub(super) struct Taking {
    plan: Taker,
    link: Option<Receiver>,
}

impl Taking {
    pub(super) fn new(plan: Taker) -> Taking {
        Taking { plan, link: None }
    }

    /// Gives credit, which may be less than before.
    fn give_credit(&mut self, context: &mut Context<'_, '_>, drain: bool) {
        let credit = context.random.below(u64::from(self.plan.credit_max) + 1) as u32;
        let Some(link) = &mut self.link else { return };
        link.give_credit(context, credit, drain);
    }

    /// Settles the oldest delivery, another one, or all.
    fn settle(&mut self, context: &mut Context<'_, '_>) {
        let random = &mut *context.random;
        let Some(link) = self.link.as_mut().filter(|link| !link.held.is_empty()) else { return };
        let settled: Vec<Held> = if random.percent(RANGE_PERCENT) {
            link.held.drain(..).collect()
        } else {
            let is_oldest = random.percent(60);
            let index = if is_oldest { 0 } else { random.index(link.held.len()) };
            vec![link.held.remove(index)]
        };
        let draw = random.below(100);
        let Taker { fail_percent, release_percent, .. } = self.plan;
        let outcome = if draw < fail_percent {
            Outcome::Requeue
        } else if draw < fail_percent + release_percent {
            Outcome::Release
        } else {
            Outcome::Accept
        };
        let failed = Modified { delivery_failed: true, ..Modified::default() };
        let mut state = match outcome {
            Outcome::Requeue => DeliveryState::Modified(failed),
            Outcome::Release => RELEASED,
            _ => ACCEPTED,
        };
        for held in &settled {
            link.note_settle(context, *held, outcome, None);
        }
        let is_release = outcome == Outcome::Release;
        if is_release && context.broken.breaks(Canary::ReleasesCounted) {
            state = DeliveryState::Modified(failed);
        }
        if is_release && context.broken.breaks(Canary::ReleasesLost) {
            return;
        }
        // They are in the order of their delivery.
        let (first, last) = (settled[0].delivery_id, settled[settled.len() - 1].delivery_id);
        context.wire.settle(LINK.channel, first, last, state);
    }
}

impl Role for Taking {
    fn container_id(&self) -> String {
        format!("taker.{}", self.plan.queue)
    }

    fn pace(&self) -> Pace {
        Pace { think_max: self.plan.think_max, life_max: self.plan.life_max }
    }

    fn attach(&mut self, context: &mut Context<'_, '_>) {
        let queue = context.queue_name(self.plan.queue);
        context.wire.begin(LINK.channel);
        context.wire.attach_receiver(LINK, "taker", &queue);
    }

    fn attached(&mut self, _: &mut Context<'_, '_>) -> bool {
        true
    }

    fn begin(&mut self, context: &mut Context<'_, '_>) {
        self.link = Some(Receiver::begin(context.around, LINK, self.plan.queue));
        self.give_credit(context, false);
    }

    fn take(&mut self, context: &mut Context<'_, '_>, what: Incoming) -> Result<(), String> {
        // While it leaves it passes over messages too.
        let Some(link) = self.link.as_mut().filter(|_| context.is_working) else { return Ok(()) };
        match what {
            Incoming::Flow { delivery_count, credit, drain, .. } if drain || credit == 0 => {
                link.drained(context.around, delivery_count);
            }
            Incoming::Message(message) => link.arrived(context, message)?,
            _ => {}
        }
        Ok(())
    }

    fn act(&mut self, context: &mut Context<'_, '_>) {
        if self.link.as_ref().is_none_or(|link| link.is_draining) {
            return;
        }
        self.settle(context);
        let is_used_up = self.link.as_ref().is_some_and(Receiver::is_used_up);
        if context.random.percent(self.plan.drain_percent) {
            self.give_credit(context, true);
        } else if is_used_up || context.random.percent(10) {
            self.give_credit(context, false);
        }
    }

    fn ended(&mut self, around: &mut Surroundings<'_>) {
        if let Some(link) = self.link.take() {
            around.note(Event::Ended { consumer: link.consumer });
        }
    }

    fn is_idle(&self) -> bool {
        self.link.as_ref().is_some_and(|link| !link.is_draining)
    }
}

//! The roles that declare their queue again and again: the queue deleter and the lease keeper.

use super::channel::{Asked, Behaviour, Context};
use super::topology;
use crate::client::Surroundings;
use crate::history::{Event, Publish};
use crate::plan::amqp091::{LeaseKeeper, QueueDeleter};
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Properties};

/// Purges its queue, or deletes and declares it again, while others use it.
impl Behaviour for QueueDeleter {
    fn begin(&mut self, context: &mut Context<'_>) {
        context.wake_within(self.pause_max);
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        let plan = &context.history.plan;
        let queue = plan.queues[self.queue].name.as_str();
        let channel = &mut context.link;
        if context.random.percent(self.delete_percent) {
            let (if_unused, if_empty, no_wait) = (false, false, false);
            let method = Method::QueueDelete { ticket: 0, queue, if_unused, if_empty, no_wait };
            channel.ask(&method, Asked::Done);
            topology::declare_queue(plan, self.queue, Asked::Done, channel);
        } else {
            channel.ask(&Method::QueuePurge { ticket: 0, queue, no_wait: false }, Asked::Done);
        }
        context.wake_within(self.pause_max);
    }
}

/// Declares its queue, which has `x-expires`, again before or after it expires. A message in the queue
/// shows whether it is still the same one.
#[derive(Debug)]
pub(super) struct LeaseKeeping {
    pub(super) plan: LeaseKeeper,
    /// When it declared its queue, while there is no answer.
    pub(super) asked: Option<Time>,
}

impl Behaviour for LeaseKeeping {
    fn begin(&mut self, context: &mut Context<'_>) {
        context.begin_confirmed();
        context.wake_within(self.plan.away_max);
    }

    fn answered(&mut self, context: &mut Context<'_>, _: Asked, messages: u32) {
        let Some(asked) = self.asked.take() else { return };
        let (queue, messages) = (self.plan.queue, u64::from(messages));
        context.note(Event::LeaseRenewed { queue, asked, messages });
        if messages == 0 {
            let publish = Publish { persistent: true, ..Publish::default() };
            context.publish_to_queue(queue, publish, Properties::default(), 20);
        }
        context.wake_within(self.plan.away_max);
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        if context.link.open.unconfirmed.is_empty() && self.asked.is_none() {
            self.asked = Some(context.now);
            let plan = &context.history.plan;
            topology::declare_queue(plan, self.plan.queue, Asked::Declared, &mut context.link);
        } else {
            context.wake_within(self.plan.away_max);
        }
    }

    fn ended(&mut self, at: &mut Surroundings<'_>) {
        if self.asked.take().is_some() {
            at.note(Event::LeaseUnanswered { queue: self.plan.queue });
        }
    }
}

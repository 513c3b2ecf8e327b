//! The queue deleter role: purges a queue, or deletes and declares it again, while others use it.

use super::context::{Asked, Behaviour, Context};
use super::incoming::Message;
use super::topology;
use crate::history::History;
use crate::plan::amqp091::QueueDeleter;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::Method;

/// The state of a queue deleter role.
#[derive(Debug)]
pub(super) struct QueueDeleting {
    plan: QueueDeleter,
}

impl QueueDeleting {
    pub(super) fn new(plan: QueueDeleter) -> QueueDeleting {
        QueueDeleting { plan }
    }
}

impl Behaviour for QueueDeleting {
    fn begin(&mut self, context: &mut Context<'_>) {
        context.wake_within(self.plan.pause_max);
    }

    fn arrived(&mut self, _: &mut Context<'_>, _: &Message) {}

    fn answered(&mut self, _: &mut Context<'_>, _: Asked, _: u32) {}

    fn woken(&mut self, context: &mut Context<'_>) {
        let plan = context.plan().clone();
        let queue = plan.queues[self.plan.queue].name.as_str();
        if context.random.percent(self.plan.delete_percent) {
            let method = Method::QueueDelete {
                ticket: 0,
                queue,
                if_unused: false,
                if_empty: false,
                no_wait: false,
            };
            context.ask(&method, Asked::Done);
            topology::declare_queue(&plan, self.plan.queue, &mut context.wire);
            context.asked.push_back(Asked::Done);
        } else {
            context.ask(&Method::QueuePurge { ticket: 0, queue, no_wait: false }, Asked::Done);
        }
        context.wake_within(self.plan.pause_max);
    }

    fn ended(&mut self, _: &mut History, _: Time, _: bool) {}

    fn is_done(&self) -> bool {
        true
    }
}

//! Purges a queue, or deletes it and declares it again, while others use it.

use super::wire::Message;
use super::{Asked, Behaviour, Scene, topology};
use crate::history::History;
use crate::plan::Meddler;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::Method;

/// A meddler at work.
#[derive(Debug)]
pub(super) struct Meddling {
    plan: Meddler,
}

impl Meddling {
    pub(super) fn new(plan: Meddler) -> Meddling {
        Meddling { plan }
    }
}

impl Behaviour for Meddling {
    fn begin(&mut self, scene: &mut Scene<'_>) {
        scene.wake_within(self.plan.pause_max);
    }

    fn arrived(&mut self, _: &mut Scene<'_>, _: &Message) {}

    fn answered(&mut self, _: &mut Scene<'_>, _: Asked, _: u32) {}

    fn woken(&mut self, scene: &mut Scene<'_>) {
        let plan = scene.plan().clone();
        let queue = plan.queues[self.plan.queue].name.as_str();
        if scene.random.percent(self.plan.delete_percent) {
            let method = Method::QueueDelete {
                ticket: 0,
                queue,
                if_unused: false,
                if_empty: false,
                no_wait: false,
            };
            scene.ask(&method, Asked::Done);
            topology::declare_queue(&plan, self.plan.queue, &mut scene.wire);
            scene.asked.push_back(Asked::Done);
        } else {
            scene.ask(&Method::QueuePurge { ticket: 0, queue, no_wait: false }, Asked::Done);
        }
        scene.wake_within(self.plan.pause_max);
    }

    fn ended(&mut self, _: &mut History, _: Time, _: bool) {}

    fn is_done(&self) -> bool {
        true
    }
}

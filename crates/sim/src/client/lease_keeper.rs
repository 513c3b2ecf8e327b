//! Declares a queue that expires without use, at times earlier and at times later than that, and keeps
//! a message in it by which it sees whether it is the same queue still.

use super::publishes::Publishes;
use super::wire::Message;
use super::{Asked, Behaviour, Scene, topology};
use crate::history::{Event, History, Publish};
use crate::payload;
use crate::plan::Lodger;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Properties};

/// A lodger at work.
#[derive(Debug)]
pub(super) struct Lodging {
    plan: Lodger,
    publishes: Publishes,
    /// When it asked for its queue, while there is no answer.
    asked: Option<Time>,
}

impl Lodging {
    pub(super) fn new(plan: Lodger) -> Lodging {
        Lodging { plan, publishes: Publishes::default(), asked: None }
    }

    fn visit(&mut self, scene: &mut Scene<'_>) {
        self.asked = Some(scene.now);
        let plan = scene.plan().clone();
        topology::declare_queue(&plan, self.plan.queue, &mut scene.wire);
        scene.asked.push_back(Asked::Declared);
    }

    fn leave_message(&mut self, scene: &mut Scene<'_>) {
        let message = self.publishes.next();
        let publish = Publish { persistent: true, ..Publish::new(message, vec![self.plan.queue]) };
        scene.note(Event::Publish(publish));
        let key = scene.plan().queues[self.plan.queue].name.clone();
        let properties = Properties { delivery_mode: Some(2), ..Properties::default() };
        scene.wire.publish("", &key, false, &properties, &payload::make(message, 20));
        self.publishes.await_confirm(message);
    }
}

impl Behaviour for Lodging {
    fn begin(&mut self, scene: &mut Scene<'_>) {
        self.publishes = Publishes::begin(scene);
        scene.ask(&Method::ConfirmSelect { no_wait: false }, Asked::Done);
        scene.wake_within(self.plan.away_max);
    }

    fn arrived(&mut self, _: &mut Scene<'_>, _: &Message) {}

    fn answered(&mut self, scene: &mut Scene<'_>, asked: Asked, messages: u32) {
        if asked != Asked::Declared {
            return;
        }
        let Some(asked) = self.asked.take() else { return };
        let (queue, messages) = (self.plan.queue, u64::from(messages));
        scene.note(Event::Visited { queue, asked, messages });
        if messages == 0 {
            self.leave_message(scene);
        }
        scene.wake_within(self.plan.away_max);
    }

    fn confirmed(&mut self, scene: &mut Scene<'_>, tag: u64, multiple: bool, accepted: bool) {
        self.publishes.told(scene, tag, multiple, accepted);
    }

    fn woken(&mut self, scene: &mut Scene<'_>) {
        if self.publishes.are_confirmed() && self.asked.is_none() {
            self.visit(scene);
        } else {
            scene.wake_within(self.plan.away_max);
        }
    }

    fn ended(&mut self, history: &mut History, now: Time, _: bool) {
        self.publishes.end();
        if self.asked.take().is_some() {
            history.note(now, Event::Unanswered { queue: self.plan.queue });
        }
    }

    fn is_done(&self) -> bool {
        self.publishes.are_confirmed() && self.asked.is_none()
    }
}

//! Declares a queue that expires without use, at times earlier and at times later than that, and keeps
//! a message in it by which it sees whether it is the same queue still.

use super::unconfirmed::Unconfirmed;
use super::wire::Message;
use super::{Asked, Behaviour, Scene, topology};
use crate::history::{Event, History, MessageId, Publish};
use crate::payload;
use crate::plan::Lodger;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Properties};

/// A lodger at work.
#[derive(Debug)]
pub(super) struct Lodging {
    plan: Lodger,
    /// This connection's number as a producer.
    producer: u32,
    sequence: u32,
    unconfirmed: Unconfirmed,
    /// When it asked for its queue, while there is no answer.
    asked: Option<Time>,
    is_finishing: bool,
}

impl Lodging {
    pub(super) fn new(plan: Lodger) -> Lodging {
        Lodging {
            plan,
            producer: 0,
            sequence: 0,
            unconfirmed: Unconfirmed::default(),
            asked: None,
            is_finishing: false,
        }
    }

    fn visit(&mut self, scene: &mut Scene<'_>) {
        self.asked = Some(scene.now);
        let plan = scene.plan().clone();
        topology::declare_queue(&plan, self.plan.queue, &mut scene.wire);
        scene.asked.push_back(Asked::Declared);
    }

    fn leave_message(&mut self, scene: &mut Scene<'_>) {
        self.sequence += 1;
        let message = MessageId::new(self.producer, self.sequence);
        scene.note(Event::Publish(Publish {
            message,
            to: vec![self.plan.queue],
            persistent: true,
            priority: 0,
            transaction: None,
            expires: false,
            held_until: None,
        }));
        let key = scene.plan().queues[self.plan.queue].name.clone();
        let properties = Properties { delivery_mode: Some(2), ..Properties::default() };
        scene.wire.publish("", &key, false, &properties, &payload::make(message, 20));
        self.unconfirmed.sent(u64::from(self.sequence), message);
    }
}

impl Behaviour for Lodging {
    fn begin(&mut self, scene: &mut Scene<'_>) {
        scene.numbers.producer += 1;
        self.producer = scene.numbers.producer;
        self.sequence = 0;
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
        self.unconfirmed.told(scene, tag, multiple, accepted);
    }

    fn woken(&mut self, scene: &mut Scene<'_>) {
        if self.is_finishing {
            return;
        }
        if self.unconfirmed.is_empty() && self.asked.is_none() {
            self.visit(scene);
        } else {
            scene.wake_within(self.plan.away_max);
        }
    }

    fn ended(&mut self, _: &mut History, _: Time, _: bool) {
        self.unconfirmed.clear();
        self.asked = None;
    }

    fn finish(&mut self) {
        self.is_finishing = true;
    }

    fn is_done(&self) -> bool {
        self.unconfirmed.is_empty() && self.asked.is_none()
    }
}

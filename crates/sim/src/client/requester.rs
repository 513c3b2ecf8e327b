//! Publishes requests and gets the replies at an address of its own, without a queue.

use super::publishes::Publishes;
use super::wire::{Message, Way};
use super::{Asked, Behaviour, INBOX_TAG, Scene};
use crate::client::deliveries;
use crate::history::{Event, History, Publish};
use crate::payload;
use crate::plan::Requester;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Properties};

/// What stands for a requester's address where it subscribes, and in its requests.
const ADDRESS: &str = "amq.rabbitmq.reply-to";
/// How many in a hundred times it asks something whose answer shows that all before has come.
const SYNC_PERCENT: u64 = 20;
/// Requests sent in one go.
const BURST_MAX: u64 = 8;
/// Longest body.
const BODY_MAX: usize = 300;

/// A requester at work.
#[derive(Debug)]
pub(super) struct Requesting {
    plan: Requester,
    publishes: Publishes,
    /// This connection's number as one that gets replies.
    consumer: u32,
    /// Requests sent on all connections.
    total: u32,
    /// Requests less replies.
    open: u32,
    is_syncing: bool,
}

impl Requesting {
    pub(super) fn new(plan: Requester) -> Requesting {
        Requesting {
            plan,
            publishes: Publishes::default(),
            consumer: 0,
            total: 0,
            open: 0,
            is_syncing: false,
        }
    }

    fn request(&mut self, scene: &mut Scene<'_>) {
        self.total += 1;
        self.open += 1;
        let message = self.publishes.next();
        let persistent = scene.random.percent(self.plan.persistent_percent);
        let publish = Publish { persistent, ..Publish::new(message, vec![self.plan.queue]) };
        scene.note(Event::Publish(publish));
        let key = scene.plan().queues[self.plan.queue].name.clone();
        let correlation = self.consumer.to_string();
        let properties = Properties {
            delivery_mode: Some(if persistent { 2 } else { 1 }),
            correlation_id: Some(&correlation),
            reply_to: Some(ADDRESS),
            ..Properties::default()
        };
        let length = scene.random.index(BODY_MAX);
        scene.wire.publish("", &key, false, &properties, &payload::make(message, length));
        self.publishes.await_confirm(message);
    }
}

impl Behaviour for Requesting {
    fn begin(&mut self, scene: &mut Scene<'_>) {
        self.publishes = Publishes::begin(scene);
        self.consumer = scene.new_consumer();
        self.open = 0;
        scene.ask(&Method::ConfirmSelect { no_wait: false }, Asked::Done);
        scene.note(Event::Inbox { consumer: self.consumer });
        scene.consume(ADDRESS, &format!("{INBOX_TAG}{}", self.consumer), true);
        scene.wake_within(self.plan.pause_max);
    }

    fn arrived(&mut self, scene: &mut Scene<'_>, message: &Message) {
        let Way::Delivered { .. } = message.way else { return };
        self.open = self.open.saturating_sub(1);
        scene.note(Event::Replied { consumer: self.consumer, message: message.id });
    }

    fn answered(&mut self, scene: &mut Scene<'_>, asked: Asked, _: u32) {
        if let Asked::Depth(_) = asked {
            self.is_syncing = false;
            scene.note(Event::Synced { consumer: self.consumer });
        }
    }

    fn confirmed(&mut self, scene: &mut Scene<'_>, tag: u64, multiple: bool, accepted: bool) {
        self.publishes.told(scene, tag, multiple, accepted);
    }

    fn woken(&mut self, scene: &mut Scene<'_>) {
        for _ in 0..scene.random.between(1, BURST_MAX) {
            if self.open < self.plan.window && self.total < self.plan.messages {
                self.request(scene);
            }
        }
        // Replies to what a restart took will not come.
        if scene.random.percent(10) {
            self.open = self.open.saturating_sub(1);
        }
        if !self.is_syncing && scene.random.percent(SYNC_PERCENT) {
            self.is_syncing = true;
            scene.note(Event::Asking { consumer: self.consumer });
            scene.ask_depth(self.plan.queue);
        }
        scene.wake_within(self.plan.pause_max);
    }

    fn ended(&mut self, history: &mut History, now: Time, synced: bool) {
        if self.consumer != 0 {
            deliveries::note_end(history, now, self.consumer, synced);
        }
        self.consumer = 0;
        self.is_syncing = false;
        self.publishes.end();
    }

    fn is_done(&self) -> bool {
        self.publishes.are_confirmed() && !self.is_syncing
    }
}

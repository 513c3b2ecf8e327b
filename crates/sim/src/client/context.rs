//! What a role can reach and what is asked of it: the seam between a client and what it does.

use super::wire::{Channel, Message};
use crate::history::{Event, History};
use crate::plan::Plan;
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Table};
use std::collections::VecDeque;
use std::time::Duration;

/// Numbers that must be unique in a run.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Of the last consumer.
    pub consumer: u32,
    /// Of the last producer.
    pub producer: u32,
    /// Of the last transaction.
    pub transaction: u32,
    /// Of the last NATS connection.
    pub connection: u32,
    /// Of the last listener.
    pub listener: u32,
}

/// What a client can reach during one call.
pub struct Surroundings<'a> {
    /// The time.
    pub now: Time,
    /// Where everything is noted.
    pub history: &'a mut History,
    /// Unique numbers.
    pub numbers: &'a mut Numbers,
}

/// What a role can reach: its client's connection and surroundings.
pub struct Scene<'a> {
    /// The time.
    pub now: Time,
    /// The client's own chance.
    pub random: &'a mut Random,
    /// Where everything is noted.
    pub history: &'a mut History,
    /// Unique numbers.
    pub numbers: &'a mut Numbers,
    /// What was asked for and is not answered.
    pub(super) asked: &'a mut VecDeque<Asked>,
    /// Its channel.
    pub wire: Channel<'a>,
    /// When the role wants to be woken; `None`: not before something arrives.
    pub wake_at: &'a mut Option<Time>,
    /// Set by a role that wants its connection closed.
    pub wants_to_leave: &'a mut Leave,
}

/// How a client ends its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leave {
    /// Not at all.
    #[default]
    No,
    /// By connection.close.
    Politely,
    /// By dropping the transport.
    Abruptly,
}

/// A request whose answer is awaited; answers come in order on each channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Something whose answer only says that it is done.
    Done,
    /// The client's last declaration: the role begins.
    Ready,
    /// The depth of a queue.
    Depth(usize),
    /// basic.get, on behalf of a consumer.
    Get,
    /// tx.commit.
    Commit(u32),
    /// tx.rollback.
    Rollback,
    /// basic.cancel.
    Cancel,
    /// queue.declare of a queue that may have gone.
    Declared,
}

/// What a client does on one of its channels once it is connected.
pub trait Behaviour: std::fmt::Debug {
    /// Connected, channel open, topology declared.
    fn begin(&mut self, scene: &mut Scene<'_>);
    /// A message was delivered, got or returned.
    fn arrived(&mut self, scene: &mut Scene<'_>, message: &Message);
    /// A request was answered.
    fn answered(&mut self, scene: &mut Scene<'_>, asked: Asked, messages: u32);
    /// A publish was confirmed.
    fn confirmed(&mut self, _: &mut Scene<'_>, _tag: u64, _multiple: bool, _accepted: bool) {}
    /// The time asked for has come; not called once only what was begun is to be brought to its end.
    fn woken(&mut self, scene: &mut Scene<'_>);
    /// The connection has ended; `synced`: after the broker had processed everything.
    fn ended(&mut self, history: &mut History, now: Time, synced: bool);
    /// Whether nothing is under way that the broker has to answer.
    fn is_done(&self) -> bool;
    /// Why it may be stuck, if it is not done.
    fn waits_for(&self) -> String {
        format!("{self:?}")
    }
}

impl Scene<'_> {
    /// Sends a request and notes what its answer is for.
    pub fn ask(&mut self, method: &Method<'_>, asked: Asked) {
        self.wire.send(method);
        self.asked.push_back(asked);
    }

    /// Asks how many messages a queue has; also a way to learn that all before was processed.
    pub fn ask_depth(&mut self, queue: usize) {
        let name = self.history.plan.queues[queue].name.clone();
        let method = Method::QueueDeclare {
            ticket: 0,
            queue: &name,
            passive: true,
            durable: false,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments: Table::default(),
        };
        self.ask(&method, Asked::Depth(queue));
    }

    /// Notes an event.
    pub fn note(&mut self, event: Event) {
        self.history.note(self.now, event);
    }

    /// Wakes the role within `micros`, or earlier if it is to be woken earlier already.
    pub fn wake_within(&mut self, micros: u64) {
        let pause = self.random.below(micros) + 1;
        let due = self.now.plus(Duration::from_micros(pause));
        *self.wake_at = Some(self.wake_at.map_or(due, |earlier| earlier.min(due)));
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.history.plan
    }
}

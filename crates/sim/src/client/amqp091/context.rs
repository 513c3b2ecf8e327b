//! The interface between an AMQP 0-9-1 client and the roles on its channels.

use super::incoming::Message;
use super::wire::Channel;
use crate::client::Numbers;
use crate::history::{Event, History};
use crate::plan::Plan;
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Table};
use std::collections::VecDeque;
use std::time::Duration;

/// What a role can reach: its client's connection and surroundings.
pub(super) struct Context<'a> {
    /// The time.
    pub(super) now: Time,
    /// The client's random generator.
    pub(super) random: &'a mut Random,
    /// The history of the run.
    pub(super) history: &'a mut History,
    /// Unique numbers.
    pub(super) numbers: &'a mut Numbers,
    /// Requests without an answer.
    pub(super) asked: &'a mut VecDeque<Asked>,
    /// Its channel.
    pub(super) wire: Channel<'a>,
    /// When the role wants to be woken; `None`: when something arrives.
    pub(super) wake_at: &'a mut Option<Time>,
    /// Set by a role that wants its connection closed.
    pub(super) wants_to_leave: &'a mut Leave,
}

/// How a client ends its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Leave {
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
pub(super) enum Asked {
    /// A request whose answer carries nothing.
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
    /// queue.declare of a queue that may have been deleted.
    Declared,
}

/// What a client does on one of its channels once it is connected.
pub(super) trait Behaviour: std::fmt::Debug {
    /// Connected, channel open, topology declared.
    fn begin(&mut self, context: &mut Context<'_>);
    /// A message was delivered, got or returned.
    fn arrived(&mut self, context: &mut Context<'_>, message: &Message);
    /// A request was answered.
    fn answered(&mut self, context: &mut Context<'_>, asked: Asked, messages: u32);
    /// A publish was confirmed.
    fn confirmed(&mut self, _: &mut Context<'_>, _tag: u64, _multiple: bool, _accepted: bool) {}
    /// The time in `wake_at` has come; not called once the client is finishing.
    fn woken(&mut self, context: &mut Context<'_>);
    /// The connection has ended; `synced`: after the broker had processed everything.
    fn ended(&mut self, history: &mut History, now: Time, synced: bool);
    /// Whether all requests and publishes are answered.
    fn is_done(&self) -> bool;
    /// Why it may be stuck, if it is not done.
    fn waits_for(&self) -> String {
        format!("{self:?}")
    }
}

impl Context<'_> {
    /// Sends a request and records what its answer is for.
    pub(super) fn ask(&mut self, method: &Method<'_>, asked: Asked) {
        self.wire.send(method);
        self.asked.push_back(asked);
    }

    /// Asks how many messages a queue has. The answer also shows that everything before was
    /// processed.
    pub(super) fn ask_depth(&mut self, queue: usize) {
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

    /// Records an event.
    pub(super) fn note(&mut self, event: Event) {
        self.history.note(self.now, event);
    }

    /// Wakes the role within `micros`, or earlier if it is to be woken earlier already.
    pub(super) fn wake_within(&mut self, micros: u64) {
        let pause = self.random.below(micros) + 1;
        let due = self.now.plus(Duration::from_micros(pause));
        *self.wake_at = Some(self.wake_at.map_or(due, |earlier| earlier.min(due)));
    }

    /// The plan.
    pub(super) fn plan(&self) -> &Plan {
        &self.history.plan
    }
}

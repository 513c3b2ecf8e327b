//! A client that takes messages from a queue and publishes to others in transactions: several at once, used
//! from all sessions of its connection, each begun before the end of the one before it is answered.

use super::connection::{Context, Pace, Role};
use super::receiver::{Held, Receiver};
use super::wire::{At, Incoming, Publishing, Told};
use crate::canary::Canary;
use crate::client::Surroundings;
use crate::client::context::next;
use crate::history::{Ending, Event, MessageId, Outcome, Publish};
use crate::payload;
use crate::plan::amqp10::{TRANSACTOR_BODY_MAX, Transactor};
use angarium_protocol::amqp10::codec::{
    ACCEPTED, Accepted, Declare, DeliveryState, Discharge, RELEASED, TransactionalState,
};
use std::collections::BTreeMap;

/// The handle of each session's link to the coordinator; senders follow.
const COORDINATOR: u32 = 0;
/// Percentage of messages in several frames, and of those that are given up half sent.
const SPLIT_PERCENT: u64 = 20;
const ABORT_PERCENT: u64 = 10;

/// A transaction that is declared.
#[derive(Debug)]
struct Open {
    number: u32,
    txn_id: Vec<u8>,
    /// The session that has declared it.
    channel: u16,
    /// Its last message; each transaction is a producer of its own.
    last_message: MessageId,
    operations: u64,
}

/// What an answer is for.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Declare,
    /// A commit, or a rollback.
    Discharge {
        transaction: u32,
        commits: bool,
        is_anticipated: bool,
    },
    /// A message, in a transaction or not.
    Publish {
        message: MessageId,
        is_plain: bool,
    },
}

/// What the client knows of its connection.
#[derive(Debug)]
pub(super) struct Transacting {
    plan: Transactor,
    link: Option<Receiver>,
    attached: usize,
    open: Vec<Open>,
    /// By session and delivery-id.
    asked: BTreeMap<(u16, u32), Asked>,
    /// The last plain message of each session.
    plain: Vec<MessageId>,
    /// Messages sent on all connections.
    total: u32,
}

impl Transacting {
    pub(super) fn new(plan: Transactor) -> Transacting {
        Transacting {
            plan,
            link: None,
            attached: 0,
            open: Vec::new(),
            asked: BTreeMap::new(),
            plain: Vec::new(),
            total: 0,
        }
    }

    fn receiver(&self) -> At {
        At { channel: 0, handle: self.plan.to.len() as u32 + 1 }
    }

    fn declare(&mut self, context: &mut Context<'_, '_>, channel: u16) {
        let at = At { channel, handle: COORDINATOR };
        let Some(id) = context.wire.coordinate(at, &Declare::default()) else { return };
        self.asked.insert((channel, id), Asked::Declare);
    }

    fn declared(&mut self, context: &mut Context<'_, '_>, channel: u16, txn_id: Vec<u8>) {
        let number = next(&mut context.around.numbers.transaction);
        let last_message = MessageId::new(next(&mut context.around.numbers.producer), 0);
        self.open.push(Open { number, txn_id, channel, last_message, operations: 0 });
    }

    /// Commits a transaction or rolls it back. Begins the next one before there is an answer.
    fn discharge(&mut self, context: &mut Context<'_, '_>, which: usize, begins: bool) {
        let at = At { channel: self.open[which].channel, handle: COORDINATOR };
        if !context.wire.has_room(at, 2) {
            return;
        }
        let Open { number: transaction, txn_id, channel, .. } = self.open.swap_remove(which);
        let commits = !context.random.percent(self.plan.rollback_percent);
        let ending = Ending::RolledBack;
        context.note(match commits {
            true => Event::Committing { transaction },
            false => Event::Transaction { transaction, ending },
        });
        if !commits && context.broken.breaks(Canary::RollbacksLost) {
            context.note(Event::Undone { transaction });
            if begins {
                self.declare(context, channel);
            }
            return;
        }
        let fail = !commits && !context.broken.is(Canary::RollbacksCommitted);
        let request = Discharge { txn_id: &txn_id, fail };
        let Some(id) = context.wire.coordinate(at, &request) else { return };
        let is_anticipated = commits && context.broken.is(Canary::CommitsEarly);
        if is_anticipated {
            context.note(Event::Transaction { transaction, ending: Ending::Committed });
        }
        let asked = Asked::Discharge { transaction, commits, is_anticipated };
        self.asked.insert((channel, id), asked);
        if begins {
            self.declare(context, channel);
        }
    }

    /// Publishes a message, in a transaction or not, on any session.
    fn publish(&mut self, context: &mut Context<'_, '_>, which: Option<usize>) {
        let random = &mut *context.random;
        let channel = random.index(self.plan.sessions.into()) as u16;
        let target = random.index(self.plan.to.len());
        let at = At { channel, handle: target as u32 + 1 };
        if self.total >= self.plan.messages || !context.wire.has_room(at, 3) {
            return;
        }
        self.total += 1;
        let body_bytes = random.index(TRANSACTOR_BODY_MAX);
        let is_split = random.percent(SPLIT_PERCENT);
        let is_aborted = is_split && random.percent(ABORT_PERCENT);
        let persistent = which.is_some() || random.percent(self.plan.persistent_percent);
        let last = match which {
            Some(which) => &mut self.open[which].last_message,
            None => &mut self.plain[usize::from(channel)],
        };
        last.0 += 1;
        let message = *last;
        let within = which.map(|which| {
            self.open[which].operations += 1;
            (self.open[which].number, self.open[which].txn_id.clone())
        });
        let mut publishing =
            Publishing { persistent, is_split, is_aborted, ..Publishing::default() };
        let body = payload::make(message, body_bytes);
        if is_aborted {
            // It never was.
            context.wire.publish(at, &body, &publishing);
            return;
        }
        let transaction = within.as_ref().map(|(number, _)| *number);
        let to = vec![self.plan.to[target]];
        context.note(Event::Publish(Publish {
            message,
            to,
            persistent,
            transaction,
            ..Publish::default()
        }));
        if let Some((_, txn_id)) = &within {
            if context.broken.breaks(Canary::TransactionsTorn) {
                return;
            }
            let is_kept = !context.broken.breaks(Canary::TransactionsLeak);
            publishing.txn_id = is_kept.then_some(txn_id);
        }
        let id = context.wire.publish(at, &body, &publishing);
        let asked = Asked::Publish { message, is_plain: transaction.is_none() };
        self.asked.insert((channel, id), asked);
    }

    /// Settles a delivery, in a transaction or not.
    fn settle(&mut self, context: &mut Context<'_, '_>, which: Option<usize>) {
        let Some(link) = self.link.as_mut().filter(|link| !link.held.is_empty()) else { return };
        if link.is_draining && which.is_none() {
            return;
        }
        let random = &mut *context.random;
        let is_oldest = random.percent(60);
        let index = if is_oldest { 0 } else { random.index(link.held.len()) };
        let held: Held = link.held.remove(index);
        let releases = which.is_none() && random.percent(30);
        let outcome = if releases { Outcome::Release } else { Outcome::Accept };
        let transaction = which.map(|which| self.open[which].number);
        link.note_settle(context, held, outcome, transaction);
        let (id, channel) = (held.delivery_id, self.receiver().channel);
        if outcome == Outcome::Accept && context.broken.breaks(Canary::SettlesLost) {
            return;
        }
        let Some(which) = which else {
            let state = if releases { RELEASED } else { ACCEPTED };
            return context.wire.settle(channel, id, id, state);
        };
        self.open[which].operations += 1;
        let txn_id = &self.open[which].txn_id;
        let outcome = Some(angarium_protocol::amqp10::codec::Outcome::Accepted(Accepted {}));
        let state = match context.broken.breaks(Canary::TransactionsLeak) {
            true => ACCEPTED,
            false => DeliveryState::TransactionalState(TransactionalState { txn_id, outcome }),
        };
        context.wire.settle(channel, id, id, state);
    }

    /// An answer came.
    fn told(&mut self, context: &mut Context<'_, '_>, channel: u16, id: u32, told: &Told) {
        let Some(asked) = self.asked.remove(&(channel, id)) else {
            return context.note_refusal(format!(
                "an outcome of a delivery that there is not: {channel} {id}"
            ));
        };
        match (asked, told) {
            (Asked::Declare, Told::Declared(txn_id)) => {
                self.declared(context, channel, txn_id.clone());
            }
            (Asked::Discharge { transaction, commits, is_anticipated }, Told::Accepted) => {
                context.note(match commits {
                    true if is_anticipated => return,
                    true => Event::Transaction { transaction, ending: Ending::Committed },
                    false => Event::Undone { transaction },
                });
            }
            (Asked::Discharge { transaction, .. }, Told::Refused(why)) => {
                context.note_refusal(format!("transaction {transaction}: {why}"));
                // By any other condition it may be committed.
                if why.contains("amqp:transaction:") {
                    context.note(Event::Transaction { transaction, ending: Ending::RolledBack });
                }
            }
            (Asked::Publish { message, is_plain: true }, Told::Accepted) => {
                context.note(Event::Confirm { message, accepted: true });
            }
            // The commit says the same of all messages of a transaction.
            (Asked::Publish { .. }, Told::Accepted) => {}
            (Asked::Publish { message, .. }, Told::Refused(why)) => {
                context.note_refusal(format!("{message:?}: {why}"));
                context.note(Event::Confirm { message, accepted: false });
            }
            (asked, told) => context.note_refusal(format!("{asked:?} is answered by {told:?}")),
        }
    }

    fn give_credit(&mut self, context: &mut Context<'_, '_>, drain: bool) {
        let credit = context.random.below(u64::from(self.plan.credit_max) + 1) as u32;
        let Some(link) = &mut self.link else { return };
        link.give_credit(context, credit, drain);
    }

    fn step(&mut self, context: &mut Context<'_, '_>) {
        let is_plain = self.open.is_empty() || context.random.percent(self.plan.plain_percent);
        let which = (!is_plain).then(|| context.random.index(self.open.len()));
        let is_full = |which: &usize| self.open[*which].operations >= self.plan.operations_max;
        if let Some(which) = which.filter(is_full) {
            return self.discharge(context, which, true);
        }
        match (context.random.below(100), which) {
            (0..50, which) => self.publish(context, which),
            (50..85, which) => self.settle(context, which),
            (_, Some(which)) => self.discharge(context, which, true),
            _ => {}
        }
    }
}

impl Role for Transacting {
    fn container_id(&self) -> String {
        format!("transactor.{}", self.plan.from)
    }

    fn pace(&self) -> Pace {
        Pace { think_max: self.plan.think_max, life_max: self.plan.life_max }
    }

    fn attach(&mut self, context: &mut Context<'_, '_>) {
        self.attached = 0;
        for channel in 0..self.plan.sessions {
            context.wire.begin(channel);
            context.wire.attach_coordinator(At { channel, handle: COORDINATOR });
            for (number, queue) in self.plan.to.iter().enumerate() {
                let queue = context.queue_name(*queue);
                let at = At { channel, handle: number as u32 + 1 };
                context.wire.attach_sender(at, &queue);
            }
        }
        let queue = context.queue_name(self.plan.from);
        context.wire.attach_receiver(self.receiver(), "taker", &queue);
    }

    fn attached(&mut self, _: &mut Context<'_, '_>) -> bool {
        self.attached += 1;
        self.attached == usize::from(self.plan.sessions) * (self.plan.to.len() + 1) + 1
    }

    fn begin(&mut self, context: &mut Context<'_, '_>) {
        self.link = Some(Receiver::begin(context.around, self.receiver(), self.plan.from));
        let numbers = &mut context.around.numbers.producer;
        self.plain = (0..self.plan.sessions).map(|_| MessageId::new(next(numbers), 0)).collect();
        for channel in 0..self.plan.sessions {
            for _ in 0..self.plan.at_once {
                self.declare(context, channel);
            }
        }
        self.give_credit(context, false);
    }

    fn take(&mut self, context: &mut Context<'_, '_>, what: Incoming) -> Result<(), String> {
        let receiver = self.receiver();
        // While it leaves it passes over everything.
        let Some(link) = self.link.as_mut().filter(|_| context.is_working) else { return Ok(()) };
        match what {
            Incoming::Flow { at, delivery_count, credit, drain }
                if at == receiver && (drain || credit == 0) =>
            {
                link.drained(context.around, delivery_count);
            }
            Incoming::Message(message) => link.arrived(context, message)?,
            Incoming::Told { channel, first, last, told } => {
                for id in first..=last {
                    self.told(context, channel, id, &told);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn act(&mut self, context: &mut Context<'_, '_>) {
        for _ in 0..context.random.between(1, 6) {
            self.step(context);
        }
        let Some(link) = self.link.as_ref().filter(|link| !link.is_draining) else { return };
        let is_used_up = link.is_used_up();
        if context.random.percent(self.plan.drain_percent) {
            self.give_credit(context, true);
        } else if is_used_up || context.random.percent(10) {
            self.give_credit(context, false);
        }
    }

    fn finish(&mut self, context: &mut Context<'_, '_>) {
        for which in (0..self.open.len()).rev() {
            self.discharge(context, which, false);
        }
    }

    fn ended(&mut self, around: &mut Surroundings<'_>) {
        if let Some(link) = self.link.take() {
            around.note(Event::Ended { consumer: link.consumer });
        }
        for open in self.open.drain(..) {
            let (transaction, ending) = (open.number, Ending::RolledBack);
            around.note(Event::Transaction { transaction, ending });
        }
        self.asked.clear();
    }

    fn is_idle(&self) -> bool {
        let is_draining = self.link.as_ref().is_none_or(|link| link.is_draining);
        !is_draining && self.open.is_empty() && self.asked.is_empty()
    }
}

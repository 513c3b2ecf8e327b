//! The relay role: consumes from one queue and publishes to others, in transactions.

use super::channel::{Asked, Behaviour, Context, Unsettled};
use super::incoming::Message;
use crate::client::context::next;
use crate::history::{Consume, Outcome, Publish};
use crate::plan::amqp091::Relay;
use angarium_protocol::amqp091::codec::{Method, Properties};

/// Longest wait for more deliveries of a transaction, in microseconds.
const PAUSE_MAX: u64 = 50_000;
/// Longest body.
const BODY_MAX: usize = 300;

/// The state of a relay role.
#[derive(Debug)]
pub(super) struct Relaying {
    pub(super) plan: Relay,
    pub(super) held: Vec<Unsettled>,
    /// Deliveries settled in the transaction that is being committed or rolled back.
    pub(super) ending: Vec<Unsettled>,
}

impl Behaviour for Relaying {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.held.clear();
        self.ending.clear();
        context.begin_publishing();
        context.link.ask(&Method::TxSelect {}, Asked::Done);
        let messages_max = self.plan.batch;
        let prefetch_count = u16::try_from(messages_max).unwrap_or(u16::MAX);
        context.link.ask_prefetch(prefetch_count, 0, Asked::Done);
        let queue = self.plan.from;
        context.start_consumer(Consume { queue, messages_max, ..Consume::default() });
    }

    fn arrived(&mut self, context: &mut Context<'_>, message: &Message) {
        self.held.extend(context.note_delivery(message));
        context.wake_within(PAUSE_MAX);
    }

    fn answered(&mut self, context: &mut Context<'_>, asked: Asked, _: u32) {
        match asked {
            Asked::Commit(_) => self.ending.clear(),
            // The deliveries are unsettled as before.
            Asked::Rollback => self.held.splice(0..0, self.ending.drain(..)).for_each(drop),
            _ => return,
        }
        context.wake_within(PAUSE_MAX);
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        if self.held.is_empty() || context.link.open.is_ending() {
            return;
        }
        let transaction = next(&mut context.numbers.transaction);
        for queue in &self.plan.to {
            let publish =
                Publish { persistent: true, transaction: Some(transaction), ..Publish::default() };
            let length = context.random.index(BODY_MAX);
            context.publish_to_queue(*queue, publish, Properties::default(), length);
        }
        self.ending = std::mem::take(&mut self.held);
        for unsettled in &self.ending {
            context.settle(*unsettled, Outcome::Accept, Some(transaction));
        }
        context.end_transaction(transaction, self.plan.rollback_percent);
    }
}

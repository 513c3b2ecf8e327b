//! A channel of an AMQP 0-9-1 client: what is open on it, and what its role can do on it.

use super::incoming::{Message, Way};
use super::wire::Wire;
use crate::client::Surroundings;
use crate::client::context::{self, next};
use crate::history::{Consume, Delivery, Ending, Event, MessageId, Outcome, Publish};
use crate::payload;
use crate::plan::QueueIndex;
use angarium_protocol::amqp091::codec::content::PublishMethod;
use angarium_protocol::amqp091::codec::{Method, Properties, Table};
use std::collections::{BTreeSet, VecDeque};

/// How a role ends its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// By connection.close.
    Politely,
    /// By dropping the transport.
    Abruptly,
}

/// A request whose answer is awaited; answers come in order on each channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A request whose answer carries nothing.
    Done,
    /// The client's last declaration: the role begins.
    Ready,
    /// The depth of a queue.
    Depth(QueueIndex),
    /// The depth of a queue, to learn that the broker has processed everything before.
    Sync(QueueIndex),
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

/// A delivery that its consumer has not settled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unsettled {
    pub(super) tag: u64,
    pub(super) consumer: u32,
    pub(super) queue: QueueIndex,
    pub(super) message: MessageId,
}

/// What a client does on one of its channels. Its connection may be lost at any time; the next one
/// begins anew.
pub(super) trait Behaviour: std::fmt::Debug {
    /// The queue that only this channel declares.
    fn own_queue(&self) -> Option<QueueIndex> {
        None
    }
    /// Connected, channel open, topology declared.
    fn begin(&mut self, context: &mut Context<'_>);
    /// A message was delivered or got.
    fn arrived(&mut self, _: &mut Context<'_>, _: &Message) {}
    /// A request was answered.
    fn answered(&mut self, _: &mut Context<'_>, _: Asked, _messages: u32) {}
    /// The time in `wake_at` has come; not called once the client is finishing.
    fn woken(&mut self, _: &mut Context<'_>) {}
    /// The connection has ended.
    fn ended(&mut self, _: &mut Surroundings<'_>) {}
    /// Whether it is done once all requests and publishes are answered.
    fn is_done(&self) -> bool {
        true
    }
    /// Why it may be stuck, if it is not done.
    fn waits_for(&self) -> String {
        format!("{self:?}")
    }
}

/// What is open on a channel.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// Requests without an answer.
    pub(super) asked: VecDeque<Asked>,
    has_confirms: bool,
    /// Publishes without a confirm.
    pub(super) unconfirmed: BTreeSet<MessageId>,
    /// Consumers with their queues; `None` for direct reply-to.
    pub(super) consumers: Vec<(u32, Option<QueueIndex>)>,
    /// It is open, the topology is declared, and its role has begun.
    pub(super) is_set_up: bool,
    /// Set by a role that wants its connection closed.
    pub(super) leave: Option<Leave>,
}

impl Open {
    /// Whether the role has begun, and all requests and publishes are answered.
    pub(super) fn is_answered(&self) -> bool {
        self.is_set_up && self.asked.is_empty() && self.unconfirmed.is_empty()
    }

    /// Whether a transaction is being committed or rolled back.
    pub(super) fn is_ending(&self) -> bool {
        self.asked.iter().any(|asked| matches!(asked, Asked::Commit(_) | Asked::Rollback))
    }

    /// Whether the answer to [`Context::sync`] is awaited.
    pub(super) fn is_syncing(&self) -> bool {
        self.asked.iter().any(|asked| matches!(asked, Asked::Sync(_)))
    }
}

/// A channel of a connection.
#[derive(Debug)]
pub(super) struct Channel<'a> {
    pub(super) wire: &'a mut Wire,
    pub(super) number: u16,
    pub(super) open: &'a mut Open,
}

impl Channel<'_> {
    /// Sends a method that has no answer.
    pub(super) fn send(&mut self, method: &Method<'_>) {
        self.wire.send_on(self.number, method);
    }

    /// Sends a request and records what its answer is for.
    pub(super) fn ask(&mut self, method: &Method<'_>, asked: Asked) {
        self.send(method);
        self.open.asked.push_back(asked);
    }

    /// Sets the prefetch limits of later consumers.
    pub(super) fn ask_prefetch(&mut self, prefetch_count: u16, prefetch_size: u32, asked: Asked) {
        self.ask(&Method::BasicQos { prefetch_size, prefetch_count, global: false }, asked);
    }
}

/// What a role can reach.
pub(super) type Context<'a> = context::Context<'a, Channel<'a>>;

impl Context<'_> {
    // ---- requests ----

    /// Asks how many messages a queue has.
    pub(super) fn ask_depth(&mut self, queue: QueueIndex, asked: Asked) {
        let method = Method::QueueDeclare {
            ticket: 0,
            queue: &self.history.plan.queues[queue].name,
            passive: true,
            durable: false,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments: Table::default(),
        };
        self.link.ask(&method, asked);
    }

    /// Asks for a queue's depth to learn that the broker has processed everything that the channel's
    /// consumers sent.
    pub(super) fn sync(&mut self, queue: QueueIndex) {
        for (consumer, _) in &self.link.open.consumers {
            self.history.note(self.now, Event::Asking { consumer: *consumer });
        }
        self.ask_depth(queue, Asked::Sync(queue));
    }

    /// Commits the transaction or, in `rollback_percent` of a hundred cases, rolls it back.
    pub(super) fn end_transaction(&mut self, transaction: u32, rollback_percent: u64) {
        if self.random.percent(rollback_percent) {
            self.note(Event::Transaction { transaction, ending: Ending::RolledBack });
            self.link.ask(&Method::TxRollback {}, Asked::Rollback);
        } else {
            self.note(Event::Committing { transaction });
            self.link.ask(&Method::TxCommit {}, Asked::Commit(transaction));
        }
    }

    // ---- publishes ----

    /// Makes the role a new producer with publisher confirms.
    pub(super) fn begin_confirmed(&mut self) {
        self.begin_publishing();
        self.link.open.has_confirms = true;
        self.link.ask(&Method::ConfirmSelect { no_wait: false }, Asked::Done);
    }

    /// Sends the role's last message, with a body of `length` bytes.
    pub(super) fn send_message(
        &mut self,
        method: &PublishMethod<'_>,
        properties: &Properties<'_>,
        length: usize,
    ) {
        let message = *self.last_message;
        self.link.wire.publish(
            self.link.number,
            method,
            properties,
            &payload::make(message, length),
        );
        if self.link.open.has_confirms {
            self.link.open.unconfirmed.insert(message);
        }
    }

    /// Publishes the role's next message to a queue through the default exchange.
    pub(super) fn publish_to_queue(
        &mut self,
        queue: QueueIndex,
        publish: Publish,
        properties: Properties<'_>,
        length: usize,
    ) {
        let message = self.next_message();
        let properties =
            Properties { delivery_mode: Some(delivery_mode(publish.persistent)), ..properties };
        self.note(Event::Publish(Publish { message, to: vec![queue], ..publish }));
        let routing_key = &self.history.plan.queues[queue].name.clone();
        let method =
            PublishMethod { exchange: "", routing_key, mandatory: false, immediate: false };
        self.send_message(&method, &properties, length);
    }

    /// Records a confirm: of one message, or of all up to it.
    pub(super) fn note_confirm(&mut self, tag: u64, multiple: bool, accepted: bool) {
        let message = MessageId(MessageId::new(self.last_message.producer(), 0).0 + tag);
        let first = if multiple { MessageId(0) } else { message };
        let unconfirmed = &mut self.link.open.unconfirmed;
        let confirmed: Vec<MessageId> = unconfirmed.range(first..=message).copied().collect();
        if confirmed.is_empty() && !multiple {
            self.note_breach(format!("publish {tag} was confirmed and is not waiting for it"));
        }
        for message in confirmed {
            self.link.open.unconfirmed.remove(&message);
            self.note(Event::Confirm { message, accepted });
        }
    }

    /// Records a breach of the protocol, as a refusal with a code that no broker sends.
    fn note_breach(&mut self, text: String) {
        self.note(Event::Refused { code: 0, text });
    }

    // ---- consumers ----

    /// A number for a new consumer, on a queue or on direct reply-to.
    pub(super) fn new_consumer(&mut self, queue: Option<QueueIndex>) -> u32 {
        let consumer = next(&mut self.numbers.consumer);
        self.link.open.consumers.push((consumer, queue));
        consumer
    }

    /// Starts a new consumer on a queue of the plan.
    pub(super) fn start_consumer(&mut self, consume: Consume) {
        let Consume { queue, presettled, .. } = consume;
        let consumer = self.new_consumer(Some(queue));
        self.note(Event::Consume(Consume { consumer, ..consume }));
        let queue = self.history.plan.queues[queue].name.clone();
        self.consume(&queue, &consumer.to_string(), presettled);
    }

    /// Starts a consumer on the queue of that name.
    pub(super) fn consume(&mut self, queue: &str, consumer_tag: &str, no_ack: bool) {
        let method = Method::BasicConsume {
            ticket: 0,
            queue,
            consumer_tag,
            no_local: false,
            no_ack,
            exclusive: false,
            no_wait: false,
            arguments: Table::default(),
        };
        self.link.ask(&method, Asked::Done);
    }

    /// Records a delivery to a consumer on a queue, or to basic.get; returns it unless no producer made
    /// the message.
    pub(super) fn note_delivery(&mut self, message: &Message) -> Option<Unsettled> {
        let consumers = &self.link.open.consumers;
        let found = match &message.way {
            Way::Delivered { consumer } => {
                consumers.iter().find(|(number, _)| consumer.parse() == Ok(*number))
            }
            _ => consumers.last(),
        };
        let Some(&(consumer, Some(queue))) = found else {
            self.note_breach(format!("{:?} for a consumer that there is not", message.way));
            return None;
        };
        let &Message { tag, id, redelivered, bytes, requeues, .. } = message;
        let delivery = Delivery { consumer, queue, message: id, redelivered, bytes, requeues };
        self.note(Event::Deliver(delivery));
        id.map(|message| Unsettled { tag, consumer, queue, message })
    }

    /// Settles one delivery.
    pub(super) fn settle(
        &mut self,
        unsettled: Unsettled,
        outcome: Outcome,
        transaction: Option<u32>,
    ) {
        let (delivery_tag, multiple) = (unsettled.tag, false);
        self.link.send(&match outcome {
            Outcome::Accept => Method::BasicAck { delivery_tag, multiple },
            Outcome::Requeue | Outcome::Release => {
                Method::BasicNack { delivery_tag, multiple, requeue: true }
            }
            Outcome::Discard => Method::BasicReject { delivery_tag, requeue: false },
        });
        self.note_settle(unsettled, outcome, transaction);
    }

    pub(super) fn note_settle(
        &mut self,
        unsettled: Unsettled,
        outcome: Outcome,
        transaction: Option<u32>,
    ) {
        let Unsettled { consumer, queue, message, .. } = unsettled;
        self.note(Event::Settle { consumer, queue, message, outcome, transaction });
    }
}

/// The property `delivery-mode`.
pub(super) fn delivery_mode(persistent: bool) -> u8 {
    if persistent { 2 } else { 1 }
}

//! What a connection asks the engine for, and what it keeps until the answer comes.

use super::fault::Fault;
use super::subscription::Durable;
use angarium_engine::{Binding, Consume, QueueOptions, Request, Settle};

/// The channel of publishes, and of all requests that are no subscription's.
pub(super) const MAIN: u16 = 0;

/// Bytes of a receipt: many may wait.
const RECEIPT_BYTES_MAX: usize = 1_024;

/// Refuses a receipt that is too long.
#[inline]
pub(super) fn check_receipt(receipt: Option<&str>) -> Result<(), Fault> {
    if receipt.is_none_or(|receipt| receipt.len() <= RECEIPT_BYTES_MAX) {
        return Ok(());
    }
    let text = format!("the receipt is longer than {RECEIPT_BYTES_MAX} bytes: take a shorter one");
    Err(Fault::new("Malformed frame", text))
}

/// What an awaited answer of the engine is for.
#[derive(Debug)]
pub(super) enum Asked {
    /// A message's queue, which is there then: the message is presented again.
    Queue(Box<Declared>),
    Subscribe(Box<Subscribing>),
    Unsubscribe(Unsubscribing),
    Begin(Beginning),
    End(Ending),
    /// A transaction for an acknowledgement with a receipt.
    Acknowledge(Box<Acknowledging>),
}

/// Whether a frame was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Done,
    /// It is presented again when the connection waits no more.
    Again,
}

/// A subscription that begins.
#[derive(Debug)]
pub(super) struct Subscribing {
    pub(super) channel: u16,
    pub(super) receipt: Option<Box<str>>,
    pub(super) step: Step,
    /// What its queue is made with if it is not there.
    pub(super) missing: Option<QueueOptions>,
    pub(super) binding: Option<Binding>,
    pub(super) consume: Consume,
    /// The connection's own name for the queue.
    pub(super) temporary: Option<Box<str>>,
}

/// What was asked for last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its queue, which may not be there.
    Find,
    Declare,
    Bind,
    Consume,
}

/// A subscription that ends.
#[derive(Debug)]
pub(super) struct Unsubscribing {
    pub(super) receipt: Option<Box<str>>,
    /// The channel whose consumer is being cancelled; `None`: what was durable is being deleted.
    pub(super) channel: Option<u16>,
    pub(super) deleted: Option<Durable>,
}

/// A transaction that begins.
#[derive(Debug)]
pub(super) struct Beginning {
    pub(super) name: Box<str>,
    pub(super) receipt: Option<Box<str>>,
}

/// A transaction that ends.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) receipts: Vec<Box<str>>,
    pub(super) receipt: Option<Box<str>>,
    pub(super) commits: bool,
}

/// An acknowledgement with a receipt, which comes once the acknowledgement is flushed. It is carried out by
/// transactions of its own: one of many messages by several.
#[derive(Debug)]
pub(super) struct Acknowledging {
    pub(super) channel: u16,
    pub(super) settle: Settle,
    pub(super) receipt: Box<str>,
    /// The part of it that comes next, or is being committed.
    pub(super) part: Settle,
    pub(super) has_begun: bool,
}

/// A queue that was declared for a message.
#[derive(Debug, PartialEq)]
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) options: QueueOptions,
}

impl Declared {
    pub(super) fn request(&self) -> Request {
        let Declared { name, options } = self;
        Request::DeclareQueue { name: name.clone(), options: Some(options.clone()) }
    }
}

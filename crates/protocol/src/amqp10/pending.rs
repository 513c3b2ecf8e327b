//! What answers of the engine are for.

use super::management::Call;

/// What an answer of the engine is for.
#[derive(Debug)]
pub(super) enum Pending {
    /// Nothing.
    Nothing,
    /// A link that is being attached.
    Attach { handle: u32, step: Step },
    /// A link that is attached begins to consume.
    Consume { handle: u32 },
    /// A link that the peer has detached; whether it closes it.
    Detach { handle: u32, closed: bool },
    /// A transaction that begins: the delivery that asked for it.
    Declare(Asked),
    /// A transaction that ends.
    Discharge(Asked),
    /// A request that came as a message.
    Call(Box<ServiceCall>),
}

/// How far attaching a link has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Whether its queue is there.
    Find,
    /// Its queue is made.
    Create,
    /// Whether its exchange is there.
    Exchange,
    /// A queue or topic is made that goes by itself.
    Temporary,
    /// Its queue is bound.
    Bind,
    /// Its named subscription is opened.
    Subscribe,
    /// Whether there is a subscription of its name.
    Recover,
    /// It begins to consume.
    Consume,
}

/// A request that waits for the engine.
#[derive(Debug)]
pub(super) struct ServiceCall {
    pub(super) call: Call,
    /// The link that it came by.
    pub(super) handle: u32,
    pub(super) reply_to: Option<String>,
}

/// A delivery to a coordinator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) handle: u32,
    pub(super) delivery_id: u32,
    /// Nobody waits for the outcome.
    pub(super) is_settled: bool,
}

//! Temporary queues and topics: what they are made with, and when they go.

use crate::QueueOptions;

/// When a temporary queue or topic goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Who it lives with.
    pub until: LifetimeEnd,
    /// A queue that has messages, unsettled ones included, stays until they are gone as well.
    pub drains: bool,
}

/// Who a temporary queue or topic lives with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeEnd {
    /// The holder that it was made for.
    CreatorLeaves,
    /// All holders, and the queue's consumers or the topic's bindings.
    Unused,
}

/// Creates a queue or topic that goes by itself. It does not survive a restart.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTemporary {
    /// Its name; empty: one that the engine makes up, and never again.
    pub name: String,
    /// What it is.
    pub kind: TemporaryKind,
    /// Only its connection may consume from the queue, or bind to the topic; everybody may send to it. It
    /// goes with the connection.
    pub exclusive: bool,
    /// The first holder, as in [`crate::Request::Hold`]: its creator.
    pub holder: String,
    /// When it goes.
    pub lifetime: Lifetime,
}

/// What is temporary.
#[derive(Clone, Debug, PartialEq)]
pub enum TemporaryKind {
    /// A queue with these options, of which `durable`, `exclusive` and `auto_delete` are ignored.
    Queue(QueueOptions),
    /// An exchange that leads every message to every binding.
    Topic,
}

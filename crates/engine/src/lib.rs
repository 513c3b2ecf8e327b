//! The rules of messaging: routing, queues, subscriptions, credit, transactions, expiry.
//!
//! [`Engine`] is one deterministic state machine. It takes requests and returns what must happen
//! by calling an [`Effects`] value in order. Time is an argument, randomness a seeded argument.
//!
//! Knows nothing about protocols, sockets, clocks, threads or files: where a record is stored is a
//! [`Position`] the host gave out, how properties are encoded is a [`Format`] tag.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod access;
mod away;
mod body;
mod codec;
mod control;
mod counters;
mod delay;
mod direct;
mod effect;
mod elsewhere;
mod engine;
#[cfg(test)]
mod invariants;
pub mod limits;
mod message;
mod names;
mod publish;
mod queue;
mod quota;
mod random;
mod record;
mod recovery;
mod refusal;
mod relocate;
mod request;
mod routing;
mod session;
mod slab;
mod snapshot;
mod step;
mod subscription;
mod table;
mod taking;
mod time;
mod timers;
mod topology;
mod transit;
mod value;
mod vhost;
mod view;

#[cfg(test)]
mod tests;

pub use access::overlap as subjects_overlap;
pub use away::Call;
pub use body::{GatheredBody, share};
pub use bytes::Bytes;
pub use counters::Counters;
pub use direct::{
    Burst, BurstRoom, Deletion, Forward, QUEUE_SUBJECT_PREFIX, Row, SUBJECT_EXCHANGE, Streak,
    is_answer_address,
};
pub use effect::{Confirm, Delivery, Effects, Heard, Load, LoadId, Loaded, Lost, Returned};
pub use elsewhere::{drop_elsewhere, drop_elsewhere_with};
pub use engine::{Engine, Options, StorageState};
pub use message::{Annotations, Content, Death, DeathReason, Format, MessageView, ReadHeaders};
pub use names::{ConnectionId, Position, SessionId, ShardId, Shards};
pub use publish::INBOX_PREFIX;
pub use queue::QueueCounters;
pub use quota::{Bound, Laggard, Quota};
pub use refusal::{Refusal, RefusalKind};
pub use request::{
    AlternateTarget, Arguments, Binding, BindingTarget, Credit, Durability, Emit,
    ExchangeDeclaration, ExchangeKind, ExchangeOptions, Listen, Outcome, Overflow, Publish,
    QueueDeclaration, QueueOptions, Reached, Reply, Request, Settle, SubjectPermissions,
    SubjectRules, Subscribe,
};
pub use time::Time;
pub use transit::is_body_apart;
pub use value::Value;
pub use view::{
    BindingListing, ExchangeListing, PermissionListing, QueueListing, UserListing, VhostListing,
};

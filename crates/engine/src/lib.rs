//! The rules of messaging: routing, queues, consumers, credit, transactions, expiry.
//!
//! [`Engine`] is one deterministic state machine. It takes requests and returns what must happen
//! by calling an [`Effects`] value in order. Time is an argument, randomness a seeded argument.
//!
//! Independent of protocols, sockets, clocks, threads and files: a record is stored at a
//! [`Position`] that the host gives out, properties are encoded as a [`Format`] tag says.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod access;
mod channel;
mod consumer;
mod control;
mod engine;
mod foundation;
mod interface;
mod kept;
mod lifetime;
mod named_subscription;
mod policy;
mod publish;
mod pubsub;
mod queue;
mod retained;
mod routing;
pub mod selector;
mod session;
mod shard;
mod storage;

#[cfg(test)]
mod tests;

pub use crate::access::quota::{Bound, Quota, SlowConsumerPolicy};
pub use crate::foundation::deferred_drop::{drop_elsewhere, drop_elsewhere_with};
pub use crate::foundation::shared_body::{GatheredBody, share};
pub use crate::interface::binding::{Binding, BindingTarget};
pub use crate::interface::client_listings::{ChannelListing, ConsumerListing};
pub use crate::interface::conventions::{
    Conventions, MessageGroup, Names, PredeclaredExchange, ReadHeaders, ReadProperty, Selectable,
};
pub use crate::interface::counters::{Counters, DiscardReason, Discards, GivenUp, HandedOut};
pub use crate::interface::declaration::{
    Arguments, Durability, ExchangeKind, ExchangeOptions, Overflow, QueueOptions, QueueType,
};
pub use crate::interface::effects::{
    Call, Confirm, Delivery, DirectMessage, Effects, GetAnswer, Hints, Load, LoadId, Loaded, Lost,
    PublishRefusal, SendOutcome, SharedRecord,
};
pub use crate::interface::facts::{
    ConsumerFacts, ConsumerHold, FoundMessage, MessageContent, MessageFacts, OutFacts,
    PublishFacts, QueueFacts, ReachedQueue,
};
pub use crate::interface::ids::{ChannelId, ConnectionId, Position, ShardId, Shards};
pub use crate::interface::lifetime::{CreateTemporary, Lifetime, LifetimeEnd, TemporaryKind};
pub use crate::interface::limits;
pub use crate::interface::listings::{
    BindingListing, ExchangeListing, QueueListing, SessionListing, UserListing, VhostListing,
};
pub use crate::interface::memory::{HeldMemory, MemoryKind};
pub use crate::interface::message::{
    Annotations, Content, Death, DeathReason, Format, MessageView, is_body_apart,
};
pub use crate::interface::name::{fitting_name, fnv_1a};
pub use crate::interface::named_subscription::{
    NamedSubscriptionListing, OpenSubscription, SubscriptionInfo,
};
pub use crate::interface::options::{
    EXCHANGE_OPTIONS, MILLIS_MAX, OptionDefinition, OptionType, QUEUE_OPTIONS,
};
pub use crate::interface::owned_message::OwnedMessage;
pub use crate::interface::page_search::PageSearch;
pub use crate::interface::policy::{
    AppliesTo, Followed, POLICY_OPTIONS, Policy, PolicyKind, PolicyListing, PolicyOption,
    Precedence,
};
pub use crate::interface::refusal::{Declared, DifferentOption, Mismatch, Refusal, RefusalKind};
pub use crate::interface::request::{
    CancelReason, Consume, Credit, Emit, Grant, Outcome, Publish, QueueDescription, Reached, Reply,
    Request, Return, Settle, Subscribe, SubscriptionListing,
};
pub use crate::interface::retained::{Replay, Retain};
pub use crate::interface::rights::{
    ExchangeRules, PermissionListing, Responses, SubjectPermissions, SubjectRules,
};
pub use crate::interface::session::{
    ChangeSession, ClaimSession, ClaimedSession, JoinShared, SessionExpiry, SessionLoss, Will,
};
pub use crate::interface::storage_state::StorageState;
pub use crate::interface::time::Time;
pub use crate::interface::transaction_id::TransactionId;
pub use crate::interface::value::Value;
pub use crate::pubsub::{BatchRoom, CachedRoute, Forward, QUEUE_SUBJECT_PREFIX};
pub use access::overlap as subjects_overlap;
pub use access::revocation::Revocation;
pub use bytes::Bytes;
pub use engine::{Engine, Options};
pub use queue::QueueCounters;
pub use storage::rebuild::Rebuild;

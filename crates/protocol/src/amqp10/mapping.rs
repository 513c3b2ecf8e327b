//! Where AMQP 1.0's words meet the engine's: outcomes, refusals, and what links ask for.

use super::codec::{
    Attach, Condition, LifetimePolicy, Malformed, Map, Outcome as OutcomeState, Union, Value,
};
use super::link::{Source, consumer_of};
use angarium_engine::{
    Consume, CreateTemporary, Lifetime, LifetimeEnd, Outcome, QueueOptions, RefusalKind, Return,
    TemporaryKind,
};

/// The highest priority of messages in queues that are made for JMS clients.
const JMS_PRIORITY_MAX: u8 = 9;
/// The property of a dynamic node that says when it goes.
const LIFETIME_POLICY: &str = "lifetime-policy";
/// The property of an attach frame that ranks consumers.
const PRIORITY_PROPERTY: &str = "rabbitmq:priority";

/// The condition of a refusal.
pub(super) fn condition(kind: RefusalKind) -> Condition {
    match kind {
        RefusalKind::NotFound | RefusalKind::Unroutable => Condition::NotFound,
        RefusalKind::PreconditionFailed => Condition::PreconditionFailed,
        RefusalKind::AccessRefused => Condition::UnauthorizedAccess,
        RefusalKind::ResourceLocked => Condition::ResourceLocked,
        RefusalKind::TakenOver => Condition::LinkStolen,
        RefusalKind::NotAllowed => Condition::NotAllowed,
        RefusalKind::LimitExceeded | RefusalKind::MemoryShort | RefusalKind::StorageUnavailable => {
            Condition::ResourceLimitExceeded
        }
        RefusalKind::NotImplemented => Condition::NotImplemented,
        RefusalKind::InDoubt | RefusalKind::Internal => Condition::InternalError,
    }
}

/// What an outcome is to the engine.
pub(super) fn outcome(state: OutcomeState<'_>) -> Outcome {
    match state {
        OutcomeState::Accepted(_) => Outcome::Accept,
        OutcomeState::Rejected(_) => Outcome::Discard,
        OutcomeState::Released(_) => Outcome::RELEASE,
        OutcomeState::Modified(it) => {
            Outcome::Return(Return { failed: it.delivery_failed, elsewhere: it.undeliverable_here })
        }
    }
}

/// What begins to consume for a link.
pub(super) fn consume(handle: u32, source: &Source) -> Consume {
    Consume {
        queue: source.queue.clone(),
        name: consumer_of(handle),
        browses: source.browses,
        presettled: source.is_presettled,
        priority: source.priority,
        is_granted: true,
        filter: source.filter.clone(),
        on_close: Outcome::RELEASE,
        on_loss: source.default_outcome.unwrap_or(Outcome::REQUEUE),
        ..Consume::default()
    }
}

/// What a queue is made with that an address names; `for_jms`: it says that it is one of JMS.
pub(super) fn named_queue(for_jms: bool) -> QueueOptions {
    let priority_max = for_jms.then_some(JMS_PRIORITY_MAX);
    QueueOptions { durable: true, priority_max, message_groups: for_jms, ..QueueOptions::default() }
}

/// What a queue is made with that nobody has named.
pub(super) fn own_queue() -> QueueOptions {
    QueueOptions { priority_max: Some(JMS_PRIORITY_MAX), ..QueueOptions::default() }
}

/// What makes a queue or topic that goes by itself. One that goes with its creator is the connection's alone
/// to consume from.
pub(super) fn temporary(
    holder: String,
    kind: TemporaryKind,
    policy: Option<LifetimePolicy>,
) -> CreateTemporary {
    let until = match policy {
        Some(LifetimePolicy::DeleteOnNoLinks(_) | LifetimePolicy::DeleteOnNoLinksOrMessages(_)) => {
            LifetimeEnd::Unused
        }
        _ => LifetimeEnd::CreatorLeaves,
    };
    let drains = matches!(
        policy,
        Some(LifetimePolicy::DeleteOnNoMessages(_) | LifetimePolicy::DeleteOnNoLinksOrMessages(_))
    );
    CreateTemporary {
        name: String::new(),
        kind,
        exclusive: until == LifetimeEnd::CreatorLeaves && !drains,
        holder,
        lifetime: Lifetime { until, drains },
    }
}

/// When a dynamic node goes, as its properties say.
pub(super) fn lifetime_policy(properties: Map<'_>) -> Result<Option<LifetimePolicy>, Malformed> {
    match properties.get(LIFETIME_POLICY) {
        Some(Value::Described(described)) => LifetimePolicy::from_described(described).map(Some),
        _ => Ok(None),
    }
}

/// The rank of a consumer, as its attach says.
pub(super) fn priority(attach: &Attach<'_>) -> i32 {
    match attach.properties.and_then(|properties| properties.get(PRIORITY_PROPERTY)) {
        Some(Value::Int(priority)) => priority,
        Some(Value::Long(priority)) => i32::try_from(priority).unwrap_or(0),
        _ => 0,
    }
}

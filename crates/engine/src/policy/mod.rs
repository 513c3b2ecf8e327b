//! The policies of a virtual host, and what queues and exchanges make of them.
//!
//! Nothing here knows messages: `review` has what is there follow what has changed.

mod definition;
mod queues;
mod review;
pub(crate) mod reviews;

use crate::access::Pattern;
use crate::interface::limits::check_name;
use crate::interface::refusal::refuse;
use crate::{AppliesTo, Arguments, Followed, Policy, PolicyKind, QueueOptions, QueueType, Refusal};
use std::cmp::Reverse;
use std::sync::Arc;

/// Policies of one kind in a virtual host.
const POLICIES_MAX: usize = 1_000;

/// What may follow a policy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Follower<'a> {
    /// A queue.
    Queue {
        /// Its name.
        name: &'a str,
        /// Its type.
        kind: QueueType,
    },
    /// An exchange.
    Exchange {
        /// Its name.
        name: &'a str,
    },
}

impl Follower<'_> {
    fn name(&self) -> &str {
        match self {
            Follower::Queue { name, .. } | Follower::Exchange { name } => name,
        }
    }

    fn is_meant_by(&self, applies_to: AppliesTo) -> bool {
        match (self, applies_to) {
            (_, AppliesTo::All)
            | (Follower::Queue { .. }, AppliesTo::Queues)
            | (Follower::Exchange { .. }, AppliesTo::Exchanges) => true,
            (Follower::Queue { kind, .. }, AppliesTo::ClassicQueues) => *kind == QueueType::Classic,
            (Follower::Queue { kind, .. }, AppliesTo::QuorumQueues) => *kind == QueueType::Quorum,
            _ => false,
        }
    }
}

/// The policies that something follows, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FollowedNames {
    policy: Option<Arc<str>>,
    operator_policy: Option<Arc<str>>,
}

impl FollowedNames {
    pub(crate) fn shown(&self) -> Followed<'_> {
        Followed {
            policy: self.policy.as_deref(),
            operator_policy: self.operator_policy.as_deref(),
        }
    }
}

/// What a queue follows, and what it was declared with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FollowedByQueue {
    pub(crate) names: FollowedNames,
    pub(crate) declared: QueueOptions,
}

/// A policy, ready to be asked.
#[derive(Clone, Debug)]
struct Ready {
    name: Arc<str>,
    pattern: Pattern,
    policy: Policy,
}

impl Ready {
    fn matches(&self, follower: Follower<'_>) -> bool {
        follower.is_meant_by(self.policy.applies_to) && self.pattern.matches(follower.name())
    }
}

impl Policy {
    /// Refuses options that policies of that kind cannot set, values they cannot have, and a pattern that
    /// cannot be used.
    pub fn check(&self, kind: PolicyKind) -> Result<(), Refusal> {
        self.ready(kind).map(drop)
    }

    fn ready(&self, kind: PolicyKind) -> Result<Pattern, Refusal> {
        definition::check(kind, self)?;
        Pattern::new("policy", if self.pattern.is_empty() { ".*" } else { &self.pattern })
    }
}

/// All policies of a virtual host; of each kind the one to be followed first comes first.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    ordinary: Vec<Ready>,
    operator: Vec<Ready>,
}

impl Policies {
    fn of(&mut self, kind: PolicyKind) -> &mut Vec<Ready> {
        match kind {
            PolicyKind::Ordinary => &mut self.ordinary,
            PolicyKind::Operator => &mut self.operator,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ordinary.len() + self.operator.len()
    }

    /// Sets a policy, in place of one of that name. Refused: options that policies of its kind cannot set,
    /// values they cannot have, a pattern that cannot be used, too many policies.
    pub(crate) fn set(
        &mut self,
        kind: PolicyKind,
        name: &str,
        policy: &Policy,
    ) -> Result<(), Refusal> {
        check_name("a policy", name)?;
        let pattern = policy.ready(kind)?;
        let all = self.of(kind);
        let others = all.iter().filter(|other| *other.name != *name).count();
        if others >= POLICIES_MAX {
            refuse!(LimitExceeded, "more than {POLICIES_MAX} policies in a virtual host");
        }
        all.retain(|other| *other.name != *name);
        all.push(Ready { name: name.into(), pattern, policy: policy.clone() });
        all.sort_by(|one, other| {
            let order = |it: &Ready| (Reverse(it.policy.priority), Arc::clone(&it.name));
            order(one).cmp(&order(other))
        });
        Ok(())
    }

    /// Takes a policy away; false where there was none.
    pub(crate) fn clear(&mut self, kind: PolicyKind, name: &str) -> bool {
        let all = self.of(kind);
        let before = all.len();
        all.retain(|other| *other.name != *name);
        all.len() < before
    }

    /// All of them with kind and name, in the order in which they are followed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PolicyKind, &str, &Policy)> + Clone {
        let ordinary = self.ordinary.iter().map(|it| (PolicyKind::Ordinary, it));
        let operator = self.operator.iter().map(|it| (PolicyKind::Operator, it));
        ordinary.chain(operator).map(|(kind, it)| (kind, &*it.name, &it.policy))
    }

    /// What a follower follows, and the values of options that follow from it.
    pub(super) fn followed(&self, follower: Follower<'_>) -> Option<(FollowedNames, Arguments)> {
        let policy = self.ordinary.iter().find(|it| it.matches(follower));
        let operator = self.operator.iter().find(|it| it.matches(follower));
        if policy.is_none() && operator.is_none() {
            return None;
        }
        let of = |it: Option<&Ready>| it.map(|it| it.policy.definition.clone());
        let definition = definition::bounded(of(policy).unwrap_or_default(), of(operator));
        let name = |it: Option<&Ready>| it.map(|it| Arc::clone(&it.name));
        let names = FollowedNames { policy: name(policy), operator_policy: name(operator) };
        Some((names, definition))
    }

    /// The values of options that follow from policies of those names.
    pub(crate) fn definition_of(&self, followed: Followed<'_>) -> Arguments {
        let of = |all: &[Ready], name: Option<&str>| {
            let named = all.iter().find(|it| Some(&*it.name) == name);
            named.map(|it| it.policy.definition.clone())
        };
        let policy = of(&self.ordinary, followed.policy).unwrap_or_default();
        definition::bounded(policy, of(&self.operator, followed.operator_policy))
    }

    /// What an exchange follows, and the alternate that follows from it.
    pub(crate) fn lead_exchange(&self, name: &str) -> Option<(FollowedNames, Option<String>)> {
        if self.is_empty() || name.is_empty() {
            return None;
        }
        let (names, definition) = self.followed(Follower::Exchange { name })?;
        let alternate = definition.get("alternate-exchange").and_then(|it| it.as_text());
        Some((names, alternate.map(str::to_owned)))
    }
}

#[cfg(test)]
mod tests;

//! Policies: options for the queues and exchanges whose names a pattern matches.

use crate::interface::options::{EXCHANGE_OPTIONS, OptionType, QUEUE_OPTIONS, named};
use crate::{Arguments, Value};

/// Whose policy it is. A queue or exchange follows at most one of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyKind {
    /// One that says what is useful.
    Ordinary,
    /// One that bounds what others may say.
    Operator,
}

/// What a policy is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppliesTo {
    /// Queues and exchanges.
    #[default]
    All,
    /// Queues.
    Queues,
    /// Exchanges.
    Exchanges,
    /// Queues of that type.
    ClassicQueues,
    /// Queues of that type.
    QuorumQueues,
}

named!(AppliesTo: All = "all", Queues = "queues", Exchanges = "exchanges",
    ClassicQueues = "classic-queues", QuorumQueues = "quorum-queues");

/// A policy: options for what is there, and what is declared later, under names that its pattern matches.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// A regular expression over names.
    pub pattern: String,
    /// What it is about.
    pub applies_to: AppliesTo,
    /// Of several that match, the one with the highest is followed.
    pub priority: i64,
    /// Values of options by name: those of [`POLICY_OPTIONS`].
    pub definition: Arguments,
}

/// A policy that there is.
#[derive(Clone, Copy, Debug)]
pub struct PolicyListing<'a> {
    /// Its virtual host.
    pub vhost: &'a str,
    /// Whose it is.
    pub kind: PolicyKind,
    /// Its name, which it has to itself among those of its kind.
    pub name: &'a str,
    /// What it says.
    pub policy: &'a Policy,
}

/// The policies that a queue or exchange follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed<'a> {
    /// The ordinary one.
    pub policy: Option<&'a str>,
    /// That of the operator.
    pub operator_policy: Option<&'a str>,
}

/// Which value holds where both the declaration and a policy have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// The smaller.
    Smaller,
    /// That of the declaration.
    Declared,
}

/// An option that policies can set.
#[derive(Clone, Copy, Debug)]
pub struct PolicyOption {
    /// Its name, as in [`QUEUE_OPTIONS`] or [`EXCHANGE_OPTIONS`].
    pub name: &'static str,
    /// Which value holds.
    pub precedence: Precedence,
    /// Whether an operator's policy may set it, too. Its value then counts as the other policy's would in a
    /// declaration, but that it wins where the smaller of both means nothing.
    pub by_operators: bool,
}

const fn option(name: &'static str, precedence: Precedence, by_operators: bool) -> PolicyOption {
    PolicyOption { name, precedence, by_operators }
}

/// The options that policies can set.
pub const POLICY_OPTIONS: &[PolicyOption] = &[
    option("alternate-exchange", Precedence::Declared, false),
    option("consumer-timeout", Precedence::Smaller, true),
    option("dead-letter-exchange", Precedence::Declared, false),
    option("dead-letter-routing-key", Precedence::Declared, false),
    option("delivery-limit", Precedence::Smaller, true),
    option("expires", Precedence::Smaller, true),
    option("max-length", Precedence::Smaller, true),
    option("max-length-bytes", Precedence::Smaller, true),
    option("message-ttl", Precedence::Smaller, true),
    option("overflow", Precedence::Declared, true),
];

impl PolicyOption {
    /// The option of that name, if policies can set it.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static PolicyOption> {
        POLICY_OPTIONS.iter().find(|option| option.name == name)
    }

    /// What it does, and which values it can have.
    #[must_use]
    pub fn described(&self) -> Option<(&'static str, OptionType)> {
        let of_queue = QUEUE_OPTIONS.iter().find(|it| it.name == self.name);
        let of_exchange = EXCHANGE_OPTIONS.iter().find(|it| it.name == self.name);
        let of_queue = of_queue.map(|it| (it.what, it.kind));
        of_queue.or(of_exchange.map(|it| (it.what, it.kind)))
    }

    /// The value that holds of a policy's and an operator's.
    pub(crate) fn bounded(&self, policy: &Value, operator: &Value) -> Value {
        match self.precedence {
            Precedence::Smaller => smaller(policy, operator).clone(),
            Precedence::Declared => operator.clone(),
        }
    }

    /// The value that holds of a declaration's and a policy's.
    pub(crate) fn with_declared(&self, declared: Option<Value>, policy: &Value) -> Value {
        match (declared, self.precedence) {
            (None, _) => policy.clone(),
            (Some(declared), Precedence::Smaller) => smaller(&declared, policy).clone(),
            (Some(declared), Precedence::Declared) => declared,
        }
    }
}

/// The smaller of two limits; a negative one is none.
fn smaller<'a>(one: &'a Value, other: &'a Value) -> &'a Value {
    let limit = |value: &Value| value.as_int().filter(|it| *it >= 0).unwrap_or(i64::MAX);
    if limit(other) < limit(one) { other } else { one }
}

//! What users may do, as requests set it and listings show it.

use std::time::Duration;

/// What a user may do in a virtual host: patterns over names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermissionListing<'a> {
    /// The user.
    pub user: &'a str,
    /// The virtual host.
    pub vhost: &'a str,
    /// What it may create and delete.
    pub configure: &'a str,
    /// What it may put messages into.
    pub write: &'a str,
    /// What it may take messages out of.
    pub read: &'a str,
}

/// Which subjects are allowed: those that `allow` matches, or all where it is empty, but those that
/// `deny` matches. Patterns are written as in [`Subscribe::subject`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubjectRules {
    /// Subjects that are allowed; none: all.
    pub allow: Vec<String>,
    /// Subjects that are not, although they are allowed.
    pub deny: Vec<String>,
}

/// What a user may do with subjects, beside the rights that permissions give.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubjectPermissions {
    /// Where it may send messages.
    pub publish: SubjectRules,
    /// What it may subscribe to.
    pub subscribe: SubjectRules,
    /// Whether it may answer what it is sent, wherever it may send messages otherwise.
    pub responses: Option<Responses>,
}

/// What a user may do with the routing keys of an exchange, beside the rights that permissions give.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangeRules {
    /// Keys with which its messages may come there.
    pub publish: SubjectRules,
    /// Keys that it may bind with.
    pub subscribe: SubjectRules,
}

/// The right to answer messages at their reply subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Responses {
    /// Answers to each; 0: any number.
    pub messages: u32,
    /// How long they may take; none: any time.
    pub within: Duration,
}

//! Errors in the words that NATS clients know.

use super::codec::Malformed;
use super::mapping;
use angarium_engine::Subscribe;

/// Wrong credentials, or none.
pub const AUTHORIZATION_VIOLATION: &str = "Authorization Violation";
/// It did not say in time who it is.
pub const AUTHENTICATION_TIMEOUT: &str = "Authentication Timeout";
/// It has not answered our pings.
pub const STALE_CONNECTION: &str = "Stale Connection";
/// It has to begin TLS first.
pub const TLS_REQUIRED: &str = "Secure Connection - TLS Required";
/// `no_responders` without `headers`, in which the answer would come.
pub const NO_RESPONDERS_NEEDS_HEADERS: &str = "no responders requires headers support";
/// A protocol version that does not exist.
pub const BAD_PROTOCOL: &str = "invalid client protocol";
/// A pedantic client's subject that nothing can be published to.
pub const INVALID_PUBLISH_SUBJECT: &str = "Invalid Publish Subject";
/// A subscription to what is no subject.
pub const INVALID_SUBJECT: &str = "Invalid Subject";
/// A connection beyond what its user may have.
pub const TOO_MANY_CONNECTIONS: &str = "maximum connections exceeded";
/// A subscription beyond the limit.
pub const TOO_MANY_SUBSCRIPTIONS: &str = "maximum subscriptions exceeded";

/// The error for bytes that are no operation. Each ends the connection.
#[must_use]
pub fn text(malformed: Malformed) -> &'static str {
    match malformed {
        Malformed::UnknownOperation => "Unknown Protocol Operation",
        Malformed::Arguments => "Parser Error",
        Malformed::PayloadTooLarge => "Maximum Payload Violation",
        Malformed::LineTooLong => "maximum control line exceeded",
        Malformed::Headers => "message headers not supported",
    }
}

/// The error for a publish without permission.
pub(super) fn publish_violation(subject: &str) -> String {
    format!("Permissions Violation for Publish to {subject:?}")
}

/// The error for a subscription without permission. Libraries find the subscription by the subject, so it is
/// the one that the client named.
pub(super) fn subscription_violation(subscribe: &Subscribe<'_>) -> String {
    let subject = mapping::asked_subject(subscribe);
    let text = format!("Permissions Violation for Subscription to {subject:?}");
    match subscribe.group {
        Some(group) => format!("{text} using queue {group:?}"),
        None => text,
    }
}

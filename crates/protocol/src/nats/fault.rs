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
/// A connection beyond those that may begin in a second.
pub const TOO_FAST_CONNECTIONS: &str = "Connection throttling is active. Please try again later.";
/// A subscription beyond the limit.
pub const TOO_MANY_SUBSCRIPTIONS: &str = "maximum subscriptions exceeded";

/// More memory than the connection or its user may hold.
pub const TOO_MUCH_MEMORY: &str = "maximum memory exceeded";

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
    format!("Permissions Violation for Publish to {}", quoted(subject))
}

/// The error for a subscription without permission. Libraries find the subscription by the subject, so it is
/// the one that the client named.
pub(super) fn subscription_violation(subscribe: &Subscribe<'_>) -> String {
    let subject = mapping::asked_subject(subscribe);
    let text = format!("Permissions Violation for Subscription to {}", quoted(&subject));
    match subscribe.group {
        Some(group) => format!("{text} using queue {}", quoted(group)),
        None => text,
    }
}

/// A text in quotes as nats-server writes it, which is how Go does (`%q`); libraries read it back.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        let code = u32::from(letter);
        let named = "\x07a\x08b\x0cf\nn\rr\tt\x0bv\"\"\\\\".as_bytes().chunks_exact(2);
        let name = named.clone().find(|pair| u32::from(pair[0]) == code).map(|pair| pair[1]);
        match name {
            Some(name) => quoted.extend(['\\', char::from(name)]),
            None if letter < ' ' || letter == '\x7f' => quoted += &format!("\\x{code:02x}"),
            None if letter == '\'' || letter.escape_debug().len() == 1 => quoted.push(letter),
            None if code < 0x1_0000 => quoted += &format!("\\u{code:04x}"),
            None => quoted += &format!("\\U{code:08x}"),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn texts_are_quoted_as_go_does() {
        for (text, expected) in [
            ("a.b", r#""a.b""#),
            ("it's", r#""it's""#),
            ("say \"x\" \\ y", r#""say \"x\" \\ y""#),
            ("\0\x01\x07\x08\t\n\x0b\x0c\r\x1b\x7f", r#""\x00\x01\a\b\t\n\v\f\r\x1b\x7f""#),
            ("ünï", r#""ünï""#),
            ("\u{200b}\u{e000}", r#""\u200b\ue000""#),
            ("\u{10fffe}", r#""\U0010fffe""#),
        ] {
            assert_eq!(quoted(text), expected, "{text:?}");
        }
    }
}

//! Subjects: tokens parted by dots. What patterns of them match is the engine's to know.

/// Whether messages can be published to it: it has no empty token. Tokens that are wildcards stand for
/// themselves there, and only subscriptions with wildcards match them.
#[inline]
pub(super) fn is_subject(subject: &[u8]) -> bool {
    subject.split(|&byte| byte == b'.').all(|token| !token.is_empty())
}

/// Whether it can be subscribed to and published to alike: no empty token, none that is a wildcard.
#[inline]
pub(super) fn is_literal(subject: &[u8]) -> bool {
    subject.split(|&byte| byte == b'.').all(|token| !matches!(token, [] | [b'*' | b'>']))
}

#[cfg(test)]
mod tests {
    use super::is_literal;

    #[test]
    fn what_can_be_published_to() {
        for (subject, literal) in [
            ("a", true),
            ("orders.created.eu", true),
            ("$SYS.REQ", true),
            ("a*.b>c.**", true),
            ("*", false),
            ("a.*.b", false),
            ("a.>", false),
            (">", false),
            (">.a", false),
            ("a.>.b", false),
            ("", false),
            (".a", false),
            ("a.", false),
            ("a..b", false),
        ] {
            assert_eq!(is_literal(subject.as_bytes()), literal, "{subject}");
        }
    }
}

//! Subjects: tokens parted by dots; in subscriptions `*` is any one token and a last `>` one or more.

/// Whether messages can be published to it: no empty token, none that is a wildcard.
#[inline]
#[must_use]
pub fn is_literal(subject: &[u8]) -> bool {
    tokens(subject).all(|token| !matches!(token, [] | [b'*' | b'>']))
}

/// Whether it can be subscribed to: no empty token, `>` only at the end.
#[must_use]
pub fn is_valid(subject: &[u8]) -> bool {
    let mut ended = false;
    tokens(subject).all(|token| {
        let is_right = !ended && !token.is_empty();
        ended = token == b">";
        is_right
    })
}

fn tokens(subject: &[u8]) -> impl Iterator<Item = &[u8]> {
    subject.split(|&byte| byte == b'.')
}

/// Whether a subject that messages are published to is one that a subscription takes.
#[must_use]
pub fn matches(subscription: &[u8], subject: &[u8]) -> bool {
    let mut tokens = tokens(subject);
    for wanted in self::tokens(subscription) {
        match (wanted, tokens.next()) {
            (b">", Some(_)) => return true,
            (b"*", Some(_)) => {}
            (wanted, Some(token)) if wanted == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_published_and_subscribed_to() {
        for (subject, literal, valid) in [
            ("a", true, true),
            ("orders.created.eu", true, true),
            ("$SYS.REQ", true, true),
            ("a*.b>c.**", true, true),
            ("*", false, true),
            ("a.*.b", false, true),
            ("a.>", false, true),
            (">", false, true),
            (">.a", false, false),
            ("a.>.b", false, false),
            ("", false, false),
            (".a", false, false),
            ("a.", false, false),
            ("a..b", false, false),
        ] {
            assert_eq!(is_literal(subject.as_bytes()), literal, "{subject}");
            assert_eq!(is_valid(subject.as_bytes()), valid, "{subject}");
        }
    }

    #[test]
    fn wildcards_match_tokens() {
        for (subscription, subject, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a.c", false),
            ("a.b", "a", false),
            ("a", "a.b", false),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.*", "a.b.c", false),
            ("*.b.*", "a.b.c", true),
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            (">", "a", true),
            ("a.*", "a.*", true),
        ] {
            let found = matches(subscription.as_bytes(), subject.as_bytes());
            assert_eq!(found, expected, "{subscription} {subject}");
        }
    }
}

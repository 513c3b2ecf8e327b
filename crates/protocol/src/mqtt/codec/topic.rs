//! Topic names and topic filters (5: 4.7), and shared subscriptions (5: 4.8.2).

use super::{Malformed, Reason, wire};

/// What a filter begins with that is of a shared subscription.
pub(crate) const SHARE_PREFIX: &str = "$share/";

/// Bytes as a topic name, which messages are published to: at least one character, and no wildcard.
#[inline]
pub fn name(bytes: &[u8]) -> Result<&str, Malformed> {
    let name = wire::text(bytes)?;
    let invalid = |text| Err(Malformed::new(Reason::TopicNameInvalid, text));
    if name.is_empty() {
        return invalid("a topic name is empty");
    }
    if bytes.iter().any(|byte| matches!(byte, b'+' | b'#')) {
        return invalid("a topic name has a wildcard in it");
    }
    Ok(name)
}

/// A topic filter, which is subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter<'a> {
    /// The name of the shared subscription, where it is one.
    pub share: Option<&'a str>,
    /// The filter itself.
    pub filter: &'a str,
}

impl<'a> Filter<'a> {
    /// Reads a filter as clients write it.
    pub fn read(text: &'a str) -> Result<Filter<'a>, Malformed> {
        let invalid = |text| Err(Malformed::new(Reason::TopicFilterInvalid, text));
        let Some(shared) = text.strip_prefix(SHARE_PREFIX) else {
            return check(text).map(|()| Filter { share: None, filter: text });
        };
        let Some((share, filter)) = shared.split_once('/') else {
            return invalid("a shared subscription has no filter: it is $share/NAME/FILTER");
        };
        if share.is_empty() || share.contains(['+', '#']) {
            return invalid("the name of a shared subscription is empty or has a wildcard in it");
        }
        check(filter)?;
        Ok(Filter { share: Some(share), filter })
    }

    /// Whether it matches a topic name.
    #[must_use]
    pub fn matches(&self, topic: &str) -> bool {
        matches(self.filter, topic)
    }
}

/// Refuses what is no filter: wildcards stand for whole levels, and `#` for all that follow.
fn check(filter: &str) -> Result<(), Malformed> {
    let invalid = |text| Err(Malformed::new(Reason::TopicFilterInvalid, text));
    if filter.is_empty() {
        return invalid("a topic filter is empty");
    }
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        match level {
            "#" if levels.peek().is_some() => return invalid("a filter has '#' before its end"),
            "#" | "+" => {}
            level if level.contains(['+', '#']) => {
                return invalid("a filter has a wildcard within a level");
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a filter, without the name of a shared subscription, matches a topic name. What begins with `$` is
/// not matched by a wildcard in front.
#[must_use]
pub fn matches(filter: &str, topic: &str) -> bool {
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut levels = topic.split('/');
    for expected in filter.split('/') {
        match (expected, levels.next()) {
            // The level above is matched, too.
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (expected, Some(level)) if expected == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_wildcards() {
        for (bytes, expected) in [
            (&b"a"[..], Ok("a")),
            (b"/", Ok("/")),
            (b"/a//b c/", Ok("/a//b c/")),
            (b"$SYS/x", Ok("$SYS/x")),
            (b"", Err(Reason::TopicNameInvalid)),
            (b"a/+", Err(Reason::TopicNameInvalid)),
            (b"a#", Err(Reason::TopicNameInvalid)),
            (b"a\0b", Err(Reason::MalformedPacket)),
            (b"a\xff", Err(Reason::MalformedPacket)),
            (b"\xed\xa0\x80", Err(Reason::MalformedPacket)),
        ] {
            assert_eq!(name(bytes).map_err(|it| it.reason), expected, "{bytes:?}");
        }
    }

    #[test]
    fn filters_have_wildcards_for_whole_levels() {
        for (text, expected) in [
            ("a/b", Some((None, "a/b"))),
            ("#", Some((None, "#"))),
            ("+", Some((None, "+"))),
            ("/+/#", Some((None, "/+/#"))),
            ("+/a/+", Some((None, "+/a/+"))),
            ("$share/g/a/#", Some((Some("g"), "a/#"))),
            ("$share/g//a", Some((Some("g"), "/a"))),
            ("$share", Some((None, "$share"))),
            ("$shared/x", Some((None, "$shared/x"))),
            ("", None),
            ("a#", None),
            ("a/#/b", None),
            ("##", None),
            ("a+", None),
            ("a/+b/c", None),
            ("$share/", None),
            ("$share/g", None),
            ("$share/g/", None),
            ("$share//a", None),
            ("$share/g+/a", None),
            ("$share/#/a", None),
            ("$share/g/a#", None),
        ] {
            let read = Filter::read(text).map(|filter| (filter.share, filter.filter));
            assert_eq!(read.ok(), expected, "{text}");
        }
    }

    #[test]
    fn filters_match_as_the_specification_says() {
        for (filter, topic, expected) in [
            ("sport/tennis/player1/#", "sport/tennis/player1", true),
            ("sport/tennis/player1/#", "sport/tennis/player1/ranking", true),
            ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true),
            ("sport/#", "sport", true),
            ("#", "a/b", true),
            ("sport/tennis/+", "sport/tennis/player1", true),
            ("sport/tennis/+", "sport/tennis/player1/ranking", false),
            ("sport/+", "sport", false),
            ("sport/+", "sport/", true),
            ("+/+", "/finance", true),
            ("/+", "/finance", true),
            ("+", "/finance", false),
            ("#", "$SYS/x", false),
            ("+/monitor/Clients", "$SYS/monitor/Clients", false),
            ("$SYS/#", "$SYS/x", true),
            ("$SYS/#", "$SYS", true),
            ("a/*/b", "a/x/b", false),
            ("a/*/b", "a/*/b", true),
            ("a//b", "a//b", true),
            ("a/+/b", "a//b", true),
            ("a", "A", false),
            ("a/b", "a", false),
            ("a", "a/b", false),
        ] {
            assert_eq!(matches(filter, topic), expected, "{filter} and {topic}");
        }
    }
}

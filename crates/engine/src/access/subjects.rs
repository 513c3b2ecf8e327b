//! Which subjects a user may publish and subscribe to: patterns that allow, patterns that forbid.
//!
//! Patterns are as in [`crate::Subscribe`]; independent of subscribers.

use crate::interface::limits::{SUBJECT_BYTES_MAX, SUBJECT_RULES_MAX};
use crate::interface::refusal::refuse;
use crate::{ExchangeRules, Refusal, SubjectPermissions, SubjectRules};
use std::sync::Arc;

/// Which subjects a user may hear, whatever it subscribes to.
#[derive(Clone, Debug)]
pub(crate) enum Audible {
    Nothing,
    Everything,
    Some(Arc<SubjectPermissions>),
}

impl Audible {
    /// Whether a message to these subjects may be heard: one is allowed, and none is forbidden.
    pub(crate) fn includes<'a>(&self, mut subjects: impl Iterator<Item = &'a str> + Clone) -> bool {
        match self {
            Audible::Nothing => false,
            Audible::Everything => true,
            Audible::Some(permissions) => {
                let SubjectPermissions { subscribe, .. } = &**permissions;
                subjects.clone().any(|subject| subscribe.includes(subject))
                    && !subjects.any(|subject| subscribe.excludes(subject))
            }
        }
    }
}

impl SubjectPermissions {
    /// Refuses rules that are not patterns, or too many.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.publish.check()?;
        self.subscribe.check()
    }
}

impl ExchangeRules {
    /// The same.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.publish.check()?;
        self.subscribe.check()
    }
}

impl SubjectRules {
    fn check(&self) -> Result<(), Refusal> {
        for list in [&self.allow, &self.deny] {
            if list.len() > SUBJECT_RULES_MAX {
                refuse!(LimitExceeded, "more than {SUBJECT_RULES_MAX} subjects in one list");
            }
            list.iter().try_for_each(|pattern| check_pattern(pattern))?;
        }
        Ok(())
    }

    /// Whether a message may go to `subject`.
    pub(crate) fn allows(&self, subject: &str) -> bool {
        self.includes(subject) && !self.excludes(subject)
    }

    /// Whether messages may go to every subject that a pattern matches.
    pub(super) fn allows_all_of(&self, pattern: &str) -> bool {
        self.includes(pattern) && !self.deny.iter().any(|deny| overlap(deny, pattern))
    }

    fn includes(&self, subject: &str) -> bool {
        self.allow.is_empty() || self.allow.iter().any(|pattern| covers(pattern, subject))
    }

    fn excludes(&self, subject: &str) -> bool {
        self.deny.iter().any(|pattern| covers(pattern, subject))
    }

    /// How many rules they are.
    pub(crate) fn len(&self) -> usize {
        self.allow.len() + self.deny.len()
    }

    /// What of `pattern` is forbidden although `pattern` as a whole is allowed.
    pub(crate) fn exceptions(&self, pattern: &str) -> Vec<String> {
        let forbidden = self.deny.iter().filter(|deny| overlap(deny, pattern));
        forbidden.cloned().collect()
    }
}

/// Refuses what is not a pattern of subjects.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), Refusal> {
    if pattern.len() > SUBJECT_BYTES_MAX {
        refuse!(
            LimitExceeded,
            "a subject of {} bytes is longer than {SUBJECT_BYTES_MAX}",
            pattern.len()
        );
    }
    let mut words = pattern.split('.').peekable();
    while let Some(word) = words.next() {
        if word == ">" && words.peek().is_some() {
            refuse!(PreconditionFailed, "'{pattern}' is not a subject: it has '>' inside");
        }
    }
    Ok(())
}

/// Whether every subject that `special` matches is matched by `general` too.
pub(crate) fn covers(general: &str, special: &str) -> bool {
    let mut words = special.split('.');
    for expected in general.split('.') {
        let Some(word) = words.next() else { return false };
        match (expected, word) {
            (">", _) => return true,
            (_, ">") => return false,
            ("*", _) => {}
            (expected, word) if expected == word => {}
            _ => return false,
        }
    }
    words.next().is_none()
}

/// Whether there is a subject that both patterns match.
#[must_use]
pub fn overlap(one: &str, other: &str) -> bool {
    let (mut ones, mut others) = (one.split('.'), other.split('.'));
    loop {
        match (ones.next(), others.next()) {
            (None, None) => return true,
            (Some(">"), Some(_)) | (Some(_), Some(">")) => return true,
            (Some("*"), Some(_)) | (Some(_), Some("*")) => {}
            (Some(word), Some(other)) if word == other => {}
            _ => return false,
        }
    }
}

/// Patterns of subjects that match all that a binding key does; with `#` inside, more than that.
pub(crate) fn matched_by_binding(key: &str) -> Vec<String> {
    let words: Vec<&str> = key.split('.').collect();
    let Some(at) = words.iter().position(|word| *word == "#") else { return vec![key.to_owned()] };
    let (before, rest) = words.split_at(at);
    let mut patterns = vec![[before, &[">"]].concat().join(".")];
    // `#` stands for no word as well.
    if !before.is_empty() && rest.iter().all(|word| *word == "#") {
        patterns.push(before.join("."));
    }
    patterns
}

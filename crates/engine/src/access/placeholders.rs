//! Rules that are different for each client: `%u` in a subject stands for the user's name, `%c` for that of
//! its client.
//!
//! A name that could stand for more than one word, or for other words than it is made of, is none that a rule
//! may have: a user or client with such a name may do nothing where a rule asks for it.

use super::{Access, Audible, Permissions};
use crate::{ExchangeRules, SubjectPermissions, SubjectRules};
use std::sync::Arc;

/// What names may not have in them: wildcards of subjects and topics, and what parts their words.
const NOT_IN_NAMES: [char; 7] = ['+', '#', '/', '*', '>', '.', '\0'];

/// Whose rules they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bearer<'a> {
    pub(super) user: &'a str,
    /// How its client is called, if it has said so.
    pub(super) client: Option<&'a str>,
}

impl Bearer<'_> {
    /// A rule for it; `None`: it has not the name for that.
    fn fill(&self, rule: &str) -> Option<String> {
        let (mut filled, mut rest) = (String::with_capacity(rule.len()), rule);
        while let Some(at) = rest.find('%') {
            filled.push_str(&rest[..at]);
            let name = match rest.as_bytes().get(at + 1) {
                Some(b'u') => self.user,
                Some(b'c') => self.client?,
                _ => {
                    filled.push('%');
                    rest = &rest[at + 1..];
                    continue;
                }
            };
            if name.is_empty() || name.contains(NOT_IN_NAMES) {
                return None;
            }
            filled.push_str(name);
            rest = &rest[at + 2..];
        }
        filled.push_str(rest);
        Some(filled)
    }

    fn rules(&self, rules: &SubjectRules) -> SubjectRules {
        let fill = |list: &[String]| list.iter().map(|rule| self.fill(rule)).collect();
        match (fill(&rules.allow), fill(&rules.deny)) {
            (Some(allow), Some(deny)) => SubjectRules { allow, deny },
            _ => SubjectRules { allow: Vec::new(), deny: vec![">".to_owned()] },
        }
    }

    fn subjects(&self, subjects: &SubjectPermissions) -> SubjectPermissions {
        SubjectPermissions {
            publish: self.rules(&subjects.publish),
            subscribe: self.rules(&subjects.subscribe),
            ..subjects.clone()
        }
    }
}

fn has_any(rules: &SubjectRules) -> bool {
    rules.allow.iter().chain(&rules.deny).any(|rule| rule.contains("%u") || rule.contains("%c"))
}

impl SubjectPermissions {
    /// They as they are for a bearer.
    pub(super) fn of_bearer(self: &Arc<Self>, bearer: Bearer<'_>) -> Arc<SubjectPermissions> {
        if has_any(&self.publish) || has_any(&self.subscribe) {
            return Arc::new(bearer.subjects(self));
        }
        Arc::clone(self)
    }
}

impl Permissions {
    /// They as they are for a bearer.
    pub(super) fn of_bearer(self: &Arc<Self>, bearer: Bearer<'_>) -> Arc<Permissions> {
        let in_exchange = |it: &ExchangeRules| has_any(&it.publish) || has_any(&it.subscribe);
        let subjects = self.subjects.as_ref().map(|subjects| subjects.of_bearer(bearer));
        let is_same = match (&subjects, &self.subjects) {
            (Some(filled), Some(own)) => Arc::ptr_eq(filled, own),
            _ => true,
        };
        if is_same && !self.exchanges.values().any(in_exchange) {
            return Arc::clone(self);
        }
        let mut filled = Permissions { subjects, ..(**self).clone() };
        for rules in filled.exchanges.values_mut() {
            rules.publish = bearer.rules(&rules.publish);
            rules.subscribe = bearer.rules(&rules.subscribe);
        }
        Arc::new(filled)
    }
}

impl Access {
    /// What a client of a user may hear of subjects; without a name, what any of them may.
    pub(crate) fn audible(&self, user: &str, vhost: &str, client: Option<&str>) -> Audible {
        let permissions = self.permissions.get(user).and_then(|of_user| of_user.get(vhost));
        match permissions.filter(|it| it.read.matches(self.names.subject_exchange)) {
            None => Audible::Nothing,
            Some(permissions) => match &permissions.subjects {
                None => Audible::Everything,
                Some(subjects) => Audible::Some(subjects.of_bearer(Bearer { user, client })),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_the_place_of_what_stands_for_them() {
        let bearer = Bearer { user: "ann", client: Some("c%u") };
        for (rule, filled) in [
            ("a.b", "a.b"),
            ("u.%u.>", "u.ann.>"),
            ("%c.x-%u%", "c%u.x-ann%"),
            ("100%.%x", "100%.%x"),
        ] {
            assert_eq!(bearer.fill(rule).as_deref(), Some(filled), "{rule}");
        }
    }

    #[test]
    fn who_has_no_fitting_name_may_do_nothing() {
        for name in ["", "a.b", "a/b", "*", ">", "+", "#", "a\0"] {
            let bearer = Bearer { user: name, client: None };
            for rule in ["x.%u", "x.%c"] {
                assert_eq!(bearer.fill(rule), None, "{name} in {rule}");
                let (allow, deny) = (vec!["b".to_owned()], vec![rule.to_owned()]);
                for rules in [
                    SubjectRules { allow: allow.clone(), deny },
                    SubjectRules { allow: [allow, vec![rule.to_owned()]].concat(), deny: vec![] },
                ] {
                    let rules = bearer.rules(&rules);
                    assert!(!rules.allows("b") && !rules.allows_all_of("b"), "{name} in {rule}");
                }
            }
        }
    }
}

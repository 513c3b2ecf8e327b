//! Who may do what: users, and their permissions per virtual host as patterns over names.
//!
//! Password hashes are opaque here: the host checks them.

pub(crate) mod definitions;
mod grant;
pub(crate) mod held;
mod placeholders;
pub(crate) mod quota;
pub(crate) mod revocation;
pub(crate) mod stored;
mod subjects;
mod subscription_counts;
mod usage;

use crate::interface::limits::{
    NARROWED_EXCHANGES_MAX, PERMISSION_PATTERN_BYTES_MAX, PERMISSION_PROGRAM_BYTES_MAX, check_name,
};
use crate::interface::refusal::refuse;
use crate::{
    ExchangeRules, Names, PermissionListing, Quota, Refusal, RefusalKind, SubjectPermissions,
};
use regex::{Regex, RegexBuilder};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use grant::Grant;
pub use subjects::overlap;
pub(crate) use subjects::{Audible, check_pattern, covers, matched_by_binding};

/// What a permission is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// Create and delete.
    Configure,
    /// Put messages in.
    Write,
    /// Take messages out.
    Read,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    /// Opaque.
    pub(crate) password_hash: String,
    /// May manage virtual hosts, users and permissions.
    pub(crate) administrator: bool,
}

/// One pattern over names, compiled.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    text: Box<str>,
    rule: Rule,
}

/// The patterns of nearly all users need no automaton.
#[derive(Clone, Debug)]
enum Rule {
    Everything,
    Nothing,
    Matching(Regex),
}

impl Pattern {
    pub(crate) fn new(what: &str, text: &str) -> Result<Pattern, Refusal> {
        if text.len() > PERMISSION_PATTERN_BYTES_MAX {
            refuse!(
                LimitExceeded,
                "{what} pattern of {} bytes is longer than {PERMISSION_PATTERN_BYTES_MAX}",
                text.len()
            );
        }
        let rule = match text {
            ".*" => Rule::Everything,
            "" | "^$" => Rule::Nothing,
            text => {
                let built = RegexBuilder::new(text)
                    .size_limit(PERMISSION_PROGRAM_BYTES_MAX)
                    .dfa_size_limit(PERMISSION_PROGRAM_BYTES_MAX)
                    .build();
                Rule::Matching(built.map_err(|error| {
                    let why = error.to_string();
                    let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
                    let text = format!("{what} pattern '{text}' cannot be used: {why}");
                    Refusal::new(RefusalKind::PreconditionFailed, text)
                })?)
            }
        };
        Ok(Pattern { text: text.into(), rule })
    }

    /// As `re:run` without anchors: a match anywhere in the name is one. No name is empty.
    pub(crate) fn matches(&self, name: &str) -> bool {
        match &self.rule {
            Rule::Everything => true,
            Rule::Nothing => name.is_empty(),
            Rule::Matching(regex) => regex.is_match(name),
        }
    }
}

/// One user's permissions in one virtual host.
#[derive(Clone, Debug)]
struct Permissions {
    configure: Pattern,
    write: Pattern,
    read: Pattern,
    /// What it may do with subjects; `None`: all that the patterns allow.
    subjects: Option<Arc<SubjectPermissions>>,
    /// What it may do with the routing keys of other exchanges, by their names.
    exchanges: BTreeMap<String, ExchangeRules>,
}

/// All users and permissions.
#[derive(Debug)]
pub(crate) struct Access {
    names: &'static Names,
    users: BTreeMap<String, User>,
    quotas: BTreeMap<String, Quota>,
    vhost_quotas: BTreeMap<String, Quota>,
    /// One of them bounds stored bytes.
    bounds_stored: bool,
    /// What users have declared, by user.
    owned: BTreeMap<String, stored::Owned>,
    /// At home: connections of all shards by virtual host.
    in_vhosts: BTreeMap<String, u64>,
    /// Counts up with every change to them.
    quota_changes: u64,
    /// Connections by user.
    connections: BTreeMap<String, u64>,
    pub(crate) subscribing: subscription_counts::SubscriptionCounts,
    /// By user, then virtual host; shared with the grants that were given out.
    permissions: BTreeMap<String, BTreeMap<String, Arc<Permissions>>>,
    /// Counts up with every change; a grant made before is looked up anew.
    generation: u64,
}

impl Access {
    /// Without users.
    pub(crate) fn new(names: &'static Names) -> Access {
        Access {
            names,
            users: BTreeMap::new(),
            quotas: BTreeMap::new(),
            vhost_quotas: BTreeMap::new(),
            bounds_stored: false,
            owned: BTreeMap::new(),
            in_vhosts: BTreeMap::new(),
            quota_changes: 0,
            connections: BTreeMap::new(),
            subscribing: subscription_counts::SubscriptionCounts::default(),
            permissions: BTreeMap::new(),
            generation: 0,
        }
    }

    /// Counts up with every change of rights.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Creates or changes a user.
    pub(crate) fn put_user(&mut self, name: &str, password_hash: &str, administrator: bool) {
        let user = User { password_hash: password_hash.to_owned(), administrator };
        self.users.insert(name.to_owned(), user);
        self.generation += 1;
    }

    /// Deletes a user and its permissions; false where there was none.
    pub(crate) fn delete_user(&mut self, name: &str) -> bool {
        self.permissions.remove(name);
        self.quotas.remove(name);
        self.generation += 1;
        self.users.remove(name).is_some()
    }

    fn check_user(&self, name: &str) -> Result<(), Refusal> {
        if self.users.contains_key(name) {
            return Ok(());
        }
        refuse!(NotFound, "no user '{name}'");
    }

    /// The user of that name.
    pub(crate) fn user(&self, name: &str) -> Option<&User> {
        self.users.get(name)
    }

    /// All users by name.
    pub(crate) fn users(&self) -> impl Iterator<Item = (&str, &User)> + Clone {
        self.users.iter().map(|(name, user)| (name.as_str(), user))
    }

    /// Sets a user's permissions in a virtual host. Refused: no such user, a malformed or too large
    /// pattern.
    pub(crate) fn set_permissions(&mut self, set: PermissionListing<'_>) -> Result<(), Refusal> {
        self.check_user(set.user)?;
        let before = self.permissions.get(set.user).and_then(|of_user| of_user.get(set.vhost));
        let subjects = before.and_then(|permissions| permissions.subjects.clone());
        let exchanges = before.map(|permissions| permissions.exchanges.clone());
        let permissions = Permissions {
            subjects,
            exchanges: exchanges.unwrap_or_default(),
            configure: Pattern::new("configure", set.configure)?,
            write: Pattern::new("write", set.write)?,
            read: Pattern::new("read", set.read)?,
        };
        let of_user = self.permissions.entry(set.user.to_owned()).or_default();
        of_user.insert(set.vhost.to_owned(), Arc::new(permissions));
        self.generation += 1;
        Ok(())
    }

    /// Narrows what a user may do with subjects. Refused: no permissions there, malformed patterns.
    pub(crate) fn set_subject_permissions(
        &mut self,
        user: &str,
        vhost: &str,
        subjects: &SubjectPermissions,
    ) -> Result<(), Refusal> {
        subjects.check()?;
        let is_restricted = *subjects != SubjectPermissions::default();
        let permissions = self.permissions_mut(user, vhost)?;
        permissions.subjects = is_restricted.then(|| Arc::new(subjects.clone()));
        self.generation += 1;
        Ok(())
    }

    /// Narrows what a user may do with the routing keys of an exchange. Refused: the default exchange and
    /// that of subjects, no permissions there, malformed patterns, too many exchanges.
    pub(crate) fn set_exchange_rules(
        &mut self,
        user: &str,
        vhost: &str,
        exchange: &str,
        rules: &ExchangeRules,
    ) -> Result<(), Refusal> {
        if exchange.is_empty() {
            refuse!(PreconditionFailed, "routing keys of the default exchange are names of queues");
        }
        if exchange == self.names.subject_exchange {
            refuse!(
                PreconditionFailed,
                "routing keys of exchange '{exchange}' are subjects: set them without an exchange"
            );
        }
        check_name("an exchange", exchange)?;
        rules.check()?;
        let permissions = self.permissions_mut(user, vhost)?;
        if *rules == ExchangeRules::default() {
            permissions.exchanges.remove(exchange);
        } else {
            permissions.exchanges.insert(exchange.to_owned(), rules.clone());
        }
        if permissions.exchanges.len() > NARROWED_EXCHANGES_MAX {
            permissions.exchanges.remove(exchange);
            refuse!(LimitExceeded, "rules for more than {NARROWED_EXCHANGES_MAX} exchanges");
        }
        self.generation += 1;
        Ok(())
    }

    fn permissions_mut(&mut self, user: &str, vhost: &str) -> Result<&mut Permissions, Refusal> {
        let of_user = self.permissions.get_mut(user);
        let Some(permissions) = of_user.and_then(|of_user| of_user.get_mut(vhost)) else {
            refuse!(NotFound, "user '{user}' has no permissions in vhost '{vhost}'");
        };
        Ok(Arc::make_mut(permissions))
    }

    /// What a user may do with subjects, where that is narrowed.
    pub(crate) fn subjects_of(&self, user: &str, vhost: &str) -> Option<&SubjectPermissions> {
        self.permissions.get(user)?.get(vhost)?.subjects.as_deref()
    }

    /// All that is narrowed: user, virtual host and rules.
    pub(crate) fn subject_permissions(
        &self,
    ) -> impl Iterator<Item = (&str, &str, &SubjectPermissions)> + Clone {
        self.permissions.iter().flat_map(|(user, of_user)| {
            of_user.iter().filter_map(move |(vhost, permissions)| {
                Some((user.as_str(), vhost.as_str(), &**permissions.subjects.as_ref()?))
            })
        })
    }

    /// What a user may do with the routing keys of exchanges other than that of subjects, by their names.
    pub(crate) fn exchange_rules_of(
        &self,
        user: &str,
        vhost: &str,
    ) -> impl Iterator<Item = (&str, &ExchangeRules)> + Clone {
        let permissions = self.permissions.get(user).and_then(|of_user| of_user.get(vhost));
        let rules = permissions.into_iter().flat_map(|permissions| &permissions.exchanges);
        rules.map(|(exchange, rules)| (exchange.as_str(), rules))
    }

    /// Takes them away; false where there were none.
    pub(crate) fn clear_permissions(&mut self, user: &str, vhost: &str) -> bool {
        self.generation += 1;
        let of_user = self.permissions.get_mut(user);
        of_user.is_some_and(|of_user| of_user.remove(vhost).is_some())
    }

    /// Takes all permissions in a virtual host away.
    pub(crate) fn vhost_deleted(&mut self, vhost: &str) {
        self.vhost_quotas.remove(vhost);
        self.generation += 1;
        for of_user in self.permissions.values_mut() {
            of_user.remove(vhost);
        }
    }

    /// The virtual host where a user has rights, if there is one alone.
    pub(crate) fn only_vhost(&self, user: &str) -> Option<&str> {
        let mut vhosts = self.permissions.get(user)?.keys();
        let only = vhosts.next()?;
        vhosts.next().is_none().then_some(only)
    }

    /// All permissions, by user, then virtual host.
    pub(crate) fn permissions(&self) -> impl Iterator<Item = PermissionListing<'_>> + Clone {
        self.permissions.iter().flat_map(|(user, of_user)| {
            of_user.iter().map(move |(vhost, permissions)| PermissionListing {
                user,
                vhost,
                configure: &permissions.configure.text,
                write: &permissions.write.text,
                read: &permissions.read.text,
            })
        })
    }
}

#[cfg(test)]
mod tests;

//! Who may do what: users, and their permissions per virtual host as patterns over names.
//!
//! Password hashes are opaque here: the host checks them.

pub(crate) mod definitions;
pub(crate) mod held;
pub(crate) mod quota;
pub(crate) mod revocation;
pub(crate) mod stored;
mod subjects;
mod subscription_counts;
mod usage;

use crate::interface::limits::{PERMISSION_PATTERN_BYTES_MAX, PERMISSION_PROGRAM_BYTES_MAX};
use crate::interface::refusal::refuse;
use crate::{
    Binding, BindingTarget, Names, PermissionListing, Quota, Refusal, RefusalKind, Request,
    SubjectPermissions,
};
use regex::{Regex, RegexBuilder};
use std::collections::BTreeMap;
use std::sync::Arc;

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

/// One pattern, compiled.
#[derive(Clone, Debug)]
struct Pattern {
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
    fn new(what: &str, text: &str) -> Result<Pattern, Refusal> {
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
    fn matches(&self, name: &str) -> bool {
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
    /// Connections by virtual host.
    pub(crate) in_vhosts: subscription_counts::SubscriptionCounts,
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
            in_vhosts: subscription_counts::SubscriptionCounts::default(),
            quota_changes: 0,
            connections: BTreeMap::new(),
            subscribing: subscription_counts::SubscriptionCounts::default(),
            permissions: BTreeMap::new(),
            generation: 0,
        }
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
        let permissions = Permissions {
            subjects,
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
        let of_user = self.permissions.get_mut(user);
        let Some(permissions) = of_user.and_then(|of_user| of_user.get_mut(vhost)) else {
            refuse!(NotFound, "user '{user}' has no permissions in vhost '{vhost}'");
        };
        let is_restricted = *subjects != SubjectPermissions::default();
        Arc::make_mut(permissions).subjects = is_restricted.then(|| Arc::new(subjects.clone()));
        self.generation += 1;
        Ok(())
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

    /// What a user may hear of subjects.
    pub(crate) fn audible(&self, user: &str, vhost: &str) -> Audible {
        let permissions = self.permissions.get(user).and_then(|of_user| of_user.get(vhost));
        match permissions.filter(|it| it.read.matches(self.names.subject_exchange)) {
            None => Audible::Nothing,
            Some(permissions) => match &permissions.subjects {
                None => Audible::Everything,
                Some(subjects) => Audible::Some(Arc::clone(subjects)),
            },
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

    /// What a connection by `user` to `vhost` may do. Refused where it may not connect.
    pub(crate) fn grant(&self, user: &str, vhost: &str) -> Result<Grant, Refusal> {
        let grant = self.grant_as_it_is(user, vhost);
        if grant.permissions.is_none() {
            return Err(no_access(user, vhost));
        }
        Ok(grant)
    }

    /// As [`Access::grant`] for a connection that is open: it may do nothing now, and something again later.
    pub(crate) fn grant_as_it_is(&self, user: &str, vhost: &str) -> Grant {
        let mut grant = Grant {
            names: self.names,
            user: user.into(),
            vhost: vhost.to_owned(),
            generation: self.generation,
            administrator: false,
            permissions: None,
            last_exchange: None,
            last_subject: None,
        };
        grant.look_up(self);
        grant
    }
}

/// The refusal for a user without permissions in a virtual host.
fn no_access(user: &str, vhost: &str) -> Refusal {
    let text = format!("access to vhost '{vhost}' refused for user '{user}'");
    Refusal::new(RefusalKind::AccessRefused, text)
}

/// What one connection may do; kept by the connection. Every check takes the [`Access`] it came
/// from, so that changed permissions hold immediately for connections that are open.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    names: &'static Names,
    /// The user's name.
    pub(crate) user: Arc<str>,
    vhost: String,
    generation: u64,
    administrator: bool,
    permissions: Option<Arc<Permissions>>,
    /// The exchange last published to, where that was allowed.
    last_exchange: Option<String>,
    /// The subject last published to, where that was allowed and subjects are narrowed.
    last_subject: Option<String>,
}

impl Grant {
    /// Whether the user may publish to `exchange`; cheap where it is the same as last time.
    #[inline]
    pub(crate) fn may_publish(&mut self, access: &Access, exchange: &str) -> bool {
        // The default exchange is recognized by its length: comparing with an empty string
        // costs 90 ns, as the C library loads from an unmapped address under an empty mask.
        let is_last = match self.last_exchange.as_deref() {
            Some("") => exchange.is_empty(),
            Some(last) => last == exchange,
            None => false,
        };
        if is_last && self.generation == access.generation {
            return true;
        }
        self.look_up_exchange(access, exchange)
    }

    /// Refuses what [`Grant::may_publish`] denies.
    #[inline]
    pub(crate) fn check_exchange(
        &mut self,
        access: &Access,
        exchange: &str,
    ) -> Result<(), Refusal> {
        let may = self.may_publish(access, exchange);
        may.then_some(()).ok_or_else(|| self.refused(Right::Write, Resource::Exchange(exchange)))
    }

    #[cold]
    fn look_up_exchange(&mut self, access: &Access, exchange: &str) -> bool {
        let may = self.may(access, Right::Write, exchange);
        if may {
            let last = self.last_exchange.get_or_insert_default();
            last.clear();
            last.push_str(exchange);
        }
        may
    }

    /// Whether the user has `right` on the queue or exchange `name`.
    pub(crate) fn may(&mut self, access: &Access, right: Right, name: &str) -> bool {
        self.refresh(access);
        let Some(permissions) = &self.permissions else { return false };
        let pattern = match right {
            Right::Configure => &permissions.configure,
            Right::Write => &permissions.write,
            Right::Read => &permissions.read,
        };
        pattern.matches(if name.is_empty() { self.names.default_exchange } else { name })
    }

    /// Checks all rights that a control request takes. A queue declaration without a name is to be
    /// given its name first; asking whether something exists takes no right.
    pub(crate) fn check(&mut self, access: &Access, request: &Request) -> Result<(), Refusal> {
        use Resource::{Exchange, Queue};
        use Right::{Configure, Read, Write};
        match request {
            Request::DeclareExchange { name, options } => {
                let Some(options) = options else { return Ok(()) };
                let exchange = Exchange(name);
                self.require(access, Configure, exchange)?;
                let Some(alternate) = &options.alternate else { return Ok(()) };
                self.require(access, Read, exchange)?;
                self.require(access, Write, Exchange(alternate))
            }
            Request::DeclareQueue { name, options } => {
                let Some(options) = options else { return Ok(()) };
                let queue = Queue(name);
                self.require(access, Configure, queue)?;
                let Some(exchange) = &options.dead_letter_exchange else { return Ok(()) };
                self.require(access, Read, queue)?;
                self.require(access, Write, Exchange(exchange))
            }
            Request::DeleteExchange { name, .. } => self.require(access, Configure, Exchange(name)),
            Request::DeleteQueue { name, .. } => self.require(access, Configure, Queue(name)),
            Request::PurgeQueue { name } => self.require(access, Read, Queue(name)),
            Request::Bind(binding) | Request::Unbind(binding) => {
                let target = match &binding.target {
                    BindingTarget::Queue(name) => Queue(name),
                    BindingTarget::Exchange(name) => Exchange(name),
                };
                self.require(access, Write, target)?;
                self.require(access, Read, Exchange(&binding.source))?;
                let binds = matches!(request, Request::Bind(_));
                if binds { self.check_binding(binding) } else { Ok(()) }
            }
            Request::Consume(consume) => self.require(access, Read, Queue(&consume.queue)),
            Request::Get { queue, .. } => self.require(access, Read, Queue(queue)),
            Request::CreateVhost { .. }
            | Request::DeleteVhost { .. }
            | Request::CreateUser { .. }
            | Request::ChangeUser { .. }
            | Request::DeleteUser { .. }
            | Request::SetPermissions { .. }
            | Request::SetSubjectPermissions { .. }
            | Request::SetQuota { .. }
            | Request::SetVhostQuota { .. }
            | Request::ClearPermissions { .. } => self.require_administrator(access),
            Request::ClaimSession(_) => self.require_permissions(access),
            Request::CancelConsumer { .. }
            | Request::DetachSession { .. }
            | Request::EndSession { .. }
            | Request::OpenInbox { .. }
            | Request::SetChannelCredit(_)
            | Request::SetFlow(_)
            | Request::Recover
            | Request::SelectConfirms
            | Request::SelectTransactions
            | Request::Commit
            | Request::Rollback => Ok(()),
        }
    }

    /// Whether the user may subscribe to a pattern of subjects; what of it is forbidden nevertheless.
    pub(crate) fn check_subscribe(
        &mut self,
        access: &Access,
        pattern: &str,
    ) -> Result<Vec<String>, Refusal> {
        self.require(access, Right::Read, Resource::Exchange(self.names.subject_exchange))?;
        let Some(SubjectPermissions { subscribe, .. }) = self.subjects() else {
            return Ok(Vec::new());
        };
        if subscribe.allows(pattern) {
            return Ok(subscribe.exceptions(pattern));
        }
        Err(self.refused(Right::Read, Resource::Subject(pattern)))
    }

    /// Whether the user may publish to a subject; cheap where subjects are not narrowed, or it is the
    /// same as last time. [`Grant::may_publish`] has been asked before.
    #[inline]
    pub(crate) fn check_subject(&mut self, subject: &str) -> Result<(), Refusal> {
        let Some(subjects) = self.subjects() else { return Ok(()) };
        if self.last_subject.as_deref() == Some(subject) {
            return Ok(());
        }
        if !subjects.publish.allows(subject) {
            return Err(self.refused(Right::Write, Resource::Subject(subject)));
        }
        let last = self.last_subject.get_or_insert_default();
        last.clear();
        last.push_str(subject);
        Ok(())
    }

    /// What it may do with subjects, where that is narrowed.
    #[inline]
    pub(crate) fn subjects(&self) -> Option<&SubjectPermissions> {
        self.permissions.as_ref()?.subjects.as_deref()
    }

    /// A binding from the exchange of subjects subscribes to them.
    fn check_binding(&self, binding: &Binding) -> Result<(), Refusal> {
        let Binding { source, key, .. } = binding;
        let Some(subjects) = self.subjects().filter(|_| source == self.names.subject_exchange)
        else {
            return Ok(());
        };
        let subscribe = &subjects.subscribe;
        let may_hear = |pattern: String| {
            subscribe.allows(&pattern) && subscribe.exceptions(&pattern).is_empty()
        };
        if matched_by_binding(key).into_iter().all(may_hear) {
            return Ok(());
        }
        Err(self.refused(Right::Read, Resource::Subject(key)))
    }

    /// Whether the user may publish to all subjects of these patterns, to which it is about to declare a
    /// way. [`Grant::check`] has been asked before.
    pub(crate) fn check_way(&self, patterns: Vec<String>) -> Result<(), Refusal> {
        let Some(SubjectPermissions { publish, .. }) = self.subjects() else { return Ok(()) };
        let is_forbidden =
            |pattern: &String| !publish.allows(pattern) || !publish.exceptions(pattern).is_empty();
        let Some(pattern) = patterns.iter().find(|pattern| is_forbidden(pattern)) else {
            return Ok(());
        };
        let mut refusal = self.refused(Right::Write, Resource::Subject(pattern));
        refusal.text += ", and this would lead messages there";
        Err(refusal)
    }

    fn require(
        &mut self,
        access: &Access,
        right: Right,
        resource: Resource<'_>,
    ) -> Result<(), Refusal> {
        if self.may(access, right, resource.name()) {
            return Ok(());
        }
        Err(self.refused(right, resource))
    }

    /// Whether the user may use the virtual host at all.
    fn require_permissions(&mut self, access: &Access) -> Result<(), Refusal> {
        self.refresh(access);
        if self.permissions.is_some() { Ok(()) } else { Err(no_access(&self.user, &self.vhost)) }
    }

    fn require_administrator(&mut self, access: &Access) -> Result<(), Refusal> {
        self.refresh(access);
        if self.administrator {
            return Ok(());
        }
        refuse!(AccessRefused, "user '{}' is not an administrator", self.user);
    }

    #[cold]
    fn refused(&self, right: Right, resource: Resource<'_>) -> Refusal {
        let right = match right {
            Right::Configure => "configure",
            Right::Write => "write",
            Right::Read => "read",
        };
        let resource = match resource {
            Resource::Exchange("") => format!("exchange '{}'", self.names.default_exchange),
            Resource::Exchange(name) => format!("exchange '{name}'"),
            Resource::Queue(name) => format!("queue '{name}'"),
            Resource::Subject(name) => format!("subject '{name}'"),
        };
        let text = format!(
            "{right} access to {resource} in vhost '{}' refused for user '{}'",
            self.vhost, self.user
        );
        Refusal::new(RefusalKind::AccessRefused, text)
    }

    fn refresh(&mut self, access: &Access) {
        if self.generation != access.generation {
            self.look_up(access);
        }
    }

    fn look_up(&mut self, access: &Access) {
        self.generation = access.generation;
        self.last_exchange = None;
        self.last_subject = None;
        self.administrator = access.user(&self.user).is_some_and(|user| user.administrator);
        let of_user = access.permissions.get(&*self.user);
        self.permissions = of_user.and_then(|of_user| of_user.get(&self.vhost)).cloned();
    }
}

/// What a right is on; exchanges and queues share the patterns and differ in a refusal's words.
#[derive(Clone, Copy)]
enum Resource<'a> {
    Exchange(&'a str),
    Queue(&'a str),
    Subject(&'a str),
}

impl<'a> Resource<'a> {
    fn name(self) -> &'a str {
        match self {
            Resource::Exchange(name) | Resource::Queue(name) | Resource::Subject(name) => name,
        }
    }
}

#[cfg(test)]
mod tests;

//! What one connection may do: its user's rights in its virtual host, looked up again once they have changed.

use super::placeholders::Bearer;
use super::{Access, Permissions, Right};
use crate::interface::refusal::refuse;
use crate::named_subscription::queue_name;
use crate::{
    BindingTarget, Names, QueueOptions, Refusal, RefusalKind, Request, SubjectPermissions,
    SubjectRules, TemporaryKind,
};
use std::sync::Arc;

impl Access {
    /// What a connection by `user` to `vhost` may do. Refused where it may not connect.
    pub(crate) fn grant(&self, user: &str, vhost: &str) -> Result<Grant, Refusal> {
        let grant = self.grant_as_it_is(user, vhost);
        grant.check_permissions()?;
        Ok(grant)
    }

    /// As [`Access::grant`] for a connection that is open: it may do nothing now, and something again later.
    pub(crate) fn grant_as_it_is(&self, user: &str, vhost: &str) -> Grant {
        Grant::of(self, user, vhost)
    }
}

/// What one connection may do; kept by the connection. Every check takes the [`Access`] it came
/// from, so that changed permissions hold immediately for connections that are open.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    names: &'static Names,
    /// The user's name.
    pub(crate) user: Arc<str>,
    /// How its client is called, if it has said so.
    client: Option<Box<str>>,
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
    pub(super) fn of(access: &Access, user: &str, vhost: &str) -> Grant {
        let mut grant = Grant {
            names: access.names,
            user: user.into(),
            client: None,
            vhost: vhost.to_owned(),
            generation: access.generation,
            administrator: false,
            permissions: None,
            last_exchange: None,
            last_subject: None,
        };
        grant.look_up(access);
        grant
    }

    /// It is that of a client of this name: some rules depend on it.
    pub(crate) fn name_client(&mut self, access: &Access, name: Option<&str>) {
        self.client = name.map(Into::into);
        self.look_up(access);
    }

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
    /// given its name first; asking whether something exists takes no right. What is not named here
    /// concerns virtual hosts, users and their rights.
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
                self.check_queue(access, name, options)
            }
            Request::OpenSubscription(_)
            | Request::DeleteSubscription { .. }
            | Request::FindSubscription { .. } => self.check_subscription(access, request),
            Request::CreateTemporary(create) => match &create.kind {
                TemporaryKind::Topic => self.require(access, Configure, Exchange(&create.name)),
                TemporaryKind::Queue(options) => self.check_queue(access, &create.name, options),
            },
            Request::DeleteExchange { name, .. } => self.require(access, Configure, Exchange(name)),
            Request::DeleteQueue { name, .. } => self.require(access, Configure, Queue(name)),
            Request::PurgeQueue { name } => self.require(access, Read, Queue(name)),
            Request::Bind(binding) | Request::Unbind(binding) => {
                let target = match &binding.target {
                    BindingTarget::Queue(name) => Queue(name),
                    BindingTarget::Exchange(name) => Exchange(name),
                };
                self.require(access, Write, target)?;
                self.require(access, Read, Exchange(&binding.source))
            }
            Request::Consume(consume) => self.require(access, Read, Queue(&consume.queue)),
            Request::Get { queue, .. } => self.require(access, Read, Queue(queue)),
            Request::Replay(_) => self.require(access, Read, Exchange(self.names.subject_exchange)),
            Request::ClaimSession(_) => self.require_permissions(access),
            Request::JoinShared(it) => self.require(access, Read, Exchange(&it.source)),
            Request::DescribeQueue { .. }
            | Request::DescribeQueues { .. }
            | Request::DescribeBindings { .. }
            | Request::CancelConsumer { .. }
            | Request::ClaimClientName { .. }
            | Request::DetachSession { .. }
            | Request::EndSession { .. }
            | Request::ChangeSession(_)
            | Request::SetWill(_)
            | Request::ClearWill
            | Request::ForgetPublished { .. }
            | Request::ReleaseDelivery { .. }
            | Request::ForgetReleased { .. }
            | Request::EndReplay { .. }
            | Request::LeaveShared { .. }
            | Request::OpenInbox { .. }
            | Request::Hold { .. }
            | Request::Release { .. }
            | Request::TakePlace { .. }
            | Request::SetChannelCredit(_)
            | Request::SetFlow(_)
            | Request::Recover
            | Request::SelectConfirms { .. }
            | Request::BeginTransaction
            | Request::EndTransaction { .. }
            | Request::SelectTransactions
            | Request::Commit
            | Request::Rollback => Ok(()),
            _ => self.require_administrator(access),
        }
    }

    /// Checks what a request about the queue of a session takes that the channel holds: the right to what it
    /// is bound to.
    pub(crate) fn check_on_own_queue(
        &mut self,
        access: &Access,
        request: &Request,
    ) -> Result<(), Refusal> {
        match request {
            Request::Bind(binding) | Request::Unbind(binding) => {
                self.require(access, Right::Read, Resource::Exchange(&binding.source))
            }
            _ => self.require_permissions(access),
        }
    }

    /// Whether the user may declare a queue.
    fn check_queue(
        &mut self,
        access: &Access,
        name: &str,
        options: &QueueOptions,
    ) -> Result<(), Refusal> {
        let queue = Resource::Queue(name);
        self.require(access, Right::Configure, queue)?;
        let Some(exchange) = &options.dead_letter_exchange else { return Ok(()) };
        self.require(access, Right::Read, queue)?;
        self.require(access, Right::Write, Resource::Exchange(exchange))
    }

    /// Whether the user may do that with a named subscription: what it takes to declare, bind, read or delete
    /// its queue.
    fn check_subscription(&mut self, access: &Access, request: &Request) -> Result<(), Refusal> {
        match request {
            Request::OpenSubscription(open) => {
                let owner = open.owner.as_deref();
                let queue = queue_name(self.names, open.durable, owner, &open.name);
                self.check_queue(access, &queue, &open.options)?;
                self.require(access, Right::Write, Resource::Queue(&queue))?;
                self.require(access, Right::Read, Resource::Exchange(&open.source))
            }
            Request::DeleteSubscription { owner, name } => {
                let queue = queue_name(self.names, true, owner.as_deref(), name);
                self.require(access, Right::Configure, Resource::Queue(&queue))
            }
            Request::FindSubscription { owner, name } => {
                let queue = queue_name(self.names, true, owner.as_deref(), name);
                self.require(access, Right::Read, Resource::Queue(&queue))
            }
            _ => Ok(()),
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

    /// Whether the user's message to `exchange` may be handed to those who subscribe to its key as a subject.
    /// That it may publish to that exchange has been asked before.
    pub(crate) fn may_be_heard(&mut self, access: &Access, exchange: &str, key: &str) -> bool {
        let names = self.names;
        // Binding another exchange to that of subjects takes the right to it. The default
        // exchange is not bound, and a responder may answer a request.
        let leads_there = !exchange.is_empty()
            || names.is_answer_address(key)
            || self.may(access, Right::Write, names.subject_exchange);
        leads_there && self.check_subject(key).is_ok()
    }

    /// What it may do with subjects, where that is narrowed.
    #[inline]
    pub(crate) fn subjects(&self) -> Option<&SubjectPermissions> {
        self.permissions.as_ref()?.subjects.as_deref()
    }

    /// Whether the routing keys of an exchange other than that of subjects are narrowed.
    #[inline]
    pub(crate) fn narrows_exchanges(&self) -> bool {
        self.permissions.as_ref().is_some_and(|it| !it.exchanges.is_empty())
    }

    /// The exchanges whose routing keys are narrowed.
    pub(crate) fn narrowed_exchanges(&self) -> impl Iterator<Item = &str> {
        let subjects = self.subjects().map(|_| self.names.subject_exchange);
        let others = self.permissions.iter().flat_map(|it| it.exchanges.keys());
        subjects.into_iter().chain(others.map(String::as_str))
    }

    /// With which routing keys it may publish to an exchange, where that is narrowed.
    fn publish_rules(&self, exchange: &str) -> Option<&SubjectRules> {
        if exchange == self.names.subject_exchange {
            return self.subjects().map(|subjects| &subjects.publish);
        }
        Some(&self.permissions.as_ref()?.exchanges.get(exchange)?.publish)
    }

    /// With which keys it may bind to an exchange, where that is narrowed.
    fn subscribe_rules(&self, exchange: &str) -> Option<&SubjectRules> {
        if exchange == self.names.subject_exchange {
            return self.subjects().map(|subjects| &subjects.subscribe);
        }
        Some(&self.permissions.as_ref()?.exchanges.get(exchange)?.subscribe)
    }

    /// Whether the user's messages may come to an exchange with that routing key.
    pub(crate) fn check_key(&mut self, exchange: &str, key: &str) -> Result<(), Refusal> {
        if exchange == self.names.subject_exchange {
            return self.check_subject(key);
        }
        match self.publish_rules(exchange) {
            Some(rules) if !rules.allows(key) => {
                Err(self.refused(Right::Write, Resource::Key { exchange, key }))
            }
            _ => Ok(()),
        }
    }

    /// Whether the user may bind to an exchange with `key`, which lets messages of all these patterns
    /// through.
    pub(crate) fn check_binding(
        &self,
        exchange: &str,
        key: &str,
        patterns: &[String],
    ) -> Result<(), Refusal> {
        let Some(rules) = self.subscribe_rules(exchange) else { return Ok(()) };
        if patterns.iter().all(|pattern| rules.allows_all_of(pattern)) {
            return Ok(());
        }
        Err(self.refused(Right::Read, Resource::Key { exchange, key }))
    }

    /// Whether the user may hear a message that was published to an exchange with that key. That it may read
    /// from the exchange has been asked before.
    pub(crate) fn may_hear(&self, exchange: &str, key: &str) -> bool {
        self.subscribe_rules(exchange).is_none_or(|rules| rules.allows(key))
    }

    /// Whether the user's messages may come to an exchange with all routing keys of these patterns: it is
    /// about to declare a way there.
    pub(crate) fn check_way(&self, exchange: &str, patterns: &[String]) -> Result<(), Refusal> {
        let Some(rules) = self.publish_rules(exchange) else { return Ok(()) };
        let Some(key) = patterns.iter().find(|pattern| !rules.allows_all_of(pattern)) else {
            return Ok(());
        };
        let mut refusal = self.refused(Right::Write, Resource::Key { exchange, key });
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

    fn require_permissions(&mut self, access: &Access) -> Result<(), Refusal> {
        self.refresh(access);
        self.check_permissions()
    }

    /// Whether the user may use the virtual host at all.
    pub(super) fn check_permissions(&self) -> Result<(), Refusal> {
        if self.permissions.is_some() {
            return Ok(());
        }
        let (user, vhost) = (&self.user, &self.vhost);
        refuse!(AccessRefused, "access to vhost '{vhost}' refused for user '{user}'");
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
            Resource::Subject(subject) => format!("subject '{subject}'"),
            Resource::Key { exchange, key } if exchange == self.names.subject_exchange => {
                format!("subject '{key}'")
            }
            Resource::Key { exchange, key } => format!("topic '{key}' in exchange '{exchange}'"),
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
        let bearer = Bearer { user: &self.user, client: self.client.as_deref() };
        let found = of_user.and_then(|of_user| of_user.get(&self.vhost));
        self.permissions = found.map(|permissions| permissions.of_bearer(bearer));
    }
}

/// What a right is on; exchanges and queues share the patterns and differ in a refusal's words.
#[derive(Clone, Copy)]
enum Resource<'a> {
    Exchange(&'a str),
    Queue(&'a str),
    Subject(&'a str),
    /// A routing key, or a pattern of them.
    Key {
        exchange: &'a str,
        key: &'a str,
    },
}

impl<'a> Resource<'a> {
    fn name(self) -> &'a str {
        match self {
            Resource::Exchange(name) | Resource::Queue(name) | Resource::Subject(name) => name,
            Resource::Key { exchange, .. } => exchange,
        }
    }
}

//! Control requests: checked against permissions, carried out, answered.

use crate::access::stored::Stored;
use crate::channel::Inbox;
use crate::engine::Engine;
use crate::foundation::deferred_drop::drop_elsewhere;
use crate::interface::limits::check_name;
use crate::interface::refusal::refuse;
use crate::policy::Policies;
use crate::pubsub::Interest;
use crate::queue::Get;
use crate::routing::Router;
use crate::routing::vhost::Vhost;
use crate::storage::record::Record;
use crate::{ChannelId, Effects, PermissionListing, Refusal, Reply, Request, StorageState, Time};
use std::collections::BTreeMap;

/// Letters of an inbox's token: six random bits each.
const INBOX_TOKEN_LETTERS: usize = 32;

/// An answer now, or none yet.
type Answer = Result<Option<Reply>, Refusal>;

impl Engine {
    /// Everything else; answered by one [`Effects::reply`], at once or later.
    pub fn request<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        mut request: Request,
        fx: &mut F,
    ) {
        if self.is_away() {
            return self.request_at_home(id, request, fx);
        }
        self.record_settled(fx);
        self.storage.changed_at = None;
        // Makes up a name where a queue is declared without one.
        if let Request::DeclareQueue { name, options: Some(_) } = &mut request
            && name.is_empty()
        {
            *name = self.make_up(self.names().queue_prefix);
        }
        if let Request::CreateTemporary(create) = &mut request
            && create.name.is_empty()
        {
            create.name = self.make_up(self.names().queue_prefix);
        }
        if let Some(answer) = self.carry_out(now, id, request, fx).transpose() {
            self.answer(id, answer, fx);
        }
        self.run_overdue(now, fx);
    }

    /// Answers a request: once it is flushed, where it made a change that has to survive a restart.
    fn answer<F: Effects>(&mut self, id: ChannelId, answer: Result<Reply, Refusal>, fx: &mut F) {
        match (answer, self.storage.changed_at.take(), self.channel_slot(id)) {
            // An exchange may have gone with the last thing that was bound to it.
            (Ok(_), Some(_), _) if self.storage.state == StorageState::Failed => {
                self.answer_in_order(id, Err(Refusal::not_kept()), fx);
            }
            (Ok(reply), Some(position), Some(slot)) => {
                self.answer_once_flushed(slot, position, Ok(reply));
            }
            (answer, ..) => self.answer_in_order(id, answer, fx),
        }
    }

    /// Checks a request and carries it out.
    fn carry_out<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        request: Request,
        fx: &mut F,
    ) -> Answer {
        let slot = self.channel_slot(id).ok_or_else(|| Engine::no_channel(id))?;
        self.check_rights(slot, &request)?;
        if request.is_about_session() {
            return self.request_session(now, id, request, fx).map(Some);
        }
        let reply = match request {
            Request::DeclareExchange { .. }
            | Request::DeleteExchange { .. }
            | Request::DeclareQueue { .. }
            | Request::DeleteQueue { .. }
            | Request::Bind(_)
            | Request::Unbind(_) => self.change_topology(now, slot, request, fx)?,
            Request::PurgeQueue { .. }
            | Request::DeleteVhost { .. }
            | Request::EndTransaction { .. }
            | Request::Commit => return self.begin_work(now, slot, request, fx),
            Request::CreateVhost { .. }
            | Request::CreateUser { .. }
            | Request::ChangeUser { .. }
            | Request::DeleteUser { .. }
            | Request::SetPermissions { .. }
            | Request::SetSubjectPermissions { .. }
            | Request::SetExchangeRules { .. }
            | Request::SetQuota { .. }
            | Request::SetVhostQuota { .. }
            | Request::ClearPermissions { .. }
            | Request::SetPolicy { .. }
            | Request::ClearPolicy { .. } => self.administer(now, request, fx)?,
            Request::OpenSubscription(_)
            | Request::DeleteSubscription { .. }
            | Request::FindSubscription { .. } => {
                self.request_subscription(now, slot, request, fx)?
            }
            Request::CreateTemporary(_) | Request::Hold { .. } | Request::Release { .. } => {
                self.request_lifetime(now, slot, request, fx)?
            }
            Request::DescribeQueue { name } => self.describe_queue(slot, &name)?,
            Request::DescribeQueues { from, most } => self.describe_queues(slot, from, most),
            Request::DescribeBindings { source, target, key } => {
                self.describe_bindings(slot, &source, &target, &key)?
            }
            Request::Consume(consume) => self.consume(now, slot, consume)?,
            Request::Get { queue, presettled } => {
                let queue = self.queue_for(slot, &queue)?;
                self.check_taking(id, queue)?;
                self.check_not_shared(queue)?;
                self.get(now, queue, Get { channel: id, presettled }, fx);
                return Ok(None);
            }
            Request::OpenInbox { name } => self.open_inbox(slot, name)?,
            Request::ClaimClientName { name } => self.claim_client_name(slot, &name, fx)?,
            Request::TakePlace { place, holder } => self.take_place(now, id, place, &holder, fx)?,
            Request::BeginTransaction => self.begin_transaction(slot)?,
            other => {
                self.change_channel(now, slot, other, fx)?;
                Reply::Done
            }
        };
        Ok(Some(reply))
    }

    /// Begins what may take several turns, or is answered once it is flushed.
    fn begin_work<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        request: Request,
        fx: &mut F,
    ) -> Answer {
        match request {
            Request::EndTransaction { id, commits } => {
                self.end_transaction(now, slot, id, commits, fx)
            }
            Request::Commit => self.commit_own(now, slot, fx),
            Request::PurgeQueue { name } => {
                let queue = self.queue_for(slot, &name)?;
                self.purge(slot, queue, fx)
            }
            Request::DeleteVhost { name } => self.delete_vhost(slot, &name, fx),
            _ => unreachable!("only requests that may be answered later come here"),
        }
    }

    /// Whether the channel's user has the rights that a request takes.
    fn check_rights(&mut self, slot: u32, request: &Request) -> Result<(), Refusal> {
        let connection = self.clients.channels[slot].id.connection;
        let is_about_own = self.is_about_own_queue(slot, request);
        let Some(grant) = self.clients.grant(connection) else { return Ok(()) };
        match is_about_own {
            true => grant.check_on_own_queue(&self.access, request)?,
            false => grant.check(&self.access, request)?,
        }
        self.check_ways(slot, request)
    }

    /// Carries out a request that concerns nothing beyond its channel.
    fn change_channel<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        request: Request,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let channel = &mut self.clients.channels[slot];
        match request {
            Request::CancelConsumer { name, returns } => {
                self.cancel(now, slot, &name, returns, fx);
            }
            Request::SetChannelCredit(credit) => {
                channel.account.credit = credit;
                self.reconsider_channel(slot);
            }
            Request::SetFlow(flow) => {
                channel.flow = flow;
                if flow {
                    self.reconsider_channel(slot);
                }
            }
            Request::Recover => self.recover(now, slot, fx),
            Request::SelectConfirms { explained } => {
                if channel.transaction.is_some() {
                    refuse!(PreconditionFailed, "a channel with transactions cannot have confirms");
                }
                channel.confirms.get_or_insert_default().explained |= explained;
            }
            Request::Replay(replay) => self.begin_replay(slot, *replay)?,
            Request::EndReplay { name } => {
                let id = channel.id;
                self.end_replay_named(id, &name);
            }
            Request::SelectTransactions => self.select_transactions(slot)?,
            Request::Rollback => self.roll_back_own(slot)?,
            _ => unreachable!("only requests about a channel come here"),
        }
        Ok(())
    }

    fn open_inbox(&mut self, slot: u32, name: String) -> Result<Reply, Refusal> {
        check_name("an inbox", &name)?;
        let prefix = self.names().inbox_prefix;
        self.check_may_hold_more(self.clients.channels[slot].id.connection)?;
        let channel = &mut self.clients.channels[slot];
        if channel.inbox.is_some() {
            refuse!(PreconditionFailed, "the channel has an inbox already");
        }
        let address = format!("{prefix}{}", self.random.name(INBOX_TOKEN_LETTERS));
        channel.inbox = Some(Box::new(Inbox { address: address.clone(), name }));
        let vhost = &mut self.topology.vhosts[channel.vhost];
        vhost.inboxes.insert(address.clone(), slot);
        Ok(Reply::Inbox { address })
    }

    /// Takes one message: now, if it is in memory; otherwise once it was read.
    fn get<F: Effects>(&mut self, now: Time, queue: u32, get: Get, fx: &mut F) {
        self.queues[queue].gets.push_back(get);
        if let Some(slot) = self.channel_slot(get.channel) {
            self.clients.channels[slot].gets.push(queue);
        }
        self.queue_used(now, queue);
        self.serve_queue(now, queue, fx);
    }

    /// Takes the first waiting get of a queue.
    pub(crate) fn take_get(&mut self, queue: u32) -> Option<Get> {
        let get = self.queues.get_mut(queue)?.gets.pop_front()?;
        if let Some(slot) = self.channel_slot(get.channel) {
            self.clients.channels[slot].waits_no_more_for(queue);
        }
        Some(get)
    }

    // ---- virtual hosts, users, permissions ----

    /// Adds a virtual host with what every one has.
    pub(crate) fn add_vhost(&mut self, name: &str) -> u32 {
        let seed = self.random.next();
        let mut router = Router::new(name, self.names(), &self.options.limits, seed);
        router.watch_subjects(self.has_others());
        let interest = Interest::new(seed);
        let (inboxes, stored) = (BTreeMap::new(), Stored::default());
        let vhost = Vhost {
            name: name.to_owned(),
            router,
            interest,
            policies: Policies::default(),
            queues: 0,
            inboxes,
            stored,
            is_leaving: false,
        };
        let slot = self.topology.vhosts.insert(vhost);
        self.topology.vhost_slots.insert(name.to_owned(), slot);
        slot
    }

    fn administer<F: Effects>(
        &mut self,
        now: Time,
        request: Request,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        self.check_kept(true)?;
        match &request {
            Request::CreateVhost { name } => self.create_vhost(name, fx)?,
            Request::CreateUser { name, password_hash, administrator } => {
                check_name("a user", name)?;
                if self.access.user(name).is_some() {
                    refuse!(
                        PreconditionFailed,
                        "there is a user '{name}' already: change its password instead, which \
                         leaves its rights as they are"
                    );
                }
                self.put_user(name, password_hash, *administrator, fx);
            }
            Request::ChangeUser { name, password_hash, administrator } => {
                let Some(user) = self.access.user(name).cloned() else {
                    refuse!(NotFound, "no user '{name}'");
                };
                let password_hash = password_hash.as_ref().unwrap_or(&user.password_hash);
                let administrator = administrator.unwrap_or(user.administrator);
                self.put_user(name, password_hash, administrator, fx);
            }
            Request::DeleteUser { name } => {
                if !self.access.delete_user(name) {
                    refuse!(NotFound, "no user '{name}'");
                }
                self.delete_session_queues_of(now, name, fx);
                self.drop_sessions(|session| *session.user == **name, fx);
                self.append_access(&Record::UserDeleted { name }, fx);
            }
            Request::SetPermissions { user, vhost, configure, write, read } => {
                self.vhost_slot(vhost)?;
                let set = PermissionListing { user, vhost, configure, write, read };
                self.access.set_permissions(set)?;
                self.append_access(&Record::PermissionsSet(set), fx);
                self.review_rights(now, user, vhost, fx);
            }
            Request::SetSubjectPermissions { .. } | Request::SetExchangeRules { .. } => {
                self.narrow(now, &request, fx)?;
            }
            Request::SetQuota { user, quota } => {
                self.access.set_quota(user, *quota)?;
                self.append_access(&Record::QuotaSet { user, quota: *quota }, fx);
            }
            Request::SetVhostQuota { vhost, quota } => {
                self.vhost_slot(vhost)?;
                self.access.set_vhost_quota(vhost, *quota);
                self.append_access(&Record::VhostQuotaSet { vhost, quota: *quota }, fx);
            }
            Request::ClearPermissions { user, vhost } => {
                if self.access.clear_permissions(user, vhost) {
                    self.append_access(&Record::PermissionsCleared { user, vhost }, fx);
                }
            }
            Request::SetPolicy { vhost, kind, name, policy } => {
                self.change_policy(now, vhost, *kind, name, Some(policy), fx)?;
            }
            Request::ClearPolicy { vhost, kind, name } => {
                self.change_policy(now, vhost, *kind, name, None, fx)?;
            }
            _ => unreachable!("only administrative requests come here"),
        }
        Ok(Reply::Done)
    }

    /// Narrows a user to subjects, or to routing keys of another exchange.
    fn narrow<F: Effects>(
        &mut self,
        now: Time,
        request: &Request,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let (user, vhost) = match request {
            Request::SetSubjectPermissions { user, vhost, subjects } => {
                self.vhost_slot(vhost)?;
                self.access.set_subject_permissions(user, vhost, subjects)?;
                let subjects = subjects.clone();
                self.append_access(&Record::SubjectPermissionsSet { user, vhost, subjects }, fx);
                (user, vhost)
            }
            Request::SetExchangeRules { user, vhost, exchange, rules } => {
                self.vhost_slot(vhost)?;
                self.access.set_exchange_rules(user, vhost, exchange, rules)?;
                let rules = rules.clone();
                self.append_access(&Record::ExchangeRulesSet { user, vhost, exchange, rules }, fx);
                (user, vhost)
            }
            _ => unreachable!("only these requests come here"),
        };
        self.review_rights(now, user, vhost, fx);
        Ok(())
    }

    fn put_user<F: Effects>(
        &mut self,
        name: &str,
        password_hash: &str,
        administrator: bool,
        fx: &mut F,
    ) {
        self.access.put_user(name, password_hash, administrator);
        self.append_access(&Record::UserPut { name, password_hash, administrator }, fx);
    }

    fn create_vhost<F: Effects>(&mut self, name: &str, fx: &mut F) -> Result<(), Refusal> {
        self.check_not_leaving(name)?;
        if self.topology.vhost_slots.contains_key(name) {
            return Ok(());
        }
        check_name("a virtual host", name)?;
        let most = self.options.limits.vhosts_max;
        if self.topology.vhosts.len() >= most {
            refuse!(LimitExceeded, "more than {most} virtual hosts");
        }
        self.add_vhost(name);
        self.append_access(&Record::VhostCreated { name }, fx);
        Ok(())
    }

    /// Takes a virtual host out that has nothing in it any more but subscribers of channels that have gone.
    pub(crate) fn remove_vhost(&mut self, slot: u32) {
        self.pubsub.vhost_left(slot);
        self.agenda.wide.vhost_left(slot);
        self.end_unbinding(slot);
        self.agenda.policy_reviews.forget(slot);
        let mut vhost = self.topology.vhosts.remove(slot).expect("the caller looked it up");
        vhost.router.tally.all_went();
        self.definitions.take(&mut vhost.router.tally);
        self.topology.vhost_slots.remove(&vhost.name);
        self.access.vhost_deleted(&vhost.name);
        drop_elsewhere(vhost);
    }

    /// Appends a record about users and rights, and tells the other shards and the subscribers.
    pub(super) fn append_access<F: Effects>(&mut self, record: &Record<'_>, fx: &mut F) {
        self.append_record(record, fx);
        self.tell_access(record, fx);
        self.review_subscribers(record, fx);
    }

    /// Appends a record about topology: rare, and the request waits for its flush.
    pub(crate) fn append_record<F: Effects>(&mut self, record: &Record<'_>, fx: &mut F) {
        record.write(&mut self.scratch.record);
        self.storage.changed_at = Some(fx.append(&[&self.scratch.record], true));
    }
}

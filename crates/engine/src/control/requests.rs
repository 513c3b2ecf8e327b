//! Control requests: checked against permissions, carried out, answered.

use crate::access::PermissionView;
use crate::channel::Inbox;
use crate::channel::transaction::Transaction;
use crate::engine::Engine;
use crate::foundation::deferred_drop::drop_elsewhere;
use crate::interface::limits::check_name;
use crate::pubsub::Interest;
use crate::queue::Get;
use crate::routing::Router;
use crate::routing::vhost::Vhost;
use crate::storage::record::Record;
use crate::{
    ChannelId, Credit, Effects, Outcome, Refusal, RefusalKind, Reply, Request, StorageState, Time,
};
use std::collections::BTreeMap;

/// Letters of an inbox's token: six random bits each.
const INBOX_TOKEN_LETTERS: usize = 32;

/// An answer now, or none yet.
type Answer = Option<Result<Reply, Refusal>>;

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
        let answer = match self.channel_slot(id) {
            None => Some(Err(Engine::no_channel(id))),
            Some(slot) => {
                self.name_queue(&mut request);
                match self.check_rights(id, &request) {
                    Err(refusal) => Some(Err(refusal)),
                    Ok(()) => self.carry_out(now, id, slot, request, fx),
                }
            }
        };
        if let Some(answer) = answer {
            self.answer(id, answer, fx);
        }
        self.run_overdue(now, fx);
    }

    /// Answers a request: once it is flushed, where it made a change that has to survive a restart.
    fn answer<F: Effects>(&mut self, id: ChannelId, answer: Result<Reply, Refusal>, fx: &mut F) {
        match (answer, self.storage.changed_at.take(), self.channel_slot(id)) {
            // An exchange may have gone with the last thing that was bound to it.
            (Ok(_), Some(_), _) if self.storage.state == StorageState::Failed => {
                fx.reply(id, Err(Refusal::not_kept()));
            }
            (Ok(reply), Some(position), Some(slot)) => {
                self.answer_once_flushed(slot, position, reply);
            }
            (answer, ..) => fx.reply(id, answer),
        }
    }

    /// Makes up a name where a queue is declared without one.
    fn name_queue(&mut self, request: &mut Request) {
        if let Request::DeclareQueue(declaration) = request
            && declaration.name.is_empty()
            && declaration.options.is_some()
        {
            declaration.name = self.make_up(self.names().queue_prefix);
        }
    }

    fn check_rights(&mut self, id: ChannelId, request: &Request) -> Result<(), Refusal> {
        let connection = self.clients.connections[id.connection.0 as usize].as_mut();
        match connection.and_then(|connection| connection.grant.as_mut()) {
            Some(grant) => grant.check(&self.access, request),
            None => Ok(()),
        }
    }

    fn carry_out<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        slot: u32,
        request: Request,
        fx: &mut F,
    ) -> Answer {
        match request {
            Request::DeclareExchange(_)
            | Request::DeleteExchange { .. }
            | Request::DeclareQueue(_)
            | Request::DeleteQueue { .. }
            | Request::PurgeQueue { .. }
            | Request::Bind(_)
            | Request::Unbind(_) => Some(self.change_topology(now, id, slot, request, fx)),
            Request::CreateVhost { .. }
            | Request::DeleteVhost { .. }
            | Request::PutUser { .. }
            | Request::DeleteUser { .. }
            | Request::SetPermissions { .. }
            | Request::SetSubjectPermissions { .. }
            | Request::SetQuota { .. }
            | Request::ClearPermissions { .. } => Some(self.administer(request, fx)),
            Request::ClaimSession(_)
            | Request::DetachSession { .. }
            | Request::EndSession { .. } => Some(self.request_session(now, id, request, fx)),
            Request::Consume(consume) => Some(self.consume(now, id, slot, consume)),
            Request::CancelConsumer { name } => {
                self.cancel(now, slot, &name, fx);
                Some(Ok(Reply::Done))
            }
            Request::Get { queue, presettled } => self.get(now, id, slot, &queue, presettled, fx),
            Request::OpenInbox { name } => Some(self.open_inbox(slot, name)),
            Request::SetChannelCredit(credit) => {
                self.set_channel_credit(slot, credit);
                Some(Ok(Reply::Done))
            }
            Request::SetFlow(flow) => {
                self.clients.channels.get_mut(slot).expect("a channel's slot is in use").flow =
                    flow;
                if flow {
                    self.reconsider_channel(slot);
                }
                Some(Ok(Reply::Done))
            }
            Request::Recover => {
                self.settle_up_to(now, slot, u64::MAX, Outcome::Requeue, fx);
                Some(Ok(Reply::Done))
            }
            Request::SelectConfirms => Some(self.select_confirms(slot)),
            Request::SelectTransactions => Some(self.select_transactions(slot)),
            Request::Commit => self.commit(now, id, slot, fx),
            Request::Rollback => Some(self.rollback(slot)),
        }
    }

    fn open_inbox(&mut self, slot: u32, name: String) -> Result<Reply, Refusal> {
        check_name("an inbox", &name)?;
        let prefix = self.names().inbox_prefix;
        let channel = self.clients.channels.get_mut(slot).expect("a channel's slot is in use");
        if channel.inbox.is_some() {
            let text = "the channel has an inbox already";
            return Err(Refusal::new(RefusalKind::PreconditionFailed, text));
        }
        let address = format!("{prefix}{}", self.random.name(INBOX_TOKEN_LETTERS));
        channel.inbox = Some(Box::new(Inbox { address: address.clone(), name }));
        let vhost = self.topology.vhosts.get_mut(channel.vhost).expect("channels end first");
        vhost.inboxes.insert(address.clone(), slot);
        Ok(Reply::Inbox { address })
    }

    fn set_channel_credit(&mut self, slot: u32, credit: Credit) {
        self.clients.channels.get_mut(slot).expect("a channel's slot is in use").account.credit =
            credit;
        self.reconsider_channel(slot);
    }

    fn select_confirms(&mut self, slot: u32) -> Result<Reply, Refusal> {
        let channel = self.clients.channels.get_mut(slot).expect("a channel's slot is in use");
        if channel.transaction.is_some() {
            let text = "a channel with transactions cannot have confirms";
            return Err(Refusal::new(RefusalKind::PreconditionFailed, text));
        }
        channel.confirms.get_or_insert_default();
        Ok(Reply::Done)
    }

    fn select_transactions(&mut self, slot: u32) -> Result<Reply, Refusal> {
        let channel = self.clients.channels.get_mut(slot).expect("a channel's slot is in use");
        if channel.confirms.is_some() {
            let text = "a channel with confirms cannot have transactions";
            return Err(Refusal::new(RefusalKind::PreconditionFailed, text));
        }
        channel.transaction.get_or_insert_default();
        Ok(Reply::Done)
    }

    fn rollback(&mut self, slot: u32) -> Result<Reply, Refusal> {
        let channel = self.clients.channels.get_mut(slot).expect("a channel's slot is in use");
        match &mut channel.transaction {
            Some(transaction) => {
                **transaction = Transaction::default();
                Ok(Reply::Done)
            }
            None => {
                let text = "the channel has no transaction";
                Err(Refusal::new(RefusalKind::PreconditionFailed, text))
            }
        }
    }

    /// Takes one message: at once where it is in memory, later where it has to be read.
    fn get<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        slot: u32,
        name: &str,
        presettled: bool,
        fx: &mut F,
    ) -> Answer {
        let queue_slot = match self.queue_for(id, slot, name) {
            Ok(queue_slot) => queue_slot,
            Err(refusal) => return Some(Err(refusal)),
        };
        let queue = self.queues.get_mut(queue_slot).expect("routers name living queues");
        queue.gets.push_back(Get { channel: id, presettled });
        self.clients.channels.get_mut(slot).expect("a channel's slot is in use").gets += 1;
        self.queue_used(now, queue_slot);
        self.serve_queue(now, queue_slot, fx);
        None
    }

    /// The first of those who wait for one message of a queue waits no longer.
    pub(crate) fn take_get(&mut self, queue_slot: u32) -> Option<Get> {
        let get = self.queues.get_mut(queue_slot)?.gets.pop_front()?;
        let slot = self.channel_slot(get.channel);
        if let Some(channel) = slot.and_then(|slot| self.clients.channels.get_mut(slot)) {
            channel.gets -= 1;
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
        let inboxes = BTreeMap::new();
        let vhost = Vhost { name: name.to_owned(), router, interest, queues: 0, inboxes };
        let slot = self.topology.vhosts.insert(vhost);
        self.topology.vhost_slots.insert(name.to_owned(), slot);
        slot
    }

    fn administer<F: Effects>(&mut self, request: Request, fx: &mut F) -> Result<Reply, Refusal> {
        self.check_kept(true)?;
        match &request {
            Request::CreateVhost { name } => self.create_vhost(name, fx)?,
            Request::DeleteVhost { name } => self.delete_vhost(name, fx)?,
            Request::PutUser { name, password_hash, administrator } => {
                check_name("a user", name)?;
                self.access.put_user(name, password_hash, *administrator);
                let administrator = *administrator;
                self.append_access(&Record::UserPut { name, password_hash, administrator }, fx);
            }
            Request::DeleteUser { name } => {
                if !self.access.delete_user(name) {
                    let text = format!("no user '{name}'");
                    return Err(Refusal::new(RefusalKind::NotFound, text));
                }
                self.drop_sessions(|session| *session.user == **name, fx);
                self.append_access(&Record::UserDeleted { name }, fx);
            }
            Request::SetPermissions { user, vhost, configure, write, read } => {
                self.vhost_slot(vhost)?;
                let set = PermissionView { user, vhost, configure, write, read };
                self.access.set_permissions(set)?;
                let record = Record::PermissionsSet { user, vhost, configure, write, read };
                self.append_access(&record, fx);
            }
            Request::SetSubjectPermissions { user, vhost, subjects } => {
                self.vhost_slot(vhost)?;
                self.access.set_subject_permissions(user, vhost, subjects)?;
                let subjects = subjects.clone();
                self.append_access(&Record::SubjectPermissionsSet { user, vhost, subjects }, fx);
            }
            Request::SetQuota { user, quota } => {
                self.access.set_quota(user, *quota)?;
                self.append_access(&Record::QuotaSet { user, quota: *quota }, fx);
            }
            Request::ClearPermissions { user, vhost } => {
                if self.access.clear_permissions(user, vhost) {
                    self.append_access(&Record::PermissionsCleared { user, vhost }, fx);
                }
            }
            _ => unreachable!("only administrative requests come here"),
        }
        Ok(Reply::Done)
    }

    fn create_vhost<F: Effects>(&mut self, name: &str, fx: &mut F) -> Result<(), Refusal> {
        if self.topology.vhost_slots.contains_key(name) {
            return Ok(());
        }
        check_name("a virtual host", name)?;
        let most = self.options.limits.vhosts_max;
        if self.topology.vhosts.len() >= most {
            let text = format!("more than {most} virtual hosts");
            return Err(Refusal::new(RefusalKind::LimitExceeded, text));
        }
        self.add_vhost(name);
        self.append_access(&Record::VhostCreated { name }, fx);
        Ok(())
    }

    /// Deletes a virtual host that no connection uses, and all in it.
    fn delete_vhost<F: Effects>(&mut self, name: &str, fx: &mut F) -> Result<(), Refusal> {
        let slot = self.vhost_slot(name)?;
        let connections = self.clients.connections.iter().flatten();
        let used_by = connections.filter(|connection| connection.vhost == slot).count();
        if used_by > 0 {
            let text = format!("virtual host '{name}' is in use; open connections: {used_by}");
            return Err(Refusal::new(RefusalKind::PreconditionFailed, text));
        }
        self.drop_vhost(slot, fx);
        self.append_access(&Record::VhostDeleted { name }, fx);
        Ok(())
    }

    /// Takes a virtual host out, queues and permissions included.
    pub(crate) fn drop_vhost<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let queues: Vec<u32> = self
            .queues
            .iter()
            .filter(|(_, queue)| queue.vhost == slot)
            .map(|(slot, _)| slot)
            .collect();
        for queue in queues {
            self.delete_queue(queue, fx);
        }
        self.drop_delays_of(slot, fx);
        self.drop_sessions(|session| session.vhost == slot, fx);
        self.remove_vhost(slot);
    }

    /// Takes a virtual host out that has nothing in it any more but subscribers of channels that have gone.
    pub(crate) fn remove_vhost(&mut self, slot: u32) {
        self.pubsub.vhost_left(slot);
        let vhost = self.topology.vhosts.remove(slot).expect("the caller looked it up");
        self.topology.vhost_slots.remove(&vhost.name);
        self.access.vhost_deleted(&vhost.name);
        drop_elsewhere(vhost);
    }

    /// Appends a record about who may do what, and tells the other shards, which have copies, and those
    /// who subscribe.
    fn append_access<F: Effects>(&mut self, record: &Record<'_>, fx: &mut F) {
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

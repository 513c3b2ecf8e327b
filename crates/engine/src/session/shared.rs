//! Shared queues: their messages go to member sessions, each to one of them.
//!
//! Members are sessions, whether or not anybody holds them: a shared queue collects for as long as it has
//! members, and goes with the last one. It is bound once, by the first. [`super::handover`] takes its
//! messages to members. What is emitted does not come here: the members subscribe to that, as a group of the
//! same name.

use super::Session;
use super::members::SharedQueue;
use super::own_queue::of_sessions;
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::interface::name::fitting_name;
use crate::interface::refusal::refuse;
use crate::routing::QueueKey;
use crate::storage::record::Record;
use crate::{Arguments, Binding, BindingTarget, ChannelId, Effects, JoinShared, Refusal, Time};
use std::sync::Arc;

/// Bytes of the records of a new shared queue with its binding and first member, texts not counted.
const BEGINNING_BYTES: usize = 1024;

impl Engine {
    pub(super) fn join_shared<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        join: JoinShared,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let session = self.held_session(id)?;
        let Session { vhost, queue, number, is_stored, .. } = self.sessions[session];
        if self.queues.slot_of(queue).is_none() {
            refuse!(PreconditionFailed, "a session without a queue cannot share another");
        }
        self.check_may_hold_more(id.connection)?;
        self.check_kept(true)?;
        let name = self.shared_queue_name(&join.group);
        let found = self.topology.vhosts[vhost].router.queue(&name);
        let slot = match found {
            None => self.create_shared_queue(now, id, vhost, &name, join, fx)?,
            Some(QueueKey(slot)) => match &self.queues[slot].shared {
                Some(shared) if *shared.group == *join.group => slot,
                _ => refuse!(
                    PreconditionFailed,
                    "a shared queue needs the name '{name}', which another queue has"
                ),
            },
        };
        let queue = self.queues[slot].number;
        if self.sessions[session].shared.insert(queue) && is_stored {
            Record::SharedJoined { session: number, queue }.write(&mut self.scratch.record);
            self.append_session(fx);
        }
        self.become_member(session, queue);
        self.wake_member_session(session);
        self.account_session(session);
        Ok(())
    }

    /// One name for each group: what cannot be in the names of queues is replaced.
    fn shared_queue_name(&self, group: &str) -> String {
        let group = group.replace('\0', "/");
        fitting_name(&format!("{}{group}", self.names().shared_queue_prefix)).into_owned()
    }

    fn create_shared_queue<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        vhost: u32,
        name: &str,
        join: JoinShared,
        fx: &mut F,
    ) -> Result<u32, Refusal> {
        let JoinShared { group, source, key, queue } = join;
        let channel = self.channel_slot(id).ok_or_else(|| Engine::no_channel(id))?;
        let options = of_sessions(*queue, true);
        let texts = 2 * (name.len() + source.len() + key.len() + group.len());
        fx.reserve(BEGINNING_BYTES + texts, 4);
        self.create_queue(now, channel, name.to_owned(), options, fx)?;
        let Some(QueueKey(slot)) = self.topology.vhosts[vhost].router.queue(name) else {
            refuse!(NotFound, "no queue '{name}'");
        };
        let number = self.queues[slot].number;
        let group: Arc<str> = group.into();
        self.append_record(&Record::SharedQueue { queue: number, group: &group }, fx);
        self.set_shared(slot, group);
        self.topology.vhosts[vhost].router.tally.by = self.declarer(id.connection);
        let target = BindingTarget::Queue(name.to_owned());
        let arguments = Arguments::default();
        let binding = Binding { source, target, key, arguments, filter: None, not_from: None };
        if let Err(refusal) = self.bind(id.connection, vhost, binding, fx) {
            self.delete_queue(slot, fx);
            return Err(refusal);
        }
        Ok(slot)
    }

    fn set_shared(&mut self, slot: u32, group: Arc<str>) {
        let queue = &mut self.queues[slot];
        self.topology.vhosts[queue.vhost].interest.share(&group);
        queue.shared = Some(SharedQueue::of(group));
        self.topology.vhosts[queue.vhost].policies.lead(queue);
        self.timers.reset(&mut queue.expires_at, None, Timer::Queue(slot));
    }

    /// A queue is shared, as a record or a snapshot says.
    pub(crate) fn restore_shared(&mut self, queue: u64, group: &str) {
        if let Some(slot) = self.queues.slot_of(queue) {
            self.set_shared(slot, group.into());
        }
    }

    /// All records are replayed: shared queues learn whose they are.
    pub(super) fn membership_recovered(&mut self, session: u32) {
        self.prune_handed(session);
        let queues = &self.queues;
        let shared = &mut self.sessions[session].shared;
        shared.retain(|queue| queues.slot_of(*queue).is_some());
        for queue in shared.clone() {
            self.become_member(session, queue);
        }
    }

    /// The members of all shared queues are known: those that have none go.
    pub(crate) fn drop_memberless<F: Effects>(&mut self, fx: &mut F) {
        let is_memberless = |it: &SharedQueue| it.members.is_empty();
        let all = self.queues.iter();
        let gone = all.filter(|(_, queue)| queue.shared.as_deref().is_some_and(is_memberless));
        for slot in gone.map(|(slot, _)| slot).collect::<Vec<_>>() {
            self.delete_queue(slot, fx);
        }
    }

    fn become_member(&mut self, session: u32, queue: u64) {
        let number = self.sessions[session].number;
        if let Some(shared) = self.queues.numbered(queue).and_then(|it| it.shared.as_mut()) {
            shared.members.insert(number);
        }
    }

    pub(super) fn leave_shared<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        group: &str,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let session = self.held_session(id)?;
        let is_it = |queue: &&u64| {
            let shared =
                self.queues.slot_of(**queue).and_then(|it| self.queues[it].shared.as_ref());
            shared.is_some_and(|shared| *shared.group == *group)
        };
        let Some(queue) = self.sessions[session].shared.iter().find(is_it).copied() else {
            return Ok(());
        };
        self.check_kept(self.sessions[session].is_stored)?;
        self.leave_queue(now, session, queue, fx);
        Ok(())
    }

    /// A session is no member of a shared queue any more; what its client was not sent goes back.
    pub(crate) fn leave_queue<F: Effects>(
        &mut self,
        now: Time,
        session: u32,
        queue: u64,
        fx: &mut F,
    ) {
        let Session { number, is_stored, .. } = self.sessions[session];
        if is_stored {
            Record::SharedLeft { session: number, queue }.write(&mut self.scratch.record);
            self.append_session(fx);
        }
        self.sessions[session].shared.remove(&queue);
        self.return_unsent(now, session, queue, fx);
        self.end_membership(number, queue, fx);
        self.account_session(session);
    }

    /// The sessions of a user in a virtual host that share queues, with the slots of these.
    pub(crate) fn memberships_of(&self, user: &str, vhost: u32) -> Vec<(u32, u32)> {
        let all = self.sessions.iter();
        let theirs = all.filter(|(_, session)| session.vhost == vhost && *session.user == *user);
        let shared = theirs.flat_map(|(slot, session)| {
            let queues = session.shared.iter().filter_map(|queue| self.queues.slot_of(*queue));
            queues.map(move |queue| (slot, queue))
        });
        shared.collect()
    }

    /// A session is a member of a shared queue no longer, which goes with its last one.
    pub(super) fn end_membership<F: Effects>(&mut self, session: u64, queue: u64, fx: &mut F) {
        let Some(slot) = self.queues.slot_of(queue) else { return };
        let Some(shared) = &mut self.queues[slot].shared else { return };
        shared.members.remove(&session);
        shared.able.remove(&session);
        if shared.members.is_empty() {
            self.delete_queue(slot, fx);
        }
    }

    /// The consumer may be able to take more: so may its session of shared queues.
    #[inline]
    pub(crate) fn wake_member(&mut self, consumer: u32) {
        let Some(consumer) = self.clients.consumers.get(consumer) else { return };
        let queue = consumer.queue;
        if self.queues.get(queue).is_some_and(|queue| queue.own.is_some())
            && let Some(session) = self.owner_of_queue(queue)
        {
            self.wake_member_session(session);
        }
    }

    fn wake_member_session(&mut self, session: u32) {
        let Session { number, shared, .. } = &self.sessions[session];
        for queue in shared {
            let Some(slot) = self.queues.slot_of(*queue) else { continue };
            let Some(queue) = self.queues.get_mut(slot) else { continue };
            let Some(shared) = &mut queue.shared else { continue };
            shared.able.insert(*number);
            if queue.ready > 0 && !queue.is_dirty && queue.is_served() {
                queue.is_dirty = true;
                self.agenda.dirty.push(slot);
            }
        }
    }

    /// Refuses to take messages from a shared queue, which hands them over itself.
    pub(crate) fn check_not_shared(&self, queue: u32) -> Result<(), Refusal> {
        let queue = &self.queues[queue];
        if queue.shared.is_none() {
            return Ok(());
        }
        refuse!(
            ResourceLocked,
            "queue '{}' is shared by sessions: they get its messages, and it goes with the last of them",
            queue.name
        );
    }
}

//! A direct message's way: to those who listen, and to queues that catch it.

use super::interest::Group;
use super::listen::Listener;
use super::{Direct, QUEUE_SUBJECT_PREFIX, SUBJECT_EXCHANGE};
use crate::engine::Engine;
use crate::limits::{NAME_BYTES_MAX, SUBJECT_BYTES_MAX};
use crate::publish::INBOX_PREFIX;
use crate::queue::stored::{Incoming, NO_ANNOTATIONS};
use crate::slab::Slab;
use crate::{
    ConnectionId, Effects, Emit, Heard, MessageView, Publish, Reached, Refusal, RefusalKind,
    SessionId, Time,
};

impl Engine {
    #[inline]
    pub(crate) fn take_emit<F: Effects>(
        &mut self,
        now: Time,
        id: SessionId,
        emit: &Emit<'_>,
        fx: &mut F,
    ) -> Result<Reached, Refusal> {
        let slot = self.session_slot(id).ok_or_else(|| Engine::no_session(id))?;
        self.check_emit(id, emit)?;
        let vhost = self.sessions.get(slot).expect("a session's slot is in use").vhost;
        self.counters.emitted += 1;
        let incoming = Incoming {
            exchange: SUBJECT_EXCHANGE,
            routing_key: emit.subject,
            also_to: &[],
            content: emit.content,
            redelivered: false,
            annotations: &NO_ANNOTATIONS,
        };
        let silent = if emit.echo { None } else { Some(id.connection) };
        let mut reached = self.announce(vhost, emit.subject, silent, &incoming.view(), fx);
        let host = self.vhosts.get(vhost).expect("sessions end first");
        if is_addressed(emit.subject) || host.router.has_subject_bindings() {
            reached.queues = self.catch(now, vhost, emit, fx);
        }
        if reached.is_nobody() {
            self.counters.unheard += 1;
        }
        Ok(reached)
    }

    /// Whether it may be emitted at all.
    #[inline]
    fn check_emit(&mut self, id: SessionId, emit: &Emit<'_>) -> Result<(), Refusal> {
        let bytes = emit.content.body.len() as u64;
        let most = self.options.limits.body_bytes_max;
        if bytes > most || emit.subject.len() > SUBJECT_BYTES_MAX {
            let text = format!(
                "a message of {bytes} bytes to a subject of {}: the limits are {most} and \
                 {SUBJECT_BYTES_MAX}",
                emit.subject.len()
            );
            return Err(Refusal::new(RefusalKind::LimitExceeded, text));
        }
        let connection = self.connections[id.connection.0 as usize].as_mut();
        let grant = connection.and_then(|connection| connection.grant.as_mut());
        let Some(grant) = grant else { return Ok(()) };
        let exchange = if is_addressed(emit.subject) { "" } else { SUBJECT_EXCHANGE };
        if !grant.may_publish(&self.access, exchange) {
            return Err(grant.publish_refused(exchange));
        }
        grant.check_subject(emit.subject)
    }

    /// Whether a session may listen to a pattern; what of it is forbidden nevertheless.
    pub(super) fn may_listen(
        &mut self,
        id: SessionId,
        subject: &str,
    ) -> Result<Vec<String>, Refusal> {
        let connection = self.connections[id.connection.0 as usize].as_mut();
        match connection.and_then(|connection| connection.grant.as_mut()) {
            Some(grant) => grant.check_listen(&self.access, subject),
            None => Ok(Vec::new()),
        }
    }

    /// Queues that catch a direct message: those bound to its exchange, the one that its subject
    /// names, or the inbox it is addressed to. Returns how many took it.
    #[cold]
    fn catch<F: Effects>(&mut self, now: Time, vhost: u32, emit: &Emit<'_>, fx: &mut F) -> u32 {
        let (exchange, key) = match emit.subject.strip_prefix(QUEUE_SUBJECT_PREFIX) {
            Some(queue) => ("", queue),
            None if emit.subject.starts_with(INBOX_PREFIX) => ("", emit.subject),
            None => (SUBJECT_EXCHANGE, emit.subject),
        };
        if key.len() > NAME_BYTES_MAX {
            return 0;
        }
        let publish = Publish {
            exchange,
            routing_key: key,
            also_to: &[],
            mandatory: false,
            delay: None,
            content: emit.content,
        };
        self.place_caught(now, vhost, &publish, fx)
    }

    /// Hands a message that came through exchanges to those who listen; says whether anybody does.
    #[inline]
    pub(crate) fn publish_to_listeners<F: Effects>(
        &mut self,
        vhost: u32,
        has_subjects: bool,
        incoming: &Incoming<'_>,
        fx: &mut F,
    ) -> bool {
        // Without a queue of that name, a key of the default exchange may be the subject that a
        // requester listens to for its answer.
        let is_addressed = has_subjects || incoming.exchange.is_empty();
        let host = self.vhosts.get(vhost).expect("sessions end first");
        if !is_addressed || host.interest.is_empty() {
            return false;
        }
        let keys = std::iter::once(incoming.routing_key).chain(incoming.also_to.iter().copied());
        let mut is_heard = false;
        for key in keys {
            is_heard |= self.announce(vhost, key, None, &incoming.view(), fx).listeners > 0;
        }
        is_heard
    }

    /// Hands a message to all who listen to a subject, and to one of each group; `silent` hears
    /// nothing.
    #[inline]
    pub(crate) fn announce<F: Effects>(
        &mut self,
        vhost: u32,
        subject: &str,
        silent: Option<ConnectionId>,
        message: &MessageView<'_>,
        fx: &mut F,
    ) -> Reached {
        let mut hearing = Hearing::default();
        let Direct { listeners, leaves, spent, emissions, .. } = &mut self.direct;
        *emissions += 1;
        let emission = Emission { number: *emissions, message };
        leaves.clear();
        let interest = &mut self.vhosts.get_mut(vhost).expect("sessions end first").interest;
        interest.find(subject, leaves);
        for (at, &slot) in leaves.iter().enumerate() {
            let Some(leaf) = interest.leaf(slot) else { continue };
            for &slot in &leaf.all {
                let Some(listener) = listeners.get_mut(slot) else { continue };
                if !listener.is_deaf(subject, silent) {
                    hearing.count(listener.hear(emission.number, message, fx));
                    if listener.heard >= listener.until {
                        spent.push(slot);
                    }
                }
            }
            for group in 0..leaf.groups.len() {
                if at == 0 || !interest.is_served(&leaves[..at], slot, group) {
                    let group = interest.group_mut(slot, group);
                    let deaf = |listener: &Listener| listener.is_deaf(subject, silent);
                    hearing.count_one(group, listeners, spent, deaf, emission, fx);
                }
            }
        }
        self.counters.heard += hearing.heard;
        self.counters.missed += hearing.missed;
        if !self.direct.spent.is_empty() {
            self.end_spent();
        }
        hearing.reached()
    }

    #[cold]
    fn end_spent(&mut self) {
        let mut spent = std::mem::take(&mut self.direct.spent);
        for slot in spent.drain(..) {
            self.end_listener(slot);
        }
        self.direct.spent = spent;
    }
}

/// Whether a subject names one queue or inbox, which the default exchange leads to.
#[inline]
fn is_addressed(subject: &str) -> bool {
    subject.starts_with(QUEUE_SUBJECT_PREFIX) || subject.starts_with(INBOX_PREFIX)
}

/// One message on its way, by which it is told from others.
#[derive(Clone, Copy)]
struct Emission<'a> {
    number: u64,
    message: &'a MessageView<'a>,
}

/// Counts who heard one message.
#[derive(Debug, Default)]
struct Hearing {
    heard: u64,
    missed: u64,
    /// Somebody has little unsent.
    has_free: bool,
}

impl Hearing {
    #[inline]
    fn count(&mut self, heard: Heard) {
        match heard {
            Heard::Well => {
                self.heard += 1;
                self.has_free = true;
            }
            Heard::Crowded => self.heard += 1,
            Heard::Missed => self.missed += 1,
        }
    }

    /// Hands the message to the next member of a group that keeps up.
    fn count_one<F: Effects>(
        &mut self,
        group: &mut Group,
        listeners: &mut Slab<Listener>,
        spent: &mut Vec<u32>,
        is_deaf: impl Fn(&Listener) -> bool,
        emission: Emission<'_>,
        fx: &mut F,
    ) {
        let mut has_missed = false;
        for _ in 0..group.members.len() {
            let slot = group.next();
            let Some(listener) = listeners.get_mut(slot) else { continue };
            if is_deaf(listener) {
                continue;
            }
            match listener.hear(emission.number, emission.message, fx) {
                Heard::Missed => {
                    // It is another one's now.
                    listener.missed -= 1;
                    has_missed = true;
                }
                heard => {
                    self.count(heard);
                    if listener.heard >= listener.until {
                        spent.push(slot);
                    }
                    return;
                }
            }
        }
        if has_missed {
            self.count(Heard::Missed);
        }
    }

    fn reached(&self) -> Reached {
        let listeners = u32::try_from(self.heard + self.missed).unwrap_or(u32::MAX);
        Reached { listeners, queues: 0, crowded: listeners > 0 && !self.has_free }
    }
}

//! Wills: a message that is kept with a session and published once its holder is lost: some time after the
//! session was detached, or when the session ends. A claim that resumes the session in time, or its holder,
//! takes it away.

use super::{KeptWill, Session};
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::interface::limits::SESSION_WILL_BYTES_MAX;
use crate::interface::message::NO_ANNOTATIONS;
use crate::interface::refusal::refuse;
use crate::publish::fanouts::{Extent, Then};
use crate::queue::stored::{Incoming, Stored};
use crate::routing::Keys;
use crate::routing::vhost::{Sender, Way};
use crate::storage::record;
use crate::storage::record::Record;
use crate::{ChannelId, Content, Effects, Publish, Refusal, Retain, Time, Will};

/// Records beside those of a message that say that the will is gone.
const GONE_BYTES: usize = 64;

impl Session {
    /// Bytes of its will's message.
    pub(super) fn will_bytes(&self) -> usize {
        self.will.as_ref().map_or(0, |will| will.message.len())
    }
}

impl Will {
    /// It as it will be published.
    fn publish(&self) -> Publish<'_> {
        Publish {
            exchange: &self.exchange,
            routing_key: &self.routing_key,
            also_to: &[],
            mandatory: false,
            retain: if self.retain { Retain::Yes } else { Retain::No },
            not_before: None,
            transaction: None,
            content: Content {
                format: self.format,
                properties: &self.properties,
                body: &self.body,
                shared: None,
                persistent: self.persistent,
                priority: self.priority,
                ttl: self.ttl,
            },
        }
    }
}

impl Engine {
    pub(super) fn set_will<F: Effects>(
        &mut self,
        id: ChannelId,
        will: &Will,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let session = self.held_session(id)?;
        let slot = self.channel_slot(id).ok_or_else(|| Engine::no_channel(id))?;
        let (bytes, most) = (will.body.len() + will.properties.len(), SESSION_WILL_BYTES_MAX);
        if bytes > most {
            refuse!(LimitExceeded, "a will of {bytes} bytes is larger than the limit of {most}");
        }
        let publish = will.publish();
        self.check_publish(slot, &publish)?;
        self.check_may_hold_more(id.connection)?;
        self.check_kept(self.sessions[session].is_stored)?;
        let mut message = Vec::new();
        let from = self.clients.client_name(id.connection);
        Incoming { from, ..Incoming::of(&publish) }.encode(&mut message);
        let (number, delay, retain) = (self.sessions[session].number, will.delay, will.retain);
        if self.sessions[session].is_stored {
            Record::WillSet { session: number, delay, retain, message: &message }
                .write(&mut self.scratch.record);
            self.append_session(fx);
        }
        let message = message.into_boxed_slice();
        self.sessions[session].will =
            Some(Box::new(KeptWill { message, retain, delay, due: None }));
        self.account_session(session);
        Ok(())
    }

    /// Takes the will of a session away, if it has one.
    pub(super) fn drop_will<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        self.clear_will_timer(slot);
        let session = &mut self.sessions[slot];
        if session.will.take().is_some() && session.is_stored {
            let number = session.number;
            Record::WillGone { session: number }.write(&mut self.scratch.record);
            self.append_session(fx);
        }
        self.account_session(slot);
    }

    /// A session goes on with another holder: its will is not published, except where one that waits for
    /// nothing was kept for a holder who is lost just now.
    pub(super) fn end_will_of_resumed<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        is_taken_over: bool,
        fx: &mut F,
    ) {
        let Some(will) = &self.sessions[slot].will else { return };
        if is_taken_over && will.delay.is_zero() {
            self.publish_will(now, slot, fx);
        } else {
            self.drop_will(slot, fx);
        }
    }

    /// A session has been detached: its will is published once its delay is over.
    pub(super) fn begin_will_delay<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let since = self.sessions[slot].detached_at.unwrap_or(now);
        let Some(will) = &mut self.sessions[slot].will else { return };
        let due = since.plus(will.delay);
        if due <= now {
            return self.publish_will(now, slot, fx);
        }
        will.due = Some(due);
        self.timers.set(due, Timer::Will(slot));
    }

    /// All records are replayed: a detached session's will waits on.
    pub(super) fn will_recovered(&mut self, slot: u32, since: Time) {
        if let Some(will) = &mut self.sessions[slot].will {
            let due = since.plus(will.delay);
            will.due = Some(due);
            self.timers.set(due, Timer::Will(slot));
        }
    }

    pub(super) fn clear_will_timer(&mut self, slot: u32) {
        let will = self.sessions.get_mut(slot).and_then(|session| session.will.as_mut());
        if let Some(due) = will.and_then(|will| will.due.take()) {
            self.timers.clear(due, Timer::Will(slot));
        }
    }

    /// The delay of a will is over.
    pub(crate) fn will_due<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let will = self.sessions.get(slot).and_then(|session| session.will.as_ref());
        if will.and_then(|will| will.due).is_some_and(|due| due <= now) {
            self.publish_will(now, slot, fx);
        }
    }

    /// Publishes the will of a session, if it has one, with the rights that its user has now. The message and
    /// that the will is gone are one group of records.
    pub(super) fn publish_will<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        self.clear_will_timer(slot);
        let Some(will) = self.sessions[slot].will.take() else { return };
        let stored = Stored::parse(&will.message).expect("it was encoded or checked here");
        let (vhost, is_stored) = (self.sessions[slot].vhost, self.sessions[slot].is_stored);
        let (exchange, routing_key) = (stored.exchange, stored.routing_key);
        if !self.may_publish_will(slot, exchange, routing_key) {
            return self.record_will_gone(slot, fx);
        }
        if will.retain {
            let incoming = stored.incoming(&[], false, &NO_ANNOTATIONS);
            let retained = self.retain_message(now, vhost, &incoming, is_stored, fx);
            self.counters.not_stored += u64::from(retained.is_err());
        }
        let mut targets = Vec::new();
        let sender = Sender::of(None, stored.from);
        let way = Way { exchange, keys: Keys { routing_key, also_to: &[] }, sender };
        let routed = self.find_queues(vhost, way, &stored.content, &mut targets);
        let incoming = stored.incoming(&[], false, &NO_ANNOTATIONS);
        let is_whole = routed.is_none_or(|routed| routed.is_whole);
        // A key of the default exchange that names no queue may be a subject.
        let is_subject = exchange.is_empty() && targets.is_empty();
        let is_for_subscribers = (is_subject || routed.is_some_and(|routed| routed.has_subjects))
            && is_whole
            && self.may_will_be_heard(slot, exchange, routing_key);
        if self.is_wide(is_whole, targets.len()) {
            let extent = Extent::of(targets.len(), is_whole, true);
            self.place_wide(None, vhost, &incoming, extent, false, Then::Nothing);
            self.record_will_gone(slot, fx);
        } else {
            let is_group = is_stored && !self.storage.in_group;
            if is_group {
                let bytes = record::bytes_max(will.message.len(), targets.len()) + GONE_BYTES;
                fx.reserve(bytes, 3);
                self.storage.in_group = true;
            }
            if !targets.is_empty() {
                self.place(now, &incoming, &targets, false, fx);
            }
            self.record_will_gone(slot, fx);
            if is_group {
                self.storage.in_group = false;
            }
        }
        let is_heard =
            is_for_subscribers && self.publish_to_subscribers(vhost, &incoming, None, fx);
        self.counters.published += 1;
        self.counters.unroutable += u64::from(targets.is_empty() && !is_heard && is_whole);
        self.run_overdue(now, fx);
    }

    fn record_will_gone<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        if self.sessions[slot].is_stored {
            let session = self.sessions[slot].number;
            Record::WillGone { session }.write(&mut self.scratch.record);
            self.append_session(fx);
        }
    }

    /// Whether the user of a session still has the right to publish its will.
    fn may_publish_will(&mut self, slot: u32, exchange: &str, routing_key: &str) -> bool {
        let session = &self.sessions[slot];
        let vhost = &self.topology.vhosts[session.vhost].name;
        let mut grant = self.access.grant_as_it_is(&session.user, vhost);
        grant.name_client(&self.access, Some(&session.name));
        grant.check_exchange(&self.access, exchange).is_ok()
            && grant.check_key(exchange, routing_key).is_ok()
    }

    /// Whether it may be handed to those who subscribe to its key as a subject.
    fn may_will_be_heard(&self, slot: u32, exchange: &str, routing_key: &str) -> bool {
        let session = &self.sessions[slot];
        let vhost = &self.topology.vhosts[session.vhost].name;
        let mut grant = self.access.grant_as_it_is(&session.user, vhost);
        grant.name_client(&self.access, Some(&session.name));
        grant.may_be_heard(&self.access, exchange, routing_key)
    }
}

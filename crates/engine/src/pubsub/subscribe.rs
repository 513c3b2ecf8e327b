//! Subscriptions of channels begin and end.

use super::Direct;
use super::forward::Subjects;
use super::interest::{Interest, Place};
use crate::access::{check_pattern, covers};
use crate::engine::Engine;
use crate::foundation::table::Table;
use crate::interface::limits::SUBJECT_BYTES_MAX;
use crate::interface::refusal::refuse;
use crate::pubsub::fanout::Emission;
use crate::pubsub::subscribers::{Channels, Part, TAKEN_OUT_MAX};
use crate::{
    Bound, ChannelId, ConnectionId, DirectMessage, Effects, Lost, Refusal, SendOutcome,
    SlowConsumerPolicy, Subscribe, SubscriptionListing,
};
use std::hash::BuildHasher;
use std::sync::Arc;

/// One who subscribes.
#[derive(Debug)]
pub(crate) struct Subscriber {
    /// Its channel.
    pub(crate) id: ChannelId,
    /// The place of its channel in [`Channels`].
    pub(super) whose: u32,
    /// The slot of its virtual host.
    pub(super) vhost: u32,
    pub(super) place: Place,
    pub(crate) name: Box<str>,
    /// How many messages it has been handed.
    pub(crate) heard: u64,
    /// After how many it ceases to subscribe.
    pub(crate) until: u64,
    /// Messages that it missed and was not told of.
    pub(crate) missed: u64,
    /// Its slot, and a number that tells it from others that have had the slot.
    pub(super) tag: u64,
    /// What becomes of messages for which its connection is too slow, where it says so itself.
    pub(super) slow_consumer_policy: Option<SlowConsumerPolicy>,
    /// Subjects that its pattern matches and that it may not hear.
    pub(super) exceptions: Box<[String]>,
    /// About how much memory it takes.
    bytes: u32,
}

/// What a subscription takes beside its names and its words: itself and its places in tables.
const SUBSCRIPTION_BYTES: usize = 320;
/// What each word of a subject may take beside its text, in the index of subjects.
const WORD_BYTES: usize = 96;

/// About how much memory a subscription takes.
fn subscription_bytes(subscribe: &Subscribe<'_>) -> u32 {
    let Subscribe { subject, group, name, .. } = subscribe;
    let words = subject.bytes().filter(|byte| *byte == b'.').count() + 1;
    let names = 2 * subject.len() + group.unwrap_or_default().len() + name.len();
    u32::try_from(SUBSCRIPTION_BYTES + names + words * WORD_BYTES).unwrap_or(u32::MAX)
}

/// Those who subscribe for one channel, found by their names.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    pub(super) slots: Table<u32>,
    /// About how much memory they take.
    pub(crate) bytes: u64,
    /// As [`Subscriber`] has it, once it has subscribed to anything.
    pub(super) whose: Option<u32>,
}

impl Subscribers {
    /// How many they are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}

impl Subscriber {
    /// Whether it does not hear messages to `subjects`: its channel has gone, it may not hear one of them,
    /// or its connection is the one that is not to hear itself.
    #[inline]
    pub(super) fn is_deaf(
        &self,
        subjects: Subjects<'_>,
        silent: Option<ConnectionId>,
        channels: &Channels,
    ) -> bool {
        if silent == Some(self.id.connection) {
            return true;
        }
        match channels.ruling(self.whose, subjects) {
            Some(is_deaf) => is_deaf,
            None => !self.exceptions.is_empty() && self.may_not_hear(subjects),
        }
    }

    fn may_not_hear(&self, subjects: Subjects<'_>) -> bool {
        let is_exception =
            |subject: &str| self.exceptions.iter().any(|exception| covers(exception, subject));
        subjects.each().any(is_exception)
    }

    /// A message as it is handed to it.
    #[inline(always)]
    pub(super) fn delivery<'a>(&'a self, emission: Emission<'a>) -> DirectMessage<'a> {
        DirectMessage {
            channel: self.id,
            subscription: &self.name,
            tag: self.tag,
            missed: self.missed,
            slow_consumer_policy: self.slow_consumer_policy,
            emission: emission.number,
            route: emission.cached_route,
            message: *emission.message,
        }
    }

    /// Hands it a message, if it keeps up.
    #[inline]
    pub(super) fn hear<F: Effects>(&mut self, emission: Emission<'_>, fx: &mut F) -> SendOutcome {
        let heard = fx.send_direct(&self.delivery(emission));
        if heard == SendOutcome::Dropped {
            self.missed += 1;
        } else {
            self.missed = 0;
            self.heard += 1;
        }
        heard
    }
}

impl Direct {
    fn is_named(&self, slot: u32, name: &str) -> bool {
        self.subscribers.get(slot).is_some_and(|subscriber| &*subscriber.name == name)
    }
}

impl Engine {
    /// What they subscribe to.
    pub(crate) fn subjects_of(&self, subscribers: &Subscribers) -> impl Iterator<Item = &str> {
        subscribers.slots.iter().map(|&slot| {
            let subscriber =
                self.pubsub.subscribers.get(slot).expect("channels know their subscribers");
            self.topology.vhosts[subscriber.vhost].interest.place(subscriber.place).0
        })
    }

    /// Subscriptions of a channel.
    pub(crate) fn subscriptions_of(
        &self,
        subscribers: &Subscribers,
    ) -> impl Iterator<Item = SubscriptionListing<'_>> {
        subscribers.slots.iter().map(|&slot| {
            let subscriber =
                self.pubsub.subscribers.get(slot).expect("channels know their subscribers");
            let interest = &self.topology.vhosts[subscriber.vhost].interest;
            let (subject, group, _) = interest.place(subscriber.place);
            SubscriptionListing {
                subject,
                group,
                name: &subscriber.name,
                delivered: subscriber.heard,
                until: Some(subscriber.until).filter(|until| *until < u64::MAX),
            }
        })
    }

    /// Subscribes to direct messages; a name that is subscribed already is left as it is.
    /// Refused: no permission, not a pattern of subjects, limits.
    pub fn subscribe<F: Effects>(
        &mut self,
        id: ChannelId,
        subscribe: Subscribe<'_>,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let slot = self.channel_slot(id).ok_or_else(|| Engine::no_channel(id))?;
        check_subscribe(&subscribe, self.options.limits.pattern_words_max)?;
        let exceptions = match self.clients.grant(id.connection) {
            Some(grant) => grant.check_subscribe(&self.access, subscribe.subject)?.into(),
            None => Box::default(),
        };
        let hash = self.pubsub.hasher.hash_one(subscribe.name);
        let channel = &self.clients.channels[slot];
        let known = &channel.subscribers.slots;
        if known.find(hash, |slot| self.pubsub.is_named(*slot, subscribe.name)).is_some() {
            return Ok(());
        }
        self.may_subscribe_to_more(id, known.len())?;
        self.check_may_hold_more(id.connection)?;
        let user = self.clients.user(id.connection).cloned();
        let channel = &mut self.clients.channels[slot];
        let vhost = channel.vhost;
        let interest = &mut self.topology.vhosts[vhost].interest;
        let most = self.options.limits.pattern_states_max;
        admit(interest, user.as_ref(), subscribe.subject, most)?;
        let bytes = subscription_bytes(&subscribe);
        channel.subscribers.bytes += u64::from(bytes);
        let whose = *channel
            .subscribers
            .whose
            .get_or_insert_with(|| self.pubsub.channels.come(user.clone(), vhost));
        let subscriber = self.pubsub.subscribers.next_slot();
        let place = interest.add(subscribe.subject, subscribe.group, subscriber);
        self.pubsub.subscribed = self.pubsub.subscribed.wrapping_add(1);
        self.pubsub.subscribers.insert(Subscriber {
            id,
            whose,
            vhost,
            place,
            name: subscribe.name.into(),
            heard: 0,
            until: u64::MAX,
            missed: 0,
            tag: u64::from(self.pubsub.subscribed) << 32 | u64::from(subscriber),
            slow_consumer_policy: subscribe.slow_consumer_policy,
            exceptions,
            bytes,
        });
        let Direct { subscribers, hasher, .. } = &self.pubsub;
        channel.subscribers.slots.insert_unique(hash, subscriber, |slot| {
            subscribers.get(*slot).map_or(0, |subscriber| hasher.hash_one(&*subscriber.name))
        });
        if let Some(user) = user {
            self.access.subscribing.begin(&user);
        }
        self.tell_subscribing(Some(id.connection), vhost, place, true, fx);
        // Others who come do not make those who have gone more. They go twice as fast as these come, since
        // each may count twice ([`Channels::next_leaving`]).
        if self.pubsub.subscribed.is_multiple_of(TAKEN_OUT_MAX as u32 / 2)
            && self.pubsub.channels.are_leaving()
        {
            self.take_out_some_subscribers(fx);
        }
        Ok(())
    }

    /// Refuses one more subscription of a channel that has `count`, where the channel or its
    /// user has reached its limit.
    fn may_subscribe_to_more(&self, id: ChannelId, count: usize) -> Result<(), Refusal> {
        let limits = &self.options.limits;
        let user = self.clients.user(id.connection);
        let quota = user.map(|user| self.access.quota(user)).unwrap_or_default();
        let most =
            quota.get(Bound::ConnectionSubscriptions).unwrap_or(limits.subscriptions_max as u64);
        if count as u64 >= most {
            refuse!(LimitExceeded, "more than {most} subjects subscribed to in one channel");
        }
        let most = quota.get(Bound::Subscriptions).unwrap_or(limits.user_subscriptions_max);
        if let Some(user) = user.filter(|_| most < u64::MAX) {
            let count = self.access.subscribing.everywhere(user);
            if count >= most {
                refuse!(
                    LimitExceeded,
                    "user '{user}' subscribes to {count} subjects, and may to no more"
                );
            }
        }
        Ok(())
    }

    /// Counts `count` subscriptions of a connection's user less.
    fn count_out(&mut self, connection: ConnectionId, count: usize) {
        if let Some(user) = self.clients.user(connection) {
            self.access.subscribing.end(user, count);
        }
    }

    /// Counts messages that subscribers were handed and that others for them have taken the place of. Those
    /// say so.
    pub fn conflated(&mut self, messages: u64) {
        self.counters.missed += messages;
    }

    /// Notes messages that a subscriber was handed and its client will not get: the next one
    /// that it receives says so. `tag` is that of its deliveries.
    pub fn missed(&mut self, id: ChannelId, tag: u64, lost: Lost) {
        self.counters.missed += lost.messages;
        let slot = tag as u32;
        let subscriber = self.pubsub.subscribers.get_mut(slot);
        if let Some(subscriber) = subscriber.filter(|it| it.tag == tag && it.id == id) {
            subscriber.missed += lost.messages + lost.untold;
        }
    }

    /// Ends a subscription: now, or once it has received `after` messages, counted from its
    /// beginning.
    pub fn unsubscribe<F: Effects>(
        &mut self,
        id: ChannelId,
        name: &str,
        after: Option<u64>,
        fx: &mut F,
    ) {
        let Some(channel) = self.clients.channel(id) else { return };
        let hash = self.pubsub.hasher.hash_one(name);
        let is_named = |slot: &u32| self.pubsub.is_named(*slot, name);
        let Some(&slot) = channel.subscribers.slots.find(hash, is_named) else { return };
        let subscriber = &mut self.pubsub.subscribers[slot];
        match after {
            Some(after) if after > subscriber.heard => subscriber.until = after,
            _ => self.end_subscriber(slot, fx),
        }
    }

    /// The name of one of the channel's subscriptions, outside of groups, that matches
    /// `subject`.
    pub fn subscriber(&mut self, id: ChannelId, subject: &str) -> Option<&str> {
        let interest = &mut self.topology.vhosts[self.clients.channel(id)?.vhost].interest;
        let Direct { subscribers, channels, leaves, .. } = &mut self.pubsub;
        leaves.clear();
        interest.find(subject, leaves);
        let is_own = |it: &&Subscriber| it.id == id && !channels.has_left(it.whose);
        let found = leaves.iter().filter_map(|leaf| interest.leaf(*leaf));
        let mut found = found.flat_map(|leaf| &leaf.all).filter_map(|slot| subscribers.get(*slot));
        found.find(is_own).map(|subscriber| &*subscriber.name)
    }

    /// Takes a subscriber out.
    pub(crate) fn end_subscriber<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let Some(subscriber) = self.pubsub.subscribers.get(slot) else { return };
        let hash = self.pubsub.hasher.hash_one(&*subscriber.name);
        let by = subscriber.id.connection;
        let bytes = u64::from(subscriber.bytes);
        let user = self.pubsub.channels.user_of(subscriber.whose);
        if let Some(channel) = self.channel_slot(subscriber.id)
            && let Some(channel) = self.clients.channels.get_mut(channel)
            && channel.subscribers.slots.remove(hash, |other| *other == slot).is_some()
        {
            channel.subscribers.bytes -= bytes;
            self.count_out(by, 1);
        }
        self.forget_subscriber(slot, Some(by), user.as_deref(), fx);
    }

    /// No subscriber of a channel that is being closed hears anything any more. They count for nothing from
    /// now on, and are taken out in this turn and, where there are many, the next ones.
    pub(crate) fn end_subscribers(&mut self, connection: ConnectionId, subscribers: Subscribers) {
        self.count_out(connection, subscribers.len());
        self.pubsub.channels.leave(subscribers);
    }

    /// The end of a turn: takes out some subscribers of channels that have gone and, where they
    /// are few, judges some of those whose users' rights have changed.
    #[inline]
    pub(crate) fn settle_some_subscribers<F: Effects>(&mut self, fx: &mut F) {
        if self.pubsub.has_work()
            && self.take_out_some_subscribers(fx)
            && self.pubsub.channels.reviews.are_under_way()
        {
            self.review_some_subscribers(fx);
        }
    }

    /// Takes out some subscribers of channels that have gone; says whether there is time for more.
    #[cold]
    fn take_out_some_subscribers<F: Effects>(&mut self, fx: &mut F) -> bool {
        let (parts, has_time) = self.pubsub.channels.next_leaving();
        for Part { slots, user, is_homeless } in parts {
            for slot in slots {
                if is_homeless {
                    self.pubsub.subscribers.remove(slot);
                } else {
                    // No later connection in the same place has to wait.
                    self.forget_subscriber(slot, None, user.as_deref(), fx);
                }
            }
        }
        has_time
    }

    /// `by`: who waits for the other shards to know.
    fn forget_subscriber<F: Effects>(
        &mut self,
        slot: u32,
        by: Option<ConnectionId>,
        user: Option<&str>,
        fx: &mut F,
    ) {
        let Some(subscriber) = self.pubsub.subscribers.remove(slot) else { return };
        let Subscriber { vhost, place, .. } = subscriber;
        self.tell_subscribing(by, vhost, place, false, fx);
        if let Some(moved) = self.topology.vhosts[vhost].interest.remove(place, user)
            && let Some(moved) = self.pubsub.subscribers.get_mut(moved)
        {
            moved.place = place;
        }
    }
}

/// Counts a pattern for its user. Refused: its user's patterns would make a match look at more than `most`
/// states.
fn admit(
    interest: &mut Interest,
    user: Option<&Arc<str>>,
    pattern: &str,
    most: u64,
) -> Result<(), Refusal> {
    let Some(user) = user.filter(|user| !interest.admit(user, pattern, most)) else {
        return Ok(());
    };
    refuse!(
        LimitExceeded,
        "user '{user}' subscribes to patterns with wildcards in too many different places"
    );
}

/// Whether its subject and names can be used. Refused: what is wrong with them.
fn check_subscribe(subscribe: &Subscribe<'_>, words_max: usize) -> Result<(), Refusal> {
    check_pattern(subscribe.subject)?;
    let words = subscribe.subject.split('.').count();
    if words > words_max {
        refuse!(PreconditionFailed, "a subject of {words} words has more than {words_max}");
    }
    if subscribe.group.unwrap_or_default().len().max(subscribe.name.len()) > SUBJECT_BYTES_MAX {
        refuse!(
            LimitExceeded,
            "the names of a subscriber and of a group have at most {SUBJECT_BYTES_MAX} bytes"
        );
    }
    Ok(())
}

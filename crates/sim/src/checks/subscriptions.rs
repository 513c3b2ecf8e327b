//! What a history says about direct messages: subscriptions with their times, publishes, and which
//! of them the broker is known to have processed.
//!
//! Only what clients can know counts: a subscribe or publish is known to be processed once the
//! broker answers a later request on the same connection.

use crate::history::{
    DirectMessage, DirectPublish, Ending, Event, History, MessageId, Subscription,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Longest time until the broker notices that a client is gone.
const NOTICE: Duration = Duration::from_secs(5);

/// An unsubscribe as its client asked for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// Messages in all after which it ends; `None`: at once.
    pub(super) after: Option<u64>,
    /// The event from which on the broker is known to have processed it.
    pub(super) known: Option<usize>,
}

/// A subscription and what is known about it.
#[derive(Debug)]
pub(super) struct Subscriber<'a> {
    pub(super) subscription: &'a Subscription,
    /// The event of the subscribe: the broker may know it from then on.
    asked: usize,
    /// The event from which on the broker is known to have processed the subscribe.
    sure: Option<usize>,
    pub(super) ends: Vec<End>,
    /// The event of the connection's end, as its client sees it.
    disconnected: Option<usize>,
    /// The event from which on the broker is known to have removed it.
    gone: Option<usize>,
    /// What it received, with the events.
    pub(super) received: Vec<(usize, &'a DirectMessage)>,
}

/// A published message and what is known about it.
#[derive(Debug)]
pub(super) struct Published<'a> {
    pub(super) publish: &'a DirectPublish,
    /// The event of its publishing.
    pub(super) at: usize,
    /// The event from which on the broker is known to have processed it.
    pub(super) processed: Option<usize>,
}

/// All subscriptions and publishes of a history.
pub(super) struct Subscriptions<'a> {
    pub(super) history: &'a History,
    /// Subscribers may become slow consumers and miss messages.
    pub(super) can_be_slow: bool,
    pub(super) subscribers: BTreeMap<u32, Subscriber<'a>>,
    pub(super) published: BTreeMap<MessageId, Published<'a>>,
    /// Messages of transactions that were not committed, or not known to be.
    pub(super) undone: BTreeSet<MessageId>,
    /// The event after which only final messages are published.
    caught_up: Option<usize>,
    /// The event after which nothing is under way.
    pub(super) all_received: Option<usize>,
    restarts: Vec<usize>,
}

impl<'a> Subscriptions<'a> {
    pub(super) fn of(history: &'a History) -> Subscriptions<'a> {
        let mut subscriptions = Subscriptions {
            history,
            can_be_slow: history.plan.can_be_slow(),
            subscribers: BTreeMap::new(),
            published: BTreeMap::new(),
            undone: BTreeSet::new(),
            caught_up: None,
            all_received: None,
            restarts: Vec::new(),
        };
        let mut transactions: BTreeMap<u32, Vec<MessageId>> = BTreeMap::new();
        let mut asked_to_commit = BTreeSet::new();
        for (at, (_, event)) in history.events.iter().enumerate() {
            match event {
                Event::Publish(publish) => {
                    if let Some(transaction) = publish.transaction {
                        transactions.entry(transaction).or_default().push(publish.message);
                    }
                }
                Event::Committing { transaction } => {
                    asked_to_commit.insert(*transaction);
                }
                Event::Transaction { transaction, ending: Ending::Committed } => {
                    for message in transactions.get(transaction).into_iter().flatten() {
                        subscriptions.processed(*message, at);
                    }
                }
                Event::Confirm { message, accepted: true } => subscriptions.processed(*message, at),
                _ => subscriptions.take(at, event),
            }
        }
        let open = transactions.iter().filter(|(number, _)| !asked_to_commit.contains(*number));
        subscriptions.undone.extend(open.flat_map(|(_, messages)| messages));
        let subscribers = subscriptions.subscribers.values();
        let gone: Vec<_> = subscribers.map(|it| subscriptions.gone(it)).collect();
        for (subscriber, gone) in subscriptions.subscribers.values_mut().zip(gone) {
            subscriber.gone = gone;
        }
        subscriptions
    }

    fn take(&mut self, at: usize, event: &'a Event) {
        match event {
            Event::DirectPublish(publish) => {
                self.published.insert(publish.message, Published { publish, at, processed: None });
            }
            Event::Flushed { message } => {
                let first = MessageId::new(message.producer(), 0);
                for (_, published) in self.published.range_mut(first..=*message) {
                    published.processed.get_or_insert(at);
                }
            }
            Event::Subscribe(subscription) => {
                self.subscribers.insert(subscription.number, Subscriber::new(subscription, at));
            }
            Event::Subscribed { subscription } => {
                self.with(*subscription, |subscriber| subscriber.sure = Some(at))
            }
            Event::Unsubscribe { subscription, after } => {
                let end = End { after: *after, known: None };
                self.with(*subscription, |subscriber| subscriber.ends.push(end));
            }
            Event::Unsubscribed { subscription } => self.with(*subscription, |subscriber| {
                if let Some(end) = subscriber.ends.iter_mut().find(|end| end.known.is_none()) {
                    end.known = Some(at);
                }
            }),
            Event::Receive(direct) => {
                self.with(direct.subscription, |subscriber| subscriber.received.push((at, direct)))
            }
            Event::Disconnected { connection } => {
                for subscriber in self.subscribers.values_mut() {
                    if subscriber.subscription.connection == *connection {
                        subscriber.disconnected = Some(at);
                    }
                }
            }
            Event::CaughtUp => self.caught_up = Some(at),
            Event::AllReceived => self.all_received = Some(at),
            Event::Crashed | Event::Closed => self.restarts.push(at),
            _ => {}
        }
    }

    fn with(&mut self, subscription: u32, act: impl FnOnce(&mut Subscriber<'a>)) {
        if let Some(subscriber) = self.subscribers.get_mut(&subscription) {
            act(subscriber);
        }
    }

    fn processed(&mut self, message: MessageId, at: usize) {
        if let Some(published) = self.published.get_mut(&message) {
            published.processed.get_or_insert(at);
        }
    }

    /// Whether it is a final message: published after slow consumers had caught up.
    pub(super) fn is_final(&self, message: MessageId) -> bool {
        let published = self.published.get(&message);
        published.zip(self.caught_up).is_some_and(|(published, caught_up)| published.at > caught_up)
    }

    /// Whether it was connected until everything was received.
    pub(super) fn stays(&self, subscriber: &Subscriber<'_>) -> bool {
        let stayed = |all| subscriber.disconnected.is_none_or(|disconnected| disconnected > all);
        self.all_received.is_some_and(stayed)
    }

    /// Whether it is known to be subscribed from before the message until everything was received.
    pub(super) fn surely_receives(&self, it: &Subscriber<'_>, published: &Published<'_>) -> bool {
        let is_there = it.knows_before(published.at) && self.stays(it);
        is_there && !it.has_ended() && it.is_for(published.publish)
    }

    /// Whether the broker may have handed it the message when it processed that.
    pub(super) fn may_receive(&self, it: &Subscriber<'_>, published: &Published<'_>) -> bool {
        let is_after = published.processed.is_some_and(|processed| it.asked > processed);
        let is_over = it.gone.is_some_and(|gone| gone < published.at);
        it.is_for(published.publish) && !is_after && !is_over
    }

    /// Whether what the broker handed it may be lost: its connection ended before everything was
    /// received.
    pub(super) fn may_lose(&self, subscriber: &Subscriber<'_>) -> bool {
        let is_known_end = |end: &End| end.after.is_none() && end.known.is_some();
        !self.stays(subscriber) && !subscriber.ends.iter().any(is_known_end)
    }

    fn gone(&self, subscriber: &Subscriber<'_>) -> Option<usize> {
        let ended = subscriber.ends.iter().filter_map(|end| match end.after {
            None => end.known,
            Some(after) => {
                let last = subscriber.received.get(after as usize - 1);
                end.known.zip(last).map(|(known, (received, _))| known.max(*received))
            }
        });
        let lost = subscriber.disconnected.and_then(|disconnected| {
            let events = &self.history.events;
            let late = events[disconnected].0.plus(NOTICE);
            let noticed = events.partition_point(|(time, _)| *time <= late);
            let noticed = Some(noticed).filter(|at| *at < events.len());
            let restarted = self.restarts.iter().copied().find(|restart| *restart > disconnected);
            noticed.into_iter().chain(restarted).min()
        });
        ended.chain(lost).min()
    }
}

impl<'a> Subscriber<'a> {
    fn new(subscription: &'a Subscription, asked: usize) -> Subscriber<'a> {
        Subscriber {
            subscription,
            asked,
            sure: None,
            ends: Vec::new(),
            disconnected: None,
            gone: None,
            received: Vec::new(),
        }
    }

    /// Whether it was known to be subscribed before this event.
    pub(super) fn knows_before(&self, at: usize) -> bool {
        self.sure.is_some_and(|sure| sure < at)
    }

    /// Whether it matches the message, echo included.
    pub(super) fn is_for(&self, publish: &DirectPublish) -> bool {
        let is_own = publish.connection == self.subscription.connection && !publish.echo;
        !is_own && takes(&self.subscription.pattern, &publish.subject)
    }

    /// Whether it was unsubscribed, or received all messages that it asked for.
    pub(super) fn has_ended(&self) -> bool {
        let received = self.received.len() as u64;
        self.ends.iter().any(|end| end.after.is_none_or(|after| received >= after))
    }

    /// The group, if it is a member of one.
    pub(super) fn group(&self) -> Option<&str> {
        self.subscription.group.as_deref()
    }
}

/// Wildcards straight from their definition: `*` is any one token, a last `>` one or more.
pub(super) fn takes(pattern: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for wanted in pattern.split('.') {
        match tokens.next() {
            None => return false,
            Some(_) if wanted == ">" => return true,
            Some(token) if wanted != "*" && wanted != token => return false,
            Some(_) => {}
        }
    }
    tokens.next().is_none()
}

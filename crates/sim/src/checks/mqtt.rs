//! What MQTT's sessions are promised: each message at least or exactly once, in order, whatever ends; to one
//! member of a group; wills; and of what is retained never something old.

use crate::history::{Event, History, MessageId, MqttEvent};
use std::collections::{BTreeMap, BTreeSet};

/// A message as its publisher knows it.
#[derive(Clone, Copy, Debug, Default)]
struct Published {
    qos: u8,
    /// When it was published, or made a will.
    sent: usize,
    /// The broker has said that it has it.
    is_accepted: bool,
}

/// A session with a subscription.
#[derive(Debug, Default)]
struct Session {
    qos: u8,
    is_shared: bool,
    /// When it was told that it subscribes.
    subscribed: Option<usize>,
    /// What came.
    received: Vec<MessageId>,
}

/// What happened, by message and by session. Times are places in the history.
#[derive(Debug, Default)]
struct Facts {
    published: BTreeMap<MessageId, Published>,
    sessions: BTreeMap<u32, Session>,
    /// Wills whose connections were lost.
    wills: BTreeSet<MessageId>,
    /// All has had time to arrive.
    is_complete: bool,
    /// The disk could not store for a while.
    had_no_storage: bool,
}

impl Facts {
    fn of(history: &History) -> Facts {
        let faults = &history.plan.faults;
        let had_no_storage = faults.disk_fulls + faults.sync_errors > 0;
        let mut facts = Facts { had_no_storage, ..Facts::default() };
        for (at, (_, event)) in history.events.iter().enumerate() {
            match event {
                Event::Mqtt(event) => facts.take(at, event),
                Event::AllReceived => facts.is_complete = true,
                _ => {}
            }
        }
        facts
    }

    fn take(&mut self, at: usize, event: &MqttEvent) {
        if self.is_complete {
            return;
        }
        match *event {
            MqttEvent::Published { message, qos, .. } => {
                let published = Published { qos, sent: at, is_accepted: false };
                self.published.insert(message, published);
            }
            MqttEvent::Acknowledged { message, is_accepted: true } => {
                if let Some(published) = self.published.get_mut(&message) {
                    published.is_accepted = true;
                }
            }
            MqttEvent::Subscribed { session, qos, is_shared } => {
                let session = self.sessions.entry(session).or_default();
                (session.qos, session.is_shared) = (qos, is_shared);
                session.subscribed.get_or_insert(at);
            }
            MqttEvent::Received { session, message, .. } => {
                self.sessions.entry(session).or_default().received.push(message);
            }
            MqttEvent::Ended { will: Some(will), .. } => {
                self.wills.insert(will);
            }
            _ => {}
        }
    }

    fn by(&self, is_shared: bool) -> impl Iterator<Item = (&u32, &Session)> {
        self.sessions.iter().filter(move |(_, it)| it.is_shared == is_shared)
    }

    /// Messages published after `since` that the broker has, and wills of connections that were lost.
    fn accepted_since(&self, since: usize) -> impl Iterator<Item = MessageId> {
        let is_will = |message| !self.had_no_storage && self.wills.contains(message);
        let later = self.published.iter().filter(move |(_, it)| it.sent > since);
        later
            .filter(move |(message, it)| it.is_accepted || is_will(message))
            .map(|(message, _)| *message)
    }
}

/// Nobody gets what nobody has published; what has QoS 2 on both ways comes once, to one session of a group.
pub(super) fn once(history: &History) -> Result<(), String> {
    let facts = Facts::of(history);
    for (name, session) in &facts.sessions {
        let mut known = BTreeSet::new();
        for message in &session.received {
            let Some(published) = facts.published.get(message) else {
                return Err(format!("session {name} received {message:?}, which nobody published"));
            };
            let is_once = published.qos == 2 && session.qos == 2;
            if !known.insert(*message) && is_once {
                return Err(format!("session {name} received {message:?} twice"));
            }
        }
    }
    let mut known = BTreeMap::new();
    for (name, session) in facts.by(true) {
        for message in &session.received {
            let is_once = facts.published.get(message).is_some_and(|it| it.qos == 2);
            if let Some(other) = known.insert(*message, *name).filter(|other| other != name)
                && is_once
            {
                return Err(format!("sessions {other} and {name} of a group received {message:?}"));
            }
        }
    }
    Ok(())
}

/// Messages of one publisher come in the order in which it published them.
pub(super) fn in_order(history: &History) -> Result<(), String> {
    let facts = Facts::of(history);
    for (name, session) in facts.by(false) {
        let (mut newest, mut known) = (BTreeMap::new(), BTreeSet::new());
        for message in session.received.iter().filter(|message| known.insert(**message)) {
            let before = newest.insert(message.producer(), *message);
            if let Some(before) = before.filter(|before| before > message) {
                return Err(format!("session {name} received {message:?} after {before:?}"));
            }
        }
    }
    Ok(())
}

/// A session gets every message that the broker took after it took the subscription; of a group one session
/// does.
pub(super) fn completely(history: &History) -> Result<(), String> {
    let facts = Facts::of(history);
    if !facts.is_complete {
        return Ok(());
    }
    let mut of_group = BTreeSet::new();
    for (name, session) in &facts.sessions {
        let received = session.received.iter().copied();
        if session.is_shared {
            of_group.extend(received);
            continue;
        }
        let Some(subscribed) = session.subscribed else { continue };
        let received: BTreeSet<MessageId> = received.collect();
        if let Some(missing) = facts.accepted_since(subscribed).find(|it| !received.contains(it)) {
            return Err(format!("session {name} never received {missing:?}"));
        }
    }
    let first = facts.by(true).filter_map(|(_, session)| session.subscribed).min();
    let missing =
        first.and_then(|first| facts.accepted_since(first).find(|it| !of_group.contains(it)));
    match missing {
        Some(missing) => Err(format!("no session of the group received {missing:?}")),
        None => Ok(()),
    }
}

/// Who subscribes gets of each topic what was retained by then or something newer that is retained, and from
/// then on nothing that is older than what came.
pub(super) fn retained(history: &History) -> Result<(), String> {
    let mut is_to_stay = BTreeMap::new();
    // By publisher, which has a topic of its own: the newest that is retained for certain.
    let mut newest: BTreeMap<u32, MessageId> = BTreeMap::new();
    // By subscription and publisher: the newest that is retained, and that came.
    let mut kept: BTreeMap<u32, BTreeMap<u32, MessageId>> = BTreeMap::new();
    let mut came: BTreeMap<(u32, u32), MessageId> = BTreeMap::new();
    // A publisher may send what it has sent before.
    let mut known = BTreeSet::new();
    for (_, event) in &history.events {
        let Event::Mqtt(event) = event else { continue };
        match *event {
            MqttEvent::Published { message, is_retained, .. } => {
                is_to_stay.insert(message, is_retained);
            }
            MqttEvent::Acknowledged { message, is_accepted: true } if is_to_stay[&message] => {
                raise(newest.entry(message.producer()).or_default(), message);
            }
            MqttEvent::Watching { subscription } => {
                kept.insert(subscription, newest.clone());
            }
            MqttEvent::Seen { subscription, message, is_retained, .. } => {
                let publisher = message.producer();
                let kept = kept.entry(subscription).or_default().entry(publisher).or_default();
                let came = came.entry((subscription, publisher)).or_default();
                let least = if is_retained { *kept } else { *came };
                let is_repeated = !is_retained && !known.insert((subscription, message));
                if message < least && !is_repeated {
                    let what = if is_retained { "the retained" } else { "the message" };
                    return Err(format!(
                        "subscription {subscription} received {what} {message:?} after {least:?}"
                    ));
                }
                if !is_retained {
                    raise(came, message);
                }
                if is_to_stay.get(&message) == Some(&true) {
                    raise(kept, message);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn raise(newest: &mut MessageId, message: MessageId) {
    *newest = message.max(*newest);
}

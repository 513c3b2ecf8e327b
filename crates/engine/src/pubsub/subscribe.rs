//! Sessions begin and cease to listen.

use super::Direct;
use super::forward::Subjects;
use super::interest::Place;
use crate::access::{check_pattern, covers};
use crate::channel::Connection;
use crate::engine::Engine;
use crate::foundation::table::Table;
use crate::interface::limits::{SUBJECT_BYTES_MAX, TOPIC_WORDS_MAX};
use crate::pubsub::fanout::Emission;
use crate::pubsub::subscribers::{Part, Sessions, TAKEN_OUT_AT_ONCE};
use crate::{
    Bound, ConnectionId, Delivery, Effects, Heard, Laggard, Listen, Lost, Refusal, RefusalKind,
    SessionId,
};
use std::hash::BuildHasher;
use std::sync::Arc;

/// One who listens.
#[derive(Debug)]
pub(crate) struct Listener {
    /// Its session.
    pub(crate) id: SessionId,
    /// The place of its session in [`Sessions`].
    pub(super) whose: u32,
    /// The slot of its virtual host.
    pub(super) vhost: u32,
    pub(super) place: Place,
    pub(crate) name: Box<str>,
    /// How many messages it has been handed.
    pub(crate) heard: u64,
    /// After how many it ceases to listen.
    pub(crate) until: u64,
    /// Messages that it missed and was not told of.
    pub(crate) missed: u64,
    /// Its slot, and a number that tells it from others that have had the slot.
    pub(super) tag: u64,
    /// What becomes of messages for which its connection is too slow, where it says so itself.
    pub(super) laggard: Option<Laggard>,
    /// Subjects that its pattern matches and that it may not hear.
    pub(super) exceptions: Box<[String]>,
}

/// Those who listen for one session, found by their names.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    pub(super) slots: Table<u32>,
    /// As [`Listener`] has it, once it has listened to anything.
    pub(super) whose: Option<u32>,
}

impl Listeners {
    /// How many they are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}

impl Listener {
    /// Whether it does not hear messages to `subjects`: its session has gone, it may not hear one of them,
    /// or its connection is the one that is not to hear itself.
    #[inline]
    pub(super) fn is_deaf(
        &self,
        subjects: Subjects<'_>,
        silent: Option<ConnectionId>,
        sessions: &Sessions,
    ) -> bool {
        if silent == Some(self.id.connection) {
            return true;
        }
        match sessions.ruling(self.whose, subjects) {
            Some(is_deaf) => is_deaf,
            None => !self.exceptions.is_empty() && self.may_not_hear(subjects),
        }
    }

    fn may_not_hear(&self, subjects: Subjects<'_>) -> bool {
        let is_exception =
            |subject: &str| self.exceptions.iter().any(|exception| covers(exception, subject));
        subjects.each().any(is_exception)
    }

    /// Whether it has no policy of its own.
    #[inline]
    pub(super) fn hears_plainly(&self) -> bool {
        self.laggard.is_none()
    }

    /// A message as it is handed to it.
    #[inline(always)]
    pub(super) fn delivery<'a>(&'a self, emission: Emission<'a>) -> Delivery<'a> {
        Delivery {
            session: self.id,
            subscription: &self.name,
            tag: self.tag,
            redelivered: false,
            messages_left: 0,
            missed: self.missed,
            laggard: self.laggard,
            emission: emission.number,
            streak: emission.streak,
            message: *emission.message,
        }
    }

    /// Hands it a message, if it keeps up.
    #[inline]
    pub(super) fn hear<F: Effects>(&mut self, emission: Emission<'_>, fx: &mut F) -> Heard {
        let heard = fx.emit(&self.delivery(emission));
        if heard == Heard::Missed {
            self.missed += 1;
        } else {
            self.missed = 0;
            self.heard += 1;
        }
        heard
    }
}

impl Engine {
    /// What they listen to.
    pub(crate) fn subjects_of(&self, listeners: &Listeners) -> impl Iterator<Item = &str> {
        listeners.slots.iter().map(|&slot| {
            let listener = self.direct.listeners.get(slot).expect("sessions know their listeners");
            let host = self.vhosts.get(listener.vhost).expect("sessions end first");
            host.interest.place(listener.place).0
        })
    }

    /// Begins to listen. One of that name that listens already goes on as it is.
    pub(crate) fn begin_to_listen<F: Effects>(
        &mut self,
        id: SessionId,
        listen: Listen<'_>,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let slot = self.session_slot(id).ok_or_else(|| Engine::no_session(id))?;
        check_listen(&listen)?;
        let exceptions = self.may_listen(id, listen.subject)?.into();
        let hash = self.direct.hasher.hash_one(listen.name);
        let session = self.sessions.get(slot).expect("a session's slot is in use");
        let known = &session.listeners.slots;
        let is_named = |slot: &u32| {
            self.direct.listeners.get(*slot).is_some_and(|listener| &*listener.name == listen.name)
        };
        if known.find(hash, is_named).is_some() {
            return Ok(());
        }
        self.may_listen_to_more(id, known.len())?;
        let session = self.sessions.get_mut(slot).expect("a session's slot is in use");
        let vhost = session.vhost;
        let (sessions, connections) = (&mut self.direct.sessions, &self.connections);
        let whose = *session.listeners.whose.get_or_insert_with(|| {
            sessions.come(user_of(connections, id.connection).cloned(), vhost)
        });
        let host = self.vhosts.get_mut(vhost).expect("sessions end first");
        let listener = self.direct.listeners.next_slot();
        let place = host.interest.add(listen.subject, listen.group, listener);
        let name: Box<str> = listen.name.into();
        let (heard, until, missed) = (0, u64::MAX, 0);
        self.direct.listened = self.direct.listened.wrapping_add(1);
        let tag = u64::from(self.direct.listened) << 32 | u64::from(listener);
        let laggard = listen.laggard;
        self.direct.listeners.insert(Listener {
            id,
            whose,
            vhost,
            place,
            name,
            heard,
            until,
            missed,
            tag,
            laggard,
            exceptions,
        });
        let Direct { listeners, hasher, .. } = &self.direct;
        session.listeners.slots.insert_unique(hash, listener, |slot| {
            listeners.get(*slot).map_or(0, |listener| hasher.hash_one(&*listener.name))
        });
        if let Some(user) = user_of(&self.connections, id.connection) {
            self.access.listening.begin(user);
        }
        self.tell_listening(Some(id.connection), vhost, place, true, fx);
        // Others who come do not make those who have gone more. They go twice as fast as these come, since
        // each may count twice ([`Sessions::next_leaving`]).
        if self.direct.listened.is_multiple_of(TAKEN_OUT_AT_ONCE as u32 / 2)
            && self.direct.sessions.are_leaving()
        {
            self.take_out_some_listeners(fx);
        }
        Ok(())
    }

    /// Whether a session that listens to so many subjects may listen to one more. Refused: it, or its
    /// user, has as many as it may.
    fn may_listen_to_more(&self, id: SessionId, count: usize) -> Result<(), Refusal> {
        let limits = &self.options.limits;
        let user = user_of(&self.connections, id.connection);
        let quota = user.map(|user| self.access.quota(user)).unwrap_or_default();
        let most = quota.get(Bound::ConnectionListeners).unwrap_or(limits.listeners_max as u64);
        if count as u64 >= most {
            let text = format!("more than {most} subjects listened to in one session");
            return Err(Refusal::new(RefusalKind::LimitExceeded, text));
        }
        let most = quota.get(Bound::Listeners).unwrap_or(limits.user_listeners_max);
        if let Some(user) = user.filter(|_| most < u64::MAX) {
            let count = self.access.listening.everywhere(user);
            if count >= most {
                let text = format!("user '{user}' listens to {count} subjects, and may to no more");
                return Err(Refusal::new(RefusalKind::LimitExceeded, text));
            }
        }
        Ok(())
    }

    /// A connection's user has ceased to listen to so many subjects.
    fn count_out(&mut self, connection: ConnectionId, count: usize) {
        if let Some(user) = user_of(&self.connections, connection) {
            self.access.listening.end(user, count);
        }
    }

    /// What a listener was handed and does not get after all.
    pub(crate) fn note_missed(&mut self, id: SessionId, tag: u64, lost: Lost) {
        self.counters.missed += lost.messages;
        let slot = tag as u32;
        let listener = self.direct.listeners.get_mut(slot);
        if let Some(listener) = listener.filter(|listener| listener.tag == tag && listener.id == id)
        {
            listener.missed += lost.messages + lost.untold;
        }
    }

    /// Ceases to listen: now, or once it has heard `after` messages from its beginning.
    pub(crate) fn cease_to_listen<F: Effects>(
        &mut self,
        id: SessionId,
        name: &str,
        after: Option<u64>,
        fx: &mut F,
    ) {
        let Some(session) = self.session_slot(id).and_then(|slot| self.sessions.get(slot)) else {
            return;
        };
        let hash = self.direct.hasher.hash_one(name);
        let is_named =
            |slot: &u32| self.direct.listeners.get(*slot).is_some_and(|other| &*other.name == name);
        let Some(&slot) = session.listeners.slots.find(hash, is_named) else { return };
        let listener = self.direct.listeners.get_mut(slot).expect("it was found just now");
        match after {
            Some(after) if after > listener.heard => listener.until = after,
            _ => self.end_listener(slot, fx),
        }
    }

    /// The name of a listener of this session, outside of groups, that hears `subject`.
    pub(crate) fn find_listener(&mut self, id: SessionId, subject: &str) -> Option<&str> {
        let vhost = self.sessions.get(self.session_slot(id)?)?.vhost;
        let interest = &mut self.vhosts.get_mut(vhost)?.interest;
        let Direct { listeners, sessions, leaves, .. } = &mut self.direct;
        leaves.clear();
        interest.find(subject, leaves);
        let is_own = |it: &&Listener| it.id == id && !sessions.has_left(it.whose);
        let mut hearing = leaves.iter().filter_map(|leaf| interest.leaf(*leaf));
        let own = hearing.find_map(|leaf| {
            let mut own = leaf.all.iter().filter_map(|slot| listeners.get(*slot));
            own.find(is_own)
        });
        own.map(|listener| &*listener.name)
    }

    /// Takes a listener out.
    pub(crate) fn end_listener<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let Some(listener) = self.direct.listeners.get(slot) else { return };
        let hash = self.direct.hasher.hash_one(&*listener.name);
        let by = listener.id.connection;
        if let Some(session) = self.session_slot(listener.id)
            && let Some(session) = self.sessions.get_mut(session)
            && session.listeners.slots.remove(hash, |other| *other == slot).is_some()
        {
            self.count_out(by, 1);
        }
        self.forget_listener(slot, Some(by), fx);
    }

    /// No listener of a session that is being closed hears anything any more. They count for nothing from
    /// now on, and are taken out in this turn and, where there are many, the next ones.
    pub(crate) fn end_listeners(&mut self, connection: ConnectionId, listeners: Listeners) {
        self.count_out(connection, listeners.len());
        self.direct.sessions.leave(listeners);
    }

    /// The end of a turn: takes out some listeners of sessions that have gone and, where they are few, judges
    /// some of those whose users' rights have changed.
    #[inline]
    pub(crate) fn settle_some_listeners<F: Effects>(&mut self, fx: &mut F) {
        if self.direct.has_work() {
            self.settle_listeners(fx);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle_listeners<F: Effects>(&mut self, fx: &mut F) {
        let has_time = self.take_out_some_listeners(fx);
        if has_time && self.direct.sessions.reviews.are_under_way() {
            self.review_some_listeners(fx);
        }
    }

    /// Takes out some listeners of sessions that have gone; says whether there is time for more.
    #[cold]
    fn take_out_some_listeners<F: Effects>(&mut self, fx: &mut F) -> bool {
        let (parts, has_time) = self.direct.sessions.next_leaving();
        for Part { slots, is_homeless } in parts {
            for slot in slots {
                if is_homeless {
                    self.direct.listeners.remove(slot);
                } else {
                    // Whoever is in their connection's place by now has nothing to wait for.
                    self.forget_listener(slot, None, fx);
                }
            }
        }
        has_time
    }

    /// `by`: who waits for the other shards to know.
    fn forget_listener<F: Effects>(&mut self, slot: u32, by: Option<ConnectionId>, fx: &mut F) {
        let Some(listener) = self.direct.listeners.remove(slot) else { return };
        let Listener { vhost, place, .. } = listener;
        self.tell_listening(by, vhost, place, false, fx);
        let host = self.vhosts.get_mut(listener.vhost).expect("sessions end first");
        if let Some(moved) = host.interest.remove(listener.place)
            && let Some(moved) = self.direct.listeners.get_mut(moved)
        {
            moved.place = listener.place;
        }
    }
}

/// Whether its subject and names can be used. Refused: what is wrong with them.
fn check_listen(listen: &Listen<'_>) -> Result<(), Refusal> {
    check_pattern(listen.subject)?;
    let words = listen.subject.split('.').count();
    if words > TOPIC_WORDS_MAX {
        let text = format!("a subject of {words} words has more than {TOPIC_WORDS_MAX}");
        return Err(Refusal::new(RefusalKind::PreconditionFailed, text));
    }
    if listen.group.unwrap_or_default().len().max(listen.name.len()) > SUBJECT_BYTES_MAX {
        let text = format!(
            "the names of a listener and of a group have at most {SUBJECT_BYTES_MAX} bytes"
        );
        return Err(Refusal::new(RefusalKind::LimitExceeded, text));
    }
    Ok(())
}

/// A connection's user; the host's own connections have none.
fn user_of(connections: &[Option<Connection>], id: ConnectionId) -> Option<&Arc<str>> {
    let connection = connections.get(id.0 as usize)?.as_ref()?;
    Some(connection.grant.as_ref()?.user())
}

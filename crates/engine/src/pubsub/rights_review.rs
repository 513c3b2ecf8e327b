//! Users' rights have changed: those who listen are judged anew, some a turn, however many they are.
//! Until a user's listeners are judged, each message for them is: what is forbidden is heard by nobody from
//! now on, and what is no longer forbidden is heard.

use super::Direct;
use super::forward::Subjects;
use crate::access::Audible;
use crate::engine::Engine;
use crate::pubsub::subscribers::Member;
use crate::storage::record::Record;
use crate::{Effects, Listen};
use std::collections::BTreeMap;

/// Work of one turn: listeners that are looked at, and what judging some of them counts for.
const WORK_AT_ONCE: usize = 4_096;
/// So many looks does judging a listener count for, and one more for each rule.
const JUDGING: usize = 8;
/// So many more does ending it count for.
const ENDING: usize = 16;

/// The users whose listeners are being judged. All listeners are looked at, one after the other, round and
/// round while there are such users.
#[derive(Debug, Default)]
pub(super) struct Reviews {
    users: BTreeMap<String, Review>,
    /// The slot of the next listener.
    next: u32,
    rounds: u64,
}

/// One user's.
#[derive(Debug)]
struct Review {
    /// It ends with this slot of that round: all who listened when it began were looked at then. Who comes
    /// later is judged as it comes.
    until: (u64, u32),
    /// What the user may hear now, by the slot of the virtual host.
    audible: BTreeMap<u32, Audible>,
    /// In all others: nothing, where it was deleted since the review began. None: as its listeners were
    /// found when they were last judged.
    elsewhere: Option<Audible>,
}

impl Reviews {
    pub(super) fn are_under_way(&self) -> bool {
        !self.users.is_empty()
    }

    /// Whether its user may not hear messages to these subjects, where its rights are reviewed.
    pub(super) fn forbid(&self, member: &Member, subjects: Subjects<'_>) -> Option<bool> {
        let review = self.of(member)?;
        let audible = review.audible.get(&member.vhost).or(review.elsewhere.as_ref())?;
        Some(!audible.includes(|| subjects.each()))
    }

    /// Whether its listeners are to be judged.
    fn concern(&self, member: &Member) -> bool {
        self.of(member).is_some()
    }

    fn of(&self, member: &Member) -> Option<&Review> {
        self.users.get(member.user.as_deref()?)
    }

    /// Begins to review a user's rights in a virtual host, or in all; or begins again.
    fn begin(&mut self, user: &str, changed: Option<(u32, Audible)>) {
        let until = (self.rounds + 1, self.next);
        let review = self.users.entry(user.to_owned()).or_insert_with(|| Review {
            until,
            audible: BTreeMap::new(),
            elsewhere: None,
        });
        review.until = until;
        match changed {
            Some((vhost, audible)) => drop(review.audible.insert(vhost, audible)),
            None => {
                review.audible.clear();
                review.elsewhere = Some(Audible::Nothing);
            }
        }
    }

    /// Ends those whose listeners were all looked at.
    fn end(&mut self) {
        let at = (self.rounds, self.next);
        self.users.retain(|_, review| review.until > at);
    }

    /// The slot of the next listener to look at, of so many slots.
    fn next(&mut self, slots: usize) -> u32 {
        if self.next as usize >= slots {
            self.next = 0;
            self.rounds += 1;
        }
        self.next += 1;
        self.next - 1
    }

    /// A virtual host goes, and another one may have its slot next.
    pub(super) fn vhost_left(&mut self, vhost: u32) {
        self.users.values_mut().for_each(|review| drop(review.audible.remove(&vhost)));
    }
}

impl Engine {
    /// Begins to judge those anew who listen and whose user's rights a record has changed. Who may not listen
    /// any more is told and hears nothing from now on; who still may hears what is not forbidden inside its
    /// pattern now.
    pub(crate) fn review_listeners<F: Effects>(&mut self, record: &Record<'_>, fx: &mut F) {
        let (user, vhost) = match record {
            Record::PermissionsSet { user, vhost, .. }
            | Record::SubjectPermissionsSet { user, vhost, .. }
            | Record::PermissionsCleared { user, vhost } => (*user, Some(*vhost)),
            Record::UserDeleted { name } => (*name, None),
            _ => return,
        };
        if self.access.listening.here(user) == 0 {
            return;
        }
        let changed = match vhost.map(|name| (self.vhost_slots.get(name), name)) {
            // No connection is in a virtual host that has gone.
            Some((None, _)) => return,
            Some((Some(slot), name)) => Some((*slot, self.access.audible(user, name))),
            None => None,
        };
        self.direct.sessions.reviews.begin(user, changed);
        self.direct.sessions.reconsider();
        self.review_some_listeners(fx);
    }

    /// Looks at the next listeners, as many as go in one turn, and judges those whose users are reviewed.
    pub(super) fn review_some_listeners<F: Effects>(&mut self, fx: &mut F) {
        let mut left = WORK_AT_ONCE;
        let mut forbidden = Vec::new();
        let slots = self.direct.listeners.slots();
        for _ in 0..slots {
            if left == 0 {
                break;
            }
            let slot = self.direct.sessions.reviews.next(slots);
            let (work, may_listen) = self.judge_listener(slot);
            left = left.saturating_sub(work);
            if !may_listen {
                forbidden.push(slot);
            }
        }
        self.direct.sessions.reviews.end();
        self.direct.sessions.reconsider();
        // Once all is looked at that is looked at now: to take some out moves others.
        for slot in forbidden {
            self.forbid_listener(slot, fx);
        }
    }

    /// Judges a listener, if there is one in that slot, and its user is reviewed; what it may not hear is
    /// brought up to date. Returns for how many looks that counts, and whether it may go on.
    fn judge_listener(&mut self, slot: u32) -> (usize, bool) {
        const UNCONCERNED: (usize, bool) = (1, true);
        let Engine { access, connections, vhosts, direct, .. } = self;
        let Direct { listeners, sessions, .. } = direct;
        let Some(listener) = listeners.get_mut(slot) else { return UNCONCERNED };
        let Some(member) = sessions.present(listener.whose) else { return UNCONCERNED };
        if !sessions.reviews.concern(member) {
            return UNCONCERNED;
        }
        let connection = connections.get_mut(listener.id.connection.0 as usize);
        let grant = connection.and_then(|connection| connection.as_mut()?.grant.as_mut());
        let Some(grant) = grant else { return UNCONCERNED };
        let host = vhosts.get(listener.vhost).expect("sessions end first");
        let (pattern, ..) = host.interest.place(listener.place);
        let judged = grant.check_listen(access, pattern);
        let work = JUDGING + grant.subjects().map_or(0, |subjects| subjects.listen.len());
        match judged {
            Ok(exceptions) => {
                listener.exceptions = exceptions.into();
                (work, true)
            }
            Err(_) => (work + ENDING, false),
        }
    }

    /// Ends a listener that its user may not have any more, and tells its session.
    fn forbid_listener<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let listener = self.direct.listeners.get(slot).expect("it was found just now");
        let host = self.vhosts.get(listener.vhost).expect("sessions end first");
        let (subject, group, _) = host.interest.place(listener.place);
        let listened = Listen { subject, group, name: &listener.name, laggard: listener.laggard };
        fx.forbidden(listener.id, &listened);
        self.end_listener(slot, fx);
    }
}

//! Reviews subscribers after their users' rights have changed, a bounded number a turn. Until the
//! subscribers of a user are reviewed, each message for them is checked, so that the new rights
//! hold immediately.

use super::Direct;
use super::forward::Subjects;
use crate::access::Audible;
use crate::engine::Engine;
use crate::pubsub::subscribers::Member;
use crate::storage::record::Record;
use crate::{Effects, PermissionListing, Subscribe};
use std::collections::BTreeMap;

/// Work of one turn: subscribers that are looked at, and what judging some of them counts for.
const WORK_AT_ONCE: usize = 4_096;
/// Looks that judging a subscriber counts for, and one more for each rule.
const JUDGING: usize = 8;
/// Further looks that ending it counts for.
const ENDING: usize = 16;

/// The users whose subscribers are being reviewed. All subscribers are looked at, one after the
/// other, round and round while there are such users.
#[derive(Debug, Default)]
pub(super) struct Reviews {
    users: BTreeMap<String, Review>,
    /// The slot of the next subscriber.
    next: u32,
    rounds: u64,
}

/// One user's.
#[derive(Debug, Default)]
struct Review {
    /// It ends with this slot of that round: all who subscribed when it began were looked at then. Who comes
    /// later is judged as it comes.
    until: (u64, u32),
    /// What the user may hear now, by the slot of the virtual host.
    audible: BTreeMap<u32, Audible>,
    /// In all others: nothing, where it was deleted since the review began. None: as its subscribers were
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
        Some(!audible.includes(subjects.each()))
    }

    /// Whether its subscribers are to be judged.
    fn concern(&self, member: &Member) -> bool {
        self.of(member).is_some()
    }

    fn of(&self, member: &Member) -> Option<&Review> {
        self.users.get(member.user.as_deref()?)
    }

    /// Begins to review a user's rights in a virtual host, or in all; or begins again.
    fn begin(&mut self, user: &str, changed: Option<(u32, Audible)>) {
        let review = self.users.entry(user.to_owned()).or_default();
        review.until = (self.rounds + 1, self.next);
        match changed {
            Some((vhost, audible)) => drop(review.audible.insert(vhost, audible)),
            None => {
                review.audible.clear();
                review.elsewhere = Some(Audible::Nothing);
            }
        }
    }

    /// Ends those whose subscribers were all looked at.
    fn end(&mut self) {
        let at = (self.rounds, self.next);
        self.users.retain(|_, review| review.until > at);
    }

    /// The slot of the next subscriber to look at, of `slots` slots.
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
    /// Begins to review the subscribers of users whose rights a record changes. A subscriber
    /// that lost its right is ended with a notice and receives nothing from now on; one that
    /// kept it receives what is allowed inside its pattern now.
    pub(crate) fn review_subscribers<F: Effects>(&mut self, record: &Record<'_>, fx: &mut F) {
        let (user, vhost) = match record {
            Record::PermissionsSet(PermissionListing { user, vhost, .. })
            | Record::SubjectPermissionsSet { user, vhost, .. }
            | Record::PermissionsCleared { user, vhost } => (*user, Some(*vhost)),
            Record::UserDeleted { name } => (*name, None),
            _ => return,
        };
        if self.access.subscribing.here(user) == 0 {
            return;
        }
        let changed = match vhost.map(|name| (self.topology.vhost_slots.get(name), name)) {
            // No connection is in a virtual host that has gone.
            Some((None, _)) => return,
            Some((Some(slot), name)) => Some((*slot, self.access.audible(user, name, None))),
            None => None,
        };
        self.pubsub.channels.reviews.begin(user, changed);
        self.pubsub.channels.reconsider();
        self.review_some_subscribers(fx);
    }

    /// Looks at the next subscribers, as many as go in one turn, and judges those whose users are reviewed.
    pub(super) fn review_some_subscribers<F: Effects>(&mut self, fx: &mut F) {
        let mut left = WORK_AT_ONCE;
        let mut forbidden = Vec::new();
        let slots = self.pubsub.subscribers.slots();
        for _ in 0..slots {
            if left == 0 {
                break;
            }
            let slot = self.pubsub.channels.reviews.next(slots);
            let (work, may_subscribe) = self.judge_subscriber(slot);
            left = left.saturating_sub(work);
            if !may_subscribe {
                forbidden.push(slot);
            }
        }
        self.pubsub.channels.reviews.end();
        self.pubsub.channels.reconsider();
        // Once all is looked at that is looked at now: to take some out moves others.
        for slot in forbidden {
            self.forbid_subscriber(slot, fx);
        }
    }

    /// Judges a subscriber, if there is one in that slot, and its user is reviewed; what it may not hear is
    /// brought up to date. Returns for how many looks that counts, and whether it may go on.
    fn judge_subscriber(&mut self, slot: u32) -> (usize, bool) {
        const UNCONCERNED: (usize, bool) = (1, true);
        let Engine { access, clients, topology, pubsub, .. } = self;
        let Direct { subscribers, channels, .. } = pubsub;
        let Some(subscriber) = subscribers.get_mut(slot) else { return UNCONCERNED };
        let Some(member) = channels.present(subscriber.whose) else { return UNCONCERNED };
        if !channels.reviews.concern(member) {
            return UNCONCERNED;
        }
        let Some(grant) = clients.grant(subscriber.id.connection) else { return UNCONCERNED };
        let (pattern, ..) = topology.vhosts[subscriber.vhost].interest.place(subscriber.place);
        let judged = grant.check_subscribe(access, pattern);
        let work = JUDGING + grant.subjects().map_or(0, |subjects| subjects.subscribe.len());
        match judged {
            Ok(exceptions) => {
                subscriber.exceptions = exceptions.into();
                (work, true)
            }
            Err(_) => (work + ENDING, false),
        }
    }

    /// Ends a subscriber that its user may not have any more, and tells its channel.
    fn forbid_subscriber<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let subscriber = &self.pubsub.subscribers[slot];
        let interest = &self.topology.vhosts[subscriber.vhost].interest;
        let (subject, group, _) = interest.place(subscriber.place);
        let subscribed = Subscribe {
            subject,
            group,
            name: &subscriber.name,
            slow_consumer_policy: subscriber.slow_consumer_policy,
        };
        fx.subscription_revoked(subscriber.id, &subscribed);
        self.end_subscriber(slot, fx);
    }
}

//! Channels with subscriptions: their users, which of them have ended, and whose rights are being
//! reviewed. An ended channel receives nothing more; its subscribers are removed a part at a time.
//! Independent of patterns.

use super::forward::Subjects;
use crate::foundation::slab::Slab;
use crate::pubsub::rights_review::Reviews;
use crate::pubsub::subscribe::Subscribers;
use std::collections::VecDeque;
use std::sync::Arc;

/// Subscribers that are taken out in one turn, or somewhat more.
pub(super) const TAKEN_OUT_MAX: usize = 500;

/// Channels that subscribe or have subscribed.
#[derive(Debug, Default)]
pub(super) struct Channels {
    members: Slab<Member>,
    /// The subscribers of those that have gone, which are taken out a part at a time.
    leaving: VecDeque<Subscribers>,
    pub(super) reviews: Reviews,
    /// Some have gone, or may not hear all that they subscribe to.
    pub(super) is_unsettled: bool,
}

/// A channel.
#[derive(Debug)]
pub(super) struct Member {
    /// The host's own connections have none.
    pub(super) user: Option<Arc<str>>,
    /// The slot of its virtual host.
    pub(super) vhost: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Present,
    Gone,
    /// So has its virtual host.
    Homeless,
}

/// Some of the subscribers of a channel that has gone.
pub(super) struct Part {
    pub(super) slots: Vec<u32>,
    /// Whose they are.
    pub(super) user: Option<Arc<str>>,
    /// Their virtual host has gone, too, and with it all that it knew of them.
    pub(super) is_homeless: bool,
}

impl Channels {
    /// Whether there are subscribers of channels that have gone.
    pub(super) fn are_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Looks again whether all are there and may hear what they subscribe to.
    pub(super) fn reconsider(&mut self) {
        self.is_unsettled = self.are_leaving() || self.reviews.are_under_way();
    }

    /// One comes; its place.
    pub(super) fn come(&mut self, user: Option<Arc<str>>, vhost: u32) -> u32 {
        self.members.insert(Member { user, vhost, state: State::Present })
    }

    /// One that is there.
    #[inline]
    pub(super) fn present(&self, whose: u32) -> Option<&Member> {
        self.members.get(whose).filter(|member| member.state == State::Present)
    }

    /// The user of one that is there, or that subscribers are still there of.
    pub(super) fn user_of(&self, whose: u32) -> Option<Arc<str>> {
        self.members.get(whose)?.user.clone()
    }

    /// Whether one has gone that subscribers are still there of.
    #[inline]
    pub(super) fn has_left(&self, whose: u32) -> bool {
        self.is_unsettled && self.present(whose).is_none()
    }

    /// Whether a subscriber hears nothing of messages to `subjects`, since its channel has gone, or as its
    /// user's rights are now; none: as it was found when it was last judged.
    #[inline]
    pub(super) fn ruling(&self, whose: u32, subjects: Subjects<'_>) -> Option<bool> {
        if self.is_unsettled { self.rule(whose, subjects) } else { None }
    }

    #[cold]
    fn rule(&self, whose: u32, subjects: Subjects<'_>) -> Option<bool> {
        match self.present(whose) {
            Some(member) => self.reviews.forbid(member, subjects),
            None => Some(true),
        }
    }

    /// One goes.
    pub(super) fn leave(&mut self, subscribers: Subscribers) {
        let Some(whose) = subscribers.whose else { return };
        self.members.get_mut(whose).expect("it subscribed").state = State::Gone;
        self.leaving.push_back(subscribers);
        self.is_unsettled = true;
    }

    /// A virtual host goes, which no channel is in any more.
    pub(super) fn vhost_left(&mut self, vhost: u32) {
        for whose in self.leaving.iter().filter_map(|subscribers| subscribers.whose) {
            if let Some(member) = self.members.get_mut(whose).filter(|it| it.vhost == vhost) {
                member.state = State::Homeless;
            }
        }
        self.reviews.vhost_left(vhost);
    }

    /// Takes the next of those who are leaving, as many as go in one turn; says whether there is time for
    /// more.
    pub(super) fn next_leaving(&mut self) -> (Vec<Part>, bool) {
        let (mut parts, mut count) = (Vec::new(), 0);
        while count < TAKEN_OUT_MAX
            && let Some(part) = self.next_part()
        {
            // One who has none any more is work, too.
            count += part.slots.len() + 1;
            parts.push(part);
        }
        self.reconsider();
        (parts, count < TAKEN_OUT_MAX)
    }

    fn next_part(&mut self) -> Option<Part> {
        let subscribers = self.leaving.front_mut()?;
        let whose = subscribers.whose.expect("those who leave have subscribed");
        let slots = subscribers.slots.take_part().into_iter().flatten().collect();
        let is_last = subscribers.slots.len() == 0;
        let member = self.members.get(whose);
        let is_homeless = member.is_some_and(|member| member.state == State::Homeless);
        let user = self.user_of(whose);
        if is_last {
            self.members.remove(whose);
            self.leaving.pop_front();
        }
        Some(Part { slots, user, is_homeless })
    }

    /// How many are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }
}

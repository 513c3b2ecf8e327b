//! A direct message on its way to very many subscribers, and which of them are next.

use super::forward::Subjects;
use super::group::{Part, ToGroups};
use super::interest::Interest;
use crate::foundation::shared_body::copy_for;
use crate::{ConnectionId, MessageView, OwnedMessage};

/// Such a message.
#[derive(Debug)]
pub(crate) struct ToSubscribers {
    pub(crate) vhost: u32,
    pub(super) message: OwnedMessage,
    /// As [`Subjects`] has them.
    pub(super) subject: Box<str>,
    pub(super) further: Box<[u8]>,
    /// The publisher's connection, if it is on this shard.
    pub(super) publisher: Option<ConnectionId>,
    /// As [`Forward::order`](super::forward::Forward::order) has it.
    pub(super) sender: Option<ConnectionId>,
    /// A connection that does not hear it.
    pub(super) silent: Option<ConnectionId>,
    /// Which groups get it as well.
    pub(super) groups: ToGroups,
    /// How many subscribers there had been. Those who came later do not get it.
    pub(super) since: u32,
    pub(super) number: u64,
    /// The patterns that match; the first `at` have been handed out.
    pub(super) leaves: Vec<u32>,
    pub(super) at: usize,
    /// The subscribers of the next pattern, once it is begun, and how many of them have it.
    pub(super) slots: Option<Vec<u32>>,
    pub(super) next: usize,
    /// The place of the next group of that pattern.
    pub(super) group: u32,
    pub(super) has_free: bool,
    pub(super) heard: u64,
}

impl ToSubscribers {
    /// `since`: how many subscribers there have been; `leaves`: the patterns that match.
    pub(super) fn new(
        to: Wide<'_>,
        message: &MessageView<'_>,
        since: u32,
        leaves: Vec<u32>,
    ) -> ToSubscribers {
        let Wide { vhost, subjects, number, publisher, sender, silent, groups, width } = to;
        let shared = message.shared.cloned().or_else(|| copy_for(message.body, width));
        ToSubscribers {
            vhost,
            message: OwnedMessage::of(message, shared),
            subject: subjects.first.into(),
            further: subjects.further.into(),
            publisher,
            sender,
            silent,
            groups,
            since,
            number,
            leaves,
            at: 0,
            slots: None,
            next: 0,
            group: 0,
            has_free: false,
            heard: 0,
        }
    }

    /// What it takes in memory.
    pub(crate) fn message_bytes(&self) -> u64 {
        let lists = self.subject.len() + self.further.len() + self.leaves.len() * size_of::<u32>();
        (size_of::<ToSubscribers>() + self.message.bytes() + lists) as u64
    }

    /// What the list of a pattern's subscribers takes.
    pub(crate) fn list_bytes(&self) -> u64 {
        (self.slots.as_ref().map_or(0, Vec::capacity) * size_of::<u32>()) as u64
    }

    /// Nobody else gets it.
    pub(crate) fn end(&mut self) {
        self.leaves.clear();
        self.slots = None;
    }

    /// Whether the subscriber with that tag came after the message.
    pub(super) fn is_later(&self, tag: u64) -> bool {
        ((tag >> 32) as u32).wrapping_sub(self.since).cast_signed() > 0
    }

    /// The next subscribers of the pattern that is handed out, at most `most`.
    pub(super) fn next_slots(
        &mut self,
        interest: &Interest,
        most: usize,
    ) -> Option<std::ops::Range<usize>> {
        let leaf = *self.leaves.get(self.at)?;
        let slots = self
            .slots
            .get_or_insert_with(|| interest.leaf(leaf).map_or(Vec::new(), |leaf| leaf.all.clone()));
        let end = slots.len().min(self.next + most);
        let part = self.next..end;
        self.next = end;
        (!part.is_empty()).then_some(part)
    }

    /// The next group of that pattern, unless an earlier one has it too: all its parts.
    pub(super) fn next_group(&mut self, interest: &Interest, parts: &mut Vec<Part>) -> NextGroup {
        let Some(&leaf) = self.leaves.get(self.at).filter(|_| self.groups != ToGroups::None) else {
            return NextGroup::None;
        };
        let groups = interest.leaf(leaf).and_then(|leaf| leaf.groups());
        let Some((place, group)) = groups.and_then(|groups| groups.next_from(self.group)) else {
            return NextGroup::None;
        };
        self.group = place + 1;
        let is_in = |leaf: &u32| {
            let groups = interest.leaf(*leaf).and_then(|leaf| leaf.groups());
            groups.is_some_and(|groups| groups.find(&group.name, group.hash).is_some())
        };
        let is_shared = self.groups == ToGroups::Unshared && interest.is_shared(&group.name);
        if is_shared || self.leaves[..self.at].iter().any(is_in) {
            return NextGroup::Done;
        }
        interest.gather_named(&self.leaves, &group.name, parts);
        NextGroup::Some
    }
}

/// What is to be done about a group.
pub(super) enum NextGroup {
    Some,
    /// It has had the message.
    Done,
    /// There are no more.
    None,
}

/// Who gets a message, and how.
#[derive(Clone, Copy)]
pub(super) struct Wide<'a> {
    pub(super) vhost: u32,
    pub(super) subjects: Subjects<'a>,
    pub(super) number: u64,
    /// To wait for those who hear it.
    pub(super) publisher: Option<ConnectionId>,
    /// Whose further input waits until all have it.
    pub(super) sender: Option<ConnectionId>,
    pub(super) silent: Option<ConnectionId>,
    pub(super) groups: ToGroups,
    /// Subscribers and groups.
    pub(super) width: usize,
}

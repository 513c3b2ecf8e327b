//! Handing out messages of groups: to the consumer of their group, past those whose consumer is busy.

use super::dispatch::HeldUp;
use super::message_groups::Groups;
use crate::engine::Engine;
use crate::interface::limits::MESSAGE_BYTES;
use crate::queue::blob::Blob;
use crate::queue::entry::Entry;
use crate::queue::lane::Browsed;
use crate::queue::lanes::Lanes;
use crate::queue::notes::{ConsumerKey, Waiting};
use crate::{Content, Effects, MessageGroup, Time};

/// Messages that are looked at for one that can be handed out, before others get their turn.
const LOOKED_AT_ONCE: usize = 256;
/// A change of what a queue knows for its consumers from which on it is counted.
const COUNTED_BYTES: u64 = 4 << 10;
/// What a message that is looked at counts for, in bytes.
const LOOK_BYTES: u64 = 64;

/// What becomes of a message of a group, or of none.
enum Chosen {
    Taker(u32),
    /// It waits for this consumer.
    Aside(ConsumerKey),
    /// No consumer can take anything.
    Nobody,
}

impl Engine {
    /// Hands out one message of a queue with groups; returns what that counts for. `None`: no consumer can
    /// take one.
    #[cold]
    pub(super) fn hand_out_grouped<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        fx: &mut F,
    ) -> Option<u64> {
        if let Some(handed) = self.hand_out_aside(now, slot, fx) {
            return Some(handed);
        }
        for _ in 0..LOOKED_AT_ONCE {
            if self.queues.get(slot).is_none_or(|queue| queue.able.is_empty()) {
                self.refill(slot, fx);
                return None;
            }
            let (lane, entry) = self.next_unseen(slot, fx)?;
            let Some(message) = entry.message.as_ref().filter(|_| entry.expires > now) else {
                self.expire_barred(now, slot, entry.seq, fx);
                return Some(MESSAGE_BYTES);
            };
            let (group, place) = (self.group_of_stored(message), Waiting::new(lane, entry.seq));
            match self.choose_taker(slot, group, Some(place), entry.bytes, fx) {
                Chosen::Taker(taker) => return self.hand_out_of_group(now, slot, taker, place, fx),
                Chosen::Aside(whose) => {
                    let groups = self.queues[slot].groups.as_mut()?;
                    groups.set_aside(whose, place);
                }
                Chosen::Nobody => {
                    self.refill(slot, fx);
                    return None;
                }
            }
        }
        Some(LOOKED_AT_ONCE as u64 * LOOK_BYTES)
    }

    /// The first message in memory that was not looked at, with its lane.
    fn next_unseen<F: Effects>(&mut self, slot: u32, fx: &mut F) -> Option<(u8, Entry)> {
        let queue = &mut self.queues[slot];
        let groups = queue.groups.as_mut()?;
        let mut lane = queue.lanes.len();
        while let Some(next) = lane.checked_sub(1) {
            match queue.lanes.browse(next, groups.next(next)) {
                // It is handed out in another way.
                Some(Browsed::Entry(entry))
                    if queue.notes.as_ref().is_some_and(|notes| notes.is_barred(entry.seq)) =>
                {
                    groups.passed(next, entry.seq);
                    continue;
                }
                Some(Browsed::Entry(entry)) if !entry.is_cold() => {
                    return Some((u8::try_from(next).ok()?, entry));
                }
                Some(_) => {
                    self.refill(slot, fx);
                    return None;
                }
                None => lane = next,
            }
        }
        groups.is_complete = true;
        None
    }

    /// Hands out the first message that waits for a consumer which can take it now.
    fn hand_out_aside<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) -> Option<u64> {
        let mut index = 0;
        while let Some(&consumer) = self.queues[slot].able.get(index) {
            let whose = self.whose(consumer);
            let queue = &mut self.queues[slot];
            let groups = queue.groups.as_mut()?;
            let first = groups.first_aside(whose);
            let lanes = &mut queue.lanes;
            let Some(place) = first.filter(|place| is_next(groups, lanes, *place)) else {
                index += 1;
                continue;
            };
            let Some(entry) = queue.lanes[place.lane()].find(place.seq) else {
                groups.drop_aside(whose, place);
                continue;
            };
            let bytes = entry.bytes;
            if entry.expires <= now {
                self.expire_barred(now, slot, place.seq, fx);
                return Some(MESSAGE_BYTES);
            }
            if entry.is_cold() {
                self.refill(slot, fx);
                index += 1;
            } else if self.is_taking(slot, index, bytes, fx) {
                return self.hand_out_of_group(now, slot, consumer, place, fx);
            } else {
                // Others of its channel may have left the list with it.
                index = 0;
            }
        }
        None
    }

    /// Hands out the message in a place, which is in memory.
    fn hand_out_of_group<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        taker: u32,
        place: Waiting,
        fx: &mut F,
    ) -> Option<u64> {
        let entry = self.queues[slot].remove(place.seq)?;
        let counts = MESSAGE_BYTES + u64::from(entry.bytes);
        let group = entry.message.as_ref().and_then(|message| self.group_of_stored(message));
        let whose = self.whose(taker);
        let groups = self.queues[slot].groups.as_mut()?;
        groups.drop_aside(whose, place);
        if let Some(group) = group {
            groups.taken(group, whose);
        }
        self.hand_out_stored(now, taker, entry, fx);
        Some(counts)
    }

    /// The consumer that takes a message which has just come into a queue where nothing waits.
    #[cold]
    pub(crate) fn taker_of_group<F: Effects>(
        &mut self,
        slot: u32,
        content: &Content<'_>,
        fx: &F,
    ) -> Option<u32> {
        let group = (self.options.conventions.read_group)(content);
        let bytes = content.body.len() as u32;
        let Chosen::Taker(taker) = self.choose_taker(slot, group, None, bytes, fx) else {
            return None;
        };
        let whose = self.whose(taker);
        if let (Some(group), Some(groups)) = (group, &mut self.queues[slot].groups) {
            groups.taken(group, whose);
            self.count_known(slot);
        }
        Some(taker)
    }

    /// Who takes a message; `place`: where it waits, if it does.
    fn choose_taker<F: Effects>(
        &mut self,
        slot: u32,
        group: Option<MessageGroup>,
        place: Option<Waiting>,
        bytes: u32,
        fx: &F,
    ) -> Chosen {
        let queue = &self.queues[slot];
        let groups = queue.groups.as_ref();
        let owner = group.and_then(|group| groups?.owner(group));
        let Some(whose) = owner else {
            return self.taker(slot, None, bytes, fx).map_or(Chosen::Nobody, Chosen::Taker);
        };
        let consumer = self.clients.consumers.get(whose.slot);
        let is_there = consumer.is_some_and(|it| it.incarnation == whose.incarnation);
        // Messages that wait for the same consumer may be of the same group.
        let waiting = groups.and_then(|groups| groups.first_aside(whose));
        let is_first = waiting.is_none_or(|first| place.is_some_and(|place| place <= first));
        if is_there
            && is_first
            && let Some(index) = queue.able.iter().position(|it| *it == whose.slot)
            && self.is_taking(slot, index, bytes, fx)
        {
            return Chosen::Taker(whose.slot);
        }
        if !is_there && !groups_are_ending(&self.queues[slot], whose) {
            return self.taker(slot, None, bytes, fx).map_or(Chosen::Nobody, Chosen::Taker);
        }
        Chosen::Aside(whose)
    }

    /// Whether the consumer at an index of those able takes a message of `bytes`; if not, it is taken off.
    fn is_taking<F: Effects>(&mut self, slot: u32, index: usize, bytes: u32, fx: &F) -> bool {
        let candidate = self.queues[slot].able[index];
        match self.held_up(candidate, bytes, fx) {
            None => return true,
            Some(HeldUp::Itself) => {
                self.queues[slot].able.remove(index);
                self.clients.consumers[candidate].is_able = false;
            }
            Some(HeldUp::Channel) => self.hold_up(slot, None, index, candidate),
        }
        false
    }

    /// Counts what a queue knows for its consumers as memory of the user who declared it, where that has
    /// changed by much.
    pub(crate) fn count_known(&mut self, slot: u32) {
        let Some(queue) = self.queues.get_mut(slot) else { return };
        let bytes = queue.groups.as_ref().map_or(0, |groups| groups.bytes())
            + queue.filtered.as_ref().map_or(0, |filtered| filtered.bytes());
        if bytes.abs_diff(queue.known_bytes) < COUNTED_BYTES && bytes > 0 {
            return;
        }
        let before = std::mem::replace(&mut queue.known_bytes, bytes);
        let tally = &mut self.topology.vhosts[queue.vhost].router.tally;
        tally.went(queue.by, before);
        tally.came(queue.by, bytes);
        self.definitions.take(tally);
    }

    fn group_of_stored(&self, message: &Blob) -> Option<MessageGroup> {
        (self.options.conventions.read_group)(&message.stored().content)
    }

    fn whose(&self, slot: u32) -> ConsumerKey {
        ConsumerKey { slot, incarnation: self.clients.consumers[slot].incarnation }
    }

    /// A consumer of a queue has ended with that many messages unsettled.
    pub(super) fn group_consumer_ended(
        &mut self,
        queue: u32,
        slot: u32,
        incarnation: u32,
        unsettled: u32,
    ) {
        if let Some(queue_there) = self.queues.get_mut(queue)
            && let Some(groups) = &mut queue_there.groups
        {
            groups.consumer_ended(ConsumerKey { slot, incarnation }, unsettled);
            self.count_known(queue);
            self.mark_dirty(queue);
        }
    }

    /// A delivery to a consumer of a queue with groups is settled.
    #[cold]
    pub(super) fn group_settled(&mut self, queue: u32, slot: u32, incarnation: u32) {
        let groups = self.queues.get_mut(queue).and_then(|queue| queue.groups.as_mut());
        if groups.is_some_and(|groups| groups.settled(ConsumerKey { slot, incarnation })) {
            self.mark_dirty(queue);
        }
    }

    /// Whether a queue with groups has nothing that could be delivered to a consumer.
    pub(super) fn is_group_drained(&self, queue: u32, consumer: u32) -> bool {
        let whose = self.whose(consumer);
        let groups = self.queues.get(queue).and_then(|queue| queue.groups.as_ref());
        groups.is_some_and(|groups| groups.is_complete && groups.first_aside(whose).is_none())
    }
}

/// Whether everything before a place was looked at.
fn is_next(groups: &Groups, lanes: &mut Lanes, place: Waiting) -> bool {
    let mut above = (place.lane() + 1..lanes.len()).map(|lane| (lane, groups.next(lane)));
    groups.next(place.lane()) > place.seq
        && above.all(|(lane, next)| lanes.browse(lane, next).is_none())
}

fn groups_are_ending(queue: &crate::queue::Queue, whose: ConsumerKey) -> bool {
    queue.groups.as_ref().is_some_and(|groups| groups.is_ending(whose))
}

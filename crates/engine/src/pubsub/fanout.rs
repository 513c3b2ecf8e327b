//! Hands one direct message to its subscribers, and counts what became of it.

use super::forward::{Audience, Forward};
use super::group::{Part, Turn};
use super::interest::Interest;
use crate::foundation::shared_body::copy_for;
use crate::foundation::slab::Slab;
use crate::pubsub::subscribe::Subscriber;
use crate::{Effects, MessageView, Reached, SendOutcome, ShardId, Shards};

/// One message that is handed out, and its number.
#[derive(Clone, Copy)]
pub(super) struct Emission<'a> {
    pub(super) number: u64,
    /// As [`crate::DirectMessage::route`].
    pub(super) cached_route: u64,
    pub(super) message: &'a MessageView<'a>,
}

/// All subscribers, and the slots of those that are to end.
pub(super) struct Members<'a> {
    pub(super) subscribers: &'a mut Slab<Subscriber>,
    pub(super) spent: &'a mut Vec<u32>,
}

/// The parts of a group, and whose turn it is.
#[derive(Clone, Copy)]
pub(super) struct PartTurn<'a> {
    pub(super) parts: &'a [Part],
    /// The index of the part that is offered a message first.
    pub(super) first: usize,
}

/// A message of this shard that is handed to a group.
#[derive(Clone, Copy)]
pub(super) struct ToGroup<'a> {
    pub(super) emission: Emission<'a>,
    /// As other shards get it.
    pub(super) forward: Forward<'a>,
    /// Its publisher's own subscribers hear it too.
    pub(super) echo: bool,
}

/// What became of a message that was offered to the members of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    /// One has it.
    Taken,
    /// All who may hear it are behind.
    InVain,
    /// There is none who may hear it.
    ToNobody,
}

/// What looking at one subscriber counts for in bytes, besides the message.
const LOOK_BYTES: u64 = 128;

/// Counts who heard one message.
#[derive(Debug, Default)]
pub(super) struct Fanout {
    pub(super) heard: u64,
    pub(super) missed: u64,
    /// Subscribers, patterns and groups that were looked at, whether or not they heard it.
    pub(super) looked_at: u64,
    /// A subscriber has little unsent.
    pub(super) has_free: bool,
}

impl Fanout {
    #[inline]
    pub(super) fn count(&mut self, heard: SendOutcome) {
        self.count_each(heard, 1);
    }

    /// Counts the outcome for each of `messages` messages.
    #[inline]
    pub(super) fn count_each(&mut self, heard: SendOutcome, messages: u64) {
        match heard {
            SendOutcome::Sent => {
                self.heard += messages;
                self.has_free = true;
            }
            SendOutcome::Congested => self.heard += messages,
            SendOutcome::Dropped => self.missed += messages,
        }
    }

    /// The work of looking at one subscriber for `count` messages of `bytes` in all.
    #[inline]
    pub(super) fn look_bytes(count: u64, bytes: usize) -> u64 {
        count * LOOK_BYTES + bytes as u64
    }

    /// Hands the message to all of them.
    #[inline]
    pub(super) fn count_all<F: Effects>(
        &mut self,
        all: &[u32],
        subscribers: &mut Slab<Subscriber>,
        spent: &mut Vec<u32>,
        is_deaf: impl Fn(&Subscriber) -> bool,
        emission: Emission<'_>,
        fx: &mut F,
    ) {
        self.looked_at += all.len() as u64;
        let copy = match emission.message.shared {
            None => copy_for(emission.message.body, all.len()),
            Some(_) => None,
        };
        let shared = copy.as_ref().or(emission.message.shared);
        let message = MessageView { shared, ..*emission.message };
        let emission = Emission { message: &message, ..emission };
        for &slot in all {
            let Some(subscriber) = subscribers.get_mut(slot) else { continue };
            if !is_deaf(subscriber) {
                self.count(subscriber.hear(emission, fx));
                if subscriber.heard >= subscriber.until {
                    spent.push(slot);
                }
            }
        }
    }

    /// Offers the message to the members of a group here, those of part `first` before others and in each
    /// the next one first, until one takes it.
    #[inline]
    pub(super) fn offer<F: Effects>(
        &mut self,
        interest: &mut Interest,
        turn: PartTurn<'_>,
        members: &mut Members<'_>,
        is_deaf: impl Fn(&Subscriber) -> bool,
        emission: Emission<'_>,
        fx: &mut F,
    ) -> Offered {
        let mut offered = Offered::ToNobody;
        let (before, after) = turn.parts.split_at(turn.first);
        for &part in after.iter().chain(before) {
            let group = interest.part_mut(part);
            for _ in 0..group.members.len() {
                self.looked_at += 1;
                let slot = group.next();
                let Some(subscriber) = members.subscribers.get_mut(slot) else { continue };
                if is_deaf(subscriber) {
                    continue;
                }
                let heard = subscriber.hear(emission, fx);
                if heard == SendOutcome::Dropped {
                    // It is another one's now.
                    subscriber.missed -= 1;
                    offered = Offered::InVain;
                    continue;
                }
                self.count(heard);
                if subscriber.heard >= subscriber.until {
                    members.spent.push(slot);
                }
                return Offered::Taken;
            }
        }
        offered
    }

    /// Hands the message to the member of a group whose turn it is, here or on another shard.
    pub(super) fn hand_to_group<F: Effects>(
        &mut self,
        interest: &mut Interest,
        parts: &[Part],
        members: &mut Members<'_>,
        is_deaf: impl Fn(&Subscriber) -> bool,
        to: ToGroup<'_>,
        fx: &mut F,
    ) {
        let ToGroup { emission, forward, echo } = to;
        let origin = forward.origin;
        let (next, tried) = match interest.turn(parts, origin) {
            Turn::Elsewhere(shard) => (Some(shard), Shards::NONE),
            Turn::Here(first) => {
                let turn = PartTurn { parts, first };
                let offered = self.offer(interest, turn, members, is_deaf, emission, fx);
                (self.after(offered, interest, parts, Shards::one(origin)), Shards::one(origin))
            }
        };
        if let Some(to) = next.map(Shards::one) {
            let name = interest.name(parts);
            let audience = Audience::Group { name, tried: tried.and(to), echo };
            let forward = Forward { audience, ..forward };
            self.count(fx.forward_to_shards(to, &forward, &[emission.message.body]));
        }
    }

    /// Where a message to a group goes on to, once it was offered here and on all shards `tried`.
    #[inline]
    pub(super) fn after(
        &mut self,
        offered: Offered,
        interest: &Interest,
        parts: &[Part],
        tried: Shards,
    ) -> Option<ShardId> {
        let next = match offered {
            Offered::Taken => return None,
            Offered::InVain | Offered::ToNobody => interest.any_elsewhere(parts, tried),
        };
        if next.is_none() && offered == Offered::InVain {
            self.count(SendOutcome::Dropped);
        }
        next
    }

    /// How many bytes of work the message was.
    #[inline]
    pub(super) fn bytes(&self, message: &MessageView<'_>) -> u64 {
        self.looked_at * (LOOK_BYTES + (message.properties.len() + message.body.len()) as u64)
    }

    #[inline]
    pub(super) fn reached(&self) -> Reached {
        let subscribers = u32::try_from(self.heard + self.missed).unwrap_or(u32::MAX);
        Reached { subscribers, queues: 0, crowded: subscribers > 0 && !self.has_free }
    }
}

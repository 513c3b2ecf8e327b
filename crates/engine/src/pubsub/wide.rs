//! Hands a direct message to very many subscribers, some in each turn.

use super::Direct;
use super::forward::{Forward, Subjects};
use super::interest::Interest;
use super::to_subscribers::{NextGroup, ToSubscribers, Wide};
use crate::engine::Engine;
use crate::pubsub::fanout::{Emission, Fanout, Members, ToGroup};
use crate::pubsub::subscribe::Subscriber;
use crate::routing::vhost::Vhost;
use crate::{ConnectionId, Effects, MessageView, Reached, ShardId, Shards, Time};

/// Subscribers and groups that the patterns lead to.
pub(super) fn width(interest: &Interest, leaves: &[u32]) -> usize {
    let leaves = leaves.iter().filter_map(|leaf| interest.leaf(*leaf));
    leaves.map(|leaf| leaf.all.len() + leaf.groups().map_or(0, |groups| groups.len())).sum()
}

/// Other shards where every message of these patterns is wanted.
pub(super) fn shards(interest: &Interest, leaves: &[u32]) -> Shards {
    let leaves = leaves.iter().filter_map(|leaf| interest.leaf(*leaf));
    leaves.fold(Shards::NONE, |shards, leaf| shards.and(leaf.shards()))
}

impl Engine {
    /// Hands a message to the next subscribers, some `most` of them; says whether all have it.
    pub(crate) fn hand_out_some<F: Effects>(
        &mut self,
        now: Time,
        by: Option<ConnectionId>,
        work: &mut ToSubscribers,
        most: usize,
        fx: &mut F,
    ) -> bool {
        let mut fanout = Fanout::default();
        while fanout.looked_at < most as u64 && work.at < work.leaves.len() {
            let left = most - fanout.looked_at as usize;
            if !self.hand_out_leaf(work, left, &mut fanout, fx) {
                (work.at, work.slots, work.next, work.group) = (work.at + 1, None, 0, 0);
            }
        }
        work.heard += fanout.heard + fanout.missed;
        work.has_free |= fanout.has_free;
        self.end_fanout(&fanout, &work.message.view(), fx);
        let is_done = work.at >= work.leaves.len();
        if is_done && let Some(publisher) = by.and(work.publisher) {
            fx.fanned_out(now, publisher, work.heard > 0 && !work.has_free);
        }
        is_done
    }

    /// Hands it to some subscribers of the next pattern, or to some of its groups; false: all have it.
    fn hand_out_leaf<F: Effects>(
        &mut self,
        work: &mut ToSubscribers,
        most: usize,
        fanout: &mut Fanout,
        fx: &mut F,
    ) -> bool {
        let origin = self.options.shard;
        let Direct { subscribers, channels, spent, parts, .. } = &mut self.pubsub;
        let Some(host) = self.topology.vhosts.get_mut(work.vhost) else { return false };
        let Vhost { name, interest, .. } = host;
        let range = work.next_slots(interest, most);
        let mut is_group = NextGroup::None;
        if range.is_none() {
            is_group = work.next_group(interest, parts);
        }
        let work = &*work;
        let message = &work.message.view();
        let emission = Emission { number: work.number, cached_route: 0, message };
        let subjects = Subjects { first: &work.subject, further: &work.further };
        let silent = work.silent;
        let is_deaf = |subscriber: &Subscriber| {
            work.is_later(subscriber.tag) || subscriber.is_deaf(subjects, silent, channels)
        };
        if let (Some(range), Some(slots)) = (range, &work.slots) {
            fanout.count_all(&slots[range], subscribers, spent, is_deaf, emission, fx);
            return true;
        }
        fanout.looked_at += 1 + work.at as u64;
        match is_group {
            NextGroup::None => return false,
            NextGroup::Done => return true,
            NextGroup::Some => {}
        }
        let forward = wide_forward(origin, work, name, message);
        let to = ToGroup { emission, forward, echo: silent.is_none() };
        let members = &mut Members { subscribers, spent };
        fanout.hand_to_group(interest, parts, members, is_deaf, to, fx);
        true
    }

    /// Begins to hand out a message. Its publisher learns that it has subscribers.
    pub(super) fn begin_wide<F: Effects>(
        &mut self,
        to: Wide<'_>,
        message: &MessageView<'_>,
        elsewhere: Shards,
        fx: &mut F,
    ) -> Reached {
        let work =
            ToSubscribers::new(to, message, self.pubsub.subscribed, self.pubsub.leaves.clone());
        if !elsewhere.is_empty() {
            let vhost = &self.topology.vhosts[to.vhost].name;
            let message = work.message.view();
            let forward = wide_forward(self.options.shard, &work, vhost, &message);
            fx.forward_to_shards(elsewhere, &forward, &[message.body]);
        }
        self.hand_out_wide(to.sender, work);
        let subscribers = u32::try_from(to.width).unwrap_or(u32::MAX);
        Reached { subscribers, queues: 0, crowded: false }
    }
}

fn wide_forward<'a>(
    origin: ShardId,
    work: &'a ToSubscribers,
    vhost: &'a str,
    message: &MessageView<'a>,
) -> Forward<'a> {
    let forward = Forward::new(origin, work.publisher, vhost, &work.subject, *message);
    let sender = work.sender.filter(|_| work.publisher.is_none());
    Forward { sender, further: &work.further, ..forward }
}

//! Facts that operators ask for: how a queue stands, a message in it, where a publish would go and who may.
//! Changes nothing.

use crate::channel::Channel;
use crate::consumer::Consumer;
use crate::consumer::unsettled::Delivered;
use crate::engine::Engine;
use crate::queue::Queue;
use crate::queue::entry::{Entry, NEVER};
use crate::routing::vhost::{Way, is_internal};
use crate::routing::{QueueKey, Routed};
use crate::{
    ConsumerFacts, ConsumerHold, FoundMessage, MessageContent, MessageFacts, OutFacts, Overflow,
    Publish, PublishFacts, QueueFacts, ReachedQueue, Refusal,
};
use std::collections::BTreeMap;

/// Consumers, channels with unsettled messages, users, and queues that one answer has.
const SHOWN_MAX: usize = 100;
/// Unsettled deliveries, and entries of a queue, that are looked at for one answer.
const LOOKED_AT_MAX: usize = 200_000;

impl Engine {
    /// How a queue stands.
    pub fn queue_facts(&self, vhost: &str, name: &str) -> Result<QueueFacts<'_>, Refusal> {
        let slot = self.queue_named(vhost, name)?;
        let queue = &self.queues[slot];
        let place = slot as usize;
        let listing = self.list_queues_in(place..place + 1).next();
        let listing = listing.ok_or_else(|| {
            Refusal::new(crate::RefusalKind::NotFound, format!("no queue '{name}'"))
        })?;
        let consumers = queue.consumers.iter().take(SHOWN_MAX);
        Ok(QueueFacts {
            listing,
            options: &queue.options,
            delivery_limit: queue
                .delivery_limit(self.options.limits.delivery_limit)
                .filter(|limit| *limit != u32::MAX),
            is_full: queue.is_full_for(0),
            is_resting: queue.share.is_resting,
            is_returning: queue.holds > 0,
            is_loading: queue.loads > 0,
            is_shared: queue.shared.is_some(),
            is_own: queue.own.is_some(),
            consumers: consumers.filter_map(|it| self.consumer_facts(queue, *it)).collect(),
            out: self.out_facts(slot),
            expires_at: queue.expires_at,
        })
    }

    fn queue_named(&self, vhost: &str, name: &str) -> Result<u32, Refusal> {
        let router = &self.topology.vhosts[self.vhost_slot(vhost)?].router;
        let QueueKey(slot) = router.queue(name).ok_or_else(|| router.no_queue(name))?;
        Ok(slot)
    }

    fn consumer_facts<'a>(&'a self, queue: &'a Queue, slot: u32) -> Option<ConsumerFacts<'a>> {
        let consumer = self.clients.consumers.get(slot)?;
        let channel = self.clients.channels.get(consumer.channel)?;
        let is_second = queue.options.single_active && queue.consumers.first() != Some(&slot);
        let filter = consumer.group.and_then(|group| queue.filtered.as_ref()?.get(group));
        Some(ConsumerFacts {
            channel: channel.id,
            name: &consumer.name,
            presettled: consumer.presettled,
            filter: filter.map(|group| group.filter.text()),
            unsettled: consumer.account.messages,
            credit: consumer.account.credit,
            channel_credit: channel.account.credit,
            hold: if is_second {
                Some(ConsumerHold::Second)
            } else {
                self.hold_of(channel, consumer)
            },
        })
    }

    /// What keeps a consumer from a message of no bytes.
    fn hold_of(&self, channel: &Channel, consumer: &Consumer) -> Option<ConsumerHold> {
        let takes_credit = !consumer.presettled;
        let holds = [
            (!consumer.is_started, ConsumerHold::Starting),
            (!channel.flow, ConsumerHold::Flow),
            (consumer.delivered >= consumer.up_to, ConsumerHold::Grant),
            (takes_credit && !consumer.account.allows(0), ConsumerHold::Credit),
            (!channel.account.allows(0), ConsumerHold::ChannelCredit),
            (
                takes_credit
                    && channel.unsettled.len() >= self.options.limits.unsettled_max as usize,
                ConsumerHold::ChannelCredit,
            ),
        ];
        holds.into_iter().find_map(|(holds, why)| holds.then_some(why))
    }

    /// Channels that have unsettled messages of a queue.
    fn out_facts(&self, slot: u32) -> Vec<OutFacts<'_>> {
        let number = self.queues[slot].number;
        let mut looked_at = 0;
        let mut found = Vec::new();
        for (_, channel) in self.clients.channels.iter() {
            if found.len() >= SHOWN_MAX || looked_at >= LOOKED_AT_MAX {
                break;
            }
            looked_at += 1 + channel.unsettled.len();
            let of_queue = channel.unsettled.iter().filter(|(_, it)| it.queue_number == number);
            let mut of_queue = of_queue.map(|(_, delivered)| delivered);
            if let Some(oldest) = of_queue.next() {
                found.push(self.out_of(channel, slot, oldest, 1 + of_queue.count() as u64));
            }
        }
        found
    }

    fn out_of<'a>(
        &'a self,
        channel: &'a Channel,
        queue: u32,
        oldest: &Delivered,
        messages: u64,
    ) -> OutFacts<'a> {
        let consumer = oldest.taker.and_then(|taker| {
            let consumer = self.clients.consumers.get(taker.slot)?;
            (consumer.incarnation == taker.incarnation).then_some((taker.slot, consumer))
        });
        let timeout = self.settle_timeout(queue, consumer.map(|(slot, _)| slot));
        let deadline = Some(oldest.deadline).filter(|at| *at != NEVER);
        OutFacts {
            channel: channel.id,
            consumer: consumer.map(|(_, consumer)| consumer.name.as_str()),
            messages,
            deadline: deadline.zip(timeout),
        }
    }

    /// The message of a queue before which `ahead` are handed out.
    pub fn message_facts(
        &self,
        vhost: &str,
        queue: &str,
        ahead: u64,
    ) -> Result<FoundMessage, Refusal> {
        let queue = &self.queues[self.queue_named(vhost, queue)?];
        let mut left = ahead;
        // Higher priorities are handed out first.
        for lane in queue.lanes.iter().rev() {
            let mut entries: Vec<&Entry> = lane.entries().take(LOOKED_AT_MAX).collect();
            entries.sort_unstable_by_key(|entry| entry.seq);
            let mut pages = lane.pages.iter().peekable();
            for entry in entries {
                while let Some(page) = pages.next_if(|page| page.last < entry.seq) {
                    if left < u64::from(page.count) {
                        return Ok(FoundMessage::Paged);
                    }
                    left -= u64::from(page.count);
                }
                if left == 0 {
                    let is_barred = lane.barred().any(|barred| barred.seq == entry.seq);
                    let facts = self.facts_of(queue, entry, ahead, is_barred);
                    return Ok(FoundMessage::Waits(Box::new(facts)));
                }
                left -= 1;
            }
            let in_pages: u64 = pages.map(|page| u64::from(page.count)).sum();
            if left < in_pages {
                return Ok(FoundMessage::Paged);
            }
            left -= in_pages;
        }
        Ok(FoundMessage::None)
    }

    fn facts_of(&self, queue: &Queue, entry: &Entry, ahead: u64, is_barred: bool) -> MessageFacts {
        let mut facts = MessageFacts {
            ahead,
            priority: entry.lane,
            bytes: entry.bytes,
            durable: entry.durable,
            requeues: entry.requeues,
            redelivered: entry.redelivered,
            expires: Some(entry.expires).filter(|at| *at != NEVER),
            is_stored_only: entry.is_cold(),
            is_unreadable: entry.is_unreadable(),
            is_barred,
            content: None,
            taking_filters: Vec::new(),
        };
        let Some(blob) = &entry.message else { return facts };
        let stored = blob.stored();
        if let Some(filtered) = &queue.filtered {
            let message = stored.selectable(entry.requeues);
            let read = self.options.conventions.read_property;
            let mut matched = Vec::new();
            filtered.filters().find(&|name: &str| read(&message, name), &mut matched);
            let groups = matched.into_iter().filter_map(|group| filtered.get(group));
            facts.taking_filters = groups.map(|it| it.filter.text().to_owned()).collect();
        }
        let annotations = stored.annotations(entry.requeues);
        facts.content = Some(MessageContent {
            exchange: stored.exchange.to_owned(),
            routing_key: stored.routing_key.to_owned(),
            delayed: annotations.delayed,
            deaths: annotations.deaths,
        });
        facts
    }

    /// Where a publish would go in a virtual host, and which of its users would be refused: of `user` alone,
    /// where it is named.
    pub fn publish_facts(
        &mut self,
        vhost: &str,
        publish: &Publish<'_>,
        user: Option<&str>,
    ) -> Result<PublishFacts, Refusal> {
        let slot = self.vhost_slot(vhost)?;
        let read_headers = self.options.conventions.read_headers;
        let way = Way::of(publish, None);
        let mut targets = Vec::new();
        let Some(routed) = self.find_queues(slot, way, &publish.content, &mut targets) else {
            return Err(self.topology.vhosts[slot].router.no_exchange(publish.exchange));
        };
        let reached = self.topology.vhosts[slot].reached(read_headers, way, &publish.content);
        let is_cut = reached.is_none() || !routed.is_whole || targets.len() > SHOWN_MAX;
        let exchanges: Vec<String> =
            reached.unwrap_or_default().into_iter().map(str::to_owned).collect();
        let Routed { internal, has_subjects, is_conditional, .. } = routed;
        let users = self.who_may_publish(vhost, publish, &exchanges, has_subjects, user);
        let queues = targets.into_iter().take(SHOWN_MAX);
        let bytes = publish.content.body.len() as u64;
        Ok(PublishFacts {
            exchanges,
            queues: queues.filter_map(|key| self.reached_queue(key, bytes)).collect(),
            is_cut,
            is_conditional,
            has_subjects,
            closed: internal.then(|| is_internal(publish.exchange)),
            users,
        })
    }

    fn reached_queue(&self, QueueKey(slot): QueueKey, bytes: u64) -> Option<ReachedQueue> {
        let queue = self.queues.get(slot)?;
        let full = queue.is_full_for(bytes).then_some(queue.options.overflow);
        let lets_go = |it: &Overflow| *it != Overflow::DropHead || queue.ready > 0;
        Some(ReachedQueue {
            name: queue.name.clone(),
            ready: queue.ready,
            consumers: queue.consumers.len(),
            full: full.filter(lets_go),
            durable: queue.stores,
        })
    }

    /// Users with rights in the virtual host, and why each would be refused, if it would.
    fn who_may_publish(
        &self,
        vhost: &str,
        publish: &Publish<'_>,
        exchanges: &[String],
        has_subjects: bool,
        only: Option<&str>,
    ) -> Vec<(String, Option<Refusal>)> {
        let of_vhost: BTreeMap<&str, ()> = match only {
            Some(user) => [(user, ())].into(),
            None => {
                let all = self.access.permissions().filter(|it| it.vhost == vhost);
                all.map(|it| (it.user, ())).take(SHOWN_MAX).collect()
            }
        };
        let check = |user: &str| -> Result<(), Refusal> {
            let mut grant = self.access.grant(user, vhost)?;
            grant.check_exchange(&self.access, publish.exchange)?;
            for key in publish.keys() {
                grant.check_key(publish.exchange, key)?;
                if has_subjects {
                    grant.check_subject(key)?;
                }
                for exchange in exchanges {
                    grant.check_key(exchange, key)?;
                }
            }
            Ok(())
        };
        of_vhost.into_keys().map(|user| (user.to_owned(), check(user).err())).collect()
    }
}

//! Commits of transactions: all that waited is carried out in one group of records.

use super::transaction::{Held, Operation, Operations, cost};
use crate::channel::Channel;
use crate::consumer::deferred_settle::{Fate, Manner};
use crate::engine::Engine;
use crate::interface::refusal::refuse;
use crate::publish::taken::{Route, SizeInGroup, Taken, Unwanted};
use crate::storage::record;
use crate::storage::record::EXTRA_BYTES_MAX;
use crate::{
    Effects, Outcome, Overflow, Position, Publish, QueueOptions, Refusal, StorageState, Time,
};
use std::collections::BTreeMap;

/// Steps of routing that a transaction's messages may take, for each operation that it may have.
const ROUTE_STEPS_TIMES: u64 = 10;

impl Engine {
    /// Carries out what waited, as one group of records; says what has to be flushed for it. Refused: all is
    /// as before.
    pub(super) fn commit<F: Effects>(
        &mut self,
        now: Time,
        transaction: u32,
        fx: &mut F,
    ) -> Result<Option<Position>, Refusal> {
        let open = &mut self.clients.transactions[transaction];
        let (slot, held) = (open.owner, std::mem::take(&mut open.held));
        self.record_settled(fx);
        let checked = self.check_commit(now, slot, &held);
        self.clients.transactions[transaction].held = held;
        let (bytes, records) = checked?;
        let Held { operations, mut deliveries, .. } = self.take_held(transaction);
        fx.reserve(bytes, records);
        self.storage.in_group = true;
        let mut last: Option<Position> = None;
        for operation in operations.iter() {
            let position = match operation {
                Operation::Publish(held) => held.with(|publish| {
                    // The exchange may have been deleted since; then the message is unroutable.
                    self.carry_out_held(now, slot, publish, held.sent, fx).ok()?.position
                }),
                Operation::Settle(settle) => {
                    if let Some(delivered) = deliveries.take_first(u64::MAX) {
                        let channel = self.clients.channel_at(settle.channel);
                        let (fate, annotations) = (Fate::Same(settle.outcome), &settle.annotations);
                        let manner = Manner { fate, annotations };
                        self.settle_one(now, channel, delivered, manner, fx);
                    }
                    None
                }
            };
            last = last.max(position);
        }
        let settled = self.record_settled_durably(fx);
        self.storage.in_group = false;
        self.run_overdue(now, fx);
        Ok(last.max(settled))
    }

    /// Routes and places a message of a transaction, which was sent then.
    #[inline(never)]
    fn carry_out_held<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        publish: &Publish<'_>,
        sent: Time,
        fx: &mut F,
    ) -> Result<Taken, Refusal> {
        self.carry_out_publish(now, slot, publish, Some(sent), fx)
    }

    /// Whether all of a transaction can be carried out; at most how many bytes in how many records that leads
    /// to.
    fn check_commit(
        &mut self,
        now: Time,
        slot: u32,
        held: &Held,
    ) -> Result<(usize, usize), Refusal> {
        if held.allowed_at.is_some_and(|it| it != self.access.generation()) {
            self.check_held(slot, &held.operations)?;
        }
        // Any message may have to be stored: whether memory has room for one that is not persistent is
        // known only when it comes to its queue, and then it is too late to refuse.
        let publishes = || held.operations.iter().any(|it| matches!(it, Operation::Publish(_)));
        if self.storage.state != StorageState::Ready && publishes() {
            refuse!(StorageUnavailable, "the transaction's messages cannot be stored");
        }
        self.group_size(now, slot, held)
    }

    /// Whether the user may still publish what was allowed before rights have changed.
    #[cold]
    fn check_held(&mut self, slot: u32, operations: &Operations) -> Result<(), Refusal> {
        operations.iter().try_for_each(|operation| match operation {
            Operation::Publish(held) => held.with(|publish| self.check_publish(slot, publish)),
            Operation::Settle(_) => Ok(()),
        })
    }

    /// At most how many bytes in how many records the operations lead to. Refused: they would put messages
    /// into more queues than is done in one step, or a queue has no room for them and refuses what it has no
    /// room for.
    fn group_size(&mut self, now: Time, slot: u32, held: &Held) -> Result<(usize, usize), Refusal> {
        let mut records = 1;
        let mut total = SizeInGroup { bytes: EXTRA_BYTES_MAX, queues: 0, is_whole: true };
        let steps_before = self.route_steps;
        let mut bounded = BTreeMap::new();
        for operation in held.operations.iter() {
            if let Operation::Publish(publish) = operation {
                let size = publish.with(|it| self.publish_size(now, slot, it, &mut bounded))?;
                self.add_size(&mut total, size, steps_before)?;
                records += 2;
            }
        }
        for (settle, (_, delivered)) in held.settles().zip(held.deliveries.iter()) {
            total.bytes += 32;
            records += 1;
            if settle.outcome == Outcome::Accept {
                continue;
            }
            // It may be a dead letter, which is a record of its own. One that is not in memory becomes it
            // later, in a group of its own.
            total.bytes += 2 * EXTRA_BYTES_MAX;
            records += 2;
            if let Some(message) = &delivered.entry.message
                && self.queues.get(delivered.queue).is_some()
            {
                let size = self.dead_letter_size(delivered.queue, message);
                self.add_size(&mut total, size, steps_before)?;
            }
        }
        Ok((total.bytes, records))
    }

    /// Adds what one more message comes to. Refused: the transaction is more than is done in one step.
    fn add_size(
        &self,
        total: &mut SizeInGroup,
        size: SizeInGroup,
        steps_before: u64,
    ) -> Result<(), Refusal> {
        let most = self.options.limits.transaction_operations_max;
        total.bytes += size.bytes;
        total.queues += size.queues;
        if total.queues > most {
            refuse!(
                LimitExceeded,
                "a transaction that puts messages into {} queues or more; the limit is {most}",
                total.queues
            );
        }
        let steps = self.route_steps - steps_before;
        if !size.is_whole || steps > ROUTE_STEPS_TIMES * most as u64 {
            refuse!(
                LimitExceeded,
                "a transaction whose messages pass more exchanges and bindings than are looked at in \
                 one step; publish to these exchanges outside of transactions"
            );
        }
        Ok(())
    }

    /// What a publish comes to. Refused: a quota is reached, or a queue has no room. `bounded`: what queues
    /// with limits get of the same transaction, in messages and bytes.
    fn publish_size(
        &mut self,
        now: Time,
        slot: u32,
        publish: &Publish<'_>,
        bounded: &mut BTreeMap<u32, (u64, u64)>,
    ) -> Result<SizeInGroup, Refusal> {
        let Channel { id, vhost, .. } = self.clients.channels[slot];
        let mut targets = std::mem::take(&mut self.scratch.targets);
        let by = Some(id.connection);
        let routed = self.route(now, vhost, by, publish, &mut targets);
        let is_whole = !matches!(routed, Ok(Route::Queues { is_whole: false, .. }));
        let route = routed.as_ref().ok().filter(|_| self.access.bounds_stored());
        let mut refusal = route.and_then(|route| self.over_quota(by, vhost, route, &targets));
        if matches!(routed, Ok(Route::Queues { .. })) {
            let bytes = publish.content.body.len() as u64;
            let full = targets.iter().find(|key| self.would_refuse(key.0, bytes, bounded));
            refusal = refusal.or(full.map(|key| self.refusal_of(Unwanted::QueueFull(key.0))));
        }
        let queues = targets.len();
        self.scratch.targets = targets;
        let bytes = record::bytes_max(cost(publish) as usize, queues);
        refusal.map_or(Ok(SizeInGroup { bytes, queues, is_whole }), Err)
    }

    /// Whether a queue refuses a message because it has no room, after what it gets of the same transaction.
    fn would_refuse(&self, slot: u32, bytes: u64, bounded: &mut BTreeMap<u32, (u64, u64)>) -> bool {
        let queue = &self.queues[slot];
        let QueueOptions { overflow, length_max, bytes_max, .. } = queue.options;
        let is_bounded = length_max.is_some() || bytes_max.is_some();
        if overflow != Overflow::RejectPublish || !is_bounded {
            return false;
        }
        let before = bounded.entry(slot).or_default();
        *before = (before.0 + 1, before.1 + bytes);
        queue.is_full_with(before.0, before.1)
    }
}

//! Transactions: holding back, committing in one group, forgetting.

use super::transaction::{HeldPublish, Operation, Operations, Transaction, cost};
use crate::channel::Channel;
use crate::engine::Engine;
use crate::interface::refusal::refuse;
use crate::publish::taken::Route;
use crate::publish::taken::SizeInGroup;
use crate::storage::record;
use crate::storage::record::EXTRA_BYTES_MAX;
use crate::{Effects, Outcome, Position, Publish, Refusal, Reply, Settle, StorageState, Time};

/// Steps of routing that a transaction's messages may take, for each operation that it may have.
const ROUTE_STEPS_TIMES: u64 = 10;

impl Engine {
    /// A publish waits for the commit. That its exchange is there is checked now.
    pub(crate) fn hold_publish(&mut self, slot: u32, publish: &Publish<'_>) -> Result<(), Refusal> {
        self.vhost_of(slot).check_exchange(publish.exchange)?;
        self.check_may_hold_more(self.clients.channels[slot].id.connection)?;
        self.room_to_hold(slot, cost(publish))?;
        let mut room = std::mem::take(&mut self.scratch.blob);
        let held = HeldPublish::of(publish, &mut room);
        self.scratch.keep_blob(room);
        let generation = self.access.generation();
        let transaction = self.clients.channels[slot].transaction()?;
        transaction.allowed_at.get_or_insert(generation);
        transaction.bytes += cost(publish);
        transaction.operations.push(Operation::Publish(held));
        Ok(())
    }

    /// A settle waits for the commit.
    pub(crate) fn hold_settle(&mut self, slot: u32, settle: Settle) -> Result<(), Refusal> {
        self.check_tag(slot, settle)?;
        let last_tag = self.clients.channels[slot].next_tag - 1;
        let transaction = self.room_to_hold(slot, 0)?;
        if transaction.settles(settle) {
            refuse!(PreconditionFailed, "unknown delivery tag {}", settle.tag());
        }
        transaction.add_settle(settle, last_tag);
        Ok(())
    }

    /// The transaction, where it takes another operation of that many bytes.
    fn room_to_hold(&mut self, slot: u32, bytes: u64) -> Result<&mut Transaction, Refusal> {
        let limits = &self.options.limits;
        let transaction = self.clients.channels[slot].transaction()?;
        let most = limits.transaction_operations_max;
        if transaction.operations.len() >= most {
            refuse!(LimitExceeded, "more than {most} operations in one transaction");
        }
        let most = limits.transaction_bytes_max;
        if transaction.bytes + bytes > most {
            refuse!(LimitExceeded, "more than {most} bytes in one transaction");
        }
        Ok(transaction)
    }

    /// Carries out what waited, as one group of records.
    pub(crate) fn commit<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        fx: &mut F,
    ) -> Result<Option<Reply>, Refusal> {
        let transaction = self.clients.channels[slot].transaction()?;
        let Transaction { operations, allowed_at, .. } = std::mem::take(transaction);
        if allowed_at.is_some_and(|it| it != self.access.generation()) {
            self.check_held(slot, &operations)?;
        }
        // Any message may have to be stored: whether memory has room for one that is not persistent is
        // known only when it comes to its queue, and then it is too late to refuse.
        let publishes = || operations.iter().any(|it| matches!(it, Operation::Publish(_)));
        if self.storage.state != StorageState::Ready && publishes() {
            refuse!(StorageUnavailable, "the transaction's messages cannot be stored");
        }
        self.record_settled(fx);
        let (bytes, records) = self.group_size(slot, &operations)?;
        fx.reserve(bytes, records);
        self.storage.in_group = true;
        let mut last: Option<Position> = None;
        for operation in operations.iter() {
            let position = match operation {
                Operation::Publish(publish) => publish.with(|publish| {
                    // The exchange may have been deleted since; then the message is unroutable.
                    self.carry_out_publish(now, slot, publish, fx).ok()?.position
                }),
                Operation::Settle(settle) => {
                    // It may have come back to its queue since.
                    let _ = self.carry_out_settle(now, slot, *settle, &[], fx);
                    None
                }
            };
            last = last.max(position);
        }
        let settled = self.record_settled_durably(fx);
        self.storage.in_group = false;
        self.run_overdue(now, fx);
        let Some(position) = last.max(settled) else { return Ok(Some(Reply::Done)) };
        self.answer_once_flushed(slot, position, Reply::Done);
        Ok(None)
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
    /// into more queues than is done in one step.
    fn group_size(
        &mut self,
        slot: u32,
        operations: &Operations,
    ) -> Result<(usize, usize), Refusal> {
        let mut records = 1;
        let mut total = SizeInGroup { bytes: EXTRA_BYTES_MAX, queues: 0, is_whole: true };
        let steps_before = self.route_steps;
        let mut up_to = 0;
        let mut settles = false;
        for operation in operations.iter() {
            match operation {
                Operation::Publish(publish) => {
                    let size = publish.with(|publish| self.publish_size(slot, publish))?;
                    self.add_size(&mut total, size, steps_before)?;
                    records += 2;
                }
                Operation::Settle(settle) => {
                    // Another outcome may lead to a dead letter, which is a record of its own.
                    settles |= settle.outcome != Outcome::Accept;
                    up_to = settle.last.max(up_to);
                }
            }
        }
        let mut dying = Vec::new();
        for (tag, delivered) in self.clients.channels[slot].unsettled.iter() {
            if tag > up_to {
                break;
            }
            total.bytes += 32;
            records += 1;
            if settles {
                // What is not in memory becomes a dead letter later, in a group of its own.
                total.bytes += 2 * EXTRA_BYTES_MAX;
                records += 2;
                let message = delivered.entry.message.clone();
                dying.extend(message.map(|message| (delivered.queue, message)));
            }
        }
        for (queue, message) in dying {
            if self.queues.get(queue).is_some() {
                let size = self.dead_letter_size(queue, &message);
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

    /// What a publish comes to. Refused: a quota is reached.
    fn publish_size(&mut self, slot: u32, publish: &Publish<'_>) -> Result<SizeInGroup, Refusal> {
        let Channel { id, vhost, .. } = self.clients.channels[slot];
        let mut targets = std::mem::take(&mut self.scratch.targets);
        let by = Some(id.connection);
        let routed = self.route(vhost, by, publish, &mut targets);
        let is_whole = !matches!(routed, Ok(Route::Queues { is_whole: false, .. }));
        let route = routed.as_ref().ok().filter(|_| self.access.bounds_stored());
        let refusal = route.and_then(|route| self.over_quota(by, vhost, route, &targets));
        let queues = targets.len();
        self.scratch.targets = targets;
        let bytes = record::bytes_max(cost(publish) as usize, queues);
        refusal.map_or(Ok(SizeInGroup { bytes, queues, is_whole }), Err)
    }
}

//! Transactions: holding back, committing in one group, forgetting.

use super::transaction::{self, Operation, Operations, OwnedPublish, Transaction};
use crate::engine::Engine;
use crate::routing::Keys;
use crate::routing::vhost::Way;
use crate::storage::record;
use crate::storage::record::EXTRA_BYTES_MAX;
use crate::{
    ChannelId, Effects, Position, Publish, Refusal, RefusalKind, Reply, Settle, StorageState, Time,
};

impl Engine {
    /// A publish waits for the commit. That its exchange is there is checked now.
    pub(crate) fn hold_publish(&mut self, slot: u32, publish: &Publish<'_>) -> Result<(), Refusal> {
        let channel = self.clients.channels.get(slot).expect("a channel's slot is in use");
        let vhost = self.topology.vhosts.get(channel.vhost).expect("channels end first");
        vhost.check_exchange(publish.exchange)?;
        let cost = transaction::cost(publish);
        self.hold(slot, cost, || Operation::Publish(OwnedPublish::of(publish)))
    }

    /// A settle waits for the commit.
    pub(crate) fn hold_settle(&mut self, slot: u32, settle: Settle) -> Result<(), Refusal> {
        self.check_tag(slot, settle)?;
        self.hold(slot, 0, || Operation::Settle(settle))
    }

    fn hold(
        &mut self,
        slot: u32,
        bytes: u64,
        operation: impl FnOnce() -> Operation,
    ) -> Result<(), Refusal> {
        let limits = &self.options.limits;
        let channel = self.clients.channels.get_mut(slot).expect("a channel's slot is in use");
        let transaction = channel.transaction.as_mut().expect("the caller looked");
        let limit_exceeded = |text| Err(Refusal::new(RefusalKind::LimitExceeded, text));
        if transaction.operations.len() >= limits.transaction_operations_max {
            let most = limits.transaction_operations_max;
            return limit_exceeded(format!("more than {most} operations in one transaction"));
        }
        if transaction.bytes + bytes > limits.transaction_bytes_max {
            let most = limits.transaction_bytes_max;
            return limit_exceeded(format!("more than {most} bytes in one transaction"));
        }
        transaction.bytes += bytes;
        transaction.operations.push(operation());
        Ok(())
    }

    /// Carries out what waited, as one group of records.
    pub(crate) fn commit<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        slot: u32,
        fx: &mut F,
    ) -> Option<Result<Reply, Refusal>> {
        let channel = self.clients.channels.get_mut(slot).expect("a channel's slot is in use");
        let Some(transaction) = channel.transaction.as_deref_mut() else {
            let text = "the channel has no transaction";
            return Some(Err(Refusal::new(RefusalKind::PreconditionFailed, text)));
        };
        let Transaction { operations, .. } = std::mem::take(transaction);
        if self.storage.state != StorageState::Ready && operations.iter().any(needs_storage) {
            let text = "the journal cannot store the transaction's messages";
            return Some(Err(Refusal::new(RefusalKind::StorageUnavailable, text)));
        }
        self.record_settled(fx);
        let (bytes, records) = self.group_size(slot, &operations);
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
                    // What is settled twice in one transaction was settled the first time.
                    let _ = self.carry_out_settle(now, slot, *settle, fx);
                    None
                }
            };
            last = last.max(position);
        }
        let settled = self.record_settled_durably(fx);
        self.storage.in_group = false;
        self.run_overdue(now, fx);
        let channel = self.clients.channels.get_mut(slot).expect("commits close no channel");
        debug_assert_eq!(channel.id, id);
        match last.max(settled) {
            Some(position) => self.answer_once_flushed(slot, position, Reply::Done),
            None => return Some(Ok(Reply::Done)),
        }
        None
    }

    /// At most how many bytes in how many records the operations lead to.
    fn group_size(&mut self, slot: u32, operations: &Operations) -> (usize, usize) {
        let (mut bytes, mut records) = (EXTRA_BYTES_MAX, 1);
        let mut up_to = 0;
        let mut settles = false;
        for operation in operations.iter() {
            match operation {
                Operation::Publish(publish) => {
                    bytes += publish.with(|publish| self.publish_bytes(slot, publish));
                    records += 2;
                }
                Operation::Settle(settle) => {
                    settles |= transaction::may_dead_letter(settle.outcome);
                    up_to = if settle.tag == 0 { u64::MAX } else { settle.tag.max(up_to) };
                }
            }
        }
        let channel = self.clients.channels.get(slot).expect("a channel's slot is in use");
        let mut dying = Vec::new();
        for (tag, delivered) in channel.unsettled.iter() {
            if tag > up_to {
                break;
            }
            bytes += 32;
            records += 1;
            if settles {
                // What is not in memory becomes a dead letter later, in a group of its own.
                bytes += 2 * EXTRA_BYTES_MAX;
                records += 2;
                let message = delivered.entry.message.clone();
                dying.extend(message.map(|message| (delivered.queue, message)));
            }
        }
        for (queue, message) in dying {
            if self.queues.get(queue).is_some() {
                bytes += self.dead_letter_bytes(queue, &message);
            }
        }
        (bytes, records)
    }

    /// At most how many bytes the records of a publish take.
    fn publish_bytes(&mut self, slot: u32, publish: &Publish<'_>) -> usize {
        let vhost = self.clients.channels.get(slot).expect("a channel's slot is in use").vhost;
        let vhost = self.topology.vhosts.get_mut(vhost).expect("channels end first");
        let keys = Keys { routing_key: publish.routing_key, also_to: publish.also_to };
        let way = Way { exchange: publish.exchange, keys };
        vhost.route(
            self.options.conventions.read_headers,
            way,
            &publish.content,
            &mut self.scratch.targets,
        );
        record::bytes_max(transaction::cost(publish) as usize, self.scratch.targets.len())
    }
}

/// Whether it may have to be stored. Any message may: whether memory has room for one that is not
/// persistent is known only when it comes to its queue, and then it is too late to refuse.
fn needs_storage(operation: &Operation) -> bool {
    matches!(operation, Operation::Publish(_))
}

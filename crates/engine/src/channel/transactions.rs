//! Transactions begin, hold publishes and settles back, and are rolled back: by request, with the channel
//! that began them, or because they are open for too long.
//!
//! A connection names its transactions and uses them from all its channels. A channel may have one of its own
//! beside them, which takes all that names no other.

use super::transaction::{Held, HeldPublish, HeldSettle, Operation, Transaction, cost};
use crate::consumer::deferred_settle::Fate;
use crate::consumer::unsettled::{Delivered, Unsettled};
use crate::engine::{Clients, Engine};
use crate::foundation::timers::Timer;
use crate::interface::refusal::refuse;
use crate::publish::taken::{Route, Taken};
use crate::{
    Bytes, Effects, Outcome, Position, Publish, Refusal, RefusalKind, Reply, Settle, Time,
    TransactionId,
};

/// An answer now, or none yet.
type Answer = Result<Option<Reply>, Refusal>;

impl Engine {
    /// Begins a transaction that the connection of the channel names.
    pub(crate) fn begin_transaction(&mut self, slot: u32) -> Result<Reply, Refusal> {
        let most = self.options.limits.transactions_max;
        let connection = self.clients.channels[slot].id.connection;
        self.check_may_hold_more(connection)?;
        let Clients { connections, transactions, .. } = &mut self.clients;
        let Some(Some(connection)) = connections.get_mut(connection.0 as usize) else {
            refuse!(Internal, "the channel has no connection");
        };
        if connection.transactions.len() >= most {
            refuse!(LimitExceeded, "more than {most} transactions of one connection are open");
        }
        connection.last_transaction += 1;
        let id = TransactionId(connection.last_transaction);
        let transaction = Transaction { owner: slot, id: Some(id), ..Transaction::default() };
        connection.transactions.insert(id, transactions.insert(transaction));
        Ok(Reply::Transaction { id })
    }

    /// Gives the channel a transaction of its own, unless it has one.
    pub(crate) fn select_transactions(&mut self, slot: u32) -> Result<(), Refusal> {
        let channel = &mut self.clients.channels[slot];
        if channel.confirms.is_some() {
            refuse!(PreconditionFailed, "a channel with confirms cannot have transactions");
        }
        if channel.transaction.is_none() {
            let transaction = Transaction { owner: slot, ..Transaction::default() };
            channel.transaction = Some(self.clients.transactions.insert(transaction));
        }
        Ok(())
    }

    /// The transaction that a publish or a settle of the channel is part of, if it is in any.
    #[inline]
    pub(crate) fn transaction_of(
        &self,
        slot: u32,
        named: Option<TransactionId>,
    ) -> Result<Option<u32>, Refusal> {
        match named {
            None => Ok(self.clients.channels[slot].transaction),
            Some(id) => self.transaction_named(slot, id).map(Some),
        }
    }

    /// The transaction of that name of the channel's connection.
    pub(super) fn transaction_named(&self, slot: u32, id: TransactionId) -> Result<u32, Refusal> {
        let connection = self.clients.connection(self.clients.channels[slot].id.connection);
        let Some(slot) = connection.and_then(|it| it.transactions.get(&id)) else {
            refuse!(NotFound, "no transaction {} is open", id.0);
        };
        Ok(*slot)
    }

    /// A publish waits for the commit. That its exchange is there is checked now.
    pub(crate) fn hold_publish<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        transaction: u32,
        publish: &Publish<'_>,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        if let Some(why) = &self.clients.transactions[transaction].failed {
            return Err(why.clone());
        }
        self.vhost_of(slot).check_exchange(publish.exchange)?;
        self.check_may_hold_more(self.clients.channels[slot].id.connection)?;
        self.room_to_hold(transaction, 1, cost(publish))?;
        if publish.mandatory && self.explains_confirms(slot) {
            self.check_routable(now, slot, publish)?;
        }
        let mut room = std::mem::take(&mut self.scratch.blob);
        let held = HeldPublish::of(now, publish, &mut room);
        self.scratch.keep_blob(room);
        let generation = self.access.generation();
        self.time_transaction(now, transaction);
        let transaction = &mut self.clients.transactions[transaction].held;
        transaction.allowed_at.get_or_insert(generation);
        transaction.bytes += cost(publish);
        transaction.operations.push(Operation::Publish(held));
        self.count_confirm(slot, Taken::default(), fx);
        Ok(())
    }

    /// Refuses a mandatory message that no queue would take now.
    fn check_routable(
        &mut self,
        now: Time,
        slot: u32,
        publish: &Publish<'_>,
    ) -> Result<(), Refusal> {
        let mut targets = std::mem::take(&mut self.scratch.targets);
        let vhost = self.clients.channels[slot].vhost;
        let by = Some(self.clients.channels[slot].id.connection);
        let route = self.route(now, vhost, by, publish, &mut targets);
        let is_unroutable = matches!(
            route,
            Ok(Route::Queues { has_subjects: false, is_whole: true }) if targets.is_empty()
        );
        self.scratch.targets = targets;
        if is_unroutable { Err(Refusal::unroutable(publish)) } else { Ok(()) }
    }

    /// A settle waits for the commit; its deliveries are the transaction's until then. Where one that a
    /// connection names has no room for them, they go back now, and it can only be rolled back.
    pub(crate) fn hold_settle<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        transaction: u32,
        settle: Settle,
        annotations: &[u8],
        fx: &mut F,
    ) -> Result<(), Refusal> {
        self.check_tag(slot, settle)?;
        let tags = settle.first..=settle.last;
        let count = self.clients.channels[slot].unsettled.within(&tags);
        let bytes = (count * annotations.len()) as u64;
        if let Err(why) = self.room_to_hold(transaction, count, bytes) {
            if settle.transaction.is_none() {
                return Err(why);
            }
            self.fail_transaction(slot, settle.transaction, &why);
            self.settle_range(now, slot, tags, Fate::Same(Outcome::REQUEUE).plain(), fx);
            return Ok(());
        }
        self.time_transaction(now, transaction);
        let annotations = Bytes::copy_from_slice(annotations);
        let channel = &mut self.clients.channels[slot];
        let (place, outcome) = (channel.place(slot), settle.outcome);
        let mut next = settle.first;
        while let Some((tag, delivered)) = channel.unsettled.take_within(&(next..=settle.last)) {
            next = tag.saturating_add(1);
            let annotations = annotations.clone();
            let held = HeldSettle { channel: place, tag, outcome, annotations };
            self.clients.transactions[transaction].held.add_settle(held, delivered);
        }
        Ok(())
    }

    /// Refuses what a transaction cannot hold: that number of operations more, with that many bytes.
    fn room_to_hold(&self, transaction: u32, operations: usize, bytes: u64) -> Result<(), Refusal> {
        let limits = &self.options.limits;
        let Transaction { held, .. } = &self.clients.transactions[transaction];
        let most = limits.transaction_operations_max;
        if held.operations.len() + operations > most {
            refuse!(LimitExceeded, "more than {most} operations in one transaction");
        }
        let most = limits.transaction_bytes_max;
        if held.bytes + bytes > most {
            refuse!(LimitExceeded, "more than {most} bytes in one transaction");
        }
        Ok(())
    }

    /// A publish or a settle failed: the transaction that it names can only be rolled back.
    pub(crate) fn fail_transaction(
        &mut self,
        slot: u32,
        named: Option<TransactionId>,
        why: &Refusal,
    ) {
        let Some(id) = named else { return };
        let Ok(transaction) = self.transaction_named(slot, id) else { return };
        let text = format!("the transaction can only be rolled back: {}", why.text);
        let failed = &mut self.clients.transactions[transaction].failed;
        failed.get_or_insert_with(|| Refusal::new(why.kind, text));
    }

    /// Ends a transaction that the connection names. The answer comes now, or once what it did is flushed.
    pub(crate) fn end_transaction<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        id: TransactionId,
        commits: bool,
        fx: &mut F,
    ) -> Answer {
        let transaction = self.transaction_named(slot, id)?;
        let failed = self.clients.transactions[transaction].failed.clone();
        let committed = match failed {
            _ if !commits => Ok(None),
            Some(why) => Err(why),
            None => self.commit(now, transaction, fx),
        };
        self.roll_back(now, transaction, fx);
        self.forget_transaction(transaction);
        self.run_overdue(now, fx);
        self.answer_commit(slot, committed?)
    }

    /// Commits the channel's own transaction and begins the next. Where that is refused, it is rolled back.
    pub(crate) fn commit_own<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) -> Answer {
        let transaction = self.clients.channels[slot].own_transaction()?;
        let committed = match self.clients.transactions[transaction].failed.take() {
            Some(why) => Err(why),
            None => self.commit(now, transaction, fx),
        };
        self.roll_back_own(slot)?;
        self.answer_commit(slot, committed?)
    }

    /// The answer to a commit: now, or once that position is flushed.
    fn answer_commit(&mut self, slot: u32, committed: Option<Position>) -> Answer {
        let Some(position) = committed else { return Ok(Some(Reply::Done)) };
        self.answer_once_flushed(slot, position, Ok(Reply::Done));
        Ok(None)
    }

    /// Forgets what the channel's own transaction holds; what it settled is unsettled again.
    pub(crate) fn roll_back_own(&mut self, slot: u32) -> Result<(), Refusal> {
        let transaction = self.clients.channels[slot].own_transaction()?;
        let held = self.take_held(transaction);
        self.clients.transactions[transaction].failed = None;
        let Held { operations, mut deliveries, .. } = held;
        for operation in operations.iter() {
            if let Operation::Settle(settle) = operation
                && let Some(delivered) = deliveries.take_first(u64::MAX)
            {
                self.unsettle(slot, settle.tag, delivered);
            }
        }
        Ok(())
    }

    /// A delivery is its channel's again.
    fn unsettle(&mut self, slot: u32, tag: u64, mut delivered: Delivered) {
        // A snapshot looks at transactions after channels.
        self.snapshot_first(delivered.queue_number, &delivered.entry);
        delivered.entry.mark = self.storage.mark;
        self.agenda.purges.keep(delivered.queue_number, delivered.entry.seq);
        let channel = &mut self.clients.channels[slot];
        let timer = Timer::Settle(slot);
        self.timers.bring_forward(&mut channel.settle_timer, delivered.deadline, timer);
        channel.unsettled.put_back(tag, delivered);
    }

    /// What a transaction holds, which it loses.
    pub(super) fn take_held(&mut self, transaction: u32) -> Held {
        let open = &mut self.clients.transactions[transaction];
        self.timers.reset(&mut open.timer, None, Timer::Transaction(transaction));
        std::mem::take(&mut open.held)
    }

    /// Forgets what a transaction holds; its deliveries go back to their queues, which hand nothing out until
    /// all are there.
    fn roll_back<F: Effects>(&mut self, now: Time, transaction: u32, fx: &mut F) {
        let Held { operations, mut deliveries, .. } = self.take_held(transaction);
        let mut later = deliveries.len() > self.options.limits.settles_at_once;
        let mut run: Option<(Option<u32>, u64, Unsettled)> = None;
        for operation in operations.iter() {
            let Operation::Settle(HeldSettle { channel, tag, .. }) = operation else { continue };
            let Some(delivered) = deliveries.take_first(u64::MAX) else { break };
            let channel = self.clients.channel_at(*channel);
            if !later {
                let manner = Fate::Same(Outcome::REQUEUE).plain();
                self.settle_one(now, channel, delivered, manner, fx);
                later = self.letters_are_much();
                continue;
            }
            match &mut run {
                Some((of, last, back)) if *of == channel && *last < *tag => {
                    back.push(*tag, delivered);
                    *last = *tag;
                }
                _ => {
                    let mut back = Unsettled::default();
                    back.push(*tag, delivered);
                    if let Some((channel, _, back)) = run.replace((channel, *tag, back)) {
                        self.bring_back_later(channel, back);
                    }
                }
            }
        }
        if let Some((channel, _, back)) = run {
            self.bring_back_later(channel, back);
        }
    }

    /// An open transaction, whose contents are gone, ends.
    fn forget_transaction(&mut self, transaction: u32) {
        let Some(Transaction { owner, id: Some(id), .. }) =
            self.clients.transactions.remove(transaction)
        else {
            return;
        };
        let connection = self.clients.channels.get(owner).map(|channel| channel.id.connection);
        if let Some(connection) = connection.and_then(|it| self.clients.connection_mut(it)) {
            connection.transactions.remove(&id);
        }
    }

    /// The transactions of a channel that closes are rolled back, those that its connection names included.
    pub(super) fn end_transactions_of<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        if self.roll_back_own(slot).is_ok()
            && let Some(transaction) = self.clients.channels[slot].transaction.take()
        {
            self.forget_transaction(transaction);
        }
        let connection = self.clients.connection(self.clients.channels[slot].id.connection);
        let Some(connection) = connection.filter(|it| !it.transactions.is_empty()) else { return };
        let begun_here = |it: &&u32| self.clients.transactions[**it].owner == slot;
        let own: Vec<u32> = connection.transactions.values().filter(begun_here).copied().collect();
        for transaction in own {
            self.roll_back(now, transaction, fx);
            self.forget_transaction(transaction);
        }
    }

    /// A transaction is about to hold something: with the first of it, its time begins.
    fn time_transaction(&mut self, now: Time, transaction: u32) {
        let Some(most) = self.options.limits.transaction_timeout else { return };
        let open = &mut self.clients.transactions[transaction];
        if open.held.is_empty() {
            let timer = Timer::Transaction(transaction);
            self.timers.reset(&mut open.timer, Some(now.plus(most)), timer);
        }
    }

    /// The timer of a transaction went off.
    pub(crate) fn time_out_transaction<F: Effects>(
        &mut self,
        now: Time,
        transaction: u32,
        fx: &mut F,
    ) {
        let Some(open) = self.clients.transactions.get_mut(transaction) else { return };
        let Some(most) = self.options.limits.transaction_timeout else { return };
        if open.timer.take_if(|at| *at <= now).is_none() {
            return;
        }
        let text = format!(
            "the transaction was rolled back: it was open for {} ms (transaction-timeout)",
            most.as_millis()
        );
        open.failed = Some(Refusal::new(RefusalKind::PreconditionFailed, text));
        self.counters.transaction_timeouts += 1;
        match open.id {
            Some(_) => self.roll_back(now, transaction, fx),
            None => {
                let (owner, failed) = (open.owner, open.failed.take());
                let _ = self.roll_back_own(owner);
                self.clients.transactions[transaction].failed = failed;
            }
        }
    }
}

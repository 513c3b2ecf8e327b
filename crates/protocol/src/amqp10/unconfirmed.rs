//! Publishes of a session that wait for their outcome, and the dispositions that tell it: one for each run of
//! deliveries with the same outcome.

use super::codec::{
    Accepted, DeliveryState, Disposition, Outcome, Rejected, Released, Role, TransactionalState,
    write_frame,
};
use super::fault::Reason;
use angarium_engine::TransactionId;
use std::collections::VecDeque;

/// A publish that waits for its outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unconfirmed {
    pub(super) delivery_id: u32,
    pub(super) handle: u32,
    pub(super) told: Told,
    /// The transaction that it is part of.
    pub(super) transaction: Option<TransactionId>,
}

/// How an outcome goes to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Not: it has settled the delivery itself.
    Not,
    /// By a disposition that settles.
    Settled,
    /// By one that does not: the peer settles first (receiver settle mode `second`).
    Unsettled,
    /// It was told already.
    Done,
}

/// The publishes of a session that wait, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// How many were taken out.
    gone: u64,
    waiting: VecDeque<Unconfirmed>,
}

impl Ring {
    /// Adds the next publish.
    #[inline]
    pub(super) fn push(&mut self, publish: Unconfirmed) {
        self.waiting.push_back(publish);
    }
    /// The last publish was refused before it got a number.
    pub(super) fn pop(&mut self) -> Option<Unconfirmed> {
        self.waiting.pop_back()
    }
    /// Takes out all up to that number.
    pub(super) fn take_up_to(&mut self, number: u64) -> impl Iterator<Item = Unconfirmed> {
        let count = number.saturating_sub(self.gone).min(self.waiting.len() as u64);
        self.gone += count;
        self.waiting.drain(..count as usize)
    }
    /// The publish of that number, which stays in its place as one that is done.
    pub(super) fn take_one(&mut self, number: u64) -> Option<Unconfirmed> {
        let index = number.checked_sub(self.gone + 1)?;
        let publish = self.waiting.get_mut(usize::try_from(index).ok()?)?;
        let taken = *publish;
        publish.told = Told::Done;
        Some(taken)
    }
    /// The link of the publish of that number.
    pub(super) fn handle_of(&self, number: u64) -> Option<u32> {
        let index = number.checked_sub(self.gone + 1)?;
        Some(self.waiting.get(usize::try_from(index).ok()?)?.handle)
    }
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// Deliveries in a row with the same outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) settled: bool,
    pub(super) transaction: Option<TransactionId>,
}

impl Run {
    /// A run of one delivery, without a transaction.
    pub(super) fn one(delivery_id: u32, settled: bool) -> Run {
        Run { first: delivery_id, last: delivery_id, settled, transaction: None }
    }
    /// A run of one publish; `None`: its outcome does not go to the peer.
    #[inline]
    pub(super) fn of(publish: Unconfirmed) -> Option<Run> {
        let settled = match publish.told {
            Told::Settled => true,
            Told::Unsettled => false,
            Told::Not | Told::Done => return None,
        };
        let run = Run::one(publish.delivery_id, settled);
        Some(Run { transaction: publish.transaction, ..run })
    }
    /// Whether another one continues the run, which it then does.
    #[inline]
    pub(super) fn takes(&mut self, next: Run) -> bool {
        let takes = self.settled == next.settled
            && self.last.wrapping_add(1) == next.first
            && self.transaction == next.transaction;
        if takes {
            self.last = next.last;
        }
        takes
    }

    /// Tells the peer that these were accepted.
    pub(super) fn put_accepted(self, out: &mut Vec<u8>, channel: u16) {
        self.put_outcome(out, channel, Outcome::Accepted(Accepted {}));
    }

    /// Tells the peer that these were released: nobody has taken them.
    pub(super) fn put_released(self, out: &mut Vec<u8>, channel: u16) {
        self.put_outcome(out, channel, Outcome::Released(Released {}));
    }

    /// Tells the peer that these were rejected, and why.
    pub(super) fn put_rejected(self, out: &mut Vec<u8>, channel: u16, reason: Reason<'_>) {
        let error = Some(reason.error());
        self.put_outcome(out, channel, Outcome::Rejected(Rejected { error }));
    }

    fn put_outcome(self, out: &mut Vec<u8>, channel: u16, outcome: Outcome<'_>) {
        let Some(id) = self.transaction else { return self.put(out, channel, outcome.into()) };
        let state = TransactionalState { txn_id: &id.0.to_be_bytes(), outcome: Some(outcome) };
        self.put(out, channel, DeliveryState::TransactionalState(state));
    }

    /// Tells the peer of this state.
    pub(super) fn put(self, out: &mut Vec<u8>, channel: u16, state: DeliveryState<'_>) {
        let Run { first, last, settled, .. } = self;
        let disposition = Disposition {
            role: Role::Receiver,
            first,
            last: (first != last).then_some(last),
            settled,
            state: Some(state),
            batchable: false,
        };
        write_frame(&disposition, channel, &[], out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(delivery_id: u32) -> Unconfirmed {
        Unconfirmed { delivery_id, handle: 0, told: Told::Settled, transaction: None }
    }

    #[test]
    fn numbers_find_their_deliveries() {
        let mut ring = Ring::default();
        (10..15).for_each(|id| ring.push(publish(id)));
        assert_eq!(ring.take_one(3).map(|it| it.delivery_id), Some(12));
        assert!(ring.take_one(6).is_none() && ring.take_one(0).is_none());
        let taken: Vec<_> = ring.take_up_to(4).map(|it| (it.delivery_id, it.told)).collect();
        let (settled, done) = (Told::Settled, Told::Done);
        assert_eq!(taken, [(10, settled), (11, settled), (12, done), (13, settled)]);
        assert_eq!(ring.take_up_to(2).count(), 0);
        assert_eq!(ring.take_one(5).map(|it| it.delivery_id), Some(14));
        assert_eq!(ring.take_up_to(9).count(), 1);
    }
}

//! What was attempted, confirmed, delivered and settled, and the promises that must hold between them.
//! Independent of brokers: it records what happened and reports what must not have happened.

use std::collections::{BTreeMap, BTreeSet};

/// A message: its producer, and its number there.
pub(crate) type Id = (u32, u64);

/// What a consumer did with a message, as far as the broker's answer tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Settled {
    /// Nothing yet, or it was put back.
    No,
    /// It was acknowledged, and nobody knows whether that arrived.
    Maybe,
    /// It was acknowledged in a transaction that the broker said is committed.
    Surely,
}

/// A producer: what it tried and what the broker confirmed.
#[derive(Debug, Default)]
pub(crate) struct Producer {
    /// The queues that each of its messages goes to.
    pub(crate) queues: Vec<&'static str>,
    /// Messages 0 to this number (excluded) may have reached the broker.
    pub(crate) attempted: u64,
    /// Confirmed messages.
    pub(crate) confirmed: BTreeSet<u64>,
    /// How many of its messages form one transaction; 0: none do.
    pub(crate) transaction: u64,
}

/// The order that one consumer sees.
#[derive(Debug, Default)]
pub(crate) struct Session {
    last: BTreeMap<u32, u64>,
    strict: bool,
}

impl Session {
    /// The order of an only consumer that puts nothing back: all deliveries are in order, also
    /// repeated ones.
    pub(crate) fn strict() -> Session {
        Session { strict: true, ..Session::default() }
    }
}

/// Everything that happened.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Producers by number.
    pub(crate) producers: BTreeMap<u32, Producer>,
    /// What was moved by a committed transaction from `work` to `done`.
    pub(crate) moved: BTreeSet<Id>,
    seen: BTreeMap<&'static str, BTreeMap<Id, Settled>>,
    /// Deliveries so far.
    pub(crate) deliveries: u64,
    /// Those of them that were repeated.
    pub(crate) repeated: u64,
}

impl History {
    /// A message was delivered.
    pub(crate) fn delivered(
        &mut self,
        session: &mut Session,
        queue: &'static str,
        id: Id,
        redelivered: bool,
    ) -> Result<(), String> {
        let (producer, number) = id;
        let attempted = self.producers.get(&producer).map_or(0, |producer| producer.attempted);
        if number >= attempted {
            return Err(format!("{queue}: {id:?} was never published (invented)"));
        }
        self.deliveries += 1;
        match self.seen.entry(queue).or_default().get(&id) {
            Some(Settled::Surely) => {
                return Err(format!("{queue}: {id:?} returned after its commit"));
            }
            Some(_) if !redelivered => {
                return Err(format!("{queue}: {id:?} repeated and not marked"));
            }
            Some(_) => self.repeated += 1,
            None => {}
        }
        self.seen.entry(queue).or_default().insert(id, Settled::No);
        if session.strict || !redelivered {
            let last = session.last.insert(producer, number);
            if last.is_some_and(|last| last >= number) {
                return Err(format!("{queue}: {id:?} came after {last:?} (out of order)"));
            }
        }
        Ok(())
    }

    /// A message was settled.
    pub(crate) fn settled(&mut self, queue: &'static str, id: Id, how: Settled) {
        self.seen.entry(queue).or_default().insert(id, how);
    }

    /// A queue was emptied, and these messages were in it: is everything there that must be?
    pub(crate) fn drained(&self, queue: &'static str, found: &BTreeSet<Id>) -> Result<(), String> {
        let before = self.seen.get(queue);
        let settled = |id: &Id| {
            let how = before.and_then(|seen| seen.get(id)).copied().unwrap_or(Settled::No);
            how != Settled::No && !found.contains(id)
        };
        let missing = |id: &Id| !found.contains(id) && !settled(id);
        let mut lost: Vec<Id> = Vec::new();
        for (number, producer) in &self.producers {
            if producer.queues.contains(&queue) {
                let expected = producer.confirmed.iter().map(|message| (*number, *message));
                lost.extend(expected.filter(missing));
            }
        }
        if queue == "done" {
            lost.extend(self.moved.iter().copied().filter(missing));
        }
        match lost.first() {
            None => Ok(()),
            Some(first) => Err(format!(
                "{queue}: {} confirmed messages are lost, the first {first:?}",
                lost.len()
            )),
        }
    }

    /// After all queues were emptied: are transactions whole, in every queue?
    pub(crate) fn transactions_are_whole(&self) -> Result<(), String> {
        for (number, producer) in &self.producers {
            if producer.transaction == 0 {
                continue;
            }
            for first in (0..producer.attempted).step_by(producer.transaction as usize) {
                let part = |queue: &&'static str| {
                    let messages = first..first + producer.transaction;
                    messages.filter(|message| self.was_seen(queue, (*number, *message))).count()
                        as u64
                };
                let parts: Vec<u64> = producer.queues.iter().map(part).collect();
                let none = parts.iter().all(|part| *part == 0);
                if !none && parts.iter().any(|part| *part != producer.transaction) {
                    return Err(format!(
                        "transaction {first} of {number} is torn: {parts:?} messages"
                    ));
                }
            }
        }
        Ok(())
    }

    /// After all queues were emptied: what went from `work` to `done` in a transaction is in one of them.
    pub(crate) fn moves_are_whole(&self, work: &BTreeSet<Id>) -> Result<(), String> {
        match work.iter().find(|id| self.was_seen("done", **id)) {
            Some(id) => Err(format!("{id:?} is in work and in done")),
            None => Ok(()),
        }
    }

    fn was_seen(&self, queue: &str, id: Id) -> bool {
        self.seen.get(queue).is_some_and(|seen| seen.contains_key(&id))
    }

    /// How many messages were confirmed so far.
    pub(crate) fn confirmed(&self) -> usize {
        self.producers.values().map(|producer| producer.confirmed.len()).sum()
    }
}

/// The body of a message: who it is, then bytes that follow from that.
pub(crate) fn body((producer, number): Id) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&producer.to_be_bytes());
    bytes.extend_from_slice(&number.to_be_bytes());
    let mixed = (number ^ u64::from(producer) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let length = mixed >> 53;
    bytes.extend((0..length).map(|index| (mixed >> 8).wrapping_add(index * 31) as u8));
    bytes
}

/// Who a body says it is; an error if it is not that message's body to the last byte.
pub(crate) fn identify(bytes: &[u8]) -> Result<Id, String> {
    let id = bytes.split_first_chunk::<4>().and_then(|(producer, rest)| {
        let (number, _) = rest.split_first_chunk::<8>()?;
        Some((u32::from_be_bytes(*producer), u64::from_be_bytes(*number)))
    });
    match id {
        Some(id) if body(id) == bytes => Ok(id),
        _ => Err(format!("a body of {} bytes that nobody published", bytes.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(transaction: u64) -> History {
        let mut history = History::default();
        let queues = if transaction > 0 { vec!["a", "b"] } else { vec!["a"] };
        let confirmed = [0, 1, 2].into();
        let producer = Producer { queues, attempted: 4, confirmed, transaction };
        history.producers.insert(7, producer);
        history
    }

    #[track_caller]
    fn fails(result: Result<(), String>, word: &str) {
        assert!(result.as_ref().is_err_and(|text| text.contains(word)), "{result:?}");
    }

    #[test]
    fn what_was_never_published_is_found() {
        let (mut history, mut session) = (history(0), Session::default());
        assert_eq!(history.delivered(&mut session, "a", (7, 3), false), Ok(()));
        fails(history.delivered(&mut session, "a", (7, 4), false), "invented");
        fails(history.delivered(&mut session, "a", (8, 0), false), "invented");
    }

    #[test]
    fn a_repetition_must_be_marked() {
        let (mut history, mut session) = (history(0), Session::default());
        assert_eq!(history.delivered(&mut session, "a", (7, 0), false), Ok(()));
        assert_eq!(history.delivered(&mut session, "a", (7, 0), true), Ok(()));
        fails(history.delivered(&mut Session::default(), "a", (7, 0), false), "not marked");
        assert_eq!(history.repeated, 1);
    }

    #[test]
    fn what_was_settled_for_sure_must_not_return() {
        let (mut history, mut session) = (history(0), Session::default());
        history.settled("a", (7, 0), Settled::Surely);
        fails(history.delivered(&mut session, "a", (7, 0), true), "returned");
    }

    #[test]
    fn order_is_kept_per_producer() {
        let (mut history, mut session) = (history(0), Session::default());
        assert_eq!(history.delivered(&mut session, "a", (7, 2), false), Ok(()));
        fails(history.delivered(&mut session, "a", (7, 1), false), "out of order");
        let mut strict = Session::strict();
        assert_eq!(history.delivered(&mut strict, "a", (7, 2), true), Ok(()));
        fails(history.delivered(&mut strict, "a", (7, 1), true), "out of order");
    }

    #[test]
    fn what_was_confirmed_and_not_settled_must_be_there() {
        let mut history = history(0);
        assert_eq!(history.drained("a", &[(7, 0), (7, 1), (7, 2)].into()), Ok(()));
        fails(history.drained("a", &[(7, 0), (7, 2), (7, 3)].into()), "the first (7, 1)");
        history.settled("a", (7, 1), Settled::No);
        fails(history.drained("a", &[(7, 0), (7, 2)].into()), "1 confirmed messages are lost");
        history.settled("a", (7, 1), Settled::Maybe);
        assert_eq!(history.drained("a", &[(7, 0), (7, 2)].into()), Ok(()));
    }

    #[test]
    fn a_torn_transaction_is_found() {
        let mut history = history(2);
        let mut session = Session::default();
        for queue in ["a", "b"] {
            for number in [0, 1] {
                history.delivered(&mut Session::default(), queue, (7, number), false).unwrap();
            }
        }
        assert_eq!(history.transactions_are_whole(), Ok(()));
        history.delivered(&mut session, "a", (7, 2), false).unwrap();
        history.delivered(&mut session, "a", (7, 3), false).unwrap();
        fails(history.transactions_are_whole(), "torn: [2, 0]");
    }

    #[test]
    fn a_move_that_is_in_both_queues_or_in_none_is_found() {
        let mut history = history(0);
        history.delivered(&mut Session::default(), "done", (7, 1), false).unwrap();
        assert_eq!(history.moves_are_whole(&[(7, 0)].into()), Ok(()));
        fails(history.moves_are_whole(&[(7, 1)].into()), "in work and in done");
        history.moved.insert((7, 2));
        fails(history.drained("done", &BTreeSet::new()), "lost");
    }

    #[test]
    fn a_changed_body_is_found() {
        let mut bytes = body((3, 9));
        assert_eq!(identify(&bytes), Ok((3, 9)));
        bytes.push(0);
        assert!(identify(&bytes).is_err());
        assert!(identify(&[1, 2, 3]).is_err());
    }
}

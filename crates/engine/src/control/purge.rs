//! Purges of queues. What is ready in a queue is out of it at once; the journal's space is given back only
//! behind a record of the purge. That record lists the messages that stay because they are under way
//! (delivered, held by a transaction, being settled, on the way to a dead-letter target), which are looked
//! for over several turns.
//!
//! A crash before the record leaves the whole queue, or none of it where a snapshot was begun meanwhile. The
//! search goes by the order in which messages move (deliveries, transactions, settles, dead letters), so a
//! message that moves on meanwhile is found at its next place; one that goes back to its queue or its channel
//! is noted there.

use super::underway::{Next, Purge, Steps};
use crate::engine::Engine;
use crate::interface::refusal::refuse;
use crate::queue::Queue;
use crate::queue::page_out::Wanted;
use crate::queue::ranges::Ranges;
use crate::storage::record;
use crate::storage::record::Kind;
use crate::{DiscardReason, Effects, LoadId, Position, Refusal, Reply};

/// Purges that may be under way.
const PURGES_MAX: usize = 1_000;

impl Engine {
    /// Drops everything ready in a queue; the answer says how many messages that were. `None`: it comes once
    /// all that is out was looked at.
    pub(crate) fn purge<F: Effects>(
        &mut self,
        channel: u32,
        slot: u32,
        fx: &mut F,
    ) -> Result<Option<Reply>, Refusal> {
        self.check_kept(self.queues[slot].durable)?;
        if self.agenda.purges.0.len() >= PURGES_MAX {
            refuse!(
                LimitExceeded,
                "{PURGES_MAX} purges are under way: try again once some are done"
            );
        }
        self.pass_logs(slot, fx);
        self.record_settled_of(slot, false, fx);
        let Queue { ready, number, next_seq: before, unsettled, .. } = self.queues[slot];
        if ready == 0 {
            return Ok(Some(Reply::Messages(0)));
        }
        self.end_handed_waiting(slot, fx);
        let departed = self.drop_messages(slot, true);
        self.count_known(slot);
        self.count_discarded(slot, DiscardReason::Purged, ready);
        let keeps_all = self.queues[slot].notes.is_some();
        let all_is_known = unsettled == 0 && !keeps_all;
        let next = if all_is_known { Next::Nothing } else { Next::Channel { slot: 0, tag: 0 } };
        self.agenda.purges.0.push_back(Purge {
            answers: None,
            queue: number,
            before,
            departed,
            kept: Ranges::default(),
            keeps_all,
            next,
            record: Vec::new(),
            ranges: 0,
        });
        if self.agenda.purges.0.len() == 1 {
            self.purge_some(fx);
        }
        let waits = self.agenda.purges.0.back().filter(|it| it.answers.is_none());
        if waits.is_none() {
            return Ok(Some(Reply::Messages(ready)));
        }
        let work = self.answer_once_done(channel, Ok(Reply::Messages(ready)));
        let place = self.clients.channels[channel].place(channel);
        if let Some(purge) = self.agenda.purges.0.back_mut() {
            purge.answers = Some((place, work));
        }
        Ok(None)
    }

    /// Goes on with the first purge; as much as there is time for.
    #[cold]
    pub(crate) fn purge_some<F: Effects>(&mut self, fx: &mut F) {
        let Some(mut purge) = self.agenda.purges.0.pop_front() else { return };
        let mut steps = Steps(self.options.limits.given_back_at_once);
        // Each does at least one step.
        while steps.0 > 0 {
            purge.next = match purge.next {
                Next::Channel { slot, tag } => {
                    self.find_delivered(&mut purge, slot, tag, &mut steps)
                }
                Next::Transaction { slot, number } => {
                    self.find_held(&mut purge, slot, number, &mut steps)
                }
                Next::Settling { number, tag } => {
                    self.find_settling(&mut purge, number, tag, &mut steps)
                }
                Next::Dying(from) => self.find_dying(&mut purge, from, &mut steps),
                Next::Notes { seq } => self.forget_notes(&purge, seq, &mut steps),
                Next::Ranges => purge.write_some(&mut steps),
                Next::Nothing => return self.end_purge(purge, fx),
            };
        }
        self.agenda.purges.0.push_front(purge);
    }

    fn find_delivered(&self, purge: &mut Purge, slot: u32, tag: u64, steps: &mut Steps) -> Next {
        if slot as usize >= self.clients.channels.slots() {
            return Next::Transaction { slot: 0, number: 0 };
        }
        let channel = self.clients.channels.get(slot);
        match channel.and_then(|channel| purge.look_at(&channel.unsettled, tag, steps)) {
            Some(tag) => Next::Channel { slot, tag },
            None => {
                steps.spend();
                Next::Channel { slot: slot + 1, tag: 0 }
            }
        }
    }

    fn find_held(&self, purge: &mut Purge, slot: u32, number: u64, steps: &mut Steps) -> Next {
        if slot as usize >= self.clients.transactions.slots() {
            return Next::Settling { number: 0, tag: 0 };
        }
        let open = self.clients.transactions.get(slot);
        match open.and_then(|open| purge.look_at(&open.held.deliveries, number, steps)) {
            Some(number) => Next::Transaction { slot, number },
            None => {
                steps.spend();
                Next::Transaction { slot: slot + 1, number: 0 }
            }
        }
    }

    fn find_settling(&self, purge: &mut Purge, number: u64, tag: u64, steps: &mut Steps) -> Next {
        let Some(settling) = self.agenda.settling.first_from(number) else {
            return Next::Dying(LoadId(0));
        };
        let from = if settling.number == number { tag } else { 0 };
        match purge.look_at(&settling.deliveries, from, steps) {
            Some(tag) => Next::Settling { number: settling.number, tag },
            None => {
                steps.spend();
                Next::Settling { number: settling.number + 1, tag: 0 }
            }
        }
    }

    fn find_dying(&self, purge: &mut Purge, from: LoadId, steps: &mut Steps) -> Next {
        for (id, loading) in self.storage.loads.range(from..) {
            if !steps.spend() {
                return Next::Dying(*id);
            }
            if let Wanted::DeadLetter { entry, .. } = &loading.wanted
                && loading.number == purge.queue
                && entry.seq < purge.before
            {
                purge.kept.insert(entry.seq);
            }
        }
        if purge.keeps_all { Next::Notes { seq: 0 } } else { Next::Ranges }
    }

    /// What is known of messages that have gone goes too.
    fn forget_notes(&mut self, purge: &Purge, from: u64, steps: &mut Steps) -> Next {
        let Some(queue) = self.queues.numbered(purge.queue) else { return Next::Ranges };
        let Some(notes) = &mut queue.notes else { return Next::Ranges };
        let is_gone = |seq| !purge.kept.contains(seq);
        let (looked_at, next) = notes.forget_gone(from..purge.before, steps.0, is_gone);
        steps.0 -= looked_at;
        match next {
            Some(seq) => Next::Notes { seq },
            None => {
                if notes.is_empty() {
                    queue.notes = None;
                }
                Next::Ranges
            }
        }
    }

    /// All that stays is known: the record says it, and what has gone is given back.
    fn end_purge<F: Effects>(&mut self, purge: Purge, fx: &mut F) {
        self.agenda.departures.let_go(&purge.departed);
        // The record of its deletion, if there is one, says more.
        let is_recorded = self.queues.numbered(purge.queue).is_some_and(|queue| queue.durable);
        let position = is_recorded.then(|| self.record_purge(&purge, fx));
        match purge.answers {
            None => self.storage.changed_at = position.or(self.storage.changed_at),
            Some((place, work)) => self.work_is_done(place, work, position, fx),
        }
    }

    fn record_purge<F: Effects>(&mut self, purge: &Purge, fx: &mut F) -> Position {
        let mut writer = record::start(&mut self.scratch.record, Kind::Purged);
        writer.u64(purge.queue);
        writer.u64(purge.before);
        writer.varint(purge.ranges);
        fx.append(&[&self.scratch.record, &purge.record], true)
    }
}

//! The journal's work: jobs and reads handed out, their results, checkpoints, a full disk.
//!
//! Only home has a journal.

use crate::connection::table::SWEEP_INTERVAL;
use crate::effects::NodeEffects;
use crate::node::Node;
use crate::shard::message::FromHome;
use crate::storage::reads::{self, ReadDone, ReadJob, Reading};
use angarium_engine::{Position, StorageState, Time};
use angarium_journal::{Done, Job, State};
use angarium_protocol::ProtocolHandler;
use std::time::Duration;

/// How long the journal has had room before direct messages may wait on its disk again: where there is
/// not enough for both, persistent ones are seldom refused for it.
const SPILL_PAUSE: Duration = Duration::from_secs(60);

/// Why messages are not taken while the system refuses memory.
pub(crate) const NO_MEMORY: &str = "the system refuses memory to the broker";

impl Node {
    /// The journal, for its counters.
    ///
    /// # Panics
    /// Where this shard is not home.
    pub fn journal(&self) -> &angarium_journal::Journal {
        self.effects.journal.as_ref().expect("only home is asked for the journal")
    }

    /// Messages that were gone when they were read, since a repair of the journal had given them up.
    pub fn take_given_up(&mut self) -> Vec<angarium_engine::GivenUp> {
        self.engine.take_given_up()
    }

    /// How far messages are handed out, by queue, where that moved; the host keeps it before it sends
    /// anything.
    pub fn take_handed_out(&mut self) -> angarium_engine::HandedOut {
        self.engine.take_handed_out()
    }

    /// The next work for the disk, if any; its result comes back by [`Node::job_done`].
    pub fn next_job(&mut self) -> Option<Job> {
        let is_put_off = self.storage.writes.due.is_some() && self.is_unhurried();
        let journal = self.effects.journal.as_mut()?;
        if is_put_off { journal.next_space_job() } else { journal.next_job() }
    }

    /// Whether nothing waits for what the journal has to write.
    fn is_unhurried(&self) -> bool {
        let Some(journal) = &self.effects.journal else { return false };
        let written = journal.written();
        journal.can_defer_write()
            && self.effects.loads.iter().all(|load| reads::is_written(load, written))
    }

    /// A disk job ended.
    pub fn job_done(&mut self, now: Time, done: Done) {
        let Some(journal) = &mut self.effects.journal else { return };
        let before = journal.durable();
        journal.finished(done);
        let durable = journal.durable();
        if durable > before {
            // Answers that waited for the flush are about what was told at some time before.
            self.effects.begin_call(now);
            self.effects.news_in_call = self.effects.links.last_news;
            self.engine.durable(Position(durable.0), &mut self.effects);
        }
        self.watch_storage(now);
    }

    /// The next records to read back, if any may be read yet.
    pub fn next_read(&mut self) -> Option<ReadJob> {
        let NodeEffects { journal, loads, .. } = &mut self.effects;
        let journal = journal.as_mut()?;
        let (written, is_congested) = (journal.written(), journal.congested());
        let at = loads.iter().position(|load| reads::may_run(load, written, is_congested))?;
        let load = loads.remove(at)?;
        let reading = match load.search {
            Some(search) => Reading::LostPage(journal.scan(search.segments()), search),
            None => {
                let positions = load.positions.iter().map(|it| angarium_journal::Position(it.0));
                Reading::Records(journal.read(positions.collect(), load.is_beside_others))
            }
        };
        Some(ReadJob { id: load.id, reading })
    }

    /// A read ended.
    pub fn read_done(&mut self, now: Time, done: ReadDone) {
        self.engine.finish_load(now, done.id, done.records, &mut self.effects);
    }

    /// Tells engine and clients when the journal's state changed.
    pub(crate) fn watch_storage(&mut self, now: Time) {
        let Some(journal) = &self.effects.journal else { return };
        let is_exhausted = journal.is_exhausted();
        if *journal.state() == self.storage.state && is_exhausted == self.storage.is_exhausted {
            return;
        }
        self.storage.state = journal.state().clone();
        self.storage.is_exhausted = is_exhausted;
        if self.storage.state == State::Full && self.connections.next_sweep.is_none() {
            self.connections.next_sweep = Some(now.plus(SWEEP_INTERVAL));
        }
        let (state, why) = self.judge_storage();
        self.change_storage(now, state, why);
        if self.storage.has_no_memory {
            self.have_no_memory(now);
        }
        if self.storage.state == State::Full {
            self.storage.spill_resumes = Some(now.plus(SPILL_PAUSE));
            self.have_spill_yield(true);
        }
    }

    /// What the journal's state means to the engine, and why messages are not taken.
    fn judge_storage(&self) -> (StorageState, Option<String>) {
        match &self.storage.state {
            State::Ready => (StorageState::Ready, None),
            State::Full => {
                let journal = self.effects.journal.as_ref();
                let shortage = journal.map(|journal| (journal.shortage_kind(), journal.shortage()));
                let why = match shortage.filter(|(_, why)| !why.is_empty()) {
                    Some((kind, why)) => format!("{kind}: {why}"),
                    None => "the disk is full".to_owned(),
                };
                let state = match self.storage.is_exhausted {
                    true => StorageState::Exhausted,
                    false => StorageState::Full,
                };
                (state, Some(why))
            }
            State::Failed(why) => (StorageState::Failed, Some(format!("the disk failed: {why}"))),
        }
    }

    /// The system refuses memory to the process, or no longer does: until then nothing is taken that needs
    /// more. The host says so at each shard, in every turn.
    pub fn set_no_memory(&mut self, now: Time, has_no_memory: bool) {
        if self.storage.has_no_memory == has_no_memory {
            return;
        }
        self.storage.has_no_memory = has_no_memory;
        self.memory.set_closed(has_no_memory);
        // What each connection may hold has changed.
        self.connections.next_sweep = Some(now);
        if !self.is_home() {
            return;
        }
        if has_no_memory {
            self.have_no_memory(now);
        } else {
            let (state, why) = self.judge_storage();
            self.change_storage(now, state, why);
        }
    }

    /// At home: no message is taken.
    fn have_no_memory(&mut self, now: Time) {
        self.change_storage(now, StorageState::NoMemory, Some(NO_MEMORY.to_owned()));
    }

    /// At home: from now on messages are taken or not. Clients learn why before what they have published is
    /// refused for it: some protocols have no reason in a refusal.
    fn change_storage(&mut self, now: Time, state: StorageState, why: Option<String>) {
        if self.storage.blocked != why {
            self.tell_blocked(now, why);
        }
        self.engine.storage_changed(state, &mut self.effects);
    }

    /// At home: tells clients of all shards that messages cannot be taken, or can again.
    fn tell_blocked(&mut self, now: Time, why: Option<String>) {
        self.effects.links.say_to_all(FromHome::Blocked { why: why.as_deref() });
        self.set_blocked(now, why);
    }

    /// At home: has the spill logs of all shards make room for the journal, or write again.
    fn have_spill_yield(&mut self, yields: bool) {
        self.effects.spill.set_yields(yields);
        self.effects.links.say_to_all(FromHome::Yield { yields });
    }

    /// Has the spill logs write again once the journal has had room for long enough.
    pub(crate) fn resume_spill_when_due(&mut self, now: Time) {
        match self.storage.spill_resumes {
            Some(_) if self.storage.state == State::Full => {
                self.storage.spill_resumes = Some(now.plus(SPILL_PAUSE));
            }
            Some(due) if due <= now => {
                self.storage.spill_resumes = None;
                self.have_spill_yield(false);
            }
            _ => {}
        }
    }

    /// Tells clients that messages cannot be taken, or can again.
    pub(crate) fn set_blocked(&mut self, now: Time, why: Option<String>) {
        for id in self.slots() {
            self.with_handler(now, id, |handler, context| handler.blocked(context, why.as_deref()));
        }
        self.storage.blocked = why;
    }

    /// Whether the journal has more than the disk takes.
    pub(crate) fn is_journal_congested(&self) -> bool {
        match &self.effects.journal {
            Some(journal) => journal.congested(),
            None => self.storage.is_congested,
        }
    }

    /// At home: tells the other shards when the journal has more than the disk takes, and when it no
    /// longer has.
    pub(crate) fn tell_congestion(&mut self) {
        let is_congested = self.is_journal_congested();
        if self.is_home() && self.storage.is_congested != is_congested {
            self.storage.is_congested = is_congested;
            self.effects.links.say_to_all(FromHome::Congested { is_congested });
        }
    }

    /// Looks whether a full disk still is; says whether it was.
    pub(crate) fn retry_if_full(&mut self) -> bool {
        let journal = self.effects.journal.as_mut();
        let Some(journal) = journal.filter(|journal| *journal.state() == State::Full) else {
            return false;
        };
        journal.retry();
        true
    }

    /// Ends a turn for the disk: makes a due checkpoint, proves the last flush, and defers writes that
    /// nothing waits for.
    pub(crate) fn end_turn_of_disk(&mut self, now: Time) {
        self.make_due_checkpoint();
        // It may have failed for lack of memory, or what this turn has appended may have no room.
        self.watch_storage(now);
        self.answer(now);
        if let Some(journal) = self.effects.journal.as_mut().filter(|_| !self.storage.is_closing) {
            let unproven = journal.is_unproven().then(|| journal.durable().0);
            if self.storage.proof.end_turn(now, unproven) {
                journal.prove_flush();
            }
        }
        let is_unhurried = self.is_unhurried();
        let is_full = self.storage.state == State::Full;
        self.storage.writes.end_turn(now, is_unhurried, is_full);
    }

    /// Begins to hand the engine's state to the journal, where that is due, and moves stragglers out of a
    /// sparse segment. Goes on with what was begun, a part in each turn.
    fn make_due_checkpoint(&mut self) {
        if !self.engine.is_taking_snapshot() {
            self.begin_due_checkpoint();
        }
        if let Some(snapshot) = self.engine.take_snapshot()
            && let Some(journal) = &mut self.effects.journal
        {
            journal.finish_checkpoint(snapshot);
        }
    }

    fn begin_due_checkpoint(&mut self) {
        let journal = self.effects.journal.as_mut();
        let Some(journal) = journal.filter(|journal| journal.checkpoint_due()) else { return };
        if self.storage.is_closing {
            return;
        }
        if let Some(segment) = journal.sparse_segment() {
            self.engine.compact_segment(segment, &mut self.effects);
        }
        self.engine.begin_snapshot();
        if let Some(journal) = &mut self.effects.journal {
            journal.begin_checkpoint();
        }
    }
}

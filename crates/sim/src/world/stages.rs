//! The stages of a run: clients work during faults; faults end and clients finish; after an
//! optional restart one client empties every queue.

use super::broker::HOME;
use super::happening::{Happening, Stage};
use super::{START, World};
use crate::client::{Round, drain};
use crate::history::Event;
use angarium_engine::Time;
use angarium_journal::State;
use std::time::Duration;

/// Microseconds between two checks of the stage.
const LOOK: u64 = 100_000;
/// Size and delay of pieces after faults have ended.
pub(super) const CALM_FRAGMENT: usize = 64 << 10;
pub(super) const CALM_DELAY: u64 = 300;
/// Time within which clients must get their answers after faults have ended.
const FINISH_MAX: Duration = Duration::from_secs(120);
/// Time in which every message arrives after faults have ended.
const REST: Duration = Duration::from_secs(2);
/// Time within which all queues must be drained.
const DRAIN_MAX: Duration = Duration::from_secs(900);

impl World {
    pub(super) fn stage(&mut self) -> Result<(), String> {
        match self.stage {
            Stage::Working => self.heal(),
            Stage::Finishing(since) => self.finish(since)?,
            Stage::Resting(since, round) => self.rest(since, round),
            Stage::Calling(since, round) => self.await_call(since, round)?,
            Stage::Retiring(since) => self.retire(since)?,
            Stage::Closing => self.start_drain(),
            Stage::Draining(since) => self.watch_drain(since)?,
            Stage::Over | Stage::Refused => return Ok(()),
        }
        self.schedule(LOOK, Happening::Stage);
        Ok(())
    }

    /// Ends all faults.
    fn heal(&mut self) {
        let broker = self.broker.as_ref();
        let has_failed = broker.is_some_and(|broker| matches!(broker.storage(), State::Failed(_)));
        if has_failed || self.power_fails_at.is_some() {
            self.crash();
        }
        self.power_fails_at = None;
        self.disk.heal();
        self.heal_spill();
        self.disk.set_capacity(None);
        let now = self.now;
        for (number, link) in &mut self.links {
            link.is_slow = false;
            link.fragment_max = CALM_FRAGMENT;
            link.delay_max = CALM_DELAY;
            // Cut connections stay cut; the event that ends them is scheduled.
            for pipe in [&mut link.up, &mut link.down] {
                let is_cut = pipe.stalled_until.since(now) > Duration::from_secs(60);
                if !is_cut && pipe.stalled_until > now {
                    pipe.stalled_until = now;
                    pipe.is_scheduled = true;
                    self.next_number += 1;
                    let (up, down) = (Happening::Up(*number), Happening::Down(*number));
                    for what in [up, down] {
                        self.events.push(std::cmp::Reverse((now, self.next_number, what)));
                    }
                }
            }
        }
        for client in 0..self.clients.len() {
            self.clients[client].finish();
            if self.plan.has_rounds() {
                self.after_client(client);
            }
        }
        self.stage = Stage::Finishing(self.now);
    }

    /// Waits until every client has its answers.
    fn finish(&mut self, since: Time) -> Result<(), String> {
        match self.is_busy(since)? {
            true => {}
            false if self.plan.has_rounds() => {
                self.stage = Stage::Resting(self.now, Round::CatchUp);
            }
            false => self.retire_all(),
        }
        Ok(())
    }

    /// Lets messages arrive, then starts the round at all clients.
    fn rest(&mut self, since: Time, round: Round) {
        if self.now.since(since) >= REST {
            for client in 0..self.clients.len() {
                self.with_client(client, |client, at| client.call(at, round));
                self.after_client(client);
            }
            self.stage = Stage::Calling(self.now, round);
        }
    }

    /// Waits until every client has its answers, for the next round or the end.
    fn await_call(&mut self, since: Time, round: Round) -> Result<(), String> {
        if !self.is_busy(since)? {
            if round == Round::CatchUp {
                self.note(Event::CaughtUp);
            }
            match round.next() {
                Some(next) => self.stage = Stage::Resting(self.now, next),
                None => {
                    self.note(Event::AllReceived);
                    self.retire_all();
                }
            }
        }
        Ok(())
    }

    fn retire_all(&mut self) {
        self.leave_claimants(true);
        for client in 0..self.clients.len() {
            self.with_client(client, |client, at| client.retire(at));
            self.after_client(client);
        }
        self.stage = Stage::Retiring(self.now);
    }

    /// Whether a client waits for answers. Fails if it has waited for too long.
    fn is_busy(&mut self, since: Time) -> Result<bool, String> {
        let has_time = self.now.since(since) < FINISH_MAX;
        let Some(busy) = self.clients.iter_mut().position(|client| !client.is_done()) else {
            if self.claimants.clients.iter().all(|client| client.asked.is_none()) {
                return Ok(false);
            }
            let stuck = "a request about a session gets no answer";
            return if has_time { Ok(true) } else { Err(stuck.to_owned()) };
        };
        // The client's consumer is cancelled each time.
        if self.has_stopped_at_damage()? {
            self.stage = Stage::Refused;
            return Ok(true);
        }
        if has_time {
            return Ok(true);
        }
        let client = &self.clients[busy];
        let link = self.link_of(busy).map(|number| format!("{:?}", self.links[&number].place));
        let age = self.now.since(START);
        let journal = self.broker.as_ref().map(|broker| {
            let sample = broker.sample(std::iter::empty());
            (broker.storage(), sample.backlog_bytes, self.flights.len())
        });
        Err(format!(
            "client {busy} gets no answer ({}; connection {link:?}; {age:?}; journal: {journal:?})",
            client.waits_for()
        ))
    }

    /// Waits until every client is gone, and restarts the node or not.
    fn retire(&mut self, since: Time) -> Result<(), String> {
        let is_quiet =
            self.clients.iter_mut().all(|client| client.is_gone()) && self.by_place.is_empty();
        if !is_quiet {
            let is_late = self.now.since(since) > FINISH_MAX;
            return if is_late { Err("clients cannot disconnect".to_owned()) } else { Ok(()) };
        }
        self.stage = Stage::Closing;
        match self.random.below(3) {
            0 => self.crash(),
            1 => self.shut_down(),
            _ => {}
        }
        Ok(())
    }

    fn start_drain(&mut self) {
        let is_ready = self.broker.is_some() && self.flights.is_empty() && !self.is_shutting_down;
        if !is_ready || self.random.percent(90) {
            return;
        }
        self.note(Event::Draining);
        if self.plan.queues.is_empty() {
            self.note(Event::Drained);
            self.stage = Stage::Over;
            return;
        }
        self.stage = Stage::Draining(self.now);
        let random = self.random.fork();
        self.add_client(drain(self.now, random));
    }

    fn watch_drain(&mut self, since: Time) -> Result<(), String> {
        let has_stopped = self.has_stopped_at_damage()?;
        let client = self.clients.last_mut().expect("the drain is a client");
        if client.is_done() {
            self.note(Event::Drained);
            self.stage = Stage::Over;
        } else if has_stopped {
            self.stage = Stage::Refused;
        } else if self.now.since(since) > DRAIN_MAX {
            return Err(format!("queues do not get empty: {}", client.waits_for()));
        }
        Ok(())
    }

    /// Whether a queue has stopped at an unreadable record, which is neither delivered nor
    /// skipped. Fails if no bit was flipped.
    fn has_stopped_at_damage(&self) -> Result<bool, String> {
        let home = self.broker.as_ref().map(|broker| &broker.nodes[HOME]);
        let unreadable = home.map_or(0, |home| home.engine().counters().unreadable);
        if unreadable > 0 && self.flipped.is_none() {
            return Err(format!("{unreadable} records could not be read back"));
        }
        Ok(unreadable > 0)
    }
}

//! The interface between the simulated world and a client of any protocol.

use super::context::{Phase, Presence, Surroundings};
use crate::canary::Canary;
use crate::random::Random;
use angarium_engine::Time;

/// The user name of every client.
pub const USER: &str = "sim";
/// Its password.
pub const PASSWORD: &str = "secret";

/// A client as the world sees it.
pub trait Endpoint: std::fmt::Debug {
    /// Breaks `canary`'s rule on the way between it and the node.
    fn break_rule(&mut self, canary: Canary, random: Random);
    /// Whether its protocol tells it why the broker closes its connection.
    fn learns_why_closed(&self) -> bool {
        true
    }
    /// What it is, and what it knows of its connection.
    fn presence(&mut self) -> &mut Presence;

    /// When [`Endpoint::woken`] is to be called, or it is to be connected.
    fn deadline(&mut self) -> Option<Time> {
        match self.presence().phase {
            Phase::Away(until) => Some(until),
            Phase::Leaving | Phase::Gone => None,
            Phase::Greeting | Phase::Entering | Phase::Working => self.wake_at(),
        }
    }
    /// When it is to be woken while it is connected.
    fn wake_at(&self) -> Option<Time>;
    /// The time that [`Endpoint::deadline`] named has come.
    fn woken(&mut self, at: &mut Surroundings<'_>);

    /// It is connected.
    fn connected(&mut self, at: &mut Surroundings<'_>);
    /// Bytes arrived. Fails if the broker breaks the protocol.
    fn received(&mut self, at: &mut Surroundings<'_>, bytes: &[u8]) -> Result<(), String>;
    /// Bytes to be sent.
    fn output(&mut self) -> &mut Vec<u8>;
    /// The transport is gone.
    fn lost(&mut self, at: &mut Surroundings<'_>);

    /// From now on it only finishes what it started.
    fn finish(&mut self) {
        self.presence().is_finishing = true;
    }
    /// All clients have finished, and what was under way has had time to arrive. Starts a round.
    fn call(&mut self, _at: &mut Surroundings<'_>, _round: Round) {}
    /// Whether it waits for nothing.
    fn is_done(&mut self) -> bool {
        self.is_gone() || (self.presence().is_working() && self.is_idle())
    }
    /// Whether it waits for nothing, being connected.
    fn is_idle(&self) -> bool;
    /// What it waits for, for the report of a stuck run.
    fn waits_for(&self) -> String;
    /// Disconnects for good.
    fn retire(&mut self, at: &mut Surroundings<'_>);
    /// Whether it has disconnected for good.
    fn is_gone(&mut self) -> bool {
        self.presence().phase == Phase::Gone
    }
}

/// The rounds at the end of a run with direct messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Slow consumers catch up.
    CatchUp,
    /// Each publisher publishes final messages, with which subscribers learn how many they missed.
    FinalMessages,
    /// The final messages are received.
    FinalReceipt,
}

impl Round {
    /// The round after this one.
    pub fn next(self) -> Option<Round> {
        match self {
            Round::CatchUp => Some(Round::FinalMessages),
            Round::FinalMessages => Some(Round::FinalReceipt),
            Round::FinalReceipt => None,
        }
    }
}

//! The interface between the simulated world and a client of any protocol.

use crate::canary::Canary;
use crate::history::History;
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::Protocol;

/// The user name of every client.
pub const USER: &str = "sim";
/// Its password.
pub const PASSWORD: &str = "secret";
/// Longest pause before a client reconnects, in microseconds.
pub(super) const RETURN_MAX: u64 = 300_000;

/// Numbers that must be unique in a run.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Of the last consumer.
    pub consumer: u32,
    /// Of the last producer.
    pub producer: u32,
    /// Of the last transaction.
    pub transaction: u32,
    /// Of the last NATS connection.
    pub connection: u32,
    /// Of the last subscription.
    pub subscription: u32,
}

/// What a client can reach during one call.
pub struct Surroundings<'a> {
    /// The time.
    pub now: Time,
    /// The history of the run.
    pub history: &'a mut History,
    /// Unique numbers.
    pub numbers: &'a mut Numbers,
}

/// A client as the world sees it.
pub trait Endpoint: std::fmt::Debug {
    /// Its protocol.
    fn protocol(&self) -> Protocol;
    /// Breaks `canary`'s rule on the way between it and the node.
    fn break_rule(&mut self, canary: Canary, random: Random);
    /// Whether its protocol tells it why the broker closes its connection.
    fn learns_why_closed(&self) -> bool;
    /// Whether it reads slowly.
    fn reads_slowly(&self) -> bool {
        false
    }

    /// When [`Endpoint::woken`] is to be called.
    fn deadline(&self) -> Option<Time>;
    /// The time that [`Endpoint::deadline`] named has come.
    fn woken(&mut self, at: &mut Surroundings<'_>);

    /// Whether it wants to be connected now.
    fn wants_connection(&self, now: Time) -> bool;
    /// The node cannot be reached: the next attempt comes later.
    fn not_reachable(&mut self, now: Time);
    /// It is connected.
    fn connected(&mut self, at: &mut Surroundings<'_>);
    /// Bytes arrived. Fails if the broker breaks the protocol.
    fn received(&mut self, at: &mut Surroundings<'_>, bytes: &[u8]) -> Result<(), String>;
    /// Bytes to be sent.
    fn output(&mut self) -> &mut Vec<u8>;
    /// Whether it wants its end of the transport closed, all output sent.
    fn wants_to_close(&self) -> bool;
    /// The transport is gone.
    fn lost(&mut self, at: &mut Surroundings<'_>);

    /// From now on it only finishes what it started.
    fn finish(&mut self);
    /// All clients have finished, and what was under way has had time to arrive. Starts a round.
    fn call(&mut self, _at: &mut Surroundings<'_>, _round: Round) {}
    /// Whether it waits for nothing.
    fn is_done(&self) -> bool;
    /// What it waits for, for the report of a stuck run.
    fn waits_for(&self) -> String;
    /// Disconnects for good.
    fn retire(&mut self, at: &mut Surroundings<'_>);
    /// Whether it has disconnected for good.
    fn is_gone(&self) -> bool;
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
    #[must_use]
    pub fn next(self) -> Option<Round> {
        match self {
            Round::CatchUp => Some(Round::FinalMessages),
            Round::FinalMessages => Some(Round::FinalReceipt),
            Round::FinalReceipt => None,
        }
    }
}

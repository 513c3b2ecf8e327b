//! What the world asks of a client, whichever protocol it speaks: it connects, gets and gives bytes,
//! wakes when its time comes, and brings what it began to an end.

use super::Surroundings;
use crate::canary::Proxy;
use angarium_engine::Time;
use angarium_protocol::Protocol;

/// A client as the world sees it.
pub trait Endpoint: std::fmt::Debug {
    /// What it speaks.
    fn protocol(&self) -> Protocol;
    /// Puts a proxy between it and its connections.
    fn put_behind(&mut self, proxy: Proxy);
    /// It takes what comes slowly.
    fn reads_slowly(&self) -> bool {
        false
    }

    /// When [`Endpoint::woken`] is to be called.
    fn deadline(&self) -> Option<Time>;
    /// The time that [`Endpoint::deadline`] named has come.
    fn woken(&mut self, at: &mut Surroundings<'_>);

    /// Whether it wants to be connected now.
    fn wants_connection(&self, now: Time) -> bool;
    /// Puts the next attempt off.
    fn not_reachable(&mut self, now: Time);
    /// It is connected.
    fn connected(&mut self, at: &mut Surroundings<'_>);
    /// Bytes arrived. An error is a broken promise of the broker.
    fn received(&mut self, at: &mut Surroundings<'_>, bytes: &[u8]) -> Result<(), String>;
    /// What it has to send.
    fn output(&mut self) -> &mut Vec<u8>;
    /// Whether it wants its end of the transport closed, all output sent.
    fn wants_to_close(&self) -> bool;
    /// The transport is gone.
    fn lost(&mut self, at: &mut Surroundings<'_>);

    /// From now on it only brings to an end what it began.
    fn finish(&mut self);
    /// Everybody has finished, and what was under way has had time to arrive. In three rounds clients
    /// ask whether they have got everything, say their last words, and ask again.
    fn call(&mut self, _at: &mut Surroundings<'_>, _round: Round) {}
    /// Whether nothing of it is under way.
    fn is_done(&self) -> bool;
    /// What it waits for, for the report of a run that got stuck.
    fn waits_for(&self) -> String;
    /// Says goodbye for good.
    fn retire(&mut self, at: &mut Surroundings<'_>);
    /// Whether it has said goodbye for good, and was answered.
    fn is_gone(&self) -> bool;
}

/// What clients of direct messages are called for at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Whoever was behind catches up.
    CatchUp,
    /// Each publisher says something more, with which those who missed messages learn how many.
    LastWords,
    /// That, too, is taken in.
    TakeIn,
}

impl Round {
    /// The round after this one.
    #[must_use]
    pub fn next(self) -> Option<Round> {
        match self {
            Round::CatchUp => Some(Round::LastWords),
            Round::LastWords => Some(Round::TakeIn),
            Round::TakeIn => None,
        }
    }
}

//! The simulator itself: seeds that must pass, canaries that must be found, replays that must be the
//! same.

mod canaries;
mod parts;
mod seeds;

//! A transport of bytes between one client and the node: two pipes that fragment, delay, stall and
//! break, but neither reorder nor alter, as TCP does not.

use angarium_engine::{ConnectionId, Time};
use std::collections::VecDeque;

/// One direction of a connection.
#[derive(Debug, Default)]
pub struct Pipe {
    /// Written and not read yet: in flight, or in the buffers of either end.
    bytes: VecDeque<u8>,
    /// Most bytes that it takes before its writer has to wait.
    capacity: usize,
    /// A reading event is on its way.
    pub is_scheduled: bool,
    /// The reader does not read before this.
    pub stalled_until: Time,
}

impl Pipe {
    /// A pipe that takes `capacity` bytes before its writer has to wait.
    #[must_use]
    pub fn new(capacity: usize) -> Pipe {
        Pipe { capacity, ..Pipe::default() }
    }

    /// Takes as many of `bytes` as fit and says how many.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let fits = bytes.len().min(self.room());
        self.bytes.extend(&bytes[..fits]);
        fits
    }

    /// How many bytes fit.
    #[must_use]
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(self.bytes.len())
    }

    /// Takes up to `most` bytes out.
    pub fn read(&mut self, most: usize) -> Vec<u8> {
        let length = most.min(self.bytes.len());
        self.bytes.drain(..length).collect()
    }

    /// Nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Where the broker has a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The shard that it is on.
    pub shard: usize,
    /// Its slot there.
    pub slot: ConnectionId,
}

/// A connection: who is at its ends, and the pipes between them.
#[derive(Debug)]
pub struct Link {
    /// The client's number.
    pub client: usize,
    /// Where the broker has it; `None` before it was accepted and after it was closed there.
    pub place: Option<Place>,
    /// The client still holds its end.
    pub is_client_open: bool,
    /// From client to node.
    pub up: Pipe,
    /// From node to client.
    pub down: Pipe,
    /// Largest piece that arrives at once: 1 makes every byte arrive alone.
    pub fragment_max: usize,
    /// The client takes little at a time, and that late.
    pub is_slow: bool,
    /// Longest time a piece takes, in microseconds.
    pub delay_max: u64,
}

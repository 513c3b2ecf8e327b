//! The transport between one client and the node: two pipes that fragment, delay, stall and break,
//! but like TCP neither reorder nor alter bytes.

use angarium_engine::{ConnectionId, Time};
use std::collections::VecDeque;

/// One direction of a connection.
#[derive(Debug, Default)]
pub struct Pipe {
    /// Bytes written and not read: in flight, or in the buffers of either end.
    bytes: VecDeque<u8>,
    capacity: usize,
    /// A read is scheduled.
    pub is_scheduled: bool,
    /// Nothing is read before this time.
    pub stalled_until: Time,
}

impl Pipe {
    /// A pipe that holds up to `capacity` bytes.
    pub fn new(capacity: usize) -> Pipe {
        Pipe { capacity, ..Pipe::default() }
    }

    /// Takes as many of `bytes` as fit; returns how many.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let fits = bytes.len().min(self.room());
        self.bytes.extend(&bytes[..fits]);
        fits
    }

    /// How many bytes fit.
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(self.bytes.len())
    }

    /// Takes up to `most` bytes out.
    pub fn read(&mut self, most: usize) -> Vec<u8> {
        let length = most.min(self.bytes.len());
        self.bytes.drain(..length).collect()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// A connection's place in the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The shard that it is on.
    pub shard: usize,
    /// Its slot there.
    pub slot: ConnectionId,
}

/// A connection: its two ends, and the pipes between them.
#[derive(Debug)]
pub struct Link {
    /// The client's number.
    pub client: usize,
    /// Its place in the broker; `None` after it is closed there.
    pub place: Option<Place>,
    /// The client still holds its end.
    pub is_client_open: bool,
    /// From client to node.
    pub up: Pipe,
    /// From node to client.
    pub down: Pipe,
    /// Largest piece that arrives at once: 1 makes every byte arrive alone.
    pub fragment_max: usize,
    /// The client reads slowly.
    pub is_slow: bool,
    /// Longest delay of a piece, in microseconds.
    pub delay_max: u64,
}

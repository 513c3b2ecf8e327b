//! Bytes that were stored or looked at lately, which are to be compared with others'.

use angarium_engine::Bytes;
use std::collections::VecDeque;

/// Own bytes of chunks that are in memory, to be compared with others'; and how many chunks' they are.
const RECENT_BYTES_MAX: usize = 16 << 20;
const RECENT_MAX: usize = 64;

/// Own bytes of chunks that were stored or looked at lately.
#[derive(Debug, Default)]
pub(super) struct Recent {
    chunks: VecDeque<(u64, Bytes)>,
    bytes: usize,
}

impl Recent {
    pub(super) fn find(&self, number: u64) -> Option<Bytes> {
        let found = self.chunks.iter().rev().find(|(other, _)| *other == number);
        found.map(|(_, own)| own.clone())
    }

    pub(super) fn add(&mut self, number: u64, own: &Bytes) {
        self.bytes += own.len();
        self.chunks.push_back((number, own.clone()));
        while self.bytes > RECENT_BYTES_MAX || self.chunks.len() > RECENT_MAX {
            let oldest = self.chunks.pop_front();
            self.bytes -= oldest.map_or(0, |(_, own)| own.len());
        }
    }

    pub(super) fn forget(&mut self, number: u64) {
        if let Some(at) = self.chunks.iter().position(|(other, _)| *other == number) {
            let gone = self.chunks.remove(at);
            self.bytes -= gone.map_or(0, |(_, own)| own.len());
        }
    }
}

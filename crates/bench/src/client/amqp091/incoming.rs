//! The bytes that came from one socket and are not parsed yet. Knows frames, not methods.

use super::wire::{self, FRAME_BYTES_MAX, Frame, Malformed};
use std::io::{self, Read};

/// Octets asked of the socket by one read: large enough that the cost of a call is shared by many messages.
pub(super) const READ_BYTES: usize = 128 * 1024;

/// A receive buffer that holds at most one partial frame beside what one read brought.
#[derive(Debug)]
pub struct Incoming {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Default for Incoming {
    fn default() -> Self {
        Incoming { buffer: vec![0; READ_BYTES + FRAME_BYTES_MAX].into(), start: 0, end: 0 }
    }
}

impl Incoming {
    /// Reads once. Returns the octets read; 0 is the end of the stream.
    pub fn fill(&mut self, source: &mut impl Read) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let count = source.read(&mut self.buffer[self.end..])?;
        self.end += count;
        Ok(count)
    }

    /// The next whole frame, if there is one.
    #[inline]
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Malformed> {
        let Some((frame, used)) = wire::parse(&self.buffer[self.start..self.end])? else {
            return Ok(None);
        };
        self.start += used;
        Ok(Some(frame))
    }
}

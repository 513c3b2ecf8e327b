//! The bytes that came from one socket and are not parsed yet. Knows frames, not methods.

use angarium_protocol::amqp091::frame::{self, Frame, FrameError};
use std::io::{self, Read};

/// The largest frame this client takes.
pub(super) const FRAME_BYTES_MAX: usize = 128 * 1024;
/// Octets asked of the socket by one read: large enough that the cost of a call is shared by many
/// messages.
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
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let bytes = &self.buffer[self.start..self.end];
        let Some((frame, used)) = frame::read(bytes, FRAME_BYTES_MAX as u32)? else {
            return Ok(None);
        };
        self.start += used;
        Ok(Some(frame))
    }
}

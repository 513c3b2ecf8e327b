//! The bytes that came from one socket and are not parsed yet. Knows no protocol.

use super::Error;
use std::io::{self, ErrorKind, Read};

/// The most octets that a protocol may need at once to make progress.
pub(super) const PARTIAL_BYTES_MAX: usize = 128 * 1024;
/// Octets asked of the socket by one read, at most: as many as one producer writes at once, so that many
/// messages share the cost of a call and of a wake-up, and so few that they are still in the
/// processor's own cache when they are parsed.
pub(super) const READ_BYTES: usize = 256 * 1024;

/// A receive buffer that holds at most what a protocol cannot take yet beside what one read brought.
#[derive(Debug)]
pub struct ReceiveBuffer {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Default for ReceiveBuffer {
    fn default() -> Self {
        ReceiveBuffer { buffer: vec![0; READ_BYTES + PARTIAL_BYTES_MAX].into(), start: 0, end: 0 }
    }
}

impl ReceiveBuffer {
    /// Makes room for pieces of so many octets that a protocol takes only whole.
    pub(super) fn reserve(&mut self, partial_bytes_max: usize) {
        if partial_bytes_max > PARTIAL_BYTES_MAX {
            let mut larger = vec![0; READ_BYTES + partial_bytes_max];
            larger[..self.end].copy_from_slice(&self.buffer[..self.end]);
            self.buffer = larger.into();
        }
    }

    /// Reads once. Returns the octets read; 0 is the end of the stream.
    pub fn fill(&mut self, source: &mut impl Read) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let until = self.buffer.len().min(self.end + READ_BYTES);
        loop {
            match source.read(&mut self.buffer[self.end..until]) {
                // By a signal: a process that was stopped goes on, or one is asked to end.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => {
                    self.end += read.as_ref().map_or(0, |count| *count);
                    return read;
                }
            }
        }
    }

    /// Reads once; the end of the stream is an error.
    pub(super) fn fill_some(&mut self, source: &mut impl Read) -> Result<(), Error> {
        match self.fill(source)? {
            0 => Err(Error::hung_up()),
            _ => Ok(()),
        }
    }

    /// What `parse` makes of the octets that are not parsed yet; it says how many of them it took.
    #[inline]
    pub fn take<'a, T, E>(
        &'a mut self,
        parse: impl FnOnce(&'a [u8]) -> Result<Option<(T, usize)>, E>,
    ) -> Result<Option<T>, E> {
        let Some((value, used)) = parse(&self.buffer[self.start..self.end])? else {
            return Ok(None);
        };
        self.start += used;
        debug_assert!(self.start <= self.end, "no more is parsed than came");
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails in the given way, then says `ab`.
    struct Failing(Option<ErrorKind>);

    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.take() {
                Some(kind) => Err(kind.into()),
                None => "ab".as_bytes().read(buffer),
            }
        }
    }

    #[test]
    fn what_is_held_makes_no_read_smaller_nor_larger() {
        for partial_bytes_max in [0, PARTIAL_BYTES_MAX, 1 << 20] {
            let mut incoming = ReceiveBuffer::default();
            incoming.reserve(partial_bytes_max);
            let fills = [0, partial_bytes_max.min(READ_BYTES)].map(|held| {
                let parse =
                    |bytes: &[u8]| Ok::<_, ()>(Some(((), bytes.len().saturating_sub(held))));
                incoming.take(parse).unwrap();
                incoming.fill(&mut io::repeat(b'a')).unwrap()
            });
            assert_eq!(fills, [READ_BYTES; 2], "{partial_bytes_max}");
        }
    }

    #[test]
    fn a_signal_ends_no_read() {
        for (kind, wanted) in [
            (None, Ok(2)),
            (Some(ErrorKind::Interrupted), Ok(2)),
            (Some(ErrorKind::WouldBlock), Err(ErrorKind::WouldBlock)),
        ] {
            let mut incoming = ReceiveBuffer::default();
            let read = incoming.fill(&mut Failing(kind)).map_err(|error| error.kind());
            assert_eq!((read, incoming.end), (wanted, read.unwrap_or(0)));
        }
    }
}

//! The receive buffer of a socket. Independent of protocols.

use std::io::{self, ErrorKind, Read};

/// The largest piece that a protocol takes only whole, by default.
pub(super) const PARTIAL_BYTES_MAX: usize = 128 * 1024;
/// The most bytes of one read: as many as a producer writes at once, so that many messages share one
/// system call and wake-up, and few enough to be in the processor's cache when parsed.
pub(super) const READ_BYTES: usize = 256 * 1024;

/// Received bytes that are not parsed yet: at most one read and one partial piece.
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
    /// Makes room for whole pieces of this size.
    pub(super) fn reserve(&mut self, partial_bytes_max: usize) {
        if partial_bytes_max > PARTIAL_BYTES_MAX {
            let mut larger = vec![0; READ_BYTES + partial_bytes_max];
            larger[..self.end].copy_from_slice(&self.buffer[..self.end]);
            self.buffer = larger.into();
        }
    }

    /// Reads once. Returns the bytes read; 0 is the end of the stream.
    pub fn fill(&mut self, source: &mut impl Read) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let until = self.buffer.len().min(self.end + READ_BYTES);
        loop {
            match source.read(&mut self.buffer[self.end..until]) {
                // A signal: the process continues, or is asked to end.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => {
                    self.end += read.as_ref().map_or(0, |count| *count);
                    return read;
                }
            }
        }
    }

    /// Calls `parse` with the unparsed bytes; it returns a value and the bytes it consumed.
    #[inline]
    pub fn take<'a, T, E>(
        &'a mut self,
        parse: impl FnOnce(&'a [u8]) -> Result<Option<(T, usize)>, E>,
    ) -> Result<Option<T>, E> {
        let Some((value, used)) = parse(&self.buffer[self.start..self.end])? else {
            return Ok(None);
        };
        self.start += used;
        debug_assert!(self.start <= self.end, "no more is parsed than was received");
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails in the given way, then reads `ab`.
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

//! A non-blocking stream socket, and the results of its reads and writes.

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, sendmsg};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A TCP or Unix stream, non-blocking.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// This many bytes were read.
    Bytes(usize),
    /// Nothing is there.
    Nothing,
    /// The peer is gone, in order or not.
    Ended,
}

/// The result of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// This many bytes were taken.
    Bytes(usize),
    /// The peer does not take more now.
    Full,
    /// The peer is gone.
    Ended,
}

/// Bytes to be sent in one call.
pub(crate) enum Offer<'a> {
    /// Bytes that lie in one place.
    Whole(io::IoSlice<'a>),
    /// Bytes that lie in several places, and their number.
    Parts { slices: Vec<io::IoSlice<'a>>, bytes: usize },
}

/// Parts in an offer at most.
const PARTS_MAX: usize = 64;

impl<'a> Offer<'a> {
    /// The first of these parts, up to the one that reaches `bytes_max`.
    pub(crate) fn of(parts: impl Iterator<Item = &'a [u8]>, bytes_max: usize) -> Offer<'a> {
        let (mut slices, mut bytes) = (Vec::new(), 0);
        for part in parts.take(PARTS_MAX) {
            slices.push(io::IoSlice::new(part));
            bytes += part.len();
            if bytes >= bytes_max {
                break;
            }
        }
        Offer::Parts { slices, bytes }
    }

    /// The places.
    pub(crate) fn slices(&self) -> &[io::IoSlice<'a>] {
        match self {
            Offer::Whole(slice) => std::slice::from_ref(slice),
            Offer::Parts { slices, .. } => slices,
        }
    }

    /// How many bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Offer::Whole(bytes) => bytes.len(),
            Offer::Parts { bytes, .. } => *bytes,
        }
    }
}

impl Socket {
    pub(crate) fn new(fd: OwnedFd) -> Socket {
        Socket(fd)
    }

    /// Reads what is there, up to the block's length.
    pub(crate) fn receive(&self, block: &mut [u8]) -> Received {
        received(retry_on_intr(|| recv(&self.0, &mut *block, RecvFlags::empty())))
    }

    /// The first byte of the input, which is not taken.
    pub(crate) fn peek(&self) -> Option<u8> {
        let mut first = [0];
        match recv(&self.0, &mut first, RecvFlags::PEEK) {
            Ok((_, 1)) => Some(first[0]),
            _ => None,
        }
    }

    /// Looks at what is there, up to the block's length, without taking it.
    pub(crate) fn look(&self, block: &mut [u8]) -> Received {
        received(retry_on_intr(|| recv(&self.0, &mut *block, RecvFlags::PEEK)))
    }

    /// Writes as much as the peer takes of what is offered.
    pub(crate) fn offer(&self, offer: &Offer<'_>) -> Sent {
        match offer {
            Offer::Whole(bytes) => self.send(bytes),
            Offer::Parts { slices, .. } => {
                let mut control = SendAncillaryBuffer::default();
                sent(retry_on_intr(|| sendmsg(&self.0, slices, &mut control, SendFlags::NOSIGNAL)))
            }
        }
    }

    /// Writes as much as the peer takes.
    pub(crate) fn send(&self, bytes: &[u8]) -> Sent {
        sent(retry_on_intr(|| rustix::net::send(&self.0, bytes, SendFlags::NOSIGNAL)))
    }

    /// Ends the outgoing half: the peer sees the end after all that was sent.
    pub(crate) fn end_output(&self) {
        // It fails only where the peer is gone already.
        let _ = rustix::net::shutdown(&self.0, Shutdown::Write);
    }
}

fn received<T>(result: Result<(T, usize), Errno>) -> Received {
    match result {
        Ok((_, count)) if count > 0 => Received::Bytes(count),
        Err(Errno::AGAIN) => Received::Nothing,
        Ok(_) | Err(_) => Received::Ended,
    }
}

fn sent(result: Result<usize, Errno>) -> Sent {
    match result {
        Ok(count) => Sent::Bytes(count),
        Err(Errno::AGAIN) => Sent::Full,
        Err(_) => Sent::Ended,
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl io::Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.send(bytes) {
            Sent::Bytes(count) => Ok(count),
            Sent::Full => Err(io::ErrorKind::WouldBlock.into()),
            Sent::Ended => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::writev(&self.0, slices)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

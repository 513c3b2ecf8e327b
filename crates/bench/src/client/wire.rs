//! A TCP connection to a broker, with what was received and is not parsed yet.

use super::receive_buffer::ReceiveBuffer;
use super::{Error, Target};
use crate::tcp;
use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Timeout of connecting, of answers and of writes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The socket and its receive buffer.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(super) stream: TcpStream,
    pub(super) incoming: ReceiveBuffer,
}

impl Wire {
    /// Connects with TCP_NODELAY and timeouts.
    pub(super) fn open(target: &Target) -> io::Result<Wire> {
        let (host, port) = (target.host(), target.port());
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{host}:{port}: {error}"));
        let mut opened = Err(io::ErrorKind::AddrNotAvailable.into());
        for address in (host, port).to_socket_addrs().map_err(named)? {
            opened = tcp::connect(address, PATIENCE);
            if opened.is_ok() {
                break;
            }
        }
        let stream = opened.map_err(named)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Wire { stream, incoming: ReceiveBuffer::default() })
    }

    /// Writes all bytes.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Writes what is pending, if anything, and forgets it.
    #[inline]
    pub(super) fn flush(&mut self, pending: &mut Vec<u8>) -> io::Result<()> {
        if !pending.is_empty() {
            self.stream.write_all(pending)?;
            pending.clear();
        }
        Ok(())
    }

    /// Reads once. Returns the bytes read; 0 is the end of the stream.
    #[inline]
    pub(super) fn fill(&mut self) -> io::Result<usize> {
        self.incoming.fill(&mut self.stream)
    }

    /// Reads until `parse` returns a value. It gets the unparsed bytes, and returns `None` if it needs more,
    /// or how many it consumed and perhaps the value.
    pub(super) fn expect<T>(
        &mut self,
        mut parse: impl FnMut(&[u8]) -> Result<Option<(Option<T>, usize)>, Error>,
    ) -> Result<T, Error> {
        loop {
            match self.incoming.take(&mut parse)? {
                Some(Some(value)) => return Ok(value),
                Some(None) => {}
                None if self.fill()? == 0 => return Err(Error::hung_up()),
                None => {}
            }
        }
    }
}

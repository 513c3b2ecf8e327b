//! Why a connection is of no use any more, whatever its protocol.

use std::io;

/// Why a connection is of no use any more.
#[derive(Debug)]
pub enum Error {
    /// The socket failed or the broker hung up.
    Io(io::Error),
    /// Bytes that make no sense, and which.
    Nonsense(String),
    /// The broker refused something or closed the connection, and what it said.
    Closed(String),
}

impl Error {
    /// Bytes that make no sense: those.
    pub(crate) fn nonsense(what: &str) -> Error {
        Error::Nonsense(what.to_owned())
    }

    /// The error that a hung-up peer is.
    pub(crate) fn hung_up() -> Error {
        Error::Io(io::Error::new(io::ErrorKind::UnexpectedEof, "the broker hung up"))
    }
}

/// Whether a socket's timeout ended a read or a write, or a signal did.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // The socket's patience has ended, in whatever words the system has for that.
            Error::Io(error) if error.kind() == io::ErrorKind::WouldBlock => {
                write!(f, "the broker did not answer in time")
            }
            Error::Io(error) => write!(f, "{error}"),
            Error::Nonsense(what) => write!(f, "the broker sent {what}"),
            Error::Closed(text) => write!(f, "the broker closed it: {text}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}

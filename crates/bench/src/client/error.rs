//! The errors of a client connection, whatever its protocol.

use std::io;

/// Why a connection failed.
#[derive(Debug)]
pub enum Error {
    /// The socket failed or the broker hung up.
    Io(io::Error),
    /// The broker sent malformed bytes; says which.
    Invalid(String),
    /// The broker refused something or closed the connection; its text.
    Closed(String),
}

impl Error {
    /// Malformed input, described by `what`.
    pub(crate) fn invalid(what: &str) -> Error {
        Error::Invalid(what.to_owned())
    }

    /// The broker closed the socket.
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
            // A socket timeout, whose text differs between systems.
            Error::Io(error) if error.kind() == io::ErrorKind::WouldBlock => {
                write!(f, "the broker did not answer in time")
            }
            Error::Io(error) => write!(f, "{error}"),
            Error::Invalid(what) => write!(f, "the broker sent {what}"),
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

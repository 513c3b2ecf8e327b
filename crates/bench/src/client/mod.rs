//! Native clients of the protocols that loads are made of, one folder each, behind one [`Link`].
//!
//! A workload names no protocol: it opens a link to a target, whose scheme says which client it is,
//! writes messages that the link encoded once, and lets the link parse what comes into a
//! [`Receiver`]. The choice of the client costs one branch for each read, none for each message.

pub mod amqp091;
mod error;
mod fake_broker;
mod link;
pub mod mqtt;
pub mod nats;
mod receive_buffer;
mod receiver;
pub mod resp;
pub mod stomp;
mod target;
mod vhost_uri;

pub use error::Error;
pub use fake_broker::FakeBroker;
pub use link::{Acks, Encoded, Link, Route, Session, Source};
pub use receive_buffer::ReceiveBuffer;
pub use receiver::{Confirm, Head, Receiver};
pub use target::{Protocol, Target};
pub use vhost_uri::VhostUri;

use crate::tcp;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long an answer may take, a write, or the opening of a connection.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A connection without delays, with patience for its answers.
fn dial(host: &str, port: u16) -> io::Result<TcpStream> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{host}:{port}: {error}"));
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
    Ok(stream)
}

#[cfg(test)]
mod tests;

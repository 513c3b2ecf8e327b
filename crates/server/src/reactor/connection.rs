//! One accepted client as the reactor holds it: socket, TLS, and what epoll is told to watch.

use super::socket::{Offer, Received, Sent, Socket};
use super::tls::Tls;
use crate::reactor::input_coalescing::Stream;
use angarium_engine::{ConnectionId, Time};
use angarium_protocol::Peer;
use rustix::event::epoll::EventFlags;
use rustls::ServerConfig;
use std::io::IoSlice;
use std::sync::Arc;

/// One accepted client.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: Socket,
    pub(crate) tls: Option<Box<Tls>>,
    /// What TLS begins with if the first byte begins it; nothing was received yet.
    pub(crate) may_begin_tls: Option<Arc<ServerConfig>>,
    /// Its TLS began after the node had taken it over, which has to be told once it stands.
    pub(crate) tells_tls: bool,
    pub(crate) phase: Phase,
    /// What epoll watches for it; nothing where it is not with epoll at all.
    pub(crate) watched: Option<EventFlags>,
    /// The socket took not everything: nothing is sent before epoll says that it takes more.
    pub(crate) is_full: bool,
    /// It waits for its turn to be sent some of much.
    pub(crate) is_waiting: bool,
    /// When it is closed if it stays in its phase.
    pub(crate) deadline: Option<Time>,
    /// Whether its input may be let gather.
    pub(super) stream: Stream,
}

/// How far it has come.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Its TLS handshake runs; the node does not know it.
    Handshaking(Box<Peer>),
    /// The node has it.
    Open(ConnectionId),
    /// The node is done with it. What the client still sends is dropped until it ends, so that the
    /// last bytes sent to it are not lost to a reset.
    Lingering,
}

impl Connection {
    /// Whether epoll says when there is something to read.
    pub(crate) fn is_read(&self) -> bool {
        self.watched.is_some_and(|flags| flags.contains(EventFlags::IN))
    }

    /// The node's name for it.
    pub(crate) fn id(&self) -> Option<ConnectionId> {
        match self.phase {
            Phase::Open(id) => Some(id),
            Phase::Handshaking(_) | Phase::Lingering => None,
        }
    }

    /// Reads what is there into `block`; with TLS, the plaintext of it into `plain`. The error says
    /// what the client did wrong.
    pub(crate) fn receive(
        &mut self,
        block: &mut [u8],
        plain: &mut Vec<u8>,
    ) -> Result<Received, String> {
        let received = self.socket.receive(block);
        if let (Some(tls), Received::Bytes(count)) = (&mut self.tls, &received) {
            plain.clear();
            let result = tls.receive(&block[..*count], plain);
            // Handshake answers and alerts go out at once.
            if let Sent::Ended = tls.send(&self.socket, &[]) {
                return Ok(Received::Ended);
            }
            self.is_full = !tls.is_flushed();
            result?;
            if tls.is_over() {
                // It waits for our goodbye before it closes the transport.
                tls.end_output(&self.socket);
                self.socket.end_output();
                if plain.is_empty() {
                    return Ok(Received::Ended);
                }
            }
        }
        Ok(received)
    }

    /// Sends as much as the peer takes.
    pub(crate) fn send(&mut self, offer: &Offer<'_>) -> Sent {
        match &mut self.tls {
            Some(tls) => {
                let sent = match offer {
                    Offer::Whole(bytes) => tls.send(&self.socket, &[IoSlice::new(bytes)]),
                    Offer::Parts { slices, .. } => tls.send(&self.socket, slices),
                };
                self.is_full = !tls.is_flushed();
                sent
            }
            None => {
                let sent = self.socket.offer(offer);
                self.took(offer.len(), &sent);
                sent
            }
        }
    }

    /// Notes what the socket took of what it was offered.
    pub(crate) fn took(&mut self, offered: usize, sent: &Sent) {
        self.is_full = match sent {
            Sent::Bytes(count) => *count < offered,
            Sent::Full => true,
            Sent::Ended => false,
        };
    }

    /// Ends the outgoing half in order. What still comes is dropped as it is, encrypted or not.
    pub(crate) fn end(&mut self) {
        if let Some(mut tls) = self.tls.take() {
            tls.end_output(&self.socket);
        }
        self.socket.end_output();
        self.may_begin_tls = None;
        self.phase = Phase::Lingering;
    }
}

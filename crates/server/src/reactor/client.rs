//! One accepted client: socket, TLS, and what epoll watches for it.

use super::socket::{Offer, Received, Sent, Socket};
use super::tls::Acceptance;
use super::tls::Tls;
use crate::reactor::input_coalescing::Stream;
use angarium_engine::{ConnectionId, Time};
use angarium_protocol::Peer;
use rustix::event::epoll::EventFlags;

/// One accepted client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) socket: Socket,
    pub(crate) tls: Option<Box<Tls>>,
    /// The TLS settings if the first byte may begin a handshake; nothing was received yet.
    pub(crate) may_begin_tls: Option<Acceptance>,
    /// Its TLS began after the node had taken it over: the node learns when the handshake is complete.
    pub(crate) tells_tls: bool,
    pub(crate) phase: Phase,
    /// What epoll watches for it; none if epoll does not watch it at all.
    pub(crate) watched: Option<EventFlags>,
    /// The socket did not take everything: nothing is sent until epoll reports that it takes more.
    pub(crate) is_full: bool,
    /// It waits among the clients with much unsent output.
    pub(crate) is_waiting: bool,
    /// When it is closed unless it leaves its phase.
    pub(crate) deadline: Option<Time>,
    /// Whether its input is a stream that may gather.
    pub(super) stream: Stream,
}

/// How far a client has come.
#[derive(Debug)]
pub(crate) enum Phase {
    /// The header of its proxy is awaited, of which this has come.
    Proxied(Box<Peer>, Vec<u8>),
    /// Its TLS handshake runs; the node does not know it yet.
    Handshaking(Box<Peer>),
    /// The node has it.
    Open(ConnectionId),
    /// The node is done with it. Some of what the client still sends is dropped, until it ends, so that the
    /// last bytes sent to it are not lost to a reset.
    Lingering {
        /// Bytes that were dropped.
        dropped: usize,
    },
}

impl Client {
    /// Whether epoll watches it for input.
    pub(crate) fn is_read(&self) -> bool {
        self.watched.is_some_and(|flags| flags.contains(EventFlags::IN))
    }

    /// The node's name for it, while the node has it.
    pub(crate) fn id(&self) -> Option<ConnectionId> {
        match self.phase {
            Phase::Open(id) => Some(id),
            Phase::Proxied(..) | Phase::Handshaking(_) | Phase::Lingering { .. } => None,
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
            let result = tls.receive(&mut block[..*count], plain);
            // Handshake answers and alerts do not wait for the end of the turn.
            if let Sent::Ended = tls.send(&self.socket, &[]) {
                return Ok(Received::Ended);
            }
            self.is_full = !tls.is_flushed();
            result?;
            if tls.is_over {
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
                let sent = tls.send(&self.socket, offer.slices());
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

    /// Ends the outgoing half in order. Further input is dropped undecrypted.
    pub(crate) fn end(&mut self) {
        if let Some(mut tls) = self.tls.take() {
            tls.end_output(&self.socket);
        }
        self.socket.end_output();
        self.may_begin_tls = None;
        self.phase = Phase::Lingering { dropped: 0 };
    }
}

//! How clients come to the shard: accepted, placed, taken in; with TLS from the start, later, or never.

use super::client::{Client, Phase};
use super::listeners::Accepted;
use super::mailbox::Letter;
use super::proxy_protocol;
use super::shard::{CLIENT, LISTENER, Shard};
use super::socket::{Received, Socket};
use super::tls::{MayEncrypt, Tls};
use crate::allocator;
use crate::reactor::input_coalescing::Stream;
use crate::settings::{ListenerKind, Transport};
use angarium_protocol::TurnedAway;
use rustix::event::epoll::{self, EventFlags};
use std::time::{Duration, Instant};

/// The first byte of a TLS handshake (RFC 8446, 5.1: the record's type).
const TLS_HANDSHAKE: u8 = 22;
/// Accepting rests this long when descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Shard {
    /// Has epoll report clients that wait to be accepted, or stops that.
    pub(super) fn watch_listeners(&mut self, watched: bool) {
        for (index, listener) in self.listeners.iter().enumerate() {
            let data = epoll::EventData::new_u64(LISTENER | index as u64);
            let result = if watched {
                epoll::add(&self.epoll, &listener.fd, data, EventFlags::IN)
            } else {
                epoll::delete(&self.epoll, &listener.fd)
            };
            if let Err(error) = result {
                tracing::debug!(%error, listener = listener.shown, "epoll");
            }
        }
    }

    /// Accepts some clients of that listener.
    pub(super) fn accept(&mut self, index: usize) {
        const ACCEPTS_PER_TURN: usize = 64;
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(listener) = self.listeners.get(index) else { return };
            match listener.accept() {
                Ok(None) => return,
                Ok(Some(accepted)) => self.accepted(accepted, listener.kind),
                Err(error) => {
                    if let Some(held_back) = self.complaints.pass(Instant::now()) {
                        tracing::error!(%error, held_back, "cannot accept connections");
                    }
                    self.watch_listeners(false);
                    self.accept_again_at = Some(self.now.plus(ACCEPT_PAUSE));
                    return;
                }
            }
        }
    }

    /// Hands an accepted client to a shard; at home.
    fn accepted(&mut self, accepted: Accepted, kind: &ListenerKind) {
        if let Err((refusal, why)) = self.may_begin() {
            self.counters.refused += 1;
            if let Some(held_back) = self.complaints.pass(Instant::now()) {
                let peer = accepted.peer.address.as_str();
                tracing::warn!(peer, why, held_back, "client refused");
            }
            if kind.transport != Transport::Tls {
                // It may have gone by now.
                let text = self.node.turned_away(self.now, &accepted.peer, refusal);
                let _ = Socket::new(accepted.fd).send(&text);
            }
            return;
        }
        let Some(tls) = self.may_encrypt(kind.transport) else { return };
        match self.directory.place(kind.placement, self.settings.clients_together) {
            shard if shard == self.directory.here => self.take_client(accepted, tls),
            shard => self.directory.send(shard, Letter::Client(accepted, tls)),
        }
    }

    /// Whether one more client may connect now; the error says why not, to it and to people.
    fn may_begin(&mut self) -> Result<(), (TurnedAway, String)> {
        if allocator::is_exhausted() {
            return Err((TurnedAway::NoMemory, "the system refuses memory".to_owned()));
        }
        let room = self.directory.has_room(self.settings.connections_max);
        room.map_err(|why| (TurnedAway::TooMany, why))?;
        let Some(most) = self.settings.connections_per_second else { return Ok(()) };
        if self.connection_rate.admits(self.now, most) {
            return Ok(());
        }
        Err((TurnedAway::TooFast, format!("connections-per-second ({most}) is reached")))
    }

    /// Whether a client of that transport begins TLS; none if it must and there is no certificate.
    fn may_encrypt(&mut self, transport: Transport) -> Option<MayEncrypt> {
        let certificates = self.certificates.as_mut();
        let with = || certificates.map(|certificates| certificates.acceptance(Instant::now()));
        match transport {
            Transport::Tcp => Some(MayEncrypt::Never),
            Transport::Tls => with().map(MayEncrypt::AtOnce),
            Transport::StartTls => Some(with().map_or(MayEncrypt::Never, MayEncrypt::Greeted)),
        }
    }

    /// Takes a client that this process is itself.
    pub(crate) fn take_own_client(&mut self, accepted: Accepted) {
        self.directory.came();
        self.take_client(accepted, MayEncrypt::Never);
    }

    /// Takes a client over that was handed to this shard, where it is counted.
    pub(super) fn take_client(&mut self, accepted: Accepted, may_encrypt: MayEncrypt) {
        let Accepted { fd, peer, is_proxied } = accepted;
        let (tls, may_begin_tls) = match may_encrypt {
            MayEncrypt::Never => (None, None),
            MayEncrypt::Greeted(with) => (None, Some(with)),
            MayEncrypt::AtOnce(with) => match Tls::begin(with) {
                Some(tls) => (Some(tls), None),
                None => return self.directory.left(),
            },
        };
        if !self.is_serving() {
            return self.directory.left();
        }
        let is_plain = tls.is_none();
        let client = Client {
            socket: Socket::new(fd),
            tls,
            may_begin_tls,
            tells_tls: false,
            phase: match is_proxied {
                true => Phase::Proxied(Box::new(peer), Vec::new()),
                false => Phase::Handshaking(Box::new(peer)),
            },
            watched: Some(EventFlags::IN),
            is_full: false,
            is_waiting: false,
            deadline: Some(self.now.plus(self.settings.handshake_timeout.0)),
            stream: Stream::default(),
        };
        let index = self.clients.insert(client);
        let client = self.clients.get(index).expect("just inserted");
        let data = epoll::EventData::new_u64(CLIENT | index as u64);
        if let Err(error) = epoll::add(&self.epoll, &client.socket, data, EventFlags::IN) {
            tracing::error!(%error, "cannot watch a connection");
            self.clients.remove(index);
            self.directory.left();
        } else if is_plain && !is_proxied {
            self.handshaken(index);
        }
    }

    /// Takes what has come of the header that a client's proxy sends first, and nothing behind it.
    pub(super) fn take_proxy_header(&mut self, index: usize) {
        let Some(client) = self.clients.get(index) else { return };
        let Phase::Proxied(peer, header) = &mut client.phase else { return };
        let before = header.len();
        let room = &mut self.block[..proxy_protocol::HEADER_BYTES_MAX - before];
        let count = match client.socket.look(room) {
            Received::Bytes(count) => count,
            Received::Nothing => return,
            Received::Ended => return self.drop_client(index),
        };
        header.extend_from_slice(&room[..count]);
        let (used, from) = match proxy_protocol::parse(header) {
            proxy_protocol::Header::Incomplete => (header.len(), None),
            proxy_protocol::Header::Whole(used, from) => (used, Some(from)),
            proxy_protocol::Header::Wrong(why) => {
                let peer = peer.address.clone();
                self.log_failed_handshake(Some(peer), why);
                self.counters.handshakes_failed += 1;
                return self.drop_client(index);
            }
        };
        // It was there just now.
        let _ = client.socket.receive(&mut room[..used - before]);
        let Some(from) = from else { return };
        let mut peer = std::mem::take(&mut **peer);
        // This host is meant by its own proxies alone.
        peer.local &= from.is_some_and(|from| from.ip().to_canonical().is_loopback());
        if let Some(from) = from {
            peer.address = from.to_string();
        }
        client.phase = Phase::Handshaking(Box::new(peer));
        if client.tls.is_none() {
            self.handshaken(index);
        }
    }

    /// Begins TLS if the first byte of a client that may begin it is that of a handshake.
    pub(super) fn look_for_tls(&mut self, index: usize) {
        if let Some(client) = self.clients.get(index)
            && client.may_begin_tls.is_some()
            && let Some(first) = client.socket.peek()
        {
            let with = client.may_begin_tls.take().filter(|_| first == TLS_HANDSHAKE);
            client.tls = with.and_then(Tls::begin);
            client.tells_tls = client.tls.is_some();
            if let (true, Phase::Open(id)) = (client.tells_tls, &client.phase) {
                self.node.encrypts(self.now, *id);
            }
        }
    }

    /// Tells the node that a client's transport has become encrypted.
    pub(super) fn tell_tls(&mut self, index: usize) {
        if let Some(client) = self.clients.get(index)
            && client.tells_tls
            && let (Some(tls), Phase::Open(id)) = (&client.tls, &client.phase)
            && !tls.is_handshaking()
        {
            self.node.encrypted(self.now, *id, tls.certificate_name());
            client.tells_tls = false;
            self.judge_new_certificate(index);
        }
    }

    /// The transport is established: the node takes the client over.
    pub(super) fn handshaken(&mut self, index: usize) {
        let Some(client) = self.clients.get(index) else { return };
        let Phase::Handshaking(peer) = &mut client.phase else { return };
        let mut peer = std::mem::take(&mut **peer);
        if let Some(tls) = &client.tls {
            peer.certificate_name = tls.certificate_name();
        }
        let id = self.node.connected(self.now, peer);
        client.phase = Phase::Open(id);
        self.log_client(id, "connected");
        self.clients.set_deadline(index, None);
        self.clients.name(index, id);
        self.judge_new_certificate(index);
    }

    /// Logs that a handshake before the protocol's failed, at most once a second.
    pub(super) fn log_failed_handshake(&mut self, peer: Option<String>, error: &str) {
        if let Some(held_back) = self.complaints.pass(Instant::now()) {
            tracing::info!(peer, error, held_back, "handshake failed");
        }
    }

    /// What a client sent is not TLS, or its certificate is not trusted. The alert for it is sent already.
    pub(super) fn tls_failed(&mut self, index: usize, error: &str) {
        let Some(client) = self.clients.get(index) else { return };
        if client.tls.as_ref().is_some_and(|tls| tls.is_handshaking()) {
            self.counters.handshakes_failed += 1;
            let peer = match &client.phase {
                Phase::Proxied(peer, _) | Phase::Handshaking(peer) => Some(peer.address.clone()),
                Phase::Open(id) => {
                    self.node.connection(self.now, *id).map(|it| it.info.peer.address.clone())
                }
                Phase::Lingering { .. } => None,
            };
            self.log_failed_handshake(peer, error);
        }
        self.linger(index);
    }
}

//! Input of connections with framing on its way to the protocol handler: first bytes, which say what is
//! spoken, and the frames of a WebSocket. Does not know what the bytes inside mean.

use super::Connection;
use crate::connection::framing::Framing;
use crate::connection::handler::AnyHandler;
use crate::connection::key::ConnectionKey;
use crate::node::Node;
use angarium_engine::{ConnectionId, Time};
use angarium_protocol::websocket::{End, Fault, Incoming, Opening, Outgoing, TEXT_REFUSED, open};
use angarium_protocol::{Close, Context, FirstBytes, Protocol, ProtocolHandler, Writer};

/// Room for unframed input that is kept for the next.
const UNFRAMED_BYTES_KEPT: usize = 256 << 10;

impl Connection {
    /// The frames of its client, where it has come by WebSocket.
    fn incoming(&mut self) -> Option<&mut Incoming> {
        match self.framing.as_deref_mut() {
            Some(Framing::WebSocket(incoming)) => Some(incoming),
            _ => None,
        }
    }

    /// The client has begun: it does not wait to be greeted.
    pub(crate) fn has_begun(&mut self, now: Time) {
        if let AnyHandler::Undecided(handler) = &mut self.handler {
            handler.heard(now);
        }
    }
}

impl Node {
    /// Takes input of a connection with framing.
    #[cold]
    pub(crate) fn received_framed(&mut self, now: Time, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        match connection.framing.as_deref() {
            Some(Framing::FirstBytes) => self.tell_apart(now, id, bytes),
            Some(Framing::Opening) => self.open_web_socket(now, id, bytes),
            Some(Framing::WebSocket(_)) => self.received_frames(now, id, bytes),
            None => self.take_input(now, id, bytes),
        }
    }

    /// Takes first bytes of a connection of which they say what it is.
    fn tell_apart(&mut self, now: Time, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.has_begun(now);
        connection.carry.extend_from_slice(bytes);
        match FirstBytes::of_transport(&connection.carry) {
            FirstBytes::Few => {}
            FirstBytes::Unknown => self.end_unknown(now, id),
            FirstBytes::Of(Protocol::WebSocket) => {
                connection.framing = Framing::new(Protocol::WebSocket);
                self.open_web_socket(now, id, &[]);
            }
            FirstBytes::Of(protocol) => {
                connection.framing = None;
                let first = std::mem::take(&mut connection.carry);
                self.speak(now, id, protocol);
                self.take_input(now, id, &first);
            }
        }
    }

    fn end_unknown(&mut self, now: Time, id: ConnectionId) {
        let reason = "its first bytes are of no protocol that is spoken here".to_owned();
        self.end(now, id, Close { reason });
    }

    /// Takes the request that opens a WebSocket, or a part of it.
    fn open_web_socket(&mut self, now: Time, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.carry.extend_from_slice(bytes);
        match open(&connection.carry, &self.options.websocket) {
            Opening::Incomplete => {}
            Opening::Refused { answer, why } => {
                self.effects.touch(id).output.bytes.extend_from_slice(&answer);
                self.end(now, id, Close { reason: format!("no WebSocket: {why}") });
            }
            Opening::Open { answer, protocol, used } => {
                let mut rest = std::mem::take(&mut connection.carry);
                rest.drain(..used);
                connection.peer.is_framed = true;
                connection.framing = Some(Box::new(Framing::WebSocket(Incoming::default())));
                self.effects.touch(id);
                self.effects.outbox[id.0 as usize].framing = Some(Box::new(Outgoing::new(answer)));
                match protocol {
                    Some(protocol) => self.speak(now, id, protocol),
                    None => self.await_first_bytes(now, id),
                }
                self.received_frames(now, id, &rest);
            }
        }
    }

    /// Takes frames.
    fn received_frames(&mut self, now: Time, id: ConnectionId, bytes: &[u8]) {
        let mut payload = std::mem::take(&mut self.connections.unframed);
        let incoming = self.connections.get_mut(id).and_then(Connection::incoming);
        let Some(incoming) = incoming.filter(|incoming| !incoming.is_closed()) else {
            self.connections.unframed = payload;
            return;
        };
        let received = incoming.receive(bytes, &mut payload);
        let has_sent_text = incoming.has_sent_text();
        if let Some(ping) = received.ping {
            self.with_outgoing(id, |outgoing| outgoing.answer(ping));
        }
        if has_sent_text && let Some(outgoing) = &mut self.effects.outbox[id.0 as usize].framing {
            outgoing.speak_text();
        }
        if !payload.is_empty() {
            self.take_payload(now, id, &payload);
        }
        payload.clear();
        payload.shrink_to(UNFRAMED_BYTES_KEPT);
        self.connections.unframed = payload;
        match received.end {
            None => {}
            // What came before is still processed, and answered.
            Some(End::Closed(code)) => self.connections.closed.push((id, code)),
            Some(End::Failed(fault)) => self.end_framed(now, id, fault),
        }
    }

    fn end_framed(&mut self, now: Time, id: ConnectionId, fault: Fault) {
        self.with_outgoing(id, |outgoing| outgoing.close(fault.code));
        self.end(now, id, Close { reason: format!("WebSocket: {}", fault.text) });
    }

    /// Has something done to a connection's frames, where it has any; it has output then.
    fn with_outgoing(&mut self, id: ConnectionId, act: impl FnOnce(&mut Outgoing)) {
        if let Some(outgoing) = &mut self.effects.outbox[id.0 as usize].framing {
            act(outgoing);
            self.effects.touch(id);
        }
    }

    /// Takes what was inside frames.
    fn take_payload(&mut self, now: Time, id: ConnectionId, payload: &[u8]) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if !matches!(connection.handler, AnyHandler::Undecided(_)) {
            return self.take_input(now, id, payload);
        }
        connection.has_begun(now);
        connection.carry.extend_from_slice(payload);
        match FirstBytes::of_payload(&connection.carry) {
            FirstBytes::Few => {}
            FirstBytes::Unknown => self.end_unknown(now, id),
            FirstBytes::Of(protocol) => {
                let first = std::mem::take(&mut connection.carry);
                self.speak(now, id, protocol);
                self.take_input(now, id, &first);
            }
        }
    }

    /// The client may begin, or wait to be greeted.
    pub(crate) fn await_first_bytes(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let AnyHandler::Undecided(handler) = &mut connection.handler else { return };
        handler.listen(now, &self.options.undecided);
        if let Some(due) = handler.deadline() {
            self.connections.closing.insert((due, id));
        }
    }

    /// A client that is silent is greeted where it seems to wait for that; says whether it was.
    pub(crate) fn greet_silent(&mut self, now: Time, id: ConnectionId) -> bool {
        let Some(connection) = self.connections.get_mut(id) else { return false };
        let AnyHandler::Undecided(handler) = &connection.handler else { return false };
        if connection.ended.is_some() || !handler.waits_for_greeting(now) {
            return false;
        }
        if matches!(connection.framing.as_deref(), Some(Framing::FirstBytes)) {
            connection.framing = None;
        }
        self.speak(now, id, Protocol::GREETING);
        true
    }

    /// A connection's protocol is known.
    fn speak(&mut self, now: Time, id: ConnectionId, protocol: Protocol) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.peer.protocol = protocol;
        let key = ConnectionKey { id, serial: connection.serial };
        // The handshake began when it connected.
        let since = connection.connected_at;
        connection.handler = AnyHandler::new(&self.options, key, &connection.peer, since);
        self.effects.outbox[id.0 as usize].writer.protocol = Writer::new(protocol).protocol;
        self.begin(now, id);
        self.apply_quota(id);
        let connection = self.connections.get_mut(id);
        let Some(incoming) = connection.and_then(Connection::incoming) else { return };
        if protocol.is_binary() {
            incoming.refuse_text();
            if incoming.has_sent_text() {
                self.end_framed(now, id, TEXT_REFUSED);
            }
        }
    }

    /// Has the handler of a new connection greet its client.
    pub(crate) fn begin(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let mut context = Context { now, engine: &mut self.engine, host: &mut self.effects };
        connection.handler.begin(&mut context);
        if let Some(why) = &self.storage.blocked {
            connection.handler.blocked(&mut context, Some(why));
        }
    }

    /// Ends connections whose clients have closed their WebSockets, once all that came before is processed.
    pub(crate) fn end_closed(&mut self, now: Time) {
        for (id, code) in std::mem::take(&mut self.connections.closed) {
            let connection = self.connections.get_mut(id);
            let incoming = connection.and_then(Connection::incoming);
            // Another one may be in its place by now.
            if !incoming.is_some_and(|it| it.is_closed()) || !self.is_open(id) {
                continue;
            }
            if self.input_ended(now, id) {
                self.connections.closed.push((id, code));
            } else {
                self.with_outgoing(id, |outgoing| outgoing.close(code));
                let reason = "the client closed its WebSocket".to_owned();
                self.end(now, id, Close { reason });
            }
        }
    }
}

//! An MQTT connection: handshake, subscriptions, and parsing of the input.

use super::packet::{self, Head, PublishHead, Version};
use crate::client::encoded::PACKET_IDS;
use crate::client::{
    Confirm, Encoded, Error, Head as Delivery, Receiver, Route, Session, Source, Target, Wire,
};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Filters of one SUBSCRIBE.
const FILTERS_MAX: usize = 100;
/// The largest accepted packet other than PUBLISH.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Counter for client identifiers.
static CLIENTS: AtomicU64 = AtomicU64::new(0);

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) wire: Wire,
    target: Target,
    version: Version,
    /// Publishes at QoS 1, or 2.
    confirms: bool,
    /// QoS 2 in the place of 1.
    exactly_once: bool,
    filter: Option<String>,
    /// CONNACK's session-present flag.
    session_present: bool,
    /// Bytes of the current body still to come.
    body_left: usize,
    delivered: u64,
    /// Unacknowledged deliveries.
    unacked: VecDeque<Unacked>,
    /// The second packets of handshakes of QoS 2, which go out before the next read.
    releases: Vec<u8>,
    /// The highest confirmed tag.
    confirmed: u64,
}

/// A delivery that is not acknowledged yet.
#[derive(Debug, Clone, Copy)]
struct Unacked {
    number: u64,
    id: u16,
    /// The type of the acknowledgement.
    kind: u8,
}

impl Connection {
    /// Connects with a clean session.
    pub(crate) fn open(target: &Target) -> Result<Connection, Error> {
        let number = CLIENTS.fetch_add(1, Ordering::Relaxed);
        let name = format!("bench-{}-{number}", std::process::id());
        Connection::open_session(target, &name, true)
    }

    /// Connects to the session of this client identifier; `clean` discards its state.
    fn open_session(target: &Target, client_id: &str, clean: bool) -> Result<Connection, Error> {
        let mut connection = Connection {
            wire: Wire::open(target)?,
            target: target.clone(),
            version: target.into(),
            confirms: false,
            exactly_once: false,
            filter: None,
            session_present: false,
            body_left: 0,
            delivered: 0,
            unacked: VecDeque::new(),
            releases: Vec::new(),
            confirmed: 0,
        };
        let connect = packet::connect(connection.version, client_id, target.login.as_ref(), clean);
        connection.wire.send(&connect)?;
        connection.session_present =
            connection.expect(packet::CONNACK, |content| match content.get(1) {
                Some(0) => Ok(content[0] & 1 == 1),
                code => Err(Error::Closed(format!("CONNACK with code {code:?}"))),
            })?;
        Ok(connection)
    }

    /// Publishes at QoS 1, or 2, from now on.
    pub(crate) fn select_confirms(&mut self) -> Result<(), Error> {
        self.confirms = true;
        Ok(())
    }

    /// Publishes and subscribes at QoS 2 from now on where it would at 1.
    pub(crate) fn select_exactly_once(&mut self) {
        self.exactly_once = true;
    }

    /// The quality of service of what is acknowledged.
    fn acknowledged_qos(&self) -> u8 {
        if self.exactly_once { 2 } else { 1 }
    }

    /// Reads once, after what answers the last input was written.
    #[inline]
    pub(crate) fn fill(&mut self) -> io::Result<usize> {
        self.wire.flush(&mut self.releases)?;
        self.wire.fill()
    }

    /// Creates a session that stores what is published to its filter while its client is not connected.
    pub(crate) fn declare_session(&mut self, declared: &Session<'_>) -> Result<(), Error> {
        let mut session = Connection::open_session(&self.target, declared.name, false)?;
        session.subscribe_filters(&[declared.filter.to_owned()], self.acknowledged_qos())?;
        session.wire.send(&packet::DISCONNECT_PACKET)
    }

    /// Deletes a session and what it stores.
    pub(crate) fn delete_session(&mut self, name: &str) -> Result<(), Error> {
        let mut session = Connection::open_session(&self.target, name, true)?;
        session.wire.send(&packet::DISCONNECT_PACKET)
    }

    /// Subscribes and waits for SUBACK; connects to the source's session, if it has one.
    pub(crate) fn subscribe(&mut self, source: &Source<'_>, _: u16) -> Result<(), Error> {
        if let Some(name) = source.session {
            let exactly_once = self.exactly_once;
            let session = Connection::open_session(&self.target, name, false)?;
            *self = Connection { exactly_once, ..session };
        }
        let group = source.group.map_or(String::new(), |group| format!("$share/{group}/"));
        let filter = group + source.name;
        let qos = if source.auto_ack { 0 } else { self.acknowledged_qos() };
        self.filter = Some(filter.clone());
        match (source.session, self.session_present) {
            // The session has the subscription already, and may deliver stored messages immediately.
            (Some(_), true) => Ok(()),
            // A broker may have the session without saying so; messages before SUBACK must not be
            // dropped.
            (Some(_), false) => self.send_subscribe(&[filter], qos),
            (None, _) => self.subscribe_filters(&[filter], qos),
        }
    }

    /// Subscribes to many filters.
    pub(crate) fn subscribe_many(
        &mut self,
        filters: impl Iterator<Item = String>,
    ) -> Result<(), Error> {
        let filters: Vec<String> = filters.collect();
        filters.chunks(FILTERS_MAX).try_for_each(|chunk| self.subscribe_filters(chunk, 0))
    }

    fn send_subscribe(&mut self, filters: &[String], qos: u8) -> Result<(), Error> {
        self.wire.send(&packet::subscribe(self.version, 1, filters, qos))
    }

    fn subscribe_filters(&mut self, filters: &[String], qos: u8) -> Result<(), Error> {
        self.send_subscribe(filters, qos)?;
        self.expect(packet::SUBACK, |content| match content.last() {
            Some(code) if *code < 0x80 => Ok(()),
            code => Err(Error::Closed(format!("SUBACK with code {code:?}"))),
        })
    }

    /// Appends a message.
    pub(crate) fn encode(&self, route: &Route<'_>, body: &[u8], out: &mut Vec<u8>) -> Encoded {
        let qos = if self.confirms { self.acknowledged_qos() } else { 0 };
        packet::publish(self.version, route.key, qos, body, out)
    }

    /// Appends acknowledgements of a delivery, or of all up to it.
    pub(crate) fn encode_ack(&mut self, out: &mut Vec<u8>, tag: u64, multiple: bool) {
        if multiple {
            while self.unacked.front().is_some_and(|it| it.number <= tag)
                && let Some(first) = self.unacked.pop_front()
            {
                packet::answer(first.kind, first.id, out);
            }
        } else if let Some(at) = self.unacked.iter().position(|it| it.number == tag)
            && let Some(found) = self.unacked.remove(at)
        {
            packet::answer(found.kind, found.id, out);
        }
    }

    /// Asks for an answer to everything sent before; ends a subscription.
    pub(crate) fn send_end(&mut self) -> Result<(), Error> {
        match self.filter.take() {
            Some(filter) => self.wire.send(&packet::unsubscribe(self.version, 2, &filter)),
            None => self.wire.send(&packet::PINGREQ_PACKET),
        }
    }

    /// Ends the connection.
    pub(crate) fn close(mut self) -> Result<(), Error> {
        self.wire.flush(&mut self.releases)?;
        // A broker may hang up on DISCONNECT immediately.
        let _ = self.wire.send(&packet::DISCONNECT_PACKET);
        Ok(())
    }

    /// Hands everything received to `receiver`.
    #[inline]
    pub(crate) fn parse(&mut self, receiver: &mut impl Receiver) -> Result<(), Error> {
        loop {
            if self.body_left > 0 {
                let left = self.body_left;
                let piece = |bytes: &[u8]| {
                    let count = bytes.len().min(left);
                    receiver.body(&bytes[..count]);
                    Ok::<_, Error>((count > 0).then_some((count, count)))
                };
                let Some(count) = self.wire.incoming.take(piece)? else { return Ok(()) };
                self.body_left -= count;
                if self.body_left > 0 {
                    return Ok(());
                }
                receiver.complete();
            }
            let version = self.version;
            match self.wire.incoming.take(|bytes| next(bytes, version))? {
                None => return Ok(()),
                Some(Item::Publish(head)) => self.begin(&head, receiver),
                Some(Item::Confirmed(id)) => self.confirm(id, receiver)?,
                Some(Item::Release { kind, id }) => packet::answer(kind, id, &mut self.releases),
                Some(Item::Ended) => receiver.ended(),
                Some(Item::Refused(text)) => return Err(Error::Closed(text)),
                Some(Item::Other) => {}
            }
        }
    }

    #[inline]
    fn begin(&mut self, head: &PublishHead, receiver: &mut impl Receiver) {
        self.delivered += 1;
        if head.id > 0 {
            let kind = if head.qos == 2 { packet::PUBREC } else { packet::PUBACK };
            self.unacked.push_back(Unacked { number: self.delivered, id: head.id, kind });
        }
        let (tag, redelivered, size) = (self.delivered, head.duplicate, head.body as u64);
        receiver.begin(Delivery { tag, redelivered, size });
        self.body_left = head.body;
        if head.body == 0 {
            receiver.complete();
        }
    }

    /// Confirms the tag nearest to the last one with this packet identifier.
    #[inline]
    fn confirm(&mut self, id: u16, receiver: &mut impl Receiver) -> Result<(), Error> {
        let tag = tag_of(id, self.confirmed).ok_or_else(|| {
            Error::Invalid(format!("an acknowledgement of {id}, which was never sent"))
        })?;
        self.confirmed = self.confirmed.max(tag);
        receiver.confirm(Confirm { tag, multiple: false, refused: false })
    }

    /// Waits for an answer; drops messages before it.
    fn expect<T>(
        &mut self,
        kind: u8,
        mut read: impl FnMut(&[u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.wire.expect(|bytes| {
            let Some(head) = Head::decode(bytes).map_err(Error::invalid)? else { return Ok(None) };
            let Some(content) = answer(bytes, &head)? else { return Ok(None) };
            let found = if head.kind == kind { Some(read(content)?) } else { None };
            Ok(Some((found, head.octets + head.remaining)))
        })
    }
}

/// The content of a packet other than PUBLISH, if it is complete.
#[inline]
fn answer<'a>(bytes: &'a [u8], head: &Head) -> Result<Option<&'a [u8]>, Error> {
    if head.remaining > ANSWER_BYTES_MAX {
        return Err(Error::invalid("an answer that is too long"));
    }
    Ok(bytes.get(head.octets..head.octets + head.remaining))
}

/// A parsed packet.
enum Item {
    Publish(PublishHead),
    Confirmed(u16),
    /// The first answer of a handshake of QoS 2, whose next packet has this type.
    Release {
        kind: u8,
        id: u16,
    },
    Ended,
    Refused(String),
    Other,
}

#[inline]
fn next(bytes: &[u8], version: Version) -> Result<Option<(Item, usize)>, Error> {
    let Some(head) = Head::decode(bytes).map_err(Error::invalid)? else { return Ok(None) };
    if head.kind == packet::PUBLISH {
        let publish = PublishHead::decode(bytes, &head, version).map_err(Error::invalid)?;
        return Ok(publish.map(|publish| (Item::Publish(publish), publish.octets)));
    }
    let Some(content) = answer(bytes, &head)? else { return Ok(None) };
    let item = match (head.kind, content) {
        (packet::PUBACK..=packet::PUBCOMP, [high, low, rest @ ..]) => {
            let id = u16::from_be_bytes([*high, *low]);
            match (head.kind, rest.first()) {
                (kind, Some(code)) if *code >= 0x80 => {
                    Item::Refused(format!("an answer of type {kind} with code {code}"))
                }
                (packet::PUBREC, _) => Item::Release { kind: packet::PUBREL, id },
                (packet::PUBREL, _) => Item::Release { kind: packet::PUBCOMP, id },
                _ => Item::Confirmed(id),
            }
        }
        (packet::SUBACK, [.., code @ 0x80..=0xFF]) => {
            Item::Refused(format!("SUBACK with code {code}"))
        }
        (packet::PINGRESP | packet::UNSUBACK, _) => Item::Ended,
        (packet::DISCONNECT, _) => Item::Refused(format!("DISCONNECT {content:?}")),
        _ => Item::Other,
    };
    Ok(Some((item, head.octets + head.remaining)))
}

/// The tag of a packet identifier, given the highest confirmed tag; `None` for identifier 0. Windows are
/// much smaller than half of the identifier space.
pub(super) fn tag_of(id: u16, confirmed: u64) -> Option<u64> {
    if id == 0 {
        return None;
    }
    // Tags with this identifier are `id` plus multiples of the number of identifiers.
    let id = u64::from(id);
    let round = (confirmed + PACKET_IDS / 2).saturating_sub(id) / PACKET_IDS;
    Some(round * PACKET_IDS + id)
}

//! A STOMP connection: handshake, subscription, and parsing of the input.

use super::frame::{self, FrameHead, Noted};
use crate::client::{Confirm, Encoded, Error, Head, Receiver, Route, Source, Target, Wire};
use std::collections::VecDeque;

/// The receipt of the request that ends publishing or consuming.
pub(super) const END: &str = "end";
/// The receipt of a subscription.
pub(super) const SUBSCRIBED: &str = "subscribed";
/// Buffers for ack headers that are kept for reuse.
const SPARE_MAX: usize = 4_096;
/// The largest accepted frame without a content-length.
const BARE_BYTES_MAX: usize = 64 * 1024;

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) wire: Wire,
    confirms: bool,
    subscribed: bool,
    acknowledges: bool,
    /// Bytes of the current body still to come, including the NUL after it.
    body_left: Option<usize>,
    delivered: u64,
    /// Unacknowledged deliveries: number and ack header.
    unacked: VecDeque<(u64, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

impl Connection {
    /// Connects and authenticates.
    pub(crate) fn open(target: &Target) -> Result<Connection, Error> {
        let mut connection = Connection {
            wire: Wire::open(target)?,
            confirms: false,
            subscribed: false,
            acknowledges: false,
            body_left: None,
            delivered: 0,
            unacked: VecDeque::new(),
            spare: Vec::new(),
        };
        let login = target.login_or_guest();
        let headers = [
            ("accept-version", "1.2"),
            ("host", target.virtual_host.as_str()),
            ("login", login.user.as_str()),
            ("passcode", login.password()),
            ("heart-beat", "0,0"),
        ];
        connection.send("CONNECT", &headers)?;
        connection.expect(|head| head.command == b"CONNECTED")?;
        Ok(connection)
    }

    fn send(&mut self, command: &str, headers: &[(&str, &str)]) -> Result<(), Error> {
        let mut out = Vec::new();
        frame::write(&mut out, command, headers);
        self.wire.send(&out)
    }

    /// Asks for a receipt of each message from now on.
    pub(crate) fn select_confirms(&mut self) -> Result<(), Error> {
        self.confirms = true;
        Ok(())
    }

    /// Subscribes and waits for the receipt. Acknowledgements are cumulative; `prefetch` limits
    /// unacknowledged deliveries where the broker supports that header (RabbitMQ).
    pub(crate) fn subscribe(&mut self, source: &Source<'_>, prefetch: u16) -> Result<(), Error> {
        let (auto_ack, prefetch) = (source.auto_ack, prefetch.to_string());
        let mut headers = vec![
            ("id", "0"),
            ("destination", source.name),
            ("ack", if auto_ack { "auto" } else { "client" }),
            ("receipt", SUBSCRIBED),
        ];
        if !auto_ack && prefetch != "0" {
            headers.push(("prefetch-count", &prefetch));
        }
        self.send("SUBSCRIBE", &headers)?;
        (self.subscribed, self.acknowledges) = (true, !auto_ack);
        self.expect(|head| head.header(b"receipt-id") == Some(SUBSCRIBED.as_bytes()))
    }

    /// Appends a message.
    pub(crate) fn encode(&self, route: &Route<'_>, body: &[u8], out: &mut Vec<u8>) -> Encoded {
        frame::write_send(out, route, self.confirms, body)
    }

    /// Appends an acknowledgement of all deliveries up to this one.
    pub(crate) fn encode_ack(&mut self, out: &mut Vec<u8>, tag: u64, _: bool) {
        let mut last = None;
        while self.unacked.front().is_some_and(|(number, _)| *number <= tag) {
            let Some((_, name)) = self.unacked.pop_front() else { break };
            if let Some(before) = last.replace(name)
                && self.spare.len() < SPARE_MAX
            {
                self.spare.push(before);
            }
        }
        if let Some(name) = last {
            out.extend_from_slice(b"ACK\nid:");
            out.extend_from_slice(&name);
            out.extend_from_slice(b"\n\n\0");
        }
    }

    /// Asks for a receipt of everything sent before; ends a subscription.
    pub(crate) fn send_end(&mut self) -> Result<(), Error> {
        if self.subscribed {
            self.send("UNSUBSCRIBE", &[("id", "0"), ("receipt", END)])
        } else {
            self.send("DISCONNECT", &[("receipt", END)])
        }
    }

    /// Hands everything received to `receiver`.
    #[inline]
    pub(crate) fn parse(&mut self, receiver: &mut impl Receiver) -> Result<(), Error> {
        loop {
            if let Some(left) = self.body_left {
                // The last byte is the NUL that ends the frame.
                let piece = |bytes: &[u8]| {
                    let count = bytes.len().min(left);
                    receiver.body(&bytes[..count.min(left - 1)]);
                    Ok::<_, Error>((count > 0).then_some((count, count)))
                };
                let Some(count) = self.wire.incoming.take(piece)? else { return Ok(()) };
                self.body_left = (count < left).then_some(left - count);
                if self.body_left.is_some() {
                    return Ok(());
                }
                receiver.complete();
            }
            let Some(event) = self.next()? else { return Ok(()) };
            match event {
                Event::Message { size, redelivered } => {
                    self.delivered += 1;
                    let (tag, size_long) = (self.delivered, size as u64);
                    receiver.begin(Head { tag, redelivered, size: size_long });
                    self.body_left = Some(size + 1);
                }
                Event::Receipt(tag) => {
                    receiver.confirm(Confirm { tag, multiple: false, refused: false })?;
                }
                Event::Ended => receiver.ended(),
                Event::Refused(text) => return Err(Error::Closed(text)),
                Event::Other => {}
            }
        }
    }

    #[inline]
    fn next(&mut self) -> Result<Option<Event>, Error> {
        let (acknowledges, number) = (self.acknowledges, self.delivered + 1);
        let (unacked, spare) = (&mut self.unacked, &mut self.spare);
        self.wire.incoming.take(|bytes| {
            let mut noted = Noted::default();
            let head = FrameHead::scan(bytes, |line| noted.note(line)).map_err(Error::invalid)?;
            let Some(head) = head else { return Ok(None) };
            if head.command == b"MESSAGE" {
                let size = noted.length.and_then(frame::number).map(|size| size as usize);
                let size =
                    size.ok_or_else(|| Error::invalid("a message without a content-length"))?;
                if acknowledges {
                    let name = noted
                        .ack
                        .ok_or_else(|| Error::invalid("a message without an ack header"))?;
                    let mut kept = spare.pop().unwrap_or_default();
                    kept.clear();
                    kept.extend_from_slice(name);
                    unacked.push_back((number, kept));
                }
                let redelivered = noted.redelivered == Some(b"true");
                return Ok(Some((Event::Message { size, redelivered }, head.octets)));
            }
            answer(&head, bytes)
        })
    }

    /// Waits for a frame that `wanted` accepts; drops others before it.
    fn expect(&mut self, mut wanted: impl FnMut(&FrameHead<'_>) -> bool) -> Result<(), Error> {
        self.wire.expect(|bytes| {
            let Some(head) = FrameHead::decode(bytes).map_err(Error::invalid)? else {
                return Ok(None);
            };
            match answer(&head, bytes)? {
                Some((Event::Refused(text), _)) => Err(Error::Closed(text)),
                found => Ok(found.map(|(_, octets)| (wanted(&head).then_some(()), octets))),
            }
        })
    }
}

/// A parsed frame.
enum Event {
    Message { size: usize, redelivered: bool },
    Receipt(u64),
    Ended,
    Refused(String),
    Other,
}

/// Parses a whole frame other than MESSAGE. Returns its length, too; `None` if more bytes are needed.
fn answer(head: &FrameHead<'_>, bytes: &[u8]) -> Result<Option<(Event, usize)>, Error> {
    let rest = &bytes[head.octets..];
    let length = match head.content_length() {
        Some(length) if length > BARE_BYTES_MAX => {
            return Err(Error::invalid("an answer that is too long"));
        }
        Some(length) => length,
        None => match rest.iter().position(|octet| *octet == 0) {
            Some(length) => length,
            None if rest.len() > BARE_BYTES_MAX => {
                return Err(Error::invalid("a frame without an end"));
            }
            None => return Ok(None),
        },
    };
    if rest.len() <= length {
        return Ok(None);
    }
    let event = match (head.command, head.header(b"receipt-id")) {
        (b"RECEIPT", Some(id)) if id == END.as_bytes() => Event::Ended,
        (b"RECEIPT", Some(id)) => frame::number(id).map_or(Event::Other, Event::Receipt),
        (b"ERROR", _) => {
            let what = head.header(b"message").unwrap_or(b"an error");
            let body = String::from_utf8_lossy(&rest[..length.min(200)]);
            Event::Refused(format!("{}: {}", String::from_utf8_lossy(what), body.trim()))
        }
        _ => Event::Other,
    };
    Ok(Some((event, head.octets + length + 1)))
}

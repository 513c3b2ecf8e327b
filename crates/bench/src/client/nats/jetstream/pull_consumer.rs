//! A pull consumer's client side: outstanding pulls, deliveries, acknowledgements. Independent of
//! sockets.

use super::api::{self, Status};
use crate::client::{Acks, Error, Head, Receiver};
use angarium_protocol::nats::codec::{Headers, Message, Publish};
use std::collections::VecDeque;

/// Messages per pull where unacknowledged deliveries are unlimited.
const COUNT_MAX: u64 = 1_000;
/// Upper bound of the body bytes of one pull, estimated from earlier messages: a server disconnects a
/// client with too many unread bytes.
const PULL_BYTES: usize = 4 << 20;
/// Assumed body size before the first message.
const FIRST_BYTES: usize = 256 * 1024;
/// Bytes of a delivery's reply subject: names of stream and consumer, and numbers.
const SUBJECT_BYTES_MAX: usize = 1_024;
/// Acknowledged subjects are removed from the buffer beyond this many bytes.
const SENT_BYTES: usize = 64 * 1024;

/// Reply subjects of unacknowledged deliveries, in order.
#[derive(Debug, Default)]
struct Unacked {
    octets: Vec<u8>,
    lengths: VecDeque<u16>,
    /// Bytes at the start that belong to acknowledged deliveries.
    sent: usize,
}

impl Unacked {
    fn push(&mut self, subject: &[u8]) {
        self.octets.extend_from_slice(subject);
        self.lengths.push_back(subject.len() as u16);
    }

    fn count(&self) -> u64 {
        self.lengths.len() as u64
    }

    /// Removes the first `count`, and calls `each` with each of them.
    fn drain(&mut self, count: usize, mut each: impl FnMut(&[u8])) {
        for length in self.lengths.drain(..count) {
            let end = self.sent + usize::from(length);
            each(&self.octets[self.sent..end]);
            self.sent = end;
        }
        if self.sent == self.octets.len() || self.sent > SENT_BYTES {
            self.octets.drain(..self.sent);
            self.sent = 0;
        }
    }
}

/// A pull consumer.
#[derive(Debug)]
pub(super) struct PullConsumer {
    /// The subject of pull requests, and the reply subject for their messages.
    next: String,
    inbox: String,
    acks: Acks,
    /// Limit on messages in flight plus unacknowledged ones.
    count_max: u64,
    /// Requested messages that have not arrived.
    asked: u64,
    /// Delivered messages.
    count: u64,
    unacked: Unacked,
    /// The constant prefix of reply subjects, up to the delivery count.
    reply_prefix: Vec<u8>,
    /// Size of the last body.
    size: usize,
    /// No further pulls are sent.
    pub(super) ending: bool,
}

impl PullConsumer {
    /// A consumer that has requested nothing yet.
    pub(super) fn new(
        stream: &str,
        consumer: &str,
        inbox: String,
        acks: Acks,
        prefetch: u16,
    ) -> PullConsumer {
        PullConsumer {
            next: format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"),
            inbox,
            acks,
            count_max: if prefetch == 0 { COUNT_MAX } else { u64::from(prefetch) },
            asked: 0,
            count: 0,
            unacked: Unacked::default(),
            reply_prefix: Vec::new(),
            size: FIRST_BYTES,
            ending: false,
        }
    }

    /// Appends a pull request, if there is room for enough messages to be worth one.
    pub(super) fn pull(&mut self, out: &mut Vec<u8>) {
        let coming_max = self.count_max.min((PULL_BYTES / self.size.max(1)).max(1) as u64);
        let room = self.count_max.saturating_sub(self.asked + self.unacked.count());
        let room = room.min(coming_max.saturating_sub(self.asked));
        if self.ending || room == 0 || self.asked > 0 && room < coming_max.div_ceil(2) {
            return;
        }
        let body = format!("{{\"batch\":{room}}}");
        let (subject, reply) = (self.next.as_bytes(), self.inbox.as_bytes());
        Publish { subject, reply, body: body.as_bytes(), ..Publish::default() }.write(out);
        self.asked += room;
    }

    /// Takes a message.
    #[inline]
    pub(super) fn take(
        &mut self,
        receiver: &mut impl Receiver,
        message: &Message<'_>,
    ) -> Result<(), Error> {
        if let Some(status) = api::status(message).filter(|_| message.reply.is_empty()) {
            return self.note(status, message);
        }
        let redelivered = self.was_delivered(message.reply)?;
        self.count += 1;
        self.asked = self.asked.saturating_sub(1);
        self.size = message.body.len();
        if self.acks != Acks::None {
            self.unacked.push(message.reply);
        }
        let size = message.body.len() as u64;
        receiver.begin(Head { tag: self.count, redelivered, size });
        receiver.body(message.body);
        receiver.complete();
        Ok(())
    }

    /// Whether a delivery is a redelivery, according to its reply subject.
    #[inline]
    fn was_delivered(&mut self, reply: &[u8]) -> Result<bool, Error> {
        if let Some([b'1', b'.', ..]) = reply.strip_prefix(self.reply_prefix.as_slice())
            && !self.reply_prefix.is_empty()
            && reply.len() <= SUBJECT_BYTES_MAX
        {
            return Ok(false);
        }
        let found = (reply.len() <= SUBJECT_BYTES_MAX).then(|| deliveries(reply)).flatten();
        let (at, count) = found.ok_or_else(|| Error::invalid("a message without a stream"))?;
        self.reply_prefix = reply[..at].to_vec();
        Ok(count > 1)
    }

    fn note(&mut self, status: Status<'_>, message: &Message<'_>) -> Result<(), Error> {
        match status.code {
            // Idle heartbeat.
            100 => Ok(()),
            // A pull has ended this many messages short.
            404 | 408 => {
                let left = Headers::read(message.headers).get("Nats-Pending-Messages");
                let left = left.and_then(|left| std::str::from_utf8(&left).ok()?.parse().ok());
                self.asked = self.asked.saturating_sub(left.unwrap_or(self.asked));
                Ok(())
            }
            _ => Err(status.into_error()),
        }
    }

    /// Appends the acknowledgement of a delivery; with `multiple`, of all up to it.
    pub(super) fn acknowledge(&mut self, tag: u64, multiple: bool, out: &mut Vec<u8>) {
        let first = self.count + 1 - self.unacked.count();
        let count = if multiple || tag == first { (tag + 1).saturating_sub(first) } else { 0 };
        let count = count.min(self.unacked.count()) as usize;
        let (up_to, mut left) = (self.acks == Acks::UpTo, count);
        self.unacked.drain(count, |subject| {
            left -= 1;
            // One acknowledgement for all, or one for each.
            if !up_to || left == 0 {
                Publish { subject, body: b"+ACK", ..Publish::default() }.write(out);
            }
        });
    }
}

/// The offset and value of the delivery count in a reply subject: it follows the names of stream and
/// consumer, which follow those of domain and account, if there are any.
pub(super) fn deliveries(reply: &[u8]) -> Option<(usize, u64)> {
    let rest = reply.strip_prefix(b"$JS.ACK.")?;
    let names = match rest.split(|octet| *octet == b'.').count() {
        7 => 2,
        count if count >= 9 => 4,
        _ => return None,
    };
    let octets: usize =
        rest.split(|octet| *octet == b'.').take(names).map(|name| name.len() + 1).sum();
    let digits = rest[octets..].split(|octet| *octet == b'.').next()?;
    let count = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((reply.len() - rest.len() + octets, count))
}

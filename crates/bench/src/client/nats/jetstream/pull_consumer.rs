//! A pull consumer as its client sees it: what it asked for, what came, and what is to be acknowledged.
//! Knows no sockets.

use super::api::{self, Status};
use crate::client::{Acks, Error, Head, Receiver};
use angarium_protocol::nats::codec::{Headers, Message, Publish};
use std::collections::VecDeque;

/// Messages that are asked for where no limit on unacknowledged ones is given.
const COUNT_MAX: u64 = 1_000;
/// Octets of bodies that are asked for at most, as far as the messages before tell: a server cuts off
/// whose unread octets are too many.
const PULL_BYTES: usize = 4 << 20;
/// What bodies are taken for before the first has come.
const FIRST_BYTES: usize = 256 * 1024;
/// Octets of an acknowledgement's subject: names of a stream and of its consumer, and numbers.
const SUBJECT_BYTES_MAX: usize = 1_024;
/// Octets of acknowledgements that were sent, after which their room is used again.
const SENT_BYTES: usize = 64 * 1024;

/// Where the acknowledgements of deliveries go, in the order in which those came.
#[derive(Debug, Default)]
struct Unacked {
    octets: Vec<u8>,
    lengths: VecDeque<u16>,
    /// Octets at the beginning whose acknowledgements were sent.
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

    /// Takes the first `count`, and hands each to `each`.
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

/// What a pull consumer brings, and what is asked of it.
#[derive(Debug)]
pub(super) struct PullConsumer {
    /// Where requests go, and where their messages are to go.
    next: String,
    inbox: String,
    acks: Acks,
    /// Messages on their way and unacknowledged at most.
    count_max: u64,
    /// Messages that were asked for and have not come.
    asked: u64,
    /// Messages that came.
    count: u64,
    unacked: Unacked,
    /// What acknowledgements go to begins so, up to the number of deliveries.
    usual: Vec<u8>,
    /// Octets of the last body.
    size: usize,
    /// Nothing more is asked for.
    pub(super) ending: bool,
}

impl PullConsumer {
    /// Nothing was asked for yet.
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
            usual: Vec::new(),
            size: FIRST_BYTES,
            ending: false,
        }
    }

    /// Appends a request for more, where there is room for enough of them to be worth it.
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

    /// Takes one message.
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

    /// Whether a delivery is not the first of its message, as the subject of its acknowledgement says.
    #[inline]
    fn was_delivered(&mut self, reply: &[u8]) -> Result<bool, Error> {
        if let Some([b'1', b'.', ..]) = reply.strip_prefix(self.usual.as_slice())
            && !self.usual.is_empty()
            && reply.len() <= SUBJECT_BYTES_MAX
        {
            return Ok(false);
        }
        let found = (reply.len() <= SUBJECT_BYTES_MAX).then(|| deliveries(reply)).flatten();
        let (at, count) = found.ok_or_else(|| Error::nonsense("a message that is of no stream"))?;
        self.usual = reply[..at].to_vec();
        Ok(count > 1)
    }

    fn note(&mut self, status: Status<'_>, message: &Message<'_>) -> Result<(), Error> {
        match status.code {
            // Somebody is there.
            100 => Ok(()),
            // A request has ended, with so many messages fewer than it asked for.
            404 | 408 => {
                let left = Headers::read(message.headers).get("Nats-Pending-Messages");
                let left = left.and_then(|left| std::str::from_utf8(&left).ok()?.parse().ok());
                self.asked = self.asked.saturating_sub(left.unwrap_or(self.asked));
                Ok(())
            }
            _ => Err(status.into_error()),
        }
    }

    /// Appends the acknowledgement of a delivery, or of all up to it.
    pub(super) fn acknowledge(&mut self, tag: u64, multiple: bool, out: &mut Vec<u8>) {
        let first = self.count + 1 - self.unacked.count();
        let count = if multiple || tag == first { (tag + 1).saturating_sub(first) } else { 0 };
        let count = count.min(self.unacked.count()) as usize;
        let (up_to, mut left) = (self.acks == Acks::UpTo, count);
        self.unacked.drain(count, |subject| {
            left -= 1;
            // One for all, or one for each.
            if !up_to || left == 0 {
                Publish { subject, body: b"+ACK", ..Publish::default() }.write(out);
            }
        });
    }
}

/// How often a message was delivered, and where that stands in the subject of its acknowledgement:
/// behind the names of a stream and of its consumer, which stand behind those of a domain and of an
/// account where a server has them.
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

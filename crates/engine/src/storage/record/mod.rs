//! What the engine writes to the journal: one byte of version, one of kind, then the fields.
//!
//! A layout that was released is never changed; a better one is a new kind. The tests `golden_*` keep the
//! bytes of each.

mod options;

use crate::interface::limits::ANNOTATION_BYTES_MAX;
use crate::kept::{LogCursor, LogPart};
use crate::queue::entry::Entry;
use crate::queue::page;
use crate::selector::Filter;
use crate::storage::codec::{
    Codec, Malformed, Reader, Varint, Writer, codec_as, codec_enum, codec_fields,
};
use crate::{
    Arguments, Binding, BindingTarget, Bound, ExchangeOptions, ExchangeRules, PermissionListing,
    Policy, Position, QueueOptions, Quota, Responses, SessionExpiry, SlowConsumerPolicy,
    SubjectPermissions, SubjectRules, Time,
};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The version of every record so far.
pub(crate) const VERSION: u8 = 3;
/// Bytes by which a record may exceed its message, places not counted.
pub(crate) const EXTRA_BYTES_MAX: usize = 4096 + ANNOTATION_BYTES_MAX;
/// Bytes of one of a message's places.
pub(crate) const PLACE_BYTES: usize = 24;
/// Bounds that are there in every quota; those that came later only up to the last that says something.
const BOUNDS_ALWAYS: usize = 7;

/// Upper bound of the bytes of the records that put a message of that size into `places` places:
/// that of the message, and as much again for one that follows from it (a dead letter, a spooled
/// copy).
pub(crate) fn bytes_max(message_bytes: usize, places: usize) -> usize {
    (message_bytes + places * PLACE_BYTES + EXTRA_BYTES_MAX) * 2
}

/// Where in which queue a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) queue: u64,
    pub(crate) seq: u64,
    pub(crate) expires: Time,
}

/// How often a message went back to its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requeued {
    pub(crate) queue: u64,
    pub(crate) seq: u64,
    pub(crate) requeues: u32,
}

/// A binding as records name it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BindingRecord<'a> {
    pub(crate) vhost: &'a str,
    pub(crate) source: &'a str,
    pub(crate) target: BindingTarget,
    pub(crate) key: &'a str,
    pub(crate) arguments: Arguments,
    pub(crate) filter: Option<Filter>,
    pub(crate) not_from: Option<&'a str>,
}

impl<'a> BindingRecord<'a> {
    pub(crate) fn of(vhost: &'a str, binding: &'a Binding) -> BindingRecord<'a> {
        let Binding { source, target, key, arguments, filter, not_from } = binding;
        BindingRecord {
            vhost,
            source,
            target: target.clone(),
            key,
            arguments: arguments.clone(),
            filter: filter.clone(),
            not_from: not_from.as_deref(),
        }
    }
}

/// A delayed message as snapshots have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldRecord<'a> {
    pub(crate) number: u64,
    pub(crate) vhost: &'a str,
    pub(crate) due: Time,
    pub(crate) position: Position,
    pub(crate) bytes: u32,
    /// The user who published it; the empty name is nobody's.
    pub(crate) by: &'a str,
}

/// A retained message as snapshots have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetainedRecord<'a> {
    pub(crate) vhost: &'a str,
    pub(crate) subject: &'a str,
    pub(crate) number: u64,
    pub(crate) expires: Time,
    pub(crate) position: Position,
    pub(crate) bytes: u32,
    pub(crate) persistent: bool,
}

/// Numbers, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers(pub(crate) Vec<u64>);

/// A session that survives a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionRecord<'a> {
    pub(crate) number: u64,
    pub(crate) vhost: &'a str,
    pub(crate) name: &'a str,
    pub(crate) user: &'a str,
    pub(crate) expiry: SessionExpiry,
    /// `None`: it is held.
    pub(crate) detached_at: Option<Time>,
    pub(crate) state: &'a [u8],
    /// The number of its queue; 0: it has none.
    pub(crate) queue: u64,
    /// Attributes: key and value.
    pub(crate) attributes: Vec<(&'a [u8], &'a [u8])>,
    /// Numbers of publishes that are not taken again.
    pub(crate) received: Numbers,
    /// Places of its queue that were released and are still in use.
    pub(crate) released: Numbers,
    /// Numbers of the shared queues of which it is a member.
    pub(crate) shared: Numbers,
    /// What these have handed over, by its place: the number of the queue, and whether it returns.
    pub(crate) handed: Vec<(u64, u64, bool)>,
    /// Its will: the delay, whether it is to be retained, and the message.
    pub(crate) will: Option<(Duration, bool, &'a [u8])>,
    /// Where it is in logs, if messages wait for it there.
    pub(crate) cursor: Option<LogCursor>,
}

/// A durable named subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubscriptionRecord<'a> {
    pub(crate) owner: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) shared: bool,
    pub(crate) source: &'a str,
    pub(crate) keys: Vec<String>,
    pub(crate) filter: Option<Filter>,
    pub(crate) not_from: Option<&'a str>,
}

codec_enum! {
    /// A record, taken apart.
    #[derive(Clone, Debug, PartialEq)]
    enum Record<'a>, Kind, "record kind" {
        /// Fills up a group.
        0 Nothing,
        /// A message that durable queues took.
        1 Published { places: Vec<Place>; message },
        /// A message that was written only because memory was short.
        2 Spooled { ; message },
        /// These messages are gone from a queue.
        3 Settled { queue: u64, ranges: Vec<RangeInclusive<u64>> },
        /// All messages before a number are gone from a queue, except these, which were unsettled.
        4 Purged { queue: u64, before: u64, kept: Vec<RangeInclusive<u64>> },
        /// A run of a queue's index; it takes the place of an earlier one with the same numbers.
        5 Page { queue: u64, lane: u8, durable: bool, entries: Vec<Entry> },
        /// A message's new position.
        6 Moved { places: Vec<Place>; message },
        /// A message that is held back until it is due, and the user who published it.
        7 Delayed { number: u64, vhost: &'a str, due: Time, by: &'a str; message },
        /// It is not held back any more.
        8 DelayEnded { number: u64 },
        /// Messages went back to their queues.
        9 Requeued { messages: Vec<Requeued> },
        /// What consumers have added to a message, all of it.
        10 Annotated { queue: u64, seq: u64; changed },
        /// A message that durable queues took, and the number of its publish, which the session does not take
        /// again.
        11 PublishedOnce { session: u64, number: u64, places: Vec<Place>; message },
        /// Messages that are in no page of their lane, whatever numbers pages have.
        15 Apart { queue: u64, lane: u8, entries: Vec<Entry> },
        /// A durable queue, and the user who declared it; the empty name is nobody's.
        16 QueueDeclared {
            number: u64,
            vhost: &'a str,
            name: &'a str,
            options: QueueOptions,
            by: &'a str
        },
        /// It is gone, and its messages with it.
        17 QueueDeleted { number: u64 },
        /// A durable exchange, and the user who declared it.
        18 ExchangeDeclared {
            vhost: &'a str,
            name: &'a str,
            options: ExchangeOptions,
            by: &'a str
        },
        /// It is gone.
        19 ExchangeDeleted { vhost: &'a str, name: &'a str },
        /// A durable binding, and the user who bound.
        20 Bound { binding: BindingRecord<'a>, by: &'a str },
        /// It is gone.
        21 Unbound(binding: BindingRecord<'a>),
        /// A virtual host.
        22 VhostCreated { name: &'a str },
        /// It is gone, and all in it.
        23 VhostDeleted { name: &'a str },
        /// A user, new or changed.
        24 UserPut { name: &'a str, password_hash: &'a str, administrator: bool },
        /// It is gone, and its permissions.
        25 UserDeleted { name: &'a str },
        /// What a user may do.
        26 PermissionsSet(permissions: PermissionListing<'a>),
        /// It may do nothing there any more.
        27 PermissionsCleared { user: &'a str, vhost: &'a str },
        /// What it may do with subjects.
        28 SubjectPermissionsSet { user: &'a str, vhost: &'a str, subjects: SubjectPermissions },
        /// What it may use.
        29 QuotaSet { user: &'a str, quota: Quota },
        /// A session, new or changed; it takes the place of an earlier one with the same number or name.
        30 SessionPut(session: SessionRecord<'a>),
        /// It has no holder any more.
        31 SessionDetached { number: u64, at: Time, expiry: SessionExpiry },
        /// It is gone.
        32 SessionEnded { number: u64 },
        /// What all in a virtual host may use together.
        33 VhostQuotaSet { vhost: &'a str, quota: Quota },
        /// What a user may do with the routing keys of an exchange.
        34 ExchangeRulesSet { user: &'a str, vhost: &'a str, exchange: &'a str, rules: ExchangeRules },
        /// A session that is held has changed: what it has from now on.
        35 SessionChanged {
            number: u64,
            expiry: SessionExpiry,
            state: Option<&'a [u8]>,
            put: Vec<(&'a [u8], &'a [u8])>,
            removed: Vec<&'a [u8]>
        },
        /// A queue is a durable named subscription.
        36 Subscribed { queue: u64, subscription: SubscriptionRecord<'a> },
        /// A publish with that number, which no durable queue took, is not taken again by a session.
        37 Received { session: u64, number: u64 },
        /// It may be taken again.
        38 ReceivedForgotten { session: u64, number: u64 },
        /// A message of a session's queue is settled, and its place stays in use.
        39 Released { session: u64, queue: u64, place: u64 },
        /// It does not any more.
        40 ReleasedForgotten { session: u64, place: u64 },
        /// The will of a session: how long after its detach it is published, and the message.
        41 WillSet { session: u64, delay: Duration, retain: bool; message },
        /// It was published, or is not to be.
        42 WillGone { session: u64 },
        /// The retained message of a subject, which is its routing key, in place of an earlier one.
        43 Retained { vhost: &'a str, number: u64, expires: Time; message },
        /// It is gone. The number is higher than its own.
        44 RetainedGone { vhost: &'a str, subject: &'a str, number: u64 },
        /// A queue is shared by sessions, which are a group of that name.
        60 SharedQueue { queue: u64, group: &'a str },
        /// A session is a member of a shared queue.
        61 SharedJoined { session: u64, queue: u64 },
        /// It is no longer.
        62 SharedLeft { session: u64, queue: u64 },
        /// A message has left a queue for another one. To a session's own queue it is handed over: `returns`
        /// says whether it goes to another member if the session ends. Session 0: back to a shared queue.
        63 HandedOver {
            queue: u64,
            seq: u64,
            session: u64,
            returns: bool,
            to: u64,
            entries: Vec<Entry>
        },
        /// Where a session is in logs from now on; `None`: in none.
        70 CursorSet { session: u64, cursor: Option<LogCursor> },
        /// A session has come that far in its logs, and these messages of them are in its queue.
        71 Drained { session: u64, at: u64, queue: u64, entries: Vec<Entry> },
        /// Messages of a log before a number are gone, no page in part.
        72 Trimmed { log: u64, before: u64 },
        /// A policy, new or changed; `operator`: it is one of the operator's.
        80 PolicySet { vhost: &'a str, operator: bool, name: &'a str, policy: Policy },
        /// It is gone.
        81 PolicyCleared { vhost: &'a str, operator: bool, name: &'a str },
    }
}

codec_fields!(<'a> Place: queue, seq, expires);
codec_fields!(<'a> BindingRecord<'a>: vhost, source, target, key, arguments, filter, not_from);
codec_fields!(<'a> HeldRecord<'a>: number, vhost, due, position, bytes, by);
codec_fields!(<'a> RetainedRecord<'a>: vhost, subject, number, expires, position, bytes,
    persistent);
codec_fields!(<'a> PermissionListing<'a>: user, vhost, configure, write, read);
codec_fields!(<'a> SubjectRules: allow, deny);
codec_fields!(<'a> Policy: pattern, applies_to, priority, definition);
codec_fields!(<'a> Responses: messages, within);
codec_fields!(<'a> ExchangeRules: publish, subscribe);
codec_fields!(<'a> SubjectPermissions: publish, subscribe, responses);
codec_fields!(<'a> SessionRecord<'a>: number, vhost, name, user, expiry, detached_at, state, queue,
    attributes, received, released, shared, handed, will, cursor);
codec_fields!(<'a> LogCursor: at, parts);
codec_as!(LogPart as (u64, u64, u64):
    |part| (part.log, part.from, part.until),
    |(log, from, until)| Ok(LogPart { log, from, until, dropped: 0 }));
codec_fields!(<'a> SubscriptionRecord<'a>: owner, name, shared, source, keys, filter, not_from);
codec_as!(Requeued as (Varint, Varint, u32):
    |message| (Varint(message.queue), Varint(message.seq), message.requeues),
    |(Varint(queue), Varint(seq), requeues)| Ok(Requeued { queue, seq, requeues }));

codec_as!(Numbers as Vec<Varint>:
    |numbers| numbers.0.iter().copied().map(Varint).collect(),
    |numbers| Ok(Numbers(numbers.into_iter().map(|Varint(number)| number).collect())));

/// As the difference of each entry to the one before it.
impl Codec<'_> for Vec<Entry> {
    fn encode(&self, writer: &mut Writer<'_>) {
        page::write_entries(writer, self);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Vec<Entry>, Malformed> {
        page::read_entries(reader)
    }
}

impl Codec<'_> for BindingTarget {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            BindingTarget::Queue(name) => (0_u8, name.as_str()).encode(writer),
            BindingTarget::Exchange(name) => (1_u8, name.as_str()).encode(writer),
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<BindingTarget, Malformed> {
        match reader.get()? {
            (0_u8, name) => Ok(BindingTarget::Queue(name)),
            (1, name) => Ok(BindingTarget::Exchange(name)),
            (other, _) => Err(format!("binding target {other} is unknown")),
        }
    }
}

impl Codec<'_> for SessionExpiry {
    fn encode(&self, writer: &mut Writer<'_>) {
        match *self {
            SessionExpiry::AtDetach => writer.u8(0),
            SessionExpiry::After(duration) => (1_u8, duration).encode(writer),
            SessionExpiry::Never => writer.u8(2),
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<SessionExpiry, Malformed> {
        match reader.u8()? {
            0 => Ok(SessionExpiry::AtDetach),
            1 => reader.get().map(SessionExpiry::After),
            2 => Ok(SessionExpiry::Never),
            other => Err(format!("session expiry {other} is unknown")),
        }
    }
}

impl Codec<'_> for Quota {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u8(self.slow_consumer_policy.map_or(0, |policy| policy as u8 + 1));
        let last = Bound::NAMES.iter().rposition(|(bound, _)| self.get(*bound).is_some());
        let count = last.map_or(0, |at| at + 1).max(BOUNDS_ALWAYS);
        writer.list(Bound::NAMES.iter().take(count), |(bound, _)| self.get(*bound));
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Quota, Malformed> {
        let mut quota = Quota::default();
        let policy = reader.u8()?;
        if let Some(at) = policy.checked_sub(1) {
            let named = SlowConsumerPolicy::NAMES.get(usize::from(at));
            let (named, _) =
                named.ok_or_else(|| format!("there is no slow consumer policy {policy}"))?;
            quota.slow_consumer_policy = Some(*named);
        }
        for at in 0..reader.count()? {
            let (bound, _) =
                Bound::NAMES.get(at).ok_or_else(|| format!("a quota has no bound {at}"))?;
            quota.set(*bound, reader.get()?);
        }
        Ok(quota)
    }
}

/// Starts a record of that kind.
pub(crate) fn start(out: &mut Vec<u8>, kind: Kind) -> Writer<'_> {
    out.clear();
    out.extend_from_slice(&[VERSION, kind as u8]);
    Writer(out)
}

/// A record's bytes behind its version.
fn versioned(record: &[u8]) -> Result<Reader<'_>, Malformed> {
    let mut reader = Reader(record);
    match reader.u8()? {
        VERSION => Ok(reader),
        version => Err(format!("record version {version} is unknown")),
    }
}

/// Just the message of a record that has one.
pub(crate) fn message_of(record: &[u8]) -> Result<&[u8], Malformed> {
    let mut reader = versioned(record)?;
    let kind = reader.u8()?;
    if kind == Kind::Published as u8 || kind == Kind::Moved as u8 {
        let places = reader.count()?;
        reader.take(places.saturating_mul(PLACE_BYTES))?;
    } else if kind == Kind::PublishedOnce as u8 {
        reader.get::<(u64, u64)>()?;
        let places = reader.count()?;
        reader.take(places.saturating_mul(PLACE_BYTES))?;
    } else if kind == Kind::Delayed as u8 {
        reader.get::<(u64, &str, Time)>()?;
        reader.text()?;
    } else if kind == Kind::Retained as u8 {
        reader.get::<(&str, u64, Time)>()?;
    } else if kind != Kind::Spooled as u8 {
        return Err(format!("a record of kind {kind} has no message"));
    }
    Ok(reader.0)
}

impl<'a> Record<'a> {
    /// Takes a record apart.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Record<'a>, Malformed> {
        versioned(bytes)?.whole()
    }

    /// The number of the session that a record says something about.
    pub(crate) fn session(&self) -> Option<u64> {
        match *self {
            Record::SessionChanged { number, .. }
            | Record::SessionDetached { number, .. }
            | Record::SessionEnded { number } => Some(number),
            Record::Received { session, .. }
            | Record::ReceivedForgotten { session, .. }
            | Record::Released { session, .. }
            | Record::ReleasedForgotten { session, .. }
            | Record::WillSet { session, .. }
            | Record::WillGone { session }
            | Record::SharedJoined { session, .. }
            | Record::SharedLeft { session, .. }
            | Record::CursorSet { session, .. }
            | Record::Drained { session, .. } => Some(session),
            _ => None,
        }
    }

    /// Writes the record over what `out` held.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        out.push(VERSION);
        self.encode(&mut Writer(out));
    }
}

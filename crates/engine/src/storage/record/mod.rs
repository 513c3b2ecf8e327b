//! What the engine writes to the journal: one byte of version, one of kind, then the fields.
//!
//! A layout that was released is never changed; a better one is a new kind. `tests::golden` keeps
//! the bytes of each.

mod access;
mod session;
mod values;

pub(crate) use self::access::{read_quota, read_subjects, write_quota, write_subjects};
pub(crate) use self::session::{
    SessionRecord, read_expiry, read_session, write_expiry, write_session,
};
use self::values::{read_arguments, write_arguments};
use crate::queue::page::{self, PageEntry};
use crate::storage::codec::{Malformed, Reader, Writer};
use crate::{
    Arguments, BindingTarget, EXCHANGE_OPTIONS, ExchangeKind, ExchangeOptions, QUEUE_OPTIONS,
    QueueOptions, Quota, SessionExpiry, SubjectPermissions, Time,
};

/// The version of every record so far.
pub(crate) const VERSION: u8 = 2;
/// Bytes by which a record may exceed its message, places not counted.
pub(crate) const EXTRA_BYTES_MAX: usize = 4096;
/// Bytes of one of a message's places.
pub(crate) const PLACE_BYTES: usize = 24;

/// Upper bound of the bytes of the records that put a message of that size into `places` places:
/// that of the message, and as much again for one that follows from it (a dead letter, a spooled
/// copy).
pub(crate) fn bytes_max(message_bytes: usize, places: usize) -> usize {
    (message_bytes + places * PLACE_BYTES + EXTRA_BYTES_MAX) * 2
}

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Nothing = 0,
    Published = 1,
    Spooled = 2,
    Settled = 3,
    Purged = 4,
    Page = 5,
    Moved = 6,
    Delayed = 7,
    DelayEnded = 8,
    Requeued = 9,
    QueueDeclared = 16,
    QueueDeleted = 17,
    ExchangeDeclared = 18,
    ExchangeDeleted = 19,
    Bound = 20,
    Unbound = 21,
    VhostCreated = 22,
    VhostDeleted = 23,
    UserPut = 24,
    UserDeleted = 25,
    PermissionsSet = 26,
    PermissionsCleared = 27,
    SubjectPermissionsSet = 28,
    QuotaSet = 29,
    SessionPut = 30,
    SessionDetached = 31,
    SessionEnded = 32,
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
}

/// A record, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record<'a> {
    /// Fills up a group.
    Nothing,
    /// A message that durable queues took.
    Published { places: Vec<Place>, message: &'a [u8] },
    /// A message that was written only because memory was short.
    Spooled { message: &'a [u8] },
    /// These messages, given by first and last number, are gone from a queue.
    Settled { queue: u64, ranges: Vec<(u64, u64)> },
    /// All messages before a number are gone from a queue, except these, which were unsettled.
    Purged { queue: u64, before: u64, kept: Vec<u64> },
    /// A run of a queue's index; it takes the place of an earlier one with the same numbers.
    Page { queue: u64, lane: u8, durable: bool, entries: Vec<PageEntry> },
    /// A message's new position.
    Moved { places: Vec<Place>, message: &'a [u8] },
    /// A message that is held back until it is due.
    Delayed { number: u64, vhost: &'a str, due: Time, message: &'a [u8] },
    /// It is held back no longer.
    DelayEnded { number: u64 },
    /// Messages went back to their queues.
    Requeued { messages: Vec<Requeued> },
    /// A durable queue.
    QueueDeclared { number: u64, vhost: &'a str, name: &'a str, options: QueueOptions },
    /// It is gone, and its messages with it.
    QueueDeleted { number: u64 },
    /// A durable exchange.
    ExchangeDeclared { vhost: &'a str, name: &'a str, options: ExchangeOptions },
    /// It is gone.
    ExchangeDeleted { vhost: &'a str, name: &'a str },
    /// A durable binding.
    Bound(BindingRecord<'a>),
    /// It is gone.
    Unbound(BindingRecord<'a>),
    /// A virtual host.
    VhostCreated { name: &'a str },
    /// It is gone, and all in it.
    VhostDeleted { name: &'a str },
    /// A user, new or changed.
    UserPut { name: &'a str, password_hash: &'a str, administrator: bool },
    /// It is gone, and its permissions.
    UserDeleted { name: &'a str },
    /// What a user may do.
    PermissionsSet {
        user: &'a str,
        vhost: &'a str,
        configure: &'a str,
        write: &'a str,
        read: &'a str,
    },
    /// It may no longer.
    PermissionsCleared { user: &'a str, vhost: &'a str },
    /// What it may do with subjects.
    SubjectPermissionsSet { user: &'a str, vhost: &'a str, subjects: SubjectPermissions },
    /// What it may use.
    QuotaSet { user: &'a str, quota: Quota },
    /// A session, new or changed; it takes the place of an earlier one with the same number or name.
    SessionPut(SessionRecord<'a>),
    /// It has no holder any more.
    SessionDetached { number: u64, at: Time, expiry: SessionExpiry },
    /// It is gone.
    SessionEnded { number: u64 },
}

/// Starts a record of that kind.
pub(crate) fn start(out: &mut Vec<u8>, kind: Kind) -> Writer<'_> {
    out.clear();
    out.extend_from_slice(&[VERSION, kind as u8]);
    Writer(out)
}

/// What comes before the message in a record that places it in queues.
pub(crate) fn write_places(writer: &mut Writer<'_>, places: &[Place]) {
    writer.varint(places.len() as u64);
    for place in places {
        write_place(writer, *place);
    }
}

/// One of the places that [`write_places`] counts.
#[inline]
pub(crate) fn write_place(writer: &mut Writer<'_>, place: Place) {
    writer.u64(place.queue);
    writer.u64(place.seq);
    writer.u64(place.expires.0);
}

fn read_places(reader: &mut Reader<'_>) -> Result<Vec<Place>, Malformed> {
    let mut places = Vec::new();
    for _ in 0..reader.count()? {
        let (queue, seq, expires) = (reader.u64()?, reader.u64()?, Time(reader.u64()?));
        places.push(Place { queue, seq, expires });
    }
    Ok(places)
}

fn write_requeued(writer: &mut Writer<'_>, messages: &[Requeued]) {
    writer.varint(messages.len() as u64);
    for message in messages {
        writer.varint(message.queue);
        writer.varint(message.seq);
        writer.u32(message.requeues);
    }
}

fn read_requeued(reader: &mut Reader<'_>) -> Result<Vec<Requeued>, Malformed> {
    let mut messages = Vec::new();
    for _ in 0..reader.count()? {
        let (queue, seq, requeues) = (reader.varint()?, reader.varint()?, reader.u32()?);
        messages.push(Requeued { queue, seq, requeues });
    }
    Ok(messages)
}

/// Just the message of a record that has one.
pub(crate) fn message_of(record: &[u8]) -> Result<&[u8], Malformed> {
    let mut reader = Reader(record);
    let (version, kind) = (reader.u8()?, reader.u8()?);
    if version != VERSION {
        return Err(format!("record version {version} is unknown"));
    }
    if kind == Kind::Published as u8 || kind == Kind::Moved as u8 {
        let places = reader.count()?;
        reader.take(places.saturating_mul(PLACE_BYTES))?;
    } else if kind == Kind::Delayed as u8 {
        reader.u64()?;
        reader.text()?;
        reader.u64()?;
    } else if kind != Kind::Spooled as u8 {
        return Err(format!("a record of kind {kind} has no message"));
    }
    Ok(reader.0)
}

impl<'a> Record<'a> {
    /// Takes a record apart.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Record<'a>, Malformed> {
        let mut reader = Reader(bytes);
        let version = reader.u8()?;
        if version != VERSION {
            return Err(format!("record version {version} is unknown"));
        }
        let kind = reader.u8()?;
        let record = match kind {
            1 => {
                return Ok(Record::Published {
                    places: read_places(&mut reader)?,
                    message: reader.0,
                });
            }
            2 => return Ok(Record::Spooled { message: reader.0 }),
            6 => return Ok(Record::Moved { places: read_places(&mut reader)?, message: reader.0 }),
            7 => {
                let (number, vhost) = (reader.u64()?, reader.text()?);
                let due = Time(reader.u64()?);
                return Ok(Record::Delayed { number, vhost, due, message: reader.0 });
            }
            0 | 3 | 4 | 5 | 8 | 9 => Record::parse_messages(kind, &mut reader)?,
            _ => Record::parse_topology(kind, &mut reader)?,
        };
        reader.end()?;
        Ok(record)
    }

    fn parse_messages(kind: u8, reader: &mut Reader<'a>) -> Result<Record<'a>, Malformed> {
        Ok(match kind {
            0 => Record::Nothing,
            3 => {
                let queue = reader.u64()?;
                let mut ranges = Vec::new();
                for _ in 0..reader.count()? {
                    let first = reader.varint()?;
                    let more = reader.varint()?;
                    let last = first.checked_add(more).ok_or("a range beyond 64 bits")?;
                    ranges.push((first, last));
                }
                Record::Settled { queue, ranges }
            }
            4 => {
                let (queue, before) = (reader.u64()?, reader.u64()?);
                let mut kept = Vec::new();
                for _ in 0..reader.count()? {
                    kept.push(reader.varint()?);
                }
                Record::Purged { queue, before, kept }
            }
            5 => {
                let (queue, lane, durable) = (reader.u64()?, reader.u8()?, reader.bool()?);
                Record::Page { queue, lane, durable, entries: page::read_entries(reader)? }
            }
            8 => Record::DelayEnded { number: reader.u64()? },
            _ => Record::Requeued { messages: read_requeued(reader)? },
        })
    }

    fn parse_topology(kind: u8, reader: &mut Reader<'a>) -> Result<Record<'a>, Malformed> {
        Ok(match kind {
            16 => Record::QueueDeclared {
                number: reader.u64()?,
                vhost: reader.text()?,
                name: reader.text()?,
                options: read_queue_options(reader)?,
            },
            17 => Record::QueueDeleted { number: reader.u64()? },
            18 => Record::ExchangeDeclared {
                vhost: reader.text()?,
                name: reader.text()?,
                options: read_exchange_options(reader)?,
            },
            19 => Record::ExchangeDeleted { vhost: reader.text()?, name: reader.text()? },
            20 => Record::Bound(read_binding(reader)?),
            21 => Record::Unbound(read_binding(reader)?),
            22 => Record::VhostCreated { name: reader.text()? },
            23 => Record::VhostDeleted { name: reader.text()? },
            24 => Record::UserPut {
                name: reader.text()?,
                password_hash: reader.text()?,
                administrator: reader.bool()?,
            },
            25 => Record::UserDeleted { name: reader.text()? },
            26 => Record::PermissionsSet {
                user: reader.text()?,
                vhost: reader.text()?,
                configure: reader.text()?,
                write: reader.text()?,
                read: reader.text()?,
            },
            27 => Record::PermissionsCleared { user: reader.text()?, vhost: reader.text()? },
            28 => Record::SubjectPermissionsSet {
                user: reader.text()?,
                vhost: reader.text()?,
                subjects: read_subjects(reader)?,
            },
            29 => Record::QuotaSet { user: reader.text()?, quota: read_quota(reader)? },
            30 => Record::SessionPut(read_session(reader)?),
            31 => Record::SessionDetached {
                number: reader.u64()?,
                at: Time(reader.u64()?),
                expiry: read_expiry(reader)?,
            },
            32 => Record::SessionEnded { number: reader.u64()? },
            other => return Err(format!("record kind {other} is unknown")),
        })
    }
}

impl Record<'_> {
    /// Writes the record over what `out` held.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut writer = start(out, self.kind());
        match self {
            Record::Nothing => {}
            Record::Published { places, message } | Record::Moved { places, message } => {
                write_places(&mut writer, places);
                writer.0.extend_from_slice(message);
            }
            Record::Spooled { message } => writer.0.extend_from_slice(message),
            Record::Settled { queue, ranges } => {
                writer.u64(*queue);
                writer.varint(ranges.len() as u64);
                for (first, last) in ranges {
                    writer.varint(*first);
                    writer.varint(last - first);
                }
            }
            Record::Purged { queue, before, kept } => {
                writer.u64(*queue);
                writer.u64(*before);
                writer.varint(kept.len() as u64);
                for seq in kept {
                    writer.varint(*seq);
                }
            }
            Record::Page { queue, lane, durable, entries } => {
                writer.u64(*queue);
                writer.u8(*lane);
                writer.bool(*durable);
                page::write_entries(&mut writer, entries);
            }
            Record::Delayed { number, vhost, due, message } => {
                writer.u64(*number);
                writer.text(vhost);
                writer.u64(due.0);
                writer.0.extend_from_slice(message);
            }
            Record::Requeued { messages } => write_requeued(&mut writer, messages),
            Record::DelayEnded { number }
            | Record::QueueDeleted { number }
            | Record::SessionEnded { number } => writer.u64(*number),
            _ => self.write_topology(&mut writer),
        }
    }

    fn write_topology(&self, writer: &mut Writer<'_>) {
        match self {
            Record::QueueDeclared { number, vhost, name, options } => {
                writer.u64(*number);
                writer.text(vhost);
                writer.text(name);
                write_queue_options(writer, options);
            }
            Record::ExchangeDeclared { vhost, name, options } => {
                writer.text(vhost);
                writer.text(name);
                write_exchange_options(writer, options);
            }
            Record::ExchangeDeleted { vhost, name } => {
                writer.text(vhost);
                writer.text(name);
            }
            Record::Bound(binding) | Record::Unbound(binding) => write_binding(writer, binding),
            Record::VhostCreated { name }
            | Record::VhostDeleted { name }
            | Record::UserDeleted { name } => writer.text(name),
            Record::UserPut { name, password_hash, administrator } => {
                writer.text(name);
                writer.text(password_hash);
                writer.bool(*administrator);
            }
            Record::PermissionsSet { user, vhost, configure, write, read } => {
                for text in [user, vhost, configure, write, read] {
                    writer.text(text);
                }
            }
            Record::PermissionsCleared { user, vhost } => {
                writer.text(user);
                writer.text(vhost);
            }
            Record::SubjectPermissionsSet { user, vhost, subjects } => {
                writer.text(user);
                writer.text(vhost);
                write_subjects(writer, subjects);
            }
            Record::QuotaSet { user, quota } => {
                writer.text(user);
                write_quota(writer, quota);
            }
            Record::SessionPut(session) => write_session(writer, session),
            Record::SessionDetached { number, at, expiry } => {
                writer.u64(*number);
                writer.u64(at.0);
                write_expiry(writer, *expiry);
            }
            _ => unreachable!("records about messages are written by `write`"),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Record::Nothing => Kind::Nothing,
            Record::Published { .. } => Kind::Published,
            Record::Spooled { .. } => Kind::Spooled,
            Record::Settled { .. } => Kind::Settled,
            Record::Purged { .. } => Kind::Purged,
            Record::Page { .. } => Kind::Page,
            Record::Moved { .. } => Kind::Moved,
            Record::Delayed { .. } => Kind::Delayed,
            Record::DelayEnded { .. } => Kind::DelayEnded,
            Record::Requeued { .. } => Kind::Requeued,
            Record::QueueDeclared { .. } => Kind::QueueDeclared,
            Record::QueueDeleted { .. } => Kind::QueueDeleted,
            Record::ExchangeDeclared { .. } => Kind::ExchangeDeclared,
            Record::ExchangeDeleted { .. } => Kind::ExchangeDeleted,
            Record::Bound(_) => Kind::Bound,
            Record::Unbound(_) => Kind::Unbound,
            Record::VhostCreated { .. } => Kind::VhostCreated,
            Record::VhostDeleted { .. } => Kind::VhostDeleted,
            Record::UserPut { .. } => Kind::UserPut,
            Record::UserDeleted { .. } => Kind::UserDeleted,
            Record::PermissionsSet { .. } => Kind::PermissionsSet,
            Record::PermissionsCleared { .. } => Kind::PermissionsCleared,
            Record::SubjectPermissionsSet { .. } => Kind::SubjectPermissionsSet,
            Record::QuotaSet { .. } => Kind::QuotaSet,
            Record::SessionPut(_) => Kind::SessionPut,
            Record::SessionDetached { .. } => Kind::SessionDetached,
            Record::SessionEnded { .. } => Kind::SessionEnded,
        }
    }
}

/// Appends a queue's options. `exclusive` is not among them: what is exclusive is never recorded.
pub(crate) fn write_queue_options(writer: &mut Writer<'_>, options: &QueueOptions) {
    writer.bool(options.durable);
    writer.bool(options.auto_delete);
    values::write_options(writer, QUEUE_OPTIONS, options);
    write_arguments(writer, &options.other);
}

/// Reads what [`write_queue_options`] wrote.
pub(crate) fn read_queue_options(reader: &mut Reader<'_>) -> Result<QueueOptions, Malformed> {
    let (durable, auto_delete) = (reader.bool()?, reader.bool()?);
    let mut options = QueueOptions { durable, auto_delete, ..QueueOptions::default() };
    values::read_options(reader, QUEUE_OPTIONS, &mut options)?;
    options.other = read_arguments(reader)?;
    Ok(options)
}

/// Appends an exchange's options.
pub(crate) fn write_exchange_options(writer: &mut Writer<'_>, options: &ExchangeOptions) {
    writer.u8(options.kind.number());
    writer.bool(options.delaying);
    writer.bool(options.durable);
    writer.bool(options.auto_delete);
    writer.bool(options.internal);
    values::write_options(writer, EXCHANGE_OPTIONS, options);
}

/// Reads what [`write_exchange_options`] wrote.
pub(crate) fn read_exchange_options(reader: &mut Reader<'_>) -> Result<ExchangeOptions, Malformed> {
    let kind = reader.u8()?;
    let mut options = ExchangeOptions {
        kind: ExchangeKind::numbered(kind)
            .ok_or_else(|| format!("exchange kind {kind} is unknown"))?,
        delaying: reader.bool()?,
        durable: reader.bool()?,
        auto_delete: reader.bool()?,
        internal: reader.bool()?,
        alternate: None,
    };
    values::read_options(reader, EXCHANGE_OPTIONS, &mut options)?;
    Ok(options)
}

/// Appends a binding.
pub(crate) fn write_binding(writer: &mut Writer<'_>, binding: &BindingRecord<'_>) {
    writer.text(binding.vhost);
    writer.text(binding.source);
    let (kind, name) = match &binding.target {
        BindingTarget::Queue(name) => (0, name),
        BindingTarget::Exchange(name) => (1, name),
    };
    writer.u8(kind);
    writer.text(name);
    writer.text(binding.key);
    write_arguments(writer, &binding.arguments);
}

/// Reads what [`write_binding`] wrote.
pub(crate) fn read_binding<'a>(reader: &mut Reader<'a>) -> Result<BindingRecord<'a>, Malformed> {
    let (vhost, source) = (reader.text()?, reader.text()?);
    let target = match (reader.u8()?, reader.text()?.to_owned()) {
        (0, name) => BindingTarget::Queue(name),
        (1, name) => BindingTarget::Exchange(name),
        (other, _) => return Err(format!("binding target {other} is unknown")),
    };
    let key = reader.text()?;
    let arguments = read_arguments(reader)?;
    Ok(BindingRecord { vhost, source, target, key, arguments })
}

//! The bytes of shard messages: each is written and read by the one list of its fields.

use crate::connection::key::ConnectionKey;
use crate::flow::publisher_stall::Pace;
use angarium_engine::{
    CancelReason, ChannelId, Confirm, ConnectionId, Grant, Outcome, PublishRefusal, RefusalKind,
    Return, Revocation, SessionLoss, Settle, TransactionId,
};

/// Bytes before each message: how many follow.
const LENGTH_BYTES: usize = 4;
/// Bytes before the properties of a message of a batch: its length and kind, and their length.
const BATCH_ITEM_HEAD_BYTES: usize = LENGTH_BYTES + 1 + 4;
/// The kind of shard message that a message of a batch is.
const BATCH_ITEM: u8 = 0;

/// A part of a shard message.
pub(super) trait Field<'a>: Copy {
    /// Appends it.
    fn put(self, out: &mut Vec<u8>);
    /// Takes it off the bytes that begin with it.
    fn take(bytes: &mut &'a [u8]) -> Option<Self>;
}

/// Defines an enum of messages: a number for each kind, and its fields in the order of their bytes. A field
/// of plain bytes takes all that is left, and comes last.
macro_rules! messages {
    ($(#[$about:meta])* enum $name:ident<$a:lifetime> { $(
        $(#[$doc:meta])* $kind:literal $variant:ident $({ $($field:ident: $type:ty),* })?,
    )* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name<$a> { $( $(#[$doc])* $variant $({ $($field: $type),* })?, )* }

        impl<$a> Field<$a> for $name<$a> {
            #[inline(always)]
            fn put(self, out: &mut Vec<u8>) {
                match self { $(
                    $name::$variant $({ $($field),* })? => {
                        out.push($kind);
                        $($( $field.put(out); )*)?
                    }
                )* }
            }

            #[inline]
            fn take(bytes: &mut &$a [u8]) -> Option<Self> {
                Some(match u8::take(bytes)? {
                    $( $kind => $name::$variant $({ $($field: Field::take(bytes)?),* })?, )*
                    _ => return None,
                })
            }
        }
    };
}
pub(super) use messages;

macro_rules! numbers {
    ($($type:ident)*) => { $(
        impl<'a> Field<'a> for $type {
            #[inline]
            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn take(bytes: &mut &'a [u8]) -> Option<Self> {
                let (own, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some($type::from_le_bytes(*own))
            }
        }
    )* };
}
numbers!(u8 u16 u32 u64);

macro_rules! structs {
    ($($type:ident { $($field:tt),* })*) => { $(
        impl<'a> Field<'a> for $type {
            #[inline]
            fn put(self, out: &mut Vec<u8>) {
                $( self.$field.put(out); )*
            }

            #[inline]
            fn take(bytes: &mut &'a [u8]) -> Option<Self> {
                Some($type { $($field: Field::take(bytes)?),* })
            }
        }
    )* };
}
pub(super) use structs;

structs! {
    ConnectionId { 0 }
    ConnectionKey { id, serial }
    ChannelId { connection, number }
    TransactionId { 0 }
    Settle { first, last, must_exist, outcome, transaction }
    Return { failed, elsewhere }
    Grant { up_to, drain }
}

macro_rules! plain_enums {
    ($($type:ident { $($variant:ident),* })*) => { $(
        impl<'a> Field<'a> for $type {
            fn put(self, out: &mut Vec<u8>) {
                out.push(self as u8);
            }

            fn take(bytes: &mut &'a [u8]) -> Option<Self> {
                let number = u8::take(bytes)?;
                [$($type::$variant),*].into_iter().find(|known| *known as u8 == number)
            }
        }
    )* };
}
macro_rules! borrowing_structs {
    ($($type:ident { $($field:ident),* })*) => { $(
        impl<'a> Field<'a> for $type<'a> {
            #[inline]
            fn put(self, out: &mut Vec<u8>) {
                $( self.$field.put(out); )*
            }

            #[inline]
            fn take(bytes: &mut &'a [u8]) -> Option<Self> {
                Some($type { $($field: Field::take(bytes)?),* })
            }
        }
    )* };
}

borrowing_structs! {
    Confirm { number, multiple, refused }
    PublishRefusal { kind, text }
}

plain_enums! {
    RefusalKind {
        NotFound, PreconditionFailed, AccessRefused, ResourceLocked, NotAllowed, LimitExceeded,
        NotImplemented, Unroutable, MemoryShort, StorageUnavailable, Internal
    }
    Pace { Drained, Slow, TooSlow }
    CancelReason { QueueDeleted, QueueFailed, Forbidden, TakenOver }
    SessionLoss { TakenOver, Ended }
}

impl<'a> Field<'a> for Outcome {
    fn put(self, out: &mut Vec<u8>) {
        match self {
            Outcome::Accept => out.push(0),
            Outcome::Discard => out.push(1),
            Outcome::Return(how) => {
                out.push(2);
                how.put(out);
            }
        }
    }

    fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        Some(match u8::take(bytes)? {
            0 => Outcome::Accept,
            1 => Outcome::Discard,
            2 => Outcome::Return(Field::take(bytes)?),
            _ => return None,
        })
    }
}

impl<'a> Field<'a> for bool {
    fn put(self, out: &mut Vec<u8>) {
        out.push(u8::from(self));
    }

    fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        Some(u8::take(bytes)? != 0)
    }
}

impl<'a, T: Field<'a>> Field<'a> for Option<T> {
    fn put(self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.into_iter().for_each(|value| value.put(out));
    }

    fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        if bool::take(bytes)? { T::take(bytes).map(Some) } else { Some(None) }
    }
}

/// All that is left.
impl<'a> Field<'a> for &'a [u8] {
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    #[inline]
    fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        Some(std::mem::take(bytes))
    }
}

/// Bytes with their length before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measured<'a>(pub(crate) &'a [u8]);

impl<'a> Field<'a> for Measured<'a> {
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&length(self.0.len()));
        out.extend_from_slice(self.0);
    }

    #[inline]
    fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        let length = u32::take(bytes)? as usize;
        let (own, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(Measured(own))
    }
}

impl<'a> Field<'a> for &'a str {
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        Measured(self.as_bytes()).put(out);
    }

    #[inline]
    fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        str::from_utf8(Measured::take(bytes)?.0).ok()
    }
}

impl<'a> Field<'a> for Revocation<&'a str> {
    fn put(self, out: &mut Vec<u8>) {
        let (kind, name, vhost) = match self {
            Revocation::User(name) => (0, name, ""),
            Revocation::Vhost(name) => (1, name, ""),
            Revocation::Password(name) => (2, name, ""),
            Revocation::Permissions { user, vhost } => (3, user, vhost),
        };
        out.push(kind);
        name.put(out);
        vhost.put(out);
    }

    fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        *bytes = rest;
        let (name, vhost) = (<&str>::take(bytes)?, <&str>::take(bytes)?);
        Some(match kind {
            0 => Revocation::User(name),
            1 => Revocation::Vhost(name),
            2 => Revocation::Password(name),
            3 => Revocation::Permissions { user: name, vhost },
            _ => return None,
        })
    }
}

/// Appends a shard message to a batch's messages, with what `more` appends to its last field; returns the
/// bytes that it took.
#[inline(always)]
pub(super) fn write<'a>(
    message: impl Field<'a>,
    batch: &mut Vec<u8>,
    more: impl FnOnce(&mut Vec<u8>),
) -> usize {
    let start = batch.len();
    batch.extend_from_slice(&[0; LENGTH_BYTES]);
    message.put(batch);
    more(batch);
    let bytes = batch.len() - start;
    batch[start..start + LENGTH_BYTES].copy_from_slice(&length(bytes - LENGTH_BYTES));
    bytes
}

/// The shard message that `batch` begins with, and how many bytes it takes.
#[inline]
pub(super) fn read<'a, T: Field<'a>>(batch: &'a [u8]) -> Option<(T, usize)> {
    let mut rest = batch;
    let length = u32::take(&mut rest)? as usize;
    let mut content = rest.get(..length)?;
    Some((T::take(&mut content)?, LENGTH_BYTES + length))
}

/// Appends a message of a batch.
#[inline]
pub(super) fn put_batch_item(batch: &mut Vec<u8>, properties: &[u8], body: &[u8]) {
    let mut head = [BATCH_ITEM; BATCH_ITEM_HEAD_BYTES];
    head[..LENGTH_BYTES].copy_from_slice(&length(1 + 4 + properties.len() + body.len()));
    head[LENGTH_BYTES + 1..].copy_from_slice(&length(properties.len()));
    batch.reserve(head.len() + properties.len() + body.len());
    batch.extend_from_slice(&head);
    batch.extend_from_slice(properties);
    batch.extend_from_slice(body);
}

/// The payload of the shard message that `batch` begins with, if that is a message of a batch without
/// properties, and how many bytes it takes.
#[inline]
pub(crate) fn plain_batch_item(batch: &[u8]) -> Option<(&[u8], usize)> {
    let (head, rest) = batch.split_first_chunk::<BATCH_ITEM_HEAD_BYTES>()?;
    let [a, b, c, d, BATCH_ITEM, 0, 0, 0, 0] = *head else { return None };
    let bytes = u32::from_le_bytes([a, b, c, d]) as usize;
    let body = rest.get(..bytes.checked_sub(BATCH_ITEM_HEAD_BYTES - LENGTH_BYTES)?)?;
    Some((body, LENGTH_BYTES + bytes))
}

fn length(bytes: usize) -> [u8; LENGTH_BYTES] {
    u32::try_from(bytes).expect("limits keep shard messages below 4 GiB").to_le_bytes()
}

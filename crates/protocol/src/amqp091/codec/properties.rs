//! Properties of class basic (spec 4.2.6.1): picked apart, built, or rewritten where they lie.
//!
//! Sixteen flags say which of fourteen properties follow, in the order of the flags from the highest
//! bit down.

use super::table::{self, FieldValue, Table};
use super::wire::{Field, Malformed, Reader, Writer, put_short_str, truncated};

const UNUSED: u16 = 0b11;
const UNKNOWN_FLAGS: Malformed = Malformed("has property flags that class basic does not have");
const LEFT_OVER: Malformed = Malformed("has octets beyond its last property");

macro_rules! properties {
    ($(#[$meta:meta])* struct $struct:ident<$life:lifetime> {$(
        $flag:ident 1 << $bit:literal $name:ident: $type:ty,
    )*}) => {
        $(const $flag: u16 = 1 << $bit;)*

        $(#[$meta])*
        pub struct $struct<$life> {
            $(pub $name: Option<$type>,)*
        }

        impl<$life> $struct<$life> {
            /// Decodes property flags and property list.
            pub fn decode(raw: &$life [u8]) -> Result<Self, Malformed> {
                let mut reader = Reader::new(raw);
                let flags = read_flags(&mut reader)?;
                let properties = $struct {
                    $($name: flagged(flags, $flag, || Field::read(&mut reader))?,)*
                };
                reader.finish().map_err(|_| LEFT_OVER)?;
                Ok(properties)
            }

            /// Appends property flags and property list.
            pub fn encode(&self, out: &mut Vec<u8>) {
                let at = out.len();
                out.extend_from_slice(&[0, 0]);
                let mut flags = 0u16;
                $(if let Some(value) = &self.$name {
                    flags |= $flag;
                    value.write(&mut Writer::new(out));
                })*
                out[at..at + 2].copy_from_slice(&flags.to_be_bytes());
            }
        }
    };
}

properties! {
    /// All properties of a message.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[allow(missing_docs)]
    struct Properties<'a> {
        CONTENT_TYPE 1 << 15 content_type: &'a str,
        CONTENT_ENCODING 1 << 14 content_encoding: &'a str,
        HEADERS 1 << 13 headers: Table<'a>,
        DELIVERY_MODE 1 << 12 delivery_mode: u8,
        PRIORITY 1 << 11 priority: u8,
        CORRELATION_ID 1 << 10 correlation_id: &'a str,
        REPLY_TO 1 << 9 reply_to: &'a str,
        EXPIRATION 1 << 8 expiration: &'a str,
        MESSAGE_ID 1 << 7 message_id: &'a str,
        TIMESTAMP 1 << 6 timestamp: u64,
        TYPE 1 << 5 kind: &'a str,
        USER_ID 1 << 4 user_id: &'a str,
        APP_ID 1 << 3 app_id: &'a str,
        CLUSTER_ID 1 << 2 cluster_id: &'a str,
    }
}

#[inline]
fn read_flags(reader: &mut Reader<'_>) -> Result<u16, Malformed> {
    let flags = reader.short()?;
    if flags & UNUSED == 0 { Ok(flags) } else { Err(UNKNOWN_FLAGS) }
}

#[inline]
fn flagged<T>(
    flags: u16,
    flag: u16,
    read: impl FnOnce() -> Result<T, Malformed>,
) -> Result<Option<T>, Malformed> {
    if flags & flag == 0 { Ok(None) } else { read().map(Some) }
}

/// What a broker must know of a message; the rest is only checked to be well-formed. Of several headers of
/// one name, the first counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scan<'a> {
    /// The header `CC`: further routing keys.
    pub cc: Option<FieldValue<'a>>,
    /// The header `BCC`: further routing keys, which those who get the message do not see.
    pub bcc: Option<FieldValue<'a>>,
    /// The header `x-delay`: how long the message is held back.
    pub delay: Option<FieldValue<'a>>,
    /// 2: persistent.
    pub delivery_mode: u8,
    /// 0 where none is set.
    pub priority: u8,
    /// Where replies go.
    pub reply_to: Option<&'a [u8]>,
    /// Time to live in milliseconds, as decimal digits.
    pub expiration: Option<&'a [u8]>,
    /// Who says to have published it.
    pub user_id: Option<&'a [u8]>,
}

/// Checks properties and picks out what a broker must know.
#[inline]
pub fn scan(raw: &[u8]) -> Result<Scan<'_>, Malformed> {
    let mut reader = Reader::new(raw);
    let r = &mut reader;
    let flags = read_flags(r)?;
    flagged(flags, CONTENT_TYPE, || r.short_bytes())?;
    flagged(flags, CONTENT_ENCODING, || r.short_bytes())?;
    let mut scan = Scan::default();
    flagged(flags, HEADERS, || {
        table::checked_headers_with(r.long_str()?, |name, value| match name {
            b"CC" => _ = scan.cc.get_or_insert(value),
            b"BCC" => _ = scan.bcc.get_or_insert(value),
            b"x-delay" => _ = scan.delay.get_or_insert(value),
            _ => {}
        })
    })?;
    scan.delivery_mode = flagged(flags, DELIVERY_MODE, || r.octet())?.unwrap_or(0);
    scan.priority = flagged(flags, PRIORITY, || r.octet())?.unwrap_or(0);
    if flags & (PRIORITY - 1) != 0 {
        scan_rest(flags, r, &mut scan)?;
    }
    reader.finish().map_err(|_| LEFT_OVER)?;
    Ok(scan)
}

fn scan_rest<'a>(flags: u16, r: &mut Reader<'a>, scan: &mut Scan<'a>) -> Result<(), Malformed> {
    flagged(flags, CORRELATION_ID, || r.short_bytes())?;
    scan.reply_to = flagged(flags, REPLY_TO, || r.short_bytes())?;
    scan.expiration = flagged(flags, EXPIRATION, || r.short_bytes())?;
    flagged(flags, MESSAGE_ID, || r.short_bytes())?;
    flagged(flags, TIMESTAMP, || r.longlong())?;
    flagged(flags, TYPE, || r.short_bytes())?;
    scan.user_id = flagged(flags, USER_ID, || r.short_bytes())?;
    flagged(flags, APP_ID, || r.short_bytes())?;
    flagged(flags, CLUSTER_ID, || r.short_bytes())?;
    Ok(())
}

/// The application headers, if there are any and all before them is well-formed.
#[must_use]
pub fn headers(raw: &[u8]) -> Option<Table<'_>> {
    table::checked_headers(header_entries(raw)?).ok()
}

/// The value of the first application header of that name, in properties that were checked when they came:
/// of others, what can be read of them.
#[must_use]
pub fn header<'a>(raw: &'a [u8], name: &str) -> Option<FieldValue<'a>> {
    table::value_named(header_entries(raw)?, name)
}

/// The entries of the application headers, as they came.
#[inline]
fn header_entries(raw: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(raw);
    let flags = reader.short().ok()?;
    for flag in [CONTENT_TYPE, CONTENT_ENCODING] {
        if flags & flag != 0 {
            reader.short_bytes().ok()?;
        }
    }
    if flags & HEADERS == 0 { None } else { reader.long_str().ok() }
}

/// What to change in properties.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edit<'a> {
    /// Leave the expiration out.
    pub drop_expiration: bool,
    /// Replace the reply address.
    pub reply_to: Option<&'a str>,
    /// Leave out headers of these names.
    pub drop_headers: &'a [&'a str],
    /// Add these encoded headers.
    pub add_headers: &'a [u8],
}

/// Appends `raw` with changes to `out`; the rest stays octet for octet as it was.
pub fn rewrite(raw: &[u8], edit: &Edit<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut reader = Reader::new(raw);
    let mut flags = reader.short()?;
    let at = out.len();
    out.extend_from_slice(&[0, 0]);
    for bit in (2..16).rev() {
        let flag = 1u16 << bit;
        if flag == HEADERS {
            let old = flagged(flags, HEADERS, || table::checked_headers(reader.long_str()?))?;
            if put_headers(old.unwrap_or_default(), old.is_some(), edit, out) {
                flags |= HEADERS;
            }
        } else if flags & flag != 0 {
            let before = reader.rest();
            match flag {
                DELIVERY_MODE | PRIORITY => reader.take(1)?,
                TIMESTAMP => reader.take(8)?,
                _ => reader.short_bytes()?,
            };
            match (flag, edit.reply_to) {
                (EXPIRATION, _) if edit.drop_expiration => flags &= !EXPIRATION,
                (REPLY_TO, Some(address)) => put_short_str(out, truncated(address)),
                _ => out.extend_from_slice(&before[..before.len() - reader.rest().len()]),
            }
        }
    }
    out[at..at + 2].copy_from_slice(&flags.to_be_bytes());
    Ok(())
}

fn put_headers(old: Table<'_>, present: bool, edit: &Edit<'_>, out: &mut Vec<u8>) -> bool {
    if !present && edit.add_headers.is_empty() {
        return false;
    }
    table::put_table(out, |new| {
        for entry in old.entries() {
            if !edit.drop_headers.contains(&entry.name) {
                new.out.extend_from_slice(entry.raw);
            }
        }
        new.out.extend_from_slice(edit.add_headers);
    });
    true
}

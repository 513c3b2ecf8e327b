//! Properties of class basic (spec 4.2.6.1): picked apart, built, or rewritten where they lie.
//!
//! Sixteen flags say which of fourteen properties follow, in the order of the flags from the highest
//! bit down.

use super::table::{self, Table};
use super::wire::{Malformed, Reader, put_long_str, put_short_str, truncated};

const CONTENT_TYPE: u16 = 1 << 15;
const CONTENT_ENCODING: u16 = 1 << 14;
const HEADERS: u16 = 1 << 13;
const DELIVERY_MODE: u16 = 1 << 12;
const PRIORITY: u16 = 1 << 11;
const CORRELATION_ID: u16 = 1 << 10;
const REPLY_TO: u16 = 1 << 9;
const EXPIRATION: u16 = 1 << 8;
const MESSAGE_ID: u16 = 1 << 7;
const TIMESTAMP: u16 = 1 << 6;
const TYPE: u16 = 1 << 5;
const USER_ID: u16 = 1 << 4;
const APP_ID: u16 = 1 << 3;
const CLUSTER_ID: u16 = 1 << 2;
const UNUSED: u16 = 0b11;

const UNKNOWN_FLAGS: Malformed = Malformed("has property flags that class basic does not have");
const LEFT_OVER: Malformed = Malformed("has octets beyond its last property");

/// All properties of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Properties<'a> {
    pub content_type: Option<&'a str>,
    pub content_encoding: Option<&'a str>,
    pub headers: Option<Table<'a>>,
    pub delivery_mode: Option<u8>,
    pub priority: Option<u8>,
    pub correlation_id: Option<&'a str>,
    pub reply_to: Option<&'a str>,
    pub expiration: Option<&'a str>,
    pub message_id: Option<&'a str>,
    pub timestamp: Option<u64>,
    pub kind: Option<&'a str>,
    pub user_id: Option<&'a str>,
    pub app_id: Option<&'a str>,
    pub cluster_id: Option<&'a str>,
}

impl<'a> Properties<'a> {
    /// Decodes property flags and property list.
    pub fn decode(raw: &'a [u8]) -> Result<Properties<'a>, Malformed> {
        let mut reader = Reader::new(raw);
        let flags = reader.short()?;
        if flags & UNUSED != 0 {
            return Err(UNKNOWN_FLAGS);
        }
        let r = &mut reader;
        let properties = Properties {
            content_type: flagged(flags, CONTENT_TYPE, || r.short_str())?,
            content_encoding: flagged(flags, CONTENT_ENCODING, || r.short_str())?,
            headers: flagged(flags, HEADERS, || r.table())?,
            delivery_mode: flagged(flags, DELIVERY_MODE, || r.octet())?,
            priority: flagged(flags, PRIORITY, || r.octet())?,
            correlation_id: flagged(flags, CORRELATION_ID, || r.short_str())?,
            reply_to: flagged(flags, REPLY_TO, || r.short_str())?,
            expiration: flagged(flags, EXPIRATION, || r.short_str())?,
            message_id: flagged(flags, MESSAGE_ID, || r.short_str())?,
            timestamp: flagged(flags, TIMESTAMP, || r.longlong())?,
            kind: flagged(flags, TYPE, || r.short_str())?,
            user_id: flagged(flags, USER_ID, || r.short_str())?,
            app_id: flagged(flags, APP_ID, || r.short_str())?,
            cluster_id: flagged(flags, CLUSTER_ID, || r.short_str())?,
        };
        reader.finish().map_err(|_| LEFT_OVER)?;
        Ok(properties)
    }

    /// Appends property flags and property list.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&[0, 0]);
        let mut flags = 0;
        put_text(out, &mut flags, CONTENT_TYPE, self.content_type);
        put_text(out, &mut flags, CONTENT_ENCODING, self.content_encoding);
        if let Some(headers) = self.headers {
            flags |= HEADERS;
            put_long_str(out, headers.bytes());
        }
        if let Some(mode) = self.delivery_mode {
            flags |= DELIVERY_MODE;
            out.push(mode);
        }
        if let Some(priority) = self.priority {
            flags |= PRIORITY;
            out.push(priority);
        }
        put_text(out, &mut flags, CORRELATION_ID, self.correlation_id);
        put_text(out, &mut flags, REPLY_TO, self.reply_to);
        put_text(out, &mut flags, EXPIRATION, self.expiration);
        put_text(out, &mut flags, MESSAGE_ID, self.message_id);
        if let Some(timestamp) = self.timestamp {
            flags |= TIMESTAMP;
            out.extend_from_slice(&timestamp.to_be_bytes());
        }
        put_text(out, &mut flags, TYPE, self.kind);
        put_text(out, &mut flags, USER_ID, self.user_id);
        put_text(out, &mut flags, APP_ID, self.app_id);
        put_text(out, &mut flags, CLUSTER_ID, self.cluster_id);
        out[at..at + 2].copy_from_slice(&flags.to_be_bytes());
    }
}

fn flagged<T>(
    flags: u16,
    flag: u16,
    read: impl FnOnce() -> Result<T, Malformed>,
) -> Result<Option<T>, Malformed> {
    if flags & flag == 0 { Ok(None) } else { read().map(Some) }
}

fn put_text(out: &mut Vec<u8>, flags: &mut u16, flag: u16, text: Option<&str>) {
    if let Some(text) = text {
        *flags |= flag;
        put_short_str(out, text);
    }
}

/// What a broker must know of a message; the rest is only checked to be well-formed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan<'a> {
    /// Application headers.
    pub headers: Option<Table<'a>>,
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
    let flags = reader.short()?;
    let mut scan = Scan::default();
    if flags & UNUSED != 0 {
        return Err(UNKNOWN_FLAGS);
    }
    if flags & CONTENT_TYPE != 0 {
        reader.short_bytes()?;
    }
    if flags & CONTENT_ENCODING != 0 {
        reader.short_bytes()?;
    }
    if flags & HEADERS != 0 {
        scan.headers = Some(reader.table()?);
    }
    if flags & DELIVERY_MODE != 0 {
        scan.delivery_mode = reader.octet()?;
    }
    if flags & PRIORITY != 0 {
        scan.priority = reader.octet()?;
    }
    if flags & (PRIORITY - 1) != 0 {
        scan_rest(flags, &mut reader, &mut scan)?;
    }
    reader.finish().map_err(|_| LEFT_OVER)?;
    Ok(scan)
}

fn scan_rest<'a>(
    flags: u16,
    reader: &mut Reader<'a>,
    scan: &mut Scan<'a>,
) -> Result<(), Malformed> {
    if flags & CORRELATION_ID != 0 {
        reader.short_bytes()?;
    }
    scan.reply_to = flagged(flags, REPLY_TO, || reader.short_bytes())?;
    scan.expiration = flagged(flags, EXPIRATION, || reader.short_bytes())?;
    if flags & MESSAGE_ID != 0 {
        reader.short_bytes()?;
    }
    if flags & TIMESTAMP != 0 {
        reader.longlong()?;
    }
    if flags & TYPE != 0 {
        reader.short_bytes()?;
    }
    scan.user_id = flagged(flags, USER_ID, || reader.short_bytes())?;
    if flags & APP_ID != 0 {
        reader.short_bytes()?;
    }
    if flags & CLUSTER_ID != 0 {
        reader.short_bytes()?;
    }
    Ok(())
}

/// The application headers, if there are any and all before them is well-formed.
#[must_use]
pub fn headers(raw: &[u8]) -> Option<Table<'_>> {
    let mut reader = Reader::new(raw);
    let flags = reader.short().ok()?;
    for flag in [CONTENT_TYPE, CONTENT_ENCODING] {
        if flags & flag != 0 {
            reader.short_bytes().ok()?;
        }
    }
    if flags & HEADERS == 0 { None } else { table::checked(reader.long_str().ok()?).ok() }
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
            let old = flagged(flags, HEADERS, || reader.table())?;
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

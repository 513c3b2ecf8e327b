//! Sessions, as records and snapshots have them.

use crate::storage::codec::{Malformed, Reader, Writer};
use crate::{SessionExpiry, Time};
use std::time::Duration;

/// A session that survives a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionRecord<'a> {
    pub(crate) number: u64,
    pub(crate) vhost: &'a str,
    pub(crate) name: &'a str,
    pub(crate) user: &'a str,
    pub(crate) expiry: SessionExpiry,
    /// `None`: it is held.
    pub(crate) detached_at: Option<Time>,
    pub(crate) state: &'a [u8],
}

/// Appends a session.
pub(crate) fn write_session(writer: &mut Writer<'_>, session: &SessionRecord<'_>) {
    writer.u64(session.number);
    writer.text(session.vhost);
    writer.text(session.name);
    writer.text(session.user);
    write_expiry(writer, session.expiry);
    writer.option(session.detached_at, |writer, at| writer.u64(at.0));
    writer.bytes(session.state);
}

/// Reads what [`write_session`] wrote.
pub(crate) fn read_session<'a>(reader: &mut Reader<'a>) -> Result<SessionRecord<'a>, Malformed> {
    Ok(SessionRecord {
        number: reader.u64()?,
        vhost: reader.text()?,
        name: reader.text()?,
        user: reader.text()?,
        expiry: read_expiry(reader)?,
        detached_at: reader.option(|reader| reader.u64().map(Time))?,
        state: reader.bytes()?,
    })
}

/// Appends how long a session lives on without a holder.
pub(crate) fn write_expiry(writer: &mut Writer<'_>, expiry: SessionExpiry) {
    match expiry {
        SessionExpiry::AtDetach => writer.u8(0),
        SessionExpiry::After(duration) => {
            writer.u8(1);
            writer.u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
        }
        SessionExpiry::Never => writer.u8(2),
    }
}

/// Reads what [`write_expiry`] wrote.
pub(crate) fn read_expiry(reader: &mut Reader<'_>) -> Result<SessionExpiry, Malformed> {
    Ok(match reader.u8()? {
        0 => SessionExpiry::AtDetach,
        1 => SessionExpiry::After(Duration::from_micros(reader.u64()?)),
        2 => SessionExpiry::Never,
        other => return Err(format!("session expiry {other} is unknown")),
    })
}

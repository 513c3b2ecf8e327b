//! Sessions: ordered streams of publishes and settles, with confirms, transactions and an inbox.

mod commit;
pub(crate) mod confirms;
mod lifecycle;
mod session;
pub(crate) mod transaction;

pub(crate) use session::{Connection, Inbox, Session};

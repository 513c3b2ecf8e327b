//! Named sessions: state that outlives connections.
//!
//! A session is claimed by name within a virtual host, by a channel, which holds it from then on. Another
//! claim takes it over. When its holder gives it up or ends, the session is detached and lives on for its
//! expiry; a claim within that time resumes it. Sessions are home's: a claim from another shard is a request
//! like others.
//!
//! A recorded session survives a restart, detached. Its expiry counts from its detach, or from the restart
//! where it was held until then. A wall clock that was set back over the restart never makes it live longer
//! than its expiry after that restart.

mod claim;
mod lifetime;
mod registry;
mod restore;

pub(crate) use self::registry::Sessions;

use crate::{ChannelId, SessionExpiry, Time};
use bytes::Bytes;
use std::sync::Arc;

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    /// Tells it from earlier sessions of its name; records refer to it by this.
    pub(crate) number: u64,
    /// The slot of its virtual host.
    pub(crate) vhost: u32,
    pub(crate) name: Arc<str>,
    /// Its owner, who alone may claim it.
    pub(crate) user: Arc<str>,
    pub(crate) expiry: SessionExpiry,
    /// It is to survive a restart.
    pub(crate) recorded: bool,
    /// The journal has it.
    pub(crate) is_stored: bool,
    /// What its protocol keeps with it.
    pub(crate) state: Bytes,
    /// The channel that holds it; `None` while it is detached.
    pub(crate) holder: Option<ChannelId>,
    /// Since when it is detached.
    pub(crate) detached_at: Option<Time>,
    /// When it ends, if it is not claimed before.
    pub(crate) expires_at: Option<Time>,
}

impl Session {
    /// Whether a restart should bring it back. What ends with its holder never outlives the process.
    fn outlives_restart(&self) -> bool {
        self.recorded && self.expiry.outlives_holder()
    }
}

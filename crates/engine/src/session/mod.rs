//! Named sessions: state that outlives connections.
//!
//! A session is claimed by name within a virtual host, by a channel, which holds it from then on. Another
//! claim takes it over. When its holder gives it up or ends, the session is detached and lives on for its
//! expiry; a claim within that time resumes it. Sessions are home's: a claim from another shard is a request
//! like others.
//!
//! A session may have a queue of its own, which goes on to collect while the session is detached and is
//! deleted with it.
//!
//! A recorded session survives a restart, detached. Its expiry counts from its detach, or from the restart
//! where it was held until then. A wall clock that was set back over the restart never makes it live longer
//! than its expiry after that restart.

mod attributes;
mod change;
mod claim;
mod handover;
mod lifetime;
pub(crate) mod members;
mod own_queue;
pub(crate) mod places;
mod received;
mod records;
mod registry;
mod released;
mod restore;
mod rights;
mod shared;
mod will;

pub(crate) use self::registry::Sessions;

use self::attributes::Attributes;
use crate::kept::LogCursor;
use crate::queue::entry::Entry;
use crate::{ChannelId, Position, SessionExpiry, Time};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

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
    pub(crate) attributes: Attributes,
    /// The number of its queue; 0: it has none.
    pub(crate) queue: u64,
    /// Numbers of publishes that are not taken again, each with the record that says so where there is one.
    pub(crate) received: BTreeMap<u64, Option<Position>>,
    /// The last record that one of those was forgotten.
    pub(crate) forgotten_at: Position,
    /// Numbers of publishes that are still on their way to very many queues.
    pub(crate) underway: BTreeSet<u64>,
    /// Places of its queue that are settled and still in use.
    pub(crate) released: BTreeSet<u64>,
    /// Numbers of the shared queues of which it is a member.
    pub(crate) shared: BTreeSet<u64>,
    /// What these have handed over and is not settled, by its place.
    pub(crate) handed: BTreeMap<u64, Handed>,
    pub(crate) will: Option<Box<KeptWill>>,
    /// The channel that holds it; `None` while it is detached.
    pub(crate) holder: Option<ChannelId>,
    /// Since when it is detached.
    pub(crate) detached_at: Option<Time>,
    /// When it ends, if it is not claimed before.
    pub(crate) expires_at: Option<Time>,
    /// What its user's account has of the memory that it takes.
    pub(crate) accounted: u64,
    /// Where it is in logs, if messages wait for it there ([`crate::kept`]).
    pub(crate) cursor: Option<Box<LogCursor>>,
    /// It is among those that take what they missed.
    pub(crate) is_draining: bool,
}

/// What a session takes in memory beside its texts and what it keeps.
const SESSION_BYTES: usize = size_of::<Session>() + 160;
/// What one number of a set takes.
const NUMBER_BYTES: usize = 24;

impl Session {
    /// Whether a restart should bring it back. What ends with its holder never outlives the process, except
    /// where its queue is stored: that goes with the session, after the restart.
    fn outlives_restart(&self) -> bool {
        let has_stored_queue = self.is_stored && self.queue != 0;
        self.recorded && self.expiry.outlives_holder() || has_stored_queue
    }

    /// About how much memory it takes, its queue not counted.
    fn memory_bytes(&self) -> u64 {
        let texts = 2 * self.name.len() + self.state.len() + self.attributes.bytes();
        let numbers = 2 * (self.received.len() + self.handed.len())
            + self.underway.len()
            + self.released.len()
            + self.shared.len();
        let numbers = numbers * NUMBER_BYTES;
        let will = self.will.as_ref().map_or(0, |will| will.bytes());
        let cursor = self.cursor.as_ref().map_or(0, |cursor| cursor.bytes());
        (SESSION_BYTES + texts + numbers + will + cursor) as u64
    }

    /// It has all that arrived in its logs before this.
    pub(crate) fn log_position(&self) -> u64 {
        self.cursor.as_ref().map_or(0, |cursor| cursor.at)
    }
}

/// A message that a shared queue has handed over.
#[derive(Debug)]
pub(crate) struct Handed {
    /// The number of the shared queue.
    queue: u64,
    /// Another member gets it if the session ends.
    returns: bool,
    /// It is the shared queue's still: what that had.
    lent: Option<Box<Entry>>,
}

/// A will that is kept with a session.
#[derive(Debug)]
pub(crate) struct KeptWill {
    /// The message, as queues store it.
    pub(crate) message: Box<[u8]>,
    /// It stays behind then as the retained message of its subject.
    pub(crate) retain: bool,
    /// How long after the detach it is published.
    pub(crate) delay: Duration,
    /// When that is, since the session is detached.
    pub(crate) due: Option<Time>,
}

impl KeptWill {
    fn bytes(&self) -> usize {
        size_of::<KeptWill>() + self.message.len()
    }
}

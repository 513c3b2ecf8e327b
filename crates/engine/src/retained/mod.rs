//! Retained messages: the last message of each subject that was published to stay, kept apart from
//! queues, and replayed to those who subscribe later.
//!
//! All of them are home's and in the journal, whether or not they are persistent; memory has those for
//! which it has room. Each change has its record, so that what was replaced, taken away or has expired
//! never comes back.

mod change;
mod publish;
mod replay;
mod replays;
pub(crate) mod restore;
mod subject;
mod values;

pub(crate) use self::replays::ReplayLoad;
pub(crate) use self::subject::{Key, subject_of};
pub(crate) use self::values::Value;

use self::replays::Replays;
use self::values::Values;
use crate::{Position, Time};

/// The retained messages, and who is shown them.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    pub(crate) values: Values,
    pub(crate) replays: Replays,
    pub(crate) next_number: u64,
    /// When the timer goes off.
    timer: Option<Time>,
    /// The last record of any of them.
    changed_at: Position,
    /// The record that the publish at hand waits for, beside those of queues.
    pub(crate) awaited: Option<Position>,
}

impl Retained {
    /// What they take in memory beside messages.
    pub(crate) fn index_bytes(&self) -> u64 {
        self.values.index_bytes() + self.replays.bytes()
    }
}

//! Whether what is to survive a restart can be stored, as the host says.

use crate::Refusal;

/// Whether messages can be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StorageState {
    /// They can.
    #[default]
    Ready,
    /// The system refuses memory: all publishes to queues are refused, settles go on.
    NoMemory,
    /// The journal has no space: persistent publishes are refused (negative confirm), settles go on.
    Full,
    /// As `Full`, and what was kept back for settles is used up: no record can be written, and what is to
    /// survive a restart is not changed on request.
    Exhausted,
    /// A write or flush failed: as `Full`, and for good.
    Failed,
}

impl StorageState {
    /// Refuses a change on request that could not be made `durable`.
    pub(crate) fn check_kept(self, durable: bool) -> Result<(), Refusal> {
        match self {
            StorageState::Failed if durable => Err(Refusal::not_kept()),
            StorageState::Exhausted if durable => Err(Refusal::no_room()),
            _ => Ok(()),
        }
    }
}

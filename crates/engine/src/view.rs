//! Read-only listings for administration and metrics.

use crate::Counters;
use crate::engine::Engine;

impl Engine {
    /// What happened since the engine was made.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Bytes of messages that all queues hold in memory, as [`crate::limits::Limits`] counts them.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.resident
    }

    /// A user's password hash, as [`crate::Request::PutUser`] gave it.
    #[must_use]
    pub fn password_hash(&self, user: &str) -> Option<&str> {
        self.access.user(user).map(|user| user.password_hash.as_str())
    }
}

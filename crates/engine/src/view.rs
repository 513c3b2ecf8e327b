//! Read-only listings for administration and metrics.

use crate::Counters;
use crate::engine::Engine;

impl Engine {
    /// What happened since the engine was made.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// A user's password hash, as [`crate::Request::PutUser`] gave it.
    #[must_use]
    pub fn password_hash(&self, user: &str) -> Option<&str> {
        self.access.user(user).map(|user| user.password_hash.as_str())
    }
}

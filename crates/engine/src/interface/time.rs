//! Time as the engine sees it: an argument, never a clock that is read.

use std::time::Duration;

/// Microseconds since the Unix epoch, never going backwards within one run of a host.
///
/// The host reads the wall clock once at start and advances it by a monotonic clock, so that a
/// clock that is set while the broker runs expires nothing early, and deadlines that were stored
/// before a restart still mean the same instant after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The instant `after` later; saturates at the end of time.
    #[must_use]
    pub fn plus(self, after: Duration) -> Time {
        let micros = after.as_secs().saturating_mul(1_000_000);
        Time(self.0.saturating_add(micros).saturating_add(after.subsec_micros().into()))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// Whole seconds since the Unix epoch, the unit that timestamps in protocols have.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.0 / 1_000_000
    }
}

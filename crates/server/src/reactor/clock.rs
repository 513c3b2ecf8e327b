//! The engine's time: the wall clock at the start, advanced by a monotonic clock.

use angarium_engine::Time;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Reads the time once a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    wall: Time,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Clock { start: Instant::now(), wall: Time::default().plus(since) }
    }

    pub(crate) fn now(&self) -> Time {
        self.wall.plus(self.start.elapsed())
    }
}

//! How many connections begin in a second.

use angarium_engine::Time;
use std::time::Duration;

/// Connections that began within the second that began with the first of them.
#[derive(Debug, Default)]
pub(super) struct ConnectionRate {
    since: Time,
    count: u64,
}

impl ConnectionRate {
    /// Whether one more may begin where `most` may in a second; counts it if so.
    pub(super) fn admits(&mut self, now: Time, most: u64) -> bool {
        if now.since(self.since) >= Duration::from_secs(1) {
            *self = ConnectionRate { since: now, count: 0 };
        }
        let admits = self.count < most;
        self.count += u64::from(admits);
        admits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_begin_in_a_second_than_may() {
        let mut rate = ConnectionRate::default();
        let at = |millis: u64| Time(10_000_000 + millis * 1_000);
        let admitted = [0, 1, 2, 999, 1_000, 1_001, 1_002, 5_000].map(|it| rate.admits(at(it), 2));
        assert_eq!(admitted, [true, true, false, false, true, true, false, true]);
    }
}

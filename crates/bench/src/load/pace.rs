//! When the messages of a paced producer are due. Knows no clock.

/// Messages at even distances from a start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    start_ns: u64,
    interval_ns: f64,
}

impl Pace {
    /// The pace of one of `producers` that together send `rate` messages a second; `None` for no
    /// pace.
    pub(crate) fn of(rate: u64, producers: usize, start_ns: u64) -> Option<Pace> {
        let interval_ns = 1e9 * producers as f64 / rate as f64;
        (rate > 0).then_some(Pace { start_ns, interval_ns })
    }

    /// When the message with this sequence number is due.
    pub(crate) fn due_ns(&self, sequence: u64) -> u64 {
        self.start_ns + (sequence as f64 * self.interval_ns) as u64
    }

    /// How many messages are due by now, the first one at the start.
    pub(crate) fn due_by(&self, now_ns: u64) -> u64 {
        match now_ns.checked_sub(self.start_ns) {
            Some(elapsed_ns) => (elapsed_ns as f64 / self.interval_ns) as u64 + 1,
            None => 0,
        }
    }
}

//! When the messages of a paced producer are due. Takes the time as an argument.

/// Messages at even intervals from a start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    start_ns: u64,
    interval_ns: f64,
}

impl Pace {
    /// The pace of one of `producers` that together send `rate` messages a second at even intervals from
    /// `start_ns` on, whenever their threads start; `None` without a rate.
    pub(crate) fn of(rate: u64, index: usize, producers: usize, start_ns: u64) -> Option<Pace> {
        if rate == 0 {
            return None;
        }
        let distance_ns = 1e9 / rate as f64;
        let start_ns = start_ns + (index as f64 * distance_ns) as u64;
        Some(Pace { start_ns, interval_ns: distance_ns * producers as f64 })
    }

    /// When the message with this sequence number is due.
    pub(crate) fn due_ns(&self, sequence: u64) -> u64 {
        self.start_ns + (sequence as f64 * self.interval_ns) as u64
    }

    /// How many messages are due by now; the first one is due at the start.
    pub(crate) fn due_by(&self, now_ns: u64) -> u64 {
        match now_ns.checked_sub(self.start_ns) {
            Some(elapsed_ns) => (elapsed_ns as f64 / self.interval_ns) as u64 + 1,
            None => 0,
        }
    }
}

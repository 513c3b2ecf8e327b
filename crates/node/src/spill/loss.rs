//! Why spooled messages are missed.

/// Why a message is missed that was to wait for a slow client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpillLoss {
    /// It was among the oldest, and there was more than there may be; or nothing may wait at all.
    Limit,
    /// Too many clients are slow.
    SlowConsumers,
    /// It could not be written, or not be read back.
    FailedDisk,
    /// Too much was to be written already: the disk did not keep up.
    SlowDisk,
    /// The journal had no room on the disk.
    FullJournal,
}

impl SpillLoss {
    /// All there are.
    pub const ALL: [SpillLoss; 5] = [
        SpillLoss::Limit,
        SpillLoss::SlowConsumers,
        SpillLoss::FailedDisk,
        SpillLoss::SlowDisk,
        SpillLoss::FullJournal,
    ];

    /// Its name, for metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SpillLoss::Limit => "limit",
            SpillLoss::SlowConsumers => "slow_consumers",
            SpillLoss::FailedDisk => "failed_disk",
            SpillLoss::SlowDisk => "slow_disk",
            SpillLoss::FullJournal => "full_journal",
        }
    }
}

/// How many were missed for each reason.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses([u64; SpillLoss::ALL.len()]);

impl Losses {
    pub(super) fn add(&mut self, loss: SpillLoss, messages: u64) {
        self.0[loss as usize] += messages;
    }

    pub(super) fn of(&self, loss: SpillLoss) -> u64 {
        self.0[loss as usize]
    }
}

//! Which slow steps are logged: the first one immediately, then the worst of each second. Does not know what
//! steps there are.

use angarium_engine::Time;
use std::time::Duration;

/// At most one line in this time.
const PAUSE: Duration = Duration::from_secs(1);

/// What is logged of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) did: String,
    /// How long it took.
    pub(super) micros: u64,
    /// What it had of a processor, at most.
    pub(super) processor: u64,
    pub(super) client: NamedClient,
}

/// The client that it was for, if it was for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NamedClient {
    pub(super) connection: Option<u64>,
    pub(super) peer: Option<String>,
    pub(super) user: Option<String>,
}

/// Slow steps that were not named yet.
#[derive(Debug, Default)]
pub(super) struct SlowSteps {
    /// The one that had most of a processor.
    worst: Option<Named>,
    count: u64,
    /// When the next line may be written.
    next_at: Time,
}

impl SlowSteps {
    pub(super) fn note(&mut self, step: Named) {
        self.count += 1;
        if self.worst.as_ref().is_none_or(|worst| worst.processor < step.processor) {
            self.worst = Some(step);
        }
    }

    /// The one to be named now, if there is one, and how many others are not named.
    pub(super) fn next(&mut self, now: Time) -> Option<(Named, u64)> {
        if now < self.next_at {
            return None;
        }
        let worst = self.worst.take()?;
        self.next_at = now.plus(PAUSE);
        Some((worst, std::mem::take(&mut self.count) - 1))
    }

    /// When there will be one to be named.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Time> {
        self.worst.is_some().then_some(self.next_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The millisecond in which a step ended, and the time it had, or in which nothing but a look was taken;
    /// which one is named then, and of how many nothing is said.
    type Look = (u64, Option<u64>, Option<(u64, u64)>);

    #[track_caller]
    fn check(steps: &[Look]) {
        let mut slow = SlowSteps::default();
        for &(at, processor, expected) in steps {
            if let Some(processor) = processor {
                let (did, micros, client) = (String::new(), processor, NamedClient::default());
                slow.note(Named { did, micros, processor, client });
            }
            let named = slow.next(Time(at * 1_000)).map(|(named, others)| (named.micros, others));
            assert_eq!(named, expected, "{steps:?} at {at}");
            assert!(named.is_none() || slow.deadline().is_none(), "{steps:?} at {at}");
        }
    }

    #[test]
    fn one_is_named_at_once_and_the_worst_of_each_second_at_its_end() {
        check(&[(7_000, None, None), (7_001, Some(5), Some((5, 0)))]);
        check(&[(1, Some(5), Some((5, 0))), (900, None, None), (1_001, None, None)]);
        check(&[
            (1, Some(5), Some((5, 0))),
            (2, Some(70), None),
            (3, Some(90), None),
            (4, Some(80), None),
            (1_000, None, None),
            (1_001, None, Some((90, 2))),
            (1_002, Some(3), None),
            (2_001, None, Some((3, 0))),
            (3_001, Some(1), Some((1, 0))),
        ]);
        // Nobody looked in time.
        check(&[(1, Some(5), Some((5, 0))), (2, Some(70), None), (5_000, Some(6), Some((70, 1)))]);
    }
}

//! When the journal writes records that nothing waits for (settles, messages paged out): a little later,
//! since a write costs as much for a hundred records as for one. Does not know the journal.

use angarium_engine::Time;
use std::time::Duration;

/// How long such records wait to be written: the messages they settle in that time come again, marked
/// redelivered, where the process is killed.
const DELAY: Duration = Duration::from_millis(5);

/// The same while the disk is full: every write takes a page of the reserve.
const DELAY_WITHOUT_SPACE: Duration = Duration::from_millis(50);

/// When it is to write.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// When it is due, if it is put off.
    pub(crate) due: Option<Time>,
}

impl Writes {
    /// Ends a turn. `is_unhurried`: there is something to write, and nobody waits for it. `is_full`: the disk
    /// has no space.
    pub(crate) fn end_turn(&mut self, now: Time, is_unhurried: bool, is_full: bool) {
        let delay = if is_full { DELAY_WITHOUT_SPACE } else { DELAY };
        let due = self.due.unwrap_or_else(|| now.plus(delay));
        self.due = (is_unhurried && now < due).then_some(due);
    }
}

/// How long after a flush that no other followed a block is written that proves it.
const PROOF_DELAY: Duration = Duration::from_secs(1);

/// When the last flush is proven: by the next block otherwise, but if none follows, its bytes could rot and
/// look like a write that was cut off.
#[derive(Debug, Default)]
pub(crate) struct FlushProof {
    /// Up to where it flushed.
    of: u64,
    /// When that is due, if it is.
    pub(crate) due: Option<Time>,
}

impl FlushProof {
    /// Ends a turn, up to where an unproven flush went, if there is one. Whether it is time to prove it.
    pub(crate) fn end_turn(&mut self, now: Time, unproven: Option<u64>) -> bool {
        match unproven {
            None => self.due = None,
            Some(of) if of != self.of => {
                *self = FlushProof { of, due: Some(now.plus(PROOF_DELAY)) };
            }
            Some(_) if self.due.is_some_and(|due| due <= now) => {
                self.due = None;
                return true;
            }
            Some(_) => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_is_proven_once_no_other_follows_for_a_second() {
        let mut proof = FlushProof::default();
        let mut turn =
            |millis: u64, unproven| (proof.end_turn(Time(millis * 1_000), unproven), proof.due);
        let due = |millis: u64| Some(Time(millis * 1_000));
        assert_eq!(turn(0, None), (false, None));
        assert_eq!(turn(10, Some(5)), (false, due(1_010)));
        assert_eq!(turn(900, Some(6)), (false, due(1_900)));
        assert_eq!(turn(1_899, Some(6)), (false, due(1_900)));
        assert_eq!(turn(1_900, Some(6)), (true, None));
        // If that was not possible it is not asked for again and again.
        assert_eq!(turn(1_901, Some(6)), (false, None));
        assert_eq!(turn(1_902, Some(7)), (false, due(2_902)));
        assert_eq!(turn(1_903, None), (false, None));
    }

    /// Plays turns, each with its time in milliseconds and whether what there is to write may wait; says of
    /// which of them it is put off.
    #[track_caller]
    fn check(turns: &[(u64, bool, bool)]) {
        let mut writes = Writes::default();
        for (at, &(now, is_unhurried, is_put_off)) in turns.iter().enumerate() {
            writes.end_turn(Time(now * 1_000), is_unhurried, false);
            assert_eq!(writes.due.is_some(), is_put_off, "context {at} of {turns:?}");
        }
    }

    #[test]
    fn what_nobody_waits_for_is_put_off_once() {
        check(&[(10, false, false), (11, false, false)]);
        check(&[(10, true, true), (12, true, true), (14, true, true), (15, true, false)]);
        check(&[(10, true, true), (19, true, false), (20, true, true)]);
        check(&[(10, true, true), (12, false, false), (14, true, true), (18, true, true)]);
    }
}

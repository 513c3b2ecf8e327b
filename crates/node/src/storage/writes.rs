//! When the journal writes records that nothing waits for (settles, messages paged out): a little later,
//! since a write costs as much for a hundred records as for one. Does not know the journal.

use angarium_engine::Time;
use std::time::Duration;

/// How long such records wait to be written: the messages they settle in that time come again, marked
/// redelivered, where the process is killed.
const DELAY: Duration = Duration::from_millis(5);

/// When it is to write.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// When it is due, if it is put off.
    pub(crate) due: Option<Time>,
}

impl Writes {
    /// Ends a turn. `is_unhurried`: there is something to write, and nobody waits for it.
    pub(crate) fn end_turn(&mut self, now: Time, is_unhurried: bool) {
        let due = self.due.unwrap_or_else(|| now.plus(DELAY));
        self.due = (is_unhurried && now < due).then_some(due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays turns, each with its time in milliseconds and whether what there is to write may wait; says of
    /// which of them it is put off.
    #[track_caller]
    fn check(turns: &[(u64, bool, bool)]) {
        let mut writes = Writes::default();
        for (at, &(now, is_unhurried, is_put_off)) in turns.iter().enumerate() {
            writes.end_turn(Time(now * 1_000), is_unhurried);
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

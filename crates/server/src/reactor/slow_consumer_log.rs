//! Logs slow consumers of direct messages: one line when an episode begins, one when it ends, and one for
//! spooled messages that they miss if an operator can do something about it.

use crate::logs::OncePerSecond;
use angarium_node::{Node, SlowConsumerEvent, SpillLoss};
use std::time::Instant;

/// What is logged already, by [`SpillLoss`].
#[derive(Debug, Default)]
pub(super) struct SlowConsumers([Losses; SpillLoss::ALL.len()]);

/// Messages missed for one reason.
#[derive(Debug, Default)]
struct Losses {
    told: u64,
    lines: OncePerSecond,
}

impl Losses {
    /// How many of `missed` messages are not logged yet, if a line is due: at most one a second.
    fn news(&mut self, missed: u64, now: impl FnOnce() -> Instant) -> Option<u64> {
        if missed == self.told {
            return None;
        }
        self.lines.pass(now())?;
        Some(missed - std::mem::replace(&mut self.told, missed))
    }
}

impl SlowConsumers {
    /// Logs what is new.
    pub(super) fn look(&mut self, node: &mut Node) {
        while let Some(event) = node.next_slow_consumer_event() {
            tell(&event);
        }
        for loss in SpillLoss::ALL {
            let text = match loss {
                SpillLoss::FailedDisk => {
                    "the spill log cannot be written or read: messages spooled for slow consumers are \
                     missed; if the disk is full, make room on it or lower spool-bytes-max"
                }
                SpillLoss::SlowDisk => {
                    "the disk does not keep up with messages for slow consumers: they miss those that \
                     come while 32 MiB are unwritten"
                }
                SpillLoss::FullJournal => {
                    "persistent messages need the disk: slow consumers miss their spooled messages, \
                     and for a minute those that do not fit in memory; make room on the disk or lower \
                     spool-bytes-max"
                }
                SpillLoss::Limit | SpillLoss::SlowConsumers => continue,
            };
            let news = self.0[loss as usize].news(node.spill().missed(loss), Instant::now);
            let Some(missed) = news else { continue };
            if loss == SpillLoss::FailedDisk {
                let why = node.spill().stats().last_failure.unwrap_or_default();
                tracing::error!(why, missed, "{text}");
            } else {
                tracing::warn!(missed, "{text}");
            }
        }
    }
}

fn tell(event: &SlowConsumerEvent) {
    let SlowConsumerEvent { connection, peer, user, vhost, name, missed, spooled, .. } = event;
    let policy = event.policy.name();
    let news = news(event);
    if event.has_begun {
        tracing::warn!(connection, peer, user, vhost, name, policy, "{news}");
    } else {
        let seconds = event.lasted.as_secs_f64();
        let is_gone = event.is_gone;
        // At the level of its beginning, so that both are read.
        tracing::warn!(
            connection, peer, user, vhost, name, policy, missed, spooled, seconds, is_gone,
            "{news}"
        );
    }
}

/// The text of the log line.
fn news(event: &SlowConsumerEvent) -> &'static str {
    match event {
        SlowConsumerEvent { has_begun: true, .. } => "a client is too slow for direct messages",
        SlowConsumerEvent { is_gone: true, .. } => {
            "a client that was too slow for direct messages is gone"
        }
        _ => "a client is too slow for direct messages no longer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angarium_engine::SlowConsumerPolicy;
    use std::time::Duration;

    #[test]
    fn what_is_missed_is_told_of_once_a_second_and_all_of_it() {
        let start = Instant::now();
        let mut losses = Losses::default();
        for (millis, missed, told) in [
            (0, 0, None),
            (1, 3, Some(3)),
            (2, 3, None),
            (3, 4, None),
            (900, 9, None),
            (1_001, 9, Some(6)),
            (1_500, 9, None),
            (2_100, 10, Some(1)),
        ] {
            let now = || start + Duration::from_millis(millis);
            assert_eq!(losses.news(missed, now), told, "after {millis} ms");
        }
    }

    #[test]
    fn one_that_is_gone_is_not_said_to_be_quick_enough() {
        let event = |has_begun, is_gone| SlowConsumerEvent {
            has_begun,
            connection: 1,
            peer: String::new(),
            user: String::new(),
            vhost: String::new(),
            name: None,
            policy: SlowConsumerPolicy::Spool,
            missed: 0,
            spooled: 0,
            lasted: Duration::ZERO,
            is_gone,
        };
        for (has_begun, is_gone, said) in [
            (true, false, "is too slow for direct messages"),
            (false, false, "is too slow for direct messages no longer"),
            (false, true, "was too slow for direct messages is gone"),
        ] {
            let news = news(&event(has_begun, is_gone));
            assert!(news.ends_with(said), "{news}");
        }
    }
}

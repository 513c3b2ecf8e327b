//! Logs what is wrong with the disk and what to do: that it is full or has failed, and what the engine
//! could not read back.

use angarium_engine::{Engine, GivenUp, Position};
use angarium_journal::State;
use angarium_node::Node;
use std::collections::BTreeSet;

/// What is logged already.
#[derive(Debug, Default)]
pub(super) struct StorageAlerts {
    journal: State,
    unreadable: u64,
    given_up: u64,
    queue_stops: u64,
    /// Stopped queues, by virtual host, name and place.
    stopped: BTreeSet<(String, String, Position)>,
}

impl StorageAlerts {
    /// Compares the journal's state and the engine's counters with the last ones, and logs changes.
    pub(super) fn look(&mut self, node: &mut Node) {
        if node.engine().counters().given_up > self.given_up {
            self.given_up = node.engine().counters().given_up;
            tell_given_up(node);
        }
        let (state, engine) = (node.journal().state(), node.engine());
        let (kind, shortage) = (node.journal().shortage_kind(), node.journal().shortage());
        if let Some(news) = self.news(state, kind, shortage) {
            match state {
                State::Failed(_) => tracing::error!("{news}"),
                State::Ready | State::Full => tracing::warn!("{news}"),
            }
        }
        let counters = engine.counters();
        if counters.unreadable > self.unreadable {
            let records = counters.unreadable - self.unreadable;
            self.unreadable = counters.unreadable;
            tracing::error!(
                records,
                "records of the journal cannot be read back; stop the broker and run \
                 `angarium journal check` to see what is damaged"
            );
        }
        if counters.queue_stops > self.queue_stops {
            self.queue_stops = counters.queue_stops;
            self.tell_stopped(engine);
        }
    }

    /// What a change of the journal's state means to the operator.
    fn news(&mut self, state: &State, kind: &str, shortage: &str) -> Option<String> {
        if *state == self.journal {
            return None;
        }
        self.journal = state.clone();
        Some(match state {
            State::Ready => "there is room again: persistent messages are taken".to_owned(),
            State::Full => format!(
                "{kind}: {shortage}; persistent messages are refused until there is room; consumers are \
                 served"
            ),
            State::Failed(why) => format!(
                "the disk failed: {why}; persistent messages are refused, consumers are served: \
                 see to the disk and start the broker again"
            ),
        })
    }

    fn tell_stopped(&mut self, engine: &Engine) {
        let stopped: BTreeSet<_> = engine
            .list_queues()
            .filter_map(|it| Some((it.vhost.to_owned(), it.name.to_owned(), it.unreadable?)))
            .collect();
        for (vhost, queue, position) in stopped.difference(&self.stopped) {
            tracing::error!(
                vhost,
                queue,
                at = place(*position),
                "a queue has stopped at a message that cannot be read back, and its consumers were \
                 cancelled; nothing was dropped: restore the file and start the broker again, or \
                 purge or delete the queue"
            );
        }
        self.stopped = stopped;
    }
}

/// Names messages that were gone because a repair of the journal had given them up.
fn tell_given_up(node: &mut Node) {
    for GivenUp { vhost, queue, position, messages } in node.take_given_up() {
        let at = place(position);
        tracing::error!(vhost, queue, at, messages, "lost: a repair of the journal gave them up");
    }
}

/// A place in the journal, as `angarium journal check` names it.
fn place(position: Position) -> String {
    let offset = position.0 & u64::from(u32::MAX);
    format!("{:08}.segment at offset {offset}", position.segment())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_of_the_disk_is_told_once() {
        let mut alerts = StorageAlerts::default();
        let failed = State::Failed("cannot flush 00000001.segment: Input/output error".to_owned());
        for (state, told) in [
            (State::Ready, None),
            (State::Full, Some("the disk is full: cannot create a file; persistent")),
            (State::Full, None),
            (State::Ready, Some("there is room again")),
            (failed.clone(), Some("the disk failed: cannot flush 00000001.segment")),
            (failed, None),
        ] {
            let news = alerts.news(&state, "the disk is full", "cannot create a file");
            assert_eq!(news.is_some(), told.is_some(), "{state:?}: {news:?}");
            assert!(news.unwrap_or_default().starts_with(told.unwrap_or_default()), "{state:?}");
        }
    }
}

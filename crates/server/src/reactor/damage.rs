//! Says in the log what the engine found that cannot be read back, and what to do about it.

use angarium_engine::{Engine, Position};
use std::collections::BTreeSet;

/// What was said already.
#[derive(Debug, Default)]
pub(super) struct Damage {
    unreadable: u64,
    queue_stops: u64,
    /// Stopped queues, by virtual host, name and place.
    stopped: BTreeSet<(String, String, Position)>,
}

impl Damage {
    /// Looks at the engine's counters; says what is new.
    pub(super) fn look(&mut self, engine: &Engine) {
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

    fn tell_stopped(&mut self, engine: &Engine) {
        let stopped: BTreeSet<_> = engine
            .list_queues()
            .filter_map(|queue| {
                Some((queue.vhost.to_owned(), queue.name.to_owned(), queue.unreadable?))
            })
            .collect();
        for (vhost, queue, position) in stopped.difference(&self.stopped) {
            tracing::error!(
                ?vhost,
                ?queue,
                at = place(*position),
                "a queue has stopped at a message that cannot be read back, and its consumers were \
                 cancelled; nothing was dropped: restore the file and start the broker again, or \
                 purge or delete the queue"
            );
        }
        self.stopped = stopped;
    }
}

/// A place in the journal, as `angarium journal check` names it.
fn place(position: Position) -> String {
    let offset = position.0 & u64::from(u32::MAX);
    format!("{:08}.segment at offset {offset}", position.segment())
}

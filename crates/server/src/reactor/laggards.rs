//! Says in the log which clients are too slow for direct messages: one line when an episode begins, one
//! when it ends. Says too when the spill log loses something.

use angarium_node::{LagEvent, Node};

/// What was said already.
#[derive(Debug, Default)]
pub(super) struct Laggards {
    spill_failures: u64,
}

impl Laggards {
    /// Says what is new.
    pub(super) fn look(&mut self, node: &mut Node) {
        while let Some(event) = node.next_lag_event() {
            tell(&event);
        }
        let failures = node.spill_failures();
        if failures > self.spill_failures {
            self.spill_failures = failures;
            let why = node.spill_stats().last_failure.unwrap_or_default();
            tracing::error!(
                why,
                failures,
                "the spill log cannot be written or read: messages that waited there for slow \
                 clients are missed"
            );
        }
    }
}

fn tell(event: &LagEvent) {
    let LagEvent { connection, peer, user, vhost, name, missed, spooled, .. } = event;
    let policy = event.policy.name();
    if event.has_begun {
        tracing::warn!(
            connection,
            peer,
            user,
            vhost,
            name,
            policy,
            "a client is too slow for direct messages"
        );
    } else {
        let seconds = event.lasted.as_secs_f64();
        let is_gone = event.is_gone;
        // As loud as its beginning: who reads of one waits for the other.
        tracing::warn!(
            connection,
            peer,
            user,
            vhost,
            name,
            policy,
            missed,
            spooled,
            seconds,
            is_gone,
            "a client is too slow for direct messages no longer"
        );
    }
}

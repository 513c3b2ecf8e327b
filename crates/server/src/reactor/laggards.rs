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
    let news = news(event);
    if event.has_begun {
        tracing::warn!(connection, peer, user, vhost, name, policy, "{news}");
    } else {
        let seconds = event.lasted.as_secs_f64();
        let is_gone = event.is_gone;
        // As loud as its beginning: who reads of one waits for the other.
        tracing::warn!(
            connection, peer, user, vhost, name, policy, missed, spooled, seconds, is_gone,
            "{news}"
        );
    }
}

/// What has happened to a client.
fn news(event: &LagEvent) -> &'static str {
    match event {
        LagEvent { has_begun: true, .. } => "a client is too slow for direct messages",
        LagEvent { is_gone: true, .. } => "a client that was too slow for direct messages is gone",
        _ => "a client is too slow for direct messages no longer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angarium_engine::Laggard;
    use std::time::Duration;

    #[test]
    fn one_that_is_gone_is_not_said_to_be_quick_enough() {
        let event = |has_begun, is_gone| LagEvent {
            has_begun,
            connection: 1,
            peer: String::new(),
            user: String::new(),
            vhost: String::new(),
            name: None,
            policy: Laggard::Spool,
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

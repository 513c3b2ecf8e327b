//! Clients that take nothing of what is sent to them: after a while they are disconnected, though they may
//! send signs of life.

use crate::node::Node;
use angarium_engine::{ConnectionId, SlowConsumerPolicy, Time};
use angarium_protocol::Close;

impl Node {
    /// Called twice a second for each connection: ends it where it has had output for long and has taken
    /// nothing of it. One whose direct messages are dropped or spooled may stay.
    pub(crate) fn end_if_stalled(&mut self, now: Time, id: ConnectionId) {
        let Some(timeout) = self.options.send_timeout else { return };
        let outbox = &self.effects.outbox[id.0 as usize];
        let unsent = outbox.unsent();
        let policies = [outbox.slow_consumer_policy, outbox.lag.policy];
        let may_stay = outbox.writer.has_subscribers()
            && (outbox.spooled.is_some()
                || policies.iter().any(|policy| *policy != SlowConsumerPolicy::Disconnect));
        let Some(connection) = self.connections.get_mut(id) else { return };
        let has_taken = std::mem::take(&mut connection.has_taken);
        if has_taken || unsent == 0 || may_stay || connection.ended.is_some() {
            connection.taken_at = now;
        }
        if now.since(connection.taken_at) < timeout {
            return;
        }
        let seconds = timeout.as_secs();
        let reason = format!("stalled: took nothing of {unsent} bytes for {seconds} s");
        self.stats.stalled_disconnected += 1;
        self.end_late(now, id, Close { reason });
        self.effects.outbox[id.0 as usize].discard();
    }
}

//! Handlers for which what their writers have written leaves something to do.

use crate::effects::NodeEffects;
use crate::node::Node;
use angarium_engine::{ConnectionId, Time};
use angarium_protocol::ProtocolHandler;

impl NodeEffects {
    /// Notes that a connection's handler has something to do, if it has.
    #[inline(always)]
    pub(crate) fn note_call(&mut self, connection: ConnectionId) {
        if self.outbox[connection.0 as usize].writer.output.calls_handler {
            self.calling.push(connection);
        }
    }
}

impl Node {
    /// Calls those handlers.
    pub(crate) fn call_handlers(&mut self, now: Time) {
        for id in std::mem::take(&mut self.effects.calling) {
            let output = &mut self.effects.outbox[id.0 as usize].writer.output;
            if std::mem::take(&mut output.calls_handler) {
                self.resume_with(now, id, |handler, context| handler.written(context));
            }
        }
    }
}

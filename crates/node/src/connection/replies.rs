//! Answers of the engine on their way to the connections that wait for them.

use crate::effects::{Answer, NodeEffects};
use crate::node::Node;
use crate::shard::message::{FromHome, ShardMessage, Value};
use angarium_engine::{ChannelId, Refusal, Reply, Time};
use angarium_protocol::ProtocolHandler;

impl Node {
    /// Hands a channel the answer to its request.
    pub(crate) fn hand_reply(
        &mut self,
        now: Time,
        channel: ChannelId,
        reply: Result<Reply, Refusal>,
    ) {
        let id = channel.connection;
        let Some(connection) = self.connections.slots[id.0 as usize].as_ref() else {
            if let Some(reply) = self.answer_in_process(id, reply) {
                self.answer_administrator(now, id, reply);
            }
            return;
        };
        let has_input = !connection.carry.is_empty();
        self.with_handler(now, id, |handler, context| handler.replied(context, channel, reply));
        if has_input {
            self.connections.resumable.push(id);
        }
    }

    /// The next answer that may be given.
    fn next_answer(&mut self) -> Option<Answer> {
        let NodeEffects { replies, links, .. } = &mut self.effects;
        // Those that wait are about bindings, users and the like; all others go past them.
        let at = replies.iter().position(|answer| links.is_known(answer.after))?;
        replies.remove(at)
    }

    /// Hands the engine's answers to their channels and credentials to the host; says whether there
    /// were any answers.
    pub(crate) fn answer(&mut self, now: Time) -> bool {
        let mut has_answered = false;
        while let Some(answer) = self.next_answer() {
            let Answer { channel, reply, .. } = answer;
            has_answered = true;
            if let Some((shard, name)) = self.effects.name_of(channel) {
                // A refusal ends the channel on its own shard.
                if reply.is_err() {
                    self.engine.tell_confirms_of(channel, &mut self.effects);
                }
                self.effects.links.say_with(
                    shard,
                    &ShardMessage::FromHome(FromHome::Reply(name)),
                    Value::Reply(reply),
                );
                continue;
            }
            self.hand_reply(now, channel, reply);
        }
        self.take_credentials(now);
        if !self.effects.connection_queries.is_empty() {
            self.begin_queries();
        }
        has_answered
    }
}

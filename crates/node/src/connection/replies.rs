//! Answers on their way to the sessions that wait for them.

use crate::effects::{Answer, NodeEffects};
use crate::node::Node;
use crate::shard::message::{FromHome, ShardMessage, Value};
use angarium_engine::{ChannelId, Refusal, Reply, Time};
use angarium_protocol::ProtocolHandler;

impl Node {
    /// Hands a session the answer to its request.
    pub(crate) fn hand_reply(
        &mut self,
        now: Time,
        session: ChannelId,
        reply: Result<Reply, Refusal>,
    ) {
        let id = session.connection;
        let Some(connection) = self.connections[id.0 as usize].as_ref() else {
            return self.answer_operator(now, id, reply);
        };
        let has_input = !connection.carry.is_empty();
        match self.at_session(now, id, |at, context| at.replied(context, session, reply)) {
            Some(Ok(())) if has_input => self.resumable.push(id),
            Some(Err(close)) => self.end(now, id, close),
            _ => {}
        }
    }

    /// The next answer that may be given.
    fn next_answer(&mut self) -> Option<Answer> {
        let NodeEffects { replies, links, .. } = &mut self.effects;
        // Those that wait are about bindings, users and the like; all others go past them.
        let at = replies.iter().position(|answer| links.is_known(answer.after))?;
        replies.remove(at)
    }

    /// Hands the engine's answers to their sessions and credentials to the host; says whether there
    /// were any answers.
    pub(crate) fn answer(&mut self, now: Time) -> bool {
        let mut has_answered = false;
        while let Some(answer) = self.next_answer() {
            let Answer { channel: session, reply, .. } = answer;
            has_answered = true;
            if let Some((shard, name)) = self.effects.name_of(session) {
                // A refusal ends the session on its own shard.
                if reply.is_err() {
                    self.engine.tell_confirms_of(session, &mut self.effects);
                }
                self.effects.links.say_with(
                    shard,
                    &ShardMessage::FromHome(FromHome::Reply(name)),
                    Value::Reply(reply),
                );
                continue;
            }
            self.hand_reply(now, session, reply);
        }
        self.take_credentials(now);
        if !self.effects.surveys.is_empty() {
            self.take_surveys();
        }
        has_answered
    }
}

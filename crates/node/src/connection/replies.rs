//! Answers of the engine on their way to the channels that wait for them, here and on other shards; and, at
//! home, notices of lost sessions, which come before.

use crate::connection::in_process_events::InProcessEvent;
use crate::effects::{Answer, NodeEffects};
use crate::node::Node;
use crate::shard::message::{FromHome, Value};
use angarium_engine::{ChannelId, Refusal, RefusalKind, Reply, SessionLoss, Time};
use angarium_protocol::ProtocolHandler;

impl Node {
    pub(crate) fn hand_reply(
        &mut self,
        now: Time,
        channel: ChannelId,
        reply: Result<Reply, Refusal>,
    ) {
        let id = channel.connection;
        let Some(connection) = self.connections.get(id) else {
            if !self.effects.in_process.has(id) {
                return self.answer_administrator(now, id, reply);
            }
            return self.effects.in_process.tell(id, InProcessEvent::Reply(reply));
        };
        let has_input = !connection.carry.is_empty();
        let replied =
            self.with_handler(now, id, |handler, context| handler.replied(context, channel, reply));
        if replied.is_some() {
            self.effects.note_call(id);
            if has_input {
                self.connections.resumable.push(id);
            }
        }
    }

    /// Tells channels of this shard which sessions they do not hold any more.
    fn tell_lost_sessions(&mut self, now: Time) {
        for (channel, session, why) in std::mem::take(&mut self.effects.lost_sessions) {
            self.tell_session_lost(now, channel, &session, why);
        }
    }

    /// Tells a channel of this shard that it does not hold a session any more.
    pub(crate) fn tell_session_lost(
        &mut self,
        now: Time,
        channel: ChannelId,
        session: &str,
        why: SessionLoss,
    ) {
        let id = channel.connection;
        if self.effects.in_process.has(id) {
            let session = session.to_owned();
            return self.effects.in_process.tell(id, InProcessEvent::SessionLost { session, why });
        }
        self.resume_with(now, id, |handler, context| {
            handler.session_lost(context, channel, session, why)
        });
    }

    /// The next answer that may be given.
    fn next_answer(&mut self) -> Option<Answer> {
        let NodeEffects { replies, links, .. } = &mut self.effects;
        // Those that wait are about bindings, users and the like; those of other channels go past them.
        let mut behind = Vec::new();
        let at = replies.iter().position(|answer| {
            let waits = !links.is_known(answer.after) || behind.contains(&answer.channel);
            if waits {
                behind.push(answer.channel);
            }
            !waits
        })?;
        replies.remove(at)
    }

    /// Hands the engine's answers to their channels and credentials to the host; says whether there
    /// were any answers.
    pub(crate) fn answer(&mut self, now: Time) -> bool {
        let mut has_answered = false;
        self.tell_lost_sessions(now);
        while let Some(answer) = self.next_answer() {
            let Answer { channel, reply, .. } = answer;
            has_answered = true;
            if let Some((shard, name)) = self.effects.name_of(channel) {
                // A refusal ends the channel on its own shard.
                if reply.is_err() {
                    self.engine.tell_confirms_of(channel, &mut self.effects);
                }
                let value = Value::Reply(reply);
                self.effects.links.say_with(shard, FromHome::Reply { name }, value);
                continue;
            }
            self.hand_reply(now, channel, reply);
            self.tell_lost_sessions(now);
        }
        self.take_credentials(now);
        self.ask_for_vhosts();
        while let Some(id) = self.effects.entered.pop() {
            self.apply_quota(id);
        }
        if !self.effects.connection_queries.is_empty() {
            self.begin_queries();
        }
        has_answered
    }
}

impl NodeEffects {
    /// The news that all shards have to know before an answer is given. A claim waits for all notices of lost
    /// sessions: the one that an earlier claim of its session waited for may be among them.
    pub(crate) fn news_before(&self, reply: &Result<Reply, Refusal>) -> u64 {
        match reply {
            Ok(Reply::Session(_)) => self.news_in_call.max(self.session_notices),
            _ => self.news_in_call,
        }
    }

    /// Tells a channel that it does not hold a session any more. Answers of this call, and to all claims from
    /// now on, wait until its shard has told it.
    pub(crate) fn lose_session(&mut self, channel: ChannelId, session: &str, why: SessionLoss) {
        match (self.name_of(channel), self.refuse_claim(channel, session)) {
            (Some((shard, name)), refused) => {
                match refused {
                    Some(reply) => {
                        let value = Value::Reply(reply);
                        self.links.say_with(shard, FromHome::Reply { name }, value);
                    }
                    None => self.links.say(shard, FromHome::SessionLost { name, session, why }),
                }
                self.links.sync(None);
                self.news_in_call = self.links.last_news;
                self.session_notices = self.news_in_call;
            }
            // It goes before the answers of this call, which are not there yet.
            (None, Some(reply)) => self.replies.push_front(Answer { channel, reply, after: 0 }),
            (None, None) => self.lost_sessions.push((channel, session.to_owned(), why)),
        }
    }

    /// Takes back a claim that was granted and whose answer its channel has not seen; returns the refusal
    /// that it gets instead.
    fn refuse_claim(
        &mut self,
        channel: ChannelId,
        session: &str,
    ) -> Option<Result<Reply, Refusal>> {
        let is_its_claim = |answer: &Answer| {
            let is_claim =
                matches!(&answer.reply, Ok(Reply::Session(claimed)) if *claimed.name == *session);
            answer.channel == channel && is_claim
        };
        let at = self.replies.iter().position(is_its_claim)?;
        self.replies.remove(at);
        let text = format!("session '{session}' was lost before its claim was answered");
        Some(Err(Refusal::new(RefusalKind::ResourceLocked, text)))
    }
}

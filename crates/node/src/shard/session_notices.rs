//! Tells the channels of this and other shards, at home, that they lost sessions.

use crate::effects::{Answer, NodeEffects};
use crate::shard::message::{FromHome, ShardMessage, Value};
use angarium_engine::{ChannelId, Refusal, RefusalKind, Reply, SessionLoss};

impl NodeEffects {
    /// The news that all shards have to know before an answer is given. A claim waits for all notices of lost
    /// sessions: the one that an earlier claim of its session waited for may be among them.
    pub(crate) fn news_before(&self, reply: &Result<Reply, Refusal>) -> u64 {
        match reply {
            Ok(Reply::Session { .. }) => self.news_in_call.max(self.session_notices),
            _ => self.news_in_call,
        }
    }

    /// Tells a channel that it does not hold a session any more. Answers of this call, and to all claims from
    /// now on, wait until its shard has told it.
    pub(crate) fn lose_session(&mut self, channel: ChannelId, session: &str, why: SessionLoss) {
        let refused = self.refuse_claim(channel, session);
        match (self.name_of(channel), refused) {
            (Some((shard, name)), refused) => {
                match refused {
                    Some(reply) => {
                        let message = ShardMessage::FromHome(FromHome::Reply(name));
                        self.links.say_with(shard, &message, Value::Reply(reply));
                    }
                    None => {
                        let message = FromHome::SessionLost(name, session, why);
                        self.links.say(shard, &ShardMessage::FromHome(message));
                    }
                }
                self.links.sync_all();
                self.news_in_call = self.links.last_news();
                self.session_notices = self.news_in_call;
            }
            // It goes before the answers of this call, which are not there yet.
            (None, Some(reply)) => self.replies.push_front(Answer { channel, reply, after: 0 }),
            (None, None) => self.session_lost_here(channel, session, why),
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
                matches!(&answer.reply, Ok(Reply::Session { name, .. }) if **name == *session);
            answer.channel == channel && is_claim
        };
        let at = self.replies.iter().position(is_its_claim)?;
        self.replies.remove(at);
        let text = format!("session '{session}' was lost before its claim was answered");
        Some(Err(Refusal::new(RefusalKind::ResourceLocked, text)))
    }
}

//! The node as one shard of a broker: batches out and in.
//!
//! Home is the shard with queues, journal, users and virtual hosts; the others have copies of the last
//! two. A client of any shard reaches all subscribers.

pub(crate) mod inbox;
pub(crate) mod links;
pub(crate) mod message;
pub(crate) mod remote_connection;
pub(crate) mod remote_queues;

use crate::flow::rate::Party;
use crate::node::Node;
use crate::shard::links::ShardLinks;
use crate::shard::message::{
    CarriedBody, FromHome, ShardBatch, ShardMessage, UNDERSTOOD, Value, plain_batch_item,
};
use angarium_engine::{
    Annotations, BatchRoom, CachedRoute, ConnectionId, Forward, Reached, ShardId, Time,
};
use angarium_protocol::{CONVENTIONS, ProtocolHandler, reply_of};
use std::collections::VecDeque;

/// Messages in a row, in the batch at hand.
#[derive(Debug, Default)]
pub(crate) struct Rows<'a> {
    /// What they have in common.
    pub(crate) row: Option<Forward<'a>>,
    /// The route that the last of them took.
    pub(crate) cached_route: Option<CachedRoute>,
}

impl Node {
    /// What the other shards of this broker have to know when they begin. The host asks home for it once,
    /// before its first turn; all news up to then are in it.
    #[must_use]
    pub fn introduction(&mut self) -> Vec<Vec<u8>> {
        self.effects.links = ShardLinks::new(&self.options);
        if let Some(why) = &self.storage.blocked {
            self.effects.links.say_to_all(FromHome::Blocked { why: Some(why) });
        }
        if self.storage.spill_resumes.is_some() {
            self.effects.links.say_to_all(FromHome::Yield { yields: true });
        }
        self.engine.introduction()
    }

    /// The next batch for another shard, which gets it by [`Node::arrived`], in order. The host asks
    /// at the end of each turn.
    pub fn next_batch(&mut self) -> Option<(ShardId, ShardBatch)> {
        self.effects.links.next_batch()
    }

    /// Lets connections go on whose news all shards know.
    pub(crate) fn let_settled_go_on(&mut self, now: Time) {
        while let Some(connection) = self.effects.links.next_settled() {
            self.resume_with(now, connection, |handler, context| handler.known_to_shards(context));
        }
    }

    /// Handles a message of another shard; `bytes` is its length, `values` and `rows` are of its batch.
    pub(crate) fn take_shard_message<'a>(
        &mut self,
        now: Time,
        from: ShardId,
        message: &ShardMessage<'a>,
        bytes: usize,
        values: &mut VecDeque<Value>,
        rows: &mut Rows<'a>,
    ) {
        // What was found out holds for as long as nothing but messages of the row arrives.
        let found = rows.cached_route.take();
        match *message {
            ShardMessage::News { news } => self.take_news(now, from, news),
            ShardMessage::Spent { user, vhost, messages, bytes } => {
                let party = Party::of(user, vhost);
                self.spent_elsewhere(now, &party, messages, bytes);
            }
            ShardMessage::Held { user, bytes } => self.memory.set_elsewhere(from, user, bytes),
            ShardMessage::ConnectionQuery { asker } => {
                let Some(Value::ConnectionQuery(query)) = values.pop_front() else { return };
                self.connections.connection_queries.look_for(from, asker, *query);
            }
            ShardMessage::QueryResult { asker } => {
                let Some(Value::QueryResult(found)) = values.pop_front() else { return };
                self.take_query_result(now, asker, *found);
            }
            ShardMessage::Sync => self.effects.links.learned(from),
            ShardMessage::Forward { message } => {
                let CarriedBody { body, bytes } = CarriedBody::of(message, bytes, values);
                self.effects.links.took(from, bytes);
                let mut annotations = Annotations::default();
                let forward =
                    Forward::parse(message, &mut annotations, body.as_ref(), &CONVENTIONS.names);
                let forward = forward.expect(UNDERSTOOD);
                self.take_forward(now, &forward, &mut None);
            }
            ShardMessage::BatchHead { head } => {
                self.effects.links.took(from, bytes);
                let header = Forward::parse_header(head, &CONVENTIONS.names);
                rows.row = Some(header.expect(UNDERSTOOD));
            }
            ShardMessage::BatchItem { properties, body } => {
                self.effects.links.took(from, bytes);
                rows.cached_route = found;
                let header = rows.row.as_ref().expect(UNDERSTOOD);
                let forward = header.with(properties.0, body);
                self.take_forward(now, &forward, &mut rows.cached_route);
            }
            ShardMessage::Taken { news, bytes } => {
                for publisher in self.effects.links.taken(from, news, bytes) {
                    self.effects.stalls.end(publisher);
                }
            }
            ShardMessage::SubscriberPace { publisher, pace } => {
                if self.effects.links.note_pace(from, publisher, pace) {
                    self.effects.stalls.end(publisher);
                }
            }
            ShardMessage::WideFanout { publisher, is_over } => self.note_wide(publisher, is_over),
            ShardMessage::Undelivered { publisher, subject, reply } => {
                self.tell_undelivered(now, publisher, subject, reply);
            }
            ShardMessage::Ended { revocation } => self.administration.revocations.begin(revocation),
            ShardMessage::ToHome { request } => {
                self.serve_remote(now, from, &request, bytes, values);
            }
            ShardMessage::FromHome { answer } => self.take_from_home(now, &answer, bytes, values),
        }
    }

    /// A message of a connection has begun to reach very many on another shard, or has reached all there.
    fn note_wide(&mut self, publisher: ConnectionId, is_over: bool) {
        let remote =
            self.effects.outbox.get(publisher.0 as usize).and_then(|it| it.remote.as_ref());
        if let Some((shard, publisher)) = remote.map(|remote| (remote.shard, remote.connection)) {
            let message = ShardMessage::WideFanout { publisher, is_over };
            return self.effects.links.say(shard, message);
        }
        if self.effects.links.note_wide_fanout(publisher, is_over) && self.is_open(publisher) {
            self.connections.resumable.push(publisher);
        }
    }

    fn take_news(&mut self, now: Time, from: ShardId, news: &[u8]) {
        self.effects.links.learned(from);
        if let Some(revocation) = self.engine.revoked_by(news) {
            self.end_all(now, revocation);
        }
        self.engine.apply_sync(from, news, &mut self.effects).expect(UNDERSTOOD);
    }

    #[inline]
    fn take_forward(
        &mut self,
        now: Time,
        forward: &Forward<'_>,
        cached_route: &mut Option<CachedRoute>,
    ) {
        self.effects.stalls.clear_slow();
        let reached = self.engine.forwarded(now, forward, cached_route, &mut self.effects);
        let Forward { origin, subject, message, .. } = *forward;
        let Some(publisher) = forward.publisher else { return };
        self.note_reached(now, origin, publisher, reached);
        if forward.asks && reached.is_nobody() {
            let is_own = origin == self.options.shard;
            let reply = reply_of(message.format, message.properties).unwrap_or_default();
            if is_own {
                self.tell_undelivered(now, publisher, subject, reply);
            } else {
                let message = ShardMessage::Undelivered { publisher, subject, reply };
                self.effects.links.say(origin, message);
            }
        }
    }

    /// Takes the messages of a row that come next in a batch and have no properties, if there are several;
    /// says how many bytes they took.
    #[inline]
    pub(crate) fn take_batch_items(
        &mut self,
        now: Time,
        from: ShardId,
        mut messages: &[u8],
        rows: &mut Rows<'_>,
    ) -> usize {
        let (Some(row), Some(cached_route)) = (&rows.row, &rows.cached_route) else { return 0 };
        // Where the next one has properties, those behind it will have some, too.
        if plain_batch_item(messages).is_none() {
            return 0;
        }
        let Some(mut room) = self.engine.batch_room(cached_route) else { return 0 };
        let mut bodies = [&[][..]; BatchRoom::MESSAGES_MAX];
        let (mut count, mut used) = (0, 0);
        while let Some((body, bytes)) = plain_batch_item(messages)
            && room.take(body.len())
        {
            messages = &messages[bytes..];
            bodies[count] = body;
            (count, used) = (count + 1, used + bytes);
        }
        if count < BatchRoom::MESSAGES_MIN {
            return 0;
        }
        self.effects.links.took(from, used);
        self.effects.stalls.clear_slow();
        let (bodies, route) = (&bodies[..count], &mut rows.cached_route);
        let reached = self.engine.forwarded_batch(row, bodies, route, &mut self.effects);
        if let Some(publisher) = row.publisher {
            self.note_reached(now, row.origin, publisher, reached);
        }
        used
    }

    /// Stalls a publisher all of whose subscribers here are slow. Its message may have come by way of a third
    /// shard, even back to its own.
    #[inline]
    fn note_reached(
        &mut self,
        now: Time,
        origin: ShardId,
        publisher: ConnectionId,
        reached: Reached,
    ) {
        let is_own = origin == self.options.shard;
        if reached.crowded && is_own {
            self.effects.stall_here(now, publisher);
        } else if reached.crowded {
            self.effects.stall_elsewhere(now, origin, publisher);
        }
    }

    fn tell_undelivered(&mut self, now: Time, publisher: ConnectionId, subject: &str, reply: &str) {
        // It may have gone, and another one be in its place, which has no such request.
        self.with_handler(now, publisher, |handler, context| {
            handler.no_responders(context, subject, reply)
        });
    }
}

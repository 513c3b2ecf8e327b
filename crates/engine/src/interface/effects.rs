//! Every output: what the host must do, in the order in which the engine calls.

use crate::{
    Call, ChannelId, ConnectionId, Forward, MessageView, Position, Refusal, Reply, Shards,
    SlowConsumerPolicy, Subscribe,
};
use bytes::Bytes;
use std::sync::Arc;

/// What the host does for the engine. Calls come in the order in which they must take effect; none
/// may call back into the engine.
pub trait Effects {
    /// Sends a message to a consumer.
    fn deliver(&mut self, delivery: &Delivery<'_>);
    /// Hands a direct message to one who subscribes, now or never.
    fn emit(&mut self, delivery: &Delivery<'_>) -> Heard;
    /// The same for several messages in a row with these payloads, of which `delivery` has everything
    /// else (its number is the first one's), if there is room for all of them: says how the last one is
    /// heard. If not, `None`: each is handed to it as any other.
    fn emit_burst(&mut self, delivery: &Delivery<'_>, bodies: &[&[u8]]) -> Option<Heard> {
        let _ = (delivery, bodies);
        None
    }
    /// Hands a direct message to other shards; each gets it by [`crate::Engine::forwarded`]. Says how
    /// far behind they are, the best of them.
    fn forward(&mut self, to: Shards, forward: &Forward<'_>) -> Heard {
        let _ = (to, forward);
        Heard::Missed
    }
    /// The same for several messages in a row with these payloads, of which `forward` has everything else.
    fn forward_burst(&mut self, to: Shards, forward: &Forward<'_>, bodies: &[&[u8]]) -> Heard {
        let mut heard = Heard::Missed;
        for body in bodies {
            heard = self.forward(to, &forward.with_body(body));
        }
        heard
    }
    /// Tells all other shards something, by [`crate::Engine::told`], in order. `by`: the connection
    /// whose doing it is; what it does next should not be seen by a shard that does not know it.
    fn tell(&mut self, by: Option<ConnectionId>, news: &[u8]) {
        let _ = (by, news);
    }
    /// What a connection would have the others told was told them before, on account of another one:
    /// what it does next should not be seen by a shard that does not know it either.
    fn was_told(&mut self, by: ConnectionId) {
        let _ = by;
    }
    /// Hands home what concerns queues; only on other shards.
    fn call(&mut self, call: Call<'_>) {
        let _ = call;
    }
    /// Tells a publisher what became of its publishes.
    fn confirm(&mut self, channel: ChannelId, confirm: Confirm);
    /// Gives an unroutable mandatory message back; comes before its confirm.
    fn returned(&mut self, channel: ChannelId, returned: &Returned<'_>);
    /// Tells a consumer that its consumer has ended (queue deleted, say).
    fn cancelled(&mut self, channel: ChannelId, consumer: &str);
    /// Tells one who subscribes that its user may not do so any more: it has ceased to. It is named by what
    /// it wished to hear.
    fn forbidden(&mut self, channel: ChannelId, subscribed: &Subscribe<'_>) {
        let _ = (channel, subscribed);
    }
    /// Answers a [`crate::Request`]; exactly once for each, in order per channel.
    fn reply(&mut self, channel: ChannelId, reply: Result<Reply, Refusal>);
    /// Whether the connection's output has room for another delivery. Where not, the host calls
    /// [`crate::Engine::writable`] once it has.
    fn has_room(&self, connection: ConnectionId) -> bool;

    /// Appends one record made of `parts` to the journal's current batch. `durable`: somebody waits
    /// for it to be flushed; a batch without such a record is written and not flushed.
    fn append(&mut self, parts: &[&[u8]], durable: bool) -> Position;
    /// The same for a record with something large between those parts and the last one: it may be copied
    /// later.
    fn append_shared(
        &mut self,
        (before, shared, after): (&[&[u8]], &Bytes, &[u8]),
        durable: bool,
    ) -> Position {
        self.append(&[before, &[shared, after]].concat(), durable)
    }
    /// What was appended last is to be written without delay, though nobody waits for it; other records that
    /// nobody waits for may be, a little later.
    fn hurry(&mut self) {}
    /// Makes sure that the next `records` appends, of `bytes` in sum, are recovered all or none.
    fn reserve(&mut self, bytes: usize, records: usize);
    /// `count` more live references to the record at `position` keep its segment.
    fn retain(&mut self, position: Position, count: u32);
    /// One live reference less.
    fn release(&mut self, position: Position, count: u32);
    /// Asks for records; the host answers with [`crate::Engine::loaded`], later, once.
    fn load(&mut self, load: Load);
    /// What is being put into a queue comes faster than its consumers get it: the host may read a
    /// little later from whoever sent it. Only a hint; a host that ignores it loses nothing.
    fn outrun(&mut self) {}
}

/// What became of a direct message for one subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is on its way.
    Well,
    /// It is on its way behind much that is not sent yet.
    Crowded,
    /// The subscriber is too far behind: it missed it.
    Missed,
}

/// Direct messages that were on their way to a subscriber and do not reach it after all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// How many.
    pub messages: u64,
    /// How many that were missed before they would have told of.
    pub untold: u64,
}

impl Lost {
    /// One message that would have told of `untold` others.
    #[must_use]
    pub fn one(untold: u64) -> Lost {
        Lost { messages: 1, untold }
    }

    /// Whether it is none.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Lost::default()
    }

    /// Without those of `other`.
    #[must_use]
    pub fn without(self, other: Lost) -> Lost {
        Lost {
            messages: self.messages.saturating_sub(other.messages),
            untold: self.untold.saturating_sub(other.untold),
        }
    }
}

impl std::ops::AddAssign for Lost {
    fn add_assign(&mut self, more: Lost) {
        self.messages += more.messages;
        self.untold += more.untold;
    }
}

/// One message for one consumer.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// The consumer's channel.
    pub channel: ChannelId,
    /// Its consumer; empty for the answer to [`crate::Request::Get`].
    pub consumer: &'a str,
    /// Counted up from 1 per channel; of a direct message, what names its subscriber.
    pub tag: u64,
    /// It may have been delivered before.
    pub redelivered: bool,
    /// Messages left in the queue; only meaningful for the answer to [`crate::Request::Get`].
    pub messages_left: u64,
    /// Direct messages for this consumer that its connection missed since the last one it heard.
    pub missed: u64,
    /// What becomes of a direct message if its connection is too slow; `None`: as for the connection.
    pub slow_consumer_policy: Option<SlowConsumerPolicy>,
    /// The same for all who hear one direct message; 0 for others.
    pub emission: u64,
    /// The same for direct messages in a row that have publisher and subject in common; 0: it is none of
    /// several.
    pub streak: u64,
    /// The message.
    pub message: MessageView<'a>,
}

/// What became of publishes, by their number within the channel (from 1, in confirm mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// The publish's number.
    pub number: u64,
    /// And every earlier one not yet confirmed.
    pub multiple: bool,
    /// Whether the broker took responsibility.
    pub accepted: bool,
}

/// A mandatory message that no queue took.
#[derive(Clone, Copy, Debug)]
pub struct Returned<'a> {
    /// The message.
    pub message: MessageView<'a>,
}

/// Names one [`Load`] until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadId(pub u64);

/// Records to be read back from the journal, off the shard's thread.
#[derive(Clone, Debug)]
pub struct Load {
    /// Comes back with the answer.
    pub id: LoadId,
    /// What to read, in this order.
    pub positions: Vec<Position>,
    /// With the answer the engine appends as much as it reads: dead letters, messages whose delay is
    /// over, stragglers. The host puts it off while the disk is behind with what was appended.
    pub appends: bool,
    /// It is for one who drains a queue beside others: what it takes of the processors matters more than
    /// when it comes.
    pub is_beside_others: bool,
}

/// The answer to a [`Load`]: the records in the order asked for, or why they cannot be read.
pub type Loaded = Result<Vec<Arc<[u8]>>, String>;

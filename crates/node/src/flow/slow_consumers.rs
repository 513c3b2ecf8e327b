//! Direct messages for slow consumers, by their policies.

use crate::effects::NodeEffects;
use crate::node::Node;
use crate::outbox::{Outbox, Whose};
use crate::spill::{NoMessage, PASSED_MAX, Spill, SpillStore};
use angarium_engine::{
    ChannelId, ConnectionId, DirectMessage, Engine, SendOutcome, SlowConsumerPolicy, Time,
};
use angarium_protocol::ProtocolHandler;

/// Unsent bytes from which on messages are spooled.
const SPOOL_AT_BYTES: usize = 1 << 20;
/// Bytes handed to slow consumers in one turn when a chunk has come from the disk.
const REFILL_BYTES: usize = 256 << 10;
/// Bytes that a message takes beside its content and its names, or fewer.
const FRAMING_BYTES: usize = 128;

impl NodeEffects {
    /// Sets what becomes of a connection's direct messages once it has `unsent_max` bytes unsent.
    pub(crate) fn set_policy(
        &mut self,
        id: ConnectionId,
        policy: SlowConsumerPolicy,
        unsent_max: usize,
    ) {
        let outbox = &mut self.outbox[id.0 as usize];
        outbox.unsent_allowed = unsent_max;
        outbox.unsent_max = unsent_max;
        outbox.next_policy = Some(policy);
        outbox.choose_path(self.outbox_bytes_max);
    }

    /// A direct message for a connection that is behind, or whose messages are looked at one by one.
    #[cold]
    pub(crate) fn send_by_policy(
        &mut self,
        message: &DirectMessage<'_>,
        unsent: usize,
    ) -> SendOutcome {
        self.last_batch.forget();
        let id = message.channel.connection;
        let outbox = &mut self.outbox[id.0 as usize];
        let is_late = unsent >= outbox.unsent_max;
        if outbox.is_given_up {
            self.note_missed(id, SlowConsumerPolicy::Disconnect, 1);
            return SendOutcome::Dropped;
        }
        let policy = match message.slow_consumer_policy.unwrap_or(outbox.slow_consumer_policy) {
            // Messages whose deliveries are counted can neither be taken out nor come later.
            SlowConsumerPolicy::Spool
            | SlowConsumerPolicy::DropOldest
            | SlowConsumerPolicy::Conflate
                if message.emission == 0 =>
            {
                SlowConsumerPolicy::DropNew
            }
            policy => policy,
        };
        match policy {
            SlowConsumerPolicy::Spool
                if outbox.spooled.is_some() || unsent >= outbox.spool_at() =>
            {
                self.spool(message)
            }
            SlowConsumerPolicy::Conflate
                if outbox.conflated.is_some()
                    || unsent >= outbox.conflate_at(self.outbox_bytes_max) =>
            {
                self.conflate(message)
            }
            SlowConsumerPolicy::DropOldest => self.send_droppable(message),
            SlowConsumerPolicy::Disconnect | SlowConsumerPolicy::DropNew if is_late => {
                if policy == SlowConsumerPolicy::Disconnect {
                    // It is to be ended, and gets no direct messages until then.
                    outbox.is_given_up = true;
                    outbox.choose_path(self.outbox_bytes_max);
                    self.given_up.push(id);
                }
                self.note_missed(id, policy, 1);
                SendOutcome::Dropped
            }
            // No publisher waits for one that can have the message later.
            SlowConsumerPolicy::Spool if unsent >= self.outbox_bytes_max => {
                self.write_direct_message(message);
                SendOutcome::Congested
            }
            _ => self.write_direct(message, unsent),
        }
    }

    /// Writes a direct message into its connection's output, behind `unsent` bytes.
    #[inline]
    pub(crate) fn write_direct(
        &mut self,
        message: &DirectMessage<'_>,
        unsent: usize,
    ) -> SendOutcome {
        self.write_direct_message(message);
        self.has_written(message.channel.connection, message.emission, unsent)
    }

    /// A direct message was written behind `unsent` bytes, alone or as the last of several.
    #[inline]
    pub(crate) fn has_written(
        &mut self,
        connection: ConnectionId,
        emission: u64,
        unsent: usize,
    ) -> SendOutcome {
        if unsent < self.outbox_bytes_max {
            return SendOutcome::Sent;
        }
        // No publisher waits for one that has half of its bound unsent.
        if unsent < self.outbox[connection.0 as usize].unsent_max / 2 {
            self.stalls.add_slow(emission, connection);
        }
        SendOutcome::Congested
    }

    /// Writes a message that may be dropped later; drops older ones where room is missing.
    fn send_droppable(&mut self, message: &DirectMessage<'_>) -> SendOutcome {
        let id = message.channel.connection;
        let slot = id.0 as usize;
        if self.outbox[slot].held() >= self.outbox[slot].unsent_max {
            let missed = self.drop_oldest(id);
            let is_late = self.outbox[slot].held() >= self.outbox[slot].unsent_max;
            self.note_missed(id, SlowConsumerPolicy::DropOldest, missed + u64::from(is_late));
            if is_late {
                return SendOutcome::Dropped;
            }
        }
        let whose = Whose { channel: message.channel.number, tag: message.tag };
        let outbox = &mut self.outbox[slot];
        let unsent = outbox.unsent();
        let has_large = message.message.shared.is_some();
        let start = outbox.prepare_droppable(about_bytes(message), has_large);
        self.touch(id).send_direct(message);
        self.outbox[slot].written_droppable(start, whose, message.missed);
        self.has_written(message.channel.connection, message.emission, unsent)
    }

    /// Drops a connection's oldest droppable messages until there is room; returns how many.
    fn drop_oldest(&mut self, id: ConnectionId) -> u64 {
        let mut missed = 0;
        let lost = &mut self.lost;
        self.outbox[id.0 as usize].drop_oldest(|whose, count| {
            let channel = ChannelId { connection: id, number: whose.channel };
            *lost.entry((channel, whose.tag)).or_default() += count;
            missed += count.messages;
        });
        let output = &mut self.outbox[id.0 as usize].writer.output;
        output.messages = output.messages.saturating_sub(missed);
        missed
    }

    /// Puts a message into the spill log. No publisher waits for a spooling consumer.
    fn spool(&mut self, message: &DirectMessage<'_>) -> SendOutcome {
        let id = message.channel.connection;
        let outbox = &mut self.outbox[id.0 as usize];
        let Some(number) = self.spill.store(outbox.spooled, message) else {
            self.note_missed(id, SlowConsumerPolicy::Spool, 1);
            return SendOutcome::Dropped;
        };
        outbox.spooled = Some(number);
        outbox.choose_path(self.outbox_bytes_max);
        self.note_spooled(id);
        SendOutcome::Congested
    }

    /// Keeps a message as the last one of its subject. No publisher waits for a consumer that gets only
    /// those.
    fn conflate(&mut self, message: &DirectMessage<'_>) -> SendOutcome {
        let id = message.channel.connection;
        let outbox = &mut self.outbox[id.0 as usize];
        let unsent = outbox.unsent();
        let conflated = outbox.conflated.get_or_insert_default();
        let mut missed = 0;
        if conflated.keep(message) {
            self.conflated += 1;
            missed += 1;
        }
        // More subjects than there is room for: those that have waited longest go.
        while unsent + conflated.bytes() > outbox.unsent_max
            && let Some((whose, lost)) = conflated.drop_first()
        {
            *self.lost.entry(whose).or_default() += lost;
            missed += 1;
        }
        outbox.choose_path(self.outbox_bytes_max);
        if missed > 0 {
            self.note_missed(id, SlowConsumerPolicy::Conflate, missed);
        }
        SendOutcome::Congested
    }

    /// Writes the last messages of subjects that a connection waits for into its output, as far as there is
    /// room.
    pub(crate) fn refill_conflated(&mut self, id: ConnectionId) {
        let most = self.outbox_bytes_max;
        let outbox = &mut self.outbox[id.0 as usize];
        let Some(mut conflated) = outbox.conflated.take() else { return };
        let mut has_output = false;
        while self.outbox[id.0 as usize].unsent() < most
            && let Some(kept) = conflated.take_first()
        {
            let outbox = &mut self.outbox[id.0 as usize];
            outbox.writer.send_direct(&kept.message());
            outbox.end_with_large();
            has_output = true;
        }
        let outbox = &mut self.outbox[id.0 as usize];
        if conflated.is_empty() {
            self.caught_up.push(id);
        } else {
            outbox.conflated = Some(conflated);
        }
        outbox.choose_path(most);
        if has_output {
            self.touch(id);
        }
    }

    /// Writes what a connection has in the spill log into its output, as far as there is room; returns how
    /// many bytes were looked at.
    pub(crate) fn refill(&mut self, id: ConnectionId) -> usize {
        let Some(number) = self.outbox[id.0 as usize].spooled else { return 0 };
        let (mut has_output, mut looked_at) = (false, 0);
        let before = self.outbox[id.0 as usize].unsent();
        while self.outbox[id.0 as usize].unsent() < self.outbox_bytes_max {
            match self.spill.next(number) {
                Ok(message) => {
                    let outbox = &mut self.outbox[id.0 as usize];
                    outbox.writer.send_direct(&message);
                    outbox.end_with_large();
                    has_output = true;
                }
                Err(NoMessage::Waits) => break,
                Err(NoMessage::Rests) => {
                    looked_at += PASSED_MAX;
                    break;
                }
                Err(NoMessage::CaughtUp) => {
                    self.end_spooling(id);
                    self.caught_up.push(id);
                    break;
                }
            }
        }
        if has_output {
            self.touch(id);
        }
        looked_at + self.outbox[id.0 as usize].unsent() - before
    }

    /// Hands messages that have come from the disk to consumers with room, as many as fit a turn.
    pub(crate) fn refill_stirred(&mut self) {
        let mut looked_at = 0;
        while looked_at < REFILL_BYTES
            && let Some(id) = self.spill.stirred.pop_front()
        {
            looked_at += self.refill(id);
        }
    }

    /// The connection has nothing in the spill log any more.
    pub(crate) fn end_spooling(&mut self, id: ConnectionId) {
        let outbox = &mut self.outbox[id.0 as usize];
        if let Some(number) = outbox.spooled.take() {
            self.spill.end(number);
        }
        outbox.choose_path(self.outbox_bytes_max);
    }

    /// Tells the engine which messages its subscriptions have missed after all.
    pub(crate) fn tell_lost(&mut self, engine: &mut Engine) {
        for (channel, tag, count) in std::mem::take(&mut self.spill.lost) {
            *self.lost.entry((channel, tag)).or_default() += count;
            self.note_missed(channel.connection, SlowConsumerPolicy::Spool, count.messages);
        }
        while let Some(((channel, tag), count)) = self.lost.pop_first() {
            engine.missed(channel, tag, count);
        }
        engine.conflated(std::mem::take(&mut self.conflated));
    }
}

/// About how many bytes a message is as it is sent: seldom more.
fn about_bytes(message: &DirectMessage<'_>) -> usize {
    let DirectMessage { subscription, message, .. } = message;
    let names = message.routing_key.len() + subscription.len();
    message.body.len() + message.properties.len() + names + FRAMING_BYTES
}

impl Node {
    /// An empty store for the spill logs of all shards; the host makes one when it starts them.
    pub fn spill_store(&self) -> SpillStore {
        SpillStore::new(&self.options.spill)
    }

    /// The log of direct messages that wait for slow consumers.
    #[inline]
    pub fn spill(&self) -> &Spill {
        &self.effects.spill
    }

    /// The spill log, to carry out its work.
    pub fn spill_mut(&mut self) -> &mut Spill {
        &mut self.effects.spill
    }

    /// Tells channels that nothing waits for them in the spill log any more; what they have said
    /// meanwhile may have waited for that.
    pub(crate) fn tell_caught_up(&mut self, now: Time) {
        while let Some(id) = self.effects.caught_up.pop() {
            self.resume_with(now, id, |handler, context| {
                handler.spill_drained(context);
                Ok(())
            });
        }
    }
}

impl Outbox {
    /// Sets how much the connection may hold in memory: no more than that is kept for it unsent.
    pub(crate) fn set_ceiling(&mut self, bytes: u64, outbox_bytes_max: usize) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let unsent_max = self.unsent_allowed.min(bytes);
        if std::mem::replace(&mut self.unsent_max, unsent_max) != unsent_max {
            self.choose_path(outbox_bytes_max);
        }
    }

    /// Unsent bytes from which on messages are spooled.
    fn spool_at(&self) -> usize {
        SPOOL_AT_BYTES.min(self.unsent_max)
    }

    /// Unsent bytes from which on the last message of each subject is kept: of a small bound, half is left
    /// for those messages.
    fn conflate_at(&self, outbox_bytes_max: usize) -> usize {
        outbox_bytes_max.min(self.unsent_max / 2)
    }

    /// Sets the unsent bytes up to which direct messages are written without a look at the policy.
    fn choose_path(&mut self, outbox_bytes_max: usize) {
        // While something waits in the spill log or in memory, what comes after it has to go there too.
        if self.spooled.is_none()
            && self.conflated.is_none()
            && let Some(slow_consumer_policy) = self.next_policy.take()
        {
            self.slow_consumer_policy = slow_consumer_policy;
        }
        self.plain_max = match self.slow_consumer_policy {
            _ if self.is_given_up => 0,
            SlowConsumerPolicy::Spool if self.spooled.is_some() => 0,
            SlowConsumerPolicy::Spool => self.spool_at().min(outbox_bytes_max),
            SlowConsumerPolicy::Conflate if self.conflated.is_some() => 0,
            SlowConsumerPolicy::Conflate => self.conflate_at(outbox_bytes_max),
            SlowConsumerPolicy::DropOldest => 0,
            SlowConsumerPolicy::DropNew | SlowConsumerPolicy::Disconnect => self.unsent_max,
        };
    }
}

//! A host in memory: what the engine asks for becomes text, records and reference counts.

use crate::storage::record::Kind;
use crate::{
    CancelReason, ChannelId, ClaimedSession, Confirm, ConnectionId, Delivery, DirectMessage,
    Effects, GetAnswer, Hints, Load, Loaded, MessageView, Position, Refusal, Reply, SendOutcome,
    SessionExpiry, SessionLoss, Subscribe, SubscriptionInfo,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Records of a segment.
const SEGMENT_RECORDS: usize = 16;

/// What the engine did, in order, as text, and the journal it wrote.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Effects since they were last taken.
    pub(crate) lines: Vec<String>,
    /// Every record.
    pub(crate) records: Vec<Vec<u8>>,
    /// Whether somebody waits for each to be flushed.
    pub(crate) durable: Vec<bool>,
    /// First records of groups, and how many they may have.
    pub(crate) groups: Vec<(usize, usize, usize)>,
    /// Do not compare groups with what was reserved: it is not known here when one ends before it is full.
    pub(crate) ignores_groups: bool,
    /// Live references by segment.
    pub(crate) references: BTreeMap<u32, i64>,
    pub(crate) loads: Vec<Load>,
    /// Records that cannot be read back, by index.
    pub(crate) damaged: BTreeSet<usize>,
    pub(crate) full: BTreeSet<ConnectionId>,
    pub(crate) crowded: BTreeSet<ConnectionId>,
    /// Names of channels.
    pub(crate) names: BTreeMap<ChannelId, String>,
    /// Leave deliveries and confirms out of the text, and count them.
    pub(crate) quiet: bool,
    /// Places of deliveries, and what is left of their time to live, are noted.
    pub(crate) shows_places: bool,
    /// Refused publishes are noted with the reason.
    pub(crate) explains: bool,
    pub(crate) delivered: Vec<(ChannelId, u64, String, bool)>,
    /// What named the subscriber of the last direct message.
    pub(crate) last_tag: u64,
    /// How often it was said that a queue's consumers are outrun.
    pub(crate) outrun: usize,
}

impl Recorder {
    pub(crate) fn position_of(index: usize) -> Position {
        let segment = (index / SEGMENT_RECORDS) as u64 + 1;
        Position((segment << 32) + (index % SEGMENT_RECORDS) as u64 * 8)
    }

    pub(crate) fn index_of(position: Position) -> usize {
        let offset = (position.0 & u64::from(u32::MAX)) / 8;
        (position.segment() as usize - 1) * SEGMENT_RECORDS + offset as usize
    }

    /// The position after every record.
    pub(crate) fn end(&self) -> Position {
        Recorder::position_of(self.records.len())
    }

    pub(crate) fn answer(&self, load: &Load) -> Loaded {
        let read = |position: &Position| {
            let index = Recorder::index_of(*position);
            let is_damaged = self.damaged.contains(&index);
            if is_damaged {
                Err(format!("record {index}"))
            } else {
                Ok(self.records[index].as_slice().into())
            }
        };
        if let Some(search) = &load.search {
            let mut search = search.clone();
            for index in 0..self.records.len() {
                let position = Recorder::position_of(index);
                if search.segments().contains(&position.segment()) && !self.damaged.contains(&index)
                {
                    search.look(position, &self.records[index]);
                }
            }
            return Ok(vec![search.record()]);
        }
        load.positions.iter().map(read).collect()
    }

    /// Damages every record so far that ends with `text`.
    pub(crate) fn damage(&mut self, text: &str) {
        let records = self.records.iter().enumerate();
        let found = records.filter(|(_, record)| record.ends_with(text.as_bytes()));
        self.damaged.extend(found.map(|(index, _)| index));
    }

    /// Damages every page so far.
    pub(crate) fn damage_pages(&mut self) {
        let records = self.records.iter().enumerate();
        let found = records.filter(|(_, record)| record[1] == Kind::Page as u8);
        self.damaged.extend(found.map(|(index, _)| index));
    }

    /// Gives up every damaged record, as a repair of the journal does.
    pub(crate) fn give_up_damaged(&mut self) {
        for index in std::mem::take(&mut self.damaged) {
            self.records[index].clear();
        }
    }

    fn line(&mut self, channel: ChannelId, text: &str) {
        let name = self.names.get(&channel).map_or("?", String::as_str);
        self.lines.push(format!("{name} {text}"));
    }

    fn count(&mut self, position: Position, change: i64) {
        let count = self.references.entry(position.segment()).or_default();
        *count += change;
        assert!(*count >= 0, "segment {} was released too often", position.segment());
        if *count == 0 {
            self.references.remove(&position.segment());
        }
    }
}

impl Hints for Recorder {
    fn consumers_outrun(&mut self) {
        self.outrun += 1;
    }
}

fn session_text(claimed: &ClaimedSession) -> String {
    let ClaimedSession { name, is_resumed, expiry, state, attributes, queue, released } = claimed;
    let how = if *is_resumed { "resumed" } else { "new" };
    let mut text = format!("session {name} {how}");
    match expiry {
        SessionExpiry::AtDetach => {}
        SessionExpiry::After(expiry) => write!(text, " expiry={expiry:?}").unwrap(),
        SessionExpiry::Never => text.push_str(" expiry=never"),
    }
    if !state.is_empty() {
        write!(text, " state={}", String::from_utf8_lossy(state)).unwrap();
    }
    for (key, value) in attributes {
        let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(value));
        write!(text, " {key}:{value}").unwrap();
    }
    if !queue.is_empty() {
        write!(text, " queue={queue}").unwrap();
    }
    if !released.is_empty() {
        write!(text, " released={released:?}").unwrap();
    }
    text
}

impl Effects for Recorder {
    fn answer_get(&mut self, answer: &GetAnswer<'_>) {
        let GetAnswer { channel, tag, redelivered, message, .. } = *answer;
        let (place, message) = (0, &message);
        self.deliver(&Delivery {
            channel,
            consumer: "",
            tag,
            place,
            redelivered,
            group: None,
            message,
        });
    }
    fn deliver(&mut self, delivery: &Delivery<'_>) {
        let body = String::from_utf8_lossy(delivery.message.body).into_owned();
        let redelivered = delivery.redelivered;
        self.delivered.push((delivery.channel, delivery.tag, body.clone(), redelivered));
        if self.quiet {
            return;
        }
        let mut text = format!("deliver {} #{} {body}", delivery.consumer, delivery.tag);
        if self.shows_places {
            write!(text, " @{}", delivery.place).unwrap();
        }
        if let Some(ttl) = delivery.message.ttl.filter(|_| self.shows_places) {
            write!(text, " ttl={ttl:?}").unwrap();
        }
        if let Some(group) = delivery.group {
            write!(text, " of={group}").unwrap();
        }
        if redelivered {
            text.push_str(" redelivered");
        }
        let annotations = delivery.message.annotations;
        if annotations.delivery_count > 0 {
            write!(text, " count={}", annotations.delivery_count).unwrap();
        }
        if annotations.dropped > 0 {
            write!(text, " dropped={}", annotations.dropped).unwrap();
        }
        if !annotations.changed.is_empty() {
            write!(text, " changed={}", String::from_utf8_lossy(&annotations.changed)).unwrap();
        }
        for death in &annotations.deaths {
            write!(text, " died={:?}:{}:{}", death.reason, death.queue, death.count).unwrap();
        }
        self.line(delivery.channel, &text);
    }
    fn send_direct(&mut self, delivery: &DirectMessage<'_>) -> SendOutcome {
        let connection = delivery.channel.connection;
        if self.full.contains(&connection) {
            return SendOutcome::Dropped;
        }
        self.last_tag = delivery.tag;
        let name = &self.names[&delivery.channel];
        let message = delivery.message;
        let mut line = format!(
            "{name} hears {} {} {}",
            delivery.subscription,
            message.routing_key,
            String::from_utf8_lossy(message.body)
        );
        if delivery.missed > 0 {
            let _ = write!(line, " missed={}", delivery.missed);
        }
        self.lines.push(line);
        if self.crowded.contains(&connection) { SendOutcome::Congested } else { SendOutcome::Sent }
    }
    fn confirm(&mut self, channel: ChannelId, confirm: Confirm) {
        let kind = if confirm.refused.is_none() { "confirm" } else { "nack" };
        let multiple = if confirm.multiple { " multiple" } else { "" };
        let why = confirm.refused.filter(|_| self.explains);
        let why = why.map_or(String::new(), |why| format!(": {:?} {}", why.kind, why.text));
        self.line(channel, &format!("{kind} {}{multiple}{why}", confirm.number));
    }
    fn congested(&mut self, channel: ChannelId, publish: u64, queue: u64) {
        self.line(channel, &format!("pauses after {publish} for {queue}"));
    }
    fn eased(&mut self, channel: ChannelId, queue: u64) {
        self.line(channel, &format!("goes on for {queue}"));
    }
    fn return_unroutable(&mut self, channel: ChannelId, message: &MessageView<'_>) {
        let body = String::from_utf8_lossy(message.body).into_owned();
        self.line(channel, &format!("returned {body}"));
    }
    fn client_doubted(&mut self, connection: ConnectionId) {
        let channel = ChannelId { connection, number: 1 };
        self.line(channel, "doubted");
    }

    fn consumer_cancelled(&mut self, channel: ChannelId, consumer: &str, why: CancelReason) {
        let why = match why {
            CancelReason::QueueDeleted => "",
            CancelReason::QueueFailed => " failed",
            CancelReason::Forbidden => " forbidden",
            CancelReason::TakenOver => " taken over",
        };
        self.line(channel, &format!("cancelled {consumer}{why}"));
    }
    fn drained(&mut self, channel: ChannelId, consumer: &str, delivered: u64) {
        self.line(channel, &format!("drained {consumer} {delivered}"));
    }
    fn subscription_revoked(&mut self, channel: ChannelId, subscribed: &Subscribe<'_>) {
        let group = subscribed.group.map_or(String::new(), |group| format!(" group={group}"));
        self.line(channel, &format!("forbidden {}{group}", subscribed.subject));
    }
    fn lacks_copies(&mut self, vhost: &str, queue: &str) {
        self.lines.push(format!("one copy of {queue} in {vhost}"));
    }
    fn channel_failed(&mut self, channel: ChannelId, why: Refusal) {
        self.line(channel, &format!("failed {:?}: {}", why.kind, why.text));
    }
    fn session_lost(&mut self, channel: ChannelId, session: &str, why: SessionLoss) {
        self.line(channel, &format!("lost {session} {why:?}"));
    }
    fn reply(&mut self, channel: ChannelId, reply: Result<Reply, Refusal>) {
        let text = match reply {
            Ok(Reply::Done) => "ok".to_owned(),
            Ok(Reply::Queue { name, messages, consumers }) => {
                format!("queue {name} {messages} {consumers}")
            }
            Ok(Reply::QueueDescriptions { queues, next }) => {
                let queues = queues.iter().map(|it| {
                    format!("{} {} {} {}", it.name, it.ready, it.unsettled, it.consumers)
                });
                let queues: Vec<String> = queues.collect();
                let queues = if queues.is_empty() { "none".to_owned() } else { queues.join(", ") };
                format!("queues {queues} next {next:?}")
            }
            Ok(Reply::Bindings(bindings)) => {
                let bindings = bindings.iter().map(|it| format!("{} to {:?}", it.key, it.target));
                format!("bindings {}", bindings.collect::<Vec<_>>().join(", "))
                    .trim_end()
                    .to_owned()
            }
            Ok(Reply::Created { name }) => format!("created {name}"),
            Ok(Reply::Subscription(found)) => {
                let SubscriptionInfo { queue, source, keys, shared, messages, consumers, .. } =
                    &*found;
                let filter = found.filter.as_ref().map(|it| format!("where {} ", it.text()));
                let not_from = found.not_from.as_ref().map(|it| format!("not from {it} "));
                let terms = [filter, not_from].into_iter().flatten().collect::<String>();
                let how = if *shared { "shared " } else { "" };
                let keys = keys.join(",");
                format!("{how}{queue} {source} {keys} {terms}{messages} {consumers}")
            }
            Ok(Reply::Transaction { id }) => format!("transaction {}", id.0),
            Ok(Reply::Messages(messages)) => format!("messages {messages}"),
            Ok(Reply::Consuming { name }) => format!("consuming {name}"),
            Ok(Reply::Inbox { address }) => format!("inbox {address}"),
            Ok(Reply::Got { messages }) => format!("got, {messages} left"),
            Ok(Reply::Empty) => "empty".to_owned(),
            Ok(Reply::Session(claimed)) => session_text(&claimed),
            Err(refusal) => format!("refused {:?}: {}", refusal.kind, refusal.text),
        };
        self.line(channel, &text);
    }
    fn has_room(&self, connection: ConnectionId) -> bool {
        !self.full.contains(&connection)
    }
    fn append(&mut self, parts: &[&[u8]], durable: bool) -> Position {
        self.records.push(parts.concat());
        self.durable.push(durable);
        if let Some((first, records, bytes)) = self.groups.last()
            && self.records.len() <= first + records
            && !self.ignores_groups
        {
            let sum: usize = self.records[*first..].iter().map(Vec::len).sum();
            assert!(sum <= *bytes, "{sum} bytes in a group of {bytes}");
        }
        Recorder::position_of(self.records.len() - 1)
    }
    fn reserve(&mut self, bytes: usize, records: usize) {
        self.groups.push((self.records.len(), records, bytes));
    }
    fn retain(&mut self, position: Position, count: u32) {
        self.count(position, count.into());
    }
    fn release(&mut self, position: Position, count: u32) {
        self.count(position, -i64::from(count));
    }
    fn load(&mut self, load: Load) {
        self.loads.push(load);
    }
}

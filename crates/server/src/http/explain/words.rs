//! What facts mean to an operator: why something is as it is, and what has to happen for it to move. Pure.

use angarium_engine::{
    ChannelId, ConsumerFacts, ConsumerHold, Death, DeathReason, FoundMessage, MessageFacts,
    OutFacts, Overflow, PublishFacts, QueueFacts, Time,
};
use angarium_node::WaitsFor;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// An explanation, in sentences.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(in crate::http) struct Explanation {
    /// What is explained, and how it is.
    pub(super) state: String,
    /// Why it is so.
    pub(super) because: Vec<String>,
    /// What has to happen for it to move; empty where it moves.
    pub(super) to_move: Vec<String>,
}

impl Explanation {
    fn of(state: String) -> Explanation {
        Explanation { state, ..Explanation::default() }
    }

    fn because(&mut self, why: impl Into<String>) {
        self.because.push(why.into());
    }

    fn wants(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.to_move.contains(&what) {
            self.to_move.push(what);
        }
    }
}

/// Tells who a channel belongs to.
pub(super) type Who<'a> = &'a dyn Fn(ChannelId) -> String;

/// A time span as people read it.
fn span(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds @ 1..=119 => format!("{seconds} s"),
        seconds @ 120..=7_199 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// Why a queue holds what it holds.
pub(super) fn queue(facts: &QueueFacts<'_>, who: Who<'_>, now: Time) -> Explanation {
    let listing = &facts.listing;
    let (name, vhost) = (listing.name, listing.vhost);
    let waiting = counted(listing.ready, "message waits", "messages wait");
    let mut told = Explanation::of(format!(
        "queue '{name}' in virtual host '{vhost}': {waiting}, {} out and not settled, {}",
        listing.unsettled,
        counted(listing.consumers as u64, "consumer", "consumers"),
    ));
    for out in &facts.out {
        told.because(not_settled(out, who, now));
    }
    if listing.ready > 0 {
        why_it_waits(&mut told, facts, who);
    } else if listing.unsettled > 0 {
        told.wants("the clients that have its messages settle them, or go");
    }
    limits(&mut told, facts);
    if let Some(at) = facts.expires_at {
        told.because(format!("it is deleted in {} unless somebody uses it", span(at.since(now))));
    }
    told
}

fn not_settled(out: &OutFacts<'_>, who: Who<'_>, now: Time) -> String {
    let messages = counted(out.messages, "message is", "messages are");
    let consumer =
        out.consumer.map_or_else(|| "it".to_owned(), |name| format!("consumer '{name}'"));
    let since = match out.deadline {
        Some((at, timeout)) => {
            let left = at.since(now);
            let ago = span(timeout.saturating_sub(left));
            format!(", the oldest for {ago}; its channel is closed in {}", span(left))
        }
        None => String::new(),
    };
    format!("{messages} out to {}: {consumer} has not settled them{since}", who(out.channel))
}

/// Why messages that are ready stay.
fn why_it_waits(told: &mut Explanation, facts: &QueueFacts<'_>, who: Who<'_>) {
    if let Some(position) = facts.listing.unreadable {
        told.because(format!(
            "deliveries have stopped at a record that cannot be read back: segment {}",
            position.segment()
        ));
        return told.wants("`angarium journal check` and `repair`, or purge the queue");
    }
    for (is_so, why) in [
        (
            facts.is_returning,
            "a client gives many messages back: nothing goes out until they are all there",
        ),
        (facts.is_loading, "messages are being read back from the journal"),
        (
            facts.is_resting,
            "it drains beside others, and pauses for a moment so that they get their turn",
        ),
    ] {
        if is_so {
            told.because(why);
        }
    }
    if facts.is_shared {
        return told.because(
            "sessions share it: a message goes to a member that is connected and takes more",
        );
    }
    if facts.listing.consumers == 0 {
        if facts.is_own {
            told.because("it is the queue of a session, which no client holds now");
            return told.wants("the client of the session connects again");
        }
        told.because("nobody consumes from it");
        return told.wants("a client consumes from it");
    }
    for consumer in &facts.consumers {
        let (why, remedy) = held(consumer);
        told.because(format!("consumer '{}' of {}: {why}", consumer.name, who(consumer.channel)));
        if let Some(remedy) = remedy {
            told.wants(remedy);
        }
    }
    let more = facts.listing.consumers.saturating_sub(facts.consumers.len());
    if more > 0 {
        told.because(format!(
            "{} more are not looked at",
            counted(more as u64, "consumer", "consumers")
        ));
    }
}

/// Why a consumer gets nothing, and what has to happen.
fn held(consumer: &ConsumerFacts<'_>) -> (String, Option<&'static str>) {
    let ConsumerFacts { unsettled, credit, channel_credit, filter, .. } = consumer;
    let used = |messages: u32, bytes: u64| match (messages, bytes) {
        (0, bytes) => format!("{bytes} bytes"),
        (messages, 0) => counted(messages.into(), "message", "messages"),
        (messages, bytes) => format!("{messages} messages and {bytes} bytes"),
    };
    match consumer.hold {
        Some(ConsumerHold::Second) => (
            "it waits: another consumer gets everything (single active consumer)".to_owned(),
            Some("the active consumer goes on, or goes"),
        ),
        Some(ConsumerHold::Flow) => (
            "its client has stopped deliveries to the channel (channel.flow)".to_owned(),
            Some("the client resumes deliveries"),
        ),
        Some(ConsumerHold::Credit) => (
            format!(
                "no credit: it may have {} unsettled and has {unsettled}",
                used(credit.messages, credit.bytes)
            ),
            Some("the consumer settles what it has, or asks for more at once (prefetch)"),
        ),
        Some(ConsumerHold::ChannelCredit) if *channel_credit == Default::default() => (
            "as much is unsettled on its channel as one channel may have".to_owned(),
            Some("the client settles what it has"),
        ),
        Some(ConsumerHold::ChannelCredit) => (
            format!(
                "no credit: its channel may have {} unsettled over all its consumers",
                used(channel_credit.messages, channel_credit.bytes)
            ),
            Some("the client settles what it has, or asks for more at once (prefetch)"),
        ),
        Some(ConsumerHold::Grant) => (
            "no credit: its client has granted no further deliveries".to_owned(),
            Some("the client grants more credit (a flow with link-credit)"),
        ),
        Some(ConsumerHold::Starting) => ("it begins with the next turn".to_owned(), None),
        None => match filter {
            Some(filter) => (
                format!("it takes only messages that its selector takes: {filter}"),
                Some("a consumer comes whose selector takes them, or that has none"),
            ),
            None => (
                "it can take messages; they are on their way, or it is slow to read".to_owned(),
                None,
            ),
        },
    }
}

/// What its limits do to it.
fn limits(told: &mut Explanation, facts: &QueueFacts<'_>) {
    let options = facts.options;
    let followed = facts.listing.followed;
    for (kind, name) in [("policy", followed.policy), ("operator policy", followed.operator_policy)]
    {
        if let Some(name) = name {
            told.because(format!("it follows the {kind} '{name}'"));
        }
    }
    if facts.is_full {
        let most = [
            options.length_max.map(|it| counted(it, "message", "messages")),
            options.bytes_max.map(|it| counted(it, "byte", "bytes")),
        ];
        let most: Vec<String> = most.into_iter().flatten().collect();
        told.because(format!("it is full ({}): {}", most.join(", "), overflow(options.overflow)));
    }
    if let Some(ttl) = options.message_ttl {
        let then = match &options.dead_letter_exchange {
            Some(exchange) => format!("goes to exchange '{exchange}'"),
            None => "is gone".to_owned(),
        };
        told.because(format!("a message that has waited {} {then}", span(ttl)));
    }
}

fn overflow(overflow: Overflow) -> &'static str {
    match overflow {
        Overflow::DropHead => "each new message pushes the oldest out",
        Overflow::RejectPublish => "new messages are refused",
        Overflow::RejectPublishDeadLetter => "new messages are refused, and dead-lettered",
    }
}

/// Why a message is where it is; `place`: 1 for the first.
pub(super) fn message(
    found: &FoundMessage,
    place: u64,
    facts: &QueueFacts<'_>,
    who: Who<'_>,
    now: Time,
) -> Explanation {
    let (name, vhost) = (facts.listing.name, facts.listing.vhost);
    let state =
        |what: &str| format!("message {place} of queue '{name}' in virtual host '{vhost}' {what}");
    let mut told = match found {
        FoundMessage::None => {
            let ready = counted(facts.listing.ready, "message waits", "messages wait");
            let mut told = Explanation::of(state(&format!("does not wait: {ready}")));
            for out in &facts.out {
                told.because(not_settled(out, who, now));
            }
            return told;
        }
        FoundMessage::Paged => {
            Explanation::of(state("waits on the disk: it is read back once it is near the front"))
        }
        FoundMessage::Waits(message) => waiting(message, &state, facts, now),
    };
    if place > 1 {
        told.because(format!(
            "{} before it",
            counted(place - 1, "message is handed out", "messages are handed out")
        ));
    }
    why_it_waits(&mut told, facts, who);
    told
}

fn waiting(
    message: &MessageFacts,
    state: &dyn Fn(&str) -> String,
    facts: &QueueFacts<'_>,
    now: Time,
) -> Explanation {
    let kind = if message.durable { "persistent" } else { "transient" };
    let mut told = Explanation::of(state(&format!(
        "waits: {}, {kind}",
        counted(message.bytes.into(), "byte", "bytes")
    )));
    if let Some(content) = &message.content {
        let key = &content.routing_key;
        match content.exchange.as_str() {
            "" => {
                told.because(format!("it was published to the default exchange with key '{key}'"))
            }
            exchange => {
                told.because(format!("it was published to exchange '{exchange}' with key '{key}'"));
            }
        }
        if content.delayed {
            told.because("it was delayed before, as long as its publisher asked for");
        }
        for death in &content.deaths {
            told.because(died(death));
        }
    }
    if message.is_unreadable {
        told.because("its record cannot be read back");
    } else if message.is_stored_only {
        told.because("it is in the journal alone, and read back once it is near the front");
    }
    if message.requeues > 0 {
        let left = match facts.delivery_limit {
            Some(limit) => format!(": more than {limit} make it a dead letter"),
            None => String::new(),
        };
        let times = counted(message.requeues.into(), "time", "times");
        told.because(format!("it came back {times}{left}"));
    } else if message.redelivered {
        told.because("it may have been delivered before");
    }
    if message.is_barred {
        told.because("consumers have returned it for others: those do not get it again");
        told.wants("a consumer comes that has not returned it");
    }
    let are_all_selective = facts.consumers.iter().all(|it| it.filter.is_some());
    if !facts.consumers.is_empty() && are_all_selective && message.content.is_some() {
        match message.taking_filters.as_slice() {
            [] => {
                told.because("no selector of the queue's consumers takes it");
                told.wants("a consumer comes whose selector takes it, or that has none");
            }
            taking => told.because(format!("selectors that take it: {}", taking.join("; "))),
        }
    }
    if let Some(at) = message.expires {
        let then = match &facts.options.dead_letter_exchange {
            Some(exchange) => format!("then it goes to exchange '{exchange}'"),
            None => "then it is gone".to_owned(),
        };
        if at > now {
            told.because(format!("it expires in {}: {then}", span(at.since(now))));
        } else {
            told.because(format!("it has expired, and goes once it is first: {then}"));
        }
    }
    told
}

fn died(death: &Death) -> String {
    let Death { queue, exchange, count, .. } = death;
    let why = match death.reason {
        DeathReason::Rejected => "a consumer rejected it",
        DeathReason::Expired => "its time to live passed",
        DeathReason::MaxLength => "the queue was full",
        DeathReason::DeliveryLimit => "it came back too often",
    };
    let times = if *count > 1 { format!(", {count} times") } else { String::new() };
    format!(
        "it is a dead letter of queue '{queue}' ({why}{times}), published to exchange '{exchange}'"
    )
}

/// Why a connection is not read from, and what ends that.
pub(super) fn hold_of(waits_for: WaitsFor) -> (&'static str, &'static str) {
    match waits_for {
        WaitsFor::Rate => (
            "it has sent more in this second than one connection may",
            "the second passes; `angarium user quota` has its rates",
        ),
        WaitsFor::UserRate => (
            "its user has sent more in this second than it may",
            "the second passes; `angarium user quota` has its rates",
        ),
        WaitsFor::VhostRate => (
            "all in its virtual host have sent more in this second than they may",
            "the second passes; `angarium vhost quota` has the rates",
        ),
        WaitsFor::Flooded => (
            "it floods the broker with messages that reach nobody, while others are active",
            "its messages reach a queue or subscribers: `angarium explain publish`",
        ),
        WaitsFor::Consumers => (
            "it puts more into a queue than the consumers of that take",
            "the queue gets more or faster consumers: `angarium explain queue`",
        ),
        WaitsFor::Subscribers => (
            "all subscribers of what it publishes are slow",
            "the subscribers read; `angarium connection list` shows those that are too slow",
        ),
        WaitsFor::Disk => (
            "it stores messages, and the journal has more of them than the disk takes",
            "the disk writes what it has",
        ),
        WaitsFor::Queues => (
            "the shard that has the queues has too many of its requests to process",
            "that shard processes them",
        ),
        WaitsFor::Shards => (
            "other shards have not processed its requests, or do not know its subscriptions",
            "those shards process them",
        ),
        WaitsFor::Memory => (
            "it or its user holds as much memory in unfinished messages as it may",
            "its messages are completed, or settled",
        ),
        WaitsFor::Room => (
            "it does not read what the broker sends it",
            "the client reads: it is slow, stuck, or its network is",
        ),
        WaitsFor::NextTurn => ("it asked for much at once", "others have had their turns"),
        WaitsFor::Answer => {
            ("what it has asked is not answered", "the answer: mostly the next flush")
        }
    }
}

/// Where a publish goes, and who would be refused it.
pub(super) fn publish(facts: &PublishFacts, exchange: &str, key: &str) -> Explanation {
    let named = if exchange.is_empty() {
        "the default exchange".to_owned()
    } else {
        format!("exchange '{exchange}'")
    };
    let and_more = if facts.is_cut { " at least" } else { "" };
    let count = facts.queues.len() as u64;
    let reach = match count {
        0 if facts.has_subjects => "no queue, and those who subscribe to its subject".to_owned(),
        0 => "no queue: it would be dropped, or returned where it is mandatory".to_owned(),
        _ => format!("{}{and_more}", counted(count, "queue", "queues")),
    };
    let mut told =
        Explanation::of(format!("a message to {named} with key '{key}' reaches {reach}"));
    if facts.exchanges.len() > 1 {
        told.because(format!("it passes the exchanges {}", quoted(&facts.exchanges)));
    }
    if facts.is_conditional {
        told.because(
            "some bindings take messages by their properties: these were compared with those given",
        );
    }
    if facts.has_subjects && count > 0 {
        told.because("those who subscribe to its key as a subject get it, too");
    }
    for queue in &facts.queues {
        let full =
            queue.full.map_or_else(String::new, |it| format!("; it is full: {}", overflow(it)));
        let consumers = counted(queue.consumers as u64, "consumer", "consumers");
        let kept = if queue.durable { "" } else { "; nothing in it survives a restart" };
        told.because(format!(
            "queue '{}': {} before it, {consumers}{kept}{full}",
            queue.name,
            counted(queue.ready, "message waits", "messages wait"),
        ));
    }
    if count == 0 && !facts.has_subjects {
        told.wants("a binding that matches the key, or another key");
    }
    if let Some(refusal) = &facts.closed {
        told.because(format!("nobody publishes there: {}", refusal.text));
    }
    let (refused, may): (Vec<_>, Vec<_>) = facts.users.iter().partition(|(_, why)| why.is_some());
    for (user, why) in refused {
        let why = why.as_ref().map_or("", |refusal| refusal.text.as_str());
        told.because(format!("user '{user}' would be refused: {why}"));
        told.wants("`angarium permission set`, or `permission subjects`, for who is refused");
    }
    if !may.is_empty() {
        let names: Vec<String> = may.into_iter().map(|(user, _)| user.clone()).collect();
        told.because(format!("users that may publish it: {}", quoted(&names)));
    }
    told
}

fn quoted(names: &[String]) -> String {
    let shown = names
        .iter()
        .map(|name| if name.is_empty() { "(default)".to_owned() } else { format!("'{name}'") });
    shown.collect::<Vec<_>>().join(", ")
}

/// Why a connection is held, and what it has open.
pub(super) struct ConnectionFacts {
    pub(super) who: String,
    pub(super) state: &'static str,
    pub(super) waits_for: Option<WaitsFor>,
    pub(super) unsent_bytes: u64,
    /// It is too slow for direct messages: what it has missed, what waits on the disk.
    pub(super) slow: Option<(&'static str, u64, u64)>,
    /// Channels with something open: number, unsettled, unconfirmed.
    pub(super) channels: Vec<(u16, usize, u64)>,
}

/// Why a connection is as it is.
pub(super) fn connection(facts: &ConnectionFacts) -> Explanation {
    let held = if facts.waits_for.is_some() { "is not read from" } else { "is read from" };
    let mut told = Explanation::of(format!("{} is {} and {held}", facts.who, facts.state));
    if let Some(waits_for) = facts.waits_for {
        let (why, remedy) = hold_of(waits_for);
        told.because(why);
        told.wants(remedy);
    }
    if let Some((policy, missed, spooled)) = facts.slow {
        told.because(format!(
            "it is too slow for direct messages (policy {policy}): {} missed, {spooled} waited on the disk",
            counted(missed, "message", "messages")
        ));
        told.wants("the client reads faster than it is sent to");
    }
    if facts.unsent_bytes > 0 {
        told.because(format!(
            "{} it was not sent yet",
            counted(facts.unsent_bytes, "byte waits that", "bytes wait that")
        ));
    }
    for (number, unsettled, unconfirmed) in &facts.channels {
        if *unsettled > 0 {
            let deliveries = counted(*unsettled as u64, "delivery is", "deliveries are");
            told.because(format!("channel {number}: {deliveries} not settled"));
        }
        if *unconfirmed > 0 {
            let publishes = counted(*unconfirmed, "publish waits", "publishes wait");
            told.because(format!("channel {number}: {publishes} for its confirm"));
        }
    }
    if told.because.is_empty() {
        told.because("nothing holds it: it waits for its client");
    }
    told
}

//! What one message costs in the engine alone: published and delivered at once, no sockets, no disk.
//! `cargo run --release -p angarium-engine --example cost [PART OF A NAME [MESSAGES]]`. On a busy
//! machine count instructions instead: `valgrind --tool=callgrind` tells how many two runs differ by.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // A measurement reads the clock.

use angarium_engine::*;
use std::time::Instant;

/// A host that does as little as it can.
#[derive(Default)]
struct Sink {
    tag: u64,
    bytes: usize,
    next: u64,
}

impl Hints for Sink {}

impl Effects for Sink {
    fn deliver(&mut self, delivery: &Delivery<'_>) {
        self.tag = delivery.tag;
        self.bytes += delivery.message.body.len();
    }
    fn answer_get(&mut self, answer: &GetAnswer<'_>) {
        self.tag = answer.tag;
    }
    fn send_direct(&mut self, direct: &DirectMessage<'_>) -> SendOutcome {
        self.bytes += direct.message.body.len();
        SendOutcome::Sent
    }
    fn confirm(&mut self, _: ChannelId, _: Confirm) {}
    fn return_unroutable(&mut self, _: ChannelId, _: &MessageView<'_>) {}
    fn consumer_cancelled(&mut self, _: ChannelId, _: &str, _: CancelReason) {}
    fn reply(&mut self, _: ChannelId, reply: Result<Reply, Refusal>) {
        reply.expect("the requests are granted");
    }
    fn has_room(&self, _: ConnectionId) -> bool {
        true
    }
    fn append(&mut self, parts: &[&[u8]], _: bool) -> Position {
        self.next += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        Position(self.next)
    }
    fn reserve(&mut self, _: usize, _: usize) {}
    fn retain(&mut self, _: Position, _: u32) {}
    fn release(&mut self, _: Position, _: u32) {}
    fn load(&mut self, _: Load) {}
}

/// The names that users see, without headers.
static CONVENTIONS: Conventions = Conventions {
    names: Names {
        predeclared: &[
            PredeclaredExchange { name: "amq.direct", kind: ExchangeKind::Direct },
            PredeclaredExchange { name: "amq.fanout", kind: ExchangeKind::Fanout },
            PredeclaredExchange { name: "amq.headers", kind: ExchangeKind::Headers },
            PredeclaredExchange { name: "amq.match", kind: ExchangeKind::Headers },
            PredeclaredExchange { name: "amq.topic", kind: ExchangeKind::Topic },
        ],
        subject_exchange: "amq.topic",
        default_exchange: "amq.default",
        reserved_prefix: "amq.",
        queue_prefix: "amq.gen-",
        durable_subscription_prefix: "amq.durable-",
        volatile_subscription_prefix: "amq.volatile-",
        session_queue_prefix: "amq.session-",
        shared_queue_prefix: "amq.shared-",
        consumer_prefix: "amq.ctag-",
        inbox_prefix: "amq.rabbitmq.reply-to.",
        answer_prefix: "_INBOX.",
        match_argument: "x-match",
        extension_prefix: "x-",
    },
    read_headers,
    read_property: |_, _| angarium_engine::selector::Value::Null,
    read_further_keys,
    read_group: |_| None,
    lives_from_sending: |_| false,
    is_exactly_once: |_| false,
};

fn read_headers(_: Format, _: &[u8], _: &mut dyn FnMut(&str, Value)) {}

fn read_further_keys(_: &Content<'_>) -> Vec<String> {
    Vec::new()
}

/// Which measurements, of how many messages each.
struct Wish {
    name: String,
    messages: u32,
}

/// The channel that [`engine`] opens for a connection.
fn channel(connection: u32) -> ChannelId {
    ChannelId { connection: ConnectionId(connection), number: 1 }
}

/// An engine with `connections` connections, each with one channel.
fn engine(connections: u32) -> Engine {
    let limits = limits::Limits::default();
    let mut engine = Engine::new(Options { limits, ..Options::alone([1; 32], &CONVENTIONS) });
    for connection in 0..connections {
        engine.connect_internal(ConnectionId(connection), "/").expect("the virtual host is there");
        engine.open(channel(connection));
    }
    engine
}

/// An engine with a queue, which the second of two channels consumes from.
fn with_consumer(presettled: bool) -> (Engine, Sink) {
    let (mut engine, mut fx, now) = (engine(2), Sink::default(), Time(1));
    let options = Some(QueueOptions { durable: true, ..QueueOptions::default() });
    let declare = Request::DeclareQueue { name: "queue".to_owned(), options };
    engine.request(now, channel(0), declare, &mut fx);
    let consume = Consume {
        queue: "queue".to_owned(),
        name: "consumer".to_owned(),
        presettled,
        ..Consume::default()
    };
    engine.request(now, channel(1), Request::Consume(consume), &mut fx);
    (engine, fx)
}

fn publish(body: &[u8], persistent: bool) -> Publish<'_> {
    Publish {
        exchange: "",
        routing_key: "queue",
        also_to: &[],
        mandatory: false,
        retain: Retain::No,
        not_before: None,
        transaction: None,
        content: Content {
            format: Format(1),
            properties: &[0, 0],
            body,
            shared: None,
            persistent,
            priority: 0,
            ttl: None,
        },
    }
}

fn measure(wish: &Wish, name: &str, body: usize, persistent: bool, presettled: bool) {
    if !name.contains(&wish.name) {
        return;
    }
    let (mut engine, mut fx) = with_consumer(presettled);
    let now = Time(1);
    if persistent {
        engine.request(now, channel(0), Request::SelectConfirms { explained: false }, &mut fx);
    }
    engine.dispatch(now, &mut fx);
    let body = vec![0; body];
    let publish = publish(&body, persistent);
    const BATCH: u32 = 100;
    let turns = wish.messages / BATCH;
    let start = Instant::now();
    for _ in 0..turns {
        for _ in 0..BATCH {
            engine.publish(now, channel(0), &publish, &mut fx).expect("the publish is granted");
        }
        if !presettled {
            let settle = Settle::up_to(fx.tag, Outcome::Accept);
            engine.settle(now, channel(1), settle, &mut fx).expect("the tag is known");
        }
        engine.dispatch(now, &mut fx);
        let end = Position(fx.next + 1);
        engine.durable(end, &mut fx);
    }
    let nanos = start.elapsed().as_nanos() / u128::from(turns * BATCH).max(1);
    println!("{name:<40} {nanos:>5} ns a message ({} bytes delivered)", fx.bytes);
}

/// One direct message to `subject`, heard by `subscribers`, among `others` who subscribe to something else.
fn measure_direct(wish: &Wish, name: &str, subject: &str, subscribers: u32, others: u32) {
    if !name.contains(&wish.name) {
        return;
    }
    let (mut engine, mut fx, now) = (engine(1), Sink::default(), Time(1));
    let channel = channel(0);
    for other in 0..others {
        let (subject, name) = (format!("other.{}.{other}", other % 1000), format!("o{other}"));
        let subscribe =
            Subscribe { subject: &subject, group: None, name: &name, slow_consumer_policy: None };
        engine.subscribe(channel, subscribe, &mut fx).expect("subscribing is granted");
    }
    for subscriber in 0..subscribers {
        let subscribe = Subscribe {
            subject,
            group: None,
            name: &subscriber.to_string(),
            slow_consumer_policy: None,
        };
        engine.subscribe(channel, subscribe, &mut fx).expect("subscribing is granted");
    }
    let body = [0; 100];
    let content = Content {
        format: Format(2),
        properties: &[],
        body: &body,
        shared: None,
        persistent: true,
        priority: 0,
        ttl: None,
    };
    let emit = Emit { subject, echo: true, is_response: false, asks: false, content };
    let messages = wish.messages / subscribers.max(1);
    let start = Instant::now();
    for _ in 0..messages {
        engine.emit(now, channel, &emit, &mut fx).expect("emitting is granted");
    }
    let nanos = start.elapsed().as_nanos() / u128::from(messages).max(1);
    println!("{name:<40} {nanos:>5} ns a message ({} bytes delivered)", fx.bytes);
}

/// The longest step of a snapshot of `messages` unsettled durable messages, whole and in parts.
fn measure_checkpoint(wish: &Wish, name: &str, messages: u32) {
    if !name.contains(&wish.name) {
        return;
    }
    let (mut engine, mut fx) = with_consumer(false);
    for _ in 0..messages {
        engine.publish(Time(1), channel(0), &publish(&[0; 100], true), &mut fx).expect("granted");
        engine.dispatch(Time(1), &mut fx);
    }
    let micros = |start: Instant| start.elapsed().as_micros();
    let start = Instant::now();
    let mut whole = Vec::new();
    engine.snapshot(&mut whole);
    let at_once = micros(start);
    let start = Instant::now();
    engine.begin_snapshot();
    let (begin, mut parts) = (micros(start), Vec::new());
    let snapshot = loop {
        let start = Instant::now();
        let snapshot = engine.take_snapshot();
        parts.push(micros(start));
        if let Some(snapshot) = snapshot {
            break snapshot;
        }
    };
    parts.sort_unstable();
    let (longest, median) = (parts.last().expect("there is one"), parts[parts.len() / 2]);
    let bytes: usize = snapshot.iter().map(Vec::len).sum();
    println!("{name:<40} {at_once} us at once, {} bytes", whole.len());
    println!(
        "{name:<40} {begin} us to begin, {} parts of {median} us, {longest} us at most, {bytes} bytes",
        parts.len()
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let messages = arguments.next().map(|count| count.parse().expect("a number of messages"));
    let wish = Wish { name, messages: messages.unwrap_or(2_000_000) };
    measure(&wish, "100 B transient, presettled", 100, false, true);
    measure(&wish, "100 B transient, settled in batches", 100, false, false);
    measure(&wish, "100 B persistent, confirmed, settled", 100, true, false);
    measure(&wish, "1 KiB persistent, confirmed, settled", 1024, true, false);
    measure_direct(&wish, "direct, 1 subscriber", "stock.us.ibm", 1, 0);
    measure_direct(&wish, "direct, 1 subscriber among 1 thousand", "stock.us.ibm", 1, 1_000);
    measure_direct(&wish, "direct, 1 subscriber among 1 million", "stock.us.ibm", 1, 1_000_000 - 1);
    measure_direct(&wish, "direct, 10 subscribers", "stock.us.ibm", 10, 0);
    measure_checkpoint(&wish, "checkpoint, 900 thousand out", wish.messages.min(900_000));
}

//! One kind of traffic through a whole node, without sockets: bytes in, bytes out. Run under a tool that
//! counts instructions, for two numbers of messages: the difference is what the messages cost.
//! `cargo xtask test --only instructions` does it for all kinds, and holds them to their bounds.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // A program of its own.

use angarium_engine::{ConnectionId, ShardId, Time};
use angarium_journal::FaultyStorage;
use angarium_node::{Node, Options};
use angarium_protocol::amqp10;
use angarium_protocol::amqp091::codec::{Method, Properties, Table, content, put_table, table};
use angarium_protocol::amqp091::frame;
use angarium_protocol::{Identity, Peer, Protocol};
use std::fmt::Write;

/// Messages that arrive at once.
const BATCH: usize = 64;
/// Octets that come at once, where there are many.
const READ_BYTES: usize = 16 << 10;
/// Exchanges in the second place of subjects.
const EXCHANGES: usize = 100;
/// The window of a session of AMQP 1.0, and the credit of a link.
const WINDOW: u32 = 1 << 24;
const BODY: [u8; 100] = [b'x'; 100];
const NOW: Time = Time(1_000_000_000);

/// Shards, and all that surrounds them.
struct Host {
    nodes: Vec<Node>,
    disk: FaultyStorage,
    /// Connections with their shard.
    clients: Vec<(usize, ConnectionId)>,
    sent: usize,
}

fn options(shard: usize, shards: usize) -> Options {
    Options {
        journal: angarium_journal::Options {
            segment_bytes: 16 << 20,
            first_segment_bytes: 1 << 20,
            checkpoint_bytes: 64 << 20,
            backlog_bytes_max: 32 << 20,
        },
        shard: ShardId(shard as u8),
        shards,
        ..Options::alone([1; 32])
    }
}

impl Host {
    fn new(shards: usize) -> Host {
        let disk = FaultyStorage::new(1);
        let mut home = Node::recover(options(0, shards), &disk, NOW).expect("nothing is stored");
        let user = angarium_node::NewUser { name: "user", password_hash: "", administrator: false };
        home.make_user(NOW, "/", &user).expect("operators may");
        let introduction = home.introduction();
        let mut nodes = vec![home];
        for shard in 1..shards {
            nodes.push(Node::join(options(shard, shards), &introduction).expect("home knows how"));
        }
        Host { nodes, disk, clients: Vec::new(), sent: 0 }
    }

    fn connect(&mut self, shard: usize, protocol: Protocol) -> usize {
        let peer = Peer { protocol, local: true, ..Peer::default() };
        let id = self.nodes[shard].connected(NOW, peer);
        self.clients.push((shard, id));
        self.clients.len() - 1
    }

    fn nats(&mut self, shard: usize) -> usize {
        let client = self.connect(shard, Protocol::Nats);
        self.say(
            client,
            b"CONNECT {\"verbose\":false,\"headers\":true,\"user\":\"user\",\"pass\":\"x\"}\r\n",
        );
        client
    }

    fn amqp(&mut self, shard: usize) -> usize {
        let client = self.connect(shard, Protocol::Amqp);
        self.say(client, &frame::PROTOCOL_HEADER);
        let start = Method::ConnectionStartOk {
            client_properties: Table::default(),
            mechanism: "PLAIN",
            response: b"\0user\0x",
            locale: "en_US",
        };
        let tune = Method::ConnectionTuneOk { channel_max: 8, frame_max: 131_072, heartbeat: 0 };
        let open = Method::ConnectionOpen { virtual_host: "/", capabilities: "", insist: false };
        let channel = Method::ChannelOpen { out_of_band: "" };
        for (channel, method) in [(0, start), (0, tune), (0, open), (1, channel)] {
            self.ask(client, channel, &method);
        }
        client
    }

    /// A client of AMQP 1.0 with session 0, whose windows are never full.
    fn amqp10(&mut self) -> usize {
        use amqp10::codec::{Begin, Open, SaslInit, SaslPerformative, Symbol};
        use amqp10::frame::ProtocolHeader;
        let client = self.connect(0, Protocol::Amqp);
        let mut bytes = ProtocolHeader::Sasl.bytes().to_vec();
        let initial_response = Some(&b"\0user\0x"[..]);
        let init = SaslInit { mechanism: Symbol("PLAIN"), initial_response, hostname: None };
        SaslPerformative::SaslInit(init).write_frame(&mut bytes);
        bytes.extend_from_slice(&ProtocolHeader::Amqp.bytes());
        self.say(client, &bytes);
        self.perform(client, &Open { container_id: "client", ..Open::default() });
        let (incoming_window, outgoing_window) = (WINDOW, WINDOW);
        self.perform(client, &Begin { incoming_window, outgoing_window, ..Begin::default() });
        client
    }

    fn perform<'a>(&mut self, client: usize, performative: &impl amqp10::codec::Field<'a>) {
        let mut bytes = Vec::new();
        amqp10::codec::write_frame(performative, 0, &[], &mut bytes);
        self.say(client, &bytes);
    }

    fn ask(&mut self, client: usize, channel: u16, method: &Method<'_>) {
        let mut bytes = Vec::new();
        method.write_frame(channel, &mut bytes);
        self.say(client, &bytes);
    }

    fn say(&mut self, client: usize, bytes: &[u8]) {
        let (shard, id) = self.clients[client];
        self.nodes[shard].received(NOW, id, bytes);
        while self.turn() {}
    }

    /// A turn of every shard; says whether there may be more to do.
    fn turn(&mut self) -> bool {
        let mut is_busy = false;
        let mut dirty = Vec::new();
        for shard in 0..self.nodes.len() {
            let node = &mut self.nodes[shard];
            node.end_turn(NOW);
            while let Some(job) = node.next_job() {
                node.job_done(NOW, job.run(&self.disk));
                is_busy = true;
            }
            while let Some(asked) = node.next_verification() {
                let identity = Identity { user: asked.credentials.user().to_owned() };
                node.verified(NOW, asked.connection, asked.serial, Ok(identity));
                is_busy = true;
            }
            node.take_dirty(&mut dirty);
            for id in dirty.drain(..) {
                let bytes = node.outgoing(id).len();
                node.sent(id, bytes);
                self.sent += bytes;
            }
            while let Some((to, batch)) = self.nodes[shard].next_batch() {
                self.nodes[usize::from(to.0)].arrived(NOW, ShardId(shard as u8), batch);
                is_busy = true;
            }
            is_busy |= self.nodes[shard].has_work();
        }
        is_busy
    }

    /// Attaches a receiver to a queue by AMQP 1.0, with credit for all; perhaps with a selector.
    fn receive10(&mut self, client: usize, handle: u32, selects: bool) {
        use amqp10::codec::{
            AnyTarget, Attach, Field, Flow, OwnedValue, Role, SenderSettleMode, Source, Symbol,
            Target,
        };
        let mut selector = vec![amqp10::codec::wire::DESCRIBED];
        Symbol("apache.org:selector-filter:string").write(&mut selector);
        format!("colour = 'colour {handle}'").as_str().write(&mut selector);
        let selector = OwnedValue::decode(&selector).expect("it was written just now");
        let filter = OwnedValue::map(|map| map.put(&Symbol("jms-selector"), &selector.value()));
        let filter = selects.then(|| filter.as_map());
        let source = Some(Source { address: Some("q"), filter, ..Source::default() });
        let name = format!("consumer {handle}");
        let (name, role, snd_settle_mode) = (&*name, Role::Receiver, SenderSettleMode::Settled);
        let target = Some(AnyTarget::Target(Target::default()));
        let attach = Attach { name, handle, role, source, target, ..Attach::default() };
        self.perform(client, &Attach { snd_settle_mode, ..attach });
        let (incoming_window, outgoing_window) = (WINDOW, WINDOW);
        let (handle, link_credit) = (Some(handle), Some(WINDOW));
        let flow = Flow { incoming_window, outgoing_window, handle, ..Flow::default() };
        let (next_incoming_id, delivery_count) = (Some(0), Some(0));
        self.perform(client, &Flow { next_incoming_id, delivery_count, link_credit, ..flow });
    }

    /// Publishes messages in batches.
    fn publish(&mut self, client: usize, message: &[u8], messages: usize) {
        let batch = message.repeat(BATCH);
        for _ in 0..messages / BATCH {
            self.say(client, &batch);
        }
    }

    /// Subscribes to `others` subjects without publishers.
    fn subscribe_to_others(&mut self, client: usize, others: usize) {
        let mut subscriptions = String::new();
        for at in 0..others {
            write!(subscriptions, "SUB stock.{}.{at} {at}\r\n", at % EXCHANGES)
                .expect("a String takes all");
            if subscriptions.len() > READ_BYTES {
                self.say(client, subscriptions.as_bytes());
                subscriptions.clear();
            }
        }
        self.say(client, subscriptions.as_bytes());
    }
}

/// One publisher, `listeners` subscribers of its subject, and `others` of other subjects.
fn direct(messages: usize, listeners: usize, others: usize, shards: usize) -> usize {
    let mut host = Host::new(shards);
    let publisher = host.nats(0);
    for _ in 0..listeners {
        let listener = host.nats(shards - 1);
        host.say(listener, b"SUB stock.us.ibm 1\r\n");
    }
    let other = host.nats(0);
    host.subscribe_to_others(other, others);
    let message = [b"PUB stock.us.ibm 100\r\n", &BODY[..], b"\r\n"].concat();
    host.publish(publisher, &message, messages);
    host.sent
}

/// One publisher, each of whose messages has its own subject, so that no route is cached; one subscriber of
/// all of them, and `others` of other subjects.
fn spread(messages: usize, others: usize) -> usize {
    let mut host = Host::new(1);
    let (publisher, listener, other) = (host.nats(0), host.nats(0), host.nats(0));
    host.say(listener, b"SUB stock.*.new.> 1\r\n");
    host.subscribe_to_others(other, others);
    let mut batch = Vec::new();
    for at in 0..messages {
        let subject = format!("stock.{}.new.{at:08}", at % EXCHANGES);
        batch.extend_from_slice(format!("PUB {subject} {}\r\n", BODY.len()).as_bytes());
        batch.extend_from_slice(&BODY);
        batch.extend_from_slice(b"\r\n");
        if (at + 1) % BATCH == 0 {
            host.say(publisher, &batch);
            batch.clear();
        }
    }
    host.sent
}

/// One producer and one consumer of a queue, transient messages, nothing acknowledged. With `selectors`,
/// as many consumers, each of which takes the messages of another colour; all messages have the first one's.
fn queued(messages: usize, shards: usize, selectors: usize) -> usize {
    let mut host = Host::new(shards);
    let (producer, consumer) = (host.amqp(shards - 1), host.amqp(shards - 1));
    let declare = Method::QueueDeclare {
        ticket: 0,
        queue: "q",
        passive: false,
        durable: false,
        exclusive: false,
        auto_delete: false,
        no_wait: false,
        arguments: Table::default(),
    };
    host.ask(consumer, 1, &declare);
    for number in 0..selectors.max(1) {
        let mut arguments = Vec::new();
        put_table(&mut arguments, |table| {
            if selectors > 0 {
                table.text("x-selector", &format!("colour = 'colour {number}'"));
            }
        });
        let consume = Method::BasicConsume {
            ticket: 0,
            queue: "q",
            consumer_tag: &format!("c{number}"),
            no_local: false,
            no_ack: true,
            exclusive: false,
            no_wait: false,
            arguments: table::checked(&arguments[4..]).expect("it was written just now"),
        };
        host.ask(consumer, 1, &consume);
    }
    let mut message = Vec::new();
    let method = content::PublishMethod {
        exchange: "",
        routing_key: "q",
        mandatory: false,
        immediate: false,
    };
    method.write_frame(1, &mut message);
    let mut properties = Vec::new();
    let mut headers = Vec::new();
    put_table(&mut headers, |table| table.text("colour", "colour 0"));
    let headers = table::checked(&headers[4..]).expect("it was written just now");
    let coloured = Properties { headers: Some(headers), ..Properties::default() };
    if selectors > 0 { coloured } else { Properties::default() }.encode(&mut properties);
    content::write_header(&mut message, 1, BODY.len() as u64, &properties);
    frame::write_body(&mut message, 1, &BODY, 131_072);
    host.publish(producer, &message, messages);
    host.sent
}

/// The same by AMQP 1.0, settled when it is sent.
fn queued10(messages: usize, selectors: usize) -> usize {
    use amqp10::codec::{
        AnyTarget, Attach, DeliveryTag, Field, Properties, Role, SectionKind, SenderSettleMode,
        Target, Transfer, put_map_section, put_section, write_frame,
    };
    let mut host = Host::new(1);
    let (producer, consumer) = (host.amqp10(), host.amqp10());
    for number in 0..selectors.max(1) {
        host.receive10(consumer, number as u32, selectors > 0);
    }
    let target = Target { address: Some("q"), ..Target::default() };
    let (name, snd_settle_mode) = ("producer", SenderSettleMode::Settled);
    let (role, target) = (Role::Sender, Some(AnyTarget::Target(target)));
    let (source, initial_delivery_count) = (Some(amqp10::codec::Source::default()), Some(0));
    let attach = Attach { name, role, source, target, snd_settle_mode, ..Attach::default() };
    host.perform(producer, &Attach { initial_delivery_count, ..attach });
    let mut message = Vec::new();
    // What Qpid JMS writes: a type and a destination, an id, a time, and what the application put in.
    put_map_section(&mut message, SectionKind::MessageAnnotations, |map| {
        map.put(&amqp10::codec::Symbol("x-opt-jms-msg-type"), &5i8);
    });
    let message_id = Some(amqp10::codec::MessageId::String("ID:8f4c8a34-1:1:1-1"));
    Properties { message_id, to: Some("q"), ..Properties::default() }.write(&mut message);
    put_map_section(&mut message, SectionKind::ApplicationProperties, |map| {
        map.put(&"size", &7i32);
        map.put(&"colour", &"colour 0");
    });
    put_section(&mut message, SectionKind::Data, &&BODY[..]);
    let mut batch = Vec::new();
    for at in 0..messages as u32 {
        let delivery_tag = Some(DeliveryTag(b"tag"));
        let (delivery_id, message_format, settled) = (Some(at), Some(0), Some(true));
        let transfer = Transfer { delivery_id, message_format, settled, ..Transfer::default() };
        write_frame(&Transfer { delivery_tag, ..transfer }, 0, &message, &mut batch);
        if (at as usize + 1).is_multiple_of(BATCH) {
            host.say(producer, &batch);
            batch.clear();
        }
    }
    host.sent
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    let messages = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let sent = match kind.as_str() {
        "nats" => direct(messages, 1, 0, 1),
        "nats-fanout-10" => direct(messages, 10, 0, 1),
        "nats-among-1000" => direct(messages, 1, 1_000, 1),
        "nats-among-1000000" => direct(messages, 1, 1_000_000, 1),
        "nats-spread" => spread(messages, 0),
        "nats-spread-among-1000" => spread(messages, 1_000),
        "nats-spread-among-1000000" => spread(messages, 1_000_000),
        "nats-across" => direct(messages, 1, 0, 2),
        "amqp" => queued(messages, 1, 0),
        "amqp-away" => queued(messages, 2, 0),
        "amqp-selector" => queued(messages, 1, 1),
        "amqp-selectors-1000" => queued(messages, 1, 1_000),
        "amqp10" => queued10(messages, 0),
        "amqp10-selector" => queued10(messages, 1),
        "amqp10-selectors-1000" => queued10(messages, 1_000),
        other => {
            eprintln!("unknown kind of traffic '{other}'");
            std::process::exit(2);
        }
    };
    println!("{sent}");
}

//! A client of each protocol: it subscribes, publishes what a line stands for, and shows as lines what it
//! gets.

use super::mqtt::Mqtt;
use crate::amqp10::tests::{client as amqp10, message_text, show};
use crate::amqp091::tests::Speech as Amqp091Speech;
use crate::nats::codec::ServerOp;
use crate::nats::tests as nats;
use crate::stomp::tests as stomp;
use crate::tests::host::TestHost;
use crate::tests::transcript::Speech;
use crate::{Peer, amqp10 as amqp10_protocol, mqtt as mqtt_protocol, stomp as stomp_protocol};

/// Where messages go to and come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    /// The subject, a routing key of `amq.topic`.
    Topic(&'a str),
    Queue(&'a str),
}

/// A connection of some protocol.
pub(super) trait Client {
    fn number(&self) -> usize;
    /// Gets from now on what is published there. Returns whether its protocol can do that.
    fn subscribe(&mut self, host: &mut TestHost, place: Place<'_>) -> bool;
    /// Publishes the message that a line stands for.
    fn publish(&mut self, host: &mut TestHost, place: Place<'_>, line: &str);
    /// The messages in what it got, each as a line.
    fn messages(&self, output: &[u8]) -> Vec<String>;
    /// A request, as a line, for whose answer it waits in one of the ways of [`Protocol::asks_by`].
    fn ask(&mut self, host: &mut TestHost, by: &str) -> String;
    /// Publishes an answer to where a request that it got, as a line, wants it.
    fn answer(&mut self, host: &mut TestHost, request: &str, line: &str);

    /// The messages that it got since the last call.
    fn received(&self, host: &mut TestHost) -> Vec<String> {
        host.turn_ends();
        let output = host.output(self.number());
        self.messages(&output)
    }
}

/// A protocol, as `docs/protocols/mapping.md` calls it.
pub(super) struct Protocol {
    pub(super) name: &'static str,
    /// Where its clients wait for answers.
    pub(super) asks_by: &'static [&'static str],
    pub(super) connect: fn(&mut TestHost) -> Box<dyn Client>,
}

/// All of them.
pub(super) const PROTOCOLS: &[Protocol] = &[
    Protocol {
        name: "AMQP 0-9-1",
        asks_by: &["reply queue", "direct reply"],
        connect: |host| {
            let speech = Amqp091Speech { greeted: true, frame_max: 131_072 };
            let number = speech.connect(host, 'A');
            Box::new(Amqp091 { number, speech })
        },
    },
    Protocol {
        name: "AMQP 1.0",
        asks_by: &["dynamic source"],
        connect: |host| {
            let settings = amqp10_protocol::Settings::default();
            let number = host.accept_amqp10(peer(), settings);
            let mut client = Amqp10 { number, links: 0 };
            host.receive(number, &amqp10::login("guest"));
            host.turn_ends();
            // Clients of one container would take each other's links over.
            let container_id = &*format!("client{number}");
            let open = amqp10_protocol::codec::Open { container_id, ..amqp10::open() };
            client.send(host, &amqp10::frame(0, &open, &[]));
            client.send(host, &amqp10::frame(0, &amqp10::begin(1000), &[]));
            host.output(number);
            Box::new(client)
        },
    },
    Protocol {
        name: "NATS",
        asks_by: &["inbox"],
        connect: |host| {
            let number = host.accept_nats(peer());
            let mut client = Nats { number, subscriptions: 0 };
            client.send(host, nats::CONNECT);
            host.output(number);
            Box::new(client)
        },
    },
    Protocol {
        name: "STOMP",
        asks_by: &["temporary queue"],
        connect: |host| {
            let number = host.accept_stomp(peer(), stomp_protocol::Settings::default());
            let mut client = Stomp { number, subscriptions: 0 };
            client.send(host, "CONNECT|accept-version:1.2||");
            host.output(number);
            Box::new(client)
        },
    },
    Protocol {
        name: "MQTT",
        asks_by: &["response topic"],
        connect: |host| {
            let number = host.accept_mqtt(peer(), mqtt_protocol::Settings::default());
            let mut client = Mqtt { number, packets: 0 };
            client.log_in(host);
            host.output(number);
            Box::new(client)
        },
    },
];

fn peer() -> Peer {
    Peer { local: true, address: "127.0.0.1:9".to_owned(), ..Peer::default() }
}

/// The value of a word `name=value` in a line.
pub(super) fn word<'l>(line: &'l str, name: &str) -> &'l str {
    let found = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in: {line}"))
}

/// Lines are properties and a body as [`crate::amqp091::tests::script`] writes them.
struct Amqp091 {
    number: usize,
    speech: Amqp091Speech,
}

impl Amqp091 {
    fn say(&self, host: &mut TestHost, line: &str) {
        self.speech.send(host, 'A', self.number, line);
        host.turn_ends();
    }
    fn publish_to(&self, host: &mut TestHost, exchange: &str, key: &str, line: &str) {
        let method = format!("1 basic.publish exchange={exchange} routing_key=\"{key}\"");
        self.say(host, &format!("{method} | {line}"));
    }
}

impl Client for Amqp091 {
    fn number(&self) -> usize {
        self.number
    }

    fn subscribe(&mut self, host: &mut TestHost, place: Place<'_>) -> bool {
        let queue = match place {
            Place::Queue(name) => name,
            Place::Topic(pattern) => {
                self.say(host, "1 queue.declare queue=own exclusive=true");
                self.say(
                    host,
                    &format!("1 queue.bind queue=own exchange=amq.topic routing_key={pattern}"),
                );
                "own"
            }
        };
        self.say(host, &format!("1 basic.consume queue={queue} consumer_tag={queue} no_ack=true"));
        true
    }

    fn publish(&mut self, host: &mut TestHost, place: Place<'_>, line: &str) {
        match place {
            Place::Topic(key) => self.publish_to(host, "amq.topic", key, line),
            Place::Queue(name) => self.publish_to(host, "", name, line),
        }
    }

    fn messages(&self, output: &[u8]) -> Vec<String> {
        let lines = self.speech.lines('A', output);
        let contents = lines.iter().filter_map(|line| line.split_once(" | "));
        contents.map(|(_, content)| content.to_owned()).collect()
    }

    fn ask(&mut self, host: &mut TestHost, by: &str) -> String {
        let (queue, address) = match by {
            "reply queue" => ("replies", "replies"),
            _ => ("amq.rabbitmq.reply-to", "amq.rabbitmq.reply-to"),
        };
        if by == "reply queue" {
            self.say(host, "1 queue.declare queue=replies exclusive=true");
        }
        self.subscribe(host, Place::Queue(queue));
        format!("reply_to={address} \"?\"")
    }

    fn answer(&mut self, host: &mut TestHost, request: &str, line: &str) {
        self.publish_to(host, "", word(request, "reply_to"), line);
    }
}

/// Lines are as [`message_text`] writes them.
struct Amqp10 {
    number: usize,
    links: u32,
}

impl Amqp10 {
    fn send(&mut self, host: &mut TestHost, bytes: &[u8]) {
        host.receive(self.number, bytes);
        host.turn_ends();
    }

    /// Attaches a link on which it receives, with credit.
    fn receive_from(&mut self, host: &mut TestHost, attach: amqp10_protocol::codec::Attach<'_>) {
        self.send(host, &amqp10::frame(0, &attach, &[]));
        self.send(host, &amqp10::frame(0, &amqp10::credit(attach.handle, 0, 100), &[]));
    }

    fn next_link(&mut self) -> (u32, String) {
        self.links += 1;
        (self.links, format!("link{}", self.links))
    }

    /// Sends by a link to that address.
    fn publish_to(&mut self, host: &mut TestHost, address: &str, line: &str) {
        let (handle, name) = self.next_link();
        let attach =
            amqp10_protocol::codec::Attach { name: &name, ..amqp10::sender(handle, address) };
        self.send(host, &amqp10::frame(0, &attach, &[]));
        let lines = show::lines(&host.output(self.number));
        assert!(!lines.iter().any(|line| line.contains("detach")), "{address}: {lines:#?}");
        let transfer = amqp10::transfer(handle, handle);
        self.send(host, &amqp10::frame(0, &transfer, &message_text::encode(line)));
        let lines = show::lines(&host.output(self.number));
        assert!(lines.iter().any(|line| line.contains("accepted")), "{address}: {lines:#?}");
    }
}

fn address(place: Place<'_>) -> String {
    match place {
        Place::Topic(subject) => format!("topic://{subject}"),
        Place::Queue(name) => format!("queue://{name}"),
    }
}

impl Client for Amqp10 {
    fn number(&self) -> usize {
        self.number
    }

    fn subscribe(&mut self, host: &mut TestHost, place: Place<'_>) -> bool {
        let (handle, name) = self.next_link();
        let address = address(place);
        let attach =
            amqp10_protocol::codec::Attach { name: &name, ..amqp10::receiver(handle, &address) };
        self.receive_from(host, attach);
        true
    }

    fn publish(&mut self, host: &mut TestHost, place: Place<'_>, line: &str) {
        self.publish_to(host, &address(place), line);
    }

    fn messages(&self, output: &[u8]) -> Vec<String> {
        show::messages(output).iter().map(|message| message_text::decode(message)).collect()
    }

    fn ask(&mut self, host: &mut TestHost, _by: &str) -> String {
        let (handle, name) = self.next_link();
        let source = amqp10_protocol::codec::Source { dynamic: true, ..Default::default() };
        let attach = amqp10_protocol::codec::Attach {
            name: &name,
            source: Some(source),
            ..amqp10::receiver(handle, "")
        };
        self.receive_from(host, attach);
        let lines = show::lines(&host.output(self.number));
        let attached = lines.iter().find_map(|line| line.split_once(&name)).expect("an attach");
        let (address, _) = attached.1.trim().split_once(" -> ").expect("a source");
        format!("reply-to={address} \"?\"")
    }

    fn answer(&mut self, host: &mut TestHost, request: &str, line: &str) {
        self.publish_to(host, word(request, "reply-to").trim_matches('"'), line);
    }
}

/// Lines are `reply=subject`, headers and the payload in quotes, with ` | ` between them.
struct Nats {
    number: usize,
    subscriptions: u32,
}

impl Nats {
    fn send(&mut self, host: &mut TestHost, line: &str) {
        host.receive(self.number, &nats::bytes(&format!("{line}|")));
        host.turn_ends();
    }
}

impl Client for Nats {
    fn number(&self) -> usize {
        self.number
    }

    fn subscribe(&mut self, host: &mut TestHost, place: Place<'_>) -> bool {
        let Place::Topic(subject) = place else { return false };
        self.subscriptions += 1;
        self.send(host, &format!("SUB {subject} {}", self.subscriptions));
        true
    }

    fn publish(&mut self, host: &mut TestHost, place: Place<'_>, line: &str) {
        let subject = match place {
            Place::Topic(subject) => subject.to_owned(),
            Place::Queue(name) => format!("$QUEUE.{name}"),
        };
        let (mut reply, mut status, mut block) = ("", "", String::new());
        let mut parts: Vec<_> = line.split(" | ").collect();
        let payload = parts.pop().expect("a payload").trim_matches('"');
        for part in parts {
            match (part.strip_prefix("reply="), part.strip_prefix("NATS/1.0")) {
                (Some(subject), _) => reply = subject,
                (_, Some(text)) => status = text,
                _ => block += &format!("{part}|"),
            }
        }
        let payload_bytes = nats::bytes(payload).len();
        if block.is_empty() && status.is_empty() {
            return self.send(host, &format!("PUB {subject} {reply} {payload_bytes}|{payload}"));
        }
        let block = format!("NATS/1.0{status}|{block}|");
        let block_bytes = nats::bytes(&block).len();
        let all = block_bytes + payload_bytes;
        self.send(host, &format!("HPUB {subject} {reply} {block_bytes} {all}|{block}{payload}"));
    }

    fn messages(&self, mut output: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        while !output.is_empty() {
            let (op, used) = ServerOp::decode(output, usize::MAX).unwrap().expect("whole ones");
            if let ServerOp::Message(message) = op {
                let [reply, headers, body] = [message.reply, message.headers, message.body]
                    .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                let mut parts = Vec::new();
                if !reply.is_empty() {
                    parts.push(format!("reply={reply}"));
                }
                let block = headers.lines().filter(|line| !line.is_empty() && *line != "NATS/1.0");
                parts.extend(block.map(str::to_owned));
                parts.push(format!("\"{body}\""));
                lines.push(parts.join(" | "));
            }
            output = &output[used..];
        }
        lines
    }

    fn ask(&mut self, host: &mut TestHost, _by: &str) -> String {
        self.subscribe(host, Place::Topic("_INBOX.me"));
        "reply=_INBOX.me | \"?\"".to_owned()
    }

    fn answer(&mut self, host: &mut TestHost, request: &str, line: &str) {
        let subject = word(request, "reply").to_owned();
        self.publish(host, Place::Topic(&subject), line);
    }
}

/// Lines are headers of the message and the body in quotes, with ` | ` between them.
struct Stomp {
    number: usize,
    subscriptions: u32,
}

impl Stomp {
    /// Sends the frame that a line of a transcript stands for.
    fn send(&mut self, host: &mut TestHost, line: &str) {
        host.receive(self.number, &stomp::bytes(line));
        host.turn_ends();
    }

    fn publish_to(&mut self, host: &mut TestHost, destination: &str, line: &str) {
        let (headers, body) = line.rsplit_once(" | ").unwrap_or(("", line));
        let headers: String = headers.split(" | ").map(|header| format!("{header}|")).collect();
        let headers = if headers == "|" { "" } else { &headers };
        let body = body.trim_matches('"');
        self.send(host, &format!("SEND|destination:{destination}|{headers}|{body}"));
        let errors = stomp::frames(&host.output(self.number));
        assert!(errors.is_empty(), "{destination}: {errors:#?}");
    }
}

impl Client for Stomp {
    fn number(&self) -> usize {
        self.number
    }

    fn subscribe(&mut self, host: &mut TestHost, place: Place<'_>) -> bool {
        let destination = match place {
            Place::Topic(pattern) => format!("/topic/{pattern}"),
            Place::Queue(name) => format!("/amq/queue/{name}"),
        };
        self.subscriptions += 1;
        let id = self.subscriptions;
        self.send(host, &format!("SUBSCRIBE|id:{id}|destination:{destination}||"));
        true
    }

    fn publish(&mut self, host: &mut TestHost, place: Place<'_>, line: &str) {
        let destination = match place {
            Place::Topic(subject) => format!("/topic/{subject}"),
            Place::Queue(name) => format!("/amq/queue/{name}"),
        };
        self.publish_to(host, &destination, line);
    }

    fn messages(&self, output: &[u8]) -> Vec<String> {
        let frames = stomp::frames(output);
        let shown = |frame: &String| {
            let (head, body) = frame.strip_prefix("MESSAGE|")?.split_once("||")?;
            let of_frame = ["subscription:", "destination:", "message-id:", "redelivered:"];
            let is_shown = |header: &&str| !of_frame.iter().any(|name| header.starts_with(name));
            let headers = head.split('|').filter(is_shown).map(|header| format!("{header} | "));
            Some(format!("{}\"{body}\"", headers.collect::<String>()))
        };
        frames.iter().filter_map(shown).collect()
    }

    fn ask(&mut self, _host: &mut TestHost, _by: &str) -> String {
        "reply-to:/temp-queue/mine | \"?\"".to_owned()
    }

    fn answer(&mut self, host: &mut TestHost, request: &str, line: &str) {
        let address = request.split(" | ").find_map(|header| header.strip_prefix("reply-to:"));
        self.publish_to(host, address.expect("an address"), line);
    }
}

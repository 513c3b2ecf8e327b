//! A fake AMQP broker for the load generator: one consumer per queue, no storage, and faults on demand.

use angarium_protocol::amqp091::codec::content::{
    self, ContentHeader, Deliver, PublishMethod, Tagged, write_header,
};
use angarium_protocol::amqp091::codec::{Method, Table};
use angarium_protocol::amqp091::frame;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The fault of every hundredth message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    Drop,
    Duplicate,
    Swap,
    FlipBit,
    /// Closes subscribers' connections (NATS), as brokers do with slow ones.
    CutOff,
    /// Does nothing for a while, once, and then continues.
    Pause,
}

/// A queue: its consumer, waiting messages, and the number of messages so far.
#[derive(Default)]
struct Queue {
    consumer: Option<TcpStream>,
    waiting: Vec<u8>,
    held_back: Vec<u8>,
    count: u64,
    tag: u64,
}

type Queues = Arc<Mutex<BTreeMap<String, Queue>>>;

/// A running fake.
pub(crate) struct Fake {
    /// Its port.
    pub(crate) port: u16,
    queues: Queues,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Fake {
    /// Closes all connections; consumers are forgotten, messages are not.
    pub(crate) fn cut_off(&self) {
        for stream in self.streams.lock().expect("no panic").drain(..) {
            // It may be closed already.
            drop(stream.shutdown(Shutdown::Both));
        }
        for queue in self.queues.lock().expect("no panic").values_mut() {
            queue.consumer = None;
        }
    }

    /// Loses all waiting messages.
    pub(crate) fn forget(&self) {
        self.queues.lock().expect("no panic").values_mut().for_each(|queue| queue.waiting.clear());
    }
}

/// Listens on a free port and serves connections until the process ends.
pub(crate) fn start(fault: Fault) -> u16 {
    Fake::start(fault).port
}

impl Fake {
    /// Listens on a free port and serves connections until the process ends.
    pub(crate) fn start(fault: Fault) -> Fake {
        Fake::start_at("127.0.0.1", fault)
    }

    /// Listens on another address of this machine.
    pub(crate) fn start_at(host: &str, fault: Fault) -> Fake {
        let listener = TcpListener::bind((host, 0)).expect("it has ports");
        let port = listener.local_addr().expect("it is bound").port();
        let queues = Queues::default();
        let fake = Fake { port, queues: Arc::clone(&queues), streams: Arc::default() };
        let streams = Arc::clone(&fake.streams);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let queues = Arc::clone(&queues);
                streams.lock().expect("no panic").extend(stream.try_clone());
                thread::spawn(move || Client::new(stream, queues, fault).serve());
            }
        });
        fake
    }
}

/// A client's connection.
struct Client {
    stream: TcpStream,
    queues: Queues,
    fault: Fault,
    out: Vec<u8>,
    confirms: bool,
    published: u64,
    /// The queue and body of the message that is arriving.
    target: String,
    body: Vec<u8>,
    expected: usize,
    /// The queues that it consumes.
    consumed: Vec<String>,
}

impl Client {
    fn new(stream: TcpStream, queues: Queues, fault: Fault) -> Client {
        Client {
            stream,
            queues,
            fault,
            out: Vec::new(),
            confirms: false,
            published: 0,
            target: String::new(),
            body: Vec::new(),
            expected: 0,
            consumed: Vec::new(),
        }
    }

    fn serve(mut self) {
        let mut header = [0; 8];
        if self.stream.read_exact(&mut header).is_err() || header != frame::PROTOCOL_HEADER {
            return;
        }
        let start = Method::ConnectionStart {
            version_major: 0,
            version_minor: 9,
            server_properties: Table::default(),
            mechanisms: b"PLAIN",
            locales: b"en_US",
        };
        self.answer(0, &start);
        let mut input = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            if self.stream.write_all(&self.out).is_err() {
                return;
            }
            self.out.clear();
            let count = match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(count) => count,
            };
            input.extend_from_slice(&buffer[..count]);
            let mut used = 0;
            while let Some((frame, bytes)) =
                frame::read(&input[used..], 0).expect("the generator sends frames")
            {
                used += bytes;
                match frame.kind {
                    frame::METHOD => self.method(frame.channel, frame.payload),
                    frame::HEADER => {
                        let header = ContentHeader::decode(frame.payload).expect("well-formed");
                        self.expected = header.body_bytes as usize;
                        self.body.clear();
                        self.complete();
                    }
                    _ => {
                        self.body.extend_from_slice(frame.payload);
                        self.complete();
                    }
                }
            }
            input.drain(..used);
        }
    }

    fn answer(&mut self, channel: u16, method: &Method<'_>) {
        method.write_frame(channel, &mut self.out);
    }

    fn method(&mut self, channel: u16, payload: &[u8]) {
        if let Some((&content::PUBLISH, fields)) = payload.split_first_chunk::<4>() {
            let publish = PublishMethod::decode(fields).expect("well-formed");
            self.target = publish.routing_key.to_owned();
            return;
        }
        let answer = match Method::decode(payload).expect("the generator sends methods") {
            Method::ConnectionStartOk { .. } => {
                Method::ConnectionTune { channel_max: 10, frame_max: 8192, heartbeat: 0 }
            }
            Method::ConnectionTuneOk { .. } | Method::BasicAck { .. } => return,
            Method::ConnectionOpen { .. } => Method::ConnectionOpenOk { known_hosts: "" },
            Method::ChannelOpen { .. } => Method::ChannelOpenOk { channel_id: b"" },
            Method::QueueDeclare { queue, .. } => {
                self.queues.lock().expect("no panic").entry(queue.to_owned()).or_default();
                Method::QueueDeclareOk { queue: "", message_count: 0, consumer_count: 0 }
            }
            Method::QueueDelete { queue, .. } => {
                self.queues.lock().expect("no panic").remove(queue);
                Method::QueueDeleteOk { message_count: 0 }
            }
            Method::ConfirmSelect { .. } => {
                self.confirms = true;
                Method::ConfirmSelectOk {}
            }
            Method::BasicQos { .. } => Method::BasicQosOk {},
            Method::BasicConsume { queue, .. } => return self.consume(channel, queue),
            Method::ChannelClose { .. } => {
                let mut queues = self.queues.lock().expect("no panic");
                for queue in self.consumed.drain(..) {
                    queues.entry(queue).or_default().consumer = None;
                }
                Method::ChannelCloseOk {}
            }
            Method::ConnectionClose { .. } => Method::ConnectionCloseOk {},
            other => panic!("the fake does not know {}", other.name()),
        };
        answer.write_frame(channel, &mut self.out);
    }

    fn consume(&mut self, channel: u16, queue: &str) {
        let queues = Arc::clone(&self.queues);
        let mut queues = queues.lock().expect("no panic");
        let name = queue.to_owned();
        let queue = queues.get_mut(queue).expect("it was declared");
        // The answer precedes the first delivery.
        self.answer(channel, &Method::BasicConsumeOk { consumer_tag: "c" });
        self.stream.write_all(&self.out).expect("the consumer is there");
        self.out.clear();
        self.stream.write_all(&queue.waiting).expect("the consumer is there");
        queue.waiting.clear();
        self.consumed.push(name);
        queue.consumer = Some(self.stream.try_clone().expect("a descriptor is left"));
    }

    /// Delivers the message once its body is complete.
    fn complete(&mut self) {
        if self.body.len() < self.expected {
            return;
        }
        self.published += 1;
        let queues = Arc::clone(&self.queues);
        let mut queues = queues.lock().expect("no panic");
        let queue = queues.get_mut(&self.target).expect("it was declared");
        queue.count += 1;
        let struck = queue.count.is_multiple_of(100);
        let mut out = std::mem::take(&mut queue.held_back);
        match self.fault {
            Fault::Drop if struck => {}
            Fault::Duplicate if struck => {
                self.deliver(queue, &mut out);
                self.deliver(queue, &mut out);
            }
            Fault::Swap if struck => {
                let mut held_back = Vec::new();
                self.deliver(queue, &mut held_back);
                queue.held_back = held_back;
            }
            Fault::Swap if !out.is_empty() => {
                let held_back = std::mem::take(&mut out);
                self.deliver(queue, &mut out);
                out.extend_from_slice(&held_back);
            }
            Fault::FlipBit if struck => {
                *self.body.last_mut().expect("bodies are not empty") ^= 1;
                self.deliver(queue, &mut out);
            }
            _ => self.deliver(queue, &mut out),
        }
        match &mut queue.consumer {
            // The consumer may be gone.
            Some(consumer) => drop(consumer.write_all(&out)),
            None => queue.waiting.extend_from_slice(&out),
        }
        if self.confirms {
            let tagged = Tagged { delivery_tag: self.published, bits: 0 };
            tagged.write_frame(content::ACK, 1, &mut self.out);
        }
    }

    fn deliver(&self, queue: &mut Queue, out: &mut Vec<u8>) {
        queue.tag += 1;
        let deliver = Deliver {
            consumer_tag: "c",
            delivery_tag: queue.tag,
            redelivered: false,
            exchange: "",
            routing_key: &self.target,
        };
        deliver.write_frame(1, out);
        write_header(out, 1, self.body.len() as u64, &[0, 0]);
        frame::write_body(out, 1, &self.body, 8192);
    }
}

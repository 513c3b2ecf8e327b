//! A fake broker of topics for the load generator, in MQTT 3.1.1 or STOMP: literal topics, sessions that
//! store messages, and faults on demand.

use crate::fake::Fault;
use crate::faults::Faults;
use rustix::net::RecvFlags;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speech {
    Mqtt,
    Stomp,
}

/// A client's request.
enum Ask {
    Connect { client: String },
    Subscribe { topic: String, answer: Vec<u8> },
    Unsubscribe { topic: String, answer: Vec<u8> },
    Publish { topic: String, body: Vec<u8>, answer: Vec<u8> },
    Nothing { answer: Vec<u8> },
    Disconnect,
}

/// Subscriptions; those of disconnected clients store messages.
#[derive(Default)]
struct Client {
    topics: Vec<String>,
    stream: Option<TcpStream>,
    /// The connection's number.
    index: usize,
    waiting: Vec<u8>,
    number: u64,
}

#[derive(Default)]
struct State {
    clients: BTreeMap<String, Client>,
    faults: Faults,
}

/// A running fake.
pub(crate) struct Topics {
    /// Its port.
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

impl Topics {
    /// Closes all connections; topics and stored messages remain.
    pub(crate) fn cut_off(&self) {
        for client in self.state.lock().expect("no panic").clients.values_mut() {
            // It may be closed already.
            drop(client.stream.take().map(|stream| stream.shutdown(Shutdown::Both)));
        }
    }
}

/// Listens on a free port and serves connections until the process ends.
pub(crate) fn start(speech: Speech, fault: Fault) -> Topics {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
    let port = listener.local_addr().expect("it is bound").port();
    let state = Arc::new(Mutex::new(State::default()));
    let topics = Topics { port, state: Arc::clone(&state) };
    thread::spawn(move || {
        for (index, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            let state = Arc::clone(&state);
            thread::spawn(move || serve(speech, fault, stream, index, &state));
        }
    });
    topics
}

fn serve(speech: Speech, fault: Fault, mut stream: TcpStream, index: usize, state: &Mutex<State>) {
    let mut name = format!("connection-{index}");
    let (mut input, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    'connection: loop {
        let count = match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        input.extend_from_slice(&buffer[..count]);
        let mut used = 0;
        while let Some((ask, bytes)) = parse(speech, &input[used..]) {
            used += bytes;
            let mut state = state.lock().expect("no panic");
            let answer = match ask {
                Ask::Connect { client } => {
                    if !client.is_empty() {
                        name = client;
                    }
                    let answer = connected(speech);
                    if stream.write_all(&answer).is_err() {
                        return;
                    }
                    let client = state.clients.entry(name.clone()).or_default();
                    let mut own = stream.try_clone().expect("a descriptor is left");
                    drop(own.write_all(&std::mem::take(&mut client.waiting)));
                    (client.stream, client.index) = (Some(own), index);
                    continue;
                }
                Ask::Subscribe { topic, answer } => {
                    let client = state.clients.entry(name.clone()).or_default();
                    client.topics.push(topic);
                    answer
                }
                Ask::Unsubscribe { topic, answer } => {
                    let client = state.clients.entry(name.clone()).or_default();
                    client.topics.retain(|it| *it != topic);
                    answer
                }
                Ask::Publish { topic, body, answer } => {
                    state.publish(speech, &topic, body, fault);
                    answer
                }
                Ask::Nothing { answer } => answer,
                Ask::Disconnect => break 'connection,
            };
            if stream.write_all(&answer).is_err() {
                break;
            }
        }
        input.drain(..used);
    }
    let mut state = state.lock().expect("no panic");
    // Its next connection may exist already.
    if let Some(client) = state.clients.get_mut(&name).filter(|client| client.index == index) {
        client.stream = None;
    }
}

impl State {
    fn publish(&mut self, speech: Speech, topic: &str, body: Vec<u8>, fault: Fault) {
        for (topic, body) in self.faults.publish(fault, topic, body) {
            self.deliver(speech, &topic, &body);
        }
    }

    fn deliver(&mut self, speech: Speech, topic: &str, body: &[u8]) {
        let hear = |client: &&mut Client| client.topics.iter().any(|it| it == topic);
        for client in self.clients.values_mut().filter(hear) {
            client.number += 1;
            let bytes = message(speech, topic, body, client.number);
            let hears = |stream: &&mut TcpStream| speech != Speech::Mqtt || !has_left(stream);
            match client.stream.as_mut().filter(hears) {
                // The client may be gone.
                Some(stream) => drop(stream.write_all(&bytes)),
                None => client.waiting.extend_from_slice(&bytes),
            }
        }
    }
}

/// Whether a client has disconnected or hung up, and its own thread has not noticed yet.
fn has_left(stream: &TcpStream) -> bool {
    let mut unread = vec![0; 64 * 1024];
    match rustix::net::recv(stream, &mut unread, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, 0)) => true,
        Ok((_, count)) => unread[..count].ends_with(&[0xE0, 0]),
        Err(_) => false,
    }
}

fn connected(speech: Speech) -> Vec<u8> {
    match speech {
        // Every session is present, so no client subscribes twice.
        Speech::Mqtt => vec![0x20, 2, 1, 0],
        Speech::Stomp => b"CONNECTED\nversion:1.2\n\n\0".to_vec(),
    }
}

/// MQTT deliveries are all of QoS 1, also to subscribers that do not acknowledge.
fn message(speech: Speech, topic: &str, body: &[u8], number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    match speech {
        Speech::Mqtt => {
            out.push(0x32);
            let mut left = 4 + topic.len() + body.len();
            while left > 127 {
                out.push(left as u8 | 0x80);
                left >>= 7;
            }
            out.push(left as u8);
            out.extend_from_slice(&(topic.len() as u16).to_be_bytes());
            out.extend_from_slice(topic.as_bytes());
            out.extend_from_slice(&((number % 65_535) as u16 + 1).to_be_bytes());
            out.extend_from_slice(body);
        }
        Speech::Stomp => {
            let length = body.len();
            let head = format!(
                "MESSAGE\ndestination:{topic}\nack:a-{number}\ncontent-length:{length}\n\n"
            );
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(body);
            out.push(0);
        }
    }
    out
}

fn parse(speech: Speech, bytes: &[u8]) -> Option<(Ask, usize)> {
    match speech {
        Speech::Mqtt => parse_packet(bytes),
        Speech::Stomp => parse_frame(bytes),
    }
}

fn parse_packet(bytes: &[u8]) -> Option<(Ask, usize)> {
    let (first, mut at, mut length) = (*bytes.first()?, 1, 0);
    loop {
        let octet = *bytes.get(at)?;
        length |= usize::from(octet & 0x7F) << (7 * (at - 1));
        at += 1;
        if octet & 0x80 == 0 {
            break;
        }
    }
    let content = bytes.get(at..at + length)?;
    let text = |at: usize| {
        let length = usize::from(u16::from_be_bytes([content[at], content[at + 1]]));
        let end = at + 2 + length;
        (String::from_utf8_lossy(&content[at + 2..end]).into_owned(), end)
    };
    let ask = match first >> 4 {
        1 => Ask::Connect { client: text(10).0 },
        3 => {
            let (topic, mut end) = text(0);
            let mut answer = Vec::new();
            if first & 2 != 0 {
                answer = vec![0x40, 2, content[end], content[end + 1]];
                end += 2;
            }
            Ask::Publish { topic, body: content[end..].to_vec(), answer }
        }
        8 => {
            let answer = vec![0x90, 3, content[0], content[1], 0];
            Ask::Subscribe { topic: text(2).0, answer }
        }
        10 => {
            let answer = vec![0xB0, 2, content[0], content[1]];
            Ask::Unsubscribe { topic: text(2).0, answer }
        }
        12 => Ask::Nothing { answer: vec![0xD0, 0] },
        14 => Ask::Disconnect,
        _ => Ask::Nothing { answer: Vec::new() },
    };
    Some((ask, at + length))
}

fn parse_frame(bytes: &[u8]) -> Option<(Ask, usize)> {
    let head = bytes.windows(2).position(|pair| pair == b"\n\n")?;
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let header = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or("").to_owned()
    };
    let length: usize = header("content-length").parse().unwrap_or(0);
    let body = bytes.get(head + 2..head + 2 + length)?.to_vec();
    bytes.get(head + 2 + length)?;
    let answer = match header("receipt") {
        id if id.is_empty() => Vec::new(),
        id => format!("RECEIPT\nreceipt-id:{id}\n\n\0").into_bytes(),
    };
    let topic = header("destination");
    let ask = match text.lines().next() {
        Some("CONNECT") => Ask::Connect { client: String::new() },
        Some("SEND") => Ask::Publish { topic, body, answer },
        Some("SUBSCRIBE") => Ask::Subscribe { topic, answer },
        _ => Ask::Nothing { answer },
    };
    Some((ask, head + 3 + length))
}

//! Plays a scenario against one broker and writes down what it answers.

use super::release::Release;
use super::scenario::{Action, Scenario, Step};
use crate::tcp;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// How long a broker may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// One protocol's side of a connection: text to bytes and back.
pub(super) trait Wire: Sized {
    /// The release of the peer that the scenarios' reasons are for.
    const COMPARED: Release;
    /// Scenarios that run at the same time: they mostly wait for silence.
    const AT_ONCE: usize;
    /// How long a broker may take to answer where the protocol demands an answer.
    const ANSWER: Duration = Duration::from_secs(2);
    /// A step has ended when nothing has come for this long.
    const SILENCE: Duration = Duration::from_millis(150);

    /// What a client sends first, until the connection is open, by the scenario's options.
    fn open(stream: &mut TcpStream, options: &[String]) -> Result<Self, String>;

    /// What the peer says of itself, as text, in the way of [`Wire::open`].
    fn greeting(stream: &mut TcpStream) -> Result<String, String>;

    /// The bytes of a step, and whether the broker has to answer it.
    fn encode(&mut self, step: &str) -> Result<Encoded, String>;

    /// Takes all complete frames off `input` and appends a line for each to `lines`. What it returns is sent.
    fn decode(&mut self, input: &mut Vec<u8>, lines: &mut Vec<String>) -> Vec<u8>;

    /// A line without what differs from run to run.
    fn normalize(line: &str) -> String;

    /// Whether the connection is over, so that it does not matter who closes the socket.
    fn is_over(&self) -> bool {
        false
    }

    /// Brings the lines of a step into an order, where that does not matter.
    fn arrange(_: &mut [String]) {}
}

/// A step as it is sent.
#[derive(Debug, Default)]
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    pub(super) is_answered: bool,
}

/// A connection of a scenario.
#[derive(Debug)]
struct Connection<W> {
    stream: TcpStream,
    wire: W,
    input: Vec<u8>,
    is_closed: bool,
}

impl<W: Wire> Connection<W> {
    fn open(address: SocketAddr, options: &[String]) -> Result<Connection<W>, String> {
        let mut stream = connect(address)?;
        let wire = W::open(&mut stream, options)?;
        stream.set_nonblocking(true).map_err(|error| error.to_string())?;
        Ok(Connection { stream, wire, input: Vec::new(), is_closed: false })
    }

    /// Reads what there is and writes it down. Whether there was anything.
    fn take(&mut self, lines: &mut Vec<String>) -> bool {
        let mut chunk = [0; 64 << 10];
        let mut came = false;
        while !self.is_closed {
            match self.stream.read(&mut chunk) {
                Ok(count @ 1..) => {
                    came = true;
                    self.input.extend_from_slice(&chunk[..count]);
                    let reply = self.wire.decode(&mut self.input, lines);
                    // A broker that has closed does not take it.
                    let _ = self.stream.write_all(&reply);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Ok(0) | Err(_) => {
                    came = true;
                    self.is_closed = true;
                    if !self.wire.is_over() {
                        lines.push("closed".to_owned());
                    }
                }
            }
        }
        came
    }

    /// Sends all, however long the broker takes to read it.
    fn send(&mut self, mut bytes: &[u8]) {
        let deadline = Instant::now() + PATIENCE;
        while !bytes.is_empty() && Instant::now() < deadline {
            match self.stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    thread::sleep(Duration::from_millis(1));
                }
                // It is seen where it is read.
                Err(_) => return,
            }
        }
    }
}

/// Plays one scenario.
#[derive(Debug)]
pub(super) struct Player<W> {
    address: SocketAddr,
    /// What `$` stands for.
    prefix: String,
    connections: BTreeMap<char, Connection<W>>,
    transcript: Vec<String>,
}

impl<W: Wire> Player<W> {
    /// The process and the scenario's number make its names its own.
    pub(super) fn new(address: SocketAddr, number: usize) -> Player<W> {
        let prefix = format!("d{}-{number}-", std::process::id());
        Player { address, prefix, connections: BTreeMap::new(), transcript: Vec::new() }
    }

    /// Plays all steps; returns each of them with the lines that came back.
    pub(super) fn play(mut self, scenario: &Scenario) -> Result<Vec<String>, String> {
        for step in &scenario.steps {
            self.transcript.push(format!("> {}", step.text));
            self.step(step, &scenario.options)?;
        }
        Ok(self.transcript)
    }

    fn step(&mut self, step: &Step, options: &[String]) -> Result<(), String> {
        let name = step.connection;
        match &step.action {
            Action::Wait(millis) => {
                let end = Instant::now() + Duration::from_millis(*millis);
                self.listen(None, end);
            }
            Action::Disconnect => {
                self.connections.remove(&name);
                self.listen(None, Instant::now());
            }
            Action::Send(text) => {
                let connection = self.connection(name, options)?;
                let encoded = connection.0.wire.encode(&text.replace('$', &connection.1))?;
                connection.0.send(&encoded.bytes);
                let now = Instant::now();
                self.listen(encoded.is_answered.then_some(name), now);
            }
        }
        Ok(())
    }

    /// The connection of that name, opened if it is new, and what `$` stands for.
    fn connection(
        &mut self,
        name: char,
        options: &[String],
    ) -> Result<(&mut Connection<W>, String), String> {
        if !self.connections.contains_key(&name) {
            self.connections.insert(name, Connection::open(self.address, options)?);
        }
        let connection = self.connections.get_mut(&name).expect("it was just added");
        Ok((connection, self.prefix.clone()))
    }

    /// Writes down what comes until it is silent, `end` has passed, and `awaited` has said something or had
    /// its time.
    fn listen(&mut self, awaited: Option<char>, end: Instant) {
        let start = Instant::now();
        let mut lines: BTreeMap<char, Vec<String>> = BTreeMap::new();
        let mut last = start;
        loop {
            for (name, connection) in &mut self.connections {
                if connection.take(lines.entry(*name).or_default()) {
                    last = Instant::now();
                }
            }
            let now = Instant::now();
            let is_missing =
                |name| lines.get(&name).is_none_or(|lines: &Vec<String>| lines.is_empty());
            let is_closed = |name| self.connections.get(&name).is_none_or(|it| it.is_closed);
            let waits = awaited.is_some_and(|name| {
                is_missing(name) && !is_closed(name) && now < start + W::ANSWER
            });
            if !waits && now >= end && now >= last + W::SILENCE {
                break;
            }
            thread::sleep(Duration::from_millis(2));
        }
        for (name, mut lines) in lines {
            W::arrange(&mut lines);
            for line in lines {
                let line = W::normalize(&line.replace(&self.prefix, "$"));
                self.transcript.push(format!("{name}< {line}"));
            }
        }
    }
}

fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    let connected = tcp::connect(address, PATIENCE).and_then(|stream| {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    });
    connected.map_err(|error| error.to_string())
}

/// What the broker there says of itself.
pub(super) fn greeting<W: Wire>(address: SocketAddr) -> Result<String, String> {
    W::greeting(&mut connect(address)?)
}

/// Reads exactly `count` bytes.
pub(super) fn read_exact(stream: &mut impl Read, count: usize) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; count];
    let read: io::Result<()> = stream.read_exact(&mut bytes);
    read.map_err(|error| format!("while the connection was opened: {error}"))?;
    Ok(bytes)
}

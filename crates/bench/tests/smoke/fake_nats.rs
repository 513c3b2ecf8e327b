//! A NATS broker just good enough for the load generator: no wildcard but a last `*`, groups in turn,
//! and faults on demand.

use crate::fake::Fault;
use crate::faults::Faults;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// One subscription of one connection.
struct Subscription {
    subject: String,
    group: Option<String>,
    id: String,
    stream: TcpStream,
    connection: usize,
    /// What it was given in its group's turn so far.
    turns: u64,
}

#[derive(Default)]
struct State {
    subscriptions: Vec<Subscription>,
    faults: Faults,
}

impl Subscription {
    fn hears(&self, subject: &str) -> bool {
        match self.subject.strip_suffix('*') {
            Some(above) => subject.strip_prefix(above).is_some_and(|rest| !rest.contains('.')),
            None => self.subject == subject,
        }
    }
}

impl State {
    /// Hands a message to every subscription without a group, and to the least served of each
    /// group.
    fn deliver(&mut self, subject: &str, body: &[u8]) {
        let mut groups: Vec<String> = Vec::new();
        for index in 0..self.subscriptions.len() {
            let subscription = &self.subscriptions[index];
            if !subscription.hears(subject) {
                continue;
            }
            let index = match subscription.group.clone() {
                None => index,
                Some(group) if groups.contains(&group) => continue,
                Some(group) => {
                    let members = (0..self.subscriptions.len()).filter(|&member| {
                        let it = &self.subscriptions[member];
                        it.hears(subject) && it.group.as_ref() == Some(&group)
                    });
                    let next = members.min_by_key(|&member| self.subscriptions[member].turns);
                    groups.push(group);
                    next.expect("the group has a member")
                }
            };
            let subscription = &mut self.subscriptions[index];
            subscription.turns += 1;
            let line = format!("MSG {subject} {} {}\r\n", subscription.id, body.len());
            let mut out = line.into_bytes();
            out.extend_from_slice(body);
            out.extend_from_slice(b"\r\n");
            // A subscriber that has gone takes nothing more.
            drop(subscription.stream.write_all(&out));
        }
    }

    fn publish(&mut self, subject: &str, body: Vec<u8>, fault: Fault) {
        let out = self.faults.publish(fault, subject, body);
        if self.faults.cuts_off(fault) {
            for subscription in self.subscriptions.drain(..) {
                let text = b"-ERR 'Slow Consumer'\r\n";
                drop((&subscription.stream).write_all(text));
                drop(subscription.stream.shutdown(Shutdown::Both));
            }
        }
        for (subject, body) in out {
            self.deliver(&subject, &body);
        }
    }
}

/// Listens on a free port and serves connections until the process ends.
pub(crate) fn start(fault: Fault) -> u16 {
    start_striking(fault, 100)
}

/// The same, with one message in so many struck.
pub(crate) fn start_striking(fault: Fault, every: u64) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
    let port = listener.local_addr().expect("it is bound").port();
    let faults = Faults::striking(every);
    let state = Arc::new(Mutex::new(State { faults, ..State::default() }));
    thread::spawn(move || {
        for (connection, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            let state = Arc::clone(&state);
            thread::spawn(move || {
                serve(stream, connection, &state, fault);
                let mut state = state.lock().expect("no panic");
                state.subscriptions.retain(|it| it.connection != connection);
            });
        }
    });
    port
}

fn serve(mut stream: TcpStream, connection: usize, state: &Mutex<State>, fault: Fault) {
    let greeting = b"INFO {\"server_id\":\"fake\",\"max_payload\":1048576}\r\nPING\r\n";
    if stream.write_all(greeting).is_err() {
        return;
    }
    let mut input = BufReader::new(stream.try_clone().expect("a descriptor is left"));
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line).map_or(true, |count| count == 0) {
            return;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["CONNECT", ..] | ["PONG"] => {}
            ["PING"] => {
                // Under the lock, so that it cannot fall into the middle of a message.
                let _state = state.lock().expect("no panic");
                drop(stream.write_all(b"PONG\r\n"));
            }
            ["PUB", subject, size] => {
                let size: usize = size.parse().expect("a size");
                let mut body = vec![0; size + 2];
                input.read_exact(&mut body).expect("the body comes");
                body.truncate(size);
                state.lock().expect("no panic").publish(subject, body, fault);
            }
            ["SUB", subject, group @ .., id] => {
                let subscription = Subscription {
                    subject: (*subject).to_owned(),
                    group: group.first().map(|group| (*group).to_owned()),
                    id: (*id).to_owned(),
                    stream: stream.try_clone().expect("a descriptor is left"),
                    connection,
                    turns: 0,
                };
                state.lock().expect("no panic").subscriptions.push(subscription);
            }
            ["UNSUB", id] => {
                let mut state = state.lock().expect("no panic");
                state.subscriptions.retain(|it| it.connection != connection || it.id != *id);
            }
            _ => panic!("the fake does not know {line:?}"),
        }
    }
}

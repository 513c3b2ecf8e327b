//! A fake NATS server for the load generator: a trailing `*` as the only wildcard, queue groups in turn,
//! streams, and faults on demand.

use crate::fake::Fault;
use crate::fake_jetstream::{Sent, Streams};
use crate::faults::Faults;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// A subscription of a connection.
struct Subscription {
    subject: String,
    group: Option<String>,
    id: String,
    stream: TcpStream,
    connection: usize,
    /// Messages it received in its group's turns.
    turns: u64,
}

#[derive(Default)]
struct State {
    subscriptions: Vec<Subscription>,
    streams: Streams,
    faults: Faults,
}

/// A running fake.
pub(crate) struct Nats {
    /// Its port.
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

impl Nats {
    /// Looks at its streams.
    pub(crate) fn streams<T>(&self, look: impl FnOnce(&Streams) -> T) -> T {
        look(&self.state.lock().expect("no panic").streams)
    }
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
    /// Delivers a message to every subscription without a group, and to the least served of each group.
    fn deliver(&mut self, Sent { to, subject, reply, body }: &Sent) {
        let mut groups: Vec<String> = Vec::new();
        for index in 0..self.subscriptions.len() {
            let subscription = &self.subscriptions[index];
            if !subscription.hears(to) {
                continue;
            }
            let index = match subscription.group.clone() {
                None => index,
                Some(group) if groups.contains(&group) => continue,
                Some(group) => {
                    let members = (0..self.subscriptions.len()).filter(|&member| {
                        let it = &self.subscriptions[member];
                        it.hears(to) && it.group.as_ref() == Some(&group)
                    });
                    let next = members.min_by_key(|&member| self.subscriptions[member].turns);
                    groups.push(group);
                    next.expect("the group has a member")
                }
            };
            let subscription = &mut self.subscriptions[index];
            subscription.turns += 1;
            let blank = if reply.is_empty() { "" } else { " " };
            let (id, size) = (&subscription.id, body.len());
            let line = format!("MSG {subject} {id} {reply}{blank}{size}\r\n");
            let mut out = line.into_bytes();
            out.extend_from_slice(body);
            out.extend_from_slice(b"\r\n");
            // The subscriber may be gone.
            drop(subscription.stream.write_all(&out));
        }
    }

    /// Handles a publish: a request, an acknowledgement or a message.
    fn take(&mut self, subject: &str, reply: &str, body: Vec<u8>, fault: Fault) {
        if subject.starts_with("$JS.API.") {
            let answer = self.streams.request(subject, reply, &body);
            answer.iter().for_each(|answer| self.deliver(answer));
        } else if subject.starts_with("$JS.ACK.") {
            self.streams.acknowledge(subject);
        } else {
            let kept = self.streams.keeps(subject) && !reply.is_empty();
            let confirm = kept.then(|| self.streams.confirm(subject, reply));
            self.publish(subject, body, fault);
            confirm.iter().for_each(|confirm| self.deliver(confirm));
        }
        for sent in self.streams.serve() {
            self.deliver(&sent);
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
            if !self.streams.add(&subject, &body) {
                self.deliver(&Sent::new(&subject, body));
            }
        }
    }
}

/// Listens on a free port and serves connections until the process ends.
pub(crate) fn start(fault: Fault) -> Nats {
    start_striking(fault, 100)
}

/// Starts a fake that strikes one message in `every`.
pub(crate) fn start_striking(fault: Fault, every: u64) -> Nats {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
    let port = listener.local_addr().expect("it is bound").port();
    let faults = Faults::striking(every);
    let state = Arc::new(Mutex::new(State { faults, ..State::default() }));
    let nats = Nats { port, state: Arc::clone(&state) };
    thread::spawn(move || {
        for (connection, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            let state = Arc::clone(&state);
            thread::spawn(move || {
                serve(stream, connection, &state, fault);
                unsubscribe(state.lock().expect("no panic"), connection, None);
            });
        }
    });
    nats
}

/// Ends one subscription of a connection, or all.
fn unsubscribe(mut state: MutexGuard<'_, State>, connection: usize, id: Option<&str>) {
    let State { subscriptions, streams, .. } = &mut *state;
    subscriptions.retain(|it| {
        let ends = it.connection == connection && id.is_none_or(|id| it.id == id);
        if ends && let Some(inbox) = it.subject.strip_suffix('*') {
            streams.forget(inbox);
        }
        !ends
    });
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
                // Under the lock, so that it is not written into the middle of a message.
                let _state = state.lock().expect("no panic");
                drop(stream.write_all(b"PONG\r\n"));
            }
            ["PUB", subject, reply @ .., size] => {
                let size: usize = size.parse().expect("a size");
                let mut body = vec![0; size + 2];
                input.read_exact(&mut body).expect("the body comes");
                body.truncate(size);
                let reply = reply.first().copied().unwrap_or("");
                state.lock().expect("no panic").take(subject, reply, body, fault);
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
                unsubscribe(state.lock().expect("no panic"), connection, Some(id));
            }
            _ => panic!("the fake does not know {line:?}"),
        }
    }
}

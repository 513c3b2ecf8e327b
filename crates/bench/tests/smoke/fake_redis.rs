//! A fake Redis server for the load generator, in RESP3: channels with patterns that end in `*`, streams
//! with consumer groups, and faults on demand.

use crate::fake::Fault;
use crate::faults::Faults;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// A subscription of a connection.
struct Subscription {
    channel: String,
    stream: TcpStream,
    connection: usize,
}

/// Entries, and the groups that read them.
#[derive(Default)]
struct Log {
    entries: Vec<Vec<u8>>,
    groups: BTreeMap<String, Group>,
}

/// The number of delivered entries, and of the unacknowledged ones when and to whom.
#[derive(Default)]
struct Group {
    given: usize,
    pending: BTreeMap<usize, (String, Instant)>,
}

#[derive(Default)]
struct State {
    subscriptions: Vec<Subscription>,
    logs: BTreeMap<String, Log>,
    faults: Faults,
    acknowledged: u64,
}

/// A running fake.
pub(crate) struct Redis {
    /// Its port.
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

impl Redis {
    /// Entries that consumers have acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.shared.lock().acknowledged
    }

    /// Existing streams.
    pub(crate) fn streams(&self) -> usize {
        self.shared.lock().logs.len()
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    added: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    /// What a group reads of a stream, if anything arrives in time.
    fn read<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        [key, group, member, count]: [&str; 4],
        wait: Duration,
        out: &mut Vec<u8>,
    ) -> MutexGuard<'a, State> {
        let count = count.parse().expect("a number");
        let mut read = state.read(key, group, member, count);
        if read.is_none() {
            state = self.added.wait_timeout(state, wait).expect("no panic").0;
            read = state.read(key, group, member, count);
        }
        out.extend(read.unwrap_or(b"_\r\n".to_vec()));
        state
    }
}

impl State {
    /// Delivers a message to all subscribers of the channel, or adds it to the stream.
    fn deliver(&mut self, key: &str, body: &[u8]) {
        if let Some(log) = self.logs.get_mut(key) {
            log.entries.push(body.to_vec());
            return;
        }
        for it in &self.subscriptions {
            let mut out = Vec::new();
            match it.channel.strip_suffix('*') {
                Some(above) if key.starts_with(above) => {
                    out.extend(b">4\r\n");
                    bulk(&mut out, b"pmessage");
                    bulk(&mut out, it.channel.as_bytes());
                }
                None if it.channel == key => {
                    out.extend(b">3\r\n");
                    bulk(&mut out, b"message");
                }
                _ => continue,
            }
            bulk(&mut out, key.as_bytes());
            bulk(&mut out, body);
            // The subscriber may be gone.
            drop((&it.stream).write_all(&out));
        }
    }

    fn publish(&mut self, key: &str, body: Vec<u8>, fault: Fault) {
        let out = self.faults.publish(fault, key, body);
        if self.faults.cuts_off(fault) {
            for it in self.subscriptions.drain(..) {
                drop(it.stream.shutdown(Shutdown::Both));
            }
        }
        for (key, body) in out {
            self.deliver(&key, &body);
        }
    }

    /// Adds or ends a subscription.
    fn listen(&mut self, subscription: Subscription, ends: bool, out: &mut Vec<u8>) {
        let is_same = |it: &Subscription| {
            it.connection == subscription.connection && it.channel == subscription.channel
        };
        self.subscriptions.retain(|it| !is_same(it));
        if !ends {
            self.subscriptions.push(subscription);
        }
        out.extend(b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    }

    /// Handles a stream command.
    fn keep(&mut self, words: &[&str], out: &mut Vec<u8>) {
        match words {
            ["XGROUP", "CREATE", key, group, "$", "MKSTREAM"] => {
                let log = self.logs.entry((*key).to_owned()).or_default();
                let from = log.entries.len();
                if log.groups.contains_key(*group) {
                    return out.extend(b"-BUSYGROUP it is there\r\n");
                }
                log.groups.insert((*group).to_owned(), Group { given: from, ..Group::default() });
                out.extend(b"+OK\r\n");
            }
            ["UNLINK", key] => {
                self.logs.remove(*key);
                out.extend(b":1\r\n");
            }
            ["XACK", key, group, ids @ ..] => {
                self.acknowledged += ids.len() as u64;
                if let Some(group) =
                    self.logs.get_mut(*key).and_then(|log| log.groups.get_mut(*group))
                {
                    ids.iter().for_each(|id| drop(group.pending.remove(&index(id))));
                }
                out.extend(format!(":{}\r\n", ids.len()).bytes());
            }
            ["XAUTOCLAIM", key, group, member, idle_ms, from, "COUNT", count] => {
                let idle = Duration::from_millis(idle_ms.parse().expect("a number"));
                let count = count.parse().expect("a number");
                self.claim([key, group, member], idle, (index(from), count), out);
            }
            ["EVAL", ..] => out.extend(b":0\r\n"),
            _ => panic!("the fake does not know {words:?}"),
        }
    }

    /// The next read of a group member, if there are entries; without a member name nothing is pending.
    fn read(&mut self, key: &str, group: &str, member: &str, count: usize) -> Option<Vec<u8>> {
        let log = self.logs.get_mut(key)?;
        let group = log.groups.get_mut(group)?;
        let given = group.given..log.entries.len().min(group.given + count);
        if given.is_empty() {
            return None;
        }
        let mut out = b"%1\r\n".to_vec();
        bulk(&mut out, key.as_bytes());
        out.extend(format!("*{}\r\n", given.len()).bytes());
        for index in given.clone() {
            entry(&mut out, index, &log.entries[index]);
            if !member.is_empty() {
                group.pending.insert(index, (member.to_owned(), Instant::now()));
            }
        }
        group.given = given.end;
        Some(out)
    }

    /// Hands a member entries that others have held for long.
    fn claim(
        &mut self,
        [key, group, member]: [&str; 3],
        idle: Duration,
        (from, count): (usize, usize),
        out: &mut Vec<u8>,
    ) {
        let log = self.logs.get_mut(key).expect("it was declared");
        let group = log.groups.get_mut(group).expect("it was declared");
        let old = group.pending.range_mut(from..).filter(|(_, (_, since))| since.elapsed() >= idle);
        let mut old: Vec<_> = old.take(count + 1).collect();
        let next = if old.len() > count { *old.remove(count).0 } else { 0 };
        out.extend(b"*3\r\n");
        bulk(out, format!("{}-{next}", if next > 0 { MILLISECOND } else { 0 }).as_bytes());
        out.extend(format!("*{}\r\n", old.len()).bytes());
        for (index, owner) in old {
            *owner = (member.to_owned(), Instant::now());
            entry(out, *index, &log.entries[*index]);
        }
        // No entry is deleted.
        out.extend(b"*0\r\n");
    }
}

/// The millisecond of all entry identifiers.
const MILLISECOND: u64 = 1_700_000_000_000;

/// The index of an entry in its stream.
fn index(id: &str) -> usize {
    id.split_once('-').and_then(|(_, index)| index.parse().ok()).expect("an identifier")
}

fn entry(out: &mut Vec<u8>, index: usize, body: &[u8]) {
    out.extend(b"*2\r\n");
    bulk(out, format!("{MILLISECOND}-{index}").as_bytes());
    out.extend(b"*2\r\n");
    bulk(out, b"b");
    bulk(out, body);
}

fn bulk(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(format!("${}\r\n", text.len()).bytes());
    out.extend(text);
    out.extend(b"\r\n");
}

/// Listens on a free port and serves connections until the process ends.
pub(crate) fn start(fault: Fault) -> Redis {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
    let port = listener.local_addr().expect("it is bound").port();
    let shared = Arc::new(Shared::default());
    let redis = Redis { port, shared: Arc::clone(&shared) };
    thread::spawn(move || {
        for (connection, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                // A client may hang up at any time.
                drop(serve(stream, connection, &shared, fault));
                shared.lock().subscriptions.retain(|it| it.connection != connection);
            });
        }
    });
    redis
}

/// The number after a kind byte.
fn length(input: &mut impl BufRead) -> io::Result<usize> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line[1..].trim_end().parse().expect("a length"))
}

/// One command.
fn command(input: &mut impl BufRead) -> io::Result<Vec<Vec<u8>>> {
    let words = length(input)?;
    let word = |_| {
        let mut word = vec![0; length(input)? + 2];
        input.read_exact(&mut word)?;
        word.truncate(word.len() - 2);
        Ok(word)
    };
    (0..words).map(word).collect()
}

fn serve(
    mut stream: TcpStream,
    connection: usize,
    shared: &Shared,
    fault: Fault,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream.try_clone()?);
    let (mut answers, mut transaction) = (true, None);
    loop {
        let words = command(&mut input)?;
        let body = words.last().expect("a command has a word").clone();
        let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
        let words: Vec<String> = words.iter().map(text).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // Under the lock, so that an answer is not written into the middle of a message.
        let mut state = shared.lock();
        let mut out: Vec<u8> = Vec::new();
        match words.as_slice() {
            ["HELLO", "3"] => out.extend(b"%1\r\n$5\r\nproto\r\n:3\r\n"),
            ["MULTI"] => {
                transaction = Some(Vec::new());
                stream.write_all(b"+OK\r\n")?;
                continue;
            }
            ["EXEC" | "DISCARD"] => {
                let results: Vec<Vec<u8>> = transaction.take().expect("it was begun");
                match words[0] {
                    "EXEC" => out.extend(format!("*{}\r\n", results.len()).bytes()),
                    _ => out.extend(b"+OK\r\n"),
                }
                out.extend(results.concat());
            }
            ["PING"] => out.extend(b"+PONG\r\n"),
            ["CLIENT", "REPLY", how] => {
                answers = *how == "ON";
                out.extend(b"+OK\r\n");
            }
            [what @ ("SUBSCRIBE" | "PSUBSCRIBE" | "UNSUBSCRIBE" | "PUNSUBSCRIBE"), channel] => {
                let channel = (*channel).to_owned();
                let it = Subscription { channel, stream: stream.try_clone()?, connection };
                state.listen(it, what.contains("UNSUB"), &mut out);
            }
            ["PUBLISH", channel, _] => {
                assert!(!state.logs.contains_key(*channel), "a channel, and no stream");
                state.publish(channel, body, fault);
                out.extend(b":1\r\n");
            }
            ["XADD", key, "*", "b", _] => {
                assert!(state.logs.contains_key(*key), "it was declared");
                state.publish(key, body, fault);
                shared.added.notify_all();
                bulk(&mut out, b"1700000000000-0");
            }
            ["XREADGROUP", "GROUP", group, member, "BLOCK", ms, "COUNT", count, .., key, ">"] => {
                let wait = Duration::from_millis(ms.parse().expect("a number"));
                let member = if words.contains(&"NOACK") { "" } else { *member };
                state = shared.read(state, [*key, *group, member, *count], wait, &mut out);
            }
            ["QUIT"] => return stream.write_all(b"+OK\r\n"),
            _ => state.keep(&words, &mut out),
        }
        if let Some(results) = &mut transaction {
            results.push(out);
            stream.write_all(b"+QUEUED\r\n")?;
        } else if answers {
            stream.write_all(&out)?;
        }
    }
}

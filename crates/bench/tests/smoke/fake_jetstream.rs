//! Streams with pull consumers for the fake NATS server: stored messages and API answers.

use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};

/// A message to deliver.
pub(crate) struct Sent {
    /// The subject that selects its subscribers.
    pub(crate) to: String,
    /// The subject it carries.
    pub(crate) subject: String,
    pub(crate) reply: String,
    pub(crate) body: Vec<u8>,
}

#[derive(Default)]
struct Stream {
    subject: String,
    durable: bool,
    entries: Vec<Vec<u8>>,
    consumers: BTreeMap<String, Consumer>,
}

struct Consumer {
    policy: String,
    /// Entries delivered so far.
    next: usize,
    /// Outstanding pulls: reply subject and count.
    requests: VecDeque<(String, usize)>,
    acknowledged: u64,
}

#[derive(Default)]
pub(crate) struct Streams {
    streams: BTreeMap<String, Stream>,
    /// Including those of deleted streams.
    acknowledged: u64,
    /// For each stream ever created, whether it survives a restart.
    pub(crate) made: Vec<bool>,
}

impl Streams {
    pub(crate) fn count(&self) -> usize {
        self.streams.len()
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub(crate) fn keeps(&self, subject: &str) -> bool {
        self.streams.values().any(|stream| stream.subject == subject)
    }

    /// Stores a message if its subject has a stream. Returns whether it has.
    pub(crate) fn add(&mut self, subject: &str, body: &[u8]) -> bool {
        let found = self.streams.values_mut().find(|stream| stream.subject == subject);
        found.map(|stream| stream.entries.push(body.to_vec())).is_some()
    }

    /// The publish acknowledgement.
    pub(crate) fn confirm(&self, subject: &str, reply: &str) -> Sent {
        let found = self.streams.iter().find(|(_, stream)| stream.subject == subject);
        let (name, stream) = found.expect("it keeps the subject");
        let body = format!("{{\"stream\":\"{name}\",\"seq\":{}}}", stream.entries.len() + 1);
        Sent::new(reply, body.into_bytes())
    }

    /// Messages for outstanding pulls.
    pub(crate) fn serve(&mut self) -> Vec<Sent> {
        let mut out = Vec::new();
        for (name, stream) in &mut self.streams {
            for (consumer_name, consumer) in &mut stream.consumers {
                while let Some(body) = stream.entries.get(consumer.next)
                    && let Some((inbox, left)) = consumer.requests.front_mut()
                {
                    consumer.next += 1;
                    let at = consumer.next;
                    out.push(Sent {
                        to: inbox.clone(),
                        subject: stream.subject.clone(),
                        reply: format!("$JS.ACK.{name}.{consumer_name}.1.{at}.{at}.17.0"),
                        body: body.clone(),
                    });
                    *left -= 1;
                    if *left == 0 {
                        consumer.requests.pop_front();
                    }
                }
            }
        }
        out
    }

    /// Notes an acknowledgement.
    pub(crate) fn acknowledge(&mut self, subject: &str) {
        let words: Vec<&str> = subject.split('.').collect();
        let ["$JS", "ACK", stream, consumer, _, at, ..] = words[..] else { panic!("{subject}") };
        let stream = self.streams.get_mut(stream).expect("it is there");
        let consumer = stream.consumers.get_mut(consumer).expect("it is there");
        let more = match consumer.policy.as_str() {
            "explicit" => 1,
            "all" => at.parse::<u64>().expect("a number") - consumer.acknowledged,
            policy => panic!("nobody acknowledges with {policy}"),
        };
        consumer.acknowledged += more;
        self.acknowledged += more;
    }

    /// Handles an API request. Returns the answer, if it is immediate.
    pub(crate) fn request(&mut self, subject: &str, reply: &str, body: &[u8]) -> Option<Sent> {
        let asked: Value = serde_json::from_slice(body).unwrap_or_default();
        let words: Vec<&str> = subject.split('.').skip(2).collect();
        let answer = match words[..] {
            ["STREAM", "CREATE", name] => {
                let stream = self.streams.entry(name.to_owned()).or_default();
                stream.subject = asked["subjects"][0].as_str().expect("a subject").to_owned();
                stream.durable = asked["storage"] == "file";
                self.made.push(stream.durable);
                json!({ "config": asked })
            }
            ["STREAM", "DELETE", name] => match self.streams.remove(name) {
                Some(_) => json!({ "success": true }),
                None => json!({ "error": { "code": 404, "err_code": 10059 } }),
            },
            ["CONSUMER", "CREATE", stream, name] => {
                let config = &asked["config"];
                let policy = config["ack_policy"].as_str().expect("a policy").to_owned();
                let requests = VecDeque::new();
                let consumer = Consumer { policy, next: 0, requests, acknowledged: 0 };
                let stream = self.streams.get_mut(stream).expect("it is there");
                stream.consumers.entry(name.to_owned()).or_insert(consumer);
                json!({ "config": config })
            }
            ["CONSUMER", "INFO", stream, name] => {
                let consumer = &self.streams[stream].consumers[name];
                json!({ "config": { "ack_policy": consumer.policy } })
            }
            ["CONSUMER", "MSG", "NEXT", stream, name] => {
                let count = asked["batch"].as_u64().expect("a number") as usize;
                let stream = self.streams.get_mut(stream).expect("it is there");
                let consumer = stream.consumers.get_mut(name).expect("it is there");
                consumer.requests.push_back((reply.to_owned(), count));
                return None;
            }
            _ => panic!("the fake does not know {subject}"),
        };
        Some(Sent::new(reply, answer.to_string().into_bytes()))
    }

    /// Drops the pulls of a closed connection.
    pub(crate) fn forget(&mut self, inbox: &str) {
        for consumer in self.streams.values_mut().flat_map(|it| it.consumers.values_mut()) {
            consumer.requests.retain(|(to, _)| !to.starts_with(inbox));
        }
    }
}

impl Sent {
    /// A message that carries the subject it is sent to.
    pub(crate) fn new(subject: &str, body: Vec<u8>) -> Sent {
        let (to, subject, reply) = (subject.to_owned(), subject.to_owned(), String::new());
        Sent { to, subject, reply, body }
    }
}

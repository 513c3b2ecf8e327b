//! JetStream API requests and answers as JSON, and publish acknowledgements. Independent of sockets.

use crate::client::{Acks, Error, Session};
use angarium_protocol::nats::codec::{Headers, Message};
use serde::Deserialize;
use serde_json::json;

/// Error code: stream not found.
const NO_STREAM: u32 = 10_059;

/// The name of the stream of a subject; stream names must not contain dots.
pub(super) fn stream_of(subject: &str) -> String {
    subject.replace('.', "-")
}

/// Subject and body of the request that creates a session's stream; fields left out have the server's
/// defaults.
pub(super) fn create_stream(session: &Session<'_>) -> (String, String) {
    let name = stream_of(session.filter);
    // A work queue allows one consumer with explicit acknowledgements; otherwise interest retention,
    // which drops a message once its consumers have acknowledged it.
    let is_queue = !session.fan_out && session.acks == Acks::Each;
    let config = json!({
        "name": name,
        "subjects": [session.filter],
        "retention": if is_queue { "workqueue" } else { "interest" },
        "storage": if session.durable { "file" } else { "memory" },
        "num_replicas": 1,
    });
    (format!("$JS.API.STREAM.CREATE.{name}"), config.to_string())
}

/// Subject and body of the request that creates a session's consumer; likewise.
pub(super) fn create_consumer(session: &Session<'_>) -> (String, String) {
    let (stream, name) = (stream_of(session.filter), session.name);
    let mut config = json!({
        "name": name,
        "durable_name": name,
        "deliver_policy": "all",
        "ack_policy": ack_policy(session.acks),
        "replay_policy": "instant",
    });
    if session.acks != Acks::None {
        // Each client limits unacknowledged messages itself, by what it pulls.
        config["max_ack_pending"] = json!(-1);
    }
    let body = json!({ "stream_name": stream, "config": config });
    (format!("$JS.API.CONSUMER.CREATE.{stream}.{name}"), body.to_string())
}

fn ack_policy(acks: Acks) -> &'static str {
    match acks {
        Acks::None => "none",
        Acks::Each => "explicit",
        Acks::UpTo => "all",
    }
}

/// A server's answer to an API request.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Answer {
    error: Option<Refusal>,
    config: Option<ConsumerState>,
    /// No responders: the server has no JetStream.
    #[serde(skip)]
    no_responders: bool,
}

#[derive(Debug, Deserialize)]
struct ConsumerState {
    ack_policy: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    code: u32,
    #[serde(default)]
    err_code: u32,
    #[serde(default)]
    description: String,
}

impl Refusal {
    fn into_error(self) -> Error {
        let Refusal { code, err_code, description } = self;
        Error::Closed(format!("{description} (JetStream's error {code}, {err_code})"))
    }
}

impl Answer {
    /// Decodes an answer.
    pub(super) fn read(message: &Message<'_>) -> Result<Answer, Error> {
        match status(message) {
            Some(Status { code: 503, .. }) => {
                Ok(Answer { no_responders: true, ..Answer::default() })
            }
            Some(status) => Err(status.into_error()),
            None => serde_json::from_slice(message.body)
                .map_err(|_| Error::invalid("an invalid answer")),
        }
    }

    /// An error unless the request succeeded.
    pub(super) fn done(self) -> Result<(), Error> {
        if self.no_responders {
            return Err(Error::Closed("JetStream is not enabled there".to_owned()));
        }
        self.error.map_or(Ok(()), |refusal| Err(refusal.into_error()))
    }

    /// An error unless the stream was deleted or did not exist.
    pub(super) fn deleted(self) -> Result<(), Error> {
        match self.error {
            _ if self.no_responders => Ok(()),
            Some(Refusal { err_code: NO_STREAM, .. }) => Ok(()),
            error => Answer { error, ..self }.done(),
        }
    }

    /// The consumer's acknowledgement policy.
    pub(super) fn acks(self) -> Result<Acks, Error> {
        let policy = self.config.as_ref().and_then(|config| config.ack_policy.clone());
        self.done()?;
        let all = [Acks::None, Acks::Each, Acks::UpTo];
        let known = all.into_iter().find(|acks| policy.as_deref() == Some(ack_policy(*acks)));
        known.ok_or_else(|| Error::invalid("a consumer without an acknowledgement policy"))
    }
}

/// The status line of a message without a payload.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Status<'a> {
    pub(super) code: u32,
    description: &'a [u8],
}

impl Status<'_> {
    pub(super) fn into_error(self) -> Error {
        let (code, description) = (self.code, String::from_utf8_lossy(self.description));
        Error::Closed(format!("{description} (status {code})"))
    }
}

/// The status of a message, if it is one; a status that is no number is 0.
pub(super) fn status<'a>(message: &Message<'a>) -> Option<Status<'a>> {
    if message.headers.is_empty() || !message.body.is_empty() {
        return None;
    }
    let (code, description) = Headers::read(message.headers).status()?;
    let code = std::str::from_utf8(code).ok().and_then(|code| code.parse().ok()).unwrap_or(0);
    Some(Status { code, description })
}

/// A publish acknowledgement.
#[derive(Debug, Default, Deserialize)]
struct PublishAck {
    error: Option<Refusal>,
    #[serde(default)]
    seq: u64,
    #[serde(default)]
    duplicate: bool,
}

/// The constant part of a stream's publish acknowledgements before the sequence number: all but the
/// first are read without parsing JSON.
#[derive(Debug, Default)]
pub(super) struct PublishAcks {
    prefix: Vec<u8>,
}

impl PublishAcks {
    /// An error unless the message was stored.
    #[inline]
    pub(super) fn read(&mut self, message: &Message<'_>) -> Result<(), Error> {
        if message.headers.is_empty() && self.has_prefix(message.body) {
            return Ok(());
        }
        self.read_any(message)
    }

    #[inline]
    fn has_prefix(&self, body: &[u8]) -> bool {
        let Some([digits @ .., b'}']) = body.strip_prefix(self.prefix.as_slice()) else {
            return false;
        };
        !self.prefix.is_empty() && is_sequence(digits)
    }

    fn read_any(&mut self, message: &Message<'_>) -> Result<(), Error> {
        match status(message) {
            Some(Status { code: 503, .. }) => {
                return Err(Error::Closed("no stream stores this subject".to_owned()));
            }
            Some(status) => return Err(status.into_error()),
            None => {}
        }
        let ack: PublishAck = serde_json::from_slice(message.body)
            .map_err(|_| Error::invalid("an invalid publish acknowledgement"))?;
        if let Some(refusal) = ack.error {
            return Err(refusal.into_error());
        }
        if ack.seq == 0 || ack.duplicate {
            return Err(Error::invalid("an acknowledgement of a message that it did not store"));
        }
        self.learn(message.body);
        Ok(())
    }

    fn learn(&mut self, body: &[u8]) {
        let Some(rest) = body.strip_suffix(b"}") else { return };
        let digits = rest.iter().rev().take_while(|octet| octet.is_ascii_digit()).count();
        let before = &rest[..rest.len() - digits];
        if before.ends_with(b"\"seq\":") && is_sequence(&rest[before.len()..]) {
            self.prefix = before.to_vec();
        }
    }
}

/// Whether these are the digits of a stream sequence, which counts from 1.
#[inline]
fn is_sequence(digits: &[u8]) -> bool {
    digits.len() <= 20
        && matches!(digits, [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit))
}

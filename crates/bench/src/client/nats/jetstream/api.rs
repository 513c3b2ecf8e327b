//! Requests to a server's JetStream and its answers, as JSON, and what it says of a published message.
//! Knows no sockets.

use crate::client::{Acks, Error, Session};
use angarium_protocol::nats::codec::{Headers, Message};
use serde::{Deserialize, Serialize};

/// The code of an error that says that a stream is not there.
const NO_STREAM: u32 = 10_059;

/// The stream that keeps what is published to a subject; its name must have no dots.
pub(super) fn stream_of(subject: &str) -> String {
    subject.replace('.', "-")
}

/// The configuration of a stream; what is not named is as the server has it.
#[derive(Serialize)]
struct StreamConfig<'a> {
    name: &'a str,
    subjects: [&'a str; 1],
    retention: &'a str,
    storage: &'a str,
    num_replicas: u32,
}

/// Subject and body of a request that makes the stream of a session.
pub(super) fn create_stream(session: &Session<'_>) -> (String, String) {
    let name = stream_of(session.filter);
    // A work queue has one consumer, which acknowledges each message; any other is kept as long as
    // somebody is interested in it, which comes to the same.
    let is_queue = !session.fan_out && session.acks == Acks::Each;
    let config = StreamConfig {
        name: &name,
        subjects: [session.filter],
        retention: if is_queue { "workqueue" } else { "interest" },
        storage: if session.durable { "file" } else { "memory" },
        num_replicas: 1,
    };
    (format!("$JS.API.STREAM.CREATE.{name}"), json(&config))
}

/// The configuration of a consumer, likewise.
#[derive(Serialize)]
struct ConsumerConfig<'a> {
    name: &'a str,
    durable_name: &'a str,
    deliver_policy: &'a str,
    ack_policy: &'a str,
    replay_policy: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_ack_pending: Option<i64>,
}

#[derive(Serialize)]
struct CreateConsumer<'a> {
    stream_name: &'a str,
    config: ConsumerConfig<'a>,
}

/// Subject and body of a request that makes a session's consumer.
pub(super) fn create_consumer(session: &Session<'_>) -> (String, String) {
    let (stream, name) = (stream_of(session.filter), session.name);
    let acks = session.acks;
    let config = ConsumerConfig {
        name,
        durable_name: name,
        deliver_policy: "all",
        ack_policy: ack_policy(acks),
        replay_policy: "instant",
        // Each client bounds what it has not acknowledged by what it asks for.
        max_ack_pending: (acks != Acks::None).then_some(-1),
    };
    let body = json(&CreateConsumer { stream_name: &stream, config });
    (format!("$JS.API.CONSUMER.CREATE.{stream}.{name}"), body)
}

fn ack_policy(acks: Acks) -> &'static str {
    match acks {
        Acks::None => "none",
        Acks::Each => "explicit",
        Acks::UpTo => "all",
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers are JSON")
}

/// What a server says to a request.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Answer {
    error: Option<Refusal>,
    config: Option<ConsumerState>,
    /// Nobody is there to answer: the server has no JetStream.
    #[serde(skip)]
    is_unheard: bool,
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
    /// Reads one.
    pub(super) fn read(message: &Message<'_>) -> Result<Answer, Error> {
        match status(message) {
            Some(Status { code: 503, .. }) => Ok(Answer { is_unheard: true, ..Answer::default() }),
            Some(status) => Err(status.into_error()),
            None => serde_json::from_slice(message.body)
                .map_err(|_| Error::nonsense("what is no answer")),
        }
    }

    /// The request was done.
    pub(super) fn done(self) -> Result<(), Error> {
        if self.is_unheard {
            return Err(Error::Closed("JetStream is not enabled there".to_owned()));
        }
        self.error.map_or(Ok(()), |refusal| Err(refusal.into_error()))
    }

    /// A stream was deleted, or there was none.
    pub(super) fn deleted(self) -> Result<(), Error> {
        match self.error {
            _ if self.is_unheard => Ok(()),
            Some(Refusal { err_code: NO_STREAM, .. }) => Ok(()),
            error => Answer { error, ..self }.done(),
        }
    }

    /// How deliveries of a consumer are to be acknowledged.
    pub(super) fn acks(self) -> Result<Acks, Error> {
        let policy = self.config.as_ref().and_then(|config| config.ack_policy.clone());
        self.done()?;
        let all = [Acks::None, Acks::Each, Acks::UpTo];
        let known = all.into_iter().find(|acks| policy.as_deref() == Some(ack_policy(*acks)));
        known.ok_or_else(|| Error::nonsense("a consumer without a policy of acknowledgements"))
    }
}

/// What a message without a payload of its own says in its first line.
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

/// The status of a message, if it is one. What is no number is status 0.
pub(super) fn status<'a>(message: &Message<'a>) -> Option<Status<'a>> {
    if message.headers.is_empty() || !message.body.is_empty() {
        return None;
    }
    let (code, description) = Headers::read(message.headers).status()?;
    let code = std::str::from_utf8(code).ok().and_then(|code| code.parse().ok()).unwrap_or(0);
    Some(Status { code, description })
}

/// What a stream says of a message that was published to it.
#[derive(Debug, Default, Deserialize)]
struct PublishAck {
    error: Option<Refusal>,
    #[serde(default)]
    seq: u64,
    #[serde(default)]
    duplicate: bool,
}

/// What publish acknowledgements of one stream begin with, up to the number that each has of its own:
/// all but the first are read without a look at their JSON.
#[derive(Debug, Default)]
pub(super) struct PublishAcks {
    usual: Vec<u8>,
}

impl PublishAcks {
    /// The message is in its stream, or why it is not.
    #[inline]
    pub(super) fn read(&mut self, message: &Message<'_>) -> Result<(), Error> {
        if message.headers.is_empty() && self.is_usual(message.body) {
            return Ok(());
        }
        self.read_any(message)
    }

    #[inline]
    fn is_usual(&self, body: &[u8]) -> bool {
        let Some([digits @ .., b'}']) = body.strip_prefix(self.usual.as_slice()) else {
            return false;
        };
        !self.usual.is_empty() && is_sequence(digits)
    }

    fn read_any(&mut self, message: &Message<'_>) -> Result<(), Error> {
        match status(message) {
            Some(Status { code: 503, .. }) => {
                return Err(Error::Closed("no stream keeps what is published there".to_owned()));
            }
            Some(status) => return Err(status.into_error()),
            None => {}
        }
        let ack: PublishAck = serde_json::from_slice(message.body)
            .map_err(|_| Error::nonsense("what is no acknowledgement of a message"))?;
        if let Some(refusal) = ack.error {
            return Err(refusal.into_error());
        }
        if ack.seq == 0 || ack.duplicate {
            return Err(Error::nonsense("an acknowledgement of a message that it did not add"));
        }
        self.learn(message.body);
        Ok(())
    }

    fn learn(&mut self, body: &[u8]) {
        let Some(rest) = body.strip_suffix(b"}") else { return };
        let digits = rest.iter().rev().take_while(|octet| octet.is_ascii_digit()).count();
        let before = &rest[..rest.len() - digits];
        if before.ends_with(b"\"seq\":") && is_sequence(&rest[before.len()..]) {
            self.usual = before.to_vec();
        }
    }
}

/// Whether these are the digits of a stream's sequence, which counts from 1.
#[inline]
fn is_sequence(digits: &[u8]) -> bool {
    digits.len() <= 20
        && matches!(digits, [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit))
}

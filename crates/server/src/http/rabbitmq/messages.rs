//! Messages published and taken by way of RabbitMQ's management, with the rights of who asks.
//!
//! It is done as a client would, over a pair of sockets to home: the rules for messages have one place.

use super::super::audit::Shared;
use super::answer::{Answer, Refused};
use super::list::{Pair, check_vhost, exchange_name};
use super::properties::{GivenProperties, shown_properties};
use super::read::{Body, Flag};
use crate::amqp_client::{Client, Event, Login, Message};
use crate::reactor::listeners::Accepted;
use angarium_protocol::Peer;
use angarium_protocol::amqp091::codec::Method;
use axum::Json;
use axum::extract::Path;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long the broker may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Messages that one request takes, and payload bytes after which it takes no further one.
const MESSAGES_MAX: u32 = 1_000;
const BYTES_MAX: usize = 16 << 20;
/// What begins the text of a refusal.
const REFUSED: &str = "the broker refuses: ";

/// A message to be published.
#[derive(Debug, Deserialize)]
pub(super) struct PublishBody {
    #[serde(default)]
    properties: Value,
    routing_key: String,
    payload: String,
    #[serde(default)]
    payload_encoding: Option<String>,
}

/// What becomes of messages that are taken.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum AckMode {
    AckRequeueTrue,
    AckRequeueFalse,
    RejectRequeueTrue,
    RejectRequeueFalse,
}

/// Messages to be taken.
#[derive(Debug, Deserialize)]
pub(super) struct GetBody {
    count: Count,
    #[serde(default)]
    ackmode: Option<AckMode>,
    /// In RabbitMQ before 3.7.
    #[serde(default)]
    requeue: Option<Flag>,
    encoding: String,
    #[serde(default)]
    truncate: Option<Count>,
}

/// A number, or the text of one.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Count {
    Number(u32),
    Text(String),
}

impl Count {
    fn number(&self, what: &str) -> Result<u32, String> {
        match self {
            Count::Number(number) => Ok(*number),
            Count::Text(text) => text.parse().map_err(|_| format!("{what}: '{text}' is no number")),
        }
    }
}

/// A client of home with the rights of who asks.
fn client(state: &Shared, vhost: &str) -> Result<Client, String> {
    let Some(user) = state.administrator.user.clone() else {
        return Err(
            "messages are published and taken as a user: ask over TCP, with a password".into()
        );
    };
    let failed = |error: std::io::Error| format!("no sockets: {error}");
    let (own, other) = UnixStream::pair().map_err(failed)?;
    other.set_nonblocking(true).map_err(failed)?;
    let peer = Peer {
        address: format!("{} (management)", state.administrator.from),
        local: true,
        certificate_name: Some(user),
        ..Peer::default()
    };
    let accepted = Accepted { fd: other.into(), peer, is_proxied: false };
    let taken = state.mailboxes.home().tell(move |shard| shard.take_own_client(accepted));
    taken.map_err(|_| "the broker is shutting down".to_owned())?;
    let login = Login { mechanism: "EXTERNAL", response: b"", vhost };
    Client::over(Box::new(own), &login)
}

/// Does something as such a client, on a thread of its own: it blocks.
async fn as_client<T: Send + 'static>(
    state: Shared,
    vhost: String,
    work: impl FnOnce(&mut Client) -> Result<T, String> + Send + 'static,
) -> Answer<T> {
    check_vhost(&state, &vhost).await?;
    let done = tokio::task::spawn_blocking(move || {
        let mut client = client(&state, &vhost)?;
        let done = work(&mut client)?;
        client.close()?;
        Ok::<T, String>(done)
    });
    let done = done.await.map_err(|error| Refused::bad(error.to_string()))?;
    done.map_err(|why| refused(&why))
}

/// What the broker has told a client, as an answer: `404 NOT_FOUND - no queue 'q'`.
fn refused(why: &str) -> Refused {
    let Some((code, text)) = why.strip_prefix(REFUSED).and_then(|it| it.split_once(' ')) else {
        return Refused::bad(why);
    };
    match code {
        "404" => Refused::none(text),
        "403" => Refused::forbidden(text),
        _ => Refused::bad(text),
    }
}

pub(super) async fn publish(
    state: Shared,
    Path((vhost, exchange)): Pair,
    Body(body): Body<PublishBody>,
) -> Answer {
    let exchange = exchange_name(exchange);
    let payload = match body.payload_encoding.as_deref() {
        None | Some("string") => body.payload.into_bytes(),
        Some("base64") => BASE64_STANDARD
            .decode(&body.payload)
            .map_err(|error| format!("payload: no base64: {error}"))?,
        Some(other) => return Err(Refused::bad(format!("payload_encoding: '{other}'"))),
    };
    let properties = GivenProperties::read(body.properties)?;
    let key = body.routing_key;
    if key.len() > 255 || exchange.len() > 255 {
        return Err(Refused::bad("routing_key: is longer than 255 bytes"));
    }
    let work = move |client: &mut Client| {
        client.put(&Method::ConfirmSelect { no_wait: false });
        client.expect("confirm.select-ok")?;
        client.put_message(&exchange, &key, &properties.lent()?, &payload);
        client.flush()?;
        routed(client)
    };
    let routed = as_client(state, vhost, work).await?;
    Ok(Json(json!({ "routed": routed })))
}

/// Whether the message that was published went anywhere, once the broker says that it is safe.
fn routed(client: &mut Client) -> Result<bool, String> {
    let until = Instant::now() + TIMEOUT;
    let mut routed = true;
    loop {
        match client.next(Some(until))? {
            Some(Event::Returned { .. }) => routed = false,
            Some(Event::Confirmed { accepted: true, .. }) => return Ok(routed),
            Some(Event::Confirmed { accepted: false, .. }) => {
                return Err("a queue does not take the message".to_owned());
            }
            Some(_) => {}
            None => return Err("the broker does not confirm the message in time".to_owned()),
        }
    }
}

pub(super) async fn get(
    state: Shared,
    Path((vhost, queue)): Pair,
    Body(body): Body<GetBody>,
) -> Answer {
    let count = body.count.number("count")?;
    if !(1..=MESSAGES_MAX).contains(&count) {
        return Err(Refused::bad(format!("count: must be between 1 and {MESSAGES_MAX}")));
    }
    let truncate = body.truncate.as_ref().map(|it| it.number("truncate")).transpose()?;
    let as_text = match body.encoding.as_str() {
        "auto" => true,
        "base64" => false,
        other => {
            return Err(Refused::bad(format!("encoding: '{other}' is neither auto nor base64")));
        }
    };
    let requeues = body.requeue.is_none_or(|Flag(requeue)| requeue);
    let otherwise = if requeues { AckMode::AckRequeueTrue } else { AckMode::AckRequeueFalse };
    let mode = body.ackmode.unwrap_or(otherwise);
    let work = move |client: &mut Client| taken(client, &queue, count, mode);
    let messages = as_client(state, vhost, work).await?;
    let truncate = truncate.map_or(usize::MAX, |bytes| bytes as usize);
    Ok(Json(messages.iter().map(|message| shown(message, as_text, truncate)).collect()))
}

/// Takes messages, one after the other, and settles them.
fn taken(
    client: &mut Client,
    queue: &str,
    count: u32,
    mode: AckMode,
) -> Result<Vec<Message>, String> {
    let mut messages: Vec<Message> = Vec::new();
    let mut bytes = 0;
    for _ in 0..count {
        client.put(&Method::BasicGet { ticket: 0, queue, no_ack: false });
        client.flush()?;
        let Some(message) = answer(client)? else { break };
        bytes += message.body.len();
        messages.push(message);
        if bytes > BYTES_MAX {
            break;
        }
    }
    // All of them are settled once all are here: what is not handed over stays.
    if let Some(last) = messages.last() {
        let (delivery_tag, multiple) = (last.delivery_tag, true);
        let requeue = match mode {
            AckMode::AckRequeueFalse => None,
            AckMode::RejectRequeueFalse => Some(false),
            AckMode::AckRequeueTrue | AckMode::RejectRequeueTrue => Some(true),
        };
        client.put(&match requeue {
            None => Method::BasicAck { delivery_tag, multiple },
            Some(requeue) => Method::BasicNack { delivery_tag, multiple, requeue },
        });
        client.flush()?;
    }
    Ok(messages)
}

fn answer(client: &mut Client) -> Result<Option<Message>, String> {
    let until = Instant::now() + TIMEOUT;
    loop {
        match client.next(Some(until))? {
            Some(Event::Delivered(message)) => return Ok(Some(message)),
            Some(Event::Answer("basic.get-empty", _)) => return Ok(None),
            Some(_) => {}
            None => return Err("the broker does not answer in time".to_owned()),
        }
    }
}

fn shown(message: &Message, as_text: bool, truncate: usize) -> Value {
    let body = &message.body[..message.body.len().min(truncate)];
    let text = str::from_utf8(body).ok().filter(|_| as_text);
    let (payload, encoding) = match text {
        Some(text) => (text.to_owned(), "string"),
        None => (BASE64_STANDARD.encode(body), "base64"),
    };
    json!({
        "payload_bytes": message.body.len(),
        "redelivered": message.redelivered,
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "message_count": message.left,
        "properties": shown_properties(&message.properties),
        "payload": payload,
        "payload_encoding": encoding,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_are_told_has_its_status() {
        for (why, status) in [
            ("the broker refuses: 404 NOT_FOUND - no queue 'q'", 404),
            ("the broker refuses: 403 ACCESS_REFUSED - no", 401),
            ("the broker refuses: 406 PRECONDITION_FAILED - no", 400),
            ("the connection broke: reset", 400),
        ] {
            assert_eq!(refused(why).status.as_u16(), status, "{why}");
        }
    }

    #[test]
    fn payloads_are_text_where_they_can_be() {
        let check = |body: &[u8], as_text, truncate, payload: &str, encoding: &str| {
            let message = Message { body: body.to_vec(), ..Message::default() };
            let shown = shown(&message, as_text, truncate);
            assert_eq!(
                (&shown["payload"], &shown["payload_encoding"]),
                (&json!(payload), &json!(encoding))
            );
            assert_eq!(shown["payload_bytes"], body.len());
        };
        check(b"text", true, 9, "text", "string");
        check(b"text", false, 9, "dGV4dA==", "base64");
        check(b"text", true, 2, "te", "string");
        check(b"\xff", true, 9, "/w==", "base64");
    }
}

//! Messages from the client: SEND.

use super::asked::{Asked, Declared, MAIN, Taken, check_receipt};
use super::codec::{Headers, Version, put_header};
use super::destination::{self, Destination};
use super::fault::Fault;
use super::frame::{Malformed, number, plain_name, unescaped};
use super::handler::Handler;
use super::mapping::{QueueHeaders, truth};
use super::properties::{self, EXPIRATION, EXPIRES, PRIORITY, REPLY_TO, USER_ID};
use super::unconfirmed::Waiting;
use crate::names::SUBJECT_EXCHANGE;
use crate::properties::DELAY_HEADER;
use crate::{Context, Host};
use angarium_engine::{Bytes, Content, MILLIS_MAX, Publish, Retain, Time};
use std::borrow::Cow;
use std::time::Duration;

/// The header in which ActiveMQ's clients ask for a delay, in milliseconds.
const SCHEDULED_DELAY: &str = "AMQ_SCHEDULED_DELAY";

/// What the headers of SEND say beside what is kept of them.
#[derive(Debug, Default)]
struct Sent<'a> {
    destination: Option<Cow<'a, str>>,
    receipt: Option<Cow<'a, str>>,
    transaction: Option<Cow<'a, str>>,
    reply_to: Option<Cow<'a, str>>,
    user_id: Option<Cow<'a, str>>,
    persistent: Option<bool>,
    priority: Option<u8>,
    ttl: Option<Duration>,
    /// Milliseconds since the Unix epoch.
    expires: Option<u64>,
    delay: Option<Duration>,
    is_multicast: bool,
    /// There are headers that may say what the queue is to be like.
    has_queue_headers: bool,
}

impl<'a> Sent<'a> {
    /// Reads headers, and keeps those of the message.
    #[inline]
    fn read(headers: &Headers<'a>, kept: &mut Vec<u8>) -> Result<Sent<'a>, Fault> {
        let (mut sent, version) = (Sent::default(), headers.version());
        for (name, value) in headers.raw() {
            let name = plain_name(name, version);
            if name.is_empty() {
                return Err(Malformed::HeaderLine.into());
            }
            let text = || unescaped(value, version);
            match name {
                b"destination" => first(&mut sent.destination, text)?,
                b"receipt" => first(&mut sent.receipt, text)?,
                b"transaction" => first(&mut sent.transaction, text)?,
                b"persistent" => {
                    sent.persistent = sent.persistent.or(truth(&text()?));
                }
                b"reply-to" => {
                    first(&mut sent.reply_to, text)?;
                    continue;
                }
                _ => sent.note(name, text)?,
            }
            if !properties::is_of_frame(name) {
                properties::keep(kept, name, value, version)?;
            }
        }
        Ok(sent)
    }

    /// Takes a header that means something to the broker, if it is one.
    fn note(
        &mut self,
        name: &[u8],
        text: impl Fn() -> Result<Cow<'a, str>, Malformed>,
    ) -> Result<(), Fault> {
        let Ok(name) = str::from_utf8(name) else { return Ok(()) };
        match name {
            PRIORITY if self.priority.is_none() => {
                let wrong = "has to be a number from 0 to 255";
                let text = text()?;
                let parsed = text.trim().parse();
                self.priority = Some(parsed.map_err(|_| wrong_header(name, &text, wrong))?);
            }
            EXPIRATION if self.ttl.is_none() => {
                let wrong = "has to be milliseconds, ten years at most";
                let text = text()?;
                let millis = number(text.as_bytes()).filter(|millis| *millis <= MILLIS_MAX);
                let millis = millis.ok_or_else(|| wrong_header(name, &text, wrong))?;
                self.ttl = Some(Duration::from_millis(millis));
            }
            EXPIRES if self.expires.is_none() => {
                // JMS clients say 0 for never.
                self.expires = number(text()?.as_bytes()).filter(|millis| *millis > 0);
            }
            DELAY_HEADER | SCHEDULED_DELAY if self.delay.is_none() => {
                self.delay = number(text()?.as_bytes()).map(Duration::from_millis);
            }
            USER_ID if self.user_id.is_none() => self.user_id = Some(text()?),
            "destination-type" => self.is_multicast = text()?.eq_ignore_ascii_case("MULTICAST"),
            "durable" | "auto-delete" | "exclusive" => self.has_queue_headers = true,
            _ => self.has_queue_headers |= name.starts_with("x-") && name != DELAY_HEADER,
        }
        Ok(())
    }

    /// How long the message lives.
    fn ttl(&self, now: Time) -> Option<Duration> {
        let expires = self.expires.map(|millis| Time(millis.saturating_mul(1_000)).since(now));
        self.ttl.or(expires).map(|ttl| ttl.min(Duration::from_millis(MILLIS_MAX)))
    }
}

#[inline]
fn first<'a>(
    slot: &mut Option<Cow<'a, str>>,
    text: impl Fn() -> Result<Cow<'a, str>, Malformed>,
) -> Result<(), Fault> {
    if slot.is_none() {
        *slot = Some(text()?);
    }
    Ok(())
}

fn wrong_header(name: &str, value: &str, why: &str) -> Fault {
    Fault::new("Malformed frame", format!("header '{name}' is '{value}': it {why}"))
}

/// Where a message goes.
struct Target<'a> {
    exchange: &'a str,
    key: &'a str,
    /// It is an error if no queue takes it.
    mandatory: bool,
}

impl Handler {
    /// Takes SEND. `shared`: the body, where it is large and shared.
    #[inline]
    pub(super) fn send(
        &mut self,
        context: &mut Context<impl Host>,
        headers: &Headers<'_>,
        body: &[u8],
        shared: Option<&Bytes>,
    ) -> Result<Taken, Fault> {
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        let taken = self.send_keeping(context, headers, body, shared, &mut kept);
        self.kept = kept;
        taken
    }

    #[inline]
    fn send_keeping(
        &mut self,
        context: &mut Context<impl Host>,
        headers: &Headers<'_>,
        body: &[u8],
        shared: Option<&Bytes>,
        kept: &mut Vec<u8>,
    ) -> Result<Taken, Fault> {
        let sent = Sent::read(headers, kept)?;
        check_receipt(sent.receipt.as_deref())?;
        let named =
            sent.destination.as_deref().ok_or_else(|| Fault::missing("SEND", "destination"))?;
        let destination = Destination::parse(named, sent.is_multicast)?;
        self.check_user(&sent)?;
        if let Some(reply_to) = &sent.reply_to {
            let Some(address) = self.reply_address(context, reply_to)? else {
                return Ok(Taken::Again);
            };
            put_header(kept, REPLY_TO, &address, Version::V1_2);
        }
        if let Destination::Queue(name) = &destination
            && self.ensure_queue(context, name, sent.has_queue_headers.then_some(headers))?
                == Taken::Again
        {
            return Ok(Taken::Again);
        }
        let own;
        let target = match &destination {
            Destination::Queue(name) | Destination::OldQueue(name) => {
                Target { exchange: "", key: name, mandatory: true }
            }
            Destination::Topic(key) => Target { exchange: SUBJECT_EXCHANGE, key, mandatory: false },
            Destination::Exchange(exchange, key) => Target { exchange, key, mandatory: false },
            Destination::Reply(key) => Target { exchange: "", key, mandatory: false },
            Destination::TempQueue(name) => {
                own = self.temporary_queue(name)?;
                Target { exchange: "", key: &own, mandatory: false }
            }
            Destination::TempTopic(name) => {
                own = self.temporary_topic(name);
                Target { exchange: SUBJECT_EXCHANGE, key: &own, mandatory: false }
            }
        };
        let copy = shared.is_none().then(|| context.engine.copy_of_large(body)).flatten();
        let content = Content {
            format: crate::format::STOMP,
            properties: kept,
            body,
            shared: shared.or(copy.as_ref()),
            persistent: sent.persistent == Some(true),
            priority: sent.priority.unwrap_or(0),
            ttl: sent.ttl(context.now),
        };
        self.publish(context, &sent, &target, content)?;
        Ok(Taken::Done)
    }

    fn publish(
        &mut self,
        context: &mut Context<impl Host>,
        sent: &Sent<'_>,
        target: &Target<'_>,
        content: Content<'_>,
    ) -> Result<(), Fault> {
        let mut receipt: Option<Box<str>> = sent.receipt.as_deref().map(Into::into);
        let mut transaction = None;
        if let Some(name) = &sent.transaction {
            let found = self.transaction(name)?;
            transaction = Some(found.id);
            // It comes with the commit.
            found.receipts.extend(receipt.take());
        }
        let publish = Publish {
            exchange: target.exchange,
            routing_key: target.key,
            also_to: &[],
            mandatory: target.mandatory,
            retain: Retain::No,
            not_before: sent.delay.map(|delay| context.now.plus(delay)),
            transaction,
            content,
        };
        let waiting = receipt.map_or(Waiting::Silent, Waiting::Receipt);
        let (writer, _) = self.outgoing(context);
        writer.unconfirmed.push(waiting);
        let id = self.channel_id(MAIN);
        context.engine.publish(context.now, id, &publish, context.host).map_err(|refusal| {
            self.outgoing(context).0.unconfirmed.pop();
            refusal.into()
        })
    }

    /// Sees to it that a message's queue is there. `headers`: they may say what it is to be like.
    #[inline]
    fn ensure_queue(
        &mut self,
        context: &mut Context<impl Host>,
        name: &str,
        headers: Option<&Headers<'_>>,
    ) -> Result<Taken, Fault> {
        if let Some(fault) = self.not_declared.take() {
            return Err(*fault);
        }
        let is_there = context.engine.has_queue(self.channel_id(MAIN), name);
        if headers.is_none() && is_there == Some(true) {
            return Ok(Taken::Done);
        }
        self.declare_queue(context, name, headers, is_there)
    }

    #[cold]
    fn declare_queue(
        &mut self,
        context: &mut Context<impl Host>,
        name: &str,
        headers: Option<&Headers<'_>>,
        is_there: Option<bool>,
    ) -> Result<Taken, Fault> {
        let asked = headers.map(|headers| QueueHeaders::read(headers, false)).transpose()?;
        let asked = asked.unwrap_or_default();
        let declared = Declared { name: name.to_owned(), options: asked.of_queue() };
        let request = declared.request();
        match is_there {
            Some(true) if !asked.is_explicit() => return Ok(Taken::Done),
            // Another shard has the queues, and does the one after the other. One that is there may differ.
            None if !asked.is_explicit() => {
                self.ask_aside(context, request);
                return Ok(Taken::Done);
            }
            Some(false) => {}
            Some(true) | None => {
                // It was declared for this message, or for the one before.
                let is_declared = self.declared.as_deref() == Some(&declared);
                if is_there.is_none() {
                    self.declared = None;
                }
                if is_declared {
                    return Ok(Taken::Done);
                }
            }
        }
        self.ask(context, MAIN, request, Asked::Queue(declared.into()));
        Ok(Taken::Again)
    }

    /// The address of answers as receivers get it; `None`: its queue is being made.
    fn reply_address<'s>(
        &mut self,
        context: &mut Context<impl Host>,
        asked: &'s str,
    ) -> Result<Option<Cow<'s, str>>, Fault> {
        match Destination::parse(asked, false) {
            Ok(Destination::TempQueue(name)) => match self.temporary.get(name) {
                Some(queue) => Ok(Some(destination::of_reply(queue).into())),
                None => {
                    self.subscribe_to_answers(context, name)?;
                    Ok(None)
                }
            },
            Ok(Destination::TempTopic(name)) => {
                Ok(Some(format!("/topic/{}", self.temporary_topic(name)).into()))
            }
            // Anything else is what the clients make of it.
            _ => Ok(Some(asked.into())),
        }
    }

    /// Refuses a message that names another user as its publisher.
    fn check_user(&self, sent: &Sent<'_>) -> Result<(), Fault> {
        let Some(claimed) = &sent.user_id else { return Ok(()) };
        if *claimed == self.user {
            return Ok(());
        }
        let text = format!(
            "PRECONDITION_FAILED - user-id is '{claimed}', and the connection's user '{}'",
            self.user
        );
        Err(Fault::new("precondition_failed", text))
    }
}

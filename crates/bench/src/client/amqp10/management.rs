//! Declares and deletes queues at `/management`, which takes HTTP in messages, where the broker has it:
//! Angarium and RabbitMQ 4. Elsewhere queues come and go by themselves.

use super::connection::{Connection, Management};
use super::input::FRAME_BYTES_MAX;
use super::message::{self, Sending, TRANSFER};
use super::session::Session;
use super::terminus;
use crate::client::Error;
use crate::client::amqp091::Argument;
use angarium_protocol::amqp10::codec::{
    self, Field, Limits, MapWriter, MessageId, OwnedValue, Performative, Properties, SectionKind,
    Sections, Transfer, Value, descriptor_code, put_section,
};
use angarium_protocol::amqp10::frame;

/// Brokers that have it, by the product that their open names.
const PRODUCTS: [&str; 2] = ["Angarium", "RabbitMQ"];
/// The one whose queues must be declared, which Angarium may call itself, too.
const DECLARED: &str = "RabbitMQ";
const LIMITS: Limits = Limits { properties_bytes_max: 64 * 1024 };

/// A status as of HTTP, and what the broker says of it.
struct Answer {
    status: u16,
    text: String,
}

impl Management {
    fn is_there(&self) -> bool {
        PRODUCTS.contains(&self.product.as_str())
    }

    /// Whether queues must be declared before they are used.
    pub(super) fn has_declared_queues(&self) -> bool {
        self.product == DECLARED
    }
}

impl Connection {
    /// Declares a queue, where that is necessary or it has arguments.
    pub(crate) fn declare_queue(
        &mut self,
        queue: &str,
        durable: bool,
        arguments: &[(String, Argument)],
    ) -> Result<(), Error> {
        if arguments.is_empty() && !self.management.has_declared_queues() {
            return Ok(());
        }
        if !self.management.is_there() {
            let why = format!("queues of \"{}\" take no arguments here", self.management.product);
            return Err(Error::Closed(why));
        }
        let given = OwnedValue::map(|map| {
            arguments.iter().for_each(|(name, value)| put_argument(map, name, value));
        });
        let body = OwnedValue::map(|map| {
            map.put(&"durable", &durable);
            map.put(&"arguments", &given.value());
        });
        let answer = self.request("PUT", queue, &body.value())?;
        match answer.status {
            200..300 => Ok(()),
            status => Err(Error::Closed(format!("{status} {}", answer.text))),
        }
    }

    /// Deletes a queue and its messages, where that is possible.
    pub(crate) fn delete_queue(&mut self, queue: &str) -> Result<(), Error> {
        if !self.management.is_there() {
            return Ok(());
        }
        if self.is_stale() {
            self.reopen()?;
        }
        let answer = self.request("DELETE", queue, &Value::Null)?;
        match answer.status {
            // It may have gone by itself.
            200..300 | 404 => Ok(()),
            status => Err(Error::Closed(format!("{status} {}", answer.text))),
        }
    }

    fn request(&mut self, method: &str, queue: &str, body: &Value<'_>) -> Result<Answer, Error> {
        let channel = match self.management.channel {
            Some(channel) => channel,
            None => self.attach_management()?,
        };
        let (queue, _) = terminus::split_label(queue);
        let path = format!("/queues/{}", terminus::bare(queue));
        let mut sections = Vec::new();
        let properties = Properties {
            message_id: Some(MessageId::ULong(self.management.requests.into())),
            to: Some(&path),
            subject: Some(method),
            reply_to: Some("$me"),
            ..Properties::default()
        };
        properties.write(&mut sections);
        put_section(&mut sections, SectionKind::Value, body);
        let sending = Sending {
            channel,
            settled: true,
            transaction: &[],
            frame_bytes_max: self.frame_bytes_max,
        };
        // Credit first: RabbitMQ takes no request that it cannot answer.
        let (mut out, mut request) = (Vec::new(), Vec::new());
        let credit = self.input.answer_credit(channel.into(), self.management.requests);
        codec::write_frame(&credit, channel, &[], &mut out);
        self.management.requests += 1;
        message::write(&mut request, sending, &sections, 0)
            .write_tag(&mut request, self.management.requests.into());
        out.append(&mut request);
        self.write(&out)?;
        self.expect_message(answer_of)
    }

    /// Attaches the pair of links on a session of its own.
    fn attach_management(&mut self) -> Result<u16, Error> {
        let channel = self.next_channel();
        let name = self.link_name(channel);
        let paired = OwnedValue::map(|map| map.put(&codec::Symbol("paired"), &true));
        let [sender, receiver] = terminus::management(&name, paired.as_map());
        self.attach(channel, Session::sender(terminus::MANAGEMENT), sender)?;
        self.send(&[(channel, receiver)])?;
        self.expect(|_, performative| {
            Ok(matches!(performative, Performative::Attach(_)).then_some(()))
        })?;
        self.management.channel = Some(channel);
        Ok(channel)
    }

    /// Waits for a message of one frame that `wanted` takes.
    fn expect_message<T>(
        &mut self,
        wanted: impl Fn(&[u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let input = &mut self.input;
        self.wire.expect(|bytes| {
            let Some((frame, octets)) = frame::read(bytes, FRAME_BYTES_MAX)? else {
                return Ok(None);
            };
            if frame.body.is_empty() {
                return Ok(Some((None, octets)));
            }
            if descriptor_code(frame.body) == Some(TRANSFER) {
                let (_, payload) = codec::decode_body::<Transfer<'_>>(frame.body)?;
                return Ok(Some((Some(wanted(payload)?), octets)));
            }
            input.answer(frame.channel, &Performative::decode_body(frame.body)?.0)?;
            Ok(Some((None, octets)))
        })
    }
}

fn put_argument(map: &mut MapWriter<'_>, name: &str, value: &Argument) {
    match value {
        Argument::Text(text) => map.put(&name, &text.as_str()),
        Argument::Integer(number) => map.put(&name, number),
        Argument::Boolean(value) => map.put(&name, value),
    }
}

fn answer_of(message: &[u8]) -> Result<Answer, Error> {
    let sections = Sections::walk(message, LIMITS)?;
    let status = sections.properties()?.subject.and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| Error::invalid("an answer without a status"))?;
    let text = match sections.amqp_value()? {
        Some(Value::String(text)) => text.to_owned(),
        _ => String::new(),
    };
    Ok(Answer { status, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_status_and_perhaps_a_text() {
        let answer = |subject: Option<&str>, body: &Value<'_>| {
            let mut message = Vec::new();
            Properties { subject, ..Properties::default() }.write(&mut message);
            put_section(&mut message, SectionKind::Value, body);
            answer_of(&message).map(|answer| (answer.status, answer.text))
        };
        let text = Value::String("it is in use");
        assert_eq!(answer(Some("204"), &Value::Null).ok(), Some((204, String::new())));
        assert_eq!(answer(Some("409"), &text).ok(), Some((409, "it is in use".to_owned())));
        for subject in [None, Some(""), Some("OK")] {
            let why = answer(subject, &text).expect_err("it has no status").to_string();
            assert_eq!(why, "the broker sent an answer without a status");
        }
    }

    #[test]
    fn arguments_of_queues_keep_their_types() {
        let given = OwnedValue::map(|map| {
            put_argument(map, "t", &Argument::Text("v".to_owned()));
            put_argument(map, "n", &Argument::Integer(-2));
            put_argument(map, "b", &Argument::Boolean(true));
        });
        let map = given.as_map();
        assert_eq!(map.get("t"), Some(Value::String("v")));
        assert_eq!(map.get("n"), Some(Value::Long(-2)));
        assert_eq!(map.get("b"), Some(Value::Boolean(true)));
    }
}

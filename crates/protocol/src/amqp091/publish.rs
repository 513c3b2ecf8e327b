//! Publishes and settles from the client: the hot path, and content that arrives in pieces.
//!
//! A message whose frames lie whole in the input is published from there. Any other is reassembled in its
//! channel first.

use super::channel::Content;
use super::codec::FieldValue;
use super::codec::content::{self, ContentHeader, PublishMethod, Tagged};
use super::codec::properties::{self, Edit, Scan};
use super::fault::{Code, Fault};
use super::frame::{self, FrameError, HEAD_BYTES, Head};
use super::mapping;
use super::{DIRECT_REPLY_TO, codec::Method};
use crate::amqp091::handler::{Handler, Part, State, syntax};
use crate::{Context, Host};
use angarium_engine::{Bytes, Outcome, Publish, Retain, Settle};
use std::time::Duration;

/// The numbers of basic.publish.
pub(super) const BASIC_PUBLISH: (u16, u16) = (content::BASIC, 40);

/// Bytes that the unfinished messages of all channels of a connection may announce together, in messages of
/// the largest size.
const UNFINISHED_MAX: u64 = 4;

/// A payload, and the same again where it is shared.
type Body<'a> = (&'a [u8], Option<&'a Bytes>);

/// The header frame and body frame of a message that lies whole in the input.
struct Whole<'a> {
    properties: &'a [u8],
    body: &'a [u8],
    /// Octets of both frames.
    bytes: usize,
}

/// Finds the rest of a message where it lies in one header frame and at most one body frame.
/// `None`: it lies otherwise, or is invalid.
#[inline]
fn whole(input: &[u8], channel: u16, frame_max: u32, body_max: u64) -> Option<Whole<'_>> {
    let (header_frame, header_bytes) = frame::read(input, frame_max).ok()??;
    if header_frame.kind != frame::HEADER || header_frame.channel != channel {
        return None;
    }
    let header = ContentHeader::decode(header_frame.payload).ok()?;
    if header.class != content::BASIC || header.weight != 0 || header.body_bytes > body_max {
        return None;
    }
    let properties = header.properties;
    if header.body_bytes == 0 {
        return Some(Whole { properties, body: &[], bytes: header_bytes });
    }
    let (body_frame, body_bytes) = frame::read(&input[header_bytes..], frame_max).ok()??;
    if body_frame.kind != frame::BODY
        || body_frame.channel != channel
        || body_frame.payload.len() as u64 != header.body_bytes
    {
        return None;
    }
    Some(Whole { properties, body: body_frame.payload, bytes: header_bytes + body_bytes })
}

fn unexpected(text: impl Into<String>) -> Fault {
    Fault::new(Code::UNEXPECTED_FRAME, text)
}

impl Handler {
    /// Takes basic.publish and returns how many bytes of `following`, the input after it, belong to the
    /// message; `None`: it is presented again.
    #[inline]
    pub(super) fn publish_method(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        fields: &[u8],
        following: &[u8],
    ) -> Option<usize> {
        self.current = BASIC_PUBLISH;
        match self.try_publish_method(context, number, fields, following) {
            Ok(taken) => Some(taken),
            Err((taken, fault)) => {
                self.fail(context, number, fault);
                (!self.is_presented_again()).then_some(taken)
            }
        }
    }

    #[inline]
    fn try_publish_method(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        fields: &[u8],
        following: &[u8],
    ) -> Result<usize, (usize, Fault)> {
        let Some(index) = self.usable(number, "basic.publish").map_err(|fault| (0, fault))? else {
            return Ok(0);
        };
        let mut last = self.publish_memo.take().unwrap_or_default();
        let taken = match last.meaning(fields) {
            Some(method) => self.publish_first(context, index, &method, fields, following),
            None => match PublishMethod::decode(fields) {
                Ok(method) => {
                    last.missed(fields, &method);
                    self.publish_first(context, index, &method, fields, following)
                }
                Err(malformed) => Err((0, syntax("basic.publish", malformed))),
            },
        };
        self.publish_memo = Some(last);
        taken
    }

    /// Publishes where the rest of the message is there already; otherwise begins to gather it.
    #[inline]
    fn publish_first(
        &mut self,
        context: &mut Context<impl Host>,
        index: usize,
        method: &PublishMethod<'_>,
        fields: &[u8],
        following: &[u8],
    ) -> Result<usize, (usize, Fault)> {
        let number = self.channels.all[index].number;
        let body_max = self.settings.body_bytes_max;
        let Some(whole) = whole(following, number, self.frame_bytes_max, body_max) else {
            let id = self.channel_id(number);
            let (exchange, key) = (method.exchange, method.routing_key);
            let right = context.engine.check_right_to_publish(id, exchange, key);
            right.map_err(|refusal| (0, mapping::fault(refusal)))?;
            let content = Content { method: fields.to_vec(), ..Content::default() };
            self.channels.all[index].content = Some(Box::new(content));
            return Ok(0);
        };
        let copy = context.engine.copy_of_large(whole.body);
        match self.publish(context, index, method, whole.properties, (whole.body, copy.as_ref())) {
            Ok(()) => Ok(whole.bytes),
            Err(fault) => Err((whole.bytes, fault)),
        }
    }

    /// The channel of that number if methods may come on it; `None`: they are to be ignored.
    #[inline]
    pub(super) fn usable(&mut self, number: u16, what: &str) -> Result<Option<usize>, Fault> {
        let Some(index) = self.channels.find(number) else {
            return Err(Fault::not_open(what, number));
        };
        let channel = &self.channels.all[index];
        if channel.closing {
            return Ok(None);
        }
        if let Some(content) = &channel.content {
            let expected = if content.body_bytes.is_none() { "header" } else { "body" };
            let text = format!("{what} where a content {expected} frame has to come");
            return Err(unexpected(text));
        }
        Ok(Some(index))
    }

    /// The channel whose content a header or body frame continues; `None`: it is to be ignored.
    fn continued(&mut self, number: u16, kind: &str) -> Result<Option<usize>, Fault> {
        self.current = BASIC_PUBLISH;
        if number == 0 || self.state != State::Open {
            return Err(unexpected(format!("content {kind} frame outside of any channel")).hard());
        }
        let Some(index) = self.channels.find(number) else {
            return Err(Fault::not_open(&format!("content {kind} frame"), number));
        };
        if self.channels.all[index].closing {
            return Ok(None);
        }
        if self.channels.all[index].content.is_none() {
            return Err(unexpected(format!("content {kind} frame without a method before it")));
        }
        Ok(Some(index))
    }

    pub(super) fn header_frame(
        &mut self,
        context: &mut Context<impl Host>,
        frame: frame::Frame<'_>,
    ) -> Result<(), Fault> {
        let Some(index) = self.continued(frame.channel, "header")? else { return Ok(()) };
        let header = ContentHeader::decode(frame.payload)
            .map_err(|malformed| syntax("content header", malformed))?;
        if header.class != content::BASIC {
            let text = format!("content header of class {} after basic.publish", header.class);
            return Err(unexpected(text));
        }
        if header.weight != 0 {
            let text = format!("content header has weight {} instead of 0", header.weight);
            return Err(Fault::new(Code::SYNTAX_ERROR, text));
        }
        let max = self.settings.body_bytes_max;
        if header.body_bytes > max {
            let bytes = header.body_bytes;
            let text = format!("message size {bytes} is larger than configured max size {max}");
            return Err(Fault::new(Code::PRECONDITION_FAILED, text));
        }
        let announced = self.channels.announced_bytes();
        let Some(content) = &mut self.channels.all[index].content else { return Ok(()) };
        if content.body_bytes.is_some() {
            return Err(unexpected("second content header frame where a body frame has to come"));
        }
        if announced + header.body_bytes > UNFINISHED_MAX.saturating_mul(max) {
            let text = format!(
                "unfinished messages of {announced} bytes on this connection leave no room for one of {}",
                header.body_bytes
            );
            return Err(Fault::new(Code::RESOURCE_ERROR, text));
        }
        content.body_bytes = Some(header.body_bytes);
        content.properties = header.properties.to_vec();
        if header.body_bytes == 0 {
            self.complete(context, index, &[], None);
        }
        Ok(())
    }

    pub(super) fn body_frame(
        &mut self,
        context: &mut Context<impl Host>,
        frame: frame::Frame<'_>,
    ) -> Result<(), Fault> {
        let Some(index) = self.room_for(frame.channel, frame.payload.len() as u64)? else {
            return Ok(());
        };
        let Some(content) = &mut self.channels.all[index].content else { return Ok(()) };
        let is_last = content.missing() == frame.payload.len() as u64;
        if is_last && content.body.is_empty() {
            let copy = context.engine.copy_of_large(frame.payload);
            self.complete(context, index, frame.payload, copy.as_ref());
            return Ok(());
        }
        content.gather(frame.payload)?;
        if is_last {
            self.complete_gathered(context, index);
        }
        Ok(())
    }

    /// The channel that takes a body frame of that many octets.
    fn room_for(&mut self, number: u16, bytes: u64) -> Result<Option<usize>, Fault> {
        let Some(index) = self.continued(number, "body")? else { return Ok(None) };
        let Some(content) = &self.channels.all[index].content else { return Ok(None) };
        let Some(announced) = content.body_bytes else {
            return Err(unexpected("content body frame where a header frame has to come"));
        };
        if bytes > content.missing() {
            let sent = content.body.len() as u64 + bytes;
            let text = format!("body of {sent} bytes where the header announced {announced}");
            return Err(unexpected(text));
        }
        Ok(Some(index))
    }

    /// Starts on a body frame that has not arrived whole: what is there is taken now, so that the
    /// host need not keep it.
    pub(super) fn begin_part(&mut self, context: &mut Context<impl Host>, head: Head) -> usize {
        if self.state != State::Closing
            && let Err(fault) = self.room_for(head.channel, head.size.into())
        {
            self.fail(context, head.channel, fault);
            if self.is_presented_again() {
                return 0;
            }
        }
        self.part = Some(Part { channel: head.channel, left: head.size });
        HEAD_BYTES
    }

    /// Takes more of a body frame that began in earlier input.
    pub(super) fn body_part(
        &mut self,
        context: &mut Context<impl Host>,
        part: Part,
        input: &[u8],
    ) -> usize {
        if part.left > 0 {
            let taken = &input[..input.len().min(part.left as usize)];
            // A channel that is closing has no content: what comes for it is dropped.
            if let Some(channel) = self.channels.get(part.channel)
                && let Some(content) = &mut channel.content
                && let Err(fault) = content.gather(taken)
            {
                self.fail(context, part.channel, fault);
            }
            self.part = Some(Part { left: part.left - taken.len() as u32, ..part });
            return taken.len();
        }
        match input.first() {
            Some(&frame::END) => self.part = None,
            Some(&other) => return self.bad_frame(context, FrameError::BadEnd(other), input.len()),
            None => return 0,
        }
        if let Some(index) = self.channels.find(part.channel)
            && let Some(content) = &mut self.channels.all[index].content
            && content.missing() == 0
        {
            self.current = BASIC_PUBLISH;
            self.complete_gathered(context, index);
        }
        1
    }

    /// All of a message is here whose body came in parts.
    fn complete_gathered(&mut self, context: &mut Context<impl Host>, index: usize) {
        let Some(content) = &mut self.channels.all[index].content else { return };
        let body = std::mem::take(&mut content.body);
        if body.len() < context.engine.large_body_bytes() {
            return self.complete(context, index, &body, None);
        }
        let body = body.into_shared();
        self.complete(context, index, &body, Some(&body));
    }

    /// All of a message is here.
    fn complete(
        &mut self,
        context: &mut Context<impl Host>,
        index: usize,
        body: &[u8],
        shared: Option<&Bytes>,
    ) {
        let number = self.channels.all[index].number;
        let Some(content) = self.channels.all[index].content.take() else { return };
        let published = PublishMethod::decode(&content.method)
            .map_err(|malformed| syntax("basic.publish", malformed))
            .and_then(|method| {
                self.publish(context, index, &method, &content.properties, (body, shared))
            });
        if let Err(fault) = published {
            self.fail_message(context, number, fault);
        }
    }

    #[inline]
    fn publish(
        &mut self,
        context: &mut Context<impl Host>,
        index: usize,
        method: &PublishMethod<'_>,
        raw: &[u8],
        (body, shared): Body<'_>,
    ) -> Result<(), Fault> {
        let scan =
            properties::scan(raw).map_err(|malformed| syntax("content header", malformed))?;
        if method.immediate {
            return Err(Fault::new(Code::NOT_IMPLEMENTED, "immediate=true"));
        }
        if !self.published {
            self.first_publish(context);
        }
        let publish = Publish {
            exchange: method.exchange,
            routing_key: method.routing_key,
            also_to: &[],
            mandatory: method.mandatory,
            retain: Retain::No,
            not_before: None,
            transaction: None,
            content: angarium_engine::Content {
                format: crate::format::AMQP091,
                properties: raw,
                body,
                shared,
                persistent: scan.delivery_mode == 2,
                priority: scan.priority,
                ttl: None,
            },
        };
        if scan.cc.is_some()
            || scan.bcc.is_some()
            || scan.delay.is_some()
            || scan.expiration.is_some()
            || scan.reply_to.is_some()
            || scan.user_id.is_some()
        {
            return self.publish_with_care(context, index, &publish, &scan);
        }
        self.hand_over(context, index, &publish)
    }

    #[inline]
    fn hand_over(
        &mut self,
        context: &mut Context<impl Host>,
        index: usize,
        publish: &Publish<'_>,
    ) -> Result<(), Fault> {
        let id = self.channel_id(self.channels.all[index].number);
        context.engine.publish(context.now, id, publish, context.host).map_err(mapping::fault)
    }

    /// A message with properties that mean something to the broker.
    fn publish_with_care(
        &mut self,
        context: &mut Context<impl Host>,
        index: usize,
        publish: &Publish<'_>,
        scan: &Scan<'_>,
    ) -> Result<(), Fault> {
        self.check_user(scan)?;
        let ttl = scan.expiration.map(mapping::expiration).transpose()?;
        let mut also_to = Vec::new();
        let mut edit = Edit::default();
        if let Some(keys) = scan.cc {
            routing_keys(keys, &mut also_to)?;
        }
        if let Some(keys) = scan.bcc {
            routing_keys(keys, &mut also_to)?;
            edit.drop_headers = &["BCC"];
        }
        let after = scan.delay.and_then(delay);
        if scan.reply_to == Some(DIRECT_REPLY_TO.as_bytes()) {
            let Some(inbox) = &self.channels.all[index].inbox else {
                let text = "fast reply consumer does not exist";
                return Err(Fault::new(Code::PRECONDITION_FAILED, text));
            };
            edit.reply_to = Some(&inbox.address);
        }
        let not_before = after.map(|delay| context.now.plus(delay));
        let mut publish = Publish { also_to: &also_to, not_before, ..*publish };
        publish.content.ttl = ttl;
        if edit.reply_to.is_none() && edit.drop_headers.is_empty() {
            return self.hand_over(context, index, &publish);
        }
        let mut rewritten = Vec::with_capacity(publish.content.properties.len() + 64);
        properties::rewrite(publish.content.properties, &edit, &mut rewritten)
            .map_err(|malformed| syntax("content header", malformed))?;
        let content = angarium_engine::Content { properties: &rewritten, ..publish.content };
        self.hand_over(context, index, &Publish { content, ..publish })
    }

    /// Refuses a message that names another user as its publisher.
    fn check_user(&self, scan: &Scan<'_>) -> Result<(), Fault> {
        let Some(claimed) = scan.user_id else { return Ok(()) };
        if claimed == self.user.as_bytes() {
            return Ok(());
        }
        let text = format!(
            "user_id property set to '{}' but authenticated user was '{}'",
            String::from_utf8_lossy(claimed),
            self.user
        );
        Err(Fault::new(Code::PRECONDITION_FAILED, text))
    }

    #[cold]
    fn first_publish(&mut self, context: &mut Context<impl Host>) {
        self.published = true;
        if let (Some(reason), true) = (&self.blocked, self.capabilities.connection_blocked) {
            self.send(context, 0, &Method::ConnectionBlocked { reason });
        }
    }

    /// Takes basic.ack, basic.nack and basic.reject; `None`: it is another method.
    #[inline]
    pub(super) fn settle_method(
        &mut self,
        context: &mut Context<impl Host>,
        frame: frame::Frame<'_>,
    ) -> Option<Result<(), Fault>> {
        let (method, fields) = frame.payload.split_first_chunk::<4>()?;
        let (name, id) = match *method {
            content::ACK => ("basic.ack", 80),
            content::NACK => ("basic.nack", 120),
            content::REJECT => ("basic.reject", 90),
            _ => return None,
        };
        self.current = (content::BASIC, id);
        Some(self.settle(context, frame.channel, name, fields))
    }

    #[inline]
    fn settle(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        name: &str,
        fields: &[u8],
    ) -> Result<(), Fault> {
        let Some(index) = self.usable(number, name)? else { return Ok(()) };
        let Tagged { delivery_tag: tag, bits } =
            Tagged::decode(fields).map_err(|malformed| syntax(name, malformed))?;
        let discarded = |requeue| if requeue { Outcome::REQUEUE } else { Outcome::Discard };
        let settle =
            if bits & 1 != 0 && name != "basic.reject" { Settle::up_to } else { Settle::one };
        let settle = match name {
            "basic.ack" => settle(tag, Outcome::Accept),
            "basic.nack" => {
                self.channels.all[index].rejected_by = 120;
                settle(tag, discarded(bits & 2 != 0))
            }
            _ => {
                self.channels.all[index].rejected_by = 90;
                settle(tag, discarded(bits & 1 != 0))
            }
        };
        let id = self.channel_id(number);
        let settled = context.engine.settle(context.now, id, settle, context.host);
        settled.map_err(|refusal| mapping::settle_fault(tag, refusal))
    }
}

/// The routing keys in a CC or BCC header.
fn routing_keys<'a>(value: FieldValue<'a>, keys: &mut Vec<&'a str>) -> Result<(), Fault> {
    let wrong = |why: &str| {
        let text = format!("headers CC and BCC must be arrays of strings: {why}");
        Fault::new(Code::PRECONDITION_FAILED, text)
    };
    let FieldValue::Array(array) = value else { return Err(wrong("not an array")) };
    for value in array.values() {
        let FieldValue::LongStr(bytes) = value else { return Err(wrong("not a string")) };
        let key = str::from_utf8(bytes).map_err(|_| wrong("not valid UTF-8"))?;
        if key.len() > 255 {
            return Err(wrong("longer than 255 bytes"));
        }
        keys.push(key);
    }
    Ok(())
}

/// The delay that an x-delay header asks for.
fn delay(value: FieldValue<'_>) -> Option<Duration> {
    let millis = mapping::delay_millis(value).filter(|millis| *millis > 0)?;
    u64::try_from(millis).ok().map(Duration::from_millis)
}

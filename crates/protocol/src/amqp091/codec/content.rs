//! The methods and headers that come with every message, decoded and encoded by hand: nothing is
//! allocated, nothing is looked at twice.

use super::wire::{Malformed, Reader, put_short_str};
use crate::amqp091::frame::{self, END, HEADER, METHOD};

/// The class of all content (`basic`).
pub const BASIC: u16 = 60;
/// The first octets of a basic.publish method.
pub const PUBLISH: [u8; 4] = [0, 60, 0, 40];
/// The first octets of a basic.deliver method.
pub const DELIVER: [u8; 4] = [0, 60, 0, 60];
/// The first octets of a basic.ack method.
pub const ACK: [u8; 4] = [0, 60, 0, 80];
/// The first octets of a basic.reject method.
pub const REJECT: [u8; 4] = [0, 60, 0, 90];
/// The first octets of a basic.nack method.
pub const NACK: [u8; 4] = [0, 60, 0, 120];
/// Octets of a content header before the property flags.
const HEADER_FIXED_BYTES: usize = 12;

/// basic.publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishMethod<'a> {
    /// The exchange.
    pub exchange: &'a str,
    /// The routing key.
    pub routing_key: &'a str,
    /// Give it back if no queue takes it.
    pub mandatory: bool,
    /// Give it back if no consumer takes it immediately.
    pub immediate: bool,
}

impl<'a> PublishMethod<'a> {
    /// Decodes the payload of a method frame after its class and method number.
    #[inline]
    pub fn decode(fields: &'a [u8]) -> Result<PublishMethod<'a>, Malformed> {
        let mut reader = Reader::new(fields);
        reader.short()?;
        let exchange = reader.short_str()?;
        let routing_key = reader.short_str()?;
        let bits = reader.octet()?;
        reader.finish()?;
        Ok(PublishMethod {
            exchange,
            routing_key,
            mandatory: bits & 1 != 0,
            immediate: bits & 2 != 0,
        })
    }
    /// Appends the method frame.
    pub fn write_frame(&self, channel: u16, out: &mut Vec<u8>) {
        let at = frame::begin(out, METHOD, channel);
        out.extend_from_slice(&PUBLISH);
        out.extend_from_slice(&[0, 0]);
        put_short_str(out, self.exchange);
        put_short_str(out, self.routing_key);
        out.push(u8::from(self.mandatory) | u8::from(self.immediate) << 1);
        frame::end(out, at);
    }
}

/// basic.deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deliver<'a> {
    /// The consumer.
    pub consumer_tag: &'a str,
    /// By which the delivery is acknowledged.
    pub delivery_tag: u64,
    /// It may have been delivered before.
    pub redelivered: bool,
    /// The exchange it was published to.
    pub exchange: &'a str,
    /// The routing key it was published with.
    pub routing_key: &'a str,
}

impl<'a> Deliver<'a> {
    /// Decodes the payload of a method frame after its class and method number.
    #[inline]
    pub fn decode(fields: &'a [u8]) -> Result<Deliver<'a>, Malformed> {
        let mut reader = Reader::new(fields);
        Ok(Deliver {
            consumer_tag: reader.short_str()?,
            delivery_tag: reader.longlong()?,
            redelivered: reader.bit()?,
            exchange: reader.short_str()?,
            routing_key: reader.short_str()?,
        })
    }
    /// Appends the method frame.
    #[inline]
    pub fn write_frame(&self, channel: u16, out: &mut Vec<u8>) {
        let size = 16 + self.consumer_tag.len() + self.exchange.len() + self.routing_key.len();
        let [c0, c1] = channel.to_be_bytes();
        let [s0, s1, s2, s3] = (size as u32).to_be_bytes();
        let [d0, d1, d2, d3] = DELIVER;
        let tag_length = self.consumer_tag.len() as u8;
        out.extend_from_slice(&[METHOD, c0, c1, s0, s1, s2, s3, d0, d1, d2, d3, tag_length]);
        out.extend_from_slice(self.consumer_tag.as_bytes());
        let mut middle = [0; 10];
        middle[..8].copy_from_slice(&self.delivery_tag.to_be_bytes());
        middle[8] = self.redelivered.into();
        middle[9] = self.exchange.len() as u8;
        out.extend_from_slice(&middle);
        out.extend_from_slice(self.exchange.as_bytes());
        out.push(self.routing_key.len() as u8);
        out.extend_from_slice(self.routing_key.as_bytes());
        out.push(END);
    }
}

/// The fields that basic.ack, basic.nack and basic.reject share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tagged {
    /// The delivery tag, or a publish's number.
    pub delivery_tag: u64,
    /// The octet of flags behind it.
    pub bits: u8,
}

impl Tagged {
    /// Decodes the payload of a method frame after its class and method number.
    #[inline]
    pub fn decode(fields: &[u8]) -> Result<Tagged, Malformed> {
        let mut reader = Reader::new(fields);
        let tagged = Tagged { delivery_tag: reader.longlong()?, bits: reader.octet()? };
        reader.finish()?;
        Ok(tagged)
    }
    /// Appends the method frame of the method ([`ACK`], [`NACK`], [`REJECT`]).
    #[inline]
    pub fn write_frame(&self, method: [u8; 4], channel: u16, out: &mut Vec<u8>) {
        let [c0, c1] = channel.to_be_bytes();
        let mut bytes = [METHOD, c0, c1, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, END];
        bytes[7..11].copy_from_slice(&method);
        bytes[11..19].copy_from_slice(&self.delivery_tag.to_be_bytes());
        bytes[19] = self.bits;
        out.extend_from_slice(&bytes);
    }
}

/// A content header: how large the body is, and the properties as they are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentHeader<'a> {
    /// The content's class.
    pub class: u16,
    /// Must be 0.
    pub weight: u16,
    /// Octets of body that follow.
    pub body_bytes: u64,
    /// Property flags and property list.
    pub properties: &'a [u8],
}

impl<'a> ContentHeader<'a> {
    /// Decodes the payload of a header frame; the properties are not looked at.
    #[inline]
    pub fn decode(payload: &'a [u8]) -> Result<ContentHeader<'a>, Malformed> {
        let mut reader = Reader::new(payload);
        Ok(ContentHeader {
            class: reader.short()?,
            weight: reader.short()?,
            body_bytes: reader.longlong()?,
            properties: reader.rest(),
        })
    }
}

/// Appends a header frame of class basic.
#[inline]
pub fn write_header(out: &mut Vec<u8>, channel: u16, body_bytes: u64, properties: &[u8]) {
    let [c0, c1] = channel.to_be_bytes();
    let [s0, s1, s2, s3] = ((HEADER_FIXED_BYTES + properties.len()) as u32).to_be_bytes();
    let mut head = [HEADER, c0, c1, s0, s1, s2, s3, 0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    head[11..].copy_from_slice(&body_bytes.to_be_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(properties);
    out.push(END);
}

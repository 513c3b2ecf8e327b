//! Transfer frames as the broker writes them, of two shapes only: the first of a delivery, and the others.

use super::codec::wire;
use super::frame;

/// Octets of the frame that a delivery begins with, before its payload, at most.
pub(super) const FIRST_BYTES_MAX: usize = 40;
/// The descriptor of a transfer.
const TRANSFER: u8 = 0x14;
/// Octets of an engine tag, which is the delivery's tag on the wire.
const TAG_BYTES: u8 = 8;

/// What the first frame of a delivery says of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct First {
    pub(super) handle: u32,
    pub(super) delivery_id: u32,
    pub(super) tag: u64,
    pub(super) settled: bool,
}

/// Where a frame that was begun lies in the output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub(super) start: usize,
    /// Where its payload begins.
    pub(super) payload: usize,
}

/// Begins the first frame of a delivery. Until [`end`] says otherwise there is no further one.
#[inline]
pub(super) fn begin_first(out: &mut Vec<u8>, channel: u16, first: First) -> Begun {
    let start = begin(out, channel);
    put_uint(out, first.handle);
    let [i0, i1, i2, i3] = first.delivery_id.to_be_bytes();
    let [t0, t1, t2, t3, t4, t5, t6, t7] = first.tag.to_be_bytes();
    let settled = if first.settled { wire::TRUE } else { wire::FALSE };
    out.extend_from_slice(&[
        wire::UINT,
        i0,
        i1,
        i2,
        i3,
        wire::BINARY8,
        TAG_BYTES,
        t0,
        t1,
        t2,
        t3,
        t4,
        t5,
        t6,
        t7,
        wire::UINT0,
        settled,
        wire::FALSE,
    ]);
    finish(out, start, 6)
}

/// Begins a further frame of a delivery.
pub(super) fn begin_next(out: &mut Vec<u8>, channel: u16, handle: u32) -> Begun {
    let start = begin(out, channel);
    put_uint(out, handle);
    out.extend_from_slice(&[wire::NULL, wire::NULL, wire::NULL, wire::NULL, wire::FALSE]);
    finish(out, start, 6)
}

/// Completes a frame, behind whose payload there is `more` of the delivery in others.
#[inline]
pub(super) fn end(out: &mut [u8], begun: Begun, more: bool) {
    if more {
        out[begun.payload - 1] = wire::TRUE;
    }
    frame::end(out, begun.start);
}

#[inline]
fn begin(out: &mut Vec<u8>, channel: u16) -> usize {
    let start = frame::begin(out, frame::AMQP, channel);
    out.extend_from_slice(&[wire::DESCRIBED, wire::SMALL_ULONG, TRANSFER, wire::LIST8, 0, 0]);
    start
}

/// Sets the size of the list of fields.
#[inline]
fn finish(out: &mut [u8], start: usize, fields: u8) -> Begun {
    let size_at = start + frame::HEAD_BYTES + 4;
    out[size_at] = (out.len() - size_at - 1) as u8;
    out[size_at + 1] = fields;
    Begun { start, payload: out.len() }
}

#[inline]
fn put_uint(out: &mut Vec<u8>, number: u32) {
    match u8::try_from(number) {
        Ok(0) => out.push(wire::UINT0),
        Ok(small) => out.extend_from_slice(&[wire::SMALL_UINT, small]),
        Err(_) => {
            out.push(wire::UINT);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp10::codec::{DeliveryTag, Transfer, decode_body};

    fn decoded(bytes: &[u8]) -> (Transfer<'_>, &[u8]) {
        let (read, used) = frame::read(bytes, u32::MAX).unwrap().unwrap();
        assert_eq!((used, read.channel), (bytes.len(), 7));
        decode_body(read.body).unwrap()
    }

    #[test]
    fn frames_are_what_the_codec_reads() {
        for (handle, settled, more) in [(0, false, false), (255, true, true), (256, false, true)] {
            let mut out = Vec::new();
            let tag: u64 = 0x0102_0304_0506_0708;
            let first = First { handle, delivery_id: u32::MAX, tag, settled };
            let begun = begin_first(&mut out, 7, first);
            assert!(out.len() <= FIRST_BYTES_MAX);
            out.extend_from_slice(b"payload");
            end(&mut out, begun, more);
            let expected = Transfer {
                handle,
                delivery_id: Some(u32::MAX),
                delivery_tag: Some(DeliveryTag(&tag.to_be_bytes())),
                message_format: Some(0),
                settled: Some(settled),
                more,
                ..Transfer::default()
            };
            assert_eq!(decoded(&out), (expected, &b"payload"[..]));
            out.clear();
            let begun = begin_next(&mut out, 7, handle);
            out.extend_from_slice(b"rest");
            end(&mut out, begun, more);
            let expected = Transfer { handle, more, ..Transfer::default() };
            assert_eq!(decoded(&out), (expected, &b"rest"[..]));
        }
    }
}

//! Messages as bytes: encoded once; delivery-id, delivery tag and the transaction's id are written over.
//! Independent of sockets.

use super::terminus::LABEL;
use crate::client::Encoded;
use angarium_protocol::amqp10::codec::wire::{BINARY8, DESCRIBED, LIST8, SMALL_ULONG, UINT, UINT0};
use angarium_protocol::amqp10::codec::{
    DeliveryState, DeliveryTag, Field, Header, SectionKind, TransactionalState, Transfer,
    put_map_section, put_section,
};
use angarium_protocol::amqp10::frame;

/// The descriptor of a transfer.
pub(super) const TRANSFER: u8 = Transfer::INFO.code as u8;

/// How messages are sent over a link.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sending<'a> {
    pub(super) channel: u16,
    /// Without an answer.
    pub(super) settled: bool,
    /// The transaction; empty for none.
    pub(super) transaction: &'a [u8],
    pub(super) frame_bytes_max: u32,
}

/// Stands for the numbers that are written over.
const NUMBER: [u8; 4] = [0xFF; 4];
/// The octets between the delivery-id and the tag, which is the same number.
const BETWEEN: [u8; 2] = [BINARY8, NUMBER.len() as u8];

/// The sections of a message; an empty label is none.
pub(super) fn sections(persistent: bool, label: &str, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(body.len() + 32);
    if persistent {
        Header { durable: true, ..Header::default() }.write(&mut message);
    }
    if !label.is_empty() {
        put_map_section(&mut message, SectionKind::ApplicationProperties, |properties| {
            properties.put(&LABEL, &label);
        });
    }
    put_section(&mut message, SectionKind::Data, &body);
    message
}

/// Appends a message of `sections` that ends with a body of `body_bytes`, in as many frames as it needs.
pub(super) fn write(
    out: &mut Vec<u8>,
    sending: Sending<'_>,
    sections: &[u8],
    body_bytes: usize,
) -> Encoded {
    let state = TransactionalState { txn_id: sending.transaction, outcome: None };
    let first = Transfer {
        delivery_id: Some(u32::from_be_bytes(NUMBER)),
        delivery_tag: Some(DeliveryTag(&NUMBER)),
        message_format: Some(0),
        settled: Some(sending.settled),
        state: (!sending.transaction.is_empty())
            .then_some(DeliveryState::TransactionalState(state)),
        ..Transfer::default()
    };
    let start = out.len();
    let (mut transfer, mut rest) = (first, sections);
    let mut body_at = None;
    loop {
        let at = out.len();
        let fits =
            |out: &Vec<u8>| (sending.frame_bytes_max as usize).saturating_sub(out.len() - at);
        frame::begin(out, frame::AMQP, sending.channel);
        transfer.write(out);
        if fits(out) < rest.len() {
            out.truncate(at);
            frame::begin(out, frame::AMQP, sending.channel);
            transfer = Transfer { more: true, ..transfer };
            transfer.write(out);
        }
        let (taken, left) = rest.split_at(fits(out).min(rest.len()));
        body_at.get_or_insert(out.len() + sections.len() - body_bytes);
        out.extend_from_slice(taken);
        frame::end(out, at);
        if left.is_empty() {
            break;
        }
        (transfer, rest) = (Transfer::default(), left);
    }
    let number: &[u8] = &[&[UINT][..], &NUMBER].concat();
    let number_at = start + find(&out[start..], number).expect("it was written") + 1;
    let tag_at = number_at + NUMBER.len() + BETWEEN.len();
    let encoded = Encoded::body_at(body_at.unwrap_or(start)).with_delivery_id(number_at, tag_at);
    match sending.transaction {
        [] => encoded,
        id => {
            let after = tag_at + NUMBER.len();
            let at = after + find(&out[after..], id).expect("it was written");
            encoded.with_transaction(at, id.len())
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Whether a frame of ours is a transfer, and whether it begins a message: then a delivery-id follows its
/// handle, which is 0.
#[inline]
pub(super) fn begins_message(frame: &[u8]) -> Option<bool> {
    match frame.get(frame::HEAD_BYTES..) {
        Some([DESCRIBED, SMALL_ULONG, TRANSFER, LIST8, _, count, UINT0, id, ..]) => {
            Some(*count > 1 && *id == UINT)
        }
        _ => None,
    }
}

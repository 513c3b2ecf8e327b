//! A stand-in for a server that speaks RESP3: its answers, and the messages of channels.

use super::codec;
use crate::client::Encoded;
use crate::client::fake_broker::{Answer, FakeBroker, Prefix};

/// What a client of ours needs to publish to channels and to subscribe to them.
pub(crate) fn fake_broker() -> FakeBroker {
    let answer =
        |request, reply: &[u8]| Answer { request: Prefix::new(request), reply: reply.to_vec() };
    FakeBroker {
        greeting: Vec::new(),
        answers: vec![
            answer(b"*2\r\n$5\r\nHELLO\r\n", b"%1\r\n$5\r\nproto\r\n:3\r\n"),
            answer(b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"),
            answer(b"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$2\r\nON\r\n", b"+OK\r\n"),
        ],
        message: Prefix::new(b"*3\r\n$7\r\nPUBLISH\r\n"),
        request_bytes: |bytes| codec::answer(bytes).ok()?.map(|(_, octets)| octets),
        delivery: |channel, body, out| {
            out.extend_from_slice(b">3\r\n");
            for word in [&b"message"[..], channel.as_bytes(), body] {
                codec::write_bulk(out, word);
            }
            Encoded::body_at(out.len() - b"\r\n".len() - body.len())
        },
    }
}

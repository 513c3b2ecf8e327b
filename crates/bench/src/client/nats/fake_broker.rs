//! The fake broker of NATS: its answers and deliveries.

use crate::client::Encoded;
use crate::client::fake_broker::{Answer, FakeBroker, Prefix};
use angarium_protocol::nats::codec::Info;
use angarium_protocol::nats::codec::server::Message;
use angarium_protocol::nats::frame;

/// Answers what this tool's client needs to publish and to subscribe.
pub(crate) fn fake_broker() -> FakeBroker {
    let mut greeting = Vec::new();
    // nats-server's default.
    Info { proto: 1, headers: true, max_payload: 1 << 20, ..Info::default() }.write(&mut greeting);
    FakeBroker {
        greeting,
        answers: vec![Answer { request: Prefix::new(b"PING"), reply: b"PONG\r\n".to_vec() }],
        message: Prefix::new(b"PUB "),
        request_bytes: |bytes| bytes.iter().position(|octet| *octet == b'\n').map(|at| at + 1),
        delivery: |subject, body, out| {
            let subject = subject.as_bytes();
            Message { subject, sid: b"1", body, ..Message::default() }.write(out);
            Encoded::body_at(out.len() - frame::END.len() - body.len())
        },
    }
}

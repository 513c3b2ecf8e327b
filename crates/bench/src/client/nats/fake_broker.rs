//! A stand-in for a broker of NATS: its answers and deliveries.

use crate::client::Encoded;
use crate::client::fake_broker::{Answer, FakeBroker};
use angarium_protocol::nats::codec::Info;
use angarium_protocol::nats::codec::server::Message;
use angarium_protocol::nats::frame;

/// What a client of ours needs to publish and to subscribe.
pub(in crate::client) fn fake_broker() -> FakeBroker {
    let mut greeting = Vec::new();
    // As large as nats-server takes them by default.
    Info { proto: 1, headers: true, max_payload: 1 << 20, ..Info::default() }.write(&mut greeting);
    FakeBroker {
        greeting,
        answers: vec![Answer { at: 0, start: b"PING", says: b"PONG\r\n".to_vec() }],
        message: (0, b"PUB "),
        whole: |bytes| bytes.iter().position(|octet| *octet == b'\n').map(|at| at + 1),
        delivery: |subject, body, out| {
            let subject = subject.as_bytes();
            Message { subject, sid: b"1", body, ..Message::default() }.write(out);
            Encoded::body_at(out.len() - frame::END.len() - body.len())
        },
    }
}

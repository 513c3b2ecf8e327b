//! A stand-in for a broker of STOMP: its answers and deliveries.

use super::connection::{END, SUBSCRIBED};
use super::frame;
use crate::client::Encoded;
use crate::client::fake_broker::{Answer, FakeBroker};

/// What a client of ours needs to publish and to subscribe.
pub(in crate::client) fn fake_broker() -> FakeBroker {
    let answer = |start, command: &str, headers: &[(&str, &str)]| {
        let mut says = Vec::new();
        frame::write(&mut says, command, headers);
        Answer { at: 0, start, says }
    };
    FakeBroker {
        greeting: Vec::new(),
        answers: vec![
            answer(b"CONNECT\n", "CONNECTED", &[("version", "1.2")]),
            answer(b"SUBSCRIBE\n", "RECEIPT", &[("receipt-id", SUBSCRIBED)]),
            answer(b"UNSUBSCRIBE\n", "RECEIPT", &[("receipt-id", END)]),
            answer(b"DISCONNECT\n", "RECEIPT", &[("receipt-id", END)]),
        ],
        message: (0, b"SEND\n"),
        whole: |bytes| bytes.iter().position(|octet| *octet == 0).map(|at| at + 1),
        delivery: deliver,
    }
}

/// With the headers that RabbitMQ writes, in its order.
fn deliver(destination: &str, body: &[u8], out: &mut Vec<u8>) -> Encoded {
    let length = body.len().to_string();
    let headers = [
        ("subscription", "0"),
        ("destination", destination),
        ("message-id", "T_0@@session-0123456789abcdefghijkl@@1000000"),
        ("redelivered", "false"),
        ("content-length", &length),
    ];
    frame::write(out, "MESSAGE", &headers);
    // The zero that ends the frame comes behind the body.
    out.pop();
    let body_at = out.len();
    out.extend_from_slice(body);
    out.push(0);
    Encoded::body_at(body_at)
}

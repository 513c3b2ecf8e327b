//! The fake broker of STOMP: its answers and deliveries.

use super::connection::{END, SUBSCRIBED};
use super::frame;
use crate::client::Encoded;
use crate::client::fake_broker::{Answer, FakeBroker, Prefix};

/// Answers what this tool's client needs to publish and to subscribe.
pub(crate) fn fake_broker() -> FakeBroker {
    let answer = |request, command: &str, headers: &[(&str, &str)]| {
        let mut reply = Vec::new();
        frame::write(&mut reply, command, headers);
        Answer { request: Prefix::new(request), reply }
    };
    FakeBroker {
        greeting: Vec::new(),
        answers: vec![
            answer(b"CONNECT\n", "CONNECTED", &[("version", "1.2")]),
            answer(b"SUBSCRIBE\n", "RECEIPT", &[("receipt-id", SUBSCRIBED)]),
            answer(b"UNSUBSCRIBE\n", "RECEIPT", &[("receipt-id", END)]),
            answer(b"DISCONNECT\n", "RECEIPT", &[("receipt-id", END)]),
        ],
        message: Prefix::new(b"SEND\n"),
        request_bytes: |bytes| bytes.iter().position(|octet| *octet == 0).map(|at| at + 1),
        delivery: deliver,
    }
}

/// Appends a MESSAGE with RabbitMQ's headers, in its order.
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
    // The NUL that ends the frame follows the body.
    out.pop();
    let body_at = out.len();
    out.extend_from_slice(body);
    out.push(0);
    Encoded::body_at(body_at)
}

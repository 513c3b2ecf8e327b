//! The fake broker of AMQP 0-9-1: its answers and deliveries.

use super::delivery::FRAME_BYTES_MAX;
use super::message::{CHANNEL, write_content};
use crate::client::Encoded;
use crate::client::fake_broker::{Answer, FakeBroker, Prefix};
use angarium_protocol::amqp091::codec::content::{self, Deliver};
use angarium_protocol::amqp091::codec::{Method, Table};
use angarium_protocol::amqp091::frame::{self, HEAD_BYTES, PROTOCOL_HEADER};

/// A consumer tag as long as brokers make them.
const CONSUMER_TAG: &str = "amq.ctag-0123456789abcdefghijkl";

/// Answers what this tool's client needs to publish and to consume.
pub(crate) fn fake_broker() -> FakeBroker {
    let start = Method::ConnectionStart {
        version_major: 0,
        version_minor: 9,
        server_properties: Table::default(),
        mechanisms: b"PLAIN",
        locales: b"en_US",
    };
    let tune =
        Method::ConnectionTune { channel_max: 2047, frame_max: FRAME_BYTES_MAX, heartbeat: 0 };
    let methods: [(&'static [u8], u16, Method<'_>); 7] = [
        // start-ok, open and close of a connection
        (&[0, 10, 0, 11], 0, tune),
        (&[0, 10, 0, 40], 0, Method::ConnectionOpenOk { known_hosts: "" }),
        (&[0, 10, 0, 50], 0, Method::ConnectionCloseOk {}),
        // open and close of a channel
        (&[0, 20, 0, 10], CHANNEL, Method::ChannelOpenOk { channel_id: b"" }),
        (&[0, 20, 0, 40], CHANNEL, Method::ChannelCloseOk {}),
        // consume
        (&[0, 60, 0, 20], CHANNEL, Method::BasicConsumeOk { consumer_tag: CONSUMER_TAG }),
        // select of confirms
        (&[0, 85, 0, 10], CHANNEL, Method::ConfirmSelectOk {}),
    ];
    let answer = |request, channel, method: &Method<'_>| {
        let mut reply = Vec::new();
        method.write_frame(channel, &mut reply);
        Answer { request, reply }
    };
    let mut answers = vec![answer(Prefix::new(&PROTOCOL_HEADER), 0, &start)];
    answers.extend(methods.iter().map(|(bytes, channel, method)| {
        answer(Prefix { at: HEAD_BYTES, bytes }, *channel, method)
    }));
    FakeBroker {
        greeting: Vec::new(),
        answers,
        message: Prefix { at: HEAD_BYTES, bytes: &content::PUBLISH },
        request_bytes: |bytes| match bytes.starts_with(&PROTOCOL_HEADER) {
            true => Some(PROTOCOL_HEADER.len()),
            false => frame::head(bytes).map(|head| frame::OVERHEAD_BYTES + head.size as usize),
        },
        delivery: deliver,
    }
}

fn deliver(queue: &str, body: &[u8], out: &mut Vec<u8>) -> Encoded {
    let deliver = Deliver {
        consumer_tag: CONSUMER_TAG,
        delivery_tag: 1,
        redelivered: false,
        exchange: "",
        routing_key: queue,
    };
    deliver.write_frame(CHANNEL, out);
    write_content(out, false, body, FRAME_BYTES_MAX)
}

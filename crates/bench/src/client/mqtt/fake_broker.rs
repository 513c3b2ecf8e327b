//! The fake broker of MQTT: its answers and deliveries.

use super::packet::{self, Head, Version};
use crate::client::Encoded;
use crate::client::fake_broker::{Answer, FakeBroker, Prefix};

/// Answers what this tool's client needs to publish and to subscribe at QoS 0.
pub(crate) fn fake_broker(version: Version) -> FakeBroker {
    // In MQTT 5 the property length follows the codes of CONNACK (3.2.2) and precedes those of SUBACK
    // and UNSUBACK (3.9.2, 3.11.2); UNSUBACK of 3.1.1 has no codes.
    let answers: [(&'static [u8], &[u8]); 4] = match version {
        Version::V3 => [
            (&[0x10], &[0x20, 2, 0, 0]),
            (&[0x82], &[0x90, 3, 0, 1, 0]),
            (&[0xA2], &[0xB0, 2, 0, 2]),
            (&[0xC0], &[0xD0, 0]),
        ],
        Version::V5 => [
            (&[0x10], &[0x20, 3, 0, 0, 0]),
            (&[0x82], &[0x90, 4, 0, 1, 0, 0]),
            (&[0xA2], &[0xB0, 4, 0, 2, 0, 0]),
            (&[0xC0], &[0xD0, 0]),
        ],
    };
    let answers = answers
        .map(|(request, reply)| Answer { request: Prefix::new(request), reply: reply.to_vec() });
    FakeBroker {
        greeting: Vec::new(),
        answers: answers.into(),
        message: Prefix::new(&[packet::PUBLISH << 4]),
        request_bytes: |bytes| Head::decode(bytes).ok()?.map(|head| head.octets + head.remaining),
        // A delivery is a PUBLISH like the client's.
        delivery: match version {
            Version::V3 => |topic, body, out| deliver(Version::V3, topic, body, out),
            Version::V5 => |topic, body, out| deliver(Version::V5, topic, body, out),
        },
    }
}

fn deliver(version: Version, topic: &str, body: &[u8], out: &mut Vec<u8>) -> Encoded {
    packet::publish(version, topic, 0, body, out)
}

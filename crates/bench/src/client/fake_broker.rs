//! What stands in for a broker where a driver's own cost is measured: the answers that open and end a
//! connection, as canned bytes, and deliveries. Knows no sockets.

use super::Encoded;

/// A broker that answers requests by how they begin, and does nothing else.
#[derive(Debug)]
pub struct FakeBroker {
    /// What it says to whoever connects.
    pub greeting: Vec<u8>,
    /// What it says to requests; to others it says nothing.
    pub(in crate::client) answers: Vec<Answer>,
    /// How a published message begins: where, and with what.
    pub(in crate::client) message: (usize, &'static [u8]),
    /// Octets of the request that bytes begin with, if all of it is there.
    pub(in crate::client) whole: fn(&[u8]) -> Option<usize>,
    /// Appends a delivery of this body from the source of that name.
    pub(in crate::client) delivery: fn(&str, &[u8], &mut Vec<u8>) -> Encoded,
}

/// What is said to the requests that have these octets at this place.
#[derive(Debug)]
pub(in crate::client) struct Answer {
    pub(in crate::client) at: usize,
    pub(in crate::client) start: &'static [u8],
    pub(in crate::client) says: Vec<u8>,
}

impl FakeBroker {
    /// How many whole messages of so many octets `bytes` begin with.
    #[inline]
    pub fn messages(&self, bytes: &[u8], message_bytes: usize) -> usize {
        let (at, start) = self.message;
        let is_message = |bytes: &&[u8]| begins(bytes, at, start);
        bytes.chunks_exact(message_bytes.max(1)).take_while(is_message).count()
    }

    /// What is said to the request that `bytes` begin with, and how many octets that has; `None` if it
    /// is not all there, or no request but a message.
    pub fn request(&self, bytes: &[u8]) -> Option<(&[u8], usize)> {
        let (at, start) = self.message;
        if begins(bytes, at, start) {
            return None;
        }
        let octets = (self.whole)(bytes).filter(|octets| *octets <= bytes.len())?;
        let answer = self.answers.iter().find(|it| begins(&bytes[..octets], it.at, it.start));
        Some((answer.map_or(&[], |answer| &answer.says), octets))
    }

    /// Appends a delivery of this body from the source of that name, as a broker writes it.
    pub fn deliver(&self, source: &str, body: &[u8], out: &mut Vec<u8>) -> Encoded {
        (self.delivery)(source, body, out)
    }
}

#[inline]
fn begins(bytes: &[u8], at: usize, start: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(start))
}

#[cfg(test)]
mod tests {
    use crate::client::fake_broker;

    /// Of each driver: what its first request begins with, and what ends its publishing.
    const ENDS: [(&str, &[u8], &[u8]); 6] = [
        ("amqp://h", b"AMQP\0\0\x09\x01", b"\x01\0\x01\0\0\0\x04\0\x14\0\x28\xCE"),
        ("nats://h", b"PING\r\n", b"PING\r\n"),
        ("mqtt://h", b"\x10\0", b"\xC0\0"),
        ("mqtt5://h", b"\x10\0", b"\xC0\0"),
        ("stomp://h", b"CONNECT\nlogin:a\n\n\0", b"DISCONNECT\nreceipt:end\n\n\0"),
        ("redis://h", b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n", b"*1\r\n$4\r\nPING\r\n"),
    ];

    /// A message as the driver publishes it, as far as stand-ins look at them.
    fn published(address: &str) -> Vec<u8> {
        match &address[..4] {
            "amqp" => b"\x01\0\x01\0\0\0\x04\0\x3c\0\x28\xCE".to_vec(),
            "nats" => b"PUB a 1\r\nx\r\n".to_vec(),
            "mqtt" => b"\x30\x04\0\x01ax".to_vec(),
            "stom" => b"SEND\ndestination:a\n\nx\0".to_vec(),
            _ => b"*3\r\n$7\r\nPUBLISH\r\n$1\r\na\r\n$1\r\nx\r\n".to_vec(),
        }
    }

    #[test]
    fn requests_are_answered_once_they_are_whole_and_messages_are_counted() {
        for (address, first, last) in ENDS {
            let fake_broker = fake_broker(&address.parse().expect("it is an address"));
            let message = published(address);
            for request in [first, last] {
                let mut bytes = request.to_vec();
                bytes.extend_from_slice(&message);
                let (says, octets) = fake_broker.request(&bytes).expect("it is whole");
                assert_eq!((says.is_empty(), octets), (false, request.len()), "{address}");
                for cut in 0..request.len() {
                    assert_eq!(fake_broker.request(&bytes[..cut]), None, "{address} {cut}");
                }
            }
            let stream = [&message[..], &message, &message, last].concat();
            assert_eq!(fake_broker.request(&stream), None, "{address}");
            for octets in 0..=stream.len() {
                let whole = (octets / message.len()).min(3);
                let found = fake_broker.messages(&stream[..octets], message.len());
                assert_eq!(found, whole, "{address} {octets}");
            }
            assert!(fake_broker.request(&stream[3 * message.len()..]).is_some(), "{address}");
        }
    }
}

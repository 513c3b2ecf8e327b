//! A fake broker for measuring a driver's own cost: canned answers to the requests that open and close a
//! connection, and encoded deliveries. Independent of sockets.

use super::Encoded;

/// A broker that answers requests by their first bytes and does nothing else.
#[derive(Debug)]
pub struct FakeBroker {
    /// Bytes it sends to a new connection.
    pub greeting: Vec<u8>,
    /// Its answers; other requests get none.
    pub(crate) answers: Vec<Answer>,
    /// How a published message begins.
    pub(crate) message: Prefix,
    /// Length of the request at the start of the bytes, if it is complete.
    pub(crate) request_bytes: fn(&[u8]) -> Option<usize>,
    /// Appends a delivery of this body from the source of this name.
    pub(crate) delivery: fn(&str, &[u8], &mut Vec<u8>) -> Encoded,
}

/// The answer to requests with this prefix.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) request: Prefix,
    pub(crate) reply: Vec<u8>,
}

/// Bytes at a fixed offset that identify a request or a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prefix {
    pub(crate) at: usize,
    pub(crate) bytes: &'static [u8],
}

impl Prefix {
    /// A prefix at the very start.
    pub(crate) fn new(bytes: &'static [u8]) -> Prefix {
        Prefix { at: 0, bytes }
    }

    #[inline]
    fn matches(&self, bytes: &[u8]) -> bool {
        bytes.get(self.at..).is_some_and(|rest| rest.starts_with(self.bytes))
    }
}

impl FakeBroker {
    /// Number of whole messages of `message_bytes` each at the start of `bytes`.
    #[inline]
    pub fn messages(&self, bytes: &[u8], message_bytes: usize) -> usize {
        let is_message = |bytes: &&[u8]| self.message.matches(bytes);
        bytes.chunks_exact(message_bytes.max(1)).take_while(is_message).count()
    }

    /// The answer to the request at the start of `bytes`, and the request's length; `None` if the
    /// request is incomplete or is a published message.
    pub fn request(&self, bytes: &[u8]) -> Option<(&[u8], usize)> {
        if self.message.matches(bytes) {
            return None;
        }
        let octets = (self.request_bytes)(bytes).filter(|octets| *octets <= bytes.len())?;
        let answer = self.answers.iter().find(|it| it.request.matches(&bytes[..octets]));
        Some((answer.map_or(&[], |answer| &answer.reply), octets))
    }

    /// Appends a delivery of this body from the source of this name, encoded as a broker does.
    pub fn deliver(&self, source: &str, body: &[u8], out: &mut Vec<u8>) -> Encoded {
        (self.delivery)(source, body, out)
    }
}

#[cfg(test)]
mod tests {
    use crate::client::fake_broker;

    /// For each driver: its first request, and the request that ends publishing.
    const ENDS: [(&str, &[u8], &[u8]); 7] = [
        ("amqp://h", b"AMQP\0\0\x09\x01", b"\x01\0\x01\0\0\0\x04\0\x14\0\x28\xCE"),
        ("amqp10://h", b"AMQP\x03\x01\0\0", b"\0\0\0\x0f\x02\0\0\x01\0\x53\x16\xc0\x02\x01\x43"),
        ("nats://h", b"PING\r\n", b"PING\r\n"),
        ("mqtt://h", b"\x10\0", b"\xC0\0"),
        ("mqtt5://h", b"\x10\0", b"\xC0\0"),
        ("stomp://h", b"CONNECT\nlogin:a\n\n\0", b"DISCONNECT\nreceipt:end\n\n\0"),
        ("redis://h", b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n", b"*1\r\n$4\r\nPING\r\n"),
    ];

    /// A message as the driver publishes it, as far as fake brokers look at it.
    fn published(address: &str) -> Vec<u8> {
        match &address[..4] {
            "amqp" if address.starts_with("amqp10") => {
                b"\0\0\0\x0f\x02\0\0\x01\0\x53\x14\xc0\x02\x01\x43".to_vec()
            }
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
                let (reply, octets) = fake_broker.request(&bytes).expect("it is whole");
                assert_eq!((reply.is_empty(), octets), (false, request.len()), "{address}");
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

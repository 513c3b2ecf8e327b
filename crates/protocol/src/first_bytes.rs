//! Which protocol a client speaks that begins with these bytes.

use crate::peer::Protocol;

/// What clients begin with, and what they speak then. HTTP's `CONNECT host:port` is none of them.
const BEGINNINGS: [(&[u8], Protocol); 7] = [
    (b"AMQP", Protocol::Amqp),
    (b"\x10", Protocol::Mqtt),
    (b"STOMP\n", Protocol::Stomp),
    (b"STOMP\r", Protocol::Stomp),
    (b"CONNECT\n", Protocol::Stomp),
    (b"CONNECT\r", Protocol::Stomp),
    (b"CONNECT {", Protocol::Nats),
];
/// The beginning of the request that opens a WebSocket.
const HTTP: (&[u8], Protocol) = (b"GET ", Protocol::WebSocket);

/// What the first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstBytes {
    /// More of them are needed.
    Few,
    /// What the client speaks.
    Of(Protocol),
    /// They are of no protocol that is spoken here.
    Unknown,
}

impl FirstBytes {
    /// What those of a connection say: whole messages of a protocol, or a WebSocket's request.
    #[must_use]
    pub fn of_transport(input: &[u8]) -> FirstBytes {
        FirstBytes::among(input, BEGINNINGS.into_iter().chain([HTTP]))
    }

    /// What those inside a WebSocket say.
    #[must_use]
    pub fn of_payload(input: &[u8]) -> FirstBytes {
        FirstBytes::among(input, BEGINNINGS.into_iter())
    }

    fn among(input: &[u8], known: impl Iterator<Item = (&'static [u8], Protocol)>) -> FirstBytes {
        let mut may_become = false;
        for (beginning, protocol) in known {
            if input.starts_with(beginning) {
                return FirstBytes::Of(protocol);
            }
            may_become |= beginning.starts_with(input);
        }
        if may_become { FirstBytes::Few } else { FirstBytes::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::FirstBytes;
    use crate::peer::Protocol;

    #[test]
    fn a_protocol_is_known_by_its_first_bytes() {
        use FirstBytes::{Few, Of, Unknown};
        for (input, expected) in [
            (&b"AMQP\x00\x00\x09\x01"[..], Of(Protocol::Amqp)),
            (b"AMQP\x03\x01\x00\x00", Of(Protocol::Amqp)),
            (b"\x10\x0c\x00\x04MQTT", Of(Protocol::Mqtt)),
            (b"STOMP\nhost:x", Of(Protocol::Stomp)),
            (b"STOMP\r\nhost:x", Of(Protocol::Stomp)),
            (b"CONNECT\naccept-version:1.2", Of(Protocol::Stomp)),
            (b"CONNECT\r\n", Of(Protocol::Stomp)),
            (b"CONNECT {\"verbose\":false}\r\n", Of(Protocol::Nats)),
            (b"GET / HTTP/1.1\r\n", Of(Protocol::WebSocket)),
            (b"", Few),
            (b"CONNECT", Few),
            (b"CONNECT ", Few),
            (b"CONNECT mq.example.com:80 HTTP/1.1\r\n", Unknown),
            (b"GETS", Unknown),
            (b"POST / HTTP/1.1\r\n", Unknown),
            (b"SEND\n", Unknown),
            (b"\x16\x03\x01", Unknown),
            (b"\x00", Unknown),
        ] {
            assert_eq!(FirstBytes::of_transport(input), expected, "{}", input.escape_ascii());
            if let Of(protocol) = expected
                && protocol != Protocol::WebSocket
            {
                assert_eq!(FirstBytes::of_payload(input), expected, "{}", input.escape_ascii());
            }
            // Fewer bytes never say anything else.
            for end in 0..input.len() {
                let fewer = FirstBytes::of_transport(&input[..end]);
                assert!(fewer == expected || fewer == Few, "{}", input[..end].escape_ascii());
            }
        }
        assert_eq!(FirstBytes::of_payload(b"GET / HTTP/1.1\r\n"), Unknown);
    }
}

//! Sessions cut into pieces: each gives the same output as the whole.

use super::{decode, settings};
use crate::Peer;
use crate::amqp091;
use crate::tests::fragmentation::{byte_by_byte, cut_anywhere, random_pieces};
use crate::tests::host::TestHost;

/// A session with every command; of its ids, `SESSION` is not known beforehand.
pub(super) fn recorded() -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in [
        "CONNECT\naccept-version:1.2\nheart-beat:0,0\n\n\0\n",
        "SUBSCRIBE\r\nid:0\r\ndestination:/queue/a\r\nack:client\r\nreceipt:1\r\n\r\n\0",
        "SUBSCRIBE\nid:1\ndestination:/topic/t.*\nselector:a = 'b'\n\n\0\n\n",
        "SEND\ndestination:/queue/a\ncontent-length:5\nodd:\\c\\n\n\na\0b\0c\0",
        "SEND\ndestination:/topic/t.x\na:b\n\nwithout a length\0",
        "BEGIN\ntransaction:t\n\n\0",
        "SEND\ndestination:/queue/new\ntransaction:t\nreceipt:2\n\nin it\0",
        "SEND\ndestination:/queue/a\nreply-to:/temp-queue/mine\n\n\0",
        "COMMIT\ntransaction:t\nreceipt:3\n\n\0",
        "UNSUBSCRIBE\nid:1\nreceipt:4\n\n\0",
        "DISCONNECT\nreceipt:5\n\n\0",
    ] {
        bytes.extend_from_slice(frame.as_bytes());
    }
    bytes
}

/// What the broker says to these pieces, without what is random.
fn output(pieces: &[&[u8]]) -> Vec<u8> {
    let mut host = TestHost::new(amqp091::Settings::default());
    let number = host.accept_stomp(Peer::default(), settings());
    for piece in pieces {
        host.receive(number, piece);
        host.turn_ends();
    }
    decode(&host.output(number)).join("\n").into_bytes()
}

#[test]
fn sessions_may_be_cut_anywhere() {
    let session = recorded();
    let whole = String::from_utf8(output(&[&session])).unwrap();
    assert!(whole.ends_with("RECEIPT|receipt-id:5||"), "{whole}");
    cut_anywhere(&session, output);
    byte_by_byte(&session, output);
    random_pieces(&session, 40, output);
}

#[test]
fn large_messages_may_come_in_any_pieces() {
    for head in ["content-length:200000\n", ""] {
        let mut session = b"CONNECT\naccept-version:1.2\n\n\0".to_vec();
        let send = format!("SEND\ndestination:/queue/large\n{head}receipt:1\n\n");
        session.extend_from_slice(send.as_bytes());
        session.extend_from_slice(&[b'x'; 200_000]);
        session.push(0);
        session.extend_from_slice(b"SUBSCRIBE\nid:0\ndestination:/queue/large\n\n\0");
        let whole = output(&[&session]);
        assert!(whole.len() > 200_000);
        for size in [1_000, 16 << 10, 65_536, 100_001] {
            let pieces: Vec<&[u8]> = session.chunks(size).collect();
            assert!(output(&pieces) == whole, "in pieces of {size}");
        }
    }
}

#[test]
fn a_connection_goes_on_once_its_receipts_have_come() {
    let mut session = b"CONNECT\naccept-version:1.2\n\n\0".to_vec();
    let count = 5_000;
    for number in 0..count {
        let send =
            format!("SEND\ndestination:/queue/a\npersistent:true\nreceipt:{number:01000}\n\nx\0");
        session.extend_from_slice(send.as_bytes());
    }
    let output = String::from_utf8(output(&[&session])).unwrap();
    assert_eq!(output.matches("RECEIPT|").count(), count);
}

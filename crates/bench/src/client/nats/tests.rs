//! Broker addresses, and the fake broker.

use super::{Login, Uri};
use angarium_protocol::nats::codec::{Info, ServerOp};

#[test]
fn addresses_are_read_with_their_defaults() {
    let check = |text: &str, login: Login, host: &str, port: u16| {
        let uri: Uri = text.parse().expect("it is an address");
        assert_eq!(uri, Uri { login, host: host.to_owned(), port });
    };
    check("nats://localhost", Login::None, "localhost", 4222);
    check("nats://127.0.0.1:99/", Login::None, "127.0.0.1", 99);
    check("nats://secret@h", Login::Token("secret".to_owned()), "h", 4222);
    check("nats://a:b%40c@h:1", Login::User("a".to_owned(), "b@c".to_owned()), "h", 1);
    for wrong in ["amqp://h", "nats://", "nats://h:port"] {
        assert!(wrong.parse::<Uri>().is_err(), "{wrong}");
    }
}

#[test]
fn a_fake_broker_says_what_a_client_takes() {
    let fake_broker = super::fake_broker();
    let op = |bytes| ServerOp::decode(bytes, 100).expect("well-formed").expect("whole");
    let (ServerOp::Info(text), octets) = op(&fake_broker.greeting) else { panic!("it is INFO") };
    assert_eq!(octets, fake_broker.greeting.len());
    assert_eq!(Info::decode(text).expect("it is JSON").max_payload, 1 << 20);
    assert_eq!(op(&fake_broker.answers[0].reply), (ServerOp::Pong, 6));
    let mut out = b"before".to_vec();
    let body_at = fake_broker.deliver("a.b", b"hello", &mut out).body_at;
    let (ServerOp::Message(message), octets) = op(&out[6..]) else { panic!("it is MSG") };
    assert_eq!(
        (message.subject, message.body, octets),
        (&b"a.b"[..], &b"hello"[..], out.len() - 6)
    );
    assert_eq!(&out[body_at..body_at + 5], b"hello");
}

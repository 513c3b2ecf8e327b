//! Broker addresses, and the fake broker.

use crate::client::Target;
use crate::client::target::Login;
use angarium_protocol::nats::codec::{Info, ServerOp};

#[test]
fn addresses_are_read_with_their_defaults() {
    let check = |text: &str, login: Option<(&str, Option<&str>)>, host: &str, port: u16| {
        let target: Target = text.parse().expect("it is an address");
        let login = login.map(|(user, password)| Login {
            user: user.to_owned(),
            password: password.map(str::to_owned),
        });
        assert_eq!((&target.login, target.host(), target.port()), (&login, host, port));
    };
    check("nats://localhost", None, "localhost", 4222);
    check("nats://127.0.0.1:99/", None, "127.0.0.1", 99);
    check("nats://secret@h", Some(("secret", None)), "h", 4222);
    check("nats://a:b%40c@h:1", Some(("a", Some("b@c"))), "h", 1);
    for wrong in ["nats://", "nats://h:port", "nats://h/path"] {
        assert!(wrong.parse::<Target>().is_err(), "{wrong}");
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

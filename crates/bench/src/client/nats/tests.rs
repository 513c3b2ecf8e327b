//! Broker addresses.

use super::{Login, Uri};

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

//! Clients that prove by AUTH that they know a password.

use super::speech::packet;
use crate::mqtt::Settings;
use crate::mqtt::codec::{
    Auth, Connect, Packet, PropertiesWriter, PropertyId, PropertyValue, Reason, Version,
};
use crate::mqtt::frame::Frame;
use crate::scram::{self, Verifier};
use crate::tests::host::TestHost;
use crate::{Peer, amqp091, nats};

const FIRST: &str = "n,,n=guest,r=fyko";

struct Client {
    host: TestHost,
    number: usize,
    /// It has agreed on a method.
    has_method: bool,
}

impl Client {
    /// One of a broker whose `guest` has the password `pencil`.
    fn new() -> Client {
        let mut host = TestHost::of(amqp091::Settings::default(), nats::Settings::default());
        let peer = Peer { local: true, address: "here:1".to_owned(), ..Peer::default() };
        let number = host.accept_mqtt(peer, Settings::default());
        let verifier = Verifier::of_password("pencil", b"salt", 8).to_string();
        host.store_password("guest", &verifier);
        Client { host, number, has_method: true }
    }

    fn properties(method: &str, data: Option<&str>) -> PropertiesWriter {
        let mut properties = PropertiesWriter::new();
        properties.put_text(PropertyId::AuthenticationMethod, method);
        if let Some(data) = data {
            let data = PropertyValue::Binary(data.as_bytes());
            properties.put(PropertyId::AuthenticationData, data);
        }
        properties
    }

    fn connect(&mut self, method: &str, data: Option<&str>) -> Vec<String> {
        let properties = Client::properties(method, data);
        self.send(&Packet::Connect(Box::new(Connect {
            version: Version::V5,
            clean_start: true,
            keep_alive: 0,
            properties: properties.properties(),
            client_id: "c",
            will: None,
            user_name: None,
            password: None,
        })))
    }

    fn auth(&mut self, reason: Reason, method: &str, data: Option<&str>) -> Vec<String> {
        let properties = Client::properties(method, data);
        self.send(&Packet::Auth(Auth { reason, properties: properties.properties() }))
    }

    fn send(&mut self, packet: &Packet<'_>) -> Vec<String> {
        let mut bytes = Vec::new();
        packet.write(Version::V5, &mut bytes);
        self.raw(&bytes)
    }

    /// What is answered: the packet, its reason, its authentication data.
    fn raw(&mut self, bytes: &[u8]) -> Vec<String> {
        self.host.receive(self.number, bytes);
        self.host.turn_ends();
        let output = self.host.output(self.number);
        let (mut rest, mut lines) = (&output[..], Vec::new());
        while let Some((frame, used)) = Frame::read(rest, usize::MAX).unwrap() {
            rest = &rest[used..];
            let packet = Packet::decode(&frame, Version::V5).unwrap();
            let (name, reason, properties) = match packet {
                Packet::Auth(auth) => ("auth", auth.reason, auth.properties),
                Packet::Connack(connack) => ("connack", connack.reason, connack.properties),
                Packet::Disconnect(end) => ("disconnect", end.reason, end.properties),
                other => {
                    lines.push(format!("{other:?}"));
                    continue;
                }
            };
            let data = properties.binary(PropertyId::AuthenticationData).unwrap_or_default();
            let data = String::from_utf8_lossy(data);
            lines.push(format!("{name} {reason:?} {data}").trim_end().to_owned());
            let has_method = properties.text(PropertyId::AuthenticationMethod).is_some();
            assert_eq!(has_method, self.has_method && !reason.is_error(), "{lines:?}");
        }
        lines
    }

    /// Proves a password by the answer to the first message; returns what is answered, and the proof that
    /// the broker has to give.
    fn prove(&mut self, answer: &[String], password: &str) -> (Vec<String>, String) {
        let challenge = answer[0].strip_prefix("auth ContinueAuthentication ").unwrap();
        let (last, signature) = scram::answer_of_client(FIRST, challenge, password);
        let reason = Reason::ContinueAuthentication;
        (self.auth(reason, scram::MECHANISM, Some(&last)), signature)
    }

    fn connected() -> Client {
        let mut client = Client::new();
        let answer = client.connect(scram::MECHANISM, Some(FIRST));
        let (lines, signature) = client.prove(&answer, "pencil");
        assert_eq!(lines, [format!("connack Success {signature}")]);
        client
    }
}

#[test]
fn passwords_are_proven() {
    for (password, is_asked) in [("pencil", false), ("pencil", true), ("pen", false)] {
        let mut client = Client::new();
        let mut answer = client.connect(scram::MECHANISM, Some(FIRST).filter(|_| !is_asked));
        if is_asked {
            assert_eq!(answer, ["auth ContinueAuthentication"]);
            let reason = Reason::ContinueAuthentication;
            answer = client.auth(reason, scram::MECHANISM, Some(FIRST));
        }
        let (lines, signature) = client.prove(&answer, password);
        if password == "pencil" {
            assert_eq!(lines, [format!("connack Success {signature}")]);
            assert_eq!(client.raw(&packet("ping", Version::V5)), ["Pingresp"]);
        } else {
            assert_eq!(lines, ["connack NotAuthorized"]);
            let why = client.host.closed(client.number).unwrap();
            assert_eq!(why, "login refused: wrong proof of 'guest'");
        }
    }
}

#[test]
fn clients_prove_themselves_again_while_they_go_on() {
    let mut client = Client::connected();
    for _ in 0..2 {
        let answer = client.auth(Reason::ReAuthenticate, scram::MECHANISM, Some(FIRST));
        assert_eq!(client.raw(&packet("ping", Version::V5)), ["Pingresp"]);
        let (lines, signature) = client.prove(&answer, "pencil");
        assert_eq!(lines, [format!("auth Success {signature}")]);
    }
    let answer = client.auth(Reason::ReAuthenticate, scram::MECHANISM, Some(FIRST));
    let (lines, _) = client.prove(&answer, "pen");
    assert_eq!(lines, ["disconnect NotAuthorized"]);
    assert!(client.host.closed(client.number).is_some());
}

#[test]
fn another_user_is_no_way_to_prove_oneself_again() {
    let mut client = Client::connected();
    let verifier = Verifier::of_password("pencil", b"salt", 8).to_string();
    client.host.store_password("both", &verifier);
    let first = "n,,n=both,r=fyko";
    let answer = client.auth(Reason::ReAuthenticate, scram::MECHANISM, Some(first));
    let challenge = answer[0].strip_prefix("auth ContinueAuthentication ").unwrap();
    let (last, _) = scram::answer_of_client(first, challenge, "pencil");
    let lines = client.auth(Reason::ContinueAuthentication, scram::MECHANISM, Some(&last));
    assert_eq!(lines, ["disconnect NotAuthorized"]);
}

#[test]
fn what_cannot_come_is_refused() {
    let bad = ["connack BadAuthenticationMethod"];
    assert_eq!(Client::new().connect("PLAIN", Some(FIRST)), bad);
    for nonsense in ["", "n,,n=guest", "p=tls-unique,,n=guest,r=x"] {
        let lines = Client::new().connect(scram::MECHANISM, Some(nonsense));
        assert_eq!(lines, ["connack NotAuthorized"], "{nonsense}");
    }
    let broken = ["connack ProtocolError"];
    let mut client = Client::new();
    client.connect(scram::MECHANISM, Some(FIRST));
    assert_eq!(client.auth(Reason::ContinueAuthentication, "PLAIN", Some("x")), broken);
    let mut client = Client::new();
    client.connect(scram::MECHANISM, Some(FIRST));
    assert_eq!(client.auth(Reason::ReAuthenticate, scram::MECHANISM, Some(FIRST)), broken);
    let mut client = Client::new();
    client.connect(scram::MECHANISM, Some(FIRST));
    assert_eq!(client.raw(&packet("publish a x", Version::V5)), broken);
    // Who has not agreed on a method has none.
    let mut client = Client { has_method: false, ..Client::new() };
    client.raw(&packet("connect client=c v5", Version::V5));
    let lines = client.auth(Reason::ReAuthenticate, scram::MECHANISM, Some(FIRST));
    assert_eq!(lines.last().unwrap(), "disconnect ProtocolError");
}

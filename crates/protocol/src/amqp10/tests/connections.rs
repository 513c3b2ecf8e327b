//! Headers, SASL, open, begin, end, close, and errors of connections and sessions.

use super::client::{Client, begin, closing, frame, login, open, sender, transfer};
use crate::amqp10::Settings;
use crate::amqp10::codec::{
    Close, End, Open, SaslInit, SaslPerformative, SaslResponse, Symbol, Symbols,
};
use crate::amqp10::frame::ProtocolHeader;
use crate::amqp10::{Spoken, spoken};
use std::time::Duration;

const OPENED: &str = "0 open angarium frame=131072 channels=1023 idle=60000";
const BEGUN: &str = "0 begin remote=0 window=4096 handles=1023";

#[test]
fn the_first_bytes_say_which_version() {
    assert_eq!(spoken(b"AMQP\x00\x01\x00\x00"), Spoken::Amqp10);
    assert_eq!(spoken(b"AMQP\x03\x01"), Spoken::Amqp10);
    assert_eq!(spoken(b"AMQP\x00\x00\x09\x01"), Spoken::Other);
    assert_eq!(spoken(b"AMQP\x01\x01\x08\x00"), Spoken::Other);
    assert_eq!(spoken(b"GET /"), Spoken::Other);
    for bytes in 0..6 {
        assert_eq!(spoken(&b"AMQP\x03\x01\x00\x00"[..bytes]), Spoken::Unknown);
    }
}

#[test]
fn a_client_may_send_everything_before_any_answer() {
    let mut client = Client::accepted(Settings::default());
    let mut bytes = login("guest");
    bytes.extend(frame(0, &open(), &[]));
    bytes.extend(frame(0, &begin(10), &[]));
    bytes.extend(frame(0, &sender(0, "q"), &[]));
    bytes.extend(frame(0, &closing(0), &[]));
    bytes.extend(frame(0, &End::default(), &[]));
    bytes.extend(frame(0, &Close::default(), &[]));
    client.raw(&bytes);
    let lines = client.lines();
    assert_eq!(lines.len(), 11, "{lines:#?}");
    assert_eq!(
        lines[..4],
        ["header Sasl", "mechanisms PLAIN ANONYMOUS", "outcome Ok", "header Amqp"]
    );
    assert_eq!(lines[4..7], [OPENED, BEGUN, "0 attach 0 receiver s - -> q"]);
    let behind = [
        "0 flow window=4096 handle=0 count=0 credit=1000",
        "0 detach 0 closed",
        "0 end",
        "0 close",
    ];
    assert_eq!(lines[7..11], behind);
}

#[test]
fn logins_that_fail_get_an_outcome() {
    let mut client = Client::accepted(Settings::default());
    let mut bytes = ProtocolHeader::Sasl.bytes().to_vec();
    let initial_response = Some(&b"\0guest\0wrong"[..]);
    let init = SaslInit { mechanism: Symbol("PLAIN"), initial_response, hostname: None };
    SaslPerformative::SaslInit(init).write_frame(&mut bytes);
    client.raw(&bytes);
    client.expect(&["header Sasl", "mechanisms PLAIN ANONYMOUS", "outcome Auth"]);
    assert!(client.host.closed(client.number).is_some());
    let settings = Settings { anonymous_user: None, ..Settings::default() };
    let mut client = Client::accepted(settings);
    let init = SaslInit { mechanism: Symbol("ANONYMOUS"), initial_response: None, hostname: None };
    client.raw(&ProtocolHeader::Sasl.bytes());
    let mut bytes = Vec::new();
    SaslPerformative::SaslInit(init).write_frame(&mut bytes);
    client.raw(&bytes);
    client.expect(&["header Sasl", "mechanisms PLAIN", "outcome Auth"]);
}

#[test]
fn plain_may_answer_a_challenge() {
    let mut client = Client::accepted(Settings::default());
    client.raw(&ProtocolHeader::Sasl.bytes());
    let mut bytes = Vec::new();
    let init = SaslInit { mechanism: Symbol("PLAIN"), initial_response: None, hostname: None };
    SaslPerformative::SaslInit(init).write_frame(&mut bytes);
    let response = SaslResponse { response: b"\0guest\0guest" };
    SaslPerformative::SaslResponse(response).write_frame(&mut bytes);
    client.raw(&bytes);
    let lines = client.lines();
    assert_eq!(lines.last().map(String::as_str), Some("outcome Ok"), "{lines:?}");
}

#[test]
fn without_sasl_clients_are_anonymous_or_refused() {
    let mut client = Client::accepted(Settings::default());
    client.raw(&ProtocolHeader::Amqp.bytes());
    client.send(0, &open());
    client.expect(&["header Amqp", OPENED]);
    let settings = Settings { anonymous_user: None, ..Settings::default() };
    let mut client = Client::accepted(settings);
    client.raw(&ProtocolHeader::Amqp.bytes());
    client.expect(&["header Sasl"]);
    assert_eq!(
        client.host.closed(client.number).as_deref(),
        Some("the client did not log in by SASL")
    );
}

#[test]
fn errors_before_open_come_behind_our_open() {
    let mut client = Client::accepted(Settings::default());
    client.raw(&login("guest"));
    client.lines();
    client.send(0, &begin(1));
    client.expect(&[OPENED, "0 close amqp:not-allowed: the first frame has to be open"]);
    let mut client = Client::accepted(Settings::default());
    client.raw(&login("guest"));
    client.lines();
    client.send(0, &Open { hostname: Some("vhost:none"), ..open() });
    client.expect(&[OPENED, "0 close amqp:not-found: there is no virtual host 'none'"]);
}

#[test]
fn sessions_are_counted_and_numbered() {
    let settings = Settings { sessions_max: 2, ..Settings::default() };
    let mut client = Client::open_with(settings, 10);
    client.send(1, &begin(10));
    client.expect(&["1 begin remote=1 window=4096 handles=1023"]);
    client.send(2, &begin(10));
    client.expect(&[
        "0 close amqp:connection:framing-error: channel 2 is beyond the agreed channel-max (1)",
    ]);
}

#[test]
fn errors_of_sessions_leave_the_connection() {
    let mut client = Client::open();
    client.send(0, &transfer(5, 0));
    client.expect(&[
        "0 end amqp:session:unattached-handle: transfer for handle 5, with which no link is attached",
    ]);
    // What is underway is dropped until the peer answers.
    client.send(0, &transfer(5, 1));
    client.expect(&[]);
    client.send(0, &End::default());
    client.send(0, &begin(10));
    client.expect(&[BEGUN]);
    client.send(0, &sender(0, "q"));
    client.send(0, &sender(0, "q"));
    let lines = client.lines();
    let expected = "0 end amqp:session:handle-in-use: attach with handle 0, which another link has";
    assert_eq!(lines.last().map(String::as_str), Some(expected), "{lines:#?}");
}

#[test]
fn more_frames_than_the_window_end_the_session() {
    let settings = Settings { incoming_window: 4, link_credit: 1000, ..Settings::default() };
    let mut client = Client::open_with(settings, 10);
    client.send(0, &sender(0, "q"));
    client.lines();
    // Half of the window used up: it is renewed.
    (0..3).for_each(|id| client.send_with(0, &transfer(0, id), &super::client::data("m")));
    let lines = client.lines();
    assert!(lines.contains(&"0 flow window=4".to_owned()), "{lines:#?}");
}

#[test]
fn silence_ends_connections_and_empty_frames_keep_them() {
    let mut client = Client::accepted(Settings::default());
    client.raw(&login("guest"));
    client.send(0, &Open { idle_time_out: Some(10_000), ..open() });
    client.lines();
    client.host.wait(Duration::from_secs(5));
    client.expect(&["empty"]);
    client.host.wait(Duration::from_secs(110));
    client.lines();
    client.host.wait(Duration::from_secs(6));
    client.expect(&[
        "0 close amqp:resource-limit-exceeded: the idle time-out is over: silent for 121 s",
    ]);
}

#[test]
fn a_container_id_may_be_had_by_one_connection_alone() {
    let mut client = Client::open();
    let sole = [Symbol("sole-connection-for-container")];
    let open = Open { desired_capabilities: Symbols::new(&sole), ..open() };
    client.again(&open);
    client.expect(&[OPENED]);
    let first = client.number;
    client.again(&open);
    // The other one may be lost, which takes a moment to find out.
    client.host.wait(Duration::from_secs(2));
    client.expect(&[]);
    client.host.wait(Duration::from_secs(2));
    client.expect(&[
        OPENED,
        "0 close amqp:invalid-field: another connection has the client name 'tester'",
    ]);
    client.again(&open);
    client.expect(&[]);
    client.host.cut(first);
    client.host.wait(Duration::from_secs(1));
    client.expect(&[OPENED]);
    // One of another user is never in doubt.
    client.again_as("responder", &open);
    client.expect(&[
        OPENED,
        "0 close amqp:invalid-field: a connection of another user has the client name 'tester'",
    ]);
}

#[test]
fn an_operator_closes() {
    let mut client = Client::open();
    client.host.shut_down(client.number, "bye");
    client.expect(&["0 close amqp:connection:forced: bye"]);
    client.send(0, &Close::default());
    assert_eq!(client.host.closed(client.number).as_deref(), Some("amqp:connection:forced: bye"));
}

#[test]
fn bytes_that_are_no_frame_end_the_connection() {
    let mut client = Client::open();
    client.raw(&[0, 0, 0, 3, 2, 0, 0, 0]);
    client.expect(&[
        "0 close amqp:connection:framing-error: frame of 3 bytes is smaller than its own head of 8",
    ]);
    let mut client = Client::open();
    client.raw(&[0, 0, 0, 12, 2, 0, 0, 0, 0, 0x53, 0x14, 0x45]);
    client.expect(&[
        "0 close amqp:invalid-field: field 'handle' of transfer is mandatory and missing",
    ]);
}

/// A client that logs in by SCRAM as `guest`, with this password; its first message may come behind a
/// challenge. Returns what it gets in the end, and what the broker's proof has to be.
fn log_in_by_scram(
    client: &mut Client,
    password: &str,
    is_challenged: bool,
) -> (Vec<String>, String) {
    let first = "n,,n=guest,r=fyko";
    client.raw(&ProtocolHeader::Sasl.bytes());
    let initial_response = Some(first.as_bytes()).filter(|_| !is_challenged);
    let init = SaslInit { mechanism: Symbol("SCRAM-SHA-256"), initial_response, hostname: None };
    let mut bytes = Vec::new();
    SaslPerformative::SaslInit(init).write_frame(&mut bytes);
    if is_challenged {
        let response = SaslResponse { response: first.as_bytes() };
        SaslPerformative::SaslResponse(response).write_frame(&mut bytes);
    }
    client.raw(&bytes);
    let lines = client.lines();
    assert!(lines.contains(&"mechanisms SCRAM-SHA-256 PLAIN ANONYMOUS".to_owned()), "{lines:?}");
    let challenge = lines.last().unwrap().strip_prefix("challenge ").unwrap();
    let (last, signature) = crate::scram::answer_of_client(first, challenge, password);
    let response = SaslResponse { response: last.as_bytes() };
    bytes.clear();
    SaslPerformative::SaslResponse(response).write_frame(&mut bytes);
    client.raw(&bytes);
    (client.lines(), signature)
}

#[test]
fn passwords_are_proven_by_scram() {
    for (password, is_challenged) in [("pencil", false), ("pencil", true), ("pen", false)] {
        let mut client = Client::accepted(Settings::default());
        let verifier = crate::scram::Verifier::of_password("pencil", b"salt", 8).to_string();
        client.host.store_password("guest", &verifier);
        let (lines, signature) = log_in_by_scram(&mut client, password, is_challenged);
        if password == "pencil" {
            assert_eq!(lines, [format!("outcome Ok {signature}")]);
            client.raw(&ProtocolHeader::Amqp.bytes());
            client.send(0, &open());
            client.expect(&["header Amqp", OPENED]);
        } else {
            assert_eq!(lines, ["outcome Auth"]);
            let why = client.host.closed(client.number).unwrap();
            assert_eq!(why, "login refused (SCRAM-SHA-256): wrong proof of 'guest'");
        }
    }
}

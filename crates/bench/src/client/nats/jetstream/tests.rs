//! JetStream answers, acknowledgements and pulls, however the bytes arrive.

use super::Connection;
use super::api::{self, Answer, PublishAcks};
use super::connection::number;
use super::pull_consumer::{PullConsumer, deliveries};
use crate::client::tests::{Kept, answer_to, broker, greet_nats, receive, receive_acknowledging};
use crate::client::{Acks, Error, Link, Route, Session, Source};
use angarium_protocol::nats::codec::Message;
use serde_json::{Value, json};
use std::thread::JoinHandle;

fn answer(headers: &[u8], body: &[u8]) -> Result<Answer, Error> {
    Answer::read(&Message { headers, body, ..Message::default() })
}

fn text(outcome: Result<impl Sized, Error>) -> String {
    outcome.map_or_else(|error| error.to_string(), |_| String::new())
}

#[test]
fn answers_are_read_and_refusals_are_errors_with_their_text() {
    let full = br#"{"type":"x","error":{"code":500,"err_code":10047,"description":"no space"}}"#;
    let gone = br#"{"error":{"code":404,"err_code":10059,"description":"stream not found"}}"#;
    for (headers, body, wanted) in [
        (&b""[..], &br#"{"type":"io.nats.jetstream.api.v1","did_create":true}"#[..], ""),
        (b"", full, "the broker closed it: no space (JetStream's error 500, 10047)"),
        (b"", br#"{"error":{}}"#, "the broker closed it:  (JetStream's error 0, 0)"),
        (b"NATS/1.0 503\r\n\r\n", b"", "the broker closed it: JetStream is not enabled there"),
        (b"NATS/1.0 408 Late\r\n\r\n", b"", "the broker closed it: Late (status 408)"),
        (b"", b"", "the broker sent an invalid answer"),
        (b"", b"[1]", "the broker sent an invalid answer"),
        (b"", b"\xff{}", "the broker sent an invalid answer"),
    ] {
        assert_eq!(text(answer(headers, body).and_then(Answer::done)), wanted);
    }
    assert!(answer(b"", gone).and_then(Answer::deleted).is_ok());
    assert!(answer(b"", gone).and_then(Answer::done).is_err());
    assert!(answer(b"", full).and_then(Answer::deleted).is_err());
    assert!(answer(b"NATS/1.0 503\r\n\r\n", b"").and_then(Answer::deleted).is_ok());
}

#[test]
fn how_a_consumer_is_acknowledged_is_what_its_server_says() {
    for (policy, acks) in [("none", Acks::None), ("explicit", Acks::Each), ("all", Acks::UpTo)] {
        let body = format!("{{\"name\":\"c\",\"config\":{{\"ack_policy\":\"{policy}\"}}}}");
        assert_eq!(answer(b"", body.as_bytes()).and_then(Answer::acks).expect("it is one"), acks);
    }
    for body in ["{}", "{\"config\":{}}", "{\"config\":{\"ack_policy\":\"some\"}}"] {
        assert!(matches!(
            answer(b"", body.as_bytes()).and_then(Answer::acks),
            Err(Error::Invalid(_))
        ));
    }
}

#[test]
fn streams_are_made_for_what_sessions_keep() {
    let session = |fan_out, durable, acks| Session {
        name: "group-0",
        filter: "bench.1.0",
        durable,
        fan_out,
        acks,
    };
    let check = |session: Session<'_>, retention: &str, storage: &str, policy: &str| {
        let read = |body: &str| serde_json::from_str::<Value>(body).expect("it is JSON");
        let (subject, body) = api::create_stream(&session);
        assert_eq!(subject, "$JS.API.STREAM.CREATE.bench-1-0");
        let wanted = json!({
            "name": "bench-1-0", "subjects": ["bench.1.0"], "retention": retention,
            "storage": storage, "num_replicas": 1,
        });
        assert_eq!(read(&body), wanted);
        let (subject, body) = api::create_consumer(&session);
        assert_eq!(subject, "$JS.API.CONSUMER.CREATE.bench-1-0.group-0");
        let config = &read(&body)["config"];
        assert_eq!(
            (&config["durable_name"], &config["ack_policy"]),
            (&json!("group-0"), &json!(policy))
        );
        let pending = (policy != "none").then(|| json!(-1));
        assert_eq!(config.get("max_ack_pending"), pending.as_ref());
    };
    check(session(false, true, Acks::Each), "workqueue", "file", "explicit");
    check(session(true, true, Acks::Each), "interest", "file", "explicit");
    check(session(false, true, Acks::UpTo), "interest", "file", "all");
    check(session(false, false, Acks::None), "interest", "memory", "none");
}

#[test]
fn what_is_said_of_a_published_message_is_read() {
    let refused = "{\"error\":{\"code\":503,\"err_code\":10077,\"description\":\"no room\"},\
                   \"stream\":\"s\",\"seq\":0}";
    let no_room = "the broker closed it: no room (JetStream's error 503, 10077)";
    let invalid = "the broker sent an invalid publish acknowledgement";
    let not_added = "the broker sent an acknowledgement of a message that it did not store";
    for (headers, body, wanted) in [
        ("", "{\"stream\":\"s\",\"seq\":1}", ""),
        ("", "{\"stream\":\"s\",\"seq\":18446744073709551615}", ""),
        ("", "{\"stream\":\"s\", \"seq\": 22, \"domain\":\"d\"}", ""),
        ("", "{\"stream\":\"s\",\"domain\":\"d\",\"seq\":7}", ""),
        ("", "{\"seq\":3}", ""),
        ("", refused, no_room),
        ("NATS/1.0 429 Too Many Requests\r\n\r\n", refused, no_room),
        ("", "{\"stream\":\"s\",\"seq\":3,\"duplicate\":true}", not_added),
        ("", "{\"stream\":\"s\",\"seq\":0}", not_added),
        ("", "{\"stream\":\"s\"}", not_added),
        ("", "{\"stream\":\"s\",\"seq\":}", invalid),
        ("", "{\"stream\":\"s\",\"seq\":-1}", invalid),
        ("", "{\"stream\":\"s\",\"seq\":1}}", invalid),
        ("", "+OK", invalid),
        ("", "", invalid),
        ("NATS/1.0 503\r\n\r\n", "", "the broker closed it: no stream stores this subject"),
    ] {
        let message =
            Message { headers: headers.as_bytes(), body: body.as_bytes(), ..Message::default() };
        // An earlier acknowledgement of the same stream makes no difference.
        let mut seen = PublishAcks::default();
        seen.read(&Message { body: b"{\"stream\":\"s\",\"seq\":41}", ..Message::default() })
            .expect("it is one");
        for mut acks in [PublishAcks::default(), seen] {
            assert_eq!(text(acks.read(&message)), wanted, "{body}");
        }
    }
}

#[test]
fn messages_have_numbers_of_twelve_digits() {
    for (digits, wanted) in [
        ("000000000001", Some(1)),
        ("999999999999", Some(999_999_999_999)),
        ("000000000000", None),
        ("00000000001", None),
        ("0000000000001", None),
        ("00000000000x", None),
        ("", None),
    ] {
        assert_eq!(number(digits.as_bytes()), wanted, "{digits}");
    }
}

#[test]
fn deliveries_are_counted_by_the_subjects_of_their_acknowledgements() {
    for (reply, wanted) in [
        ("$JS.ACK.s.c.1.22.23.1700000000000000000.4", Some((12, 1))),
        ("$JS.ACK.bench-1-0.group-0.12.22.23.1700000000000000000.4", Some((26, 12))),
        ("$JS.ACK.domain.hash.s.c.3.22.23.17.4", Some((24, 3))),
        ("$JS.ACK.domain.hash.s.c.3.22.23.17.4.token", Some((24, 3))),
        ("$JS.ACK.s.c.1.22.23.17", None),
        ("$JS.ACK.s.c.x.22.23.17.4", None),
        ("$JS.ACK.s.c..22.23.17.4", None),
        ("$JS.ACK.a.s.c.1.22.23.17.4", None),
        ("$JS.ACK.", None),
        ("_INBOX.1", None),
        ("", None),
    ] {
        assert_eq!(deliveries(reply.as_bytes()), wanted, "{reply}");
    }
}

/// Takes one-byte messages with these delivery counts.
fn take(it: &mut PullConsumer, kept: &mut Kept, counts: &[u64]) -> Result<(), Error> {
    for count in counts {
        let reply = format!("$JS.ACK.s.c.{count}.9.9.17.0");
        it.take(kept, &Message { reply: reply.as_bytes(), body: b"x", ..Message::default() })?;
    }
    Ok(())
}

fn consumer(acks: Acks, prefetch: u16) -> PullConsumer {
    PullConsumer::new("s", "c", "_INBOX.1".to_owned(), acks, prefetch)
}

fn pulled(it: &mut PullConsumer) -> String {
    let mut out = Vec::new();
    it.pull(&mut out);
    String::from_utf8(out).expect("it is text")
}

fn acknowledged(it: &mut PullConsumer, tag: u64, multiple: bool) -> Vec<String> {
    let mut out = Vec::new();
    it.acknowledge(tag, multiple, &mut out);
    let out = String::from_utf8(out).expect("it is text");
    let replies = out.split("PUB ").skip(1).map(|ack| {
        let (reply, rest) = ack.split_once(' ').expect("it has a subject");
        assert_eq!(rest, "4\r\n+ACK\r\n");
        reply.to_owned()
    });
    replies.collect()
}

#[test]
fn more_is_asked_for_when_half_of_it_has_come_and_never_more_than_may_be_unacknowledged() {
    let batch = |count: u64| {
        let body = format!("{{\"batch\":{count}}}");
        format!("PUB $JS.API.CONSUMER.MSG.NEXT.s.c _INBOX.1 {}\r\n{body}\r\n", body.len())
    };
    let (mut it, mut kept) = (consumer(Acks::Each, 10), Kept::default());
    assert_eq!(pulled(&mut it), batch(10));
    assert_eq!(pulled(&mut it), "", "it was asked for");
    take(&mut it, &mut kept, &[1; 10]).expect("they are messages");
    assert_eq!(pulled(&mut it), "", "all may be unacknowledged that are");
    acknowledged(&mut it, 9, true);
    assert_eq!(pulled(&mut it), batch(9));
    take(&mut it, &mut kept, &[1; 4]).expect("they are messages");
    acknowledged(&mut it, 13, true);
    assert_eq!(pulled(&mut it), "", "there is no room for half");
    take(&mut it, &mut kept, &[1; 5]).expect("they are messages");
    assert_eq!(pulled(&mut it), batch(4), "nothing is on its way");
    it.ending = true;
    acknowledged(&mut it, 19, true);
    assert_eq!(pulled(&mut it), "");
    // No limit, and no message size known yet.
    let mut it = consumer(Acks::None, 0);
    assert_eq!(pulled(&mut it), batch(16));
    take(&mut it, &mut kept, &[1; 16]).expect("they are messages");
    assert_eq!(pulled(&mut it), batch(1_000));
}

#[test]
fn each_delivery_is_acknowledged_or_all_up_to_one_as_the_consumer_wants_it() {
    let mut kept = Kept::default();
    let subject = |count: u64| format!("$JS.ACK.s.c.{count}.9.9.17.0");
    let mut it = consumer(Acks::Each, 100);
    take(&mut it, &mut kept, &[1, 2, 3, 4, 5]).expect("they are messages");
    assert_eq!(acknowledged(&mut it, 1, false), [subject(1)]);
    assert_eq!(acknowledged(&mut it, 3, true), [subject(2), subject(3)]);
    assert_eq!(acknowledged(&mut it, 3, true), [""; 0]);
    assert_eq!(acknowledged(&mut it, 99, true), [subject(4), subject(5)]);
    let mut it = consumer(Acks::UpTo, 100);
    take(&mut it, &mut kept, &[1, 2, 3]).expect("they are messages");
    assert_eq!(acknowledged(&mut it, 2, true), [subject(2)]);
    assert_eq!(acknowledged(&mut it, 3, true), [subject(3)]);
    assert_eq!(kept.tags, [1, 2, 3, 4, 5, 1, 2, 3]);
}

#[test]
fn what_a_request_comes_to_is_noted_and_what_ends_a_consumer_is_an_error() {
    let note = |it: &mut PullConsumer, headers: &str| {
        it.take(&mut (), &Message { headers: headers.as_bytes(), ..Message::default() })
    };
    let mut it = consumer(Acks::Each, 10);
    pulled(&mut it);
    note(&mut it, "NATS/1.0 100 Idle Heartbeat\r\n\r\n").expect("it is alive");
    assert_eq!(pulled(&mut it), "");
    let late = "NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 6\r\n\r\n";
    note(&mut it, late).expect("it may be late");
    assert!(pulled(&mut it).contains("{\"batch\":6}"));
    note(&mut it, "NATS/1.0 404 No Messages\r\n\r\n").expect("there may be none");
    assert!(pulled(&mut it).contains("{\"batch\":10}"));
    for (headers, wanted) in [
        ("NATS/1.0 409 Consumer Deleted\r\n\r\n", "Consumer Deleted (status 409)"),
        ("NATS/1.0 x\r\n\r\n", " (status 0)"),
    ] {
        assert_eq!(text(note(&mut it, headers)), format!("the broker closed it: {wanted}"));
    }
    assert!(matches!(note(&mut it, ""), Err(Error::Invalid(_))));
    let long = format!("$JS.ACK.{}.c.1.2.3.4.5", "s".repeat(2_000));
    let message = Message { reply: long.as_bytes(), ..Message::default() };
    assert!(matches!(it.take(&mut (), &message), Err(Error::Invalid(_))));
}

/// Connects to a server that accepts a subscription and sends this script, with the connection's inbox
/// for `@`. Returns also what that server receives after the handshake.
fn connect(script: &'static str, step: usize) -> (Connection, JoinHandle<String>) {
    let (port, server) = broker(step, move |stream| {
        greet_nats(stream);
        let subscribed = answer_to("PING\r\n", stream, b"PONG\r\n");
        let inbox = subscribed.split(['*', ' ']).find(|word| word.starts_with("_INBOX"));
        script.replace('@', inbox.expect("it listens")).into_bytes()
    });
    let target = format!("jetstream://127.0.0.1:{port}").parse().expect("it is an address");
    (Connection::open(&target).expect("it is accepted"), server)
}

#[test]
fn acknowledgements_of_published_messages_are_confirms() {
    let script = "MSG @000000000001 1 24\r\n{\"stream\":\"s\",\"seq\":101}\r\nPING\r\n\
                  MSG @000000000002 1 24\r\n{\"stream\":\"s\",\"seq\":102}\r\n\
                  HMSG @000000000003 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n";
    for step in [1, 7, 26, 1_000] {
        let (mut connection, server) = connect(script, step);
        connection.select_confirms().expect("it subscribes");
        let mut out = b"before".to_vec();
        let route = Route { exchange: "", key: "a.b", persistent: true };
        let encoded = connection.encode(&route, b"hello", &mut out);
        assert_eq!(&out[encoded.body_at..], b"hello\r\n");
        encoded.write_tag(&mut out, 42);
        let head = String::from_utf8_lossy(&out[..encoded.body_at]).into_owned();
        assert!(head.starts_with("beforePUB a.b _INBOX."), "{head}");
        assert!(head.ends_with(".000000000042 5\r\n"), "{head}");
        let (kept, outcome) = receive(Link::JetStream(connection));
        assert_eq!(kept.confirmed, 2);
        assert!(text(outcome).ends_with("no stream stores this subject"));
        assert!(server.join().expect("it does not panic").contains("PONG\r\n"));
    }
}

#[test]
fn an_acknowledgement_of_nothing_is_invalid() {
    for script in [
        "MSG elsewhere 1 24\r\n{\"stream\":\"s\",\"seq\":101}\r\n",
        "MSG @asked 1 24\r\n{\"stream\":\"s\",\"seq\":101}\r\n",
        "MSG @000000000000 1 24\r\n{\"stream\":\"s\",\"seq\":101}\r\n",
        "MSG @000000000001 1 2\r\nxx\r\n",
    ] {
        let (mut connection, server) = connect(script, 1_000);
        connection.select_confirms().expect("it subscribes");
        assert!(
            matches!(receive(Link::JetStream(connection)).1, Err(Error::Invalid(_))),
            "{script}"
        );
        server.join().expect("it does not panic");
    }
}

#[test]
fn messages_of_a_stream_arrive_whole_and_are_acknowledged_before_the_next_read() {
    let script = "MSG @asked 1 36\r\n{\"config\":{\"ack_policy\":\"explicit\"}}\r\n\
                  MSG a.b 1 $JS.ACK.a-b.g.1.7.1.17.1 2\r\nxy\r\n\
                  MSG a.b 1 $JS.ACK.a-b.g.2.8.2.18.0 1\r\nz\r\n";
    for step in [1, 3, 19, 1_000] {
        let (mut connection, server) = connect(script, step);
        let source = Source { session: Some("g"), ..Source::plain("a.b") };
        connection.subscribe(&source, 5).expect("it is one");
        let kept = receive_acknowledging(Link::JetStream(connection));
        assert_eq!((kept.bodies, kept.tags), (vec![b"xy".to_vec(), b"z".to_vec()], vec![1, 2]));
        let said = server.join().expect("it does not panic");
        assert!(said.starts_with("PUB $JS.API.CONSUMER.INFO.a-b.g _INBOX."), "{said}");
        assert!(said.contains("PUB $JS.API.CONSUMER.MSG.NEXT.a-b.g _INBOX."), "{said}");
        for reply in ["$JS.ACK.a-b.g.1.7.1.17.1", "$JS.ACK.a-b.g.2.8.2.18.0"] {
            assert_eq!(said.matches(&format!("PUB {reply} 4\r\n+ACK\r\n")).count(), 1, "{said}");
        }
    }
}

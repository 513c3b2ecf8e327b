//! Commands and replies, however the bytes arrive, and addresses.

use super::Connection;
use super::codec::{self, Claimed, Id, Item};
use super::group_consumer::GroupConsumer;
use crate::client::target::Login;
use crate::client::tests::{answer_to, broker, receive, receive_acknowledging};
use crate::client::{Error, Link, Route, Source, Target};
use std::thread::JoinHandle;

#[test]
fn commands_are_lists_of_words() {
    let mut out = Vec::new();
    codec::write(&mut out, [&b"XADD"[..], b"a", b"*", b"b", b"\r\n"].into_iter());
    assert_eq!(out, b"*5\r\n$4\r\nXADD\r\n$1\r\na\r\n$1\r\n*\r\n$1\r\nb\r\n$2\r\n\r\n\r\n");
    for (number, wanted) in
        [(0, "$1\r\n0\r\n"), (9, "$1\r\n9\r\n"), (10, "$2\r\n10\r\n"), (1_000, "$4\r\n1000\r\n")]
    {
        let mut out = Vec::new();
        codec::write_number_bulk(&mut out, number);
        assert_eq!(String::from_utf8_lossy(&out), wanted);
    }
}

/// Server input, whether it is within a stream read, and the parsed result.
fn cases() -> Vec<(&'static [u8], bool, &'static str)> {
    vec![
        (b">3\r\n$7\r\nmessage\r\n$3\r\na.b\r\n$5\r\n", false, "Message { size: 5 }"),
        (b">4\r\n$8\r\npmessage\r\n$3\r\na.*\r\n$3\r\na.b\r\n$0\r\n", false, "Message { size: 0 }"),
        (b">3\r\n$9\r\nsubscribe\r\n$3\r\na.b\r\n:1\r\n", false, "Other"),
        (b">3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n", false, "Other"),
        (b"%1\r\n$3\r\na.b\r\n*2\r\n", false, "Entries(2)"),
        (b"_\r\n", false, "Nothing"),
        (b"$15\r\n1700000000000-0\r\n", false, "Added"),
        (b":12\r\n", false, "Number"),
        (b"+PONG\r\n", false, "Pong"),
        (b"+QUEUED\r\n", false, "Other"),
        (b"*2\r\n", false, "Results(2)"),
        (b"~2\r\n:1\r\n*1\r\n#t\r\n", false, "Other"),
        (b"$-1\r\n", false, "WRONG"),
        (b"-OOM command not allowed\r\n", false, "Refused"),
        (b"*2\r\n$15\r\n1700000000000-0\r\n*2\r\n$1\r\nb\r\n$100\r\n", true, "Entry"),
        // Lengths that are wrong or exceed the limits.
        (b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$536870913\r\n", false, "WRONG"),
        (b"$65537\r\n", false, "WRONG"),
        (b"$99999999999999999999999\r\n", false, "WRONG"),
        (b"*1048577\r\n", false, "WRONG"),
        (b"%2\r\n$1\r\na\r\n*1\r\n", false, "WRONG"),
        (b"~1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", false, "WRONG"),
        (
            b"*2\r\n$42\r\n111111111111111111111-11111111111111111111\r\n*2\r\n$1\r\nb\r\n$1\r\n",
            true,
            "WRONG",
        ),
        // A claimed entry that no longer exists.
        (b"_\r\n", true, "Nothing"),
        (b"*2\r\n$3\r\n1-1\r\n*4\r\n", true, "WRONG"),
        (b"$x\r\n", false, "WRONG"),
        (b"$\r\n", false, "WRONG"),
        (b"$1\r\nab\r\n", false, "WRONG"),
        (b"+\rx", false, "WRONG"),
        (b"?", false, "WRONG"),
        (b"$1\r\n", true, "WRONG"),
    ]
}

#[test]
fn every_piece_is_taken_as_a_whole_or_waited_for() {
    for (bytes, in_stream, wanted) in cases() {
        let shown = String::from_utf8_lossy(bytes);
        // What follows is not consumed.
        let mut more = bytes.to_vec();
        more.extend_from_slice(b"rest");
        match (codec::next(&more, in_stream), wanted) {
            (Err(_), "WRONG") => {}
            (Ok(Some((item, octets))), _) => {
                let found = format!("{item:?}");
                assert!(found.starts_with(wanted), "{shown}: {found}");
                assert_eq!(octets, bytes.len(), "{shown}");
                // A part of it yields nothing.
                for cut in 0..bytes.len() {
                    let part = codec::next(&bytes[..cut], in_stream);
                    assert_eq!(part, Ok(None), "{shown} cut at {cut}");
                }
            }
            (other, _) => panic!("{shown}: {other:?}"),
        }
    }
}

#[test]
fn the_answer_to_a_claim_is_told_from_those_before_it() {
    // Where the next claim begins, the number of entries, and whether deleted ones are named.
    let check = |bytes: &[u8], wanted: Option<Option<(&str, usize, bool)>>| {
        let shown = String::from_utf8_lossy(bytes);
        let found = codec::claimed(bytes);
        let Some(wanted) = wanted else { return assert!(found.is_err(), "{shown}: {found:?}") };
        let Ok(Some((claimed, octets))) = found else { panic!("{shown}: {found:?}") };
        let next = claimed.map(|it| String::from_utf8_lossy(it.next.as_bytes()).into_owned());
        let (entries, gone) = claimed.map_or((0, false), |it| (it.entries, it.names_gone));
        let claimed = next.as_deref().map(|next| (next, entries, gone));
        assert_eq!((claimed, octets), (wanted, if wanted.is_some() { bytes.len() } else { 0 }));
        if wanted.is_some() {
            (0..octets).for_each(|cut| assert_eq!(codec::claimed(&bytes[..cut]), Ok(None)));
        }
    };
    check(b"*3\r\n$3\r\n0-0\r\n*2\r\n", Some(Some(("0-0", 2, true))));
    check(b"*2\r\n$5\r\n170-3\r\n*0\r\n", Some(Some(("170-3", 0, false))));
    check(b":3\r\n", Some(None));
    check(b"+OK\r\n", Some(None));
    check(b"*1\r\n:3\r\n", Some(None));
    check(b"*2\r\n:3\r\n", Some(None));
    check(b"*3\r\n$3\r\n0-0\r\n:2\r\n", None);
    check(b"*3\r\n$3\r\n0-0\r\n*1048577\r\n", None);
}

/// The words of the command that a member sends next.
fn asks(member: &mut GroupConsumer) -> String {
    let mut out = Vec::new();
    member.read(&mut out);
    let said = String::from_utf8_lossy(&out).into_owned();
    said.split("\r\n").filter(|word| !word.starts_with(['*', '$'])).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_member_that_finds_nothing_claims_what_lies_with_others() {
    let id = |text: &str| Id::new(text.as_bytes()).expect("it is short");
    let claimed = |next: &str, entries, names_gone| Claimed { next: id(next), entries, names_gone };
    let mut member = GroupConsumer::new("s", "g", false, 3);
    assert!(asks(&mut member).starts_with("XREADGROUP GROUP g "));
    assert_eq!(asks(&mut member), "", "it is not answered");
    member.found_nothing();
    member.answered();
    let said = asks(&mut member);
    assert!(said.starts_with("XAUTOCLAIM s g bench-"), "{said}");
    assert!(said.ends_with(" 1000 0-0 COUNT 3 "), "{said}");
    assert!(member.is_claiming() && !member.awaits_gone());
    // Two entries of others, and more after them.
    member.claims(&claimed("7-1", 2, true));
    assert!(!member.is_claiming() && member.delivered(1, id("5-0"), 9));
    assert!(member.delivered(2, id("7-0"), 9));
    member.answered();
    assert!(member.is_claiming() && member.awaits_gone());
    member.claimed();
    assert!(asks(&mut member).ends_with(" 1000 7-1 COUNT 1 "), "room for one more");
    member.claims(&claimed("0-0", 0, false));
    member.answered();
    let mut out = Vec::new();
    member.acknowledge(2, true, false, &mut out);
    assert!(String::from_utf8_lossy(&out).starts_with("*5\r\n$4\r\nXACK\r\n"));
    // The next entries are its own; nine more empty reads precede the next claim.
    assert!(asks(&mut member).starts_with("XREADGROUP"));
    assert!(!member.delivered(3, id("8-0"), 9));
    member.answered();
    let mut claims = Vec::new();
    for read in 0..21 {
        assert!(asks(&mut member).starts_with("XREADGROUP"));
        member.found_nothing();
        member.answered();
        if member_claims(&mut member).is_some() {
            claims.push(read);
        }
    }
    assert_eq!(claims, [0, 10, 20]);
    // A member that acknowledges nothing claims nothing.
    let mut member = GroupConsumer::new("s", "g", true, 3);
    assert!(asks(&mut member).contains("NOACK"));
    member.found_nothing();
    member.answered();
    assert!(asks(&mut member).starts_with("XREADGROUP"));
    member.end();
    member.answered();
    assert_eq!(asks(&mut member), "", "it has ended");
}

/// Lets a member make an empty claim, if one is due.
fn member_claims(member: &mut GroupConsumer) -> Option<()> {
    member.is_claim_due().then(|| {
        assert!(asks(member).starts_with("XAUTOCLAIM"));
        let next = Id::new(b"0-0").expect("it is short");
        member.claims(&Claimed { next, entries: 0, names_gone: false });
        member.answered();
    })
}

#[test]
fn an_entry_keeps_its_identifier() {
    let bytes = b"*2\r\n$5\r\n170-3\r\n*2\r\n$1\r\nb\r\n$2\r\nxy\r\n";
    let Ok(Some((Item::Entry { id, size }, octets))) = codec::next(bytes, true) else {
        panic!("it is an entry")
    };
    assert_eq!((id.as_bytes(), size, &bytes[octets..]), (&b"170-3"[..], 2, &b"xy\r\n"[..]));
}

#[test]
fn answers_have_their_text() {
    let check = |bytes: &[u8], wanted: (u8, &str)| {
        let Ok(Some(((kind, text), octets))) = codec::answer(bytes) else { panic!("{wanted:?}") };
        assert_eq!((kind, String::from_utf8_lossy(text).as_ref()), wanted);
        assert_eq!(octets, bytes.len());
        (0..octets).for_each(|cut| assert!(matches!(codec::answer(&bytes[..cut]), Ok(None))));
    };
    check(b"+OK\r\n", (b'+', "OK"));
    check(b"-ERR no\r\n", (b'-', "ERR no"));
    check(b"$2\r\nab\r\n", (b'$', "ab"));
    check(b"=6\r\ntxt:ab\r\n", (b'=', "ab"));
    check(b"%1\r\n$1\r\na\r\n*2\r\n:1\r\n#t\r\n", (b'%', ""));
    check(b"_\r\n", (b'_', ""));
}

#[test]
fn what_never_ends_is_refused_before_it_fills_the_memory() {
    let mut long = b"+".to_vec();
    long.resize(20_000, b'x');
    assert!(codec::next(&long, false).is_err());
    let mut many = b"~1000000\r\n".to_vec();
    many.extend(b":1\r\n".repeat(20_000));
    assert!(codec::next(&many, false).is_err());
    assert!(codec::answer(&many).is_err());
}

#[test]
fn addresses_are_read_with_their_defaults() {
    let login = |user: &str, password: &str| {
        Some(Login { user: user.to_owned(), password: Some(password.to_owned()) })
    };
    let check = |text: &str, login: Option<Login>, port: u16| {
        let target: Target = text.parse().expect("it is an address");
        assert_eq!((&target.login, target.port()), (&login, port));
        assert_eq!(target.to_string(), format!("redis://h:{port}"));
    };
    check("redis://h", None, 6_379);
    check("redis://:p%40@h:1/", login("", "p@"), 1);
    check("redis://u:p@h", login("u", "p"), 6_379);
    for wrong in ["redis://h/path", "redis://", "redis://h:port"] {
        assert!(wrong.parse::<Target>().is_err(), "{wrong}");
    }
}

/// Connects to a server that answers HELLO and sends this script. Returns also what that server receives
/// after the handshake.
fn connect(script: &'static [u8], step: usize) -> (Connection, JoinHandle<String>) {
    let (port, server) = broker(step, move |stream| {
        answer_to("3\r\n", stream, b"%1\r\n$5\r\nproto\r\n:3\r\n");
        answer_to("PING\r\n", stream, b"+PONG\r\n");
        script.to_vec()
    });
    let target = format!("redis://127.0.0.1:{port}").parse().expect("it is an address");
    (Connection::open(&target).expect("it is accepted"), server)
}

#[test]
fn messages_of_channels_arrive_whole_however_the_bytes_come() {
    let script = b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n\
                   >3\r\n$7\r\nmessage\r\n$1\r\na\r\n$5\r\nhello\r\n:1\r\n\
                   >3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\n\r\n\r\n\
                   >3\r\n$7\r\nmessage\r\n$1\r\na\r\n$0\r\n\r\n+PONG\r\n";
    for step in 1..script.len() {
        let (connection, server) = connect(script, step);
        let (kept, outcome) = receive(Link::Resp(connection));
        assert!(outcome.is_ok(), "{step}: {outcome:?}");
        assert_eq!(kept.bodies, [&b"hello"[..], b"\r\n", b""], "{step}");
        assert_eq!((kept.complete, kept.ends), (3, 1), "{step}");
        server.join().expect("it does not panic");
    }
}

#[test]
fn entries_of_streams_arrive_whole_and_are_acknowledged_before_the_next_read() {
    let script = b"%1\r\n$1\r\ns\r\n*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nb\r\n$2\r\nxy\r\n\
                   *2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nb\r\n$1\r\nz\r\n_\r\n";
    for step in [1, 2, 3, 7, 19, script.len()] {
        let (mut connection, server) = connect(script, step);
        let source = Source { session: Some("g"), auto_ack: false, ..Source::plain("s") };
        connection.subscribe(&source, 7).expect("it asks nothing yet");
        connection.fill().expect("it asks");
        let kept = receive_acknowledging(Link::Resp(connection));
        assert_eq!((kept.bodies, kept.tags), (vec![b"xy".to_vec(), b"z".to_vec()], vec![1, 2]));
        let said = server.join().expect("it does not panic");
        // One read, and another after each reply unless both replies arrive at once; after the empty
        // one, a claim.
        let [reads, claims] = ["XREADGROUP", "XAUTOCLAIM"].map(|word| said.matches(word).count());
        assert!((1..=2).contains(&reads) && claims == 1, "{said}");
        for id in ["1-0", "1-1"] {
            assert_eq!(said.matches(&format!("$3\r\n{id}\r\n")).count(), 1, "{said}");
        }
        assert!(said.starts_with("*11\r\n$10\r\nXREADGROUP\r\n"), "{said}");
        assert!(said.contains("$5\r\nCOUNT\r\n$1\r\n7\r\n"), "{said}");
    }
}

#[test]
fn a_read_asks_for_no_more_than_the_last_bodies_make_room_for() {
    let script = b"%1\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nb\r\n$2\r\nxy\r\n";
    let (mut connection, server) = connect(script, script.len());
    let source = Source { session: Some("g"), ..Source::plain("s") };
    connection.subscribe(&source, 0).expect("it asks nothing yet");
    connection.fill().expect("it asks");
    let (kept, outcome) = receive(Link::Resp(connection));
    assert!(outcome.is_ok() && kept.complete == 1);
    let said = server.join().expect("it does not panic");
    let counts: Vec<&str> = said.split("COUNT\r\n").skip(1).collect();
    assert!(counts[0].starts_with("$2\r\n16\r\n$5\r\nNOACK\r\n"), "{said}");
    assert!(counts[1].starts_with("$4\r\n1000\r\n"), "{said}");
}

#[test]
fn answers_to_additions_are_confirms_in_order() {
    let script = b"$3\r\n1-0\r\n$3\r\n1-1\r\n$3\r\n2-0\r\n-OOM command not allowed\r\n";
    let (connection, server) = connect(script, 5);
    let (kept, outcome) = receive(Link::Resp(connection));
    assert_eq!(kept.confirmed, 3);
    let error = outcome.expect_err("it was refused").to_string();
    assert_eq!(error, "the broker closed it: OOM command not allowed");
    server.join().expect("it does not panic");
}

#[test]
fn a_transaction_is_committed_when_the_last_of_its_results_came() {
    let script = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n\
                   *2\r\n$3\r\n1-0\r\n$3\r\n1-1\r\n+OK\r\n*0\r\n+OK\r\n+QUEUED\r\n\
                   *1\r\n-OOM no\r\n";
    for step in [1, 9, 31, script.len()] {
        let (connection, server) = connect(script, step);
        let (kept, outcome) = receive(Link::Resp(connection));
        assert_eq!((kept.commits, kept.confirmed, kept.ends), (2, 0, 0));
        assert!(outcome.is_err_and(|error| error.to_string().ends_with("OOM no")));
        server.join().expect("it does not panic");
    }
}

#[test]
fn a_body_without_its_end_is_invalid() {
    let script = b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nabc+PONG\r\n";
    let (connection, server) = connect(script, 100);
    assert!(matches!(receive(Link::Resp(connection)).1, Err(Error::Invalid(_))));
    server.join().expect("it does not panic");
}

#[test]
fn what_is_kept_is_added_to_a_stream_and_the_rest_goes_to_a_channel() {
    let (mut connection, server) = connect(b"", 1);
    let encoded = |connection: &Connection, persistent| {
        let mut out = b"before".to_vec();
        let route = Route { exchange: "", key: "a.b", persistent };
        let body_at = connection.encode(&route, b"hello", &mut out).body_at;
        assert_eq!(&out[body_at..body_at + 5], b"hello");
        String::from_utf8_lossy(&out).into_owned()
    };
    let published = "before*3\r\n$7\r\nPUBLISH\r\n$3\r\na.b\r\n$5\r\nhello\r\n";
    let added = "before*5\r\n$4\r\nXADD\r\n$3\r\na.b\r\n$1\r\n*\r\n$1\r\nb\r\n$5\r\nhello\r\n";
    assert_eq!(encoded(&connection, false), published);
    assert_eq!(encoded(&connection, true), added);
    connection.select_confirms().expect("it asks nothing");
    assert_eq!(encoded(&connection, false), added);
    drop(connection);
    server.join().expect("it does not panic");
}

#[test]
fn a_fake_broker_says_what_a_client_takes() {
    let fake_broker = super::fake_broker();
    for answer in &fake_broker.answers {
        let Ok(Some((_, octets))) = codec::answer(&answer.reply) else { panic!("{answer:?}") };
        assert_eq!(octets, answer.reply.len());
    }
    assert!(matches!(codec::next(&fake_broker.answers[1].reply, false), Ok(Some((Item::Pong, _)))));
    let mut out = vec![7];
    let body_at = fake_broker.deliver("a.b", b"hello", &mut out).body_at;
    let found = codec::next(&out[1..], false);
    assert_eq!(found, Ok(Some((Item::Message { size: 5 }, body_at - 1))));
    assert_eq!(&out[body_at..], b"hello\r\n");
}

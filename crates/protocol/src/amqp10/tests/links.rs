//! Links: attach and detach, credit, drain, windows, refusals.

use super::client::{
    Client, begin, closing, credit, data, open, receiver, sender, settled, transfer,
};
use crate::amqp10::Settings;
use crate::amqp10::codec::{
    ACCEPTED, Attach, Detach, DistributionMode, End, Flow, Open, RELEASED, SenderSettleMode,
    Source, Symbol, Symbols, TerminusDurability, Transfer,
};

const CREDIT: &str = "0 flow window=4096 handle=0 count=0 credit=1000";

/// A client with a sender, handle 0, to queue `q`, into which it has put these.
fn with_messages(client: &mut Client, bodies: &[&str]) {
    client.send(0, &sender(0, "q"));
    for (id, body) in (0..).zip(bodies) {
        let message = data(body);
        let mut parts = message.chunks(100_000).peekable();
        while let Some(part) = parts.next() {
            let more = parts.peek().is_some();
            client.send_with(0, &Transfer { more, ..transfer(0, id) }, part);
        }
    }
    client.lines();
}

#[test]
fn messages_come_as_far_as_there_is_credit() {
    let mut client = Client::open();
    with_messages(&mut client, &["a", "b", "c", "d"]);
    client.send(0, &receiver(1, "q"));
    client.expect(&["0 attach 1 sender r q -> -"]);
    client.send(0, &credit(1, 0, 2));
    client.expect(&["0 transfer 1 id=0 \"a\"", "0 transfer 1 id=1 \"b\""]);
    // The credit counts from what the peer has seen; less is obeyed.
    client.send(0, &credit(1, 1, 1));
    client.expect(&[]);
    client.send(0, &credit(1, 2, 1));
    client.expect(&["0 transfer 1 id=2 \"c\""]);
    client.send(0, &settled(0, 2, ACCEPTED));
    client.send(0, &closing(1));
    client.expect(&["0 detach 1 closed"]);
}

#[test]
fn credit_may_come_before_the_attach_is_answered() {
    let mut client = Client::open();
    with_messages(&mut client, &["a"]);
    let mut bytes = super::client::frame(0, &receiver(1, "q"), &[]);
    bytes.extend(super::client::frame(0, &credit(1, 0, 1), &[]));
    client.raw(&bytes);
    client.expect(&["0 attach 1 sender r q -> -", "0 transfer 1 id=0 \"a\""]);
}

#[test]
fn drain_gives_up_what_credit_is_left() {
    let mut client = Client::open();
    with_messages(&mut client, &["a"]);
    client.send(0, &receiver(1, "q"));
    client.lines();
    client.send(0, &Flow { drain: true, ..credit(1, 0, 5) });
    client
        .expect(&["0 transfer 1 id=0 \"a\"", "0 flow window=4095 handle=1 count=5 credit=0 drain"]);
    client.send_with(0, &transfer(0, 1), &data("b"));
    client.expect(&["0 disposition receiver 1 settled accepted"]);
    client.send(0, &credit(1, 5, 1));
    client.expect(&["0 transfer 1 id=1 \"b\""]);
}

#[test]
fn echo_tells_the_state_of_a_link() {
    let mut client = Client::open();
    with_messages(&mut client, &["a"]);
    client.send(0, &receiver(1, "q"));
    client.send(0, &Flow { echo: true, ..credit(1, 0, 5) });
    let lines = client.lines();
    assert!(lines.iter().any(|line| line.contains("handle=1")), "{lines:#?}");
}

#[test]
fn what_a_closed_link_held_goes_back_uncounted() {
    let mut client = Client::open();
    with_messages(&mut client, &["a", "b"]);
    client.send(0, &receiver(1, "q"));
    client.send(0, &credit(1, 0, 2));
    client.send(0, &settled(1, 1, RELEASED));
    client.send(0, &closing(1));
    client.lines();
    client.send(0, &receiver(1, "q"));
    client.send(0, &credit(1, 0, 2));
    let lines = client.lines();
    let transfers: Vec<_> = lines.iter().filter(|line| line.contains("transfer")).collect();
    assert_eq!(transfers, ["0 transfer 1 id=2 \"a\"", "0 transfer 1 id=3 \"b\""]);
}

#[test]
fn a_lost_connection_counts() {
    let mut client = Client::open();
    with_messages(&mut client, &["a"]);
    client.send(0, &receiver(1, "q"));
    client.send(0, &credit(1, 0, 1));
    client.lines();
    client.host.cut(client.number);
    client.another("guest");
    client.send(0, &receiver(0, "q"));
    client.send(0, &credit(0, 0, 1));
    client.expect(&["0 attach 0 sender r q -> -", "0 transfer 0 id=0 count=1 \"a\""]);
}

#[test]
fn an_ended_session_gives_back_in_order() {
    let mut client = Client::open();
    with_messages(&mut client, &["a", "b"]);
    client.send(0, &receiver(1, "q"));
    client.send(0, &credit(1, 0, 2));
    client.send(0, &End::default());
    client.lines();
    client.send(0, &super::client::begin(10));
    client.send(0, &receiver(0, "q"));
    client.send(0, &credit(0, 0, 2));
    let lines = client.lines();
    assert_eq!(lines[2..], ["0 transfer 0 id=0 \"a\"", "0 transfer 0 id=1 \"b\""], "{lines:#?}");
}

#[test]
fn browsing_takes_nothing() {
    let mut client = Client::open();
    with_messages(&mut client, &["a", "b"]);
    let source = Source {
        address: Some("q"),
        distribution_mode: Some(DistributionMode::Copy),
        ..Source::default()
    };
    let browser = Attach {
        source: Some(source),
        snd_settle_mode: SenderSettleMode::Settled,
        ..receiver(1, "q")
    };
    client.send(0, &browser);
    client.lines();
    client.send(0, &Flow { drain: true, ..credit(1, 0, 10) });
    client.expect(&[
        "0 transfer 1 id=0 settled \"a\"",
        "0 transfer 1 id=1 settled \"b\"",
        "0 flow window=4094 handle=1 count=10 credit=0 drain",
    ]);
    client.send(0, &closing(1));
    client.send(0, &Attach { name: "t", ..receiver(2, "q") });
    client.send(0, &credit(2, 0, 10));
    let lines = client.lines();
    assert_eq!(lines.iter().filter(|line| line.contains("transfer 2")).count(), 2, "{lines:#?}");
}

#[test]
fn what_names_nothing_is_detached_and_the_session_goes_on() {
    let mut client = Client::open();
    client.send(0, &sender(0, "/exchanges/none"));
    client.expect(&[
        "0 attach 0 receiver s - -> null",
        "0 detach 0 closed amqp:not-found: no exchange 'none' in vhost '/'",
    ]);
    client.send(0, &closing(0));
    client.send(0, &receiver(0, "/queues/%4"));
    client.expect(&[
        "0 attach 0 sender r null -> -",
        "0 detach 0 closed amqp:invalid-field: '%4' has a % without two hexadecimal digits",
    ]);
    client.send(0, &closing(0));
    client.send(0, &sender(0, "q"));
    client.expect(&["0 attach 0 receiver s - -> q", CREDIT]);
}

#[test]
fn who_may_not_is_told_at_the_attach() {
    let mut client = Client::open();
    client.another("reader");
    client.send(0, &sender(0, "amq.topic"));
    let lines = client.lines();
    assert!(lines[1].contains("amqp:unauthorized-access"), "{lines:#?}");
}

#[test]
fn a_queue_that_is_deleted_detaches_its_links() {
    let mut client = Client::open();
    with_messages(&mut client, &["a"]);
    client.send(0, &receiver(1, "q"));
    client.lines();
    client.host.delete_queue("q");
    client.expect(&["0 detach 1 closed amqp:resource-deleted: the queue was deleted"]);
    client.send(0, &closing(1));
    client.expect(&[]);
    client.send(0, &receiver(1, "q"));
    client.expect(&["0 attach 1 sender r q -> -"]);
}

#[test]
fn a_link_attached_anew_is_taken_from_the_old_one() {
    let mut client = Client::open();
    client.send(0, &receiver(1, "q"));
    client.send(1, &super::client::begin(10));
    client.lines();
    // Within a session both stay.
    client.send(0, &receiver(2, "q"));
    client.expect(&["0 attach 2 sender r q -> -"]);
    client.send(0, &closing(2));
    client.lines();
    client.send(1, &receiver(5, "q"));
    client.expect(&[
        "0 detach 1 closed amqp:link:stolen: the link was attached anew",
        "1 attach 5 sender r q -> -",
    ]);
}

#[test]
fn deliveries_wait_for_the_window_and_are_cut_into_frames() {
    let mut client = Client::open_with(Settings::default(), 2);
    let long = "x".repeat(300_000);
    with_messages(&mut client, &[&long, "b"]);
    client.send(0, &receiver(1, "q"));
    client.lines();
    client.send(0, &Flow { incoming_window: 2, ..credit(1, 0, 10) });
    client.expect(&["0 transfer 1 id=0 more 131038 octets", "0 transfer 1 more 131051 octets"]);
    let flow =
        Flow { next_incoming_id: Some(2), incoming_window: 1, handle: None, ..credit(1, 0, 10) };
    let flow = Flow { delivery_count: None, link_credit: None, ..flow };
    client.send(0, &flow);
    client.expect(&["0 transfer 1 37930 octets"]);
    client.send(0, &Flow { next_incoming_id: Some(3), ..flow });
    client.expect(&["0 transfer 1 id=1 \"b\""]);
}

#[test]
fn links_of_one_session_take_turns() {
    let mut client = Client::open_with(Settings::default(), 1);
    let long = "x".repeat(300_000);
    with_messages(&mut client, &[&long]);
    client.send(0, &Attach { name: "other", ..sender(1, "p") });
    client.send_with(0, &transfer(1, 9), &data("b"));
    client.send(0, &receiver(2, "q"));
    client.send(0, &Attach { name: "rp", ..receiver(3, "p") });
    client.send(0, &Flow { incoming_window: 1, ..credit(2, 0, 10) });
    client.send(0, &Flow { incoming_window: 1, ..credit(3, 0, 10) });
    client.lines();
    let flow =
        Flow { next_incoming_id: Some(1), incoming_window: 10, handle: None, ..credit(1, 0, 10) };
    client.send(0, &Flow { delivery_count: None, link_credit: None, ..flow });
    client.expect(&[
        "0 transfer 2 more 131051 octets",
        "0 transfer 3 id=1 \"b\"",
        "0 transfer 2 37930 octets",
    ]);
}

#[test]
fn what_is_dropped_before_it_began_leaves_no_gap() {
    let mut client = Client::open_with(Settings::default(), 0);
    with_messages(&mut client, &["a", "b"]);
    client.send(0, &receiver(1, "q"));
    client.send(0, &Flow { incoming_window: 0, ..credit(1, 0, 10) });
    client.send(0, &closing(1));
    client.send(0, &Attach { name: "t", ..receiver(2, "q") });
    client.lines();
    client.send(0, &credit(2, 0, 10));
    client.expect(&["0 transfer 2 id=0 \"a\"", "0 transfer 2 id=1 \"b\""]);
    client.send(0, &settled(0, 1, ACCEPTED));
    client.send(0, &closing(2));
    client.lines();
    client.send(0, &Attach { name: "u", ..receiver(3, "q") });
    client.send(0, &Flow { drain: true, ..credit(3, 0, 1) });
    client.expect(&[
        "0 attach 3 sender u q -> -",
        "0 flow window=4094 handle=3 count=1 credit=0 drain",
    ]);
}

/// Another connection to the same host, with a session; returns the number of the one before.
fn again(client: &mut Client, container_id: &str) -> usize {
    let before = client.number;
    client.again(&Open { container_id, ..open() });
    client.send(0, &begin(1000));
    client.lines();
    before
}

/// What the connection of that number got.
fn lines_of(client: &mut Client, number: usize) -> Vec<String> {
    let at_hand = std::mem::replace(&mut client.number, number);
    let lines = client.lines();
    client.number = at_hand;
    lines
}

const STOLEN: &str = "amqp:link:stolen: the link was attached anew by another connection";

#[test]
fn a_link_goes_to_the_connection_that_attaches_it_last() {
    let mut client = Client::open();
    with_messages(&mut client, &["a", "b"]);
    client.send(0, &receiver(1, "q"));
    client.send(0, &credit(1, 0, 1));
    client.expect(&["0 attach 1 sender r q -> -", "0 transfer 1 id=0 \"a\""]);
    let first = again(&mut client, "tester");
    client.send(0, &receiver(0, "q"));
    client.send(0, &credit(0, 0, 2));
    assert_eq!(lines_of(&mut client, first), [format!("0 detach 1 closed {STOLEN}")]);
    // What the old one had counts as failed, as if its connection were lost.
    client.expect(&[
        "0 attach 0 sender r q -> -",
        "0 transfer 0 id=0 count=1 \"a\"",
        "0 transfer 0 id=1 \"b\"",
    ]);
    // Links to the broker are found by their names too; what still comes by the old one is dropped.
    client.send(0, &sender(1, "q"));
    client.lines();
    assert_eq!(lines_of(&mut client, first), [format!("0 detach 0 closed {STOLEN}")]);
    let second = std::mem::replace(&mut client.number, first);
    client.send_with(0, &transfer(0, 2), &data("late"));
    client.expect(&[]);
    // Its answers free the handles.
    client.send(0, &closing(0));
    client.send(0, &closing(1));
    client.send(0, &receiver(0, "other"));
    client.expect(&["0 attach 0 sender r other -> -"]);
    assert_eq!(lines_of(&mut client, second), [format!("0 detach 0 closed {STOLEN}")]);
}

#[test]
fn links_of_other_clients_and_names_that_libraries_make_up_are_not_taken() {
    let mut client = Client::open();
    client.send(0, &receiver(0, "q"));
    client.send(0, &Attach { name: "tester-q", ..receiver(1, "q") });
    client.lines();
    let first = again(&mut client, "tester");
    client.send(0, &Attach { name: "tester-q", ..receiver(0, "q") });
    again(&mut client, "another");
    client.send(0, &receiver(0, "q"));
    let third = again(&mut client, "");
    client.send(0, &receiver(0, "q"));
    again(&mut client, "");
    client.send(0, &receiver(0, "q"));
    for number in [first, third] {
        let lines = lines_of(&mut client, number);
        assert!(lines.iter().all(|line| !line.contains("detach")), "{lines:#?}");
    }
}

/// The attach frame of a durable subscription to topic `t`.
fn durable(handle: u32) -> Attach<'static> {
    let source = Source {
        address: Some("topic://t"),
        durable: TerminusDurability::UnsettledState,
        ..Source::default()
    };
    Attach { name: "sub", source: Some(source), ..receiver(handle, "") }
}

#[test]
fn a_durable_subscription_is_taken_over_from_a_connection_that_is_not_known_to_be_lost() {
    let mut client = Client::open();
    client.send(0, &sender(0, "topic://t"));
    client.send(0, &durable(1));
    client.lines();
    client.send_with(0, &transfer(0, 0), &data("a"));
    client.lines();
    let first = again(&mut client, "tester");
    client.send(0, &durable(0));
    client.send(0, &credit(0, 0, 5));
    client.expect(&["0 attach 0 sender sub topic://t -> -", "0 transfer 0 id=0 \"a\""]);
    assert_eq!(lines_of(&mut client, first), [format!("0 detach 1 closed {STOLEN}")]);
    // Within a connection it is in use.
    client.send(0, &Attach { handle: 1, ..durable(1) });
    let lines = client.lines();
    assert!(lines.iter().any(|line| line.contains("amqp:resource-locked")), "{lines:#?}");
}

/// A sender's attach frame to this address.
fn sends_to(address: &str) -> Attach<'_> {
    sender(0, address)
}

#[test]
fn of_two_connections_that_attach_a_link_at_one_moment_one_keeps_it() {
    let queue = receiver(0, "q");
    let missing = receiver(0, "made by the first");
    let attaches = [
        queue,
        missing,
        durable(0),
        Attach { source: None, ..durable(0) },
        sends_to("q"),
        sends_to("made by the first"),
        sends_to("/exchanges/amq.fanout"),
        sends_to("topic://t"),
    ];
    for attach in attaches {
        let mut client = Client::open();
        client.send(0, &receiver(1, "q"));
        client.send(0, &closing(1));
        if attach.source.is_none() {
            client.send(0, &durable(1));
            client.send(0, &Detach { handle: 1, closed: false, error: None });
        }
        client.lines();
        let first = again(&mut client, "tester");
        // Neither is answered before both are taken.
        let frame = super::client::frame(0, &attach, &[]);
        client.host.receive(first, &frame);
        client.host.receive(client.number, &frame);
        client.host.turn_ends();
        let lost = lines_of(&mut client, first);
        let kept = client.lines();
        assert!(kept[0].starts_with("0 attach 0"), "{kept:#?}");
        assert!(!kept[0].contains("null"), "{kept:#?}");
        assert!(kept.iter().all(|line| !line.contains("detach")), "{attach:?}: {kept:#?}");
        let end = format!("0 detach 0 closed {STOLEN}");
        assert_eq!(lost.last(), Some(&end), "{attach:?}: {lost:#?}");
        assert_eq!(lost.iter().filter(|line| line.contains("detach")).count(), 1, "{lost:#?}");
        // Its answer frees the handle, and a link of another name is as good as any.
        let second = std::mem::replace(&mut client.number, first);
        client.send(0, &closing(0));
        client.send(0, &Attach { name: "another", ..receiver(0, "q") });
        client.expect(&["0 attach 0 sender another q -> -"]);
        assert!(lines_of(&mut client, second).is_empty());
        // The link serves the one that has it.
        client.number = second;
        match attach.role {
            crate::amqp10::codec::Role::Sender => {
                client.send_with(0, &transfer(0, 0), &data("a"));
                let lines = client.lines();
                assert!(lines.iter().any(|line| line.contains("disposition")), "{lines:#?}");
            }
            crate::amqp10::codec::Role::Receiver => {
                client.send(0, &Flow { drain: true, ..credit(0, 0, 1) });
                client.expect(&["0 flow window=4096 handle=0 count=1 credit=0 drain"]);
            }
        }
        client.send(0, &closing(0));
        client.expect(&["0 detach 0 closed"]);
    }
}

#[test]
fn of_two_sessions_that_attach_a_link_at_one_moment_one_keeps_it() {
    let mut client = Client::open();
    client.send(1, &begin(10));
    client.lines();
    let mut both = super::client::frame(0, &receiver(0, "q"), &[]);
    both.extend(super::client::frame(1, &receiver(0, "q"), &[]));
    client.raw(&both);
    client.expect(&[
        "0 attach 0 sender r null -> -",
        "0 detach 0 closed amqp:link:stolen: the link was attached anew",
        "1 attach 0 sender r q -> -",
    ]);
}

#[test]
fn a_durable_subscription_is_consumed_from_by_its_links_name_alone() {
    let mut client = Client::open();
    client.send(0, &sender(0, "topic://t"));
    client.send(0, &durable(1));
    client.send(0, &Detach { handle: 1, closed: false, error: None });
    client.send_with(0, &transfer(0, 0), &data("a"));
    client.lines();
    let found = Attach { source: None, ..durable(1) };
    client.send(0, &found);
    client.expect(&["0 attach 1 sender sub t -> -"]);
    client.send(0, &credit(1, 0, 5));
    client.expect(&["0 transfer 1 id=0 \"a\""]);
    client.send(0, &settled(0, 0, ACCEPTED));
    // Another link that asks for it sees it, and may not take part.
    client.send(0, &Attach { handle: 2, ..found });
    client.expect(&["0 attach 2 sender sub t -> -"]);
    client.send(0, &credit(2, 0, 5));
    let lines = client.lines();
    let why = "amqp:resource-locked: subscription 'sub' of client 'tester' is in use";
    assert!(lines.iter().any(|line| line.contains(why)), "{lines:#?}");
    client.send(0, &closing(1));
    client.expect(&["0 detach 1 closed"]);
    client.send(0, &found);
    let lines = client.lines();
    assert!(lines.iter().any(|line| line.contains("amqp:not-found")), "{lines:#?}");
}

#[test]
fn the_source_of_a_subscription_that_is_found_by_its_name_leads_to_the_same_again() {
    for (asked, answered) in [
        ("topic://t", "t"),
        ("topic://a::b", "topic://a::b"),
        ("/topics/t", "t"),
        ("/exchanges/amq.fanout/a%2Fb", "/exchanges/amq.fanout/a%2Fb"),
        ("/exchanges/amq.direct", "/exchanges/amq.direct/"),
    ] {
        let source =
            |address| Source { address: Some(address), ..durable(0).source.unwrap_or_default() };
        let mut client = Client::open();
        client.send(0, &Attach { source: Some(source(asked)), ..durable(0) });
        client.send(0, &Detach { handle: 0, closed: false, error: None });
        client.lines();
        client.send(0, &Attach { source: None, ..durable(0) });
        client.expect(&[&format!("0 attach 0 sender sub {answered} -> -")]);
        client.send(0, &Detach { handle: 0, closed: false, error: None });
        client.lines();
        // Asked for by the answer, it is the same one, and nothing of it is lost.
        let capabilities = &[Symbol("topic")][usize::from(answered.starts_with("/exchanges"))..];
        let found = Source { capabilities: Symbols::new(capabilities), ..source(answered) };
        client.send(0, &Attach { source: Some(found), ..durable(0) });
        client.expect(&[&format!("0 attach 0 sender sub {answered} -> -")]);
    }
}

#[test]
fn an_attach_that_is_beyond_a_limit_says_beyond_which() {
    let long = "n".repeat(1025);
    let deep = format!("{}1 = 1{}", "(".repeat(200), ")".repeat(200));
    let nested = "NOT ".repeat(200) + "x";
    let name = "the link's name of 1025 octets is longer than 1024";
    let depth = "parentheses, signs and NOT are more than";
    let levels = (1025, "1 = 1", name);
    for (octets, text, why) in [levels, (1, &deep, depth), (1, &nested, depth)] {
        let filter = super::nodes::selector(text);
        let filter = Some(filter.as_map());
        let source = Source { address: Some("q"), filter, ..Source::default() };
        let mut client = Client::open();
        client.send(0, &Attach { name: &long[..octets], source: Some(source), ..receiver(0, "q") });
        let lines = client.lines();
        assert!(lines[1].contains(why), "{lines:#?}");
        // The session goes on.
        client.send(0, &closing(0));
        client.send(0, &receiver(0, "q"));
        client.expect(&["0 attach 0 sender r q -> -"]);
    }
}

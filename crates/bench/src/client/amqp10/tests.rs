//! Messages to and from bytes, credit, transactions, and what a broker refuses.

use super::input::{Input, Part, general_transfer, quick_body, quick_transfer};
use super::message::{self, Sending, begins_message};
use super::session::{End, Session, WINDOW_MAX};
use super::terminus::{address, filter, split_label};
use super::transaction::{Accepted, Transactions};
use crate::client::tests::Kept;
use crate::client::{Error, Labels, Link, Receiver, Route, Target};
use angarium_protocol::amqp10::codec::{
    self, Begin, Condition, CoordinatorRequest, Declared, DeliveryState, DeliveryTag, Descriptor,
    Detach, Disposition, Field, Flow, Header, Limits, Performative, Role, SectionKind, Sections,
    Transfer, Value, put_section,
};
use angarium_protocol::amqp10::frame::{self, Frame};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::Duration;

const LIMITS: Limits = Limits { properties_bytes_max: 4_096 };
const SENDING: Sending<'_> =
    Sending { channel: 1, settled: true, transaction: &[], frame_bytes_max: 512 };

/// Splits bytes into frames; they must hold nothing but whole ones.
fn frames(mut bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (frame, used) = frame::read(bytes, u32::MAX).expect("well-formed").expect("whole");
        frames.push(frame);
        bytes = &bytes[used..];
    }
    frames
}

fn performative(frame: &Frame<'_>) -> String {
    format!("{:?}", Performative::decode_body(frame.body).expect("well-formed").0)
}

/// A connection's input with a session that the broker has begun on its channel 5.
fn input(session: Session) -> Input {
    let mut input = Input::default();
    input.sessions = vec![None, Some(session)];
    let begin = Begin { remote_channel: Some(1), incoming_window: WINDOW_MAX, ..Begin::default() };
    input.answer(5, &Performative::Begin(begin)).expect("it was asked for");
    input
}

fn take(input: &mut Input, bytes: &[u8]) -> Result<Kept, Error> {
    let mut kept = Kept::default();
    for frame in frames(bytes) {
        input.frame(&Frame { channel: 5, ..frame }, &mut kept)?;
    }
    Ok(kept)
}

#[test]
fn a_message_is_one_frame_or_several_with_its_numbers_where_they_are_said_to_be() {
    for (size, count) in [(0, 1), (1, 1), (440, 1), (500, 2), (2_000, 5)] {
        for transaction in [&b""[..], b"ttttttttt"] {
            let body = vec![b'p'; size];
            let mut out = Vec::new();
            let sending = Sending { settled: false, transaction, ..SENDING };
            let sections = message::sections(true, "", &body);
            let encoded = message::write(&mut out, sending, &sections, size);
            encoded.write_tag(&mut out, 77);
            assert!(encoded.write_transaction(&mut out, &vec![b'u'; transaction.len()]));
            assert!(out[encoded.body_at..].starts_with(&body[..size.min(24)]));
            let mut message = Vec::new();
            let frames = frames(&out);
            assert_eq!(frames.len(), count, "{size}");
            for (index, frame) in frames.iter().enumerate() {
                let (transfer, part) = codec::decode_body::<Transfer<'_>>(frame.body).expect("one");
                message.extend_from_slice(part);
                assert!(frame.body.len() + frame::HEAD_BYTES <= 512 && frame.channel == 1);
                assert_eq!(transfer.more, index + 1 < count, "{size} {index}");
                assert_eq!(transfer.delivery_id, (index == 0).then_some(77));
                let tag = 77u32.to_be_bytes();
                assert_eq!(transfer.delivery_tag, (index == 0).then_some(DeliveryTag(&tag)));
                let id = match transfer.state {
                    Some(DeliveryState::TransactionalState(state)) => state.txn_id.to_vec(),
                    _ => Vec::new(),
                };
                assert_eq!(id, vec![b'u'; if index == 0 { transaction.len() } else { 0 }]);
            }
            let sections = Sections::walk(&message, LIMITS).expect("a message");
            assert!(sections.header().expect("it is there").durable);
            assert_eq!(sections.data().collect::<Vec<_>>(), [&body[..]]);
        }
    }
    assert!(!Session::sender("").admit(true), "nothing is granted yet");
}

#[test]
fn frames_that_begin_a_message_are_told_from_those_that_go_on() {
    let mut out = Vec::new();
    // The body begins with what a delivery-id begins with.
    message::write(&mut out, SENDING, &message::sections(false, "", &[b'p'; 2_000]), 2_000);
    codec::write_frame(&Detach::default(), 1, &[], &mut out);
    let mut found = Vec::new();
    let mut bytes = &out[..];
    while let Ok(Some((_, used))) = frame::read(bytes, 512) {
        found.push(begins_message(bytes));
        bytes = &bytes[used..];
    }
    let more = Some(false);
    assert_eq!(found, [Some(true), more, more, more, more, None]);
}

#[test]
fn only_queues_have_a_prefix_and_only_where_it_is_wanted() {
    assert_eq!(address("queue://a", true), "/queues/a");
    assert_eq!(address("a", true), "/queues/a");
    assert_eq!(address("queue://a", false), "a");
    assert_eq!([true, false].map(|it| address("topic://a", it)), ["a", "a"]);
}

#[test]
fn messages_carry_the_label_that_a_selective_subscription_chooses() {
    assert_eq!(split_label("queue://a-0.0000000"), ("queue://a-0", ".0000000"));
    assert_eq!(split_label("queue://a-0"), ("queue://a-0", ""));
    assert_eq!(split_label("topic://a.b"), ("topic://a.b", ""));
    let message = message::sections(false, ".0000042", b"body");
    let sections = Sections::walk(&message, LIMITS).expect("a message");
    let properties = sections.application_properties().expect("well-formed");
    assert_eq!(properties.get("label"), Some(Value::String(".0000042")));
    let labels: Vec<String> = Labels { first: 42, count: 2 }.texts().collect();
    assert_eq!(labels, [".0000042", ".0000043"]);
    let filter = filter(&labels[0]);
    let Some(Value::Described(selector)) = filter.as_map().get("jms-selector") else {
        panic!("it is described")
    };
    assert_eq!(selector.descriptor(), Descriptor::Code(0x468C_0000_0004));
    assert_eq!(selector.value(), Value::String("label = '.0000042'"));
}

#[test]
fn a_body_is_found_the_same_in_both_ways() {
    for size in [0, 255, 256, 70_000] {
        let body = vec![b'x'; size];
        for (persistent, label) in [(false, ""), (true, ""), (true, ".1"), (false, ".2")] {
            let mut message = message::sections(persistent, label, &body);
            assert_eq!(quick_body(&message), Some(&body[..]), "{size}");
            for cut in 0..message.len().min(300) {
                assert!(quick_body(&message[..cut]).is_none(), "{size} {cut}");
            }
            put_section(&mut message, SectionKind::Data, &&b"more"[..]);
            assert!(quick_body(&message).is_none());
        }
    }
    let mut message = Vec::new();
    Header { delivery_count: 1, ..Header::default() }.write(&mut message);
    put_section(&mut message, SectionKind::Data, &&b"again"[..]);
    assert!(quick_body(&message).is_none());
}

#[test]
fn a_transfer_is_read_the_same_in_both_ways() {
    let tag = DeliveryTag(&[1, 2, 3]);
    for delivery_id in [0, 9, 1 << 20] {
        for (settled, more) in [(None, false), (Some(true), false), (Some(false), true)] {
            for state in [None, Some(codec::ACCEPTED)] {
                let transfer = Transfer {
                    delivery_id: Some(delivery_id),
                    delivery_tag: Some(tag),
                    message_format: Some(0),
                    settled,
                    more,
                    state,
                    ..Transfer::default()
                };
                let mut body = Vec::new();
                transfer.write(&mut body);
                body.extend_from_slice(b"payload");
                let general = general_transfer(&body).expect("well-formed");
                let part = Part { delivery_id: Some(delivery_id), more, aborted: false };
                assert_eq!(general, (part, &b"payload"[..]));
                let quick = quick_transfer(&body);
                assert_eq!(quick.is_some(), state.is_none());
                assert!(quick.is_none_or(|quick| quick == general));
                (0..body.len() - 8).for_each(|cut| assert!(quick_transfer(&body[..cut]).is_none()));
            }
        }
    }
}

#[test]
fn deliveries_arrive_whole_and_aborted_ones_do_not() {
    let mut script = Vec::new();
    message::write(&mut script, SENDING, &message::sections(true, "", b"one"), 3);
    let whole = script.len();
    message::write(&mut script, SENDING, &message::sections(true, "", &[b'x'; 900]), 900);
    // The first frame of another, which is then aborted.
    let mut cut = Vec::new();
    message::write(&mut cut, SENDING, &message::sections(true, "", &[b'y'; 900]), 900);
    script.extend_from_slice(&cut[..512]);
    let aborted = Transfer { aborted: true, ..Transfer::default() };
    codec::write_frame(&aborted, 1, &[], &mut script);
    // A text, marked as delivered before.
    let mut text = Vec::new();
    Header { delivery_count: 2, ..Header::default() }.write(&mut text);
    put_section(&mut text, SectionKind::Value, &"text");
    message::write(&mut script, SENDING, &text, 0);
    let mut input = input(Session::receiver(0, true, false));
    let kept = take(&mut input, &script).expect("well-formed");
    assert_eq!(kept.bodies, [&b"one"[..], &[b'x'; 900], b"text"]);
    assert_eq!(kept.complete, 3);
    for octet in 8..whole {
        // Whatever a broker damages is an error or another message, never a panic.
        let mut damaged = script[..whole].to_vec();
        damaged[octet] ^= 0x55;
        drop(take(&mut input, &damaged));
    }
}

#[test]
fn credit_is_topped_up_when_half_of_it_is_used() {
    let mut session = Session::receiver(10, false, false);
    let begin = Begin { next_outgoing_id: 7, ..Begin::default() };
    session.begun(5, &begin);
    let End::Receiver(receiver) = &mut session.end else { panic!("it receives") };
    receiver.attached(100);
    assert!(receiver.is_due());
    let flow = session.state();
    assert_eq!((flow.delivery_count, flow.link_credit), (Some(100), Some(10)));
    assert_eq!(flow.next_incoming_id, Some(7));
    let End::Receiver(receiver) = &mut session.end else { panic!("it receives") };
    (0..10).for_each(|id| receiver.begins(id));
    assert!(!receiver.is_due(), "deliveries without an answer hold the credit");
    receiver.settle(4);
    assert!(!receiver.is_due());
    receiver.settle(1);
    assert!(receiver.is_due());
    let flow = session.state();
    assert_eq!((flow.delivery_count, flow.link_credit), (Some(110), Some(5)));
}

#[test]
fn messages_wait_for_credit_and_for_the_window() {
    let flow = |next_incoming_id, incoming_window, delivery_count, link_credit| Flow {
        next_incoming_id: Some(next_incoming_id),
        incoming_window,
        handle: Some(0),
        delivery_count: Some(delivery_count),
        link_credit: Some(link_credit),
        ..Flow::default()
    };
    let mut session = Session::sender("a");
    session.begun(5, &Begin { incoming_window: 3, ..Begin::default() });
    assert_eq!(session.room(), 0);
    session.flow(&flow(1, 3, 0, 2));
    assert_eq!(session.room(), 2);
    assert!(session.admit(true) && session.admit(false) && session.admit(true));
    assert!(!session.admit(true), "the window is used up");
    session.flow(&flow(4, u32::MAX, 2, 0));
    assert!(session.admit(false) && !session.admit(true), "the credit is used up");
    session.flow(&flow(5, u32::MAX, 2, u32::MAX));
    assert_eq!(session.room(), u64::from(WINDOW_MAX));
    assert!(session.flow(&Flow { drain: true, ..flow(5, u32::MAX, 2, 10) }), "it is told");
    assert_eq!((session.room(), session.state().delivery_count), (0, Some(12)));
    // What a broker has lowered is obeyed.
    session.flow(&flow(5, u32::MAX, 12, 4));
    session.flow(&flow(5, u32::MAX, 12, 1));
    assert_eq!(session.room(), 1);
}

#[test]
fn outcomes_come_as_confirms_by_tag() {
    #[derive(Default)]
    struct Confirms(Vec<(u64, bool, bool)>);
    impl Receiver for Confirms {
        fn confirm(&mut self, confirm: crate::client::Confirm) -> Result<(), Error> {
            self.0.push((confirm.tag, confirm.multiple, confirm.refused));
            Ok(())
        }
    }
    let mut input = input(Session::sender("a"));
    let mut confirms = Confirms::default();
    let mut tell = |first, last, state, settled| {
        let role = Role::Receiver;
        let told = Disposition { role, first, last, settled, state, batchable: false };
        let mut out = Vec::new();
        codec::write_frame(&told, 5, &[], &mut out);
        input.frame(&frames(&out)[0], &mut confirms).expect("well-formed");
    };
    let accepted = Some(codec::ACCEPTED);
    tell(1, Some(3), accepted, true);
    tell(6, Some(7), accepted, true);
    tell(4, None, Some(codec::RELEASED), true);
    tell(5, None, Some(DeliveryState::Received(codec::Received::default())), false);
    tell(5, None, accepted, false);
    let wanted = [(3, true, false), (6, false, false), (7, false, false), (4, true, true)];
    assert_eq!(confirms.0, [&wanted[..], &[(5, true, false)]].concat());
    // The last one was left for us to settle.
    let pending = frames(&input.pending);
    assert_eq!(pending.len(), 1);
    assert!(performative(&pending[0]).contains("role: Sender, first: 5"), "{pending:?}");
}

#[test]
fn what_a_consumer_does_while_a_commit_is_on_its_way_is_in_the_next_transaction() {
    let (mut transactions, mut out) = (Transactions::default(), Vec::new());
    let accepted = |id| Accepted { channel: 1, first: id, last: id };
    transactions.declare(&mut out);
    transactions.declared(b"one");
    assert!(!transactions.is_busy());
    out.clear();
    for id in [1, 2, 3] {
        transactions.accept(accepted(id), &mut out);
        transactions.commit(&mut out);
    }
    // The first acceptance, its commit, and the request for the next transaction.
    let said: Vec<String> = frames(&out).iter().map(performative).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("first: 1") && said[0].contains(&format!("{:?}", b"one")));
    let request = |frame: &Frame<'_>| {
        let (_, payload) = codec::decode_body::<Transfer<'_>>(frame.body).expect("a transfer");
        let sections = Sections::walk(payload, LIMITS).expect("a message");
        let mut body = Vec::new();
        sections.amqp_value().expect("well-formed").expect("a value").write(&mut body);
        format!("{:?}", CoordinatorRequest::decode(&body).expect("a request"))
    };
    assert!(request(&frames(&out)[1]).contains("Discharge"));
    assert!(request(&frames(&out)[2]).contains("Declare"));
    // The next transaction may be there before the commit is answered.
    transactions.declared(b"two");
    assert!(transactions.is_busy());
    transactions.accepted(2, 2);
    out.clear();
    transactions.go_on(&mut out);
    let said: Vec<String> = frames(&out).iter().map(performative).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("first: 2") && said[0].contains(&format!("{:?}", b"two")));
}

#[test]
fn a_transaction_of_another_id_is_noted_from_the_coordinator() {
    let mut input = Input::default();
    input.sessions.push(Some(Session::sender("")));
    let begin = Begin { remote_channel: Some(0), ..Begin::default() };
    input.answer(5, &Performative::Begin(begin)).expect("it was asked for");
    let mut out = Vec::new();
    input.transactions.declare(&mut out);
    let declared = DeliveryState::Declared(Declared { txn_id: b"id" });
    let mut told = Vec::new();
    let disposition = Disposition {
        role: Role::Receiver,
        first: 1,
        settled: true,
        state: Some(declared),
        ..Disposition::default()
    };
    codec::write_frame(&disposition, 5, &[], &mut told);
    let kept = take(&mut input, &told).expect("well-formed");
    assert_eq!((kept.commits, input.transactions.id()), (1, &b"id"[..]));
    let error = codec::Error::new(Condition::TransactionRollback, "the queue is full");
    let refused = DeliveryState::Rejected(codec::Rejected { error: Some(error) });
    let mut told = Vec::new();
    codec::write_frame(&Disposition { state: Some(refused), ..disposition }, 5, &[], &mut told);
    let why = take(&mut input, &told).map(|_| ()).expect_err("it was refused").to_string();
    assert!(why.contains("amqp:transaction:rollback: the queue is full"), "{why}");
}

#[test]
fn what_a_broker_closes_is_an_error_with_its_words() {
    let error = Some(codec::Error::new(Condition::NotFound, "no queue 'a'"));
    let mut input = input(Session::sender("a"));
    for told in [
        Performative::Detach(Detach { handle: 0, closed: true, error }),
        Performative::End(codec::End { error }),
        Performative::Close(codec::Close { error }),
    ] {
        let why = input.answer(5, &told).expect_err("it is one").to_string();
        assert!(why.ends_with("amqp:not-found: no queue 'a'"), "{why}");
    }
    input.ending = Some(1);
    let detach = Detach { handle: 0, closed: true, error: None };
    input.answer(5, &Performative::Detach(detach)).expect("it was asked for");
    assert_eq!(input.ending, Some(0));
}

#[test]
fn a_fake_broker_says_what_a_client_takes() {
    let fake_broker = super::fake_broker();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
    let port = listener.local_addr().expect("it is bound").port();
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("it connects");
        let (mut said, mut octet) = (Vec::new(), [0]);
        while stream.read(&mut octet).is_ok_and(|count| count > 0) {
            said.push(octet[0]);
            if let Some((reply, _)) = fake_broker.request(&said) {
                stream.write_all(reply).expect("it reads");
                said.clear();
            }
        }
    });
    let target: Target = format!("amqp10://127.0.0.1:{port}").parse().expect("it is an address");
    let mut link = Link::open(&target).expect("it answers");
    let route = Route { exchange: "", key: "topic://a", persistent: false };
    link.prepare(&route).expect("it attaches");
    assert_eq!(link.room(), u64::from(WINDOW_MAX));
    link.send_end().expect("it reads");
    let mut kept = Kept::default();
    link.expect_end(&mut kept).expect("it answers");
    assert_eq!(kept.ends, 1);
    link.close().expect("it answers");
    serving.join().expect("it ends with the connection");
}

#[test]
fn credit_may_take_longer_than_the_timeout_of_the_socket() {
    let more = Flow {
        next_incoming_id: Some(2),
        incoming_window: 100,
        outgoing_window: 100,
        handle: Some(0),
        delivery_count: Some(1),
        link_credit: Some(1),
        ..Flow::default()
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
    let port = listener.local_addr().expect("it is bound").port();
    let serving = thread::spawn(move || {
        let fake_broker = super::fake_broker::fake_broker_giving(1);
        let (mut stream, _) = listener.accept().expect("it connects");
        let (mut said, mut octet, mut messages) = (Vec::new(), [0], 0);
        while stream.read(&mut octet).is_ok_and(|count| count > 0) {
            said.push(octet[0]);
            let is_whole = (fake_broker.request_bytes)(&said) == Some(said.len());
            if is_whole && fake_broker.messages(&said, said.len()) == 1 {
                (said, messages) = (Vec::new(), messages + 1);
                thread::sleep(Duration::from_millis(60));
                let mut flow = Vec::new();
                codec::write_frame(&more, 1, &[], &mut flow);
                // The client may be gone after its last message.
                drop(stream.write_all(&flow));
            } else if let Some((reply, _)) = fake_broker.request(&said) {
                stream.write_all(reply).expect("it reads");
                said.clear();
            }
        }
        messages
    });
    let target: Target = format!("amqp10://127.0.0.1:{port}").parse().expect("it is an address");
    let mut link = Link::open(&target).expect("it answers");
    let route = Route { exchange: "", key: "topic://a", persistent: false };
    link.prepare(&route).expect("it attaches");
    link.stream().set_read_timeout(Some(Duration::from_millis(5))).expect("it is open");
    let mut two = Vec::new();
    for _ in 0..2 {
        link.encode(&route, b"body", &mut two);
    }
    link.write(&two).expect("the credit comes");
    drop(link);
    assert_eq!(serving.join().expect("it ends with the connection"), 2);
}

#[test]
fn a_broker_of_another_protocol_is_named() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
    let port = listener.local_addr().expect("it is bound").port();
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("it connects");
        stream.write_all(b"AMQP\0\0\x09\x01").expect("it reads");
        drop(stream.read_to_end(&mut Vec::new()));
    });
    let target: Target = format!("amqp10://127.0.0.1:{port}").parse().expect("it is an address");
    let why = Link::open(&target).map(|_| ()).expect_err("it is another").to_string();
    assert!(why.contains(r"AMQP\x00\x00\t\x01"), "{why}");
    serving.join().expect("it ends with the connection");
}

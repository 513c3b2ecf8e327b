//! Messages in and their outcomes: frames put together, confirms, settle modes, refusals.

use super::client::{Client, closing, credit, data, receiver, sender, settled, transfer};
use crate::amqp10::Settings;
use crate::amqp10::codec::{
    AnyTarget, Attach, DeliveryState, Disposition, Field, Modified, Properties, ReceiverSettleMode,
    Rejected, SectionKind, Target, Transfer,
};

fn producer() -> Client {
    let mut client = Client::open();
    client.send(0, &sender(0, "q"));
    client.lines();
    client
}

/// Everything in queue `q`, by a link of its own.
fn taken(client: &mut Client) -> Vec<String> {
    client.send(0, &receiver(9, "q"));
    client.send(0, &credit(9, 0, 100));
    let mut lines = client.lines();
    lines.retain(|line| line.contains("transfer"));
    client.send(0, &closing(9));
    client.lines();
    lines
}

#[test]
fn outcomes_come_for_runs_of_deliveries() {
    let mut client = producer();
    let mut bytes = Vec::new();
    for id in 3..7 {
        bytes.extend(super::client::frame(0, &transfer(0, id), &data("m")));
    }
    let presettled = Transfer { settled: Some(true), ..transfer(0, 7) };
    bytes.extend(super::client::frame(0, &presettled, &data("m")));
    bytes.extend(super::client::frame(0, &transfer(0, 8), &data("m")));
    client.raw(&bytes);
    client.expect(&[
        "0 disposition receiver 3-6 settled accepted",
        "0 disposition receiver 8 settled accepted",
    ]);
}

#[test]
fn messages_come_in_many_frames_of_several_links() {
    let mut client = producer();
    client.send(0, &Attach { name: "other", ..sender(1, "q") });
    client.lines();
    let (one, other) = (data("first message"), data("second message"));
    let more = Transfer { more: true, ..transfer(0, 0) };
    client.send_with(0, &more, &one[..5]);
    client.send_with(0, &Transfer { more: true, ..transfer(1, 1) }, &other[..9]);
    let next = Transfer { handle: 0, ..Transfer::default() };
    client.send_with(0, &Transfer { more: true, ..next }, &one[5..6]);
    client.send_with(0, &Transfer { handle: 1, ..next }, &other[9..]);
    client.send_with(0, &next, &one[6..]);
    client.expect(&[
        "0 disposition receiver 1 settled accepted",
        "0 disposition receiver 0 settled accepted",
    ]);
    let taken = taken(&mut client);
    assert_eq!(
        taken,
        ["0 transfer 9 id=0 \"second message\"", "0 transfer 9 id=1 \"first message\""]
    );
}

#[test]
fn aborted_messages_are_forgotten() {
    let mut client = producer();
    client.send_with(0, &Transfer { more: true, ..transfer(0, 0) }, &data("lost")[..3]);
    client.send(0, &Transfer { aborted: true, ..transfer(0, 0) });
    client.send_with(0, &transfer(0, 1), &data("kept"));
    client.expect(&["0 disposition receiver 1 settled accepted"]);
    assert_eq!(taken(&mut client), ["0 transfer 9 id=0 \"kept\""]);
}

#[test]
fn what_cannot_be_read_is_rejected_and_the_link_goes_on() {
    let mut client = producer();
    client.send_with(0, &transfer(0, 0), b"nonsense");
    client.send_with(0, &transfer(0, 1), &data("m"));
    client.expect(&[
        "0 disposition receiver 0 settled rejected amqp:decode-error: message is not a described \
         value",
        "0 disposition receiver 1 settled accepted",
    ]);
}

#[test]
fn a_message_that_is_too_large_detaches_its_link() {
    let settings = Settings { body_bytes_max: 10, properties_bytes_max: 10, ..Settings::default() };
    let mut client = Client::open_with(settings, 100);
    client.send(0, &sender(0, "q"));
    client.lines();
    client.send_with(0, &Transfer { more: true, ..transfer(0, 0) }, &[0; 30]);
    client.expect(&[
        "0 detach 0 closed amqp:link:message-size-exceeded: a message is larger than the limit of \
         10 octets",
    ]);
}

#[test]
fn deliveries_without_credit_detach_the_link() {
    let settings = Settings { link_credit: 1, ..Settings::default() };
    let mut client = Client::open_with(settings, 100);
    client.send(0, &sender(0, "q"));
    let mut bytes = super::client::frame(0, &transfer(0, 0), &data("a"));
    bytes.extend(super::client::frame(0, &transfer(0, 1), &data("b")));
    client.lines();
    client.raw(&bytes);
    let lines = client.lines();
    let expected = "0 detach 0 closed amqp:link:transfer-limit-exceeded: more deliveries than there \
                    was credit for";
    assert!(lines.contains(&expected.to_owned()), "{lines:#?}");
}

#[test]
fn a_sender_that_settles_second_is_told_first() {
    let mut client = Client::open();
    let second = Attach { rcv_settle_mode: ReceiverSettleMode::Second, ..sender(0, "q") };
    client.send(0, &second);
    client.lines();
    client.send_with(0, &transfer(0, 0), &data("m"));
    client.expect(&["0 disposition receiver 0 accepted"]);
    let answer = Disposition {
        role: crate::amqp10::codec::Role::Sender,
        first: 0,
        settled: true,
        ..Disposition::default()
    };
    client.send(0, &answer);
    client.expect(&[]);
}

#[test]
fn a_receiver_that_settles_second_is_answered() {
    let mut client = producer();
    client.send_with(0, &transfer(0, 0), &data("m"));
    client.send(0, &Attach { rcv_settle_mode: ReceiverSettleMode::Second, ..receiver(1, "q") });
    client.send(0, &credit(1, 0, 1));
    client.lines();
    let told = settled(0, 0, crate::amqp10::codec::ACCEPTED);
    client.send(0, &Disposition { settled: false, ..told });
    client.expect(&["0 disposition sender 0-0 settled accepted"]);
    client.send(0, &told);
    client.send(0, &closing(1));
    client.lines();
    assert!(taken(&mut client).is_empty());
}

#[test]
fn modified_counts_and_rejected_is_final() {
    let mut client = producer();
    client.send_with(0, &transfer(0, 0), &data("a"));
    client.send_with(0, &transfer(0, 1), &data("b"));
    client.send(0, &receiver(1, "q"));
    client.send(0, &credit(1, 0, 2));
    client.lines();
    let failed = Modified { delivery_failed: true, ..Modified::default() };
    client.send(0, &settled(0, 0, DeliveryState::Modified(failed)));
    client.send(0, &settled(1, 1, DeliveryState::Rejected(Rejected::default())));
    client.send(0, &closing(1));
    client.lines();
    assert_eq!(taken(&mut client), ["0 transfer 9 id=2 count=1 \"a\""]);
}

#[test]
fn without_a_target_each_message_says_where() {
    let mut client = producer();
    let target = Some(AnyTarget::Target(Target::default()));
    client.send(0, &Attach { name: "relay", target, ..sender(1, "") });
    client.lines();
    let to = |address| {
        let mut message = Vec::new();
        Properties { to: Some(address), ..Properties::default() }.write(&mut message);
        message.extend(data("m"));
        message
    };
    client.send_with(0, &transfer(1, 0), &to("/queues/q"));
    client.send_with(0, &transfer(1, 1), &to("/exchanges/none/k"));
    client.send_with(0, &transfer(1, 2), &data("m"));
    client.expect(&[
        "0 disposition receiver 0 settled accepted",
        "0 disposition receiver 1 settled rejected amqp:not-found: no exchange 'none' in vhost '/'",
        "0 disposition receiver 2 settled rejected amqp:not-found: the address is empty",
    ]);
    assert_eq!(taken(&mut client).len(), 1);
}

#[test]
fn other_protocols_share_the_queues() {
    let mut client = producer();
    let mut message = Vec::new();
    let text = crate::amqp10::codec::Value::String("from 1.0");
    crate::amqp10::codec::put_section(&mut message, SectionKind::Value, &text);
    client.send_with(0, &transfer(0, 0), &message);
    assert_eq!(taken(&mut client), ["0 transfer 9 id=0 'from 1.0'"]);
}

#[test]
fn deliveries_of_former_links_are_not_resumed() {
    let mut client = Client::open();
    // A map of deliveries that the peer takes for unsettled is answered with none.
    let unsettled = crate::amqp10::codec::OwnedValue::map(|map| {
        map.put(&crate::amqp10::codec::Value::Binary(b"tag"), &crate::amqp10::codec::Value::Null);
    });
    client.send(0, &Attach { unsettled: Some(unsettled.as_map()), ..sender(0, "q") });
    let lines = client.lines();
    assert!(lines.iter().all(|line| !line.contains("unsettled")), "{lines:#?}");
    client.send_with(0, &Transfer { resume: true, ..transfer(0, 0) }, &data("half"));
    client.send_with(0, &Transfer { resume: true, more: true, ..transfer(0, 1) }, b"\0Su");
    client.send_with(0, &Transfer { more: true, ..transfer(0, 1) }, b"more");
    client.send_with(0, &transfer(0, 1), b"end");
    client.expect(&[]);
    // The message itself, sent anew.
    client.send_with(0, &transfer(0, 2), &data("whole"));
    client.expect(&["0 disposition receiver 2 settled accepted"]);
    client.send(0, &receiver(1, "q"));
    client.send(0, &credit(1, 0, 5));
    client.expect(&["0 attach 1 sender r q -> -", "0 transfer 1 id=0 \"whole\""]);
}

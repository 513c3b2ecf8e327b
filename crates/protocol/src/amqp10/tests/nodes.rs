//! What links stand for beside queues: topics, subscriptions, temporary nodes, management.

use super::client::{Client, begin, closing, credit, data, receiver, sender, transfer};
use crate::amqp10::Settings;
use crate::amqp10::codec::{
    AnyTarget, Attach, Detach, Field, Header, MessageId, OwnedValue, Properties, Role, SectionKind,
    Source, Symbol, Symbols, Target, TerminusDurability, TerminusExpiryPolicy, put_map_section,
    put_section,
};

/// An attach of a subscriber to topic `t`.
fn subscriber<'a>(handle: u32, name: &'a str, kinds: &'a [Symbol<'a>]) -> Attach<'a> {
    let source =
        Source { address: Some("t"), capabilities: Symbols::new(kinds), ..Source::default() };
    Attach { name, source: Some(source), ..receiver(handle, "t") }
}

fn durable<'a>(handle: u32, name: &'a str, kinds: &'a [Symbol<'a>]) -> Attach<'a> {
    let attach = subscriber(handle, name, kinds);
    let source = attach.source.map(|source| Source {
        durable: TerminusDurability::UnsettledState,
        expiry_policy: TerminusExpiryPolicy::Never,
        ..source
    });
    Attach { source, ..attach }
}

const TOPIC: &[Symbol<'static>] = &[Symbol("topic")];
const SHARED: &[Symbol<'static>] = &[Symbol("topic"), Symbol("shared")];

fn publish(client: &mut Client, handle: u32, id: u32, body: &str) {
    client.send_with(0, &transfer(handle, id), &data(body));
}

#[test]
fn every_subscriber_of_a_topic_gets_what_comes_while_it_is_there() {
    let mut client = Client::open();
    client.send(0, &sender(0, "topic://t"));
    publish(&mut client, 0, 0, "early");
    client.send(0, &subscriber(1, "a", TOPIC));
    client.send(0, &subscriber(2, "b", TOPIC));
    client.send(0, &credit(1, 0, 9));
    client.send(0, &credit(2, 0, 9));
    client.lines();
    publish(&mut client, 0, 1, "m");
    let mut lines = client.lines();
    lines.sort();
    assert_eq!(
        lines,
        [
            "0 disposition receiver 1 settled accepted",
            "0 transfer 1 id=0 \"m\"",
            "0 transfer 2 id=1 \"m\"",
        ]
    );
    client.send(0, &closing(1));
    client.send(0, &closing(2));
    client.expect(&["0 detach 1 closed", "0 detach 2 closed"]);
    assert_eq!(client.host.queues(), [""; 0]);
}

#[test]
fn a_durable_subscription_waits_for_its_subscriber_and_goes_when_it_is_closed() {
    let mut client = Client::open();
    client.send(0, &sender(0, "topic://t"));
    client.send(0, &durable(1, "d", TOPIC));
    client.send(0, &Detach { handle: 1, closed: false, error: None });
    client.lines();
    publish(&mut client, 0, 0, "m");
    client.lines();
    client.send(0, &durable(1, "d", TOPIC));
    client.send(0, &credit(1, 0, 9));
    client.expect(&["0 attach 1 sender d t -> -", "0 transfer 1 id=0 \"m\""]);
    // One link at a time.
    client.send(0, &durable(2, "d", TOPIC));
    let lines = client.lines();
    assert!(lines[1].contains("amqp:resource-locked"), "{lines:#?}");
    client.send(0, &closing(2));
    client.send(0, &closing(1));
    client.expect(&["0 detach 1 closed"]);
    assert_eq!(client.host.queues(), [""; 0]);
}

#[test]
fn a_subscription_is_found_by_its_name_and_deleted() {
    let mut client = Client::open();
    let nameless = Attach { name: "d", source: None, ..receiver(1, "") };
    client.send(0, &nameless);
    let lines = client.lines();
    assert_eq!(lines[0], "0 attach 1 sender d null -> -");
    assert!(lines[1].starts_with("0 detach 1 closed amqp:not-found"), "{lines:#?}");
    client.send(0, &closing(1));
    client.send(0, &durable(2, "d", TOPIC));
    client.send(0, &nameless);
    client.lines();
    client.send(0, &closing(1));
    let lines = client.lines();
    assert!(lines[0].starts_with("0 detach 1 closed amqp:resource-locked"), "{lines:#?}");
    client.send(0, &Detach { handle: 2, closed: false, error: None });
    client.send(0, &nameless);
    client.expect(&["0 detach 2", "0 attach 1 sender d t -> -"]);
    client.send(0, &closing(1));
    client.expect(&["0 detach 1 closed"]);
    assert_eq!(client.host.queues(), [""; 0]);
}

#[test]
fn shared_subscriptions_divide_their_messages() {
    let mut client = Client::open();
    client.send(0, &sender(0, "topic://t"));
    client.send(0, &subscriber(1, "s|volatile1", SHARED));
    client.send(0, &subscriber(2, "s|volatile2", SHARED));
    client.send(0, &credit(1, 0, 1));
    client.send(0, &credit(2, 0, 1));
    client.lines();
    publish(&mut client, 0, 0, "a");
    publish(&mut client, 0, 1, "b");
    let mut lines = client.lines();
    lines.retain(|line| line.contains("transfer"));
    lines.sort();
    let (one, other) = (&lines[0][..12], &lines[1][..12]);
    assert_eq!((one, other, lines.len()), ("0 transfer 1", "0 transfer 2", 2), "{lines:#?}");
    client.send(0, &closing(1));
    client.send(0, &closing(2));
    client.lines();
    assert_eq!(client.host.queues(), [""; 0]);
}

/// The address in the answer to an attach that asked for a node without a name.
fn address(client: &mut Client) -> String {
    let lines = client.lines();
    let ends = lines[0].split(" -> ").collect::<Vec<_>>();
    let source = ends[0].rsplit(' ').next().unwrap();
    if ends[1] == "-" { source.to_owned() } else { ends[1].to_owned() }
}

#[test]
fn a_temporary_queue_goes_with_the_link_that_made_it() {
    let mut client = Client::open();
    let kinds = [Symbol("temporary-queue")];
    let target = Target { dynamic: true, capabilities: Symbols::new(&kinds), ..Target::default() };
    let maker = Attach { target: Some(AnyTarget::Target(target)), ..sender(0, "") };
    client.send(0, &maker);
    let address = address(&mut client);
    let before = client.another("guest");
    client.send(0, &Attach { name: "other", ..sender(0, &address) });
    publish(&mut client, 0, 0, "m");
    client.lines();
    client.send(0, &receiver(1, &address));
    let lines = client.lines();
    assert!(lines[1].contains("amqp:resource-locked"), "{lines:#?}");
    let other = std::mem::replace(&mut client.number, before);
    client.send(0, &receiver(1, &address));
    client.send(0, &credit(1, 0, 1));
    let lines = client.lines();
    assert_eq!(lines[1], "0 transfer 1 id=0 \"m\"");
    client.send(0, &closing(1));
    client.send(0, &closing(0));
    client.lines();
    assert_eq!(client.host.queues(), [""; 0]);
    client.number = other;
    client.send(0, &Attach { name: "late", ..sender(5, &address) });
    let lines = client.lines();
    assert!(lines.last().unwrap().contains("amqp:not-found"), "{lines:#?}");
}

#[test]
fn a_temporary_topic_reaches_all_of_its_subscribers() {
    let mut client = Client::open();
    let kinds = [Symbol("temporary-topic")];
    let target = Target { dynamic: true, capabilities: Symbols::new(&kinds), ..Target::default() };
    client.send(0, &Attach { target: Some(AnyTarget::Target(target)), ..sender(0, "") });
    let address = address(&mut client);
    assert!(address.starts_with("/exchanges/"), "{address}");
    for handle in 1..=2 {
        let source = Source {
            address: Some(&address),
            capabilities: Symbols::new(&kinds),
            ..Source::default()
        };
        let name = ["a", "b"][handle as usize - 1];
        client.send(0, &Attach { name, source: Some(source), ..receiver(handle, "") });
        client.send(0, &credit(handle, 0, 9));
    }
    client.lines();
    publish(&mut client, 0, 0, "m");
    let lines = client.lines();
    assert_eq!(lines.iter().filter(|line| line.contains("transfer")).count(), 2, "{lines:#?}");
}

#[test]
fn a_dynamic_source_takes_replies() {
    let mut client = Client::open();
    let source = Some(Source { dynamic: true, ..Source::default() });
    client.send(0, &Attach { source, ..receiver(0, "") });
    let address = address(&mut client);
    client.send(0, &sender(1, &address));
    client.send(0, &credit(0, 0, 1));
    client.lines();
    publish(&mut client, 1, 0, "reply");
    client.expect(&["0 transfer 0 id=0 \"reply\"", "0 disposition receiver 0 settled accepted"]);
    client.send(0, &closing(0));
    client.lines();
    assert_eq!(client.host.queues(), [""; 0]);
}

fn paired(handle: u32, role: Role, address: &'static str) -> Attach<'static> {
    let attach = match role {
        Role::Sender => sender(handle, address),
        Role::Receiver => receiver(handle, address),
    };
    Attach { name: "pair", ..attach }
}

#[test]
fn queues_are_declared_by_management() {
    let mut client = Client::open();
    client.send(0, &paired(0, Role::Sender, "/management"));
    client.send(0, &paired(1, Role::Receiver, "/management"));
    client.send(0, &credit(1, 0, 1));
    client.lines();
    let mut request = Vec::new();
    let properties = Properties {
        message_id: Some(MessageId::String("1")),
        to: Some("/queues/made"),
        subject: Some("PUT"),
        reply_to: Some("$me"),
        ..Properties::default()
    };
    properties.write(&mut request);
    let body = OwnedValue::map(|map| map.put(&"durable", &true));
    put_section(&mut request, SectionKind::Value, &body.value());
    client.send_with(0, &transfer(0, 0), &request);
    let lines = client.lines();
    assert_eq!(lines[0], "0 disposition receiver 0 settled accepted");
    assert!(lines[1].starts_with("0 transfer 1 id=0 settled"), "{lines:#?}");
    assert_eq!(client.host.queues(), ["made"]);
    // Without credit the answer waits.
    client.send_with(0, &transfer(0, 1), &request);
    client.expect(&["0 disposition receiver 1 settled accepted"]);
    client.send(0, &credit(1, 1, 1));
    let lines = client.lines();
    assert!(lines[0].starts_with("0 transfer 1 id=1 settled"), "{lines:#?}");
    // Deliveries of queues keep their tags beside answers.
    client.send(0, &Attach { name: "s", ..sender(2, "made") });
    publish(&mut client, 2, 2, "m");
    client.send(0, &receiver(3, "made"));
    client.send(0, &credit(3, 0, 1));
    client.lines();
    client.send(0, &super::client::settled(0, 2, crate::amqp10::codec::ACCEPTED));
    client.send(0, &closing(3));
    client.lines();
    client.send(0, &Attach { name: "again", ..receiver(4, "made") });
    client.send(0, &credit(4, 0, 1));
    client.expect(&["0 attach 4 sender again made -> -"]);
}

#[test]
fn a_session_that_ends_takes_its_nodes_along() {
    let mut client = Client::open_with(Settings::default(), 100);
    client.send(1, &begin(100));
    let source = Some(Source { dynamic: true, ..Source::default() });
    client.send(1, &Attach { source, ..receiver(0, "") });
    client.send(1, &subscriber(1, "a", TOPIC));
    assert_eq!(client.host.queues().len(), 2);
    client.send(1, &crate::amqp10::codec::End::default());
    assert_eq!(client.host.queues(), [""; 0]);
}

/// As Azure's clients ask: the answer comes by the link whose target the request names, of several.
#[test]
fn tokens_are_answered_where_the_request_says() {
    let mut client = Client::open();
    client.send(0, &sender(0, "$cbs"));
    for (handle, name) in [(1, "other"), (2, "claims")] {
        let target = Target { address: Some(name), ..Target::default() };
        let target = Some(AnyTarget::Target(target));
        client.send(0, &Attach { name, target, ..receiver(handle, "$cbs") });
        client.send(0, &credit(handle, 0, 1));
    }
    client.lines();
    let mut request = Vec::new();
    let (message_id, reply_to) = (Some(MessageId::ULong(5)), Some("claims"));
    Properties { message_id, reply_to, ..Properties::default() }.write(&mut request);
    put_map_section(&mut request, SectionKind::ApplicationProperties, |map| {
        map.put(&"operation", &"put-token");
        map.put(&"type", &"servicebus.windows.net:sastoken");
        map.put(&"name", &"amqp://host/q");
    });
    put_section(&mut request, SectionKind::Value, &"SharedAccessSignature sr=x");
    client.send_with(0, &transfer(0, 0), &request);
    let accepted = "0 disposition receiver 0 settled accepted";
    client.expect(&["0 transfer 2 id=0 settled Null", accepted]);
    assert_eq!(client.host.queues(), [""; 0]);
}

/// A source's filter set with that selector.
pub(super) fn selector(text: &str) -> OwnedValue {
    let mut described = vec![crate::amqp10::codec::wire::DESCRIBED];
    Symbol("apache.org:selector-filter:string").write(&mut described);
    Field::write(&text, &mut described);
    let described = OwnedValue::decode(&described).unwrap();
    OwnedValue::map(|map| map.put(&Symbol("jms-selector"), &described.value()))
}

/// A message of that priority, which is its body too.
fn ranked(priority: u8) -> Vec<u8> {
    let mut message = Vec::new();
    Header { priority, ..Header::default() }.write(&mut message);
    message.extend(data(&priority.to_string()));
    message
}

#[test]
fn links_get_what_their_selectors_select() {
    let mut client = Client::open();
    client.send(0, &sender(0, "q"));
    client.send(0, &Attach { name: "topic", ..sender(1, "topic://t") });
    let high = selector("JMSPriority > 5");
    let queue = receiver(2, "q");
    let source = queue.source.map(|source| Source { filter: Some(high.as_map()), ..source });
    client.send(0, &Attach { source, ..queue });
    let topic = subscriber(3, "t", TOPIC);
    let source = topic.source.map(|source| Source { filter: Some(high.as_map()), ..source });
    client.send(0, &Attach { source, ..topic });
    client.send(0, &credit(2, 0, 9));
    client.send(0, &credit(3, 0, 9));
    client.lines();
    for (id, priority) in (0..).zip([1, 9]) {
        client.send_with(0, &transfer(0, 2 * id), &ranked(priority));
        client.send_with(0, &transfer(1, 2 * id + 1), &ranked(priority));
    }
    let mut lines = client.lines();
    lines.retain(|line| line.contains("transfer"));
    assert_eq!(lines, ["0 transfer 2 id=0 \"9\"", "0 transfer 3 id=1 \"9\""]);
    let bad = selector("JMSPriority > ");
    let queue = Attach { name: "bad", ..receiver(4, "q") };
    let source = queue.source.map(|source| Source { filter: Some(bad.as_map()), ..source });
    client.send(0, &Attach { source, ..queue });
    let lines = client.lines();
    assert!(lines[1].starts_with("0 detach 4 closed amqp:invalid-field: "), "{lines:#?}");
}

#[test]
fn a_durable_subscription_with_another_selector_begins_anew() {
    let mut client = Client::open();
    client.send(0, &sender(0, "topic://t"));
    let attach = |text: &str, client: &mut Client| {
        let filter = selector(text);
        let attach = durable(1, "d", TOPIC);
        let source = attach.source.map(|it| Source { filter: Some(filter.as_map()), ..it });
        client.send(0, &Attach { source, ..attach });
    };
    attach("JMSPriority > 5", &mut client);
    client.send(0, &Detach { handle: 1, closed: false, error: None });
    client.send_with(0, &transfer(0, 0), &ranked(1));
    client.send_with(0, &transfer(0, 1), &ranked(9));
    attach("JMSPriority > 5", &mut client);
    client.send(0, &credit(1, 0, 9));
    let mut lines = client.lines();
    lines.retain(|line| line.contains("transfer"));
    assert_eq!(lines, ["0 transfer 1 id=0 \"9\""]);
    client.send(0, &Detach { handle: 1, closed: false, error: None });
    attach("JMSPriority < 5", &mut client);
    client.send(0, &credit(1, 0, 9));
    let lines = client.lines();
    assert!(!lines.iter().any(|line| line.contains("transfer")), "{lines:#?}");
}

#[test]
fn jms_clients_name_the_destination_of_each_message() {
    use crate::amqp10::codec::put_map_section;
    let mut client = Client::open();
    let nowhere = Attach { target: Some(AnyTarget::Target(Target::default())), ..sender(0, "") };
    client.send(0, &nowhere);
    client.send(0, &subscriber(1, "a", TOPIC));
    client.send(0, &credit(1, 0, 9));
    client.lines();
    let mut send = |id: u32, to: &str, kind: Option<i8>| {
        let mut message = Vec::new();
        if let Some(kind) = kind {
            put_map_section(&mut message, SectionKind::MessageAnnotations, |map| {
                map.put(&Symbol("x-opt-jms-dest"), &kind);
            });
        }
        Properties { to: Some(to), ..Properties::default() }.write(&mut message);
        put_section(&mut message, SectionKind::Data, &&b"m"[..]);
        client.send_with(0, &transfer(0, id), &message);
        client.lines()
    };
    // A queue is made for it once; a topic has its subscriber.
    assert_eq!(send(0, "q", Some(0)), ["0 disposition receiver 0 settled accepted"]);
    assert_eq!(send(1, "q", Some(0)), ["0 disposition receiver 1 settled accepted"]);
    let mut lines = send(2, "t", Some(1));
    lines.sort();
    assert!(lines[0].starts_with("0 disposition receiver 2 settled accepted"), "{lines:#?}");
    assert!(lines[1].starts_with("0 transfer 1 id=0"), "{lines:#?}");
    // What does not say that it is a JMS client's, or is for a temporary queue, makes none.
    for (id, to, kind) in [(3, "r", None), (4, "amq.gone", Some(2))] {
        let lines = send(id, to, kind);
        assert!(lines[0].contains("rejected amqp:not-found"), "{lines:#?}");
    }
    let queues = client.host.queues();
    assert!(queues.iter().any(|name| name == "q"), "{queues:?}");
    assert!(!queues.iter().any(|name| name == "r"), "{queues:?}");
}

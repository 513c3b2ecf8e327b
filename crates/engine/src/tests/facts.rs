//! Facts that are asked for: what keeps a consumer from messages, where those wait, where a publish goes.

use super::TestHost;
use crate::*;

fn host(lines: &[&str]) -> TestHost {
    let mut host = TestHost::new();
    for line in lines {
        host.run(line);
    }
    host
}

/// What holds the consumers of queue `q`, in their order.
#[track_caller]
fn check_holds(lines: &[&str], expected: &[Option<ConsumerHold>]) {
    let host = host(lines);
    let facts = host.engine.queue_facts("/", "q").unwrap();
    let holds: Vec<_> = facts.consumers.iter().map(|consumer| consumer.hold).collect();
    assert_eq!(holds, expected, "{facts:#?}");
}

/// Of the messages of queue `q` in their order: ready ones as `BYTES/REQUEUES`.
#[track_caller]
fn check_messages(lines: &[&str], expected: &[&str]) {
    let host = host(lines);
    let shown = |ahead| match host.engine.message_facts("/", "q", ahead).unwrap() {
        FoundMessage::Waits(facts) => format!("{}/{}", facts.bytes, facts.requeues),
        FoundMessage::Paged => "page".to_owned(),
        FoundMessage::None => "none".to_owned(),
    };
    let found: Vec<_> = (0..expected.len() as u64).map(shown).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_holds_a_consumer_is_known() {
    let begin = ["a queue q", "a publish - q 1", "a publish - q 2"];
    let with = |more: &[&'static str]| [&begin[..], more].concat();
    check_holds(&with(&["b consume q c credit=1"]), &[Some(ConsumerHold::Credit)]);
    check_holds(&with(&["b consume q c"]), &[None]);
    check_holds(&with(&["b flow off", "b consume q c"]), &[Some(ConsumerHold::Flow)]);
    check_holds(
        &with(&["b credit messages=1", "b consume q c"]),
        &[Some(ConsumerHold::ChannelCredit)],
    );
    check_holds(&with(&["b consume q c granted"]), &[Some(ConsumerHold::Grant)]);
    check_holds(
        &["a queue q single-active", "b consume q c", "c consume q d"],
        &[None, Some(ConsumerHold::Second)],
    );
}

#[test]
fn who_has_not_settled_is_known() {
    let host =
        host(&["a queue q timeout=5000", "b consume q c", "a publish - q 1", "a publish - q 2"]);
    let facts = host.engine.queue_facts("/", "q").unwrap();
    let out = &facts.out[0];
    assert_eq!((out.consumer, out.messages), (Some("c"), 2));
    let (deadline, timeout) = out.deadline.unwrap();
    assert!(deadline > host.now && timeout == std::time::Duration::from_secs(5));
    assert!(host.engine.queue_facts("/", "none").is_err());
    assert!(host.engine.queue_facts("none", "q").is_err());
}

#[test]
fn messages_are_found_in_the_order_in_which_they_are_handed_out() {
    check_messages(
        &["a queue q priorities=1", "a publish - q 1", "a publish - q 22 priority=1"],
        &["2/0", "1/0", "none"],
    );
    check_messages(
        &["a queue q", "a publish - q 1", "a publish - q 22", "a get q", "a requeue 1"],
        &["1/1", "2/0", "none"],
    );
    check_messages(&["a queue q", "a publish - q 1", "a get q"], &["none"]);
}

#[test]
fn where_a_publish_goes_is_known_and_nothing_is_sent() {
    let mut host = host(&[
        "a queue q length=0 overflow=reject",
        "a exchange x fanout",
        "a exchange y fanout internal",
        "a bind x @y k",
        "a bind y q k",
        "a user ann hash",
        "a permit ann .* x .*",
        "a user bob hash",
        "a permit bob .* none .*",
    ]);
    let mut facts = |exchange, user| {
        let content = Content {
            format: Format(1),
            properties: b"",
            body: b"",
            shared: None,
            persistent: true,
            priority: 0,
            ttl: None,
        };
        let publish = Publish {
            exchange,
            routing_key: "k",
            also_to: &[],
            mandatory: false,
            retain: Retain::No,
            not_before: None,
            transaction: None,
            content,
        };
        host.engine.publish_facts("/", &publish, user)
    };
    let found = facts("x", None).unwrap();
    assert_eq!(found.exchanges, ["x", "y"]);
    let queues: Vec<_> = found.queues.iter().map(|it| (it.name.as_str(), it.full)).collect();
    assert_eq!(queues, [("q", Some(Overflow::RejectPublish))]);
    let users: Vec<_> =
        found.users.iter().map(|(user, why)| (user.as_str(), why.is_some())).collect();
    assert_eq!(users, [("ann", false), ("bob", true)]);
    assert!(facts("y", Some("ann")).unwrap().closed.is_some());
    assert!(facts("none", None).is_err());
    assert!(facts("x", Some("nobody")).unwrap().users[0].1.is_some());
    let listed = host.engine.list_queues().next().unwrap();
    assert_eq!((listed.ready, listed.counters.published), (0, 0));
}

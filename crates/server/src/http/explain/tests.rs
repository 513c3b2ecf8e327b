//! Facts as values, and the sentences that they lead to.

use super::words::{ConnectionFacts, Explanation, connection, message, publish, queue};
use angarium_engine::{
    ChannelId, ConnectionId, ConsumerFacts, ConsumerHold, Credit, Death, DeathReason, Discards,
    Followed, FoundMessage, MessageContent, MessageFacts, OutFacts, Overflow, PublishFacts,
    QueueCounters, QueueFacts, QueueListing, QueueOptions, ReachedQueue, Refusal, RefusalKind,
    Time,
};
use angarium_node::WaitsFor;
use std::time::Duration;

const CHANNEL: ChannelId = ChannelId { connection: ConnectionId(4), number: 1 };
const NOW: Time = Time(1_000_000_000);

fn after(seconds: u64) -> Time {
    NOW.plus(Duration::from_secs(seconds))
}

fn client(_: ChannelId) -> String {
    "connection 4".to_owned()
}

fn facts<'a>(
    options: &'a QueueOptions,
    ready: u64,
    consumers: Vec<ConsumerFacts<'a>>,
) -> QueueFacts<'a> {
    let listing = QueueListing {
        vhost: "/",
        name: "q",
        options,
        followed: Followed::default(),
        ready,
        ready_bytes: 0,
        unsettled: 0,
        resident_bytes: 0,
        consumers: consumers.len(),
        unreadable: None,
        counters: QueueCounters::default(),
        discarded: Discards::default(),
    };
    QueueFacts {
        listing,
        options,
        delivery_limit: Some(20),
        is_full: false,
        is_resting: false,
        is_returning: false,
        is_loading: false,
        is_shared: false,
        is_own: false,
        consumers,
        out: Vec::new(),
        expires_at: None,
    }
}

fn consumer(hold: Option<ConsumerHold>) -> ConsumerFacts<'static> {
    ConsumerFacts {
        channel: CHANNEL,
        name: "c",
        presettled: false,
        filter: None,
        unsettled: 2,
        credit: Credit { messages: 2, bytes: 0 },
        channel_credit: Credit::default(),
        hold,
    }
}

#[track_caller]
fn check(told: &Explanation, state: &str, because: &[&str], to_move: &[&str]) {
    assert!(told.state.contains(state), "{told:#?}");
    assert_eq!(told.because, because);
    assert_eq!(told.to_move, to_move);
}

#[track_caller]
fn check_consumer(hold: Option<ConsumerHold>, why: &str, to_move: &[&str]) {
    let options = QueueOptions::default();
    let told = queue(&facts(&options, 1, vec![consumer(hold)]), &client, NOW);
    check(&told, "1 message waits", &[&format!("consumer 'c' of connection 4: {why}")], to_move);
}

#[test]
fn a_queue_without_consumers_waits_for_one() {
    let options = QueueOptions::default();
    let told = queue(&facts(&options, 3, Vec::new()), &client, NOW);
    check(
        &told,
        "queue 'q' in virtual host '/': 3 messages wait, 0 out and not settled, 0 consumers",
        &["nobody consumes from it"],
        &["a client consumes from it"],
    );
    let own = QueueFacts { is_own: true, ..facts(&options, 1, Vec::new()) };
    let told = queue(&own, &client, NOW);
    check(
        &told,
        "1 message waits",
        &["it is the queue of a session, which no client holds now"],
        &["the client of the session connects again"],
    );
    check(&queue(&facts(&options, 0, Vec::new()), &client, NOW), "0 messages wait", &[], &[]);
}

#[test]
fn what_holds_a_consumer_is_said_with_what_ends_it() {
    check_consumer(
        Some(ConsumerHold::Credit),
        "no credit: it may have 2 messages unsettled and has 2",
        &["the consumer settles what it has, or asks for more at once (prefetch)"],
    );
    check_consumer(
        Some(ConsumerHold::Second),
        "it waits: another consumer gets everything (single active consumer)",
        &["the active consumer goes on, or goes"],
    );
    check_consumer(
        Some(ConsumerHold::Grant),
        "no credit: its client has granted no further deliveries",
        &["the client grants more credit (a flow with link-credit)"],
    );
    check_consumer(None, "it can take messages; they are on their way, or it is slow to read", &[]);
}

#[test]
fn who_has_not_settled_and_since_when_is_said() {
    let options = QueueOptions::default();
    let timeout = Duration::from_secs(1800);
    let out = OutFacts {
        channel: CHANNEL,
        consumer: Some("c"),
        messages: 2,
        deadline: Some((after(1740), timeout)),
    };
    let mut facts = facts(&options, 0, vec![consumer(Some(ConsumerHold::Credit))]);
    facts.out = vec![out];
    facts.listing.unsettled = 2;
    check(
        &queue(&facts, &client, NOW),
        "2 out and not settled",
        &[
            "2 messages are out to connection 4: consumer 'c' has not settled them, the oldest for 60 s; \
           its channel is closed in 29 min",
        ],
        &["the clients that have its messages settle them, or go"],
    );
}

#[test]
fn limits_and_policies_are_named() {
    let options = QueueOptions {
        length_max: Some(1),
        overflow: Overflow::RejectPublish,
        message_ttl: Some(Duration::from_secs(60)),
        dead_letter_exchange: Some("dead".to_owned()),
        ..QueueOptions::default()
    };
    let mut facts = facts(&options, 1, Vec::new());
    facts.is_full = true;
    facts.listing.followed = Followed { policy: Some("p"), operator_policy: None };
    facts.expires_at = Some(after(9));
    check(
        &queue(&facts, &client, NOW),
        "1 message waits",
        &[
            "nobody consumes from it",
            "it follows the policy 'p'",
            "it is full (1 message): new messages are refused",
            "a message that has waited 60 s goes to exchange 'dead'",
            "it is deleted in 9 s unless somebody uses it",
        ],
        &["a client consumes from it"],
    );
}

#[test]
fn a_message_tells_where_it_came_from_and_what_it_waits_for() {
    let options = QueueOptions::default();
    let mut selective = consumer(None);
    selective.filter = Some("a = 1");
    let facts = facts(&options, 5, vec![selective]);
    let death = Death {
        reason: DeathReason::Expired,
        queue: "before".to_owned(),
        exchange: "x".to_owned(),
        routing_keys: Vec::new(),
        count: 2,
        time: NOW,
        original_ttl: None,
    };
    let content = MessageContent {
        exchange: "dlx".to_owned(),
        routing_key: "k".to_owned(),
        delayed: false,
        deaths: vec![death],
    };
    let waits = MessageFacts {
        ahead: 2,
        priority: 0,
        bytes: 7,
        durable: true,
        requeues: 1,
        redelivered: true,
        expires: Some(after(5)),
        is_stored_only: false,
        is_unreadable: false,
        is_barred: false,
        content: Some(content),
        taking_filters: Vec::new(),
    };
    let told = message(&FoundMessage::Waits(Box::new(waits)), 3, &facts, &client, NOW);
    check(
        &told,
        "message 3 of queue 'q' in virtual host '/' waits: 7 bytes, persistent",
        &[
            "it was published to exchange 'dlx' with key 'k'",
            "it is a dead letter of queue 'before' (its time to live passed, 2 times), published to \
             exchange 'x'",
            "it came back 1 time: more than 20 make it a dead letter",
            "no selector of the queue's consumers takes it",
            "it expires in 5 s: then it is gone",
            "2 messages are handed out before it",
            "consumer 'c' of connection 4: it takes only messages that its selector takes: a = 1",
        ],
        &[
            "a consumer comes whose selector takes it, or that has none",
            "a consumer comes whose selector takes them, or that has none",
        ],
    );
    let told = message(&FoundMessage::None, 9, &facts, &client, NOW);
    check(
        &told,
        "message 9 of queue 'q' in virtual host '/' does not wait: 5 messages wait",
        &[],
        &[],
    );
}

#[test]
fn a_publish_tells_where_it_goes_and_who_would_be_refused() {
    let reached = ReachedQueue {
        name: "q".to_owned(),
        ready: 1,
        consumers: 0,
        full: Some(Overflow::DropHead),
        durable: true,
    };
    let refused = Refusal::new(RefusalKind::AccessRefused, "write access refused");
    let mut facts = PublishFacts {
        exchanges: vec!["x".to_owned(), "y".to_owned()],
        queues: vec![reached],
        is_cut: false,
        is_conditional: false,
        has_subjects: false,
        closed: None,
        users: vec![("ada".to_owned(), None), ("eve".to_owned(), Some(refused))],
    };
    check(
        &publish(&facts, "x", "k"),
        "a message to exchange 'x' with key 'k' reaches 1 queue",
        &[
            "it passes the exchanges 'x', 'y'",
            "queue 'q': 1 message waits before it, 0 consumers; it is full: each new message pushes \
             the oldest out",
            "user 'eve' would be refused: write access refused",
            "users that may publish it: 'ada'",
        ],
        &["`angarium permission set`, or `permission subjects`, for who is refused"],
    );
    (facts.queues, facts.users, facts.exchanges) = (Vec::new(), Vec::new(), Vec::new());
    check(
        &publish(&facts, "", "none"),
        "to the default exchange with key 'none' reaches no queue: it would be dropped",
        &[],
        &["a binding that matches the key, or another key"],
    );
}

#[test]
fn a_connection_that_is_held_tells_by_what() {
    let mut facts = ConnectionFacts {
        who: "connection 4".to_owned(),
        state: "running",
        waits_for: Some(WaitsFor::Consumers),
        unsent_bytes: 0,
        slow: None,
        channels: vec![(1, 2, 3), (2, 0, 0)],
    };
    check(
        &connection(&facts),
        "connection 4 is running and is not read from",
        &[
            "it puts more into a queue than the consumers of that take",
            "channel 1: 2 deliveries are not settled",
            "channel 1: 3 publishes wait for its confirm",
        ],
        &["the queue gets more or faster consumers: `angarium explain queue`"],
    );
    (facts.waits_for, facts.channels) = (None, Vec::new());
    check(&connection(&facts), "is read from", &["nothing holds it: it waits for its client"], &[]);
}

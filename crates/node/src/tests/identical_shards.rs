//! What a client hears is the same, and in the same order, whichever shard it is connected to.

use super::broker::Broker;
use super::host::Host;
use angarium_engine::Request;
use angarium_protocol::amqp091::codec::{Method, Properties, Table, content};
use angarium_protocol::amqp091::frame;

const QUEUES: [&str; 3] = ["a", "b", "nosuch"];
/// Where a client is, and with how many shards.
const PLACES: [(usize, usize); 4] = [(0, 1), (0, 3), (1, 2), (2, 3)];

/// What a client says: a word, and what it is about where that may be chosen.
fn write(said: &str, out: &mut Vec<u8>) {
    let (verb, about) = said.split_once(' ').unwrap_or((said, ""));
    match verb {
        "publish" => publish(about, out),
        // In pieces, and for nobody if it is not taken at once, which is not offered.
        "dribble" => dribble(about, out),
        "header" => content::write_header(out, 1, 4, &[]),
        "body" => frame::write_body(out, 1, b"word", 131_072),
        "body-begun" => out.extend([3, 0, 1, 0, 0, 0, 4, b'w', b'o']),
        // Methods with less in them than they say.
        "publish-badly" => out.extend([1, 0, 1, 0, 0, 0, 5, 0, 60, 0, 40, 0, frame::END]),
        "nack-badly" => out.extend([1, 0, 1, 0, 0, 0, 5, 0, 60, 0, 120, 0, frame::END]),
        // A frame that does not end where it should.
        "broken" => out.extend([1, 0, 1, 0, 0, 0, 4, 0, 60, 0, 80, 0]),
        "goodbye" => {
            Method::ConnectionClose { reply_code: 200, reply_text: "", class_id: 0, method_id: 0 }
                .write_frame(0, out);
        }
        _ => about_queue(verb, about)
            .or_else(|| about_deliveries(verb, about))
            .or_else(|| about_channel(verb))
            .unwrap_or_else(|| panic!("nobody says {said}"))
            .write_frame(1, out),
    }
}

fn about_queue<'a>(verb: &str, queue: &'a str) -> Option<Method<'a>> {
    Some(match verb {
        "declare" => declare(queue, false),
        "look" => declare(queue, true),
        "replies" => declare("amq.rabbitmq.reply-to", true),
        "delete" => {
            let (if_unused, if_empty, no_wait) = (false, true, true);
            Method::QueueDelete { ticket: 0, queue, if_unused, if_empty, no_wait }
        }
        "purge" => Method::QueuePurge { ticket: 0, queue, no_wait: false },
        "get" => Method::BasicGet { ticket: 0, queue, no_ack: false },
        "take" => Method::BasicGet { ticket: 0, queue, no_ack: true },
        "exchange" => Method::ExchangeDeclare {
            ticket: 0,
            exchange: "ex",
            kind: queue,
            passive: false,
            durable: false,
            auto_delete: false,
            internal: false,
            no_wait: false,
            arguments: Table::default(),
        },
        _ => return None,
    })
}

fn declare(queue: &str, passive: bool) -> Method<'_> {
    Method::QueueDeclare {
        ticket: 0,
        queue,
        passive,
        durable: false,
        exclusive: false,
        auto_delete: false,
        no_wait: false,
        arguments: Table::default(),
    }
}

fn about_deliveries(verb: &str, number: &str) -> Option<Method<'static>> {
    let number: u16 = number.parse().ok()?;
    let delivery_tag = number.into();
    let qos = |global| Method::BasicQos { prefetch_size: 0, prefetch_count: number, global };
    Some(match verb {
        "ack" => Method::BasicAck { delivery_tag, multiple: false },
        "ack-to" => Method::BasicAck { delivery_tag, multiple: true },
        "nack" => Method::BasicNack { delivery_tag, multiple: false, requeue: true },
        "nack-to" => Method::BasicNack { delivery_tag, multiple: true, requeue: true },
        "reject" => Method::BasicReject { delivery_tag, requeue: true },
        "qos" => qos(false),
        "qos-all" => qos(true),
        _ => return None,
    })
}

fn about_channel(verb: &str) -> Option<Method<'static>> {
    Some(match verb {
        "open" => Method::ChannelOpen { out_of_band: "" },
        "close" => {
            Method::ChannelClose { reply_code: 200, reply_text: "", class_id: 0, method_id: 0 }
        }
        "close-ok" => Method::ChannelCloseOk {},
        "confirm" => Method::ConfirmSelect { no_wait: false },
        "tx" => Method::TxSelect {},
        "commit" => Method::TxCommit {},
        "rollback" => Method::TxRollback {},
        "recover" => Method::BasicRecover { requeue: true },
        "access" => Method::AccessRequest {
            realm: "",
            exclusive: false,
            passive: false,
            active: false,
            write: false,
            read: false,
        },
        _ => return None,
    })
}

/// `EXCHANGE/KEY`: a message that is to be returned where no queue takes it.
fn publish(about: &str, out: &mut Vec<u8>) {
    let (exchange, routing_key) = about.split_once('/').expect("an exchange and a key");
    content::PublishMethod { exchange, routing_key, mandatory: true, immediate: false }
        .write_frame(1, out);
    let mut properties = Vec::new();
    Properties { delivery_mode: Some(1), ..Properties::default() }.encode(&mut properties);
    content::write_header(out, 1, 4, &properties);
    frame::write_body(out, 1, b"word", 131_072);
}

fn dribble(routing_key: &str, out: &mut Vec<u8>) {
    content::PublishMethod { exchange: "", routing_key, mandatory: false, immediate: true }
        .write_frame(1, out);
    content::write_header(out, 1, 4, &[]);
    frame::write_body(out, 1, b"wo", 131_072);
    frame::write_body(out, 1, b"rd", 131_072);
}

/// A client at one of the places, with a queue `a`, and its channel closed again.
fn client((shard, shards): (usize, usize)) -> (Host, usize) {
    let mut host = Host::new(shards);
    let client = host.client_on(shard);
    host.declare(client, "a");
    host.transcript(client);
    (host, client)
}

/// Says some things at once; what is heard then.
fn say(host: &mut Host, client: usize, said: &[String]) -> Vec<String> {
    let mut bytes = Vec::new();
    said.iter().for_each(|word| write(word, &mut bytes));
    host.send_bytes(client, &bytes);
    host.settle_down();
    host.transcript(client)
}

/// `said` at once, with commas between: the names of the methods that are heard, with what matters of them.
#[track_caller]
fn check(said: &str, heard: &[&str]) {
    let said: Vec<String> = said.split(", ").map(str::to_owned).collect();
    for place in PLACES {
        let (mut host, client) = client(place);
        let all = say(&mut host, client, &said);
        let is_right = all.len() == heard.len()
            && all.iter().zip(heard).all(|(it, parts)| parts.split('*').all(|p| it.contains(p)));
        assert!(is_right, "{place:?}: {said:?}: heard {all:#?}, not {heard:#?}");
    }
}

#[test]
fn what_was_said_before_a_channel_is_closed_is_answered_before() {
    check(
        "confirm, publish /nosuch, publish /a, close",
        &["ConfirmSelectOk", "BasicReturn", "BasicAck*delivery_tag: 2", "ChannelCloseOk"],
    );
    check("publish nosuch/a, close", &["ChannelClose {*404", "ChannelCloseOk"]);
    check(
        "ack 7, close, close-ok, open",
        &["ChannelClose {*406", "ChannelCloseOk", "ChannelOpenOk"],
    );
}

#[test]
fn what_was_said_before_a_connection_is_closed_is_answered_before() {
    check(
        "confirm, publish /nosuch, publish /a, goodbye",
        &["ConfirmSelectOk", "BasicReturn", "BasicAck*delivery_tag: 2", "ConnectionCloseOk"],
    );
    check("publish nosuch/a, goodbye", &["ChannelClose {*404", "ConnectionCloseOk"]);
}

#[test]
fn what_was_said_before_a_mistake_is_answered_before() {
    check("publish /nosuch, commit", &["BasicReturn", "ChannelClose {*406"]);
    check("publish nosuch/a, commit, look a", &["ChannelClose {*404"]);
    check("publish /nosuch, open", &["BasicReturn", "ConnectionClose {*504"]);
    check("publish /nosuch, broken", &["BasicReturn", "ConnectionClose {*501"]);
    check("publish nosuch/a, broken", &["ChannelClose {*404", "ConnectionClose {*501"]);
}

#[test]
fn no_mistake_is_one_where_the_channel_has_failed_before() {
    for mistake in MISTAKES {
        check(&format!("publish nosuch/a, {mistake}"), &["ChannelClose {*404"]);
        check(&format!("publish /nosuch, {mistake}"), &["BasicReturn", "ConnectionClose {*5"]);
    }
}

#[test]
fn what_is_answered_without_the_queues_waits_its_turn() {
    for (said, answer) in [
        ("qos 1", "BasicQosOk"),
        ("access", "AccessRequestOk"),
        ("replies", "QueueDeclareOk"),
        ("tx", "TxSelectOk"),
    ] {
        check(&format!("publish /nosuch, {said}"), &["BasicReturn", answer]);
        check(&format!("publish nosuch/a, {said}"), &["ChannelClose {*404"]);
    }
    check("confirm, publish nosuch/a, confirm", &["ConfirmSelectOk", "ChannelClose {*404"]);
}

#[test]
fn a_refusal_names_the_method_that_was_refused() {
    check("ack 7", &["ChannelClose {*class_id: 60, method_id: 80"]);
    check("reject 7", &["ChannelClose {*class_id: 60, method_id: 90"]);
    check("nack 7", &["ChannelClose {*class_id: 60, method_id: 120"]);
    check("publish nosuch/a", &["ChannelClose {*class_id: 60, method_id: 40"]);
}

/// What a client may say, as often as it is in here; with `Q`, a queue, and `N`, a small number. With which
/// method it rejects is known to home only as far as it always uses the same.
const WORDS: &[&str] = &[
    "publish /Q",
    "publish /Q",
    "publish /Q",
    "publish ex/Q",
    "publish amq.fanout/Q",
    "declare Q",
    "declare Q",
    "look Q",
    "delete Q",
    "purge Q",
    "get Q",
    "get Q",
    "get Q",
    "take Q",
    "ack N",
    "ack-to N",
    "nack N",
    "nack-to N",
    "qos N",
    "qos-all N",
    "confirm",
    "tx",
    "commit",
    "rollback",
    "recover",
    "access",
    "replies",
    "exchange fanout",
    "exchange direct",
    "close",
];

/// What ends a connection, unless its channel has failed before.
const MISTAKES: &[&str] =
    &["open", "header", "body", "body-begun", "dribble a", "publish-badly", "nack-badly"];

/// Numbers that look drawn, the same for the same seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        let Draw(last) = self;
        *last =
            last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*last >> 33) as usize % count
    }

    /// What is said at once: nothing but a new channel after the end of one, and now and then a mistake.
    fn words(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        for _ in 0..=self.below(6) {
            let (queue, number) = (QUEUES[self.below(3)], self.below(5).to_string());
            let word = WORDS[self.below(WORDS.len())];
            words.push(word.replace('Q', queue).replace('N', &number));
            if word == "close" {
                words.push("open".to_owned());
                return words;
            }
        }
        if self.below(20) == 0 {
            words.push(MISTAKES[self.below(MISTAKES.len())].to_owned());
        }
        words
    }
}

/// What a client hears that says what the seed has it say.
fn course(place: (usize, usize), seed: u64) -> Vec<String> {
    let mut draw = Draw(seed);
    let (mut host, client) = client(place);
    let mut course = Vec::new();
    for _ in 0..30 {
        let said = draw.words();
        let (confirms, mut heard): (Vec<_>, Vec<_>) = say(&mut host, client, &said)
            .into_iter()
            .partition(|method| method.contains("BasicAck") || method.contains("BasicNack"));
        let has_failed = heard.iter().any(|method| method.contains("ChannelClose {"));
        if has_failed {
            let again = ["close-ok".to_owned(), "open".to_owned()];
            heard.extend(say(&mut host, client, &again));
        }
        // Several may be confirmed at once.
        let confirmed = confirms.last().map(|method| method.split(',').next().map(str::to_owned));
        course.push(format!("{said:?}: {heard:?} {confirmed:?}"));
        if host.is_closed(client) {
            break;
        }
    }
    course
}

#[test]
fn a_client_that_says_anything_hears_the_same_everywhere() {
    for seed in 0..100 {
        let alone = course(PLACES[0], seed);
        for place in &PLACES[1..] {
            let other = course(*place, seed);
            for (alone, other) in alone.iter().zip(&other) {
                assert_eq!(alone, other, "seed {seed} at {place:?}");
            }
            assert_eq!(alone.len(), other.len(), "seed {seed} at {place:?}");
        }
    }
}

/// Gives the clients' user all rights, or none.
fn set_rights(host: &mut Host, has_them: bool) {
    let names = || if has_them { ".*" } else { "^$" }.to_owned();
    let (user, vhost) = ("user".to_owned(), "/".to_owned());
    let (configure, write, read) = (names(), names(), names());
    let request = Request::SetPermissions { user, vhost, configure, write, read };
    host.operate("/", request).unwrap();
}

#[test]
fn rights_that_come_back_are_had_again() {
    for (shard, shards) in PLACES {
        let mut host = Host::new(shards);
        // It has used no queue, so that home does not know it yet.
        let client = host.client_on(shard);
        set_rights(&mut host, false);
        host.transcript(client);
        let words = |text: &str| text.split(", ").map(str::to_owned).collect::<Vec<_>>();
        let heard = say(&mut host, client, &words("declare a"));
        assert!(
            heard.len() == 1 && heard[0].contains("ChannelClose { reply_code: 403"),
            "{heard:?}"
        );
        set_rights(&mut host, true);
        let heard = say(&mut host, client, &words("close-ok, open, declare a"));
        assert!(heard.len() == 2 && heard[1].contains("QueueDeclareOk"), "{heard:?}");
    }
}

#[test]
fn a_nats_client_hears_all_before_it_is_told_of_a_mistake() {
    for (shard, shards) in PLACES {
        let mut broker = Broker::new(shards);
        broker.play(&format!("a@{shard}> SUB _INBOX.x 1"));
        broker.play(
            "a> PUB $QUEUE.nosuch _INBOX.x 0||PING
             a< HMSG _INBOX.x 1 45 45|NATS/1.0 503|Nats-Subject: $QUEUE.nosuch|||PONG
             a> SUB s 1|PUB $QUEUE.nosuch _INBOX.x 0||PING|WHAT
             a< HMSG _INBOX.x 1 45 45|NATS/1.0 503|Nats-Subject: $QUEUE.nosuch|||PONG|\
             -ERR 'Unknown Protocol Operation'",
        );
        assert!(!broker.is_connected("a"));
    }
}

#[test]
fn a_nats_client_hears_all_before_it_begins_anew_or_ends() {
    let request = "PUB $QUEUE.nosuch _INBOX.x 0\r\n\r\n";
    for (said, heard) in [
        (r#"CONNECT {"user":"user","account":"x"}"#, "-ERR 'Authorization Violation'"),
        (r#"CONNECT {"protocol":7}"#, "-ERR 'invalid client protocol'"),
        (r#"CONNECT {"verbose":true,"user":"user","pass":"secret"}"#, "+OK"),
        ("-ERR 'enough'", ""),
    ] {
        for (shard, shards) in PLACES {
            let mut broker = Broker::new(shards);
            broker.play(&format!("a@{shard}> SUB _INBOX.x 1"));
            broker.heard("a");
            broker.say("a", &format!("{request}{said}\r\n"));
            let all = broker.heard("a");
            let (first, last) = all.split_once("\r\n\r\n\r\n").unwrap_or((&all, ""));
            assert!(first.contains(" 503"), "{shard}/{shards}: {said}: {all}");
            assert_eq!(last.trim_end(), heard, "{shard}/{shards}: {said}: {all}");
        }
    }
}

#[test]
fn who_says_nothing_more_is_answered_before_it_is_dropped() {
    for (shard, shards) in PLACES {
        let mut broker = Broker::new(shards);
        broker.play(&format!("a@{shard}> PING"));
        broker.heard("a");
        broker.send("a", "PING\r\nSUB s 1\r\n");
        while broker.is_awaited("a") {
            assert!(broker.turn());
        }
        // What is left of it is sent.
        broker.turn();
        broker.play("a< PONG");
    }
}

#[test]
fn verbose_clients_are_answered_in_order() {
    for (shard, shards) in PLACES {
        let mut broker = Broker::new(shards);
        broker.connect("a", shard);
        let connect =
            r#"{"verbose":true,"headers":true,"no_responders":true,"user":"user","pass":"secret"}"#;
        broker.say("a", &format!("CONNECT {connect}\r\nSUB _INBOX.x 1\r\n"));
        broker.heard("a");
        broker.say("a", "PUB $QUEUE.nosuch _INBOX.x 0\r\n\r\nPING\r\nSUB s 2\r\n");
        let heard = broker.heard("a");
        let told: Vec<&str> = heard
            .lines()
            .filter(|line| ["+OK", "HMSG", "PONG"].iter().any(|word| line.starts_with(word)))
            .map(|line| &line[..3])
            .collect();
        assert_eq!(told, ["+OK", "HMS", "PON", "+OK"], "{shard}/{shards}: {heard}");
    }
}

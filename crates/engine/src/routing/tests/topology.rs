//! What may be declared and bound, what follows from a change, and what is listed.

use super::*;
use crate::interface::limits::{KEY_BYTES_MAX, NAME_BYTES_MAX, TOPIC_WORDS_MAX};

#[test]
fn a_headers_exchange_refuses_what_it_cannot_compare_by() {
    let mut host = TestHost::new(&["q"]);
    for value in [text("some"), text(""), Value::Int(1), Value::Null] {
        let arguments = arguments(&[("x-match", value)]);
        let refusal =
            host.router.bind("amq.headers", &target("q"), "", arguments.clone()).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::PreconditionFailed);
        assert!(refusal.text.contains("x-match"), "{}", refusal.text);
        // Elsewhere it is an argument like any other.
        assert!(host.router.bind("amq.fanout", &target("q"), "", arguments).unwrap().changed);
    }
}

#[test]
fn a_binding_is_its_source_target_key_and_arguments() {
    let mut host = TestHost::new(&["a", "b"]);
    let nan = arguments(&[("x", Value::Float(f64::NAN))]);
    let list = arguments(&[("x", Value::List(vec![Value::Map(nan.clone())]))]);
    let cases = [
        ("amq.direct", "a", "k", Arguments::new()),
        ("amq.direct", "a", "k", arguments(&[("x", Value::Int(1))])),
        ("amq.direct", "a", "k", arguments(&[("x", Value::Timestamp(1))])),
        ("amq.direct", "a", "k", nan),
        ("amq.direct", "a", "k", list),
        ("amq.direct", "a", "l", Arguments::new()),
        ("amq.direct", "b", "k", Arguments::new()),
        ("amq.direct", ">amq.fanout", "k", Arguments::new()),
        ("amq.fanout", "a", "k", Arguments::new()),
        ("amq.topic", "a", "k", Arguments::new()),
    ];
    for (count, (source, to, key, arguments)) in cases.iter().enumerate() {
        for again in [false, true] {
            let before = host.router.generation;
            let change = host.router.bind(source, &target(to), key, arguments.clone()).unwrap();
            assert_eq!(change.changed, !again);
            assert_eq!(host.router.generation > before, !again);
        }
        assert_eq!(host.binding_count(), count + 1);
    }
    for (count, (source, to, key, arguments)) in cases.iter().enumerate() {
        for again in [false, true] {
            let change = host.router.unbind(source, &target(to), key, arguments).unwrap();
            assert_eq!(change.changed, !again, "{source} {to} {key} {arguments:?}");
            assert_eq!(change.bindings_removed, usize::from(!again));
        }
        assert_eq!(host.binding_count(), cases.len() - count - 1);
    }
}

#[test]
fn arguments_alone_tell_any_number_of_bindings_apart() {
    let mut host = TestHost::new(&["a"]);
    let number = |number| arguments(&[("number", Value::Int(number))]);
    for value in 0..5_000 {
        let change = host.router.bind("amq.headers", &target("a"), "", number(value)).unwrap();
        assert!(change.changed, "{value}");
    }
    for value in (0..5_000).rev() {
        let change = host.router.unbind("amq.headers", &target("a"), "", number(value)).unwrap();
        assert!(change.changed, "{value}");
    }
    assert_eq!(host.binding_count(), 0);
}

#[test]
fn declarations_have_to_agree() {
    let same = ExchangeOptions { alternate: Some("alt".into()), ..options(Direct) };
    let delaying = ExchangeOptions { delaying: true, ..same.clone() };
    let table = [
        (same.clone(), same.clone(), None),
        (
            ExchangeOptions { kind: Fanout, ..same.clone() },
            same.clone(),
            Some("type: received 'direct', current is 'fanout'"),
        ),
        (
            same.clone(),
            ExchangeOptions { durable: true, ..same.clone() },
            Some("durable: received true, current is false"),
        ),
        (
            same.clone(),
            ExchangeOptions { auto_delete: true, ..same.clone() },
            Some("auto_delete: received true, current is false"),
        ),
        (
            ExchangeOptions { internal: true, ..same.clone() },
            same.clone(),
            Some("internal: received false, current is true"),
        ),
        (
            delaying.clone(),
            same.clone(),
            Some("type: received 'direct', current is 'delayed-message'"),
        ),
        (
            ExchangeOptions { kind: Topic, ..delaying.clone() },
            delaying,
            Some("delayed-type: received 'direct', current is 'topic'"),
        ),
        (
            same.clone(),
            options(Direct),
            Some("alternate-exchange: received none, current is 'alt'"),
        ),
        (options(Direct), same, Some("alternate-exchange: received 'alt', current is none")),
    ];
    for (current, declared, expected) in table {
        let mut host = TestHost::new(&[]);
        host.declare("x", &current);
        let again = host.router.declare_exchange("x", &declared);
        match expected {
            None => assert_eq!(again.unwrap(), Change::default()),
            Some(expected) => {
                let refusal = again.unwrap_err();
                assert_eq!(refusal.kind, RefusalKind::PreconditionFailed);
                let expected = format!("exchange 'x' in vhost '/' differs in {expected}");
                assert_eq!(refusal.text, expected);
            }
        }
        assert_eq!(host.router.exchange("x").unwrap(), &current);
    }
}

#[test]
fn what_is_not_there_or_not_allowed_is_refused_in_words() {
    use RefusalKind::{AccessRefused, NotFound, PreconditionFailed};
    let mut host = TestHost::new(&["q"]);
    let default = "operation not permitted on the default exchange";
    let router = &mut host.router;
    let bind = |router: &mut Router, source: &str, to: &str| {
        router.bind(source, &target(to), "", Arguments::new()).map(|_| ())
    };
    let unbind = |router: &mut Router, source: &str, to: &str| {
        router.unbind(source, &target(to), "", Arguments::new()).map(|_| ())
    };
    let declared = |router: &mut Router, name: &str| {
        router.declare_exchange(name, &options(Direct)).map(|_| ())
    };
    bind(router, "amq.fanout", "q").unwrap();
    declared(router, "used").unwrap();
    bind(router, "used", "q").unwrap();
    let reserved = |name: &str| format!("exchange name '{name}' contains reserved prefix 'amq.*'");
    let table = [
        (bind(router, "x", "q"), NotFound, "no exchange 'x' in vhost '/'".to_owned()),
        (bind(router, "amq.fanout", "r"), NotFound, "no queue 'r' in vhost '/'".to_owned()),
        (bind(router, "amq.fanout", ">y"), NotFound, "no exchange 'y' in vhost '/'".to_owned()),
        (bind(router, "", "q"), AccessRefused, default.to_owned()),
        (bind(router, "amq.fanout", ">"), AccessRefused, default.to_owned()),
        (unbind(router, "", "q"), AccessRefused, default.to_owned()),
        (unbind(router, "amq.fanout", ">"), AccessRefused, default.to_owned()),
        (declared(router, ""), AccessRefused, default.to_owned()),
        (declared(router, "amq.x"), AccessRefused, reserved("amq.x")),
        (router.delete_exchange("", false).map(|_| ()), AccessRefused, default.to_owned()),
        (
            router.delete_exchange("amq.topic", false).map(|_| ()),
            AccessRefused,
            reserved("amq.topic"),
        ),
        (
            router.delete_exchange("used", true).map(|_| ()),
            PreconditionFailed,
            "exchange 'used' in vhost '/' in use".to_owned(),
        ),
        (router.exchange("x").map(|_| ()), NotFound, "no exchange 'x' in vhost '/'".to_owned()),
    ];
    for (outcome, kind, text) in table {
        assert_eq!(outcome.unwrap_err(), Refusal::new(kind, text));
    }
    // IncrementalSnapshot away what is not there is done already.
    for (source, to) in [("x", "q"), ("amq.fanout", "r"), ("amq.fanout", ">y"), ("amq.topic", "q")]
    {
        assert!(!host.unbind(source, to, "").changed);
    }
    assert!(!host.router.delete_exchange("x", true).unwrap().changed);
    let keys = Keys { routing_key: "", also_to: &[] };
    assert_eq!(host.router.route_by("x", keys, &mut |_| (), &mut Vec::new()), None);
}

#[test]
fn limits_hold_at_and_above() {
    let limits = Limits { exchanges_max: 8, bindings_max: 3, ..Limits::default() };
    let mut router = Router::new("/", &crate::tests::CONVENTIONS.names, &limits, 1);
    router.queue_added("q", QueueKey(0), false);
    let limit = |outcome: Result<Change, Refusal>| {
        outcome.map(|change| change.changed).map_err(|refusal| refusal.kind)
    };
    let above = Err(RefusalKind::LimitExceeded);
    let long = "n".repeat(NAME_BYTES_MAX);
    let words = |count: usize| vec!["*"; count].join(".");
    let declare =
        |router: &mut Router, name: &str| limit(router.declare_exchange(name, &options(Direct)));
    let bind = |router: &mut Router, exchange: &str, key: &str| {
        limit(router.bind(exchange, &target("q"), key, Arguments::new()))
    };
    assert_eq!(declare(&mut router, &format!("{long}n")), above);
    assert_eq!(declare(&mut router, &long), Ok(true)); // The seventh.
    assert_eq!(declare(&mut router, "eighth"), Ok(true));
    assert_eq!(declare(&mut router, "ninth"), above);
    assert_eq!(declare(&mut router, "eighth"), Ok(false));
    assert!(router.delete_exchange("eighth", false).unwrap().changed);
    assert_eq!(declare(&mut router, "ninth"), Ok(true));

    let long = "k".repeat(KEY_BYTES_MAX);
    assert_eq!(bind(&mut router, "ninth", &format!("{long}k")), above);
    assert_eq!(bind(&mut router, "ninth", &long), Ok(true));
    assert_eq!(bind(&mut router, "amq.topic", &words(TOPIC_WORDS_MAX + 1)), above);
    assert_eq!(bind(&mut router, "ninth", &words(TOPIC_WORDS_MAX)), Ok(true));
    assert_eq!(bind(&mut router, "amq.topic", &words(TOPIC_WORDS_MAX)), Ok(true));
    assert_eq!(bind(&mut router, "amq.topic", "fourth"), above);
    assert_eq!(bind(&mut router, "ninth", &long), Ok(false));

    // What is put back after a restart was counted when it came.
    router.hold_auto_delete(true);
    assert_eq!(declare(&mut router, "tenth"), Ok(true));
    assert_eq!(bind(&mut router, "amq.topic", "fourth"), Ok(true));
    router.hold_auto_delete(false);
    assert_eq!(declare(&mut router, "eleventh"), above);
    assert_eq!(bind(&mut router, "amq.topic", "fifth"), above);
}

#[test]
fn auto_delete_exchanges_go_with_their_last_binding() {
    let gone = |change: &Change| -> Vec<String> {
        change.auto_deleted.iter().map(|deleted| deleted.name.clone()).collect()
    };
    let build = || {
        let mut host = TestHost::new(&["q", "r"]);
        let durable = ExchangeOptions { durable: true, ..auto_delete(Topic) };
        host.declare("root", &auto_delete(Fanout));
        host.declare("middle", &durable);
        host.declare("leaf", &auto_delete(Direct));
        host.declare("stays", &options(Direct));
        host.bind(&[
            ("root", ">middle", ""),
            ("middle", ">leaf", "#"),
            ("stays", ">leaf", ""),
            ("leaf", "q", "k"),
            ("leaf", "q", "l"),
        ]);
        host
    };
    // An exchange without bindings waits for its first.
    let mut host = build();
    assert!(gone(&host.unbind("leaf", "q", "k")).is_empty());
    let change = host.unbind("leaf", "q", "l");
    assert_eq!(gone(&change), ["leaf", "middle", "root"]);
    let durable: Vec<_> = change.auto_deleted.iter().map(|deleted| deleted.durable).collect();
    assert_eq!(durable, [false, true, false]);
    assert_eq!(change.bindings_removed, 4);
    assert!(host.router.exchange("stays").is_ok());
    assert_eq!(host.binding_count(), 0);

    // The same by the queue, and by an exchange on the way.
    let mut host = build();
    let change = host.router.queue_removed(QueueKey(0));
    assert_eq!(gone(&change), ["leaf", "middle", "root"]);
    assert_eq!(change.bindings_removed, 5);
    let mut host = build();
    let change = host.router.delete_exchange("leaf", false).unwrap();
    assert_eq!(gone(&change), ["middle", "root"]);

    // A binding to itself does not hold an exchange's deletion up, nor does a cycle.
    let mut host = TestHost::new(&["q"]);
    host.declare("one", &auto_delete(Fanout));
    host.declare("two", &auto_delete(Fanout));
    host.bind(&[("one", ">two", ""), ("two", ">one", ""), ("two", ">two", "")]);
    let change = host.router.delete_exchange("two", false).unwrap();
    assert_eq!(gone(&change), ["one"]);
    assert_eq!(host.binding_count(), 0);

    // While held, nothing goes but what was asked for.
    let mut host = build();
    host.router.hold_auto_delete(true);
    assert!(gone(&host.router.queue_removed(QueueKey(0))).is_empty());
    assert!(host.router.exchange("leaf").is_ok());
}

#[test]
fn changes_tell_whether_they_have_to_be_recorded() {
    let mut host = TestHost::new(&["transient"]);
    host.names.push("durable".into());
    host.router.queue_added("durable", QueueKey(1), true);
    let durable = ExchangeOptions { durable: true, ..options(Direct) };
    assert!(host.router.declare_exchange("dx", &durable).unwrap().durable);
    assert!(!host.router.declare_exchange("tx", &options(Direct)).unwrap().durable);
    let table = [
        ("dx", "durable", true),
        ("dx", "transient", false),
        ("tx", "durable", false),
        ("dx", ">amq.fanout", true),
        ("dx", ">tx", false),
        ("tx", ">dx", false),
    ];
    for (source, to, expected) in table {
        let change = host.router.bind(source, &target(to), "k", Arguments::new()).unwrap();
        assert_eq!((change.changed, change.durable), (true, expected), "{source} {to}");
    }
    let flags: Vec<_> = host.router.bindings().map(|binding| binding.durable).collect();
    assert_eq!(flags, table.map(|(_, _, durable)| durable));
    for (source, to, expected) in table {
        assert_eq!(host.unbind(source, to, "k").durable, expected, "{source} {to}");
    }
    assert!(host.router.delete_exchange("dx", false).unwrap().durable);
    assert!(!host.router.delete_exchange("tx", false).unwrap().durable);
    assert!(!host.router.queue_removed(QueueKey(0)).durable);
    assert!(host.router.queue_removed(QueueKey(1)).durable);
}

#[test]
fn what_is_listed_restores_the_same_routing() {
    let mut host = TestHost::new(&["a", "b"]);
    host.declare("x", &options(Topic));
    host.declare("alt", &ExchangeOptions { alternate: Some("x".into()), ..options(Headers) });
    host.bind(&[("x", "a", "k.*"), ("x", ">amq.fanout", "#.z"), ("amq.fanout", "b", "")]);
    let wanted = arguments(&[("h", text("v")), ("x-match", text("any"))]);
    host.router.bind("alt", &target("b"), "", wanted).unwrap();

    let mut restored = TestHost::new(&["a", "b"]);
    for (name, options) in host.router.exchanges() {
        if restored.router.exchange(name).is_err() {
            restored.declare(name, options);
        }
    }
    for binding in host.router.bindings() {
        let to = match binding.target {
            TargetView::Queue(name, _) => BindingTarget::Queue(name.to_owned()),
            TargetView::Exchange(name) => BindingTarget::Exchange(name.to_owned()),
        };
        let arguments = binding.arguments.cloned().unwrap_or_default();
        let change = restored.router.bind(binding.source, &to, binding.key, arguments).unwrap();
        assert!(change.changed);
    }
    assert!(host.router.bindings().eq(restored.router.bindings()));
    assert!(host.router.exchanges().eq(restored.router.exchanges()));
    for key in ["k.a", "k.z", "z", "q"] {
        for exchange in ["x", "alt", "amq.fanout"] {
            assert_eq!(host.route(exchange, &[key]), restored.route(exchange, &[key]));
        }
    }
}

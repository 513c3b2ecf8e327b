//! Routing and topology as scenarios: what is declared and bound, and where messages then go.

mod model;

use super::*;
use crate::limits::{NAME_BYTES_MAX, ROUTE_EXCHANGES_MAX, TOPIC_WORDS_MAX};
use crate::limits::{ROUTE_CACHE_ENTRIES_MAX, ROUTE_CACHE_QUEUES_MAX};
use crate::{BindingTarget, ExchangeKind};
use ExchangeKind::{Direct, Fanout, Headers, Topic};

fn options(kind: ExchangeKind) -> ExchangeOptions {
    ExchangeOptions {
        kind,
        delaying: false,
        durable: false,
        auto_delete: false,
        internal: false,
        alternate: None,
    }
}

fn auto_delete(kind: ExchangeKind) -> ExchangeOptions {
    ExchangeOptions { auto_delete: true, ..options(kind) }
}

/// `q` a queue, `>x` an exchange.
fn target(name: &str) -> BindingTarget {
    match name.strip_prefix('>') {
        Some(exchange) => BindingTarget::Exchange(exchange.to_owned()),
        None => BindingTarget::Queue(name.to_owned()),
    }
}

fn arguments(pairs: &[(&str, Value)]) -> Arguments {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// A router with queues whose keys are counted up from 0 in the order they were named.
struct World {
    router: Router,
    names: Vec<String>,
}

impl World {
    fn new(queues: &[&str]) -> World {
        let router = Router::new("/", &Limits::default(), 42);
        let mut world = World { router, names: Vec::new() };
        for queue in queues {
            world.queue(queue);
        }
        world
    }

    fn queue(&mut self, name: &str) -> QueueKey {
        let key = QueueKey(u32::try_from(self.names.len()).unwrap());
        self.names.push(name.to_owned());
        self.router.queue_added(name, key, false);
        key
    }

    fn declare(&mut self, name: &str, options: &ExchangeOptions) {
        assert!(self.router.declare_exchange(name, options).unwrap().changed, "{name}");
    }

    /// Each binding as (source, target, key).
    fn bind(&mut self, bindings: &[(&str, &str, &str)]) {
        for &(source, to, key) in bindings {
            let change = self.router.bind(source, &target(to), key, Arguments::new()).unwrap();
            assert!(change.changed, "{source} {to} {key}");
        }
    }

    fn unbind(&mut self, source: &str, to: &str, key: &str) -> Change {
        self.router.unbind(source, &target(to), key, &Arguments::new()).unwrap()
    }

    fn route_with(&mut self, exchange: &str, keys: &[&str], headers: &Arguments) -> Vec<String> {
        let keys = Keys { routing_key: keys[0], also_to: &keys[1..] };
        let mut out = vec![QueueKey(77)];
        let mut visits = 0;
        let mut visit_headers = |visit: &mut dyn FnMut(&str, Value)| {
            visits += 1;
            headers.iter().for_each(|(name, value)| visit(name, value.clone()));
        };
        assert!(self.router.route(exchange, keys, &mut visit_headers, &mut out).is_some());
        assert!(visits <= 1, "headers are read once");
        assert!(out.is_sorted_by(|one, other| one < other), "{out:?}");
        let mut names: Vec<_> = out.iter().map(|key| self.names[key.0 as usize].clone()).collect();
        names.sort();
        names
    }

    /// Routes twice: the second time the answer may be a remembered one.
    fn route(&mut self, exchange: &str, keys: &[&str]) -> Vec<String> {
        let first = self.route_with(exchange, keys, &Arguments::new());
        assert_eq!(self.route_with(exchange, keys, &Arguments::new()), first, "remembered");
        first
    }

    /// Each as (exchange, keys, queues), queues in order of their names.
    #[track_caller]
    fn check(&mut self, routes: &[(&str, &[&str], &[&str])]) {
        for &(exchange, keys, expected) in routes {
            assert_eq!(self.route(exchange, keys), expected, "{exchange:?} {keys:?}");
        }
    }

    fn binding_count(&self) -> usize {
        self.router.bindings().count()
    }
}

#[test]
fn the_default_exchange_leads_to_the_queue_of_that_name() {
    let mut world = World::new(&["a", "b"]);
    world.check(&[
        ("", &["a"], &["a"]),
        ("", &["c"], &[]),
        ("", &["a", "b", "a", "c"], &["a", "b"]),
    ]);
    let removed = world.router.queue_removed(QueueKey(0));
    assert!(removed.changed);
    assert!(!world.router.queue_removed(QueueKey(0)).changed);
    world.check(&[("", &["a"], &[]), ("", &["b"], &["b"])]);
}

#[test]
fn each_kind_compares_keys_its_own_way() {
    let mut world = World::new(&["a", "b", "c"]);
    for (name, kind) in [("d", Direct), ("f", Fanout), ("t", Topic)] {
        world.declare(name, &options(kind));
        world.bind(&[(name, "a", "x.y"), (name, "b", "x.*"), (name, "b", "#"), (name, "c", "")]);
    }
    world.check(&[
        ("d", &["x.y"], &["a"]),
        ("d", &["x.*"], &["b"]),
        ("d", &[""], &["c"]),
        ("d", &["nothing"], &[]),
        ("d", &["x.y", "#", "nothing"], &["a", "b"]),
        ("f", &["nothing"], &["a", "b", "c"]),
        ("t", &["x.y"], &["a", "b"]),
        ("t", &["x"], &["b"]),
        ("t", &[""], &["b", "c"]),
        ("t", &["q", "x.y", ""], &["a", "b", "c"]),
    ]);
}

#[test]
fn every_virtual_host_has_its_exchanges() {
    let mut world = World::new(&["a"]);
    let names: Vec<_> =
        world.router.exchanges().map(|(name, options)| (name.to_owned(), options.kind)).collect();
    let expected = [
        ("", Direct),
        ("amq.direct", Direct),
        ("amq.fanout", Fanout),
        ("amq.headers", Headers),
        ("amq.match", Headers),
        ("amq.topic", Topic),
    ];
    assert_eq!(names, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert!(world.router.exchanges().all(|(_, options)| options.durable));
    world.bind(&[("amq.topic", "a", "#"), ("amq.fanout", "a", ""), ("amq.direct", "a", "k")]);
    world.check(&[
        ("amq.topic", &["k"], &["a"]),
        ("amq.fanout", &["k"], &["a"]),
        ("amq.direct", &["k"], &["a"]),
        ("amq.headers", &["k"], &[]),
    ]);
}

#[test]
fn headers_are_compared_as_x_match_says() {
    let n = Value::Int;
    let x = |mode: &str| ("x-match", text(mode));
    type Pairs = Vec<(&'static str, Value)>;
    let table: [(Pairs, Pairs, bool); 24] = [
        (vec![], vec![], true),
        (vec![], vec![("a", n(1))], true),
        (vec![x("any")], vec![("a", n(1))], false),
        (vec![("a", n(1))], vec![("a", n(1))], true),
        (vec![("a", n(1))], vec![("a", n(2))], false),
        (vec![("a", n(1))], vec![], false),
        (vec![("a", n(1))], vec![("a", text("1"))], false),
        (vec![("a", n(1)), ("b", n(2))], vec![("a", n(1))], false),
        (vec![x("all"), ("a", n(1)), ("b", n(2))], vec![("a", n(1)), ("b", n(2))], true),
        (vec![x("all"), ("a", n(1))], vec![("a", n(1)), ("c", n(3))], true),
        (vec![x("any"), ("a", n(1)), ("b", n(2))], vec![("b", n(2))], true),
        (vec![x("any"), ("a", n(1)), ("b", n(2))], vec![("b", n(3))], false),
        (vec![("a", Value::Null)], vec![("a", text("whatever"))], true),
        (vec![("a", Value::Null)], vec![("b", n(1))], false),
        (vec![("x-a", n(1))], vec![], true),
        (vec![("x-a", n(1)), ("b", n(1))], vec![("b", n(1))], true),
        (vec![x("any"), ("x-a", n(1))], vec![("x-a", n(1))], false),
        (vec![x("all-with-x"), ("x-a", n(1))], vec![], false),
        (vec![x("all-with-x"), ("x-a", n(1))], vec![("x-a", n(1))], true),
        (vec![x("any-with-x"), ("x-a", n(1)), ("b", n(1))], vec![("x-a", n(1))], true),
        (vec![x("any-with-x"), ("x-a", n(1))], vec![("x-a", n(2))], false),
        (vec![x("all-with-x")], vec![("x-match", text("no"))], true),
        (vec![("a", Value::Bool(true))], vec![("a", Value::Bool(true))], true),
        (
            vec![("a", Value::List(vec![n(1), text("b")]))],
            vec![("a", Value::List(vec![n(1), text("b")]))],
            true,
        ),
    ];
    for (binding, headers, expected) in table {
        let mut world = World::new(&["q"]);
        let bound = world.router.bind("amq.headers", &target("q"), "", arguments(&binding));
        assert!(bound.unwrap().changed);
        for headers in [&arguments(&headers), &arguments(&[]), &arguments(&headers)] {
            // Another message in between: what one message's headers say is not remembered.
            world.route_with("amq.headers", &["k"], headers);
        }
        let found = world.route_with("amq.headers", &["k"], &arguments(&headers)).len() == 1;
        assert_eq!(found, expected, "{binding:?} on {headers:?}");
    }
}

#[test]
fn a_headers_exchange_refuses_what_it_cannot_compare_by() {
    let mut world = World::new(&["q"]);
    for value in [text("some"), text(""), Value::Int(1), Value::Null] {
        let arguments = arguments(&[("x-match", value)]);
        let refusal =
            world.router.bind("amq.headers", &target("q"), "", arguments.clone()).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::PreconditionFailed);
        assert!(refusal.text.contains("x-match"), "{}", refusal.text);
        // Elsewhere it is an argument like any other.
        assert!(world.router.bind("amq.fanout", &target("q"), "", arguments).unwrap().changed);
    }
}

#[test]
fn headers_are_read_only_where_a_headers_exchange_is_on_the_way() {
    let mut world = World::new(&["q"]);
    world.bind(&[("amq.topic", "q", "#"), ("amq.direct", ">amq.headers", "k")]);
    for (exchange, key, expected) in
        [("amq.topic", "k", 0), ("amq.direct", "other", 0), ("amq.direct", "k", 1)]
    {
        for _ in 0..2 {
            let (mut reads, mut out) = (0, Vec::new());
            let keys = Keys { routing_key: key, also_to: &[] };
            world.router.route(exchange, keys, &mut |_| reads += 1, &mut out).unwrap();
            assert_eq!(reads, expected, "{exchange} {key}");
        }
    }
}

#[test]
fn bindings_lead_from_exchange_to_exchange_each_queue_once() {
    let mut world = World::new(&["a", "b", "c"]);
    for (name, kind) in [("one", Topic), ("two", Direct), ("three", Fanout)] {
        world.declare(name, &options(kind));
    }
    world.bind(&[
        ("one", ">two", "k.#"),
        ("one", ">three", "*"),
        ("one", "a", "#"),
        ("two", "a", "k"),
        ("two", "b", "k.x"),
        ("three", "a", ""),
        ("three", "c", ""),
        ("three", ">one", ""), // A cycle.
        ("three", ">three", ""),
    ]);
    world.check(&[
        ("one", &["k"], &["a", "c"]),
        ("one", &["k.x"], &["a", "b"]),
        ("one", &["other"], &["a", "c"]),
        ("two", &["k.x"], &["b"]),
        ("three", &["k"], &["a", "c"]),
        ("three", &["k.x"], &["a", "b", "c"]),
    ]);
}

#[test]
fn alternates_take_what_no_binding_takes() {
    let mut world = World::new(&["a", "b", "c"]);
    let with = |alternate: &str| ExchangeOptions {
        alternate: Some(alternate.to_owned()),
        ..options(Direct)
    };
    for (name, alternate) in
        [("one", "two"), ("two", "three"), ("three", "one"), ("lost", "none"), ("named", "")]
    {
        world.declare(name, &with(alternate));
    }
    world.bind(&[("one", "a", "k1"), ("two", "b", "k2"), ("three", "c", "k3")]);
    world.bind(&[("lost", ">one", "e")]);
    world.check(&[
        ("one", &["k1"], &["a"]),
        ("one", &["k2"], &["b"]),
        ("one", &["k3"], &["c"]),
        ("one", &["k4"], &[]), // Around the cycle, once.
        ("two", &["k1"], &["a"]),
        ("lost", &["k1"], &[]),
        ("lost", &["e"], &[]), // Bound, if to nothing that takes it; then by `one`'s alternates.
        ("named", &["b"], &["b"]),
        ("named", &["d"], &[]),
        // One key that a binding takes is enough to leave the alternate out.
        ("one", &["k1", "k2"], &["a"]),
        ("one", &["k2", "k3"], &["b"]),
    ]);
    // An alternate that is declared later counts from then on, and one that goes no more.
    world.declare("none", &options(Fanout));
    world.bind(&[("none", "c", "")]);
    world.check(&[("lost", &["k1"], &["c"])]);
    assert!(world.router.delete_exchange("none", false).unwrap().changed);
    world.check(&[("lost", &["k1"], &[])]);
    // A queue that comes is found by its name, also through an alternate.
    world.queue("d");
    world.check(&[("named", &["d"], &["d"])]);
}

#[test]
fn remembered_routes_follow_every_change() {
    let mut world = World::new(&["a", "b"]);
    let fanout: &[&str] = &["k"];
    world.bind(&[("amq.fanout", "a", "")]);
    world.check(&[("amq.fanout", fanout, &["a"])]);
    world.bind(&[("amq.fanout", "b", "")]);
    world.check(&[("amq.fanout", fanout, &["a", "b"])]);
    world.unbind("amq.fanout", "a", "");
    world.check(&[("amq.fanout", fanout, &["b"])]);
    world.router.queue_removed(QueueKey(1));
    world.check(&[("amq.fanout", fanout, &[])]);
    world.bind(&[("amq.fanout", ">amq.topic", ""), ("amq.topic", "a", "#")]);
    world.check(&[("amq.fanout", fanout, &["a"])]);
    let before = world.router.generation();
    world.queue("c");
    assert!(world.router.generation() > before);
    world.check(&[("amq.fanout", fanout, &["a"]), ("", &["c"], &["c"])]);
}

#[test]
fn the_memory_of_routes_is_bounded() {
    let mut world = World::new(&["a"]);
    world.bind(&[("amq.topic", "a", "#")]);
    for (routed, remembered) in [
        (ROUTE_CACHE_ENTRIES_MAX - 1, ROUTE_CACHE_ENTRIES_MAX - 1),
        (ROUTE_CACHE_ENTRIES_MAX, ROUTE_CACHE_ENTRIES_MAX),
        (ROUTE_CACHE_ENTRIES_MAX + 1, 1),
    ] {
        for key in 0..routed {
            assert_eq!(world.route_with("amq.topic", &[&key.to_string()], &arguments(&[])), ["a"]);
        }
        assert_eq!(world.router.cache.size(), (remembered, remembered));
    }
    // Also in queues: a route to too many is left out, and many to fewer push each other out.
    let each = ROUTE_CACHE_QUEUES_MAX / 16;
    for count in 1..each {
        let name = count.to_string();
        world.queue(&name);
        world.bind(&[("amq.fanout", &name, "")]);
    }
    world.bind(&[("amq.fanout", "a", "")]);
    for key in 0..40 {
        assert_eq!(world.route("amq.fanout", &[&key.to_string()]).len(), each);
        assert!(world.router.cache.size().1 <= ROUTE_CACHE_QUEUES_MAX);
    }
    world.queue("above");
    world.bind(&[("amq.fanout", "above", "")]);
    let before = world.router.cache.size();
    assert_eq!(world.route("amq.fanout", &["new"]).len(), each + 1);
    assert_eq!(world.router.cache.size(), before);
}

#[test]
fn a_binding_is_its_source_target_key_and_arguments() {
    let mut world = World::new(&["a", "b"]);
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
            let before = world.router.generation();
            let change = world.router.bind(source, &target(to), key, arguments.clone()).unwrap();
            assert_eq!(change.changed, !again);
            assert_eq!(world.router.generation() > before, !again);
        }
        assert_eq!(world.binding_count(), count + 1);
    }
    for (count, (source, to, key, arguments)) in cases.iter().enumerate() {
        for again in [false, true] {
            let change = world.router.unbind(source, &target(to), key, arguments).unwrap();
            assert_eq!(change.changed, !again, "{source} {to} {key} {arguments:?}");
            assert_eq!(change.bindings_removed, usize::from(!again));
        }
        assert_eq!(world.binding_count(), cases.len() - count - 1);
    }
}

#[test]
fn declarations_have_to_agree() {
    let same = ExchangeOptions { alternate: Some("alt".into()), ..options(Direct) };
    let delaying = ExchangeOptions { delaying: true, ..same.clone() };
    let received = |text: &str| {
        format!("inequivalent arg {}", text.replacen(": ", " for exchange 'x' in vhost '/': ", 1))
    };
    let table = [
        (same.clone(), same.clone(), None),
        (
            ExchangeOptions { kind: Fanout, ..same.clone() },
            same.clone(),
            Some("'type': received 'direct' but current is 'fanout'"),
        ),
        (
            same.clone(),
            ExchangeOptions { durable: true, ..same.clone() },
            Some("'durable': received 'true' but current is 'false'"),
        ),
        (
            same.clone(),
            ExchangeOptions { auto_delete: true, ..same.clone() },
            Some("'auto_delete': received 'true' but current is 'false'"),
        ),
        (
            ExchangeOptions { internal: true, ..same.clone() },
            same.clone(),
            Some("'internal': received 'false' but current is 'true'"),
        ),
        (
            delaying.clone(),
            same.clone(),
            Some("'type': received 'direct' but current is 'x-delayed-message'"),
        ),
        (
            ExchangeOptions { kind: Topic, ..delaying.clone() },
            delaying,
            Some("'x-delayed-type': received 'direct' but current is 'topic'"),
        ),
        (
            same.clone(),
            options(Direct),
            Some("'alternate-exchange': received none but current is the value 'alt'"),
        ),
        (
            options(Direct),
            same,
            Some("'alternate-exchange': received the value 'alt' but current is none"),
        ),
    ];
    for (current, declared, expected) in table {
        let mut world = World::new(&[]);
        world.declare("x", &current);
        let again = world.router.declare_exchange("x", &declared);
        match expected {
            None => assert_eq!(again.unwrap(), Change::default()),
            Some(expected) => {
                let refusal = again.unwrap_err();
                assert_eq!(refusal.kind, RefusalKind::PreconditionFailed);
                assert_eq!(refusal.text, received(expected));
            }
        }
        assert_eq!(world.router.exchange("x").unwrap(), &current);
    }
}

#[test]
fn what_is_not_there_or_not_allowed_is_refused_in_words() {
    use RefusalKind::{AccessRefused, NotFound, PreconditionFailed};
    let mut world = World::new(&["q"]);
    let default = "operation not permitted on the default exchange";
    let router = &mut world.router;
    let bind = |router: &mut Router, source: &str, to: &str| {
        router.bind(source, &target(to), "", Arguments::new()).map(|_| ())
    };
    let unbind = |router: &mut Router, source: &str, to: &str| {
        router.unbind(source, &target(to), "", &Arguments::new()).map(|_| ())
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
    // Taking away what is not there is done already.
    for (source, to) in [("x", "q"), ("amq.fanout", "r"), ("amq.fanout", ">y"), ("amq.topic", "q")]
    {
        assert!(!world.unbind(source, to, "").changed);
    }
    assert!(!world.router.delete_exchange("x", true).unwrap().changed);
    let keys = Keys { routing_key: "", also_to: &[] };
    assert_eq!(world.router.route("x", keys, &mut |_| (), &mut Vec::new()), None);
}

#[test]
fn limits_hold_at_and_above() {
    let limits = Limits { exchanges_max: 8, bindings_max: 3, ..Limits::default() };
    let mut router = Router::new("/", &limits, 1);
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

    assert_eq!(bind(&mut router, "ninth", &format!("{long}n")), above);
    assert_eq!(bind(&mut router, "ninth", &long), Ok(true));
    assert_eq!(bind(&mut router, "amq.topic", &words(TOPIC_WORDS_MAX + 1)), above);
    assert_eq!(bind(&mut router, "ninth", &words(TOPIC_WORDS_MAX)), Ok(true));
    assert_eq!(bind(&mut router, "amq.topic", &words(TOPIC_WORDS_MAX)), Ok(true));
    assert_eq!(bind(&mut router, "amq.topic", "fourth"), above);
    assert_eq!(bind(&mut router, "ninth", &long), Ok(false));
}

#[test]
fn a_message_passes_so_many_exchanges_and_no_more() {
    let mut world = World::new(&["q"]);
    for number in 0..=ROUTE_EXCHANGES_MAX {
        world.declare(&number.to_string(), &options(Fanout));
        if number > 0 {
            world.bind(&[(&(number - 1).to_string(), &format!(">{number}"), "")]);
        }
    }
    let last = ROUTE_EXCHANGES_MAX.to_string();
    world.bind(&[(&last, "q", "")]);
    world.check(&[("1", &["k"], &["q"]), ("0", &["k"], &[])]);
}

#[test]
fn auto_delete_exchanges_go_with_their_last_binding() {
    let gone = |change: &Change| -> Vec<String> {
        change.auto_deleted.iter().map(|deleted| deleted.name.clone()).collect()
    };
    let build = || {
        let mut world = World::new(&["q", "r"]);
        let durable = ExchangeOptions { durable: true, ..auto_delete(Topic) };
        world.declare("root", &auto_delete(Fanout));
        world.declare("middle", &durable);
        world.declare("leaf", &auto_delete(Direct));
        world.declare("stays", &options(Direct));
        world.bind(&[
            ("root", ">middle", ""),
            ("middle", ">leaf", "#"),
            ("stays", ">leaf", ""),
            ("leaf", "q", "k"),
            ("leaf", "q", "l"),
        ]);
        world
    };
    // An exchange without bindings waits for its first.
    let mut world = build();
    assert!(gone(&world.unbind("leaf", "q", "k")).is_empty());
    let change = world.unbind("leaf", "q", "l");
    assert_eq!(gone(&change), ["leaf", "middle", "root"]);
    let durable: Vec<_> = change.auto_deleted.iter().map(|deleted| deleted.durable).collect();
    assert_eq!(durable, [false, true, false]);
    assert_eq!(change.bindings_removed, 4);
    assert!(world.router.exchange("stays").is_ok());
    assert_eq!(world.binding_count(), 0);

    // The same by the queue, and by an exchange on the way.
    let mut world = build();
    let change = world.router.queue_removed(QueueKey(0));
    assert_eq!(gone(&change), ["leaf", "middle", "root"]);
    assert_eq!(change.bindings_removed, 5);
    let mut world = build();
    let change = world.router.delete_exchange("leaf", false).unwrap();
    assert_eq!(gone(&change), ["middle", "root"]);

    // A binding to itself does not hold an exchange's deletion up, nor does a cycle.
    let mut world = World::new(&["q"]);
    world.declare("one", &auto_delete(Fanout));
    world.declare("two", &auto_delete(Fanout));
    world.bind(&[("one", ">two", ""), ("two", ">one", ""), ("two", ">two", "")]);
    let change = world.router.delete_exchange("two", false).unwrap();
    assert_eq!(gone(&change), ["one"]);
    assert_eq!(world.binding_count(), 0);

    // While held, nothing goes but what was asked for.
    let mut world = build();
    world.router.hold_auto_delete(true);
    assert!(gone(&world.router.queue_removed(QueueKey(0))).is_empty());
    assert!(world.router.exchange("leaf").is_ok());
}

#[test]
fn changes_tell_whether_they_have_to_be_recorded() {
    let mut world = World::new(&["transient"]);
    world.names.push("durable".into());
    world.router.queue_added("durable", QueueKey(1), true);
    let durable = ExchangeOptions { durable: true, ..options(Direct) };
    assert!(world.router.declare_exchange("dx", &durable).unwrap().durable);
    assert!(!world.router.declare_exchange("tx", &options(Direct)).unwrap().durable);
    let table = [
        ("dx", "durable", true),
        ("dx", "transient", false),
        ("tx", "durable", false),
        ("dx", ">amq.fanout", true),
        ("dx", ">tx", false),
        ("tx", ">dx", false),
    ];
    for (source, to, expected) in table {
        let change = world.router.bind(source, &target(to), "k", Arguments::new()).unwrap();
        assert_eq!((change.changed, change.durable), (true, expected), "{source} {to}");
    }
    let flags: Vec<_> = world.router.bindings().map(|binding| binding.durable).collect();
    assert_eq!(flags, table.map(|(_, _, durable)| durable));
    for (source, to, expected) in table {
        assert_eq!(world.unbind(source, to, "k").durable, expected, "{source} {to}");
    }
    assert!(world.router.delete_exchange("dx", false).unwrap().durable);
    assert!(!world.router.delete_exchange("tx", false).unwrap().durable);
    assert!(!world.router.queue_removed(QueueKey(0)).durable);
    assert!(world.router.queue_removed(QueueKey(1)).durable);
}

#[test]
fn the_publisher_hears_what_the_exchange_is() {
    let mut world = World::new(&[]);
    let internal = ExchangeOptions { internal: true, ..options(Fanout) };
    let delaying = ExchangeOptions { delaying: true, ..options(Fanout) };
    world.declare("internal", &internal);
    world.declare("delaying", &delaying);
    for (name, internal, delaying) in
        [("", false, false), ("internal", true, false), ("delaying", false, true)]
    {
        for _ in 0..2 {
            let keys = Keys { routing_key: "k", also_to: &[] };
            let routed = world.router.route(name, keys, &mut |_| (), &mut Vec::new());
            assert_eq!(routed, Some(Routed { internal, delaying }), "{name}");
        }
    }
}

#[test]
fn what_is_listed_restores_the_same_routing() {
    let mut world = World::new(&["a", "b"]);
    world.declare("x", &options(Topic));
    world.declare("alt", &ExchangeOptions { alternate: Some("x".into()), ..options(Headers) });
    world.bind(&[("x", "a", "k.*"), ("x", ">amq.fanout", "#.z"), ("amq.fanout", "b", "")]);
    let wanted = arguments(&[("h", text("v")), ("x-match", text("any"))]);
    world.router.bind("alt", &target("b"), "", wanted).unwrap();

    let mut restored = World::new(&["a", "b"]);
    for (name, options) in world.router.exchanges() {
        if restored.router.exchange(name).is_err() {
            restored.declare(name, options);
        }
    }
    for binding in world.router.bindings() {
        let to = match binding.target {
            TargetView::Queue(name, _) => BindingTarget::Queue(name.to_owned()),
            TargetView::Exchange(name) => BindingTarget::Exchange(name.to_owned()),
        };
        let arguments = binding.arguments.cloned().unwrap_or_default();
        let change = restored.router.bind(binding.source, &to, binding.key, arguments).unwrap();
        assert!(change.changed);
    }
    assert!(world.router.bindings().eq(restored.router.bindings()));
    assert!(world.router.exchanges().eq(restored.router.exchanges()));
    for key in ["k.a", "k.z", "z", "q"] {
        for exchange in ["x", "alt", "amq.fanout"] {
            assert_eq!(world.route(exchange, &[key]), restored.route(exchange, &[key]));
        }
    }
}

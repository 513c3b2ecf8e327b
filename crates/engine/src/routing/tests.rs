//! Where messages go, as scenarios: what is declared and bound, and the queues that follow.

mod cost;
mod model;
mod patterns;
mod steps;
mod topology;

use super::bindings::Terms;
use super::*;
use crate::interface::limits::{
    ROUTE_CACHE_ENTRIES_MAX, ROUTE_CACHE_QUEUES_MAX, ROUTE_EXCHANGES_MAX,
};
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
struct TestHost {
    router: Router,
    names: Vec<String>,
}

/// Without a condition.
impl From<Arguments> for Terms {
    fn from(arguments: Arguments) -> Terms {
        Terms::new(arguments, None, None)
    }
}

impl From<&Arguments> for Terms {
    fn from(arguments: &Arguments) -> Terms {
        Terms::from(arguments.clone())
    }
}

impl Router {
    fn route_by(
        &mut self,
        exchange: &str,
        keys: Keys<'_>,
        headers: VisitHeaders<'_>,
        out: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        self.route(exchange, keys, Look { headers, meets: &mut |_| false }, out)
    }

    fn route_whole_by(
        &mut self,
        exchange: &str,
        keys: Keys<'_>,
        headers: VisitHeaders<'_>,
        out: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        self.route_whole(exchange, keys, Look { headers, meets: &mut |_| false }, out)
    }
}

impl TestHost {
    fn new(queues: &[&str]) -> TestHost {
        let router = Router::new("/", &crate::tests::CONVENTIONS.names, &Limits::default(), 42);
        let mut host = TestHost { router, names: Vec::new() };
        for queue in queues {
            host.queue(queue);
        }
        host
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
        self.router.unbind(source, &target(to), key, Arguments::new()).unwrap()
    }

    fn route_with(&mut self, exchange: &str, keys: &[&str], headers: &Arguments) -> Vec<String> {
        let keys = Keys { routing_key: keys[0], also_to: &keys[1..] };
        let mut out = vec![QueueKey(77)];
        let (mut visits, mut most) = (0, 1);
        let mut visit_headers = |visit: &mut dyn FnMut(&str, Value)| {
            visits += 1;
            headers.iter().for_each(|(name, value)| visit(name, value.clone()));
        };
        let routed = self.router.route_by(exchange, keys, &mut visit_headers, &mut out);
        if !routed.expect("the exchange is there").is_whole {
            self.router.route_whole_by(exchange, keys, &mut visit_headers, &mut out);
            most = 2;
        }
        assert!(visits <= most, "headers are read once");
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
    let mut host = TestHost::new(&["a", "b"]);
    host.check(&[
        ("", &["a"], &["a"]),
        ("", &["c"], &[]),
        ("", &["a", "b", "a", "c"], &["a", "b"]),
    ]);
    let removed = host.router.queue_removed(QueueKey(0));
    assert!(removed.changed);
    assert!(!host.router.queue_removed(QueueKey(0)).changed);
    host.check(&[("", &["a"], &[]), ("", &["b"], &["b"])]);
}

#[test]
fn each_kind_compares_keys_its_own_way() {
    let mut host = TestHost::new(&["a", "b", "c"]);
    for (name, kind) in [("d", Direct), ("f", Fanout), ("t", Topic)] {
        host.declare(name, &options(kind));
        host.bind(&[(name, "a", "x.y"), (name, "b", "x.*"), (name, "b", "#"), (name, "c", "")]);
    }
    host.check(&[
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
    let mut host = TestHost::new(&["a"]);
    let names: Vec<_> =
        host.router.exchanges().map(|(name, options)| (name.to_owned(), options.kind)).collect();
    let expected = [
        ("", Direct),
        ("amq.direct", Direct),
        ("amq.fanout", Fanout),
        ("amq.headers", Headers),
        ("amq.match", Headers),
        ("amq.topic", Topic),
    ];
    assert_eq!(names, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert!(host.router.exchanges().all(|(_, options)| options.durable));
    host.bind(&[("amq.topic", "a", "#"), ("amq.fanout", "a", ""), ("amq.direct", "a", "k")]);
    host.check(&[
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
        let mut host = TestHost::new(&["q"]);
        let bound = host.router.bind("amq.headers", &target("q"), "", arguments(&binding));
        assert!(bound.unwrap().changed);
        for headers in [&arguments(&headers), &arguments(&[]), &arguments(&headers)] {
            // Another message in between: what one message's headers say is not remembered.
            host.route_with("amq.headers", &["k"], headers);
        }
        let found = host.route_with("amq.headers", &["k"], &arguments(&headers)).len() == 1;
        assert_eq!(found, expected, "{binding:?} on {headers:?}");
    }
}

#[test]
fn headers_are_read_only_where_a_headers_exchange_is_on_the_way() {
    let mut host = TestHost::new(&["q"]);
    host.bind(&[("amq.topic", "q", "#"), ("amq.direct", ">amq.headers", "k")]);
    for (exchange, key, expected) in
        [("amq.topic", "k", 0), ("amq.direct", "other", 0), ("amq.direct", "k", 1)]
    {
        for _ in 0..2 {
            let (mut reads, mut out) = (0, Vec::new());
            let keys = Keys { routing_key: key, also_to: &[] };
            host.router.route_by(exchange, keys, &mut |_| reads += 1, &mut out).unwrap();
            assert_eq!(reads, expected, "{exchange} {key}");
        }
    }
}

#[test]
fn bindings_lead_from_exchange_to_exchange_each_queue_once() {
    let mut host = TestHost::new(&["a", "b", "c"]);
    for (name, kind) in [("one", Topic), ("two", Direct), ("three", Fanout)] {
        host.declare(name, &options(kind));
    }
    host.bind(&[
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
    host.check(&[
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
    let mut host = TestHost::new(&["a", "b", "c"]);
    let with = |alternate: &str| ExchangeOptions {
        alternate: Some(alternate.to_owned()),
        ..options(Direct)
    };
    for (name, alternate) in
        [("one", "two"), ("two", "three"), ("three", "one"), ("lost", "none"), ("named", "")]
    {
        host.declare(name, &with(alternate));
    }
    host.bind(&[("one", "a", "k1"), ("two", "b", "k2"), ("three", "c", "k3")]);
    host.bind(&[("lost", ">one", "e")]);
    host.check(&[
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
    host.check(&[("lost", &["k3"], &[])]);
    host.declare("none", &with("three"));
    host.check(&[("lost", &["k3"], &["c"])]);
    assert!(host.router.delete_exchange("none", false).unwrap().changed);
    host.check(&[("lost", &["k3"], &[])]);
    // A queue that comes is found by its name, also through an alternate.
    host.check(&[("named", &["d"], &[])]);
    host.queue("d");
    host.check(&[("named", &["d"], &["d"])]);
}

#[test]
fn remembered_routes_follow_every_change() {
    let mut host = TestHost::new(&["a", "b"]);
    let fanout: &[&str] = &["k"];
    host.bind(&[("amq.fanout", "a", "")]);
    host.check(&[("amq.fanout", fanout, &["a"])]);
    host.bind(&[("amq.fanout", "b", "")]);
    host.check(&[("amq.fanout", fanout, &["a", "b"])]);
    host.unbind("amq.fanout", "a", "");
    host.check(&[("amq.fanout", fanout, &["b"])]);
    host.router.queue_removed(QueueKey(1));
    host.check(&[("amq.fanout", fanout, &[])]);
    host.bind(&[("amq.fanout", ">amq.topic", ""), ("amq.topic", "a", "#")]);
    host.check(&[("amq.fanout", fanout, &["a"])]);
    let before = host.router.generation;
    host.queue("c");
    assert_eq!(host.router.generation, before, "others are not disturbed");
    host.check(&[("amq.fanout", fanout, &["a"]), ("", &["c"], &["c"])]);
    // The route was remembered anew time and again, and counts once.
    assert_eq!(host.router.cache.size(), (1, 1));
}

#[test]
fn the_memory_of_routes_is_bounded() {
    let mut host = TestHost::new(&["a"]);
    host.bind(&[("amq.topic", "a", "#")]);
    for (routed, remembered) in [
        (ROUTE_CACHE_ENTRIES_MAX - 1, ROUTE_CACHE_ENTRIES_MAX - 1),
        (ROUTE_CACHE_ENTRIES_MAX, ROUTE_CACHE_ENTRIES_MAX),
        (ROUTE_CACHE_ENTRIES_MAX + 1, 1),
    ] {
        for key in 0..routed {
            assert_eq!(host.route_with("amq.topic", &[&key.to_string()], &arguments(&[])), ["a"]);
        }
        assert_eq!(host.router.cache.size(), (remembered, remembered));
    }
    // Also in queues: a route to too many is left out, and many to fewer push each other out.
    let each = ROUTE_CACHE_QUEUES_MAX / 16;
    for count in 1..each {
        let name = count.to_string();
        host.queue(&name);
        host.bind(&[("amq.fanout", &name, "")]);
    }
    host.bind(&[("amq.fanout", "a", "")]);
    for key in 0..40 {
        assert_eq!(host.route("amq.fanout", &[&key.to_string()]).len(), each);
        assert!(host.router.cache.size().1 <= ROUTE_CACHE_QUEUES_MAX);
    }
    host.queue("above");
    host.bind(&[("amq.fanout", "above", "")]);
    let before = host.router.cache.size();
    assert_eq!(host.route("amq.fanout", &["new"]).len(), each + 1);
    assert_eq!(host.router.cache.size(), before);
}

#[test]
fn a_message_passes_so_many_exchanges_and_no_more() {
    let mut host = TestHost::new(&["q"]);
    for number in 0..=ROUTE_EXCHANGES_MAX {
        host.declare(&number.to_string(), &options(Fanout));
        if number > 0 {
            host.bind(&[(&(number - 1).to_string(), &format!(">{number}"), "")]);
        }
    }
    let last = ROUTE_EXCHANGES_MAX.to_string();
    host.bind(&[(&last, "q", "")]);
    host.check(&[("1", &["k"], &["q"]), ("0", &["k"], &[])]);

    // One that leads to itself, however often, is passed once.
    host.declare("self", &options(Fanout));
    host.bind(&[("self", &format!(">{last}"), "")]);
    for number in 0..ROUTE_EXCHANGES_MAX {
        host.bind(&[("self", ">self", &number.to_string())]);
    }
    host.check(&[("self", &["k"], &["q"])]);
}

#[test]
fn the_publisher_hears_what_the_exchange_is() {
    let mut host = TestHost::new(&[]);
    let internal = ExchangeOptions { internal: true, ..options(Fanout) };
    let delaying = ExchangeOptions { delaying: true, ..options(Fanout) };
    host.declare("internal", &internal);
    host.declare("delaying", &delaying);
    for (name, internal, delaying) in
        [("", false, false), ("internal", true, false), ("delaying", false, true)]
    {
        for _ in 0..2 {
            let keys = Keys { routing_key: "k", also_to: &[] };
            let routed = host.router.route_by(name, keys, &mut |_| (), &mut Vec::new());
            assert_eq!(
                routed,
                Some(Routed {
                    internal,
                    delaying,
                    has_subjects: false,
                    is_whole: true,
                    is_conditional: false
                }),
                "{name}"
            );
        }
    }
}

//! Steps counted: what unbinding and routing look at does not depend on how many other bindings there
//! are.

use super::*;
use crate::ExchangeKind;
use std::collections::BTreeSet;

/// Other bindings beside those that the steps are counted of.
const OTHERS: [usize; 3] = [1, 1_000, 10_000];

/// Nodes of the index, and bindings, that were looked at or changed while `act` ran.
fn steps(host: &mut TestHost, source: &str, act: impl FnOnce(&mut TestHost)) -> (usize, usize) {
    let counts = |host: &TestHost| {
        let router = &host.router;
        let exchange = router.exchanges.get(router.exchanges.find(source).unwrap());
        let nodes = exchange.patterns.as_ref().map_or(0, |patterns| patterns.steps.get());
        (nodes, router.bindings.steps.get())
    };
    let before = counts(host);
    act(host);
    let after = counts(host);
    (after.0 - before.0, after.1 - before.1)
}

/// A host with `others` other bindings of an exchange: key and target by number.
fn crowd(source: &str, others: usize, other: fn(usize) -> (String, usize)) -> TestHost {
    let mut host = TestHost::new(&["q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7"]);
    for number in 0..others {
        let (key, queue) = other(number);
        let pairs = arguments(&[("n", Value::Int(number as i64))]);
        host.router.bind(source, &target(&format!("q{queue}")), &key, pairs).unwrap();
    }
    host
}

/// Patterns that share words with `a.b.c...` and lead elsewhere, or further.
fn scattered(number: usize) -> (String, usize) {
    let key = match number % 6 {
        0 => format!("a.x{number}"),
        1 => format!("a.b.x{number}.#"),
        2 => format!("x{number}.*.c.#"),
        3 => format!("*.*.x{number}.*"),
        4 => format!("a.b.c.d.e.f.x{number}"),
        _ => format!("#.x{number}"),
    };
    (key, number % 8)
}

/// All with the same key and to the same queue: one list holds them all.
fn heaped(_: usize) -> (String, usize) {
    ("a.b.c".to_owned(), 0)
}

/// The patterns that come and go: of `depth` words, with and without wildcards, `a.b.c` among them.
fn patterns(depth: usize) -> [String; 4] {
    let words: Vec<&str> = "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p".split('.').take(depth).collect();
    let mut wild = words.clone();
    wild[depth - 1] = "*";
    let mut all = words.clone();
    all[0] = "#";
    [words.join("."), wild.join("."), all.join("."), "own.".repeat(depth - 1) + "key"]
}

#[test]
fn unbinding_takes_steps_by_the_depth_of_the_pattern_alone() {
    for other in [scattered, heaped] {
        for others in OTHERS {
            let mut host = crowd("amq.topic", others, other);
            for depth in [1, 2, 3, 4, 8, 16] {
                for pattern in patterns(depth) {
                    host.bind(&[("amq.topic", "q0", &pattern)]);
                    let (nodes, bindings) = steps(&mut host, "amq.topic", |host| {
                        assert!(host.unbind("amq.topic", "q0", &pattern).changed);
                    });
                    // Down the trie by two steps a word, up again by at most four where each node goes.
                    let most = 6 * depth + 6;
                    assert!(nodes <= most, "{nodes} nodes for {pattern} beside {others}");
                    assert!(bindings <= 16, "{bindings} bindings for {pattern} beside {others}");
                }
            }
        }
    }
}

#[test]
fn wherever_a_binding_stands_in_its_lists_unbinding_costs_the_same() {
    for (source, kind) in [
        ("amq.topic", ExchangeKind::Topic),
        ("amq.direct", ExchangeKind::Direct),
        ("amq.fanout", ExchangeKind::Fanout),
        ("amq.headers", ExchangeKind::Headers),
    ] {
        for others in OTHERS {
            let mut host = crowd(source, others, heaped);
            // The oldest is at one end of each list, the newest at the other.
            for number in BTreeSet::from([0, others / 2, others - 1]) {
                let pairs = arguments(&[("n", Value::Int(number as i64))]);
                let (nodes, bindings) = steps(&mut host, source, |host| {
                    let to = target("q0");
                    let change = host.router.unbind(source, &to, "a.b.c", &pairs);
                    assert!(change.unwrap().changed);
                });
                assert!(nodes <= 24, "{nodes} nodes of {kind:?} beside {others}");
                assert!(bindings <= 24, "{bindings} bindings of {kind:?} beside {others}");
            }
        }
    }
}

#[test]
fn routing_looks_at_no_binding_that_does_not_match() {
    // The words of the keys that match nothing else are none of the others'.
    let key = "own.b.c.d";
    let mut costs = Vec::new();
    for (source, patterns) in
        [("amq.topic", ["own.#", "*.b.c.*", key]), ("amq.direct", [key, key, key])]
    {
        for others in OTHERS {
            let mut host = crowd(source, others, scattered);
            for (queue, pattern) in patterns.iter().enumerate() {
                host.bind(&[(source, &format!("q{queue}"), pattern)]);
            }
            let mut found = Vec::new();
            // Two keys are never remembered together.
            let keys = Keys { routing_key: key, also_to: &[key] };
            let cost = steps(&mut host, source, |host| {
                host.router.route_by(source, keys, &mut |_| (), &mut found).unwrap();
            });
            assert_eq!(found, [QueueKey(0), QueueKey(1), QueueKey(2)], "{source} {others}");
            costs.push((source, cost));
        }
    }
    // Nodes on the way of words that do match are looked at, so one other binding costs less.
    for of_source in costs.chunks(OTHERS.len()) {
        let [one, thousand, more] = of_source else { panic!("one for each number of others") };
        assert!(one <= thousand, "{costs:?}");
        assert_eq!(thousand, more);
        assert!(more.1.0 <= 100 && more.1.1 <= 12, "{costs:?}");
    }
}

/// Binds as many of these patterns as are taken; how many those are.
fn bind_all(host: &mut TestHost, patterns: impl Iterator<Item = String>) -> usize {
    let bind = |pattern: &String| {
        host.router.bind("amq.topic", &target("q0"), pattern, Arguments::new()).is_ok()
    };
    patterns.filter(bind).count()
}

/// The most nodes that one of these keys has a match look at.
fn worst(host: &mut TestHost, keys: &[String]) -> usize {
    let mut found = Vec::new();
    let cost = |key: &String| {
        let keys = Keys { routing_key: key, also_to: &[key] };
        let route = |host: &mut TestHost| {
            host.router.route_by("amq.topic", keys, &mut |_| (), &mut found).unwrap();
        };
        // It was looked up twice.
        steps(host, "amq.topic", route).0 / 2
    };
    keys.iter().map(cost).max().unwrap_or(0)
}

#[test]
fn whatever_is_bound_a_match_takes_a_bounded_number_of_steps() {
    let mut random = patterns::Random::new(3);
    let keys: Vec<String> = [
        ["a"; 120].join("."),
        ["a"; 14].join("."),
        (0..60).map(|word| format!("w{word}")).collect::<Vec<_>>().join("."),
        format!("{}.z", ["a"; 20].join(".")),
    ]
    .into();
    // Near misses; random ones of 100 words; literal words that lie anywhere.
    let near = (0..1 << 14).map(|number| {
        let words = (0..14).map(|bit| if number >> bit & 1 == 1 { "*." } else { "a." });
        format!("{}end{number}", words.collect::<String>())
    });
    let wild = (0..2_000).map(|number| {
        let words: Vec<_> = (0..100).map(|_| random.pick(&["*", "#", "*", "#", "a"])).collect();
        format!("{}.e{number}", words.join("."))
    });
    let pairs = (0..60).flat_map(|one| (0..60).map(move |other| (one, other)));
    let scattered = pairs.map(|(one, other)| format!("#.w{one}.#.w{other}.#.x"));
    let all: [(&str, Box<dyn Iterator<Item = String>>, usize); 3] = [
        ("near", Box::new(near), 30_000),
        ("wild", Box::new(wild), 60_000),
        ("scattered", Box::new(scattered), 60_000),
    ];
    for (what, patterns, most) in all {
        let mut host = TestHost::new(&["q0"]);
        let taken = bind_all(&mut host, patterns);
        let steps = worst(&mut host, &keys);
        assert!(steps <= most, "{what}: {steps} steps, {taken} bindings");
        // Ordinary patterns are taken nevertheless.
        host.bind(&[("amq.topic", "q0", "a.*.c.#"), ("amq.topic", "q0", "#.error")]);
        // Those that go leave room for others.
        let bound: Vec<String> = host.router.bindings().map(|it| it.key.to_owned()).collect();
        for key in &bound {
            host.unbind("amq.topic", "q0", key);
        }
        host.bind(&[("amq.topic", "q0", "*.*.*.*.*.#.z")]);
    }
}

#[test]
fn a_headers_exchange_compares_only_bindings_that_share_a_header() {
    let mut host = TestHost::new(&["q0", "q1"]);
    let bind = |host: &mut TestHost, pairs: &[(&str, Value)]| {
        host.router.bind("amq.headers", &target("q0"), "", arguments(pairs)).is_ok()
    };
    // Each with a header of its own besides two common ones; then near misses without one.
    for number in 0..20_000 {
        let own = ("user", Value::Int(number));
        let type_of = ("type", text(["a", "b"][(number % 2) as usize]));
        assert!(bind(&mut host, &[type_of, own, ("x", Value::Null)]));
    }
    let near = |number: i64| {
        (0..14).map(|bit| (format!("h{bit}"), Value::Bool(number >> bit & 1 == 1))).collect()
    };
    let taken = (0..1 << 14).filter(|number| {
        let pairs: Arguments = near(*number);
        host.router.bind("amq.headers", &target("q1"), "", pairs).is_ok()
    });
    let taken = taken.count();
    for (headers, most, expected) in [
        (
            arguments(&[("type", text("a")), ("user", Value::Int(4)), ("x", text("y"))]),
            8,
            &["q0"][..],
        ),
        (arguments(&[("type", text("b")), ("user", Value::Int(4)), ("x", text("y"))]), 8, &[]),
        (arguments(&[("type", text("a")), ("x", text("y"))]), 20_004, &[]),
        (near(77), 14 * 8_192 + 28, &["q1"]),
    ] {
        host.router.take_looked_at();
        assert_eq!(host.route_with("amq.headers", &["k"], &headers), expected, "{headers:?}");
        let looked_at = host.router.take_looked_at();
        assert!(looked_at <= most, "{looked_at} for {headers:?}, {taken} near misses");
    }
    let bound: Vec<Arguments> =
        host.router.bindings().map(|it| it.arguments.cloned().unwrap()).collect();
    for (number, pairs) in bound.iter().enumerate() {
        let queue = if number < 20_000 { "q0" } else { "q1" };
        host.router.unbind("amq.headers", &target(queue), "", pairs).unwrap();
    }
    assert_eq!(host.binding_count(), 0);
    assert!(host.route_with("amq.headers", &["k"], &near(77)).is_empty());
}

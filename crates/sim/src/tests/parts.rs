//! Tests of the random generator, bodies, pipes and the model of routing.

use crate::history::MessageId;
use crate::network::Pipe;
use crate::payload;
use crate::plan::{Binding, Exchange, HeaderMatch, Queue, Target};
use crate::random::Random;
use crate::workload;
use crate::workload::draw::exchange;
use angarium_engine::ExchangeKind;

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let draw = |seed| {
        let mut random = Random::new(seed);
        (0..100).map(|_| random.draw()).collect::<Vec<_>>()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
}

#[test]
fn draws_stay_within_their_bounds() {
    let mut random = Random::new(1);
    for bound in [1, 2, 3, 1000] {
        assert!((0..200).all(|_| random.below(bound) < bound));
        assert!((0..200).all(|_| random.magnitude(bound) <= bound));
    }
    assert_eq!(random.below(0), 0);
    assert_eq!(random.between(5, 5), 5);
}

#[test]
fn altered_bodies_are_detected() {
    for length in [0, 16, 17, 24, 1000] {
        let body = payload::make(MessageId(42), length);
        assert_eq!(payload::read(&body), Some(MessageId(42)));
        for at in 0..body.len() {
            let mut altered = body.clone();
            altered[at] ^= 1;
            assert_eq!(payload::read(&altered), None, "byte {at} of {length}");
        }
        assert_eq!(payload::read(&body[..body.len() - 1]), None);
    }
}

#[test]
fn a_full_pipe_takes_what_fits() {
    let mut pipe = Pipe::new(4);
    assert_eq!(pipe.write(b"abc"), 3);
    assert_eq!(pipe.write(b"def"), 1);
    assert_eq!(pipe.read(2), b"ab");
    assert_eq!(pipe.write(b"ef"), 2);
    assert_eq!(pipe.read(9), b"cdef");
    assert!(pipe.is_empty());
}

#[test]
fn the_model_routes_topics_as_defined() {
    let mut plan = workload::plan(&mut Random::new(0));
    let matching = |pattern: &str, key: &str| {
        plan.exchanges = vec![Exchange { kind: ExchangeKind::Topic, ..exchange("") }];
        plan.bindings = vec![Binding::of_queue(0, 0, pattern)];
        plan.route(Some(0), key, &[]) == [0]
    };
    let cases = [
        ("#", "a.b", true),
        ("a.*", "a.b", true),
        ("a.*", "a", false),
        ("a.#", "a", true),
        ("a.#.c", "a.c", true),
        ("a.#.c", "a.b.b.c", true),
        ("a.#.c", "a.b.b", false),
        ("*", "a.b", false),
    ];
    let mut matching = matching;
    for (pattern, key, expected) in cases {
        assert_eq!(matching(pattern, key), expected, "{pattern} {key}");
    }
}

#[test]
fn the_model_routes_through_exchanges_as_defined() {
    let mut plan = workload::plan(&mut Random::new(0));
    plan.queues = vec![Queue::default(); 3];
    // 0 leads to 1 and, what it does not take, to 2; 1 compares headers.
    plan.exchanges = vec![
        Exchange { alternate: Some(2), ..exchange("") },
        Exchange { kind: ExchangeKind::Headers, alternate: Some(0), ..exchange("") },
        Exchange { kind: ExchangeKind::Fanout, ..exchange("") },
    ];
    let one = |name: &str, value| vec![(name.to_owned(), value)];
    let headers = HeaderMatch { any: true, with_x: false, headers: one("a", 1) };
    plan.bindings = vec![
        Binding { target: Target::Exchange(1), ..Binding::of_queue(0, 0, "go") },
        Binding { headers, ..Binding::of_queue(1, 0, "") },
        Binding::of_queue(2, 2, ""),
    ];
    let cases = [("go", "a", 1, Some(0)), ("go", "a", 2, None), ("stop", "a", 1, Some(2))];
    for (key, header, value, expected) in cases {
        let expected: Vec<usize> = expected.into_iter().collect();
        let routed = plan.route(Some(0), key, &one(header, value));
        assert_eq!(routed, expected, "{key} {header} {value}");
    }
}

#[test]
fn the_model_compares_headers_as_defined() {
    let pairs = |names: &str| -> Vec<(String, i64)> {
        names.split_whitespace().map(|name| (name.to_owned(), 1)).collect()
    };
    let mut plan = workload::plan(&mut Random::new(0));
    plan.exchanges = vec![Exchange { kind: ExchangeKind::Headers, ..exchange("") }];
    // any, with x-, wanted, given, taken
    let cases = [
        (false, false, "a b", "a b c", true),
        (false, false, "a b", "a", false),
        (false, false, "", "", true),
        (true, false, "a b", "b", true),
        (true, false, "a b", "c", false),
        (true, false, "", "a", false),
        (false, false, "a x-b", "a", true),
        (false, true, "a x-b", "a", false),
        (true, false, "x-b", "x-b", false),
        (true, true, "x-b", "x-b", true),
    ];
    for (any, with_x, wanted, given, taken) in cases {
        let headers = HeaderMatch { any, with_x, headers: pairs(wanted) };
        plan.bindings = vec![Binding { headers, ..Binding::of_queue(0, 0, "") }];
        let is_taken = plan.route(Some(0), "", &pairs(given)) == [0];
        assert_eq!(is_taken, taken, "any {any}, x- {with_x}: {wanted} of {given}");
    }
}

//! The parts that runs are made of.

use crate::history::MessageId;
use crate::network::Pipe;
use crate::payload;
use crate::plan::{Binding, Exchange};
use crate::random::Random;
use crate::workload;
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
fn bodies_prove_themselves() {
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
        plan.exchanges =
            vec![Exchange { name: String::new(), kind: ExchangeKind::Topic, delaying: false }];
        plan.bindings = vec![Binding { exchange: 0, queue: 0, key: pattern.to_owned() }];
        plan.route(Some(0), key) == [0]
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

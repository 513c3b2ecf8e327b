//! Rights on the routing keys of an exchange that is not that of subjects, held whichever way messages go;
//! and what ends where rights have changed.

use super::{TestHost, check_in};
use crate::interface::limits::Limits;

/// What a client whose user may send `m.>` to the exchange `events`, and bind to it with `m.>`, does in turn,
/// what it is answered, and that nothing of it reaches the queue of all other keys.
#[track_caller]
fn check_ways(scenario: &str) {
    for ending in ["", "restart", "restart clean"] {
        let mut host = TestHost::new();
        host.run("a queue victim durable");
        host.run("a exchange events topic durable");
        host.run("a bind events victim secret.#");
        host.run("a exchange open fanout durable");
        host.run("a bind open @events -");
        host.run("a exchange opener topic durable alternate=open");
        host.run("a bind amq.topic @events #");
        host.client("c");
        host.run("a narrow-keys ann events m.> m.>");
        host.run("a narrow-keys ann later m.> m.>");
        let mut host = check_in(host, scenario);
        if !ending.is_empty() {
            host.run(ending);
        }
        assert_eq!(host.run("time 1000"), [""; 0], "{ending}: {scenario}");
        let victim = host.engine.list_queues().find(|queue| queue.name == "victim").unwrap();
        assert_eq!(victim.ready, 0, "{ending}: {scenario}");
    }
}

/// The refusal of a key of `events`.
fn refused(right: &str, key: &str) -> String {
    format!(
        "refused AccessRefused: {right} access to topic '{key}' in exchange 'events' in vhost '/' \
         refused for user 'ann'"
    )
}

#[test]
fn no_exchange_leads_a_publish_to_keys_that_are_forbidden() {
    for exchange in ["events", "open", "opener", "amq.topic"] {
        for key in ["secret.x", "m.x cc=secret.x"] {
            let (key, further) = key.split_once(' ').unwrap_or((key, ""));
            let refused = refused("write", "secret.x");
            check_ways(&format!(
                "c publish {exchange} {key} x {further} persistent
                 > c {refused}
                 c publish {exchange} m.x x persistent
                 c transactions
                 > c ok
                 c publish {exchange} {key} x {further} persistent
                 > c {refused}"
            ));
        }
    }
}

#[test]
fn other_exchanges_take_all_keys() {
    check_ways(
        "c exchange m.own topic
         > c ok
         c queue m.q
         > c queue m.q 0 0
         c bind m.own m.q secret.#
         > c ok
         c publish m.own secret.x 1 mandatory",
    );
}

/// A declaration of that user, and the key that it is refused for; none: it is allowed.
#[track_caller]
fn check_way(declared: &str, forbidden: Option<&str>) {
    let verb = declared.split(' ').next().unwrap();
    let answer = match forbidden {
        Some(key) => refused("write", key) + ", and this would lead messages there",
        None if verb == "queue" => "queue m.q 0 0".to_owned(),
        None => "ok".to_owned(),
    };
    check_ways(&format!(
        "c exchange m.fan fanout
         > c ok
         c exchange m.direct direct
         > c ok
         c exchange m.topic topic
         > c ok
         c exchange m.late topic delaying
         > c ok
         c {declared}
         > c {answer}"
    ));
}

#[test]
fn who_declares_a_way_to_an_exchange_may_publish_all_that_can_pass_it() {
    for target in ["events", "open", "opener", "amq.topic"] {
        check_way(&format!("bind m.fan @{target} m.x"), Some(">"));
        check_way(&format!("bind m.direct @{target} m.x"), None);
        check_way(&format!("bind m.direct @{target} secret.x"), Some("secret.x"));
        for source in ["m.topic", "m.late"] {
            check_way(&format!("bind {source} @{target} m.x.#"), None);
            check_way(&format!("bind {source} @{target} #"), Some(">"));
        }
        check_way(&format!("exchange m.e direct alternate={target}"), Some(">"));
        check_way(&format!("queue m.q dlx={target}"), Some(">"));
        check_way(&format!("queue m.q dlx={target} dlk=secret.x"), Some("secret.x"));
        check_way(&format!("queue m.q dlx={target} dlk=m.x"), None);
    }
    check_way("queue m.q dlx=- dlk=victim.x", None);
    check_way("bind m.topic @m.fan #", None);
}

#[test]
fn a_way_to_an_exchange_that_is_declared_later_is_refused_at_once() {
    let refused = refused("write", "secret.x").replace("'events'", "'later'");
    let expected = format!("c {refused}, and this would lead messages there");
    check_ways(&format!("c queue m.q dlx=later dlk=secret.x\n> {expected}"));
}

#[test]
fn a_delayed_message_is_decided_by_its_publisher() {
    check_ways(&format!(
        "a exchange late topic delaying
         > a ok
         a bind late @events #
         > a ok
         c publish late secret.x x delay=500 persistent
         > c {}
         c publish late m.x x delay=500 persistent",
        refused("write", "secret.x")
    ));
}

#[test]
fn who_binds_may_hear_all_that_the_binding_lets_through() {
    for (key, is_allowed) in [("m.x.#", true), ("m.*", true), ("m.#", false), ("secret.x", false)] {
        let answer = if is_allowed { "ok".to_owned() } else { refused("read", key) };
        for target in ["m.q", "@m.fan"] {
            check_ways(&format!(
                "c queue m.q
                 > c queue m.q 0 0
                 c exchange m.fan fanout
                 > c ok
                 c bind events {target} {key}
                 > c {answer}"
            ));
        }
    }
}

#[test]
fn what_was_published_in_a_transaction_is_judged_again_where_rights_have_changed_since() {
    for (change, answer) in [
        ("narrow-keys ann events m.> m.>", "ok".to_owned()),
        ("narrow-keys ann events other other", refused("write", "m.x")),
        (
            "permit ann .* ^$ .*",
            "refused AccessRefused: write access to exchange 'events' in vhost '/' refused for user \
             'ann'"
                .to_owned(),
        ),
    ] {
        check_ways(&format!(
            "c transactions
             > c ok
             c publish events m.x x
             a {change}
             > a ok
             c commit
             > c {answer}"
        ));
    }
}

#[test]
fn bindings_of_a_connections_own_queues_end_with_the_right_to_hear_them() {
    let mut host = TestHost::new();
    host.client("c");
    let mut host = check_in(
        host,
        "a exchange events topic
         > a ok
         c queue own exclusive
         > c queue own 0 0
         c queue shared
         > c queue shared 0 0
         c bind amq.topic own a.#
         > c ok
         c bind events own b.#
         > c ok
         c bind events own c.#
         > c ok
         c bind events shared c.#
         > c ok
         c consume own all credit=99
         > c consuming all",
    );
    let mut bound = |change: &str| {
        assert_eq!(host.run(change), ["a ok"], "{change}");
        let bindings = host.engine.list_bindings();
        let bound: Vec<_> = bindings.map(|it| format!("{} {}", it.key, it.target)).collect();
        bound.join(", ")
    };
    assert_eq!(bound("a narrow-keys ann events x b.>"), "a.# own, c.# shared");
    assert_eq!(bound("a narrow-subscribing ann - b.>"), "a.# own, c.# shared");
    assert_eq!(bound("a permit ann .* .* ^(own|shared|amq\\.topic)$"), "a.# own, c.# shared");
    assert_eq!(bound("a narrow-subscribing ann b.> -"), "c.# shared");
}

#[test]
fn bindings_of_a_sessions_queue_end_with_the_right_to_hear_them() {
    for detach in ["time 0", "c disconnect"] {
        let mut host = TestHost::new();
        host.client("c");
        for line in [
            "c claim s expiry=5000 recorded queue",
            "flush",
            "c bind amq.topic amq.session-s a.#",
            "c bind amq.topic amq.session-s b.#",
            "flush",
            detach,
        ] {
            host.run(line);
        }
        let bound = |host: &TestHost| {
            host.engine.list_bindings().map(|it| it.key.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(bound(&host), ["a.#", "b.#"]);
        assert_eq!(host.run("a narrow-subscribing ann - b.>"), ["a ok"]);
        assert_eq!(bound(&host), ["a.#"], "{detach}");
        host.run("restart");
        assert_eq!(bound(&host), ["a.#"], "{detach}");
    }
}

#[test]
fn a_get_that_waits_for_the_disk_ends_with_the_right_to_read_the_queue() {
    let mut host = TestHost::with(Limits { queue_resident_bytes_max: 0, ..Limits::default() });
    host.client("c");
    check_in(
        host,
        "a queue q
         > a queue q 0 0
         a publish - q 1
         loads hold
         c get q
         b get q
         a permit ann .* .* ^$
         > c refused AccessRefused: read access to queue 'q' in vhost '/' refused for user 'ann'
         > a ok
         loads answer
         > b deliver  #1 1
         > b got, 0 left",
    );
}

#[test]
fn rules_on_exchanges_survive() {
    let mut host = TestHost::new();
    host.client("c");
    host.run("a narrow-keys ann events m.> o.>");
    let listed = |host: &TestHost| {
        let rules = host.engine.exchange_rules("ann", "/");
        let rules = rules.map(|(exchange, it)| format!("{exchange} {:?}", it.publish.allow));
        rules.collect::<Vec<_>>()
    };
    let expected = ["events [\"m.>\"]"];
    assert_eq!(listed(&host), expected);
    host.run("restart");
    assert_eq!(listed(&host), expected, "from records");
    host.run("restart clean");
    assert_eq!(listed(&host), expected, "from a snapshot");
}

//! Narrowing a user to subjects, and to routing keys of exchanges.

use super::*;

#[test]
fn who_narrows_a_user_hears_what_holds_then() {
    let running = Running::start();
    let broker = running.broker("guest");
    for (line, publish, subscribe) in [
        ("--publish a.>,b --publish-deny a.x", "a.>, b, but not a.x", "all"),
        ("--subscribe-deny c", "all", "all, but not c"),
        ("", "all", "all"),
    ] {
        for (exchange, what) in [("", ""), ("--exchange e", " and routing keys of exchange 'e'")] {
            let line = format!("angarium permission subjects guest {exchange} {line}");
            let answer = ask(&broker, line.replace("  ", " ").trim_end()).unwrap();
            let expected = format!(
                "done\nfor user 'guest'{what} in virtual host '/' this holds now:\n  publish: \
                 {publish}\n  subscribe: {subscribe}\n"
            );
            assert_eq!(administer::said(&answer), expected, "{line}");
        }
    }
    let error = ask(&broker, "angarium permission subjects guest --subscribe foo*").unwrap_err();
    assert!(error.contains("whole words"), "{error}");
}

#[test]
fn exchanges_whose_routing_keys_are_narrowed_are_listed() {
    let running = Running::start();
    let broker = running.broker("guest");
    let listed = || ask(&broker, "angarium permission list").unwrap()[0]["exchanges"].clone();
    let line = "angarium permission subjects guest --exchange events/x --publish a.>";
    ask(&broker, line).unwrap();
    let none: [&str; 0] = [];
    let rules = |allow: &[&str]| json!({ "allow": allow, "deny": none });
    let expected = json!({ "publish": rules(&["a.>"]), "subscribe": rules(&[]) });
    assert_eq!(listed(), json!({ "events/x": expected }));
    ask(&broker, "angarium permission subjects guest --exchange events/x").unwrap();
    assert_eq!(listed(), Value::Null);
}

#[test]
fn subjects_are_the_routing_keys_of_one_exchange() {
    let none: [&str; 0] = [];
    let rules = |allow: &[&str]| json!({ "allow": allow, "deny": none });
    for (exchange, path) in [("events/x", "/events%2Fx"), ("amq.topic", "")] {
        let line = format!("angarium permission subjects u --publish a --exchange {exchange}");
        let body = json!({ "publish": rules(&["a"]), "subscribe": rules(&[]) });
        asks(&line, "PUT", &format!("/v1/permissions/%2F/u/subjects{path}"), Some(body));
    }
    let line = "angarium permission subjects u --exchange events --responses 1";
    let matches = command_line().try_get_matches_from(arguments(line));
    assert!(matches.is_err(), "answers go to subjects");
}

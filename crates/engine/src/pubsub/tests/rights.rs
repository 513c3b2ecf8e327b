//! Whom subjects are forbidden to: by which ways nothing reaches them, and what changes end.

use crate::tests::{TestHost, check_in};
use std::ops::RangeInclusive;

#[test]
fn no_exchange_leads_to_subscribers_of_subjects_that_are_forbidden() {
    let mut host = TestHost::new();
    host.client("c");
    host.run("a narrow ann app.> app.secret");
    host.run("a exchange news fanout");
    host.run("a bind news @amq.topic -");
    host.run("a queue app.secret");
    host.run("b subscribe > all");
    for exchange in ["-", "news"] {
        for (subject, is_heard) in [("app.orders", true), ("other", false), ("app.keys", true)] {
            let effects = host.run(&format!("c publish {exchange} {subject} x mandatory"));
            let expected = match exchange {
                _ if is_heard => format!("b hears all {subject} x"),
                "-" => "c returned x".to_owned(),
                _ => format!(
                    "c refused AccessRefused: write access to subject '{subject}' in vhost '/' refused \
                     for user 'ann'"
                ),
            };
            assert_eq!(effects, [expected], "{exchange} {subject}");
        }
    }
    // A queue is no subject.
    assert!(host.run("c publish - app.secret x mandatory").is_empty());
    assert_eq!(host.engine.list_queues().next().unwrap().ready, 1);
}

#[test]
fn the_default_exchange_leads_to_subjects_whose_publisher_has_the_right_on_theirs() {
    let mut host = TestHost::new();
    host.client("c");
    host.run("b subscribe > all");
    host.run("a queue q");
    let answers = ["_INBOX.1.x", "amq.rabbitmq.reply-to.gone"];
    for (write, subject, is_heard) in [
        (r"^amq\.default$", "secret", false),
        (r"^amq\.default$", "_INBOX", false),
        (r"^amq\.default$", "_INBOX.1 cc=secret", false),
        (r"^amq\.default$", answers[0], true),
        (r"^amq\.default$", answers[1], true),
        (r"^amq\.(default|topic)$", "secret", true),
        (r"^amq\.(default|topic)$", answers[0], true),
    ] {
        host.run(&format!("a permit ann .* {write} .*"));
        let (key, further) = subject.split_once(' ').unwrap_or((subject, ""));
        let effects = host.run(&format!("c publish - {key} x mandatory {further}"));
        let heard = format!("b hears all {key} x");
        let expected = if is_heard { heard } else { "c returned x".to_owned() };
        assert_eq!(effects, [expected], "{write} {subject}");
        // Queues are not concerned.
        assert!(host.run("c publish - q x mandatory").is_empty());
    }
}

#[test]
fn dead_letters_by_the_default_exchange_reach_queues_and_who_waits_for_an_answer() {
    for (key, is_heard) in [("secret", false), ("_INBOX.1", true), ("q", false)] {
        let mut host = TestHost::new();
        host.run("b subscribe > all");
        host.run("a queue q");
        host.run(&format!("a queue dying ttl=100 dlx=- dlk={key}"));
        host.run("a publish - dying x");
        let heard = format!("b hears all {key} x");
        let expected = if is_heard { vec![heard] } else { vec![] };
        assert_eq!(host.run("time 100"), expected, "{key}");
    }
}

#[test]
fn rules_on_subjects_survive() {
    let mut host = TestHost::new();
    host.run("a user ann hash");
    host.run("a permit ann .* .* .*");
    host.run("a narrow ann app.> app.secret");
    let listed =
        |host: &TestHost| host.engine.permitted_subjects("ann", "/").cloned().unwrap().publish;
    assert_eq!(listed(&host).allow, ["app.>"]);
    assert_eq!(listed(&host).deny, ["app.secret"]);
    host.run("restart");
    assert_eq!(listed(&host).deny, ["app.secret"], "from records");
    host.run("restart clean");
    assert_eq!(listed(&host).deny, ["app.secret"], "from a snapshot");
}

/// The notices that a client gets when its user's rights change, and what it receives then of three
/// messages.
#[track_caller]
fn check_change(change: &str, ended: &[&str], heard: &[&str]) {
    let mut host = TestHost::new();
    host.client("c");
    host.run("a user bob hash");
    host.run("a permit bob .* .* .*");
    for subscriber in ["pub.a one", "secret.> two", "secret.x three group=g", "> all"] {
        host.run(&format!("c subscribe {subscriber}"));
    }
    let told = ended.iter().map(|pattern| format!("c forbidden {pattern}"));
    let told: Vec<String> = told.chain(["a ok".to_owned()]).collect();
    assert_eq!(host.run(change), told, "{change}");
    let mut hears = Vec::new();
    for subject in ["pub.a", "secret.x", "plain"] {
        hears.extend(host.run(&format!("b emit {subject} -")));
    }
    hears.retain(|line| line != "nobody");
    hears.sort();
    let heard: Vec<String> = heard.iter().map(|it| format!("c hears {it} -")).collect();
    assert_eq!(hears, heard, "{change}");
}

#[test]
fn who_may_no_longer_subscribe_is_told_and_hears_nothing_more() {
    let all = ["pub.a", "secret.>", "secret.x group=g", ">"];
    let heard =
        ["all plain", "all pub.a", "all secret.x", "one pub.a", "three secret.x", "two secret.x"];
    check_change("a narrow-subscribing ann pub.> -", &all[1..], &["one pub.a"]);
    check_change(
        "a narrow-subscribing ann - secret.>",
        &all[1..3],
        &[heard[0], heard[1], heard[3]],
    );
    check_change(
        "a narrow-subscribing ann - secret.x",
        &all[2..3],
        &[heard[0], heard[1], heard[3]],
    );
    check_change("a narrow-subscribing ann - secret.y", &[], &heard);
    check_change("a permit ann .* .* ^other$", &all, &[]);
    check_change("a permit ann ^$ ^$ ^amq\\.topic$", &[], &heard);
    check_change("a forbid ann", &all, &[]);
    check_change("a delete-user ann", &all, &[]);
    check_change("a change-user ann other", &[], &heard);
    check_change("a forbid bob", &[], &heard);
}

#[test]
fn what_is_allowed_again_is_heard_by_those_who_subscribe_still() {
    let mut host = TestHost::new();
    host.client("c");
    check_in(
        host,
        "c subscribe > all
         c subscribe secret.x one
         a narrow-subscribing ann - secret.>
         > c forbidden secret.x
         > a ok
         b emit secret.x 1
         > nobody
         c subscribe secret.x one
         > c refused AccessRefused: read access to subject 'secret.x' in vhost '/' refused for user \
         'ann'
         a narrow-subscribing ann - -
         > a ok
         b emit secret.x 2
         > c hears all secret.x 2
         c subscribe secret.x one
         b emit secret.x 3
         > c hears all secret.x 3
         > c hears one secret.x 3
         c disconnect
         b emit secret.x 4
         > nobody",
    );
}

/// Changes the rights of a user with 3,000 subscriptions, between two ends of turns. Its client
/// receives immediately what it receives after the review, and gets notices of the `ended`
/// subscribers.
#[track_caller]
fn check_many(changes: &[&str], ended: RangeInclusive<usize>) {
    const COUNT: usize = 3_000;
    let mut host = TestHost::new();
    host.client("c");
    for number in 0..COUNT {
        host.act_on(&format!("c subscribe x.{number} of{number}"));
    }
    host.run("b subscribe x.> all");
    for change in changes {
        host.act_on(change);
    }
    assert!(host.engine.has_work(), "{changes:?}: not all of it is done at once");
    let mut told = 0;
    let mut hears = |host: &mut TestHost| {
        for number in 0..COUNT {
            host.act_on(&format!("b emit x.{number} -"));
        }
        let lines = std::mem::take(&mut host.fx.lines);
        let count = |what| lines.iter().filter(|line| line.starts_with(what)).count();
        assert_eq!(count("b hears all"), COUNT, "{changes:?}: others hear all");
        told += count("c forbidden");
        count("c hears")
    };
    let at_once = hears(&mut host);
    host.settle_down();
    let (later, subscribing) = (hears(&mut host), host.engine.pubsub.subscribers.len());
    assert_eq!((at_once, subscribing, told), (later, later + 1, COUNT - later), "{changes:?}");
    assert!(ended.contains(&told), "{changes:?}: {told}");
}

#[test]
fn rights_of_who_subscribes_to_much_hold_at_once_and_are_judged_over_some_turns() {
    let (deny, allow) = ("a narrow-subscribing ann - x.>", "a narrow-subscribing ann - -");
    check_many(&[deny], 3_000..=3_000);
    check_many(&["a forbid ann"], 3_000..=3_000);
    check_many(&["a permit ann .* .* ^other$"], 3_000..=3_000);
    check_many(&["a narrow-subscribing ann - x.7"], 1..=1);
    check_many(&["a narrow-subscribing ann x.* x.7"], 1..=1);
    check_many(&["a narrow-subscribing ann - z.>"], 0..=0);
    // Subscribers that were ended before the change was taken back stay ended.
    check_many(&[deny, allow], 1..=1_000);
    check_many(&[deny, allow, deny], 3_000..=3_000);
    check_many(&[allow, deny, "a narrow-subscribing ann - z.>"], 1..=1_000);
}

#[test]
fn what_is_allowed_again_is_heard_at_once() {
    let mut host = TestHost::new();
    host.client("c");
    host.run("a narrow-subscribing ann - x.7");
    for number in 0..3_000 {
        host.act_on(&format!("c subscribe x.* of{number}"));
    }
    let mut hears = |change: &str| {
        host.act_on(change);
        host.fx.lines.clear();
        host.act_on("b emit x.7 -");
        host.fx.lines.iter().filter(|line| line.starts_with("c hears")).count()
    };
    assert_eq!(hears("a narrow-subscribing ann - x.7"), 0);
    assert_eq!(hears("a narrow-subscribing ann - x.8"), 3_000);
    assert_eq!(hears("a narrow-subscribing ann - x.7"), 0);
    host.settle_down();
    host.fx.lines.clear();
    assert_eq!(host.run("b emit x.7 -"), ["nobody"]);
    assert_eq!(host.run("b emit x.8 -").len(), 3_000);
}

#[test]
fn who_was_deleted_hears_nothing_whatever_one_of_that_name_may_elsewhere() {
    let mut host = TestHost::new();
    host.client("c");
    host.run("a create-vhost v");
    for number in 0..3_000 {
        host.act_on(&format!("c subscribe x.{number} of{number}"));
    }
    for line in ["a delete-user ann", "a user ann hash", "a permit ann .* .* .* vhost=v"] {
        host.act_on(line);
        assert!(host.engine.has_work(), "not all of it is done at once");
        host.fx.lines.clear();
        host.act_on("b emit x.2999 -");
        assert_eq!(host.fx.lines, ["nobody"], "{line}");
    }
}

#[test]
fn who_comes_and_goes_while_rights_are_judged_is_judged_once() {
    let mut host = TestHost::new();
    host.client("c");
    host.client("d");
    host.run("a user bob hash");
    host.run("a permit bob .* .* .*");
    for number in 0..3_000 {
        host.act_on(&format!("c subscribe x.{number} of{number}"));
    }
    // Both users are looked at in one round.
    host.act_on("a narrow-subscribing ann - x.>");
    host.act_on("a narrow-subscribing bob - x.>");
    host.act_on("c subscribe y late");
    host.act_on("c unsubscribe of2999");
    host.act_on("d subscribe y other");
    host.act_on("c disconnect");
    assert!(host.engine.has_work(), "not all of it is done at once");
    host.fx.lines.clear();
    host.settle_down();
    assert_eq!(host.fx.lines, [""; 0], "nobody is told anything who has gone");
    assert_eq!((host.engine.pubsub.subscribers.len(), host.engine.pubsub.channels.len()), (1, 1));
    assert_eq!(host.run("b emit y 1"), ["d hears other y 1"]);
}

/// What a client whose user may publish to `m.>` alone does in turn, what it is answered, and that none of
/// it reaches the queue and the subscriber of all other subjects.
fn check_ways(scenario: &str) {
    for ending in ["", "restart", "restart clean"] {
        let mut host = TestHost::new();
        host.run("a queue victim durable");
        host.run("a bind amq.topic victim secret.#");
        host.run("a exchange open fanout durable");
        host.run("a bind open @amq.topic -");
        host.run("a exchange opener topic durable alternate=open");
        host.client("c");
        host.run("a narrow ann m.> m.denied");
        let mut host = check_in(host, scenario);
        if !ending.is_empty() {
            host.run(ending);
        }
        host.run("b subscribe secret.> all");
        assert_eq!(host.run("time 1000"), [""; 0], "{ending}: {scenario}");
        let victim = host.engine.list_queues().find(|queue| queue.name == "victim").unwrap();
        assert_eq!(victim.ready, 0, "{ending}: {scenario}");
    }
}

#[test]
fn no_exchange_leads_a_publish_to_subjects_that_are_forbidden() {
    for exchange in ["amq.topic", "open", "opener"] {
        for key in ["secret.x", "m.x cc=secret.x", "m.denied"] {
            let (key, cc) = key.split_once(' ').unwrap_or((key, ""));
            let forbidden = cc.strip_prefix("cc=").unwrap_or(key);
            check_ways(&format!(
                "c publish {exchange} {key} x {cc} persistent
                 > c refused AccessRefused: write access to subject '{forbidden}' in vhost '/' refused \
                 for user 'ann'
                 c publish {exchange} m.x x persistent
                 c transactions
                 > c ok
                 c publish {exchange} {key} x {cc} persistent
                 > c refused AccessRefused: write access to subject '{forbidden}' in vhost '/' refused \
                 for user 'ann'"
            ));
        }
    }
}

/// A declaration of that user, and the subjects that it is refused for; none: it is allowed.
#[track_caller]
fn check_way(declared: &str, forbidden: Option<&str>) {
    let verb = declared.split(' ').next().unwrap();
    let answer = match forbidden {
        Some(subject) => format!(
            "refused AccessRefused: write access to subject '{subject}' in vhost '/' refused for user \
             'ann', and this would lead messages there"
        ),
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
fn who_declares_a_way_to_subjects_may_publish_all_that_can_pass_it() {
    for target in ["amq.topic", "open", "opener"] {
        check_way(&format!("bind m.fan @{target} m.x"), Some(">"));
        check_way(&format!("bind m.direct @{target} m.x"), None);
        check_way(&format!("bind m.direct @{target} secret.x"), Some("secret.x"));
        for source in ["m.topic", "m.late"] {
            check_way(&format!("bind {source} @{target} m.x"), None);
            check_way(&format!("bind {source} @{target} m.x.*.#"), None);
            check_way(&format!("bind {source} @{target} #"), Some(">"));
            check_way(&format!("bind {source} @{target} m.#"), Some("m.>"));
            check_way(&format!("bind {source} @{target} m.*"), Some("m.*"));
        }
        check_way(&format!("exchange m.e direct alternate={target}"), Some(">"));
        check_way(&format!("queue m.q dlx={target}"), Some(">"));
        check_way(&format!("queue m.q dlx={target} dlk=secret.x"), Some("secret.x"));
        check_way(&format!("queue m.q dlx={target} dlk=m.x"), None);
    }
    check_way("queue m.q dlx=- dlk=_INBOX.x", Some("_INBOX.x"));
    check_way("queue m.q dlx=-", None);
    check_way("queue m.q dlx=nosuch", None);
    check_way("bind m.topic @m.fan #", None);
    check_way("exchange m.e direct alternate=m.fan", None);
}

#[test]
fn a_delayed_message_goes_no_way_that_its_publisher_declares_meanwhile() {
    check_ways(
        "c exchange m.late topic delaying
         > c ok
         c publish m.late secret.x x delay=500 persistent
         c bind m.late @amq.topic #
         > c refused AccessRefused: write access to subject '>' in vhost '/' refused for user 'ann', and \
         this would lead messages there",
    );
}

#[test]
fn a_dead_letter_answers_only_where_its_queue_names_the_address() {
    let mut host = TestHost::new();
    host.client("c");
    host.run("a narrow ann m.> m.denied");
    host.run("b subscribe > all");
    host.run("c exchange m.e fanout");
    host.run("c queue m.q ttl=0 dlx=-");
    host.run("c bind m.e m.q -");
    assert_eq!(host.run("c publish m.e _INBOX.1 x"), [""; 0]);
    assert_eq!(host.run("time 100"), [""; 0]);
}

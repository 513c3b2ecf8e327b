//! Direct messages: scenarios.

mod index;
mod rights;
mod rows;

use crate::Lost;
use crate::interface::limits::Limits;
use crate::tests::{TestHost, check, check_in};

#[test]
fn subscribers_hear_what_their_patterns_match() {
    check(
        "a subscribe stock.*.ibm one
         a subscribe stock.> two
         b subscribe stock three
         b subscribe > four
         a emit stock.us.ibm 1
         > a hears one stock.us.ibm 1
         > b hears four stock.us.ibm 1
         > a hears two stock.us.ibm 1
         a emit stock.us 2
         > b hears four stock.us 2
         > a hears two stock.us 2
         b emit stock 3
         > b hears three stock 3
         > b hears four stock 3
         b unsubscribe four
         b emit bond 4
         > nobody",
    );
}

#[test]
fn one_of_a_group_hears_each_message() {
    check(
        "a subscribe job one group=g
         b subscribe job two group=g
         c subscribe job three
         d subscribe * four group=g
         c emit job 1
         > c hears three job 1
         > b hears two job 1
         c emit job 2
         > c hears three job 2
         > a hears one job 2
         a disconnect
         b disconnect
         c emit job 3
         > c hears three job 3
         > d hears four job 3",
    );
}

#[test]
fn a_member_that_is_behind_leaves_its_turn_to_another() {
    check(
        "a subscribe job one group=g
         b subscribe job two group=g
         room b off
         c emit job 1
         > a hears one job 1
         c emit job 2
         > a hears one job 2
         room b
         c emit job 3
         > b hears two job 3",
    );
}

#[test]
fn a_member_that_cannot_hear_leaves_its_turn_to_one_with_another_pattern() {
    // In either order of the two patterns.
    for (first, second) in [("job", "*"), ("*", "job")] {
        check(&format!(
            "a subscribe {first} one group=g
             b subscribe {second} two group=g
             a emit job 1 silent
             > b hears two job 1
             b emit job 2 silent
             > a hears one job 2
             room a off
             c emit job 3
             > b hears two job 3"
        ));
    }
}

#[test]
fn a_group_with_several_patterns_hears_or_misses_each_message_once() {
    for (behind, missed) in [(&["a"][..], 0), (&["b"], 0), (&["a", "b"], 4)] {
        let mut host = TestHost::new();
        host.run("a subscribe job one group=g");
        host.run("b subscribe * two group=g");
        for client in behind {
            host.run(&format!("room {client} off"));
        }
        for number in 0..4 {
            host.run(&format!("c emit job {number}"));
        }
        let counters = host.engine.counters();
        assert_eq!(
            (counters.direct_delivered, counters.missed),
            (4 - missed, missed),
            "{behind:?}"
        );
    }
}

#[test]
fn a_member_that_has_heard_enough_leaves_its_turns_to_those_with_other_patterns() {
    check(
        "a subscribe job one group=g
         a unsubscribe one after=1
         b subscribe * two group=g
         b unsubscribe two after=1
         c emit job 1
         > b hears two job 1
         c emit job 2
         > a hears one job 2
         c emit job 3
         > nobody",
    );
}

#[test]
fn who_is_behind_misses_messages_and_is_told_how_many() {
    check(
        "a subscribe s one
         b subscribe s two
         room a off
         c emit s 1
         > b hears two s 1
         c emit s 2
         > b hears two s 2
         room a
         c emit s 3
         > a hears one s 3 missed=2
         > b hears two s 3
         c emit s 4
         > a hears one s 4
         > b hears two s 4",
    );
}

#[test]
fn a_publisher_is_ahead_where_all_who_subscribe_have_much_unsent() {
    check(
        "a subscribe s one
         b subscribe s two
         room a little
         c emit s 1
         > a hears one s 1
         > b hears two s 1
         room b off
         c emit s 2
         > a hears one s 2
         > crowded",
    );
}

#[test]
fn subscribing_ends_after_so_many_messages() {
    check(
        "a subscribe s one
         a emit s 1
         > a hears one s 1
         a unsubscribe one after=3
         a emit s 2
         > a hears one s 2
         a emit s 3
         > a hears one s 3
         a emit s 4
         > nobody
         a subscribe s one
         a emit s 5
         > a hears one s 5
         a unsubscribe one after=1
         a emit s 6
         > nobody",
    );
}

#[test]
fn publishers_need_not_hear_themselves() {
    check(
        "a subscribe s one
         a2 subscribe s two
         b subscribe s three
         a emit s 1 silent
         > b hears three s 1",
    );
}

#[test]
fn a_name_that_subscribes_goes_on_as_it_is() {
    check(
        "a subscribe s one
         a subscribe t one
         a emit t 1
         > nobody
         a emit s 1
         > a hears one s 1",
    );
}

#[test]
fn what_is_no_pattern_is_refused() {
    check(
        "a subscribe a.>.b one
         > a refused PreconditionFailed: 'a.>.b' is not a subject: it has '>' inside",
    );
    for pattern in ["a..b", ".a", "a."] {
        check(&format!(
            "a subscribe {pattern} one
             a emit {pattern} 1
             > a hears one {pattern} 1"
        ));
    }
    let words = |count| vec!["a"; count].join(".");
    let limits = Limits { pattern_words_max: 128, ..Limits::default() };
    check_in(
        TestHost::with(limits),
        &format!(
            "a subscribe {} one
             a subscribe {} two
             > a refused PreconditionFailed: a subject of 129 words has more than 128",
            words(128),
            words(129)
        ),
    );
    let limits = Limits { subscriptions_max: 2, ..Limits::default() };
    check_in(
        TestHost::with(limits),
        "a subscribe s one
         a subscribe s two
         a subscribe s three
         > a refused LimitExceeded: more than 2 subjects subscribed to in one channel
         a unsubscribe one
         a subscribe s three",
    );
}

#[test]
fn subjects_are_routing_keys_of_the_topic_exchange() {
    check(
        "a queue q durable
         > a queue q 0 0
         a bind amq.topic q stock.#
         > a ok
         b subscribe stock.* one
         a publish amq.topic stock.ibm 1
         > b hears one stock.ibm 1
         b emit stock.ibm 2
         > b hears one stock.ibm 2
         b emit stock 3
         a consume q c
         > a consuming c
         > a deliver c #1 1
         > a deliver c #2 2
         > a deliver c #3 3",
    );
}

#[test]
fn what_a_durable_queue_catches_survives() {
    check(
        "a queue q durable
         > a queue q 0 0
         a bind amq.topic q stock.#
         > a ok
         b emit stock.ibm 1
         flush
         restart
         a consume q c
         > a consuming c
         > a deliver c #1 1 redelivered",
    );
}

#[test]
fn other_exchanges_lead_to_subscribers_too() {
    check(
        "a exchange news fanout
         > a ok
         a bind news @amq.topic -
         > a ok
         b subscribe weather one
         a publish news weather rain mandatory
         > b hears one weather rain
         a publish news sport goal mandatory
         > a returned goal",
    );
}

#[test]
fn answers_find_their_way_in_both_directions() {
    check(
        "a queue q
         > a queue q 0 0
         b emit $QUEUE.q request
         a get q presettled
         > a deliver  #1 request
         > a got, 0 left
         b subscribe _INBOX.1 one
         a publish - _INBOX.1 answer mandatory
         > b hears one _INBOX.1 answer
         b emit $QUEUE.r request
         > nobody",
    );
}

#[test]
fn what_was_handed_out_and_is_lost_is_told_with_the_next() {
    let mut host = TestHost::new();
    host.run("a subscribe s one");
    host.run("b emit s 1");
    let channel = host.channel("a");
    let tag = host.fx.last_tag;
    host.engine.missed(channel, tag, Lost { messages: 1, untold: 2 });
    assert_eq!(host.run("b emit s 2"), ["a hears one s 2 missed=3"]);
    assert_eq!(host.run("b emit s 3"), ["a hears one s 3"]);
    // One that has the same name, or the same slot, is another one.
    host.run("a unsubscribe one");
    host.run("a subscribe s one");
    host.engine.missed(channel, tag, Lost::one(2));
    assert_eq!(host.run("b emit s 4"), ["a hears one s 4"]);
    assert_eq!(host.engine.counters().missed, 2);
}

#[test]
fn a_channel_that_ends_with_many_subscribers_hears_nothing_more() {
    let mut host = TestHost::new();
    for number in 0..5_000 {
        host.act_on(&format!("a subscribe x.{number} old{number}"));
    }
    host.run("a subscribe job member group=g");
    host.run("b subscribe job other group=g");
    host.act_on("a disconnect");
    assert!(host.engine.has_work(), "not all of it is done at once");
    // Who has its connection next has nothing of it.
    host.act_on("a subscribe x.7 new");
    for number in 0..5_000 {
        host.act_on(&format!("b emit x.{number} text"));
        let lines = std::mem::take(&mut host.fx.lines);
        assert_eq!(lines, [if number == 7 { "a hears new x.7 text" } else { "nobody" }]);
    }
    host.act_on("b emit job 1");
    host.act_on("b emit job 2");
    let lines = std::mem::take(&mut host.fx.lines);
    assert_eq!(lines, ["b hears other job 1", "b hears other job 2"]);
    assert!(host.engine.has_work());
    host.settle_down();
    assert_eq!((host.engine.pubsub.subscribers.len(), host.engine.pubsub.channels.len()), (2, 2));
    assert_eq!(host.run("b emit x.7 text"), ["a hears new x.7 text"]);
}

#[test]
fn those_who_come_and_go_again_and_again_do_not_pile_up() {
    let mut host = TestHost::new();
    for round in 0..20 {
        for number in 0..3_000 {
            host.act_on(&format!("a subscribe x.{number} {number}"));
        }
        host.act_on("a disconnect");
        host.engine.dispatch(host.now, &mut host.fx);
        let subscribing = host.engine.pubsub.subscribers.len();
        assert!(subscribing <= 3_100, "{subscribing} after round {round}");
    }
    host.settle_down();
    assert_eq!(host.engine.pubsub.subscribers.len(), 0);
}

#[test]
fn what_is_left_of_many_subscribers_goes_with_their_virtual_host() {
    let mut host = TestHost::new();
    host.run("d create-vhost v");
    host.run("flush");
    let connection = crate::ConnectionId(77);
    let id = crate::ChannelId { connection, number: 1 };
    host.engine.connect_internal(connection, "v").unwrap();
    host.engine.open(id);
    for number in 0..5_000 {
        let (subject, name) = (format!("x.{number}"), format!("{number}"));
        let subscribe = crate::Subscribe {
            name: &name,
            subject: &subject,
            group: None,
            slow_consumer_policy: None,
        };
        host.engine.subscribe(id, subscribe, &mut host.fx).unwrap();
    }
    host.engine.disconnect(host.now, connection, &mut host.fx);
    assert!(host.engine.has_work());
    // One of that name and in its slot is another one, and nothing is taken out of it.
    host.act_on("d delete-vhost v");
    host.act_on("d create-vhost v");
    host.engine.connect_internal(connection, "v").unwrap();
    host.engine.open(id);
    let subscribe =
        crate::Subscribe { name: "new", subject: "x.1", group: None, slow_consumer_policy: None };
    host.engine.subscribe(id, subscribe, &mut host.fx).unwrap();
    assert!(host.engine.has_work(), "not all of it is done at once");
    host.settle_down();
    assert_eq!((host.engine.pubsub.subscribers.len(), host.engine.pubsub.channels.len()), (1, 1));
    assert_eq!(host.engine.subscriber(id, "x.1"), Some("new"));
}

/// Numbers below a bound that look random.
fn odds(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    }
}

#[test]
fn what_is_looked_at_in_vain_counts_for_the_step() {
    let mut host = TestHost::new();
    host.run("b subscribe y one");
    let id = host.channel("b");
    // `a` and `*` ten times in every order, and another word: all match except for the last
    // word.
    for number in 0..1024_u32 {
        let words = (0..10).map(|bit| if number >> bit & 1 == 1 { "*." } else { "a." });
        let (subject, name) = (format!("{}b", words.collect::<String>()), number.to_string());
        let subscribe = crate::Subscribe {
            name: &name,
            subject: &subject,
            group: None,
            slow_consumer_policy: None,
        };
        host.engine.subscribe(id, subscribe, &mut host.fx).unwrap();
    }
    host.engine.begin_work_budget();
    let mut said = 0;
    while !host.engine.is_step_over() && said < 1_000 {
        host.run(&format!("b emit a.a.a.a.a.a.a.a.a.a.c{said} x"));
        said += 1;
    }
    assert!(said < 20, "{said} messages, each compared with a thousand patterns");
}

#[test]
fn a_match_looks_at_a_bounded_number_of_patterns_whatever_is_subscribed_to() {
    let limits = Limits { pattern_states_max: 1_000, ..Limits::default() };
    let mut host = TestHost::with(limits);
    host.run("a user ann hash");
    host.run("a permit ann .* .* .*");
    host.run("login b ann");
    let mut refused = 0;
    for number in 0..1 << 12 {
        let words: String =
            (0..12).map(|bit| if number >> bit & 1 == 1 { "*." } else { "a." }).collect();
        host.act_on(&format!("b subscribe {words}end{number} {number}"));
        let lines = std::mem::take(&mut host.fx.lines);
        refused += lines.iter().filter(|line| line.contains("refused LimitExceeded")).count();
    }
    assert!(refused > 2_000, "{refused}");
    // Ordinary patterns are taken whatever else is there, and who has the forms already may have more.
    for line in ["b subscribe a.*.b.> x", "b subscribe *.*.c y", "b subscribe >  z"] {
        host.act_on(line);
        assert_eq!(std::mem::take(&mut host.fx.lines), [""; 0], "{line}");
    }
    let interest = &mut host.engine.topology.vhosts[0].interest;
    let mut leaves = Vec::new();
    for subject in [["a"; 12].join("."), ["a"; 40].join("."), format!("{}.no", ["a"; 12].join("."))]
    {
        let looked_at = interest.find(&subject, &mut leaves);
        // Those that count, and the simple ones.
        assert!(looked_at <= 1_000 + 1_500, "{looked_at} for {subject}");
    }
    host.act_on("b disconnect");
    host.settle_down();
    assert!(host.engine.topology.vhosts[0].interest.is_empty());
    host.run("login b ann");
    host.act_on("b subscribe *.*.*.*.*.*.*.*.*.*.*.end one");
    assert_eq!(std::mem::take(&mut host.fx.lines), [""; 0], "nothing of the old ones counts");
}

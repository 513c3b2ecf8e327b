//! Direct messages: scenarios, and the index against a model.

use super::Interest;
use super::interest::Place;
use crate::Lost;
use crate::limits::{Limits, SUBJECT_CACHE_ENTRIES_MAX, SUBJECT_CACHE_LEAVES_MAX};
use crate::tests::{World, check, check_in};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn listeners_hear_what_their_patterns_match() {
    check(
        "a listen stock.*.ibm one
         a listen stock.> two
         b listen stock three
         b listen > four
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
         b unlisten four
         b emit bond 4
         > nobody",
    );
}

#[test]
fn one_of_a_group_hears_each_message() {
    check(
        "a listen job one group=g
         b listen job two group=g
         c listen job three
         d listen * four group=g
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
        "a listen job one group=g
         b listen job two group=g
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
            "a listen {first} one group=g
             b listen {second} two group=g
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
        let mut world = World::new();
        world.run("a listen job one group=g");
        world.run("b listen * two group=g");
        for client in behind {
            world.run(&format!("room {client} off"));
        }
        for number in 0..4 {
            world.run(&format!("c emit job {number}"));
        }
        let counters = world.engine.counters();
        assert_eq!((counters.heard, counters.missed), (4 - missed, missed), "{behind:?}");
    }
}

#[test]
fn a_member_that_has_heard_enough_leaves_its_turns_to_those_with_other_patterns() {
    check(
        "a listen job one group=g
         a unlisten one after=1
         b listen * two group=g
         b unlisten two after=1
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
        "a listen s one
         b listen s two
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
fn a_publisher_is_ahead_where_all_who_listen_have_much_unsent() {
    check(
        "a listen s one
         b listen s two
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
fn listening_ends_after_so_many_messages() {
    check(
        "a listen s one
         a emit s 1
         > a hears one s 1
         a unlisten one after=3
         a emit s 2
         > a hears one s 2
         a emit s 3
         > a hears one s 3
         a emit s 4
         > nobody
         a listen s one
         a emit s 5
         > a hears one s 5
         a unlisten one after=1
         a emit s 6
         > nobody",
    );
}

#[test]
fn publishers_need_not_hear_themselves() {
    check(
        "a listen s one
         a2 listen s two
         b listen s three
         a emit s 1 silent
         > b hears three s 1",
    );
}

#[test]
fn a_name_that_listens_goes_on_as_it_is() {
    check(
        "a listen s one
         a listen t one
         a emit t 1
         > nobody
         a emit s 1
         > a hears one s 1",
    );
}

#[test]
fn what_is_no_pattern_is_refused() {
    for pattern in ["a..b", ".a", "a.", "a.>.b"] {
        check(&format!(
            "a listen {pattern} one
             > a refused PreconditionFailed: '{pattern}' is not a subject: it has an empty word, \
             or '>' inside"
        ));
    }
    let limits = Limits { listeners_max: 2, ..Limits::default() };
    check_in(
        World::with(limits),
        "a listen s one
         a listen s two
         a listen s three
         > a refused LimitExceeded: more than 2 subjects listened to in one session
         a unlisten one
         a listen s three",
    );
}

#[test]
fn subjects_are_routing_keys_of_the_topic_exchange() {
    check(
        "a queue q durable
         > a queue q 0 0
         a bind amq.topic q stock.#
         > a ok
         b listen stock.* one
         a publish amq.topic stock.ibm 1
         > b hears one stock.ibm 1
         b emit stock.ibm 2
         > b hears one stock.ibm 2
         b emit stock 3
         a subscribe q c
         > a subscribed c
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
         a subscribe q c
         > a subscribed c
         > a deliver c #1 1 redelivered",
    );
}

#[test]
fn other_exchanges_lead_to_listeners_too() {
    check(
        "a exchange news fanout
         > a ok
         a bind news @amq.topic -
         > a ok
         b listen weather one
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
         b listen _INBOX.1 one
         a publish - _INBOX.1 answer mandatory
         > b hears one _INBOX.1 answer
         b emit $QUEUE.r request
         > nobody",
    );
}

#[test]
fn no_exchange_leads_to_listeners_of_subjects_that_are_forbidden() {
    let mut world = World::new();
    world.client("c");
    world.run("a narrow ann app.> app.secret");
    world.run("a exchange news fanout");
    world.run("a bind news @amq.topic -");
    world.run("a queue app.secret");
    world.run("b listen > all");
    for exchange in ["-", "news"] {
        for (subject, is_heard) in [("app.orders", true), ("other", false), ("app.keys", true)] {
            let effects = world.run(&format!("c publish {exchange} {subject} x mandatory"));
            let heard = format!("b hears all {subject} x");
            let expected = if is_heard { heard } else { "c returned x".to_owned() };
            assert_eq!(effects, [expected], "{exchange} {subject}");
        }
    }
    assert_eq!(world.run("c publish news app.secret x mandatory"), ["c returned x"]);
    // A queue is no subject.
    assert!(world.run("c publish - app.secret x mandatory").is_empty());
    assert_eq!(world.engine.list_queues().next().unwrap().ready, 1);
}

#[test]
fn the_default_exchange_leads_to_subjects_whose_publisher_has_the_right_on_theirs() {
    let mut world = World::new();
    world.client("c");
    world.run("b listen > all");
    world.run("a queue q");
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
        world.run(&format!("a permit ann .* {write} .*"));
        let (key, further) = subject.split_once(' ').unwrap_or((subject, ""));
        let effects = world.run(&format!("c publish - {key} x mandatory {further}"));
        let heard = format!("b hears all {key} x");
        let expected = if is_heard { heard } else { "c returned x".to_owned() };
        assert_eq!(effects, [expected], "{write} {subject}");
        // Queues are not concerned.
        assert!(world.run("c publish - q x mandatory").is_empty());
    }
}

#[test]
fn dead_letters_by_the_default_exchange_reach_queues_and_who_waits_for_an_answer() {
    for (key, is_heard) in [("secret", false), ("_INBOX.1", true), ("q", false)] {
        let mut world = World::new();
        world.run("b listen > all");
        world.run("a queue q");
        world.run(&format!("a queue dying ttl=100 dlx=- dlk={key}"));
        world.run("a publish - dying x");
        let heard = format!("b hears all {key} x");
        let expected = if is_heard { vec![heard] } else { vec![] };
        assert_eq!(world.run("time 100"), expected, "{key}");
    }
}

#[test]
fn rules_on_subjects_survive() {
    let mut world = World::new();
    world.run("a user ann hash");
    world.run("a permit ann .* .* .*");
    world.run("a narrow ann app.> app.secret");
    let listed = |world: &World| {
        let found = world.engine.list_permissions().next().unwrap();
        found.subjects.cloned().unwrap().publish
    };
    assert_eq!(listed(&world).allow, ["app.>"]);
    assert_eq!(listed(&world).deny, ["app.secret"]);
    world.run("restart");
    assert_eq!(listed(&world).deny, ["app.secret"], "from records");
    world.run("restart clean");
    assert_eq!(listed(&world).deny, ["app.secret"], "from a snapshot");
}

/// What a client is told when its user's rights change, and what it hears then of three messages.
#[track_caller]
fn check_change(change: &str, ended: &[&str], heard: &[&str]) {
    let mut world = World::new();
    world.client("c");
    world.run("a user bob hash");
    world.run("a permit bob .* .* .*");
    for listener in ["pub.a one", "secret.> two", "secret.x three group=g", "> all"] {
        world.run(&format!("c listen {listener}"));
    }
    let told = ended.iter().map(|pattern| format!("c forbidden {pattern}"));
    let told: Vec<String> = told.chain(["a ok".to_owned()]).collect();
    assert_eq!(world.run(change), told, "{change}");
    let mut hears = Vec::new();
    for subject in ["pub.a", "secret.x", "plain"] {
        hears.extend(world.run(&format!("b emit {subject} -")));
    }
    hears.retain(|line| line != "nobody");
    hears.sort();
    let heard: Vec<String> = heard.iter().map(|it| format!("c hears {it} -")).collect();
    assert_eq!(hears, heard, "{change}");
}

#[test]
fn who_may_no_longer_listen_is_told_and_hears_nothing_more() {
    let all = ["pub.a", "secret.>", "secret.x group=g", ">"];
    let heard =
        ["all plain", "all pub.a", "all secret.x", "one pub.a", "three secret.x", "two secret.x"];
    check_change("a narrow-listening ann pub.> -", &all[1..], &["one pub.a"]);
    check_change("a narrow-listening ann - secret.>", &all[1..3], &[heard[0], heard[1], heard[3]]);
    check_change("a narrow-listening ann - secret.x", &all[2..3], &[heard[0], heard[1], heard[3]]);
    check_change("a narrow-listening ann - secret.y", &[], &heard);
    check_change("a permit ann .* .* ^other$", &all, &[]);
    check_change("a permit ann ^$ ^$ ^amq\\.topic$", &[], &heard);
    check_change("a forbid ann", &all, &[]);
    check_change("a delete-user ann", &all, &[]);
    check_change("a user ann other", &[], &heard);
    check_change("a forbid bob", &[], &heard);
}

#[test]
fn what_is_allowed_again_is_heard_by_those_who_listen_still() {
    let mut world = World::new();
    world.client("c");
    check_in(
        world,
        "c listen > all
         c listen secret.x one
         a narrow-listening ann - secret.>
         > c forbidden secret.x
         > a ok
         b emit secret.x 1
         > nobody
         c listen secret.x one
         > c refused AccessRefused: read access to subject 'secret.x' in vhost '/' refused for user \
         'ann'
         a narrow-listening ann - -
         > a ok
         b emit secret.x 2
         > c hears all secret.x 2
         c listen secret.x one
         b emit secret.x 3
         > c hears all secret.x 3
         > c hears one secret.x 3
         c disconnect
         b emit secret.x 4
         > nobody",
    );
}

#[test]
fn what_was_handed_out_and_is_lost_is_told_with_the_next() {
    let mut world = World::new();
    world.run("a listen s one");
    world.run("b emit s 1");
    let session = world.session("a");
    let tag = world.fx.last_tag;
    world.engine.missed(session, tag, Lost { messages: 1, untold: 2 });
    assert_eq!(world.run("b emit s 2"), ["a hears one s 2 missed=3"]);
    assert_eq!(world.run("b emit s 3"), ["a hears one s 3"]);
    // One that has the same name, or the same slot, is another one.
    world.run("a unlisten one");
    world.run("a listen s one");
    world.engine.missed(session, tag, Lost::one(2));
    assert_eq!(world.run("b emit s 4"), ["a hears one s 4"]);
    assert_eq!(world.engine.counters().missed, 2);
}

/// The subjects and patterns that the model is asked about.
const WORDS: [&str; 3] = ["a", "b", "c"];

fn matches(pattern: &str, subject: &str) -> bool {
    let (pattern, subject): (Vec<_>, Vec<_>) =
        (pattern.split('.').collect(), subject.split('.').collect());
    let tail = pattern.last() == Some(&">");
    let fixed = if tail { &pattern[..pattern.len() - 1] } else { &pattern[..] };
    let long_enough = if tail { subject.len() > fixed.len() } else { subject.len() == fixed.len() };
    long_enough && fixed.iter().zip(&subject).all(|(word, other)| *word == "*" || word == other)
}

/// Numbers below a bound that look random.
fn odds(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    }
}

#[test]
fn remembered_subjects_follow_what_comes_and_goes() {
    let mut random = odds(1);
    let mut interest = Interest::new(7);
    let mut listed = BTreeMap::new();
    for round in 0..20_000_u32 {
        let mut words: Vec<&str> = (0..1 + random(3)).map(|_| WORDS[random(3)]).collect();
        match random(4) {
            0 if listed.len() < 40 => {
                if random(2) == 0 {
                    let at = random(words.len());
                    words[at] = "*";
                }
                if random(4) == 0 {
                    words.push(">");
                }
                let pattern = words.join(".");
                let place = interest.add(&pattern, None, round);
                listed.insert(round, (pattern, place));
            }
            1 if !listed.is_empty() => {
                let listener = *listed.keys().nth(random(listed.len())).unwrap();
                let (_, place) = listed.remove(&listener).unwrap();
                if let Some(moved) = interest.remove(place) {
                    listed.get_mut(&moved).unwrap().1 = place;
                }
            }
            _ => {
                let subject = words.join(".");
                let mut leaves = Vec::new();
                interest.find(&subject, &mut leaves);
                let mut found: Vec<u32> = leaves
                    .iter()
                    .flat_map(|leaf| interest.leaf(*leaf).unwrap().all.iter().copied())
                    .collect();
                found.sort_unstable();
                let expected = listed.iter().filter(|(_, (pattern, _))| matches(pattern, &subject));
                let expected: Vec<u32> = expected.map(|(listener, _)| *listener).collect();
                assert_eq!(found, expected, "{subject} in round {round}");
            }
        }
    }
    while let Some((_, (_, place))) = listed.pop_first() {
        if let Some(moved) = interest.remove(place) {
            listed.get_mut(&moved).unwrap().1 = place;
        }
    }
    assert!(interest.is_empty());
}

/// Patterns that overlap, and a subject that all but the last match.
const OVERLAPPING: [&str; 5] = ["a.b", "a.*", "*.b", "a.>", "b.*"];

/// Members of `names` groups come and go; each group is gathered once, with all its members that hear it.
fn check_groups(names: usize, members_max: usize, seed: u64) {
    let mut random = odds(seed);
    let mut interest = Interest::new(seed);
    let mut listed = BTreeMap::new();
    for round in 0..6_000_u32 {
        // Now many come, now many go.
        let comes = random(10) < if round / 1_000 % 2 == 0 { 7 } else { 3 };
        if comes && listed.len() < members_max {
            let (pattern, name) = (OVERLAPPING[random(5)], format!("g{}", random(names)));
            let place = interest.add(pattern, Some(&name), round);
            listed.insert(round, (pattern, name, place));
        } else if !listed.is_empty() {
            let member = *listed.keys().nth(random(listed.len())).unwrap();
            let (_, _, place) = listed.remove(&member).unwrap();
            if let Some(moved) = interest.remove(place) {
                listed.get_mut(&moved).unwrap().2 = place;
            }
        }
        if round % 10 == 0 {
            let mut expected = BTreeMap::<String, BTreeSet<u32>>::new();
            for (member, (pattern, name, _)) in &listed {
                if *pattern != "b.*" {
                    expected.entry(name.clone()).or_default().insert(*member);
                }
            }
            assert_eq!(gathered(&mut interest, "a.b"), expected, "in round {round}");
        }
    }
    while let Some((_, (_, _, place))) = listed.pop_first() {
        if let Some(moved) = interest.remove(place) {
            listed.get_mut(&moved).unwrap().2 = place;
        }
    }
    assert!(interest.is_empty());
}

/// The groups that hear a subject, each of which is to be there once and to be found by its name.
#[track_caller]
fn gathered(interest: &mut Interest, subject: &str) -> BTreeMap<String, BTreeSet<u32>> {
    let (mut leaves, mut parts, mut named) = (Vec::new(), Vec::new(), Vec::new());
    interest.find(subject, &mut leaves);
    interest.gather(&leaves, &mut parts);
    let (mut rest, mut found) = (&parts[..], BTreeMap::new());
    while let Some(group) = interest.next_group(&mut rest) {
        let name = interest.name(group).to_owned();
        interest.gather_named(&leaves, &name, &mut named);
        assert_eq!(group, named);
        let members = group.iter().flat_map(|part| interest.part_mut(*part).members.clone());
        let members: BTreeSet<u32> = members.collect();
        assert!(found.insert(name, members).is_none(), "a group is gathered twice");
    }
    found
}

#[test]
fn groups_are_gathered_once_from_all_their_patterns() {
    for (names, members_max, seed) in [(1, 5, 1), (3, 20, 2), (12, 40, 3), (300, 1_000, 4)] {
        check_groups(names, members_max, seed);
    }
}

#[test]
fn groups_that_went_leave_their_places_to_others() {
    let mut interest = Interest::new(7);
    let mut places: Vec<Place> =
        (0..1_000).map(|at| interest.add("s", Some(&format!("g{at}")), at)).collect();
    for round in 0..20_000_u32 {
        let place = places.swap_remove(round as usize * 7 % places.len());
        interest.remove(place);
        places.push(interest.add("s", Some(&format!("h{round}")), 1_000 + round));
    }
    let mut leaves = Vec::new();
    interest.find("s", &mut leaves);
    let kept = |interest: &Interest| interest.leaf(leaves[0]).unwrap().groups().unwrap().size();
    assert_eq!(kept(&interest), (1_000, 0));
    interest.add("s", None, 0);
    places.drain(1..).for_each(|place| assert_eq!(interest.remove(place), None));
    let (groups, vacant) = kept(&interest);
    assert!(groups <= 1_000 && vacant < 1_000, "{groups} {vacant}");
    interest.remove(places[0]);
    assert!(!interest.leaf(leaves[0]).unwrap().has_groups());
}

#[test]
fn a_session_that_ends_with_many_listeners_hears_nothing_more() {
    let mut world = World::new();
    for number in 0..5_000 {
        world.act_on(&format!("a listen x.{number} old{number}"));
    }
    world.run("a listen job member group=g");
    world.run("b listen job other group=g");
    world.act_on("a disconnect");
    assert!(world.engine.has_work(), "not all of it is done at once");
    // Who has its connection next has nothing of it.
    world.act_on("a listen x.7 new");
    for number in 0..5_000 {
        world.act_on(&format!("b emit x.{number} text"));
        let lines = std::mem::take(&mut world.fx.lines);
        assert_eq!(lines, [if number == 7 { "a hears new x.7 text" } else { "nobody" }]);
    }
    world.act_on("b emit job 1");
    world.act_on("b emit job 2");
    let lines = std::mem::take(&mut world.fx.lines);
    assert_eq!(lines, ["b hears other job 1", "b hears other job 2"]);
    assert!(world.engine.has_work());
    world.settle_down();
    assert_eq!((world.engine.direct.listeners.len(), world.engine.direct.sessions.len()), (2, 2));
    assert_eq!(world.run("b emit x.7 text"), ["a hears new x.7 text"]);
}

#[test]
fn what_is_left_of_many_listeners_goes_with_their_virtual_host() {
    let mut world = World::new();
    world.run("d create-vhost v");
    world.run("flush");
    let connection = crate::ConnectionId(77);
    let id = crate::SessionId { connection, number: 1 };
    world.engine.connect_internal(connection, "v").unwrap();
    world.engine.open(id);
    for number in 0..5_000 {
        let (subject, name) = (format!("x.{number}"), format!("{number}"));
        let listen = crate::Listen { name: &name, subject: &subject, group: None, laggard: None };
        world.engine.listen(id, listen, &mut world.fx).unwrap();
    }
    world.engine.disconnect(world.now, connection, &mut world.fx);
    assert!(world.engine.has_work());
    world.act_on("d delete-vhost v");
    assert!(!world.engine.has_work());
    assert_eq!(world.engine.direct.listeners.len(), 0);
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut interest = Interest::new(7);
    interest.add("x.>", None, 1);
    for number in 0..10 * SUBJECT_CACHE_ENTRIES_MAX {
        let mut leaves = Vec::new();
        interest.find(&format!("x.{number}"), &mut leaves);
        assert_eq!(leaves.len(), 1);
    }
    let (leaves, remembered, ..) = interest.size();
    assert_eq!(leaves, 1);
    assert!(remembered <= SUBJECT_CACHE_ENTRIES_MAX, "{remembered}");
    assert!(remembered > SUBJECT_CACHE_ENTRIES_MAX / 2, "{remembered}");
}

/// Listens to `2^bits` patterns, all of which match each of so many subjects, and looks these up; the first
/// one after each pattern, too, where that is said. Says how many patterns are remembered of all subjects.
#[track_caller]
fn remembered(bits: u32, subjects: usize, looks_first: bool) -> usize {
    let mut interest = Interest::new(7);
    let prefix = vec!["a"; bits as usize].join(".");
    let find = |interest: &mut Interest, subject: &str| {
        let mut leaves = Vec::new();
        interest.find(subject, &mut leaves);
        leaves.len()
    };
    for number in 0..1_u32 << bits {
        let word = |bit| if number >> bit & 1 == 0 { "a" } else { "*" };
        let words: Vec<&str> = (0..bits).map(word).collect();
        interest.add(&format!("{}.>", words.join(".")), None, number);
        if looks_first {
            assert_eq!(find(&mut interest, &format!("{prefix}.0")), number as usize + 1);
        }
    }
    for subject in 0..subjects {
        assert_eq!(find(&mut interest, &format!("{prefix}.{subject}")), 1 << bits);
        let (.., leaves, room) = interest.size();
        assert!(leaves <= SUBJECT_CACHE_LEAVES_MAX, "{leaves}");
        assert!(room <= 4 * SUBJECT_CACHE_LEAVES_MAX + 64 * SUBJECT_CACHE_ENTRIES_MAX, "{room}");
    }
    interest.size().2
}

#[test]
fn many_patterns_of_many_subjects_are_not_remembered() {
    for (bits, subjects, looks_first, least) in [
        (8, 1_000, false, 64 << 8),
        (8, 4_000, false, 1 << 8),
        (13, 100, false, 1 << 13),
        (15, 10, false, 0),
        (10, 1, true, 1 << 10),
    ] {
        let found = remembered(bits, subjects, looks_first);
        assert!((least..=subjects << bits).contains(&found), "{bits} {subjects}: {found}");
    }
    assert_eq!(remembered(15, 10, false), 0);
}

/// Has `lines` done in two worlds, in one of them with each `emits` taken apart. The effects are to be the
/// same, and the engine's counts.
#[track_caller]
fn check_rows(lines: &[String]) {
    let (mut in_rows, mut one_by_one) = (World::new(), World::new());
    for (at, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        let apart: Vec<String> = match words[..] {
            [who, "emits", subject, ref bodies @ .., "silent"] => {
                bodies.iter().map(|body| format!("{who} emit {subject} {body} silent")).collect()
            }
            [who, "emits", subject, ref bodies @ ..] => {
                bodies.iter().map(|body| format!("{who} emit {subject} {body}")).collect()
            }
            _ => vec![line.clone()],
        };
        let expected: Vec<String> = apart.iter().flat_map(|line| one_by_one.run(line)).collect();
        assert_eq!(in_rows.run(line), expected, "{:#?}", &lines[..=at]);
        assert_eq!(in_rows.engine.counters(), one_by_one.engine.counters());
    }
}

fn script(text: &str) -> Vec<String> {
    text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

#[test]
fn messages_in_a_row_reach_whom_they_would_reach_one_by_one() {
    for listeners in [
        "",
        "a listen s one",
        "a listen s one
         b listen s two",
        "a listen s one
         b listen > two",
        "a listen s one group=g
         b listen s two group=g",
        "a listen s one
         b listen s two group=g
         b unlisten two",
        "a listen s one
         a unlisten one after=2",
        "a listen s one
         b listen s two
         a unlisten one after=4
         b unlisten two after=1",
        "c listen s own",
        "c listen s own
         a listen s one",
        "a queue q
         a bind amq.topic q s
         a listen s one",
        "a listen s one
         room a off",
        "a listen $QUEUE.s one
         c listen _INBOX.1 two",
    ] {
        for emitted in ["s 1 2 3 4 5", "s 1 2 3 4 5 silent", "$QUEUE.s 1 2", "_INBOX.1 1 2 3"] {
            let lines =
                format!("{listeners}\nc emits {emitted}\na listen s late\nc emits {emitted}");
            check_rows(&script(&lines));
        }
    }
}

#[test]
fn what_comes_and_goes_between_rows_is_seen() {
    let mut random = odds(5);
    for _ in 0..40 {
        let mut lines = Vec::new();
        for _ in 0..60 {
            let who = ["a", "b", "c"][random(3)];
            let name = ["one", "two", "three"][random(3)];
            let subject = ["s", "s.t", "x"][random(3)];
            let pattern = [subject, ">", "s.*", "*"][random(4)];
            lines.push(match random(8) {
                0 | 1 => format!("{who} listen {pattern} {name}"),
                2 => format!("{who} listen {pattern} {name} group=g"),
                3 => format!("{who} unlisten {name}"),
                4 => format!("{who} unlisten {name} after={}", random(5)),
                5 => format!("{who} emits {subject} 1 2 3 4 silent"),
                _ => format!("{who} emits {subject} 1 2 3 4"),
            });
        }
        check_rows(&lines);
    }
}

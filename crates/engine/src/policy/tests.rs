//! Policies as values: which are refused, which is followed, what follows from both kinds.

use super::*;
use crate::PolicyOption;
use crate::queue::Queue;
use crate::tests::{policy, queue_options};

/// Policies as lines: `policy NAME PATTERN ...`; what was refused.
fn of(lines: &[&str]) -> (Policies, Vec<String>) {
    let (mut policies, mut refused) = (Policies::default(), Vec::new());
    for line in lines {
        let kind =
            if line.contains(" operator") { PolicyKind::Operator } else { PolicyKind::Ordinary };
        let name = line.split(' ').nth(1).unwrap();
        if let Err(why) = policies.set(kind, name, &policy(line)) {
            refused.push(why.text);
        }
    }
    (policies, refused)
}

/// What a queue has that is declared so: the policies it follows, and its options that differ.
#[track_caller]
fn check(lines: &[&str], declared: &str, follows: [&str; 2], expected: &str) {
    let (policies, refused) = of(lines);
    assert_eq!(refused, [""; 0]);
    let name = declared.split(' ').nth(1).unwrap();
    let declared = queue_options(declared);
    let mut queue = Queue::new(1, 0, name.to_owned(), declared.clone());
    policies.lead(&mut queue);
    let names = queue.followed.as_ref().map(|it| it.names.shown()).unwrap_or_default();
    let names = [names.policy, names.operator_policy].map(Option::unwrap_or_default);
    assert_eq!(names, follows);
    assert_eq!(queue.options, queue_options(&format!("queue {name} {expected}")));
    assert_eq!(*queue.declared(), declared);
    Policies::default().lead(&mut queue);
    assert_eq!((queue.options, queue.followed), (declared, None), "without them it is as before");
}

#[track_caller]
fn check_refused(line: &str, why: &str) {
    assert_eq!(of(&[line]).1, [why]);
}

#[test]
fn the_highest_priority_that_matches_is_followed_alone() {
    let lines = [
        "policy low .* max-length=9",
        "policy high ^orders priority=2 message-ttl=5",
        "policy high-too ^orders priority=2 message-ttl=6",
        "policy exchanges .* about=exchanges priority=9 alternate-exchange=x",
        "policy quorum .* about=quorum-queues priority=8 max-length=1",
    ];
    check(&lines, "queue orders.1", ["high", ""], "ttl=5");
    check(&lines, "queue my.orders", ["low", ""], "length=9");
    check(&lines, "queue orders quorum", ["quorum", ""], "quorum length=1");
    check(&lines[3..4], "queue orders", ["", ""], "");
}

#[test]
fn the_smaller_limit_holds_and_of_other_options_what_was_declared() {
    let lines = ["policy p .* max-length=9 message-ttl=50 delivery-limit=3 \
                  dead-letter-exchange=d dead-letter-routing-key=k overflow=reject-publish"];
    let other = "dlx=d dlk=k overflow=reject";
    check(&lines, "queue q", ["p", ""], &format!("length=9 ttl=50 limit=3 {other}"));
    check(
        &lines,
        "queue q length=8 ttl=60 limit=2 dlx=own overflow=reject-dead-letter",
        ["p", ""],
        "length=8 ttl=50 limit=2 dlx=own dlk=k overflow=reject-dead-letter",
    );
}

#[test]
fn operators_bound_what_others_say() {
    let lines = [
        "policy p .* max-length=9 message-ttl=50 overflow=reject-publish",
        "policy p .* operator max-length=5 message-ttl=60 overflow=drop-head expires=7",
    ];
    check(&lines, "queue q", ["p", "p"], "length=5 ttl=50 expires=7");
    check(&lines[1..], "queue q length=4", ["", "p"], "length=4 ttl=60 expires=7");
    let lines = ["policy p .* delivery-limit=-1", "policy o .* operator delivery-limit=4"];
    check(&lines, "queue q", ["p", "o"], "limit=4");
    check(&lines[..1], "queue q limit=2", ["p", ""], "limit=2");
}

#[test]
fn an_empty_pattern_matches_every_name() {
    let line = "policy p  max-length=1";
    let mut policies = Policies::default();
    let pattern = String::new();
    let policy = Policy { pattern, ..policy(&line.replace("  ", " x ")) };
    policies.set(PolicyKind::Ordinary, "p", &policy).unwrap();
    assert!(policies.followed(Follower::Exchange { name: "anything" }).is_some());
    assert_eq!(policies.lead_exchange(""), None, "the default exchange follows none");
}

#[test]
fn what_no_policy_can_say_is_refused_by_name() {
    check_refused("policy p .* ha-mode=all", "'ha-mode' is no option that a policy can set");
    check_refused(
        "policy p .* max-priority=3",
        "'max-priority' is no option that a policy can set",
    );
    check_refused(
        "policy p .* operator dead-letter-exchange=x",
        "'dead-letter-exchange' is no option that an operator policy can set",
    );
    check_refused("policy p .* max-length=-1", "option 'max-length' of a policy: -1 is negative");
    check_refused(
        "policy p .* message-ttl=soon",
        "option 'message-ttl' of a policy: must be an integer",
    );
    check_refused("policy p .*", "a policy that sets nothing");
    check_refused("policy p ( max-length=1", "policy pattern '(' cannot be used: unclosed group");
}

#[test]
fn every_option_is_one_of_queues_or_exchanges() {
    for option in crate::POLICY_OPTIONS {
        assert!(option.described().is_some(), "{}", option.name);
        assert_eq!(PolicyOption::named(option.name).map(|it| it.name), Some(option.name));
    }
}

#[test]
fn a_policy_takes_the_place_of_one_of_its_name_and_kind() {
    let lines = [
        "policy p a max-length=1",
        "policy p b max-length=2",
        "policy p c operator max-length=3",
        "policy q d priority=1 max-length=4",
    ];
    let (mut policies, _) = of(&lines);
    let patterns = |policies: &Policies| -> Vec<String> {
        policies.iter().map(|(_, name, it)| format!("{name}={}", it.pattern)).collect()
    };
    assert_eq!(patterns(&policies), ["q=d", "p=b", "p=c"]);
    assert!(policies.clear(PolicyKind::Ordinary, "p"));
    assert!(!policies.clear(PolicyKind::Ordinary, "p"));
    assert_eq!(patterns(&policies), ["q=d", "p=c"]);
}

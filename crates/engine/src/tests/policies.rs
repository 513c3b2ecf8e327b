//! Policies at work: what is there follows them at once, what comes later too, and all of it after a restart.

use super::{TestHost, check, check_in};
use crate::interface::limits::Limits;

#[test]
fn what_is_there_follows_at_once_and_what_comes_later_too() {
    check(
        "a queue q durable
         > a queue q 0 0
         a publish - q 1 persistent
         a publish - q 2 persistent
         a publish - q 3 persistent
         a policy p ^q max-length=2
         > a ok
         a passive q
         > a queue q 2 0
         a queue q2
         > a queue q2 0 0
         a publish - q2 1
         a publish - q2 2
         a publish - q2 3
         a passive q2
         > a queue q2 2 0
         a clear-policy p
         > a ok
         a publish - q 4
         a passive q
         > a queue q 3 0
         a clear-policy p
         > a refused NotFound: no policy 'p' in vhost '/'",
    );
}

#[test]
fn what_a_policy_changes_is_no_difference_to_what_was_declared() {
    check(
        "a policy p .* max-length=2 message-ttl=5
         > a ok
         a queue q
         > a queue q 0 0
         a queue q
         > a queue q 0 0
         a queue q length=2
         > a refused PreconditionFailed: queue 'q' in vhost '/' differs in \
           max-length: received 2, current is none",
    );
}

#[test]
fn policies_and_what_follows_from_them_survive_a_restart() {
    for restart in ["restart", "restart clean", "restart killed"] {
        check(&format!(
            "a queue q durable
             > a queue q 0 0
             a exchange x direct durable
             > a ok
             a exchange other fanout durable
             > a ok
             a bind other q k
             > a ok
             a policy lengths ^q$ max-length=2 priority=3
             > a ok
             a policy lengths .* operator max-length=1
             > a ok
             a policy ways ^x$ about=exchanges alternate-exchange=other
             > a ok
             a policy gone .* max-length=0 priority=9
             > a ok
             a clear-policy gone
             > a ok
             {restart}
             a publish x nowhere 1 persistent
             a publish x nowhere 2 persistent
             a get q presettled
             > a deliver  #1 2 dropped=1
             > a got, 0 left
             a clear-policy lengths operator
             > a ok
             a publish - q 3 persistent
             a publish - q 4 persistent
             a passive q
             > a queue q 2 0"
        ));
    }
}

#[test]
fn an_exchange_has_the_alternate_that_was_declared_or_else_that_of_its_policy() {
    check(
        "a queue q
         > a queue q 0 0
         a queue r
         > a queue r 0 0
         a exchange to-q fanout
         > a ok
         a bind to-q q k
         > a ok
         a exchange to-r fanout
         > a ok
         a bind to-r r k
         > a ok
         a exchange plain direct
         > a ok
         a exchange own direct alternate=to-r
         > a ok
         a publish plain k 0 mandatory
         > a returned 0
         a policy p .* alternate-exchange=to-q
         > a ok
         a publish plain k 1
         a publish own k 2
         a publish amq.direct k 3
         a exchange later direct
         > a ok
         a publish later k 4
         a passive q
         > a queue q 3 0
         a passive r
         > a queue r 1 0
         a delete-exchange plain
         > a ok
         a clear-policy p
         > a ok
         a publish later k 5 mandatory
         > a returned 5",
    );
}

#[test]
fn dead_letters_and_expiry_follow_policies() {
    check(
        "a queue q
         > a queue q 0 0
         a queue dead
         > a queue dead 0 0
         a publish - q 1
         a policy letters ^q$ dead-letter-exchange=amq.fanout message-ttl=10
         > a ok
         a bind amq.fanout dead k
         > a ok
         a publish - q 2
         time 11
         a passive q
         > a queue q 2 0
         a get q
         > a deliver  #1 1
         > a got, 1 left
         a discard 1
         a passive dead
         > a queue dead 2 0",
    );
}

#[test]
fn queues_expire_by_policy_and_those_of_sessions_do_not() {
    let scenario = "a queue q
         > a queue q 0 0
         a policy p .* about=queues expires=100
         > a ok
         time 101
         a passive q
         > a refused NotFound: no queue 'q' in vhost '/'
         a queue r
         > a queue r 0 0
         time 50
         a clear-policy p
         > a ok
         time 101
         a passive r
         > a queue r 0 0";
    check(scenario);
}

#[test]
fn many_queues_follow_over_several_turns() {
    let mut host = TestHost::with(Limits::default());
    let queues = 4_000;
    for queue in 0..queues {
        host.act_on(&format!("a queue q{queue}"));
        host.act_on(&format!("a publish - q{queue} 1"));
    }
    host.run("a flow on");
    host.act_on("a policy p ^q max-length=0");
    let left = |host: &TestHost| {
        host.engine.list_queues().filter(|queue| queue.followed.policy.is_none()).count()
    };
    let after_the_request = left(&host);
    assert!(after_the_request > 0 && after_the_request < queues, "{after_the_request}");
    assert!(host.engine.has_work());
    host.settle_down();
    assert_eq!(left(&host), 0);
    let ready: u64 = host.engine.list_queues().map(|queue| queue.ready).sum();
    assert_eq!(ready, 0);
}

#[test]
fn a_virtual_host_takes_its_policies_with_it() {
    let mut host = TestHost::new();
    for line in ["a create-vhost v", "a policy p .* max-length=1", "a delete-vhost v"] {
        host.run(line);
    }
    assert_eq!(host.engine.list_policies().count(), 1);
    let host = check_in(
        host,
        "a create-vhost v
         > a ok
         a clear-policy p
         > a ok",
    );
    assert_eq!(host.engine.list_policies().count(), 0);
}

#[test]
fn what_is_refused_changes_nothing() {
    let host = check_in(
        TestHost::new(),
        "a policy p .* max-length=x
         > a refused PreconditionFailed: option 'max-length' of a policy: must be an integer
         a policy p ( max-length=1
         > a refused PreconditionFailed: policy pattern '(' cannot be used: unclosed group
         a policy p .* expires=9999999999999
         > a refused PreconditionFailed: option 'expires' of a policy: 9999999999999 is not between 1 \
           and 315360000000",
    );
    assert_eq!(host.engine.list_policies().count(), 0);
}

#[test]
fn administrators_alone_set_policies() {
    let mut host = TestHost::new();
    host.client("c");
    check_in(
        host,
        "c policy p .* max-length=1
         > c refused AccessRefused: user 'ann' is not an administrator",
    );
}

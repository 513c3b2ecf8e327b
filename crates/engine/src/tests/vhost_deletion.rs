//! Virtual hosts with very much in them are deleted over several turns, and whole whatever happens meanwhile.

use super::TestHost;
use crate::interface::limits::Limits;
use crate::*;

const QUEUES: usize = 600;

/// A virtual host with queues, messages, delayed messages; nobody is in it.
fn filled() -> TestHost {
    let mut host = TestHost::with(Limits { given_back_at_once: 100, ..Limits::default() });
    host.run("z create-vhost v");
    host.run("z queue q durable");
    let channel = ChannelId { connection: ConnectionId(1), number: 1 };
    host.enter_vhost("b", channel, "v");
    for number in 0..QUEUES {
        host.act_on(&format!("b queue q{number} durable"));
        host.act_on(&format!("b publish - q{number} 1 persistent"));
    }
    for number in 0..250 {
        host.act_on(&format!("b publish amq.topic k {number} persistent delay=100000"));
    }
    host.run("b disconnect");
    host
}

fn is_there(host: &TestHost) -> bool {
    host.engine.topology.vhost_slots.contains_key("v")
}

#[test]
fn it_goes_over_several_turns_in_which_nobody_enters() {
    let mut host = filled();
    host.act_on("z delete-vhost v");
    assert!(host.fx.lines.is_empty(), "{:?}", host.fx.lines);
    let (mut turns, mut left) = (0, host.engine.list_queues().count());
    while is_there(&host) {
        let refused = host.engine.connect_internal(ConnectionId(1), "v");
        assert_eq!(refused.unwrap_err().kind, RefusalKind::NotFound);
        let created = host.engine.check_not_leaving("v");
        assert_eq!(created.unwrap_err().kind, RefusalKind::PreconditionFailed);
        host.engine.dispatch(host.now, &mut host.fx);
        host.engine.check_invariants(&host.fx.references);
        let now_left = host.engine.list_queues().count();
        assert!(left - now_left <= 100, "{} queues in a turn", left - now_left);
        (turns, left) = (turns + 1, now_left);
    }
    assert!((7..20).contains(&turns), "{turns}");
    assert_eq!(left, 1);
    host.settle_down();
    assert!(host.fx.lines.is_empty(), "{:?}", host.fx.lines);
    assert_eq!(host.run("flush"), ["z ok"]);
    assert_eq!(host.run("z create-vhost v"), ["z ok"]);
    host.run("restart");
    assert_eq!(host.engine.list_queues().count(), 1);
    host.run("z delete q");
    assert!(host.fx.references.is_empty(), "{:?}", host.fx.references);
}

#[test]
fn a_crash_leaves_it_with_what_was_not_deleted() {
    let mut host = filled();
    host.act_on("z delete-vhost v");
    (0..3).for_each(|_| host.engine.dispatch(host.now, &mut host.fx));
    assert!(is_there(&host));
    host.run("restart");
    assert!(is_there(&host));
    let left = host.engine.list_queues().count();
    assert!((2..QUEUES).contains(&left), "{left}");
    host.act_on("z delete-vhost v");
    host.settle_down();
    assert_eq!(host.run("flush"), ["z ok"]);
    assert!(!is_there(&host));
    host.run("restart");
    assert!(!is_there(&host));
    assert_eq!(host.engine.list_queues().count(), 1);
}

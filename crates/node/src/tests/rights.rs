//! Rights change while clients listen, on whichever shards.

use super::broker::Broker;
use angarium_engine::{Request, SubjectPermissions, SubjectRules};

/// A broker with clients of `user` on two shards, and one of another user who publishes and shares a group
/// with one of them.
fn broker(shards: usize) -> Broker {
    let mut broker = Broker::new(shards);
    let (name, password_hash) = ("other".to_owned(), String::new());
    broker.administer("/", Request::CreateUser { name, password_hash, administrator: false });
    broker.administer("/", permit("other", "/"));
    broker.play(
        "a@1> SUB secret.> 1|SUB pub.* 2|SUB > 3
         b@2> SUB secret.x g 1|SUB pub.a 2
         p@0> CONNECT {\"user\":\"other\",\"pass\":\"secret\",\"verbose\":false}
         p> SUB secret.* g 7
         p> PUB pub.a 0|
         a< MSG pub.a 2 0||MSG pub.a 3 0|
         b< MSG pub.a 2 0|
         p<",
    );
    broker
}

/// Everything.
fn permit(user: &str, vhost: &str) -> Request {
    let all = || ".*".to_owned();
    let (user, vhost) = (user.to_owned(), vhost.to_owned());
    Request::SetPermissions { user, vhost, configure: all(), write: all(), read: all() }
}

fn narrow(allow: &[&str], deny: &[&str]) -> Request {
    let texts = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect();
    let listen = SubjectRules { allow: texts(allow), deny: texts(deny) };
    let subjects = SubjectPermissions { subscribe: listen, ..SubjectPermissions::default() };
    Request::SetSubjectPermissions { user: "user".to_owned(), vhost: "/".to_owned(), subjects }
}

#[test]
fn subscriptions_end_on_all_shards_when_their_user_may_not_have_them_any_more() {
    for shards in [1, 2, 3] {
        let mut broker = broker(shards);
        broker.administer("/", narrow(&[], &["secret.>"]));
        broker.play(
            "a< -ERR 'Permissions Violation for Subscription to \"secret.>\"'
             b< -ERR 'Permissions Violation for Subscription to \"secret.x\" using queue \"g\"'
             p> PUB secret.x 0|
             p> PUB secret.x 0|
             p< MSG secret.x 7 0||MSG secret.x 7 0|
             p> PUB pub.a 0|
             a< MSG pub.a 2 0||MSG pub.a 3 0|
             b< MSG pub.a 2 0|
             a> SUB secret.x 1
             a< -ERR 'Permissions Violation for Subscription to \"secret.x\"'
             b> SUB $SLOW_CONSUMER.drop-new.pub.b g 9
             a> PING
             a< PONG",
        );
        broker.administer("/", narrow(&["pub.a"], &[]));
        broker.play(
            "a< -ERR 'Permissions Violation for Subscription to \"pub.*\"'|\
             -ERR 'Permissions Violation for Subscription to \">\"'
             b< -ERR 'Permissions Violation for Subscription to \"$SLOW_CONSUMER.drop-new.pub.b\" \
             using queue \"g\"'
             p> PUB pub.a 0|
             a<
             b< MSG pub.a 2 0|",
        );
        let (user, vhost) = ("user".to_owned(), "/".to_owned());
        broker.administer("/", Request::ClearPermissions { user, vhost });
        assert!(!broker.is_connected("a") && !broker.is_connected("b"), "{shards}");
        broker.play("p> PUB pub.a 0|");
    }
}

#[test]
fn who_logged_in_by_an_old_password_is_gone_on_all_shards() {
    for shards in [1, 2, 3] {
        let mut broker = broker(shards);
        let change = |password_hash: Option<&str>, administrator| Request::ChangeUser {
            name: "user".to_owned(),
            password_hash: password_hash.map(str::to_owned),
            administrator,
        };
        broker.administer("/", change(None, Some(true)));
        assert!(broker.is_connected("a") && broker.is_connected("b"), "{shards}");
        broker.administer("/", change(Some("new"), None));
        for name in ["a", "b"] {
            assert!(!broker.is_connected(name), "{shards} {name}");
        }
        assert!(broker.is_connected("p"), "{shards}");
        for node in &broker.nodes {
            let mut users = node.engine().list_users();
            assert!(users.find(|user| user.name == "user").unwrap().administrator, "{shards}");
            assert_eq!(node.engine().password_hash("user"), Some("new"), "{shards}");
        }
    }
}

#[test]
fn clients_of_a_user_that_is_deleted_are_gone_at_once() {
    for shards in [1, 2, 3] {
        let mut broker = broker(shards);
        broker.administer("/", Request::DeleteUser { name: "user".to_owned() });
        assert!(!broker.is_connected("a") && !broker.is_connected("b"), "{shards}");
        let told = broker.heard("a") + &broker.heard("b");
        assert!(!told.contains("-ERR"), "{told}");
        broker.play(
            "p> PUB pub.a 0|
             p> PUB secret.x 0|
             p< MSG secret.x 7 0|",
        );
    }
}

/// Deletes two virtual hosts that 200 clients use, on shards in turn.
#[track_caller]
fn check_many_end(shards: usize) {
    let mut broker = Broker::new(shards);
    for vhost in ["v", "w"] {
        broker.administer("/", Request::CreateVhost { name: vhost.to_owned() });
        broker.administer("/", permit("user", vhost));
    }
    let login = |vhost: &str| {
        format!("CONNECT {{\"user\":\"{vhost}:user\",\"pass\":\"secret\",\"verbose\":false}}\r\n")
    };
    let names: Vec<String> = (0..200).map(|number| format!("c{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        broker.connect(name, number);
        let vhost = if number % 5 == 0 { "w" } else { "v" };
        broker.say(name, &(login(vhost) + "SUB x 1\r\n"));
    }
    for vhost in ["v", "w"] {
        broker.ask("/", Request::DeleteVhost { name: vhost.to_owned() });
    }
    let mut turns = 0;
    while broker.turn() {
        let left = names.iter().filter(|name| broker.is_connected(name)).count();
        turns += 1;
        let ended_max = turns * 32 * shards + 64;
        assert!(left + ended_max >= 200, "{left} are left after {turns} turns of {shards} shards");
    }
    assert!(names.iter().all(|name| !broker.is_connected(name)), "{shards}");
    assert!(broker.nodes.iter().all(|node| node.engine().list_vhosts().count() == 1), "{shards}");
}

#[test]
fn many_who_use_virtual_hosts_that_are_deleted_end_some_a_turn() {
    for shards in [1, 2, 3] {
        check_many_end(shards);
    }
}

#[test]
fn a_virtual_host_goes_although_many_have_just_listened_in_it() {
    let mut broker = Broker::new(2);
    broker.administer("/", Request::CreateVhost { name: "v".to_owned() });
    broker.administer("/", permit("user", "v"));
    broker.play("a@1> CONNECT {\"user\":\"v:user\",\"pass\":\"secret\",\"verbose\":false}");
    let subscribe = |number: usize| format!("SUB x.{number} {number}\r\n");
    broker.say("a", &(0..3_000).map(subscribe).collect::<String>());
    broker.administer("/", Request::DeleteVhost { name: "v".to_owned() });
    assert!(!broker.is_connected("a"));
    broker.play(
        "b@1> SUB x.1 1
         b> PUB x.1 0|
         b< MSG x.1 1 0|",
    );
}

#[test]
fn a_request_that_nobody_may_hear_is_answered() {
    for shards in [1, 2] {
        let mut broker = Broker::new(shards);
        broker.administer("/", narrow(&[], &["secret.>"]));
        broker.play(
            "a@0> SUB > 1
             b@1> SUB > 1
             b> SUB _INBOX.x 7
             b> PUB secret.x _INBOX.x 0|",
        );
        let heard = broker.heard("b");
        assert!(heard.contains("503"), "{shards} shards: {heard:?}");
    }
}

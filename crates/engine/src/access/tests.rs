//! What each request takes, who has it, and how changes reach open connections.

use super::*;
use crate::{
    Arguments, Binding, BindingTarget, Consume, ExchangeKind, ExchangeOptions, QueueOptions,
    Request, SubjectRules,
};

fn access_with(configure: &str, write: &str, read: &str) -> Access {
    let mut access = Access::new(&crate::tests::CONVENTIONS.names);
    access.put_user("ann", "hash", false);
    access
        .set_permissions(PermissionListing { user: "ann", vhost: "/", configure, write, read })
        .unwrap();
    access
}

fn grant(access: &Access) -> Grant {
    access.grant("ann", "/").unwrap()
}

#[test]
fn patterns_match_anywhere_in_a_name_unless_anchored() {
    let table = [
        (".*", "anything", true),
        ("", "anything", false),
        ("^$", "anything", false),
        ("", "", false), // The default exchange goes by its name.
        ("^amq\\.default$", "", true),
        ("^$", "", false),
        ("order", "my-orders", true),
        ("^order", "my-orders", false),
        ("^orders$", "orders", true),
        ("^orders$", "orders2", false),
        ("^(amq\\.gen.*|amq\\.default)$", "amq.gen-1", true),
        ("(?i)^ORDERS$", "orders", true),
        ("^\\w+$", "größe", true),
    ];
    for (pattern, name, expected) in table {
        let access = access_with("", pattern, "");
        let may = grant(&access).may(&access, Right::Write, name);
        assert_eq!(may, expected, "{pattern:?} on {name:?}");
        assert_eq!(grant(&access).may_publish(&access, name), expected, "{pattern:?} on {name:?}");
    }
}

#[test]
fn patterns_that_cannot_be_used_are_refused_and_change_nothing() {
    let at_limit = "a".repeat(PERMISSION_PATTERN_BYTES_MAX);
    let above = format!("{at_limit}a");
    let table = [
        ("(", Some(RefusalKind::PreconditionFailed)),
        ("a(?=b)", Some(RefusalKind::PreconditionFailed)),
        ("((a{200}){200}){200}", Some(RefusalKind::PreconditionFailed)),
        (above.as_str(), Some(RefusalKind::LimitExceeded)),
        (at_limit.as_str(), None),
    ];
    for (pattern, expected) in table {
        let mut access = access_with("^c$", "^w$", "^r$");
        let set = PermissionListing {
            user: "ann",
            vhost: "/",
            configure: ".*",
            write: ".*",
            read: pattern,
        };
        let refused = access.set_permissions(set).err();
        assert_eq!(refused.as_ref().map(|refusal| refusal.kind), expected, "{refused:?}");
        if let Some(refusal) = refused {
            assert!(refusal.text.starts_with("read pattern"), "{}", refusal.text);
            assert_eq!(access.permissions().next().unwrap().write, "^w$");
        }
    }
}

fn declare_exchange(alternate: Option<&str>, passive: bool) -> Request {
    let options = ExchangeOptions {
        kind: ExchangeKind::Direct,
        delaying: false,
        durable: false,
        auto_delete: false,
        internal: false,
        alternate: alternate.map(str::to_owned),
    };
    let options = (!passive).then_some(options);
    Request::DeclareExchange { name: "x".into(), options }
}

fn declare_queue(dead_letters: Option<&str>, passive: bool) -> Request {
    let options = QueueOptions {
        dead_letter_exchange: dead_letters.map(str::to_owned),
        ..QueueOptions::default()
    };
    let options = (!passive).then_some(options);
    Request::DeclareQueue { name: "q".into(), options }
}

fn bind(unbind: bool, target: BindingTarget) -> Request {
    let (source, key, arguments) = ("x".to_owned(), String::new(), Arguments::new());
    let binding = Binding { source, target, key, arguments, filter: None, not_from: None };
    if unbind { Request::Unbind(binding) } else { Request::Bind(binding) }
}

/// `needed` lists the rights that a request takes, as (right, name): it is granted with exactly
/// these, and refused, in words that name the missing one, without any of them.
fn check(request: &Request, needed: &[(Right, &str)]) {
    let pattern = |right: Right, without: usize| {
        let names =
            needed.iter().enumerate().filter(|&(index, &(of, _))| of == right && index != without);
        let names: Vec<&str> = names.map(|(_, &(_, name))| name).collect();
        if names.is_empty() { String::new() } else { format!("^({})$", names.join("|")) }
    };
    let outcome = |without: usize| {
        let [configure, write, read] =
            [Right::Configure, Right::Write, Right::Read].map(|right| pattern(right, without));
        let access = access_with(&configure, &write, &read);
        grant(&access).check(&access, request)
    };
    assert_eq!(outcome(usize::MAX), Ok(()), "{request:?}");
    for (index, (right, name)) in needed.iter().enumerate() {
        let refusal = outcome(index).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::AccessRefused);
        let right = format!("{right:?}").to_lowercase();
        assert!(refusal.text.starts_with(&right), "{request:?}: {}", refusal.text);
        assert!(refusal.text.contains(&format!("'{name}'")), "{request:?}: {}", refusal.text);
        assert!(refusal.text.ends_with("in vhost '/' refused for user 'ann'"), "{}", refusal.text);
    }
}

#[test]
fn each_request_takes_exactly_its_rights() {
    use Right::{Configure, Read, Write};
    let queue = || BindingTarget::Queue("q".into());
    let exchange = || BindingTarget::Exchange("y".into());
    check(&declare_exchange(None, false), &[(Configure, "x")]);
    check(&declare_exchange(Some("alt"), false), &[(Configure, "x"), (Read, "x"), (Write, "alt")]);
    check(&declare_exchange(None, true), &[]);
    check(&declare_queue(None, false), &[(Configure, "q")]);
    check(&declare_queue(Some("dlx"), false), &[(Configure, "q"), (Read, "q"), (Write, "dlx")]);
    check(&declare_queue(Some("dlx"), true), &[]);
    check(&Request::DeleteExchange { name: "x".into(), if_unused: false }, &[(Configure, "x")]);
    check(
        &Request::DeleteQueue { name: "q".into(), if_unused: false, if_empty: false },
        &[(Configure, "q")],
    );
    check(&Request::PurgeQueue { name: "q".into() }, &[(Read, "q")]);
    for unbind in [false, true] {
        check(&bind(unbind, queue()), &[(Write, "q"), (Read, "x")]);
        check(&bind(unbind, exchange()), &[(Write, "y"), (Read, "x")]);
    }
    check(&Request::Get { queue: "q".into(), presettled: true }, &[(Read, "q")]);
    let consume = Consume { queue: "q".into(), ..Consume::default() };
    check(&Request::Consume(consume), &[(Read, "q")]);
    check(&Request::SelectConfirms { explained: false }, &[]);
    check(&Request::OpenInbox { name: String::new() }, &[]);
}

#[test]
fn only_administrators_administer() {
    let requests = [
        Request::CreateVhost { name: "v".into() },
        Request::DeleteVhost { name: "v".into() },
        Request::CreateUser {
            name: "u".into(),
            password_hash: String::new(),
            administrator: false,
        },
        Request::ChangeUser { name: "u".into(), password_hash: None, administrator: None },
        Request::DeleteUser { name: "u".into() },
        Request::ClearPermissions { user: "u".into(), vhost: "v".into() },
        Request::SetExchangeRules {
            user: "u".into(),
            vhost: "v".into(),
            exchange: "e".into(),
            rules: on_events(),
        },
        Request::SetPermissions {
            user: "u".into(),
            vhost: "v".into(),
            configure: String::new(),
            write: String::new(),
            read: String::new(),
        },
    ];
    let mut access = access_with(".*", ".*", ".*");
    let mut open = grant(&access);
    for request in &requests {
        let refusal = open.check(&access, request).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::AccessRefused, "{request:?}");
    }
    access.put_user("ann", "hash", true);
    for request in &requests {
        assert_eq!(open.check(&access, request), Ok(()), "{request:?}");
    }
}

#[test]
fn a_connection_needs_permissions_in_its_virtual_host() {
    let access = access_with("", "", "");
    assert!(access.grant("ann", "/").is_ok());
    for (user, vhost) in [("ann", "other"), ("bob", "/")] {
        let refusal = access.grant(user, vhost).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::AccessRefused);
        assert_eq!(refusal.text, format!("access to vhost '{vhost}' refused for user '{user}'"));
    }
}

#[test]
fn changes_hold_at_once_for_open_connections() {
    type WorkBudget = fn(&mut Access);
    fn set(access: &mut Access, write: &str) {
        let set = PermissionListing { user: "ann", vhost: "/", configure: "", write, read: "" };
        access.set_permissions(set).unwrap();
    }
    let steps: [(&str, WorkBudget, bool); 8] = [
        ("granted", |access| set(access, "^a$"), true),
        ("narrowed", |access| set(access, "^b$"), false),
        ("widened", |access| set(access, ".*"), true),
        ("cleared", |access| assert!(access.clear_permissions("ann", "/")), false),
        ("again", |access| set(access, "a"), true),
        ("virtual host deleted", |access| access.vhost_deleted("/"), false),
        ("and again", |access| set(access, "a"), true),
        ("user deleted", |access| assert!(access.delete_user("ann")), false),
    ];
    let mut access = access_with(".*", ".*", ".*");
    let mut open = grant(&access);
    assert!(open.may_publish(&access, "a"));
    for (what, step, expected) in steps {
        step(&mut access);
        // Twice: the first answer must not be remembered wrongly.
        for _ in 0..2 {
            assert_eq!(open.may_publish(&access, "a"), expected, "{what}");
            assert_eq!(open.may(&access, Right::Write, "a"), expected, "{what}");
        }
    }
}

#[test]
fn one_allowed_exchange_says_nothing_about_another() {
    let access = access_with("", "^a$", "");
    let mut open = grant(&access);
    for (exchange, expected) in [("a", true), ("b", false), ("a", true), ("", false), ("a", true)] {
        assert_eq!(open.may_publish(&access, exchange), expected, "{exchange:?}");
    }
    let refusal = open.check_exchange(&access, "").unwrap_err();
    let expected = "write access to exchange 'amq.default' in vhost '/' refused for user 'ann'";
    assert_eq!(refusal.text, expected);
}

#[test]
fn users_and_permissions_are_listed_as_they_were_set() {
    let mut access = access_with("c", "w", "r");
    access.put_user("bob", "other", true);
    let users: Vec<_> = access.users().map(|(name, user)| (name, user.administrator)).collect();
    assert_eq!(users, [("ann", false), ("bob", true)]);
    assert_eq!(access.user("bob").unwrap().password_hash, "other");
    let set = PermissionListing { user: "ann", vhost: "/", configure: "c", write: "w", read: "r" };
    assert_eq!(access.permissions().collect::<Vec<_>>(), [set]);
    let nobody = PermissionListing { user: "nobody", ..set };
    assert_eq!(access.set_permissions(nobody).unwrap_err().kind, RefusalKind::NotFound);
    assert!(access.delete_user("ann"));
    assert!(!access.delete_user("ann"));
    assert_eq!(access.permissions().count(), 0);
    // A new user of an old name starts without the old one's permissions.
    access.put_user("ann", "hash", false);
    assert!(access.grant("ann", "/").is_err());
    assert!(!access.clear_permissions("ann", "/"));
}

#[test]
fn a_pattern_of_subjects_covers_another_where_it_matches_all_that_one_does() {
    // general, special, covers, overlaps
    let table = [
        ("a", "a", true, true),
        ("a", "b", false, false),
        ("a", "a.b", false, false),
        ("a.*", "a.b", true, true),
        ("a.*", "a.*", true, true),
        ("a.*", "*.b", false, true),
        ("a.*", "a.>", false, true),
        ("a.b", "a.*", false, true),
        ("a.b", "a", false, false),
        ("a.*", "a", false, false),
        ("a.*", "a.b.c", false, false),
        ("*.b.*", "a.b.c", true, true),
        (">", "a", true, true),
        ("a.>", "a.*", true, true),
        ("a.>", "a", false, false),
        ("a.>", "a.b.c", true, true),
        ("a.>", "a.>", true, true),
        (">", "a.b", true, true),
        ("*", ">", false, true),
        ("*.*", "a.>", false, true),
        ("a.*.c", "*.b.>", false, true),
        ("a.*.c", "*.b.d", false, false),
    ];
    for (general, special, covers, overlaps) in table {
        assert_eq!(subjects::covers(general, special), covers, "{general} over {special}");
        assert_eq!(subjects::overlap(general, special), overlaps, "{general} and {special}");
        assert_eq!(subjects::overlap(special, general), overlaps, "{special} and {general}");
    }
}

fn rules(allow: &[&str], deny: &[&str]) -> SubjectRules {
    let texts = |list: &[&str]| list.iter().map(|&pattern| pattern.to_owned()).collect();
    SubjectRules { allow: texts(allow), deny: texts(deny) }
}

#[test]
fn subjects_are_narrowed_for_publishing_and_subscribing() {
    let mut access = access_with(".*", ".*", ".*");
    let mut grant = grant(&access);
    let narrowed = SubjectPermissions {
        publish: rules(&["app.>"], &["app.secret"]),
        subscribe: rules(&["app.>", "_INBOX.>"], &["app.secret", "app.keys.>"]),
        ..SubjectPermissions::default()
    };
    access.set_subject_permissions("ann", "/", &narrowed).unwrap();
    let mut publish = |subject: &str| {
        assert!(grant.may_publish(&access, "amq.topic"));
        // Twice: the second time, what was allowed is remembered.
        assert_eq!(grant.check_subject(subject).is_ok(), grant.check_subject(subject).is_ok());
        grant.check_subject(subject).map_err(|refusal| refusal.text)
    };
    assert_eq!(publish("app.orders"), Ok(()));
    assert_eq!(
        publish("app.secret").unwrap_err(),
        "write access to subject 'app.secret' in vhost '/' refused for user 'ann'"
    );
    assert!(publish("other").is_err());
    assert_eq!(publish("app.orders"), Ok(()));
    let mut subscribe = |pattern: &str| grant.check_subscribe(&access, pattern).ok();
    assert_eq!(subscribe("_INBOX.1.*"), Some(vec![]));
    assert_eq!(subscribe("app.*"), Some(vec!["app.secret".to_owned()]));
    assert_eq!(subscribe("app.secret"), None);
    assert_eq!(subscribe("app.keys.*"), None);
    assert_eq!(subscribe(">"), None);
    let may_bind =
        |key: &str| grant.check_binding("amq.topic", key, &matched_by_binding(key)).is_ok();
    for (key, may) in [
        ("app.orders.#", true),
        ("app.orders.#.new", true),
        ("app.x", true),
        ("app.#", false),
        ("#", false),
        ("#.orders", false),
        ("app.*", false),
        // `#` is no word as well, and only where it is one by itself.
        ("app.secret.#", false),
        ("app.secret.#.#", false),
        ("app.*.#", false),
        ("_INBOX.#", false),
        ("_INBOX.*.#", true),
        ("app.secret#", true),
        ("secret.app#", false),
    ] {
        assert_eq!(may_bind(key), may, "{key}");
    }
    // Changed patterns leave subjects as they are; taking all rules away opens them.
    access.set_subject_permissions("ann", "/", &SubjectPermissions::default()).unwrap();
    assert!(grant.may_publish(&access, "amq.topic"));
    assert!(grant.check_subject("other").is_ok());
}

/// Messages to `events` with keys of `app.>`, bindings to it with keys of `public.>`.
fn on_events() -> ExchangeRules {
    ExchangeRules {
        publish: rules(&["app.>"], &["app.secret"]),
        subscribe: rules(&["public.>"], &[]),
    }
}

#[test]
fn routing_keys_of_each_exchange_are_narrowed_by_themselves() {
    let mut access = access_with(".*", ".*", ".*");
    let mut grant = grant(&access);
    access.set_exchange_rules("ann", "/", "events", &on_events()).unwrap();
    // Changed patterns leave them as they are.
    let set = PermissionListing { user: "ann", vhost: "/", configure: "", write: ".*", read: ".*" };
    access.set_permissions(set).unwrap();
    assert!(grant.may_publish(&access, "events"));
    assert_eq!(grant.narrowed_exchanges().collect::<Vec<_>>(), ["events"]);
    for (exchange, key, may) in [
        ("events", "app.x", true),
        ("events", "app.secret", false),
        ("events", "other", false),
        ("amq.topic", "other", true),
        ("others", "other", true),
    ] {
        assert_eq!(grant.check_key(exchange, key).is_ok(), may, "{exchange} {key}");
        let key = [key.to_owned()];
        assert_eq!(grant.check_way(exchange, &key).is_ok(), may, "{exchange} {key:?}");
    }
    assert_eq!(
        grant.check_key("events", "other").unwrap_err().text,
        "write access to topic 'other' in exchange 'events' in vhost '/' refused for user 'ann'"
    );
    for (exchange, key, may) in
        [("events", "public.#.x", true), ("events", "app.x", false), ("others", "app.x", true)]
    {
        let found = grant.check_binding(exchange, key, &matched_by_binding(key));
        assert_eq!(found.is_ok(), may, "{exchange} {key}");
    }
    access.set_exchange_rules("ann", "/", "events", &ExchangeRules::default()).unwrap();
    assert!(grant.may_publish(&access, "events") && !grant.narrows_exchanges());
}

#[test]
fn rules_on_exchanges_that_cannot_be_used_are_refused() {
    use RefusalKind::{LimitExceeded, NotFound, PreconditionFailed};
    let mut access = access_with(".*", ".*", ".*");
    let wrong = ExchangeRules { publish: rules(&["a.>.b"], &[]), ..ExchangeRules::default() };
    for (user, exchange, rules, kind) in [
        ("ann", "", on_events(), PreconditionFailed),
        ("ann", "amq.topic", on_events(), PreconditionFailed),
        ("ann", "events", wrong, PreconditionFailed),
        ("ben", "events", on_events(), NotFound),
        ("ann", &"e".repeat(300), on_events(), LimitExceeded),
    ] {
        let refused = access.set_exchange_rules(user, "/", exchange, &rules).unwrap_err();
        assert_eq!(refused.kind, kind, "{}", refused.text);
    }
    for number in 0..NARROWED_EXCHANGES_MAX {
        access.set_exchange_rules("ann", "/", &number.to_string(), &on_events()).unwrap();
    }
    let refused = access.set_exchange_rules("ann", "/", "events", &on_events()).unwrap_err();
    assert_eq!(refused.kind, LimitExceeded);
    assert_eq!(access.exchange_rules_of("ann", "/").count(), NARROWED_EXCHANGES_MAX);
    // One of them may change still.
    access.set_exchange_rules("ann", "/", "7", &ExchangeRules::default()).unwrap();
}

#[test]
fn rules_on_subjects_that_cannot_be_used_are_refused() {
    let mut access = access_with(".*", ".*", ".*");
    let many = vec!["a"; crate::interface::limits::SUBJECT_RULES_MAX + 1];
    for (allow, kind) in
        [(&["a.>.b"][..], RefusalKind::PreconditionFailed), (&many, RefusalKind::LimitExceeded)]
    {
        let subjects = SubjectPermissions { publish: rules(allow, &[]), ..Default::default() };
        let refused = access.set_subject_permissions("ann", "/", &subjects).unwrap_err();
        assert_eq!(refused.kind, kind);
    }
    let nobody = access.set_subject_permissions("ben", "/", &SubjectPermissions::default());
    assert_eq!(nobody.unwrap_err().kind, RefusalKind::NotFound);
}

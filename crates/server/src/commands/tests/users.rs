//! Users: made, changed one thing at a time, and who is still connected then.

use super::*;

#[test]
fn what_is_changed_of_a_user_is_asked_for_alone() {
    asks(
        "angarium user password ada",
        "PUT",
        "/v1/users/ada/password",
        Some(json!({ "password": "from-stdin" })),
    );
    asks(
        "angarium user administrator ada no",
        "PUT",
        "/v1/users/ada/administrator",
        Some(json!({ "administrator": false })),
    );
}

#[test]
fn who_adds_a_user_hears_that_it_has_no_rights_until_it_has_some() {
    let running = Running::start();
    let broker = running.broker("guest");
    let put = |path: &str, body: Value| broker.ask("PUT", path, Some(&body)).unwrap();
    let user = json!({ "password": "secret" });
    let added = administer::said(&put("/v1/users/ada", user.clone()));
    assert!(added.starts_with("done\nuser 'ada' has no rights yet"), "{added}");
    assert!(added.contains("angarium permission set ada --vhost /"), "{added}");
    put("/v1/permissions/%2F/ada", json!({ "read": ".*" }));
    let again = ask(&broker, "angarium user add ada").unwrap_err();
    assert!(again.starts_with("there is a user 'ada' already: change its password"), "{again}");
    assert_eq!(administer::said(&put("/v1/users/ada/password", user)), "done\n");
    let nkey = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
    for (name, is_mistyped) in [(nkey, false), (&nkey.replace("UD", "UE"), true)] {
        let answer = put(&format!("/v1/users/{name}"), json!({ "password": null }));
        let warning = answer["warning"].as_str();
        let is_said = warning.is_some_and(|warning| warning.contains("check sum is wrong"));
        assert_eq!(is_said, is_mistyped, "{answer}");
    }
}

#[test]
fn a_new_password_ends_those_who_logged_in_by_the_old_one_and_changes_nothing_else() {
    let running = Running::start();
    let mut client = running.client();
    let operator = Broker::Socket(running.folder.path().join("admin.sock"));
    let users = || ask(&operator, "angarium user list").unwrap();
    let before = users();
    let next = json!({ "password": "next" });
    operator.ask("PUT", "/v1/users/guest/password", Some(&next)).unwrap();
    assert_eq!(users(), before, "it is an administrator still");
    let ended = client.declare("q").unwrap_err();
    assert!(ended.contains("320"), "{ended}");
    let Err(refused) = Client::connect(&Target {
        uri: running.uri(),
        socket: None,
        authorities: None,
        password_file: None,
    }) else {
        panic!("the old password is of no use");
    };
    assert!(refused.starts_with("cannot log in as 'guest'"), "{refused}");
    ask(&running.broker("next"), "angarium user administrator guest no").unwrap();
    let refused = ask(&running.broker("next"), "angarium user list").unwrap_err();
    assert_eq!(refused, "only administrators may");
}

#[test]
fn a_virtual_host_has_a_quota_that_is_shown_and_kept() {
    asks(
        "angarium vhost quota v --connections 5 --stored-bytes 1MiB",
        "PUT",
        "/v1/vhosts/v/quota",
        Some(json!({ "connections": 5, "stored_bytes": 1_048_576 })),
    );
    let running = Running::start();
    let broker = running.broker("guest");
    let quota = |body: Value| broker.ask("PUT", "/v1/vhosts/%2F/quota", Some(&body));
    let answer = quota(json!({ "stored_bytes": 4, "queues": 1 })).unwrap();
    let said = administer::said(&answer);
    assert_eq!(said, "done\nfor virtual host '/' this holds now: queues 1, stored-bytes 4\n");
    let error = quota(json!({ "subscriptions": 4 })).unwrap_err();
    assert_eq!(error, "the quota of a virtual host has no field 'subscriptions'");
    publish(&running, "q --declare text").unwrap();
    let refused = publish(&running, "q more").unwrap_err();
    assert!(refused.contains("not confirmed") || refused.contains("refused"), "{refused}");
    let refused = publish(&running, "other --declare text").unwrap_err();
    assert!(refused.contains("queue limit in vhost '/' (1) is reached"), "{refused}");
    let vhosts = ask(&broker, "angarium vhost list").unwrap();
    let shown = (&vhosts[0]["queues"], &vhosts[0]["stored_bytes"], &vhosts[0]["quota"]);
    assert_eq!(shown, (&json!(1), &json!(4), &json!({ "stored_bytes": 4, "queues": 1 })));
}

#[test]
fn answers_that_are_no_listing_are_shown_as_plain_values() {
    let said = administer::said(&json!({ "journal": "ready", "queues": 3, "failure": null }));
    assert_eq!(said, "failure: -\njournal: ready\nqueues: 3\n");
}

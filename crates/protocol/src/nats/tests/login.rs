//! Who gets in, and as whom.

use super::{Speech, check_raw, play};
use crate::amqp091;
use crate::nats::Settings;
use crate::tests::host::TestHost;
use crate::tests::transcript::{self, Play};

/// A login that is refused because of its credentials, and why the connection ends: hosts log that.
fn refused(options: &str, why: &str) {
    check_raw(&format!(
        "> CONNECT {options}
         < INFO
         < -ERR 'Authorization Violation'
         < closed: login refused: {why}"
    ));
}

/// A login that is refused for another reason, and what the log says of it.
fn refused_and_logged(options: &str, why: &str, logged: &str) {
    check_raw(&format!(
        "> CONNECT {options}
         < INFO
         < -ERR 'Authorization Violation'
         < closed: login refused: {why}
         log: {logged}; from 127.0.0.1:9"
    ));
}

/// A login as that user in that virtual host.
fn granted(options: &str, account: &str) {
    check_raw(&format!(
        "> CONNECT {{\"verbose\":false,\"protocol\":1,{options}}}
         < INFO
         > PING
         < PONG
         < INFO connect_info account={account}"
    ));
}

#[test]
fn names_and_passwords_tokens_and_nkeys() {
    granted("\"lang\":\"go\"", "/");
    granted("\"account\":\"\",\"new_account\":false", "/");
    granted("\"user\":\"guest\",\"pass\":\"guest\"", "/");
    granted("\"user\":\"/:guest\",\"pass\":\"guest\"", "/");
    granted("\"user\":\"guest\",\"pass\":\"guest\",\"jwt\":\"x.y.z\"", "/");
    granted("\"auth_token\":\"token\"", "/");
    granted("\"nkey\":\"UKEY\",\"sig\":\"NONCE\"", "/");
    granted("\"jwt\":\"x.y.z\",\"sig\":\"x\"", "/");
    granted("\"auth_token\":\"token\",\"jwt\":\"x.y.z\"", "/");
    granted("\"nkey\":\"UKEY\",\"sig\":\"NONCE\",\"jwt\":\"x.y.z\"", "/");
}

#[test]
fn who_names_no_virtual_host_is_where_it_has_rights() {
    granted("\"nkey\":\"UAPART\",\"sig\":\"NONCE\"", "apart");
    granted("\"user\":\"both\",\"pass\":\"both\"", "/");
    granted("\"user\":\"apart:both\",\"pass\":\"both\"", "apart");
    granted("\"user\":\"x:y\",\"pass\":\"x:y\"", "apart");
    granted("\"user\":\"apart:x:y\",\"pass\":\"x:y\"", "apart");
}

#[test]
fn the_wrong_ones_are_refused() {
    let wrong = |user| format!("wrong password for '{user}'");
    refused("{\"user\":\"guest\",\"pass\":\"x\"}", &wrong("guest"));
    refused("{\"user\":\"guest\"}", &wrong("guest"));
    refused("{\"auth_token\":\"x\"}", &wrong("token"));
    refused("{\"nkey\":\"UKEY\",\"sig\":\"x\"}", "wrong signature");
}

#[test]
fn what_cannot_be_checked_or_has_no_rights_is_refused_and_the_log_says_why() {
    let account = "the client asked for an account: there are virtual hosts instead, and a user \
                   name of the form 'vhost:user' says which";
    let unsigned = "the client has an nkey without a signature";
    for (options, why) in [
        ("{\"nkey\":\"UKEY\"}", unsigned),
        ("{\"pass\":\"guest\"}", "the client has a password without a user name"),
        ("{\"account\":\"other\"}", account),
        ("{\"new_account\":true}", account),
    ] {
        refused_and_logged(options, why, why);
    }
    refused_and_logged(
        "{\"user\":\"missing:guest\",\"pass\":\"guest\"}",
        "no virtual host 'missing'",
        "user 'guest' asked for virtual host 'missing', and there is none of that name",
    );
    refused_and_logged(
        "{\"user\":\"stranger\",\"pass\":\"stranger\"}",
        "access to vhost '/' refused for user 'stranger'",
        "user 'stranger' has no rights in virtual host '/': \
         `angarium permission set stranger --vhost /` gives it some",
    );
}

#[test]
fn nobody_can_forge_a_line_of_the_log() {
    check_raw(
        "> CONNECT {\"user\":\"x\\ny:guest\",\"pass\":\"guest\"}
         < INFO
         < -ERR 'Authorization Violation'
         < closed: login refused: no virtual host 'x\ny'
         log: user 'guest' asked for virtual host 'x?y', and there is none of that name; from \
         127.0.0.1:9",
    );
}

#[test]
fn a_broker_with_one_user_takes_whatever_is_offered() {
    let transcript = "> CONNECT {\"verbose\":false,\"protocol\":1,\"user\":\"x\",\"pass\":\"y\"}
         < INFO
         > PING
         < PONG
         < INFO connect_info account=/
         b> CONNECT {\"verbose\":false,\"auth_token\":\"x\"}
         b< INFO
         b> PING
         b< PONG
         c> CONNECT {\"verbose\":false,\"nkey\":\"UX\",\"sig\":\"x\"}
         c< INFO
         c> PING
         c< PONG
         d> CONNECT {\"verbose\":false,\"jwt\":\"x\"}
         d< INFO
         d> PING
         d< PONG
         e> CONNECT {\"verbose\":false,\"user\":\"guest\",\"pass\":\"x\"}
         e< INFO
         e< -ERR 'Authorization Violation'
         e< closed: login refused: wrong password for 'guest'
         f> CONNECT {\"verbose\":false,\"user\":\"missing:x\",\"pass\":\"y\"}
         f< INFO
         f> PING
         f< PONG";
    let amqp091 = amqp091::tests::Speech { greeted: true, frame_max: 131_072 };
    let host = TestHost::with_guest_alone(amqp091::Settings::default(), Settings::default());
    transcript::check(transcript, Play::new(host, Speech { greeted: false, amqp091 }));
}

#[test]
fn nobody_can_be_refused() {
    let settings = Settings { anonymous_user: None, token_user: None, ..Settings::default() };
    play(
        "> CONNECT {}
         < INFO
         < -ERR 'Authorization Violation'
         < closed: login refused: the client has no credentials
         log: the client has no credentials; from 127.0.0.1:9
         b> PING
         b< INFO
         b< -ERR 'Authorization Violation'
         b< closed: login refused: the client has no credentials
         log: the client has no credentials; from 127.0.0.1:9
         c> CONNECT {\"auth_token\":\"token\"}
         c< INFO
         c< -ERR 'Authorization Violation'
         c< closed: login refused: the client has a token, and none are taken here
         log: the client has a token, and none are taken here; from 127.0.0.1:9
         d> CONNECT {\"jwt\":\"x.y.z\"}
         d< INFO
         d< -ERR 'Authorization Violation'
         d< closed: login refused: the client has a JWT alone, which is not looked at: it needs a user name \
         and password, a token or an nkey
         log: the client has a JWT alone, which is not looked at: it needs a user name and password, a token \
         or an nkey; from 127.0.0.1:9",
        false,
        settings,
    );
}

#[test]
fn a_login_has_its_time() {
    check_raw(
        "> nothing
         < INFO
         > wait 9999
         > wait 1
         < -ERR 'Authentication Timeout'
         < closed: Authentication Timeout",
    );
}

#[test]
fn who_begins_no_tls_in_time_where_it_is_required_learns_that() {
    let settings = Settings { tls: crate::nats::Tls::Required, ..Settings::default() };
    play(
        "> nothing
         < INFO tls_required
         > wait 10000
         < -ERR 'Secure Connection - TLS Required'
         < closed: Secure Connection - TLS Required",
        false,
        settings,
    );
}

#[test]
fn a_second_connect_ends_subscriptions_and_changes_what_it_names() {
    check_raw(
        "> CONNECT {\"verbose\":false}
         < INFO
         > SUB a 1
         > CONNECT {\"echo\":false}
         > PUB a 1|x
         > SUB a 1
         > PUB a 1|x
         > CONNECT {\"verbose\":true,\"echo\":true}
         < +OK
         > SUB a 1
         < +OK
         > PUB a 1|x
         < +OK
         < MSG a 1 1|x
         > CONNECT {\"verbose\":false,\"user\":\"reader\",\"pass\":\"reader\"}
         > PUB a 1|x
         < -ERR 'Permissions Violation for Publish to \"a\"'
         b> PUB a 1|x
         b< INFO
         b< +OK",
    );
}

#[test]
fn a_first_connect_keeps_subscriptions_that_were_made_without() {
    check_raw(
        "> SUB a 1
         < INFO
         < +OK
         > CONNECT {\"verbose\":false}
         > PUB a 1|x
         < MSG a 1 1|x
         > CONNECT {}
         > PUB a 1|x
         > PING
         < PONG",
    );
}

#[test]
fn a_payload_is_not_waited_for_before_it_is_known_whose() {
    let settings = Settings { anonymous_user: None, ..Settings::default() };
    let mut host = TestHost::of(crate::amqp091::Settings::default(), settings);
    let number = host.accept_nats(crate::Peer::default());
    host.receive(number, b"PUB a 1048576\r\n");
    host.turn_ends();
    let why = host.closed(number).unwrap_or_default();
    assert!(why.starts_with("login refused"), "{why}");
}

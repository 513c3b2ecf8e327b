//! Who gets in, and as whom.

use super::{check_raw, play};
use crate::nats::Settings;

/// A login that is refused, and what the log says of it.
fn refused(options: &str, why: &str) {
    check_raw(&format!(
        "> CONNECT {options}
         < INFO
         < -ERR 'Authorization Violation'
         < closed: {why}"
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
    granted("\"user\":\"guest\",\"pass\":\"guest\"", "/");
    granted("\"user\":\"/:guest\",\"pass\":\"guest\"", "/");
    granted("\"user\":\"guest\",\"pass\":\"guest\",\"jwt\":\"x.y.z\"", "/");
    granted("\"auth_token\":\"token\"", "/");
    granted("\"nkey\":\"UKEY\",\"sig\":\"NONCE\"", "/");
}

#[test]
fn the_wrong_ones_are_refused() {
    let violation = "Authorization Violation";
    let wrong = |user| format!("login refused: wrong password for '{user}'");
    refused("{\"user\":\"guest\",\"pass\":\"x\"}", &wrong("guest"));
    refused("{\"user\":\"guest\"}", &wrong("guest"));
    refused("{\"auth_token\":\"x\"}", &wrong("token"));
    refused("{\"nkey\":\"UKEY\",\"sig\":\"x\"}", "login refused: wrong signature");
    refused("{\"nkey\":\"UKEY\"}", violation);
    refused("{\"jwt\":\"x.y.z\",\"sig\":\"x\"}", violation);
    refused("{\"account\":\"other\"}", violation);
    refused(
        "{\"user\":\"missing:guest\",\"pass\":\"guest\"}",
        "login refused: no virtual host 'missing'",
    );
    refused(
        "{\"user\":\"stranger\",\"pass\":\"stranger\"}",
        "login refused: access to vhost '/' refused for user 'stranger'",
    );
}

#[test]
fn nobody_can_be_refused() {
    let settings = Settings { anonymous_user: None, token_user: None, ..Settings::default() };
    play(
        "> CONNECT {}
         < INFO
         < -ERR 'Authorization Violation'
         < closed: Authorization Violation
         b> PING
         b< INFO
         b< -ERR 'Authorization Violation'
         b< closed: Authorization Violation
         c> CONNECT {\"auth_token\":\"token\"}
         c< INFO
         c< -ERR 'Authorization Violation'
         c< closed: Authorization Violation",
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
fn a_second_connect_begins_anew() {
    check_raw(
        "> CONNECT {\"verbose\":false}
         < INFO
         > SUB a 1
         > CONNECT {\"verbose\":false,\"user\":\"reader\",\"pass\":\"reader\"}
         > PUB a 1|x
         < -ERR 'Permissions Violation for Publish to \"a\"'
         b> PUB a 1|x
         b< INFO
         b< +OK",
    );
}

//! Wrong input, and the words by which clients know what was wrong.

use super::{check, check_raw, play};
use crate::nats::Settings;

#[test]
fn what_is_no_operation_ends_the_connection() {
    for (sent, error) in [
        ("GET / HTTP/1.1", "Unknown Protocol Operation"),
        ("PUB a 1|xy|", "Unknown Protocol Operation"),
        ("PUB a", "Parser Error"),
        ("SUB a", "Parser Error"),
        ("PUB a 1048577", "Maximum Payload Violation"),
        ("CONNECT []", "Parser Error"),
        ("CONNECT {\"slow_consumer_policy\":\"never\"}", "Parser Error"),
        ("CONNECT {\"verbose\":false,\"protocol\":2}", "invalid client protocol"),
        (
            "CONNECT {\"no_responders\":true,\"headers\":false}",
            "no responders requires headers support",
        ),
    ] {
        check(&format!("> {sent}\n< -ERR '{error}'\n< closed: {error}"));
    }
    let long = "x".repeat(5000);
    let error = "maximum control line exceeded";
    check(&format!("> SUB {long} 1\n< -ERR '{error}'\n< closed: {error}"));
}

#[test]
fn what_is_no_subject_is_told_and_the_connection_goes_on() {
    check(
        "> SUB a..b 1
         < -ERR 'Invalid Subject'
         > SUB a.>.b 1
         < -ERR 'Invalid Subject'
         > SUB .a 1
         < -ERR 'Invalid Subject'
         > SUB $SLOW_CONSUMER.never.a 1
         < -ERR 'Invalid Subject'
         > SUB $SLOW_CONSUMER.spool.$SLOW_CONSUMER.spool.a 1
         < -ERR 'Invalid Subject'
         > SUB $SLOW_CONSUMER.spool.a..b 1
         < -ERR 'Invalid Subject'
         > SUB > 2
         > PUB a..b 1|x
         > PUB a.* 1|x
         < MSG a.* 2 1|x
         > PUB a 1|x
         < MSG a 2 1|x
         > PUB a.> 1|x
         < MSG a.> 2 1|x
         > PUB a 1|y
         < MSG a 2 1|y
         > PUB b 1|z
         < MSG b 2 1|z",
    );
    check_raw(
        "> CONNECT {\"verbose\":false}
         < INFO
         > SUB > 1
         > PUB a..b 1|x
         < -ERR 'Invalid Publish Subject'
         > PUB a 1|x
         < MSG a 1 1|x
         > PUB a.* 1|x
         < -ERR 'Invalid Publish Subject'
         < MSG a.* 1 1|x
         > PUB a.* 1|x
         < -ERR 'Invalid Publish Subject'
         < MSG a.* 1 1|x",
    );
}

#[test]
fn headers_need_to_be_agreed_on() {
    check_raw(
        "> CONNECT {\"verbose\":false}
         < INFO
         > HPUB a 12 12|NATS/1.0|||
         < -ERR 'message headers not supported'
         < closed: message headers not supported",
    );
    // The error comes before the payload, and even where the headers are empty.
    for line in ["HPUB a 12 1000", "HPUB a 0 0"] {
        check_raw(&format!(
            "> CONNECT {{\"verbose\":false}}
             < INFO
             > {line}
             < -ERR 'message headers not supported'
             < closed: message headers not supported",
        ));
    }
}

#[test]
fn rights_are_checked() {
    check_raw(
        "> CONNECT {\"verbose\":true,\"pedantic\":false,\"user\":\"reader\",\"pass\":\"reader\"}
         < INFO
         < +OK
         > SUB a 1
         < +OK
         > PUB a 1|x
         < -ERR 'Permissions Violation for Publish to \"a\"'
         > PUB a..b 1|x
         < -ERR 'Permissions Violation for Publish to \"a..b\"'
         > PUB a.* 1|x
         < -ERR 'Permissions Violation for Publish to \"a.*\"'
         > PING
         < PONG",
    );
    check_raw(
        "> CONNECT {\"verbose\":false,\"user\":\"writer\",\"pass\":\"writer\"}
         < INFO
         > SUB a.b 1
         < -ERR 'Permissions Violation for Subscription to \"a.b\"'
         > SUB a.b g 1
         < -ERR 'Permissions Violation for Subscription to \"a.b\" using queue \"g\"'
         > SUB $SLOW_CONSUMER.spool.a.b 1
         < -ERR 'Permissions Violation for Subscription to \"$SLOW_CONSUMER.spool.a.b\"'
         b> SUB a 1
         b< INFO
         b< +OK
         > PUB a 1|x
         b< MSG a 1 1|x",
    );
}

#[test]
fn a_responder_may_answer_what_it_is_sent_and_publish_nothing_else() {
    check_raw(
        "> CONNECT {\"verbose\":false,\"user\":\"responder\",\"pass\":\"responder\"}
         < INFO
         > SUB svc 1
         b> CONNECT {\"verbose\":false}
         b< INFO
         b> SUB r.* 2
         > PUB r.1 1|x
         < -ERR 'Permissions Violation for Publish to \"r.1\"'
         b> PUB svc r.1 1|?
         < MSG svc 1 r.1 1|?
         b> PUB svc r.2 1|?
         < MSG svc 1 r.2 1|?
         > PUB r.1 1|!
         b< MSG r.1 2 1|!
         > PUB r.1 1|!
         < -ERR 'Permissions Violation for Publish to \"r.1\"'
         > PUB r.2 2|!!
         b< MSG r.2 2 2|!!
         > PUB r.3 1|!
         < -ERR 'Permissions Violation for Publish to \"r.3\"'
         b> PUB svc r.4 1|?
         < MSG svc 1 r.4 1|?
         > wait 1000
         > wait 121000
         < PING
         b< PING
         > PUB r.4 1|!
         < -ERR 'Permissions Violation for Publish to \"r.4\"'",
    );
}

#[test]
fn an_error_of_the_client_ends_the_connection() {
    check("> -ERR 'no more'\n< closed: the client said -ERR 'no more'");
}

#[test]
fn tls_can_be_demanded() {
    let tls = crate::nats::Tls::Required;
    let settings = Settings { tls, tls_verify: true, ..Settings::default() };
    play(
        "> CONNECT {}
         < INFO tls_required tls_verify
         < -ERR 'Secure Connection - TLS Required'
         < closed: Secure Connection - TLS Required
         log: the client came without TLS, which is required here; from 127.0.0.1:9
         b> SUB a 1
         b< INFO tls_required tls_verify
         b< -ERR 'Secure Connection - TLS Required'
         b< closed: Secure Connection - TLS Required
         log: the client came without TLS, which is required here; from 127.0.0.1:9",
        false,
        settings,
    );
}

//! What clients use every day.

use super::{check, check_raw, play};
use crate::nats::Settings;
use std::time::Duration;

#[test]
fn a_subscription_may_say_what_becomes_of_slow_clients() {
    check(
        "> SUB $SLOW_CONSUMER.drop-oldest.a.* 1
         > PUB a.b 1|x
         < MSG a.b 1 1|x
         > PUB $SLOW_CONSUMER.drop-oldest.a.b 1|x",
    );
}

#[test]
fn subscribers_get_what_matches() {
    check(
        "> SUB orders.* 1
         > SUB orders.> 2
         b> SUB orders.eu 7
         b> SUB invoices 8
         b> PUB orders.eu 5|hello
         < MSG orders.eu 1 5|hello
         < MSG orders.eu 2 5|hello
         b< MSG orders.eu 7 5|hello
         > PUB orders.eu.paid 0|
         < MSG orders.eu.paid 2 0|
         > pub\torders.us _INBOX.1 2|\u{0}\u{1}
         < MSG orders.us 1 _INBOX.1 2|\u{0}\u{1}
         < MSG orders.us 2 _INBOX.1 2|\u{0}\u{1}
         > UNSUB 2
         > PUB orders.us 1|x
         < MSG orders.us 1 1|x
         > UNSUB 9
         > PUB nowhere 1|x",
    );
}

#[test]
fn one_of_a_group_gets_each_message() {
    check(
        "> SUB jobs workers 1
         b> SUB jobs workers 1
         c> SUB jobs 1
         c> PUB jobs 1|1
         b< MSG jobs 1 1|1
         c< MSG jobs 1 1|1
         c> PUB jobs 1|2
         < MSG jobs 1 1|2
         c< MSG jobs 1 1|2
         b> cut
         b< closed: cut
         c> PUB jobs 1|3
         < MSG jobs 1 1|3
         c< MSG jobs 1 1|3",
    );
}

#[test]
fn a_subscription_ends_after_so_many_messages() {
    check(
        "> SUB a 1
         > UNSUB 1 2
         > PUB a 1|1
         < MSG a 1 1|1
         > PUB a 1|2
         < MSG a 1 1|2
         > PUB a 1|3
         > SUB a 2
         > PUB a 1|4
         < MSG a 2 1|4
         > UNSUB 2 1
         > PUB a 1|5",
    );
}

#[test]
fn without_echo_a_client_does_not_hear_itself() {
    check_raw(
        "> CONNECT {\"verbose\":false,\"echo\":false}
         < INFO
         > SUB a 1
         b> CONNECT {\"verbose\":false}
         b< INFO
         b> SUB a 1
         > PUB a 1|x
         b< MSG a 1 1|x
         b> PUB a 1|y
         < MSG a 1 1|y
         b< MSG a 1 1|y",
    );
}

#[test]
fn headers_pass_as_they_are_to_those_who_take_them() {
    check(
        "> SUB a 1
         b> CONNECT {\"no_responders\":false,\"headers\":false}
         b> SUB a 2
         > HPUB a 24 26|NATS/1.0|X: 1|x: 2||hi
         < HMSG a 1 24 26|NATS/1.0|X: 1|x: 2||hi
         b< MSG a 2 2|hi
         > HPUB a b 8 10|no block|hi
         < -ERR 'Unknown Protocol Operation'
         < closed: Unknown Protocol Operation
         c> SUB a 3
         c> HPUB a b 8 10|no blockhi
         b< MSG a 2 b 2|hi
         c< HMSG a 3 b 8 10|no blockhi",
    );
}

#[test]
fn requests_are_answered_or_refused_at_once() {
    check(
        "> SUB _INBOX.x.* 1
         > PUB service _INBOX.x.1 1|?
         < HMSG _INBOX.x.1 1 39 39|NATS/1.0 503|Nats-Subject: service||
         b> SUB service 9
         > PUB service _INBOX.x.2 1|?
         b< MSG service 9 _INBOX.x.2 1|?
         b> PUB _INBOX.x.2 1|!
         < MSG _INBOX.x.2 1 1|!
         > PUB $JS.API.INFO _INBOX.x.3 0|
         < HMSG _INBOX.x.3 1 44 44|NATS/1.0 503|Nats-Subject: $JS.API.INFO||
         > PUB nobody other.inbox 0|
         > PUB a..b _INBOX.x.4 0|
         < HMSG _INBOX.x.4 1 36 36|NATS/1.0 503|Nats-Subject: a..b||
         > PUB a.* _INBOX.x.5 0|
         < HMSG _INBOX.x.5 1 35 35|NATS/1.0 503|Nats-Subject: a.*||
         c> CONNECT {\"no_responders\":false}
         c> SUB r 1
         c> PUB nobody r 0|",
    );
}

const SERVER: &str = "\"server\":{\"name\":\"angarium\",\"host\":\"0.0.0.0\",\"id\":\"ANGARIUM\",\
                      \"ver\":\"2.15.3\",\"jetstream\":false}";

/// An object with its members in the order in which the broker writes them.
fn ordered(json: &str) -> String {
    serde_json::from_str::<serde_json::Value>(json).unwrap().to_string()
}

/// Who a client is that has logged in without credentials.
fn user_info() -> String {
    ordered(&format!("{{{SERVER},\"data\":{{\"user\":\"guest\",\"account\":\"/\"}}}}"))
}

#[test]
fn a_client_can_ask_who_it_is() {
    check(&format!(
        "> SUB me 1
         > PUB $SYS.REQ.USER.INFO me 0|
         < MSG me 1 134|{}
         > PUB $SYS.REQ.SERVER.PING me 0|
         < HMSG me 1 52 52|NATS/1.0 503|Nats-Subject: $SYS.REQ.SERVER.PING||",
        user_info()
    ));
}

#[test]
fn who_it_is_is_told_whoever_else_listens() {
    let answer = user_info();
    let script = format!(
        "b> SUB $SYS.> 9
         > SUB me 1
         > PUB $SYS.REQ.USER.INFO me 0|
         < MSG me 1 134|{answer}
         b< MSG $SYS.REQ.USER.INFO 9 me 0|
         > PUB $SYS.REQ.USER.INFO me 0||PUB $SYS.REQ.USER.INFO 0||PUB $SYS.REQ.USER.INFO me 0|
         < MSG me 1 134|{answer}
         < MSG me 1 134|{answer}
         b< MSG $SYS.REQ.USER.INFO 9 me 0|
         b< MSG $SYS.REQ.USER.INFO 9 0|
         b< MSG $SYS.REQ.USER.INFO 9 me 0|"
    );
    check(&script);
}

#[test]
fn who_it_is_is_told_to_whom_asks_and_to_nobody_else() {
    let answer = user_info();
    let advisory = "$SYS.ADVISORY.SLOW_CONSUMER.BEGAN";
    check(&format!(
        "b> SUB $SYS.ADVISORY.> 9
         b> SUB me 9
         b> SUB me g 8
         A> 1 queue.declare queue=q
         A< 1 queue.declare-ok queue=q
         A> 1 queue.bind queue=q exchange=amq.topic routing_key=me
         A< 1 queue.bind-ok
         > PUB $SYS.REQ.USER.INFO {advisory} 0|
         > PUB $SYS.REQ.USER.INFO $QUEUE.q 0|
         > SUB me 1
         > UNSUB 1 1
         > PUB $SYS.REQ.USER.INFO me 0|
         < MSG me 1 134|{answer}
         > PUB $SYS.REQ.USER.INFO me 0|
         A> 1 basic.get queue=q no_ack=true
         A< 1 basic.get-empty"
    ));
}

/// A client asks with these options which connections there are: what the answer says behind who gives it.
#[track_caller]
fn check_asked(subject: &str, options: &str, expected: &str) {
    let answer = match expected {
        "" => String::new(),
        expected => {
            let answer = ordered(&format!("{{{SERVER},{expected}"));
            format!("< MSG me 1 {}|{answer}", answer.len())
        }
    };
    check(&format!(
        "> SUB me 1
         A> 1 queue.declare queue=q
         A< 1 queue.declare-ok queue=q
         > PUB {subject} me {}|{options}|PING
         {answer}
         < PONG
         < INFO connect_info account=/",
        options.len()
    ));
}

#[test]
fn a_client_can_ask_which_connections_there_are() {
    let data = "\"data\":{\"server_id\":\"ANGARIUM\",\"now\":\"2023-11-14T22:13:20.000000Z\",";
    let row = |cid: usize, kind: &str, more: &str| {
        format!(
            "{{\"cid\":{cid},\"kind\":\"Client\",\"type\":\"{kind}\",\"ip\":\"127.0.0.1\",\"port\":9,\
             \"start\":\"2023-11-14T22:13:20.000000Z\",\
             \"last_activity\":\"2023-11-14T22:13:20.000000Z\",\"uptime\":\"0s\",\"idle\":\"0s\",\
             \"pending_bytes\":7,\
             \"in_msgs\":{},\"out_msgs\":{},\"in_bytes\":{},\"out_bytes\":{},\"subscriptions\":{cid}{more}}}",
            10 * cid,
            20 * cid,
            100 * cid,
            200 * cid
        )
    };
    let page = |total: usize, offset: usize, limit: usize, rows: &[String]| {
        format!(
            "{data}\"num_connections\":{},\"total\":{total},\"offset\":{offset},\"limit\":{limit},\
             \"connections\":[{}]}}}}",
            rows.len(),
            rows.join(",")
        )
    };
    let (nats, amqp) = (row(1, "nats", ",\"lang\":\"test\""), row(2, "amqp 0-9-1", ""));
    let both = [nats.clone(), amqp.clone()];
    for subject in ["$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.SERVER.PING.CONNZ"] {
        check_asked(subject, "", &page(2, 0, 1_024, &both));
    }
    let connections = "$SYS.REQ.SERVER.PING.CONNZ";
    let whose = ",\"lang\":\"test\",\"authorized_user\":\"guest\",\"account\":\"/\",\
                 \"subscriptions_list\":[\"a.*\"]";
    for (options, expected) in [
        ("{\"limit\":1}", page(2, 0, 1, &both[..1])),
        ("{\"limit\":5,\"offset\":1,\"state\":0,\"x\":1}", page(2, 1, 5, &both[1..])),
        ("{\"sort\":\"bytes_to\"}", page(2, 0, 1_024, &[amqp, nats])),
        ("{\"state\":1}", page(0, 0, 1_024, &[])),
        ("{\"user\":\"nobody\",\"cid\":0}", page(0, 0, 1_024, &[])),
        (
            "{\"auth\":true,\"subscriptions\":true,\"limit\":1,\"server_name\":\"gari\"}",
            page(2, 0, 1, &[row(1, "nats", whose)]),
        ),
        (
            "{\"sort\":\"x\"}",
            "\"error\":{\"code\":500,\"description\":\"invalid sorting option: x\"}}".to_owned(),
        ),
        (
            "{\"limit\":\"1\"}",
            "\"error\":{\"code\":400,\"description\":\"the option \\\"limit\\\" has a value of \
             another type\"}}"
                .to_owned(),
        ),
        (
            "x",
            "\"error\":{\"code\":400,\"description\":\"the options are not a JSON object\"}}"
                .to_owned(),
        ),
        ("{\"server_name\":\"other\"}", String::new()),
    ] {
        check_asked(connections, options, &expected);
    }
    let sums = "\"sent\":{\"msgs\":60,\"bytes\":600},\"received\":{\"msgs\":30,\"bytes\":300}";
    let account = format!(
        "{{\"acc\":\"/\",\"name\":\"/\",\"conns\":2,\"leafnodes\":0,\"total_conns\":2,\
         \"num_subscriptions\":3,{sums},\"slow_consumers\":0}}"
    );
    let statistics = format!("{data}\"account_statz\":[{account}]}}}}");
    for options in ["", "{\"accounts\":[\"/\"],\"user\":\"nobody\",\"sort\":\"rtt\"}"] {
        check_asked("$SYS.REQ.ACCOUNT.PING.STATZ", options, &statistics);
    }
}

#[test]
fn who_may_not_publish_may_not_ask() {
    check_raw(
        "> CONNECT {\"verbose\":false,\"user\":\"reader\",\"pass\":\"reader\"}
         < INFO
         > SUB me 1
         > PUB $SYS.REQ.SERVER.PING.CONNZ me 0|
         < -ERR 'Permissions Violation for Publish to \"$SYS.REQ.SERVER.PING.CONNZ\"'",
    );
}

#[test]
fn pings_are_answered_and_the_first_one_with_info() {
    check(
        "> PING
         < PONG
         < INFO connect_info account=/
         > ping
         < PONG
         > PONG",
    );
}

#[test]
fn verbose_clients_hear_that_everything_is_done() {
    check_raw(
        "> CONNECT {\"pedantic\":false}
         < INFO
         < +OK
         > SUB a 1
         < +OK
         > PUB a 1|x
         < +OK
         < MSG a 1 1|x
         > PUB a.* 1|x
         < +OK
         > UNSUB 1 5
         < +OK
         > PING
         < PONG
         > SUB a..b 2
         < -ERR 'Invalid Subject'",
    );
}

#[test]
fn a_person_at_a_terminal_needs_no_connect() {
    check_raw(
        "> sub a 1
         < INFO
         < +OK
         > pub a 1|x
         < +OK
         < MSG a 1 1|x
         > pub a.* 1|x
         < -ERR 'Invalid Publish Subject'
         < +OK
         > ping
         < PONG",
    );
}

#[test]
fn a_silent_client_is_asked_and_then_given_up() {
    check(
        "> nothing
         > wait 119000
         > PING
         < PONG
         < INFO connect_info account=/
         > wait 2000
         > wait 118000
         < PING
         > PONG
         > wait 119000
         > wait 1000
         < PING
         > wait 120000
         < PING
         > wait 119000
         > wait 1000
         < -ERR 'Stale Connection'
         < closed: Stale Connection",
    );
}

#[test]
fn a_shutdown_is_announced() {
    check(
        "> SUB a 1
         > shutdown the broker stops
         < INFO ldm
         b> PUB a 1|x
         < MSG a 1 1|x
         > wait 500
         < closed: the broker stops",
    );
    check_raw(
        "> shutdown the broker stops
         < INFO
         > wait 0
         < closed: the broker stops",
    );
}

#[test]
fn who_is_to_go_does_not_stay_by_beginning_anew() {
    check(
        "> SUB a 1
         > shutdown closed by an operator
         < INFO ldm
         > CONNECT {\"verbose\":false}
         < closed: closed by an operator",
    );
}

#[test]
fn control_characters_in_subjects_stay() {
    let mut play = super::begin(true, Settings::default());
    play.send('a', "SUB > 1");
    for _ in 0..3 {
        play.send('a', "PUB a\u{1}b 1|x");
        assert_eq!(play.got(), ["< MSG a\u{1}b 1 1|x"]);
    }
}

#[test]
fn names_of_subscriptions_may_be_long() {
    let sid = "s".repeat(300);
    check(&format!(
        "> SUB a {sid}
         > PUB a 1|x
         < MSG a {sid} 1|x
         > UNSUB {sid}
         > PUB a 1|x"
    ));
}

#[test]
fn a_responder_answers_as_long_as_it_may_stay() {
    let settings = Settings { lame_duck: Duration::from_secs(3), ..Settings::default() };
    play(
        "b> SUB slow 1
         > SUB in 2
         > PUB slow in 1|x
         b< MSG slow 1 in 1|x
         > shutdown the broker stops
         < INFO ldm
         b> shutdown the broker stops
         b< INFO ldm
         > wait 2999
         b> PUB in 4|done
         < MSG in 2 4|done
         > wait 1
         < closed: the broker stops
         b< closed: the broker stops",
        true,
        settings,
    );
}

#[test]
fn what_was_missed_is_told_where_headers_are_taken() {
    let with = |block| {
        let block = crate::nats::mapping::with_missed(block, 3);
        String::from_utf8(block).unwrap()
    };
    assert_eq!(with(b""), "NATS/1.0\r\nAngarium-Missed: 3\r\n\r\n");
    assert_eq!(with(b"NATS/1.0\r\nA: b\r\n\r\n"), "NATS/1.0\r\nA: b\r\nAngarium-Missed: 3\r\n\r\n");
}

#[test]
fn payloads_may_be_as_large_as_allowed() {
    let settings = Settings { payload_bytes_max: 20, ..Settings::default() };
    play(
        "> SUB a 1
         > PUB a 20|12345678901234567890
         < MSG a 1 20|12345678901234567890
         > PUB a 21
         < -ERR 'Maximum Payload Violation'
         < closed: Maximum Payload Violation",
        true,
        settings,
    );
}

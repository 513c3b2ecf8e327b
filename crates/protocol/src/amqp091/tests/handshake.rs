//! How connections begin, stay alive and end.

use super::{TestHost, check, check_raw, play};
use crate::amqp091::Settings;
use crate::amqp091::frame::PROTOCOL_HEADER;
use crate::amqp091::tests::script;
use crate::{Peer, ProtocolHandler};

const START: &str = "0 connection.start version_minor=9 \
    server_properties={capabilities:{publisher_confirms:true,exchange_exchange_bindings:true,\
    basic.nack:true,consumer_cancel_notify:true,connection.blocked:true,consumer_priorities:true,\
    authentication_failure_close:true,per_consumer_qos:true,direct_reply_to:true,x-browse:true},\
    product:RabbitMQ,version:3.13.7,platform:\"Angarium 0.1.0\",copyright:\"The Angarium authors\",\
    information:\"Licensed under the Apache License 2.0\"} \
    mechanisms=\"PLAIN AMQPLAIN\" locales=en_US";
const TUNE: &str = "0 connection.tune channel_max=2047 frame_max=131072 heartbeat=60";

/// A transcript whose first lines are the usual ones up to connection.tune.
fn check_tuned(rest: &str) {
    check_raw(&format!(
        "> header
         < {START}
         > 0 connection.start-ok mechanism=PLAIN response=\\0guest\\0guest locale=en_US
         < {TUNE}
         {rest}"
    ));
}

#[test]
fn wrong_protocol_header_is_answered_with_ours() {
    for header in ["48545450", "414d51500309", "414d515000000902", "414d515000010000"] {
        check_raw(&format!(
            "> bytes {header}
             < AMQP 0 0 9 1
             < closed: the client does not speak AMQP 0-9-1"
        ));
    }
}

#[test]
fn a_whole_life() {
    check_tuned(
        "> 0 connection.tune-ok channel_max=10 frame_max=4096 heartbeat=30
         > 0 connection.open virtual_host=/
         < 0 connection.open-ok
         > 1 channel.open
         < 1 channel.open-ok
         > 1 channel.close reply_code=200 reply_text=bye
         < 1 channel.close-ok
         > 0 connection.close reply_code=200 reply_text=bye
         < 0 connection.close-ok
         > 1 channel.open
         > wait 4999
         > wait 1
         < closed: closed by the client: 200 bye",
    );
}

#[test]
fn login_as_amqplain() {
    let name = "\\0\\0\\0";
    let response = format!("\u{5}LOGINS{name}\u{5}guest\u{8}PASSWORDS{name}\u{5}guest");
    check_raw(&format!(
        "> header
         < {START}
         > 0 connection.start-ok mechanism=AMQPLAIN response={response}
         < {TUNE}"
    ));
}

#[test]
fn refused_login_is_told_to_those_who_understand() {
    for response in ["\\0guest\\0wrong", "nonsense", "\\0guest\\0guest\\0more"] {
        let why = if response.starts_with("\\0guest\\0wrong") {
            "wrong password for 'guest'"
        } else {
            "malformed response"
        };
        // Hosts log what is wrong with credentials themselves.
        let logged = match why {
            "malformed response" => format!("\n             log: {why}; from 127.0.0.1:9"),
            _ => String::new(),
        };
        let text = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For \
                    details see the broker logfile.";
        check_raw(&format!(
            "> header
             < {START}
             > 0 connection.start-ok mechanism=PLAIN response={response} \
               client_properties={{capabilities:{{authentication_failure_close:true}}}}
             < 0 connection.close reply_code=403 reply_text=\"{text}\"{logged}
             > 0 connection.close-ok
             < closed: login refused: {why}"
        ));
        check_raw(&format!(
            "> header
             < {START}
             > 0 connection.start-ok mechanism=PLAIN response={response}
             < closed: login refused: {why}{logged}"
        ));
    }
}

#[test]
fn mechanisms_we_do_not_have() {
    for mechanism in ["EXTERNAL", "CRAM-MD5"] {
        check_raw(&format!(
            "> header
             < {START}
             > 0 connection.start-ok mechanism={mechanism}
             < 0 connection.close reply_code=503 reply_text=\"COMMAND_INVALID - unknown \
               authentication mechanism '{mechanism}'\" class_id=10 method_id=11
             log: unknown authentication mechanism '{mechanism}'; from 127.0.0.1:9"
        ));
    }
}

#[test]
fn a_certificate_is_enough() {
    let mut host = TestHost::new(Settings::default());
    let certificate_name = Some("guest".to_owned());
    let number = host.accept(Peer { certificate_name, ..Peer::default() });
    host.receive(number, &PROTOCOL_HEADER);
    let lines = script::decode(&host.output(number), 0);
    assert!(lines[0].contains("mechanisms=\"PLAIN AMQPLAIN EXTERNAL\""), "{lines:?}");
    let external = "0 connection.start-ok mechanism=EXTERNAL client_properties={product:p,\
                    version:1,platform:x,connection_name:shop}";
    host.receive(number, &script::encode(external, 0));
    host.turn_ends();
    assert_eq!(script::decode(&host.output(number), 0), [TUNE]);
    let info = host.amqp091(number).info();
    assert_eq!(
        (info.user, info.state, info.client.product.as_deref()),
        ("guest", "tuning", Some("p"))
    );
    assert_eq!(info.client.connection_name.as_deref(), Some("shop"));
}

#[test]
fn limits_beyond_ours_are_refused() {
    let cases = [
        ("channel_max=2048 frame_max=4096", "channel_max = 2048 is higher", "2047"),
        ("channel_max=0 frame_max=4096", "channel_max = no limit is higher", "2047"),
        ("channel_max=1 frame_max=131073", "frame_max = 131073 is higher", "131072"),
        ("channel_max=1 frame_max=4095", "frame_max = 4095 is lower", "4096"),
    ];
    for (limits, text, bound) in cases {
        let least = if text.ends_with("lower") { "minimum" } else { "maximum" };
        check_tuned(&format!(
            "> 0 connection.tune-ok {limits}
             < 0 connection.close reply_code=530 reply_text=\"NOT_ALLOWED - negotiated {text} than \
               the {least} allowed value ({bound})\" class_id=10 method_id=31"
        ));
    }
}

#[test]
fn virtual_hosts_have_to_exist_and_to_be_allowed() {
    check_tuned(
        "> 0 connection.tune-ok channel_max=1 frame_max=4096
         > 0 connection.open virtual_host=nowhere
         < 0 connection.close reply_code=530 reply_text=\"NOT_ALLOWED - vhost nowhere not found\" \
           class_id=10 method_id=40
         log: user 'guest' asked for virtual host 'nowhere', and there is none of that name; from \
           127.0.0.1:9",
    );
    check_raw(&format!(
        "> header
         < {START}
         > 0 connection.start-ok mechanism=PLAIN response=\\0stranger\\0stranger
         < {TUNE}
         > 0 connection.tune-ok channel_max=1 frame_max=4096
         > 0 connection.open virtual_host=/
         < 0 connection.close reply_code=530 reply_text=\"NOT_ALLOWED - access to vhost '/' \
           refused for user 'stranger'\" class_id=10 method_id=40
         log: user 'stranger' has no rights in virtual host '/': \
           `angarium permission set stranger --vhost /` gives it some; from 127.0.0.1:9"
    ));
}

#[test]
fn methods_out_of_order_end_the_connection() {
    check_raw(&format!(
        "> header
         < {START}
         > 0 connection.open virtual_host=/
         < 0 connection.close reply_code=503 reply_text=\"COMMAND_INVALID - connection.open cannot \
           come now: connection.start-ok has to come first\" class_id=10 method_id=40"
    ));
    check_tuned(
        "> 1 channel.open
         < 0 connection.close reply_code=504 reply_text=\"CHANNEL_ERROR - channel.open before \
           connection.open\" class_id=20 method_id=10",
    );
    check_tuned(
        "> 1 basic.publish routing_key=q
         < 0 connection.close reply_code=504 reply_text=\"CHANNEL_ERROR - basic.publish before \
           connection.open\" class_id=60 method_id=40",
    );
}

#[test]
fn frames_are_small_before_tuning() {
    check_raw(&format!(
        "> header
         < {START}
         > bytes 01000000001001
         < 0 connection.close reply_code=501 reply_text=\"FRAME_ERROR - frame of 4105 bytes is \
           larger than the agreed maximum of 4096\"
         > 0 connection.close-ok
         > wait 5000
         < closed: FRAME_ERROR - frame of 4105 bytes is larger than the agreed maximum of 4096"
    ));
}

#[test]
fn a_handshake_takes_at_most_its_time() {
    check_raw(&format!(
        "> header
         < {START}
         > wait 9999
         > wait 1
         < closed: handshake timeout: no connection.start-ok within 10 s"
    ));
}

#[test]
fn heartbeats_go_both_ways() {
    check_tuned(
        "> 0 connection.tune-ok channel_max=1 frame_max=4096 heartbeat=10
         > 0 connection.open virtual_host=/
         < 0 connection.open-ok
         > wait 4999
         > wait 1
         < heartbeat
         > wait 5000
         < heartbeat
         > bytes 08000000000000ce
         > wait 19999
         < heartbeat
         > wait 1
         < closed: missed heartbeats: silent for 20 s",
    );
    check_tuned(
        "> 0 connection.tune-ok channel_max=1 frame_max=4096 heartbeat=0
         > 0 connection.open virtual_host=/
         < 0 connection.open-ok
         > wait 100000000",
    );
}

#[test]
fn we_close_and_wait_a_while_for_the_answer() {
    check(
        "> shutdown going down
         < 0 connection.close reply_code=320 reply_text=\"CONNECTION_FORCED - going down\"
         > 1 queue.declare queue=ignored
         > 0 connection.close-ok
         < closed: CONNECTION_FORCED - going down",
    );
    check(
        "> shutdown going down
         < 0 connection.close reply_code=320 reply_text=\"CONNECTION_FORCED - going down\"
         > wait 4999
         > wait 1
         < closed: CONNECTION_FORCED - going down",
    );
    check(
        "> shutdown going down
         < 0 connection.close reply_code=320 reply_text=\"CONNECTION_FORCED - going down\"
         > 0 connection.close reply_code=200
         < 0 connection.close-ok
         > wait 5000
         < closed: CONNECTION_FORCED - going down",
    );
}

#[test]
fn only_publishers_hear_that_the_broker_is_blocked() {
    check(
        "b> 1 channel.flow active=true
         b< 1 channel.flow-ok active=true
         > 1 basic.publish routing_key=q | \"x\"
         > blocked disk full
         < 0 connection.blocked reason=\"disk full\"
         b> 1 basic.publish routing_key=q | \"x\"
         b< 0 connection.blocked reason=\"disk full\"
         > unblocked
         < 0 connection.unblocked
         b< 0 connection.unblocked",
    );
}

#[test]
fn secrets_are_taken() {
    check(
        "> 0 connection.update-secret new_secret=fresh reason=expired
         < 0 connection.update-secret-ok",
    );
}

#[test]
fn channel_numbers_have_a_limit() {
    let settings = Settings { channels_max: 2047, ..Settings::default() };
    play(
        "> 2047 channel.open
         < 2047 channel.open-ok
         > 2048 channel.open
         < 0 connection.close reply_code=530 reply_text=\"NOT_ALLOWED - channel 2048 is beyond the \
           negotiated channel_max (2047)\" class_id=20 method_id=10",
        true,
        settings,
    );
}

#[test]
fn a_connection_that_ends_frees_its_channels() {
    let mut host = TestHost::new(Settings::default());
    let number = host.accept(Peer::default());
    host.cut(number);
    assert_eq!(host.amqp091(number).info().channels, 0);
    assert!(!host.amqp091(number).is_waiting());
}

#[test]
fn passwords_are_not_shown() {
    let (user, password) = ("guest".to_owned(), "secret".to_owned());
    let shown = format!("{:?}", crate::Credentials::Password { user, password });
    assert!(shown.contains("guest") && !shown.contains("secret"), "{shown}");
}

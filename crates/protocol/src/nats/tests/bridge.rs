//! One address space with AMQP 0-9-1: the table in `docs/protocols/mapping.md`, pair by pair.

use super::{bytes, check};

/// A queue that catches all subjects, and its consumer.
const CATCH: &str = "A> 1 queue.declare queue=q
    A< 1 queue.declare-ok queue=q
    A> 1 queue.bind queue=q exchange=amq.topic routing_key=#
    A< 1 queue.bind-ok
    A> 1 basic.consume queue=q consumer_tag=c no_ack=true
    A< 1 basic.consume-ok consumer_tag=c";

/// What a NATS message with these header lines is to an AMQP consumer.
fn to_amqp(lines: &[&str], properties: &str) {
    check(&format!(
        "{CATCH}
         {}
         A< 1 basic.deliver consumer_tag=c delivery_tag=1 exchange=amq.topic routing_key=a | \
         {properties} \"\"",
        published("a", lines),
    ));
}

/// A NATS client's message with these header lines.
fn published(subject: &str, lines: &[&str]) -> String {
    let block = format!("NATS/1.0{}||", lines.iter().map(|l| format!("|{l}")).collect::<String>());
    let length = bytes(&block).len();
    format!("> HPUB {subject} {length} {length}|{block}")
}

/// What an AMQP message with these properties is to a NATS subscriber.
fn to_nats(properties: &str, reply: &str, lines: &[&str]) {
    let line = format!("A> 1 basic.publish exchange=amq.topic routing_key=a | {properties} \"\"");
    are_heard(&line, reply, lines);
}

/// What a NATS subscriber hears after these lines: a message with such a reply subject and such headers.
fn are_heard(transcript: &str, reply: &str, lines: &[&str]) {
    let block = format!("NATS/1.0|{}|", lines.iter().map(|l| format!("{l}|")).collect::<String>());
    let length = bytes(&block).len();
    let reply = if reply.is_empty() { String::new() } else { format!("{reply} ") };
    let message = if lines.is_empty() {
        format!("MSG a 1 {reply}0|")
    } else {
        format!("HMSG a 1 {reply}{length} {length}|{block}")
    };
    check(&format!(
        "> SUB a 1
         {transcript}
         < {message}",
    ));
}

#[test]
fn subjects_are_routing_keys_of_the_topic_exchange() {
    check(&format!(
        "{CATCH}
         > PUB orders.eu 5|hello
         A< 1 basic.deliver consumer_tag=c delivery_tag=1 exchange=amq.topic routing_key=orders.eu \
         | delivery_mode=2 \"hello\"",
    ));
    check(
        "> SUB orders.> 1
         A> 1 basic.publish exchange=amq.topic routing_key=orders.eu | \"hello\"
         < MSG orders.eu 1 5|hello
         A> 1 basic.publish exchange=amq.topic routing_key=\"orders.a b\" | \"x\"
         < MSG orders.a_b 1 1|x
         A> 1 basic.publish exchange=amq.topic routing_key=bonds | \"x\"
         A> 1 basic.publish exchange=amq.direct routing_key=orders.eu | \"x\"",
    );
}

#[test]
fn routing_keys_that_are_no_subjects_are_heard_as_they_are() {
    for (key, subject) in
        [("orders..x", "orders.*.x"), ("orders.*", "orders.*"), ("orders.#", "*.*")]
    {
        check(&format!(
            "> SUB {subject} 1
             > SUB orders.eu 2
             A> 1 basic.publish exchange=amq.topic routing_key={key} | \"x\"
             < MSG {key} 1 1|x"
        ));
    }
    check(
        "> SUB > 1
         A> 1 basic.publish exchange=amq.topic | \"x\"
         A> 1 basic.publish exchange=amq.topic routing_key=a | \"x\"
         < MSG a 1 1|x",
    );
}

#[test]
fn what_amqp_has_no_room_for_is_not_lost() {
    let [fits, long] = [255, 256].map(|length| "s".repeat(length));
    for (subject, reply, properties) in [
        (&*fits, "", "delivery_mode=2"),
        ("a", &*fits, &*format!("delivery_mode=2 reply_to={fits}")),
        ("a", &*long, &*format!("headers={{Reply-To:{long}}} delivery_mode=2")),
    ] {
        check(&format!(
            "{CATCH}
             > PUB {subject} {reply} 1|x
             A< 1 basic.deliver consumer_tag=c delivery_tag=1 exchange=amq.topic \
             routing_key={subject} | {properties} \"x\""
        ));
    }
    check(&format!(
        "{CATCH}
         > SUB > 1
         > PUB {long} 1|x
         A< 1 basic.deliver consumer_tag=c delivery_tag=1 exchange=amq.topic \
         routing_key={fits} | delivery_mode=2 \"x\"
         < MSG {long} 1 1|x"
    ));
}

#[test]
fn nats_headers_are_amqp_properties_and_headers() {
    to_amqp(&["X: 1"], "headers={X:1} delivery_mode=2");
    to_amqp(&["X: 1", "Y: b", "X: 2"], "headers={X:[1,2],Y:b} delivery_mode=2");
    to_amqp(
        &["X: 1,", "  2", "App-Id:", "\tshop"],
        "headers={X:\"1, 2\"} delivery_mode=2 app_id=shop",
    );
    to_amqp(
        &[
            "Content-Type: text/plain",
            "content-encoding: gzip",
            "Correlation-Id: c1",
            "Nats-Msg-Id: m1",
            "Message-Type: order",
            "App-Id: shop",
            "Timestamp: 1700000000",
        ],
        "content_type=text/plain delivery_mode=2 content_encoding=gzip correlation_id=c1 \
         message_id=m1 timestamp=1700000000 type=order app_id=shop",
    );
}

#[test]
fn values_of_one_name_are_an_array_whatever_they_are() {
    for (lines, value) in [
        (&["A: \u{fffd}"][..], "Bytes([255])"),
        (&["A: 1", "A: \u{fffd}", "A: 3"], "[1,Bytes([255]),3]"),
        (&["A: \u{fffd}", "B: 1", "A: 2"], "[Bytes([255]),2],B:1"),
        (&["A: \u{fffd}", "A: \u{fffd}\u{fffd}"], "[Bytes([255]),Bytes([255, 255])]"),
    ] {
        to_amqp(lines, &format!("headers={{A:{value}}} delivery_mode=2"));
    }
}

#[test]
fn names_that_are_the_same_once_they_are_cut_are_one_header() {
    let n254 = &"n".repeat(254);
    for (names, shown) in [
        ([format!("{n254}xy"), format!("{n254}yx")], format!("{n254}x:1,{n254}y:2")),
        ([format!("{n254}x"), format!("{n254}xy")], format!("{n254}x:[1,2]")),
        ([format!("{n254}xz"), format!("{n254}xy")], format!("{n254}x:[1,2]")),
        ([format!("{n254}ä"), format!("{n254}ß")], format!("{n254}:[1,2]")),
    ] {
        let [first, second] = names;
        let lines = [&*format!("{first}: 1"), &*format!("{second}: 2")];
        to_amqp(&lines, &format!("headers={{{shown}}} delivery_mode=2"));
    }
}

#[test]
fn a_property_that_has_no_place_stays_the_header_that_it_was() {
    let long = format!("Nats-Msg-Id: {}", "x".repeat(256));
    for (lines, before, after) in [
        (["Content-Type: a", "content-type: b"], "content_type=a headers={content-type:b}", ""),
        (["Nats-Msg-Id: 1", "nats-msg-id: 2"], "headers={nats-msg-id:2}", " message_id=1"),
        ([&long, "A: b"], &format!("headers={{A:b,{}}}", long.replace(": ", ":")), ""),
        (["Timestamp: 1", "Timestamp: 2"], "headers={Timestamp:2}", " timestamp=1"),
        (["Timestamp: now", "Timestamp: 1"], "headers={Timestamp:now}", " timestamp=1"),
    ] {
        to_amqp(&lines, &format!("{before} delivery_mode=2{after}"));
    }
}

#[test]
fn what_the_broker_vouches_for_is_not_taken_from_nats() {
    to_amqp(
        &["User-Id: root", "Expiration: 1", "Priority: 9"],
        "headers={Expiration:1,Priority:9,User-Id:root} delivery_mode=2",
    );
}

#[test]
fn a_status_line_becomes_headers() {
    check(&format!(
        "{CATCH}
         > HPUB a 32 32|NATS/1.0 408 Request Timeout||
         A< 1 basic.deliver consumer_tag=c delivery_tag=1 exchange=amq.topic routing_key=a | \
         headers={{Description:\"Request Timeout\",Status:408}} delivery_mode=2 \"\"",
    ));
}

#[test]
fn amqp_properties_are_nats_headers() {
    to_nats("delivery_mode=2 cluster_id=c", "", &[]);
    to_nats("priority=3 content_type=text/plain", "", &["Content-Type: text/plain", "Priority: 3"]);
    to_nats(
        "content_encoding=gzip correlation_id=c1 message_id=m1 type=order app_id=shop \
         user_id=guest expiration=60000 timestamp=1700000000",
        "",
        &[
            "Content-Encoding: gzip",
            "Correlation-Id: c1",
            "Nats-Msg-Id: m1",
            "Message-Type: order",
            "App-Id: shop",
            "User-Id: guest",
            "Expiration: 60000",
            "Timestamp: 1700000000",
        ],
    );
    to_nats(
        "headers={a:text,b:12,c:true,d:[x,y],e:{f:1,g:[z]}}",
        "",
        &["a: text", "b: 12", "c: true", "d: x", "d: y", "e: {\"f\":1,\"g\":[\"z\"]}"],
    );
}

#[test]
fn amqp_values_of_every_type_are_nats_text() {
    for (value, text) in [
        ("%x00000003ff0041", "ff0041"),
        ("%S00000001ff", "ff"),
        ("%V", ""),
        ("%T000000006553f100", "1700000000"),
        ("%t00", "false"),
        ("%bff", "-1"),
        ("%B80", "128"),
        ("%l8000000000000000", "-9223372036854775808"),
        ("%d3ff8000000000000", "1.5"),
        ("%f40490fdb", "3.1415927410125732"),
        ("%D0200000096", "1.5"),
    ] {
        to_nats(&format!("headers={{h:{value}}}"), "", &[&*format!("h: {text}")]);
    }
    // An array of a text and nothing.
    to_nats("headers={h:%A0000000753000000017856}", "", &["h: x", "h: "]);
}

#[test]
fn what_the_broker_adds_for_amqp_is_left_out() {
    are_heard(
        "A> 1 queue.declare queue=q arguments={x-dead-letter-exchange:amq.topic,\
         x-dead-letter-routing-key:a}
         A< 1 queue.declare-ok queue=q
         A> 1 basic.publish routing_key=q | headers={k:v} \"\"
         A> 1 basic.get queue=q
         A< 1 basic.get-ok delivery_tag=1 routing_key=q | headers={k:v} \"\"
         A> 1 basic.reject delivery_tag=1 requeue=true
         A> 1 basic.get queue=q
         A< 1 basic.get-ok delivery_tag=2 redelivered=true routing_key=q | \
         headers={k:v,x-delivery-count:1} \"\"
         A> 1 basic.reject delivery_tag=2",
        "",
        &["k: v"],
    );
}

#[test]
fn what_a_client_publishes_is_the_client_s_whatever_its_name() {
    to_nats(
        "headers={x-death:{count:1},x-delivery-count:3}",
        "",
        &["x-death: {\"count\":1}", "x-delivery-count: 3"],
    );
    to_amqp(
        &["x-death: 1", "x-delivery-count: 3", "CC: b"],
        "headers={CC:b,x-death:1,x-delivery-count:3} delivery_mode=2",
    );
}

#[test]
fn nobody_but_the_broker_says_what_was_missed() {
    to_nats("headers={Angarium-Missed:9,k:v}", "", &["k: v"]);
    to_nats("headers={ANGARIUM-missed:9,k:v}", "", &["k: v"]);
    to_amqp(&["A: 1", "Angarium-Missed: 9", "B: 2"], "headers={A:1,B:2} delivery_mode=2");
    are_heard(&published("a", &["Angarium-Missed: 9", "B: 2"]), "", &["B: 2"]);
    are_heard(&published("a", &["Angarium-Missed: 9"]), "", &[]);
    are_heard(&published("a", &[" Angarium-Missed: 9", "B: 2"]), "", &["B: 2"]);
    are_heard(&published("a", &["angarium-missed: 9", "B: 2"]), "", &["B: 2"]);
    are_heard(&published("a", &["Angarium-Misse: 9"]), "", &["Angarium-Misse: 9"]);
}

/// A queue where messages die at once; their dead letters are for those who listen to `a`.
const DEADLY: &str = "A> 1 queue.declare queue=q arguments={x-dead-letter-exchange:amq.topic,\
                      x-dead-letter-routing-key:a,x-max-length:0}
    A< 1 queue.declare-ok queue=q
    A> 1 queue.bind queue=q exchange=amq.topic routing_key=in
    A< 1 queue.bind-ok";

#[test]
fn what_the_broker_has_taken_from_an_amqp_message_is_not_shown_to_nats() {
    for (properties, lines) in [
        ("expiration=30", &[][..]),
        ("expiration=30 headers={k:v} app_id=shop", &["App-Id: shop", "k: v"]),
        ("headers={CC:[b],k:v}", &["k: v"]),
        ("headers={x-death:{count:1},x-first-death-queue:p,k:v}", &["k: v"]),
        ("headers={x-delivery-count:3}", &["x-delivery-count: 3"]),
    ] {
        let publish = format!("A> 1 basic.publish routing_key=q | {properties} \"\"");
        are_heard(&format!("{DEADLY}\n{publish}"), "", lines);
    }
    are_heard(
        "A> 1 exchange.declare exchange=later kind=x-delayed-message arguments={x-delayed-type:topic}
         A< 1 exchange.declare-ok
         A> 1 exchange.bind source=later destination=amq.topic routing_key=#
         A< 1 exchange.bind-ok
         A> 1 basic.publish exchange=later routing_key=a | headers={x-delay:200,k:v} \"\"
         A> wait 200",
        "",
        &["k: v", "x-delay: -200"],
    );
}

#[test]
fn what_the_broker_has_taken_from_a_nats_message_is_shown_to_nobody() {
    for (lines, kept) in [
        (&["x-death: 8"][..], &[][..]),
        (&["x-death: 8", " 9", "x-death : 9", "X-Death: 7"], &["X-Death: 7"]),
        (
            &[
                "a:b",
                "x-first-death-queue: p",
                "CC: b",
                "Expiration: 5",
                "\tand more",
                "x-delivery-count: 3",
            ],
            &["a:b", "CC: b", "Expiration: 5", "\tand more", "x-delivery-count: 3"],
        ),
    ] {
        are_heard(&format!("{DEADLY}\n{}", published("in", lines)), "", kept);
    }
}

#[test]
fn a_name_that_no_nats_header_can_have_is_changed() {
    to_nats("headers={ä:ä,b:1}", "", &["__: ä", "b: 1"]);
}

#[test]
fn nats_asks_and_amqp_answers() {
    check(&format!(
        "{CATCH}
         > SUB _INBOX.1 9
         > PUB service _INBOX.1 1|?
         A< 1 basic.deliver consumer_tag=c delivery_tag=1 exchange=amq.topic routing_key=service | \
         delivery_mode=2 reply_to=_INBOX.1 \"?\"
         A> 1 basic.publish routing_key=_INBOX.1 | \"!\"
         < MSG _INBOX.1 9 1|!",
    ));
}

#[test]
fn amqp_hands_a_request_of_nats_on_to_nats() {
    check(&format!(
        "{CATCH}
         > SUB _INBOX.1 9
         > SUB other 8
         > PUB service _INBOX.1 1|?
         A< 1 basic.deliver consumer_tag=c delivery_tag=1 exchange=amq.topic routing_key=service | \
         delivery_mode=2 reply_to=_INBOX.1 \"?\"
         A> 1 basic.publish exchange=amq.topic routing_key=other | reply_to=_INBOX.1 \"?\"
         A< 1 basic.deliver consumer_tag=c delivery_tag=2 exchange=amq.topic routing_key=other | \
         reply_to=_INBOX.1 \"?\"
         < MSG other 8 _INBOX.1 1|?
         > PUB _INBOX.1 1|!
         A< 1 basic.deliver consumer_tag=c delivery_tag=3 exchange=amq.topic routing_key=_INBOX.1 | \
         delivery_mode=2 \"!\"
         < MSG _INBOX.1 9 1|!",
    ));
}

#[test]
fn amqp_asks_and_nats_answers() {
    check(
        "> SUB service 1
         A> 1 queue.declare queue=replies
         A< 1 queue.declare-ok queue=replies
         A> 1 basic.consume queue=replies consumer_tag=c no_ack=true
         A< 1 basic.consume-ok consumer_tag=c
         A> 1 basic.publish exchange=amq.topic routing_key=service | reply_to=replies \"?\"
         < MSG service 1 $QUEUE.replies 1|?
         > PUB $QUEUE.replies 1|!
         A< 1 basic.deliver consumer_tag=c delivery_tag=1 routing_key=replies | delivery_mode=2 \"!\"
         A> 1 basic.publish exchange=amq.topic routing_key=service | reply_to=\"a b\" \"?\"
         < HMSG service 1 29 30|NATS/1.0|Reply-To: \"a b\"||?",
    );
}

#[test]
fn a_queue_s_name_is_kept_on_the_way_through_nats() {
    for (reply, address) in [
        ("$QUEUE.replies", "replies"),
        ("$QUEUE.a.b", "a.b"),
        ("$QUEUE.", "$QUEUE."),
        ("$QUEUE", "$QUEUE"),
        ("a.*", "a.*"),
    ] {
        check(&format!(
            "{CATCH}
             > PUB a {reply} 0|
             A< 1 basic.deliver consumer_tag=c delivery_tag=1 exchange=amq.topic routing_key=a | \
             delivery_mode=2 reply_to={address} \"\"",
        ));
    }
}

#[test]
fn headers_beyond_a_frame_are_left_out() {
    // The AMQP client takes frames of 128 KiB; half of one is for headers.
    let lines: Vec<String> = (0..700).map(|n| format!("H{n:03}: {}", "x".repeat(100))).collect();
    let block = format!("NATS/1.0\r\n{}\r\n\r\n", lines.join("\r\n"));
    let mut play = super::begin(true, crate::nats::Settings::default());
    for line in CATCH.lines().map(str::trim) {
        if let Some(sent) = line.strip_prefix("A> ") {
            play.send('A', sent);
        }
    }
    play.got();
    let bytes = block.len();
    play.send('a', &format!("HPUB a {bytes} {bytes}|{block}"));
    let got = play.got().join("\n");
    assert!(got.contains("H000:") && got.contains("H500:") && !got.contains("H699:"), "{got}");
}

#[test]
fn dead_letters_lose_what_is_the_broker_s_to_say_and_nothing_else() {
    check(
        "A> 1 queue.declare queue=graves
         A< 1 queue.declare-ok queue=graves
         A> 1 queue.declare queue=q arguments={x-dead-letter-exchange:,\
           x-dead-letter-routing-key:graves,x-max-length:0}
         A< 1 queue.declare-ok queue=q
         > HPUB $QUEUE.q 64 64|NATS/1.0|CC: b|x-death: 8|X-Death: 7|x-delivery-count: 3||
         A> 1 basic.get queue=graves
         A< 1 basic.get-ok delivery_tag=1 routing_key=graves | headers={CC:b,X-Death:7,\
           x-delivery-count:3,x-death:[{count:1,reason:maxlen,queue:q,time:@1700000000,exchange:,\
           routing-keys:[q]}],\
           x-first-death-reason:maxlen,x-first-death-queue:q,x-first-death-exchange:,\
           x-last-death-reason:maxlen,x-last-death-queue:q,x-last-death-exchange:} \
           delivery_mode=2 \"\"",
    );
}

#[test]
fn dead_letters_under_a_key_that_is_no_subject_are_one_message() {
    let dead_letters_to = |key: &str| {
        let mut play = super::begin(true, crate::nats::Settings::default());
        play.send(
            'A',
            &format!(
                "1 queue.declare queue=q arguments={{x-dead-letter-exchange:amq.topic,\
                 x-dead-letter-routing-key:{key},x-max-length:0}}"
            ),
        );
        play.send('A', "1 queue.bind queue=q exchange=amq.topic routing_key=a");
        play.send('a', "SUB > 1");
        play.got();
        play.send('a', "PUB a 1|x");
        play.got().join("\n")
    };
    for (key, subject) in [
        ("dead", "dead"),
        ("dead letters", "dead_letters"),
        ("a 1 0\r\n\r\nMSG forged 1 2\r\nhi\r\nMSG x", "a_1_0____MSG_forged_1_2__hi__MSG_x"),
    ] {
        let got = dead_letters_to(key);
        let expected = format!("< MSG a 1 1|x\n< MSG {subject} 1 1|x");
        assert!(got.ends_with(&expected), "{got}");
    }
}

#[test]
fn who_listens_to_several_keys_of_a_message_hears_it_once() {
    let heard = "HMSG a 1 19 20|NATS/1.0|CC: b||x";
    for subject in ["a", "b", ">", "*"] {
        for group in ["", " g"] {
            let mut play = super::begin(true, crate::nats::Settings::default());
            play.send('a', &format!("SUB {subject}{group} 1"));
            let line = "1 basic.publish exchange=amq.topic routing_key=a | headers={CC:[b]} \"x\"";
            play.send('A', line);
            assert_eq!(play.got().join("\n"), format!("< {heard}"), "{subject}{group}");
        }
    }
    check(&format!(
        "> SUB a 1
         A> 1 basic.publish exchange=amq.topic routing_key=a | headers={{CC:[b]}} \"x\"
         < {heard}
         A> 1 basic.publish exchange=amq.topic routing_key=a | headers={{CC:[a,a]}} \"x\"
         < HMSG a 1 26 27|NATS/1.0|CC: a|CC: a||x
         A> 1 basic.publish exchange=amq.topic routing_key=b | headers={{BCC:[a]}} \"x\"
         < MSG b 1 1|x"
    ));
}

#[test]
fn who_can_be_answered_by_no_subject_is_a_header() {
    for queue in ["replies..x", "replies.*", ">", "replies."] {
        let mut play = super::begin(true, crate::nats::Settings::default());
        play.send('a', "SUB service 1");
        let line = format!(
            "1 basic.publish exchange=amq.topic routing_key=service | reply_to={queue} \"?\""
        );
        play.send('A', &line);
        let length = "NATS/1.0".len() + "Reply-To: ".len() + queue.len() + 6;
        let expected =
            format!("< HMSG service 1 {length} {}|NATS/1.0|Reply-To: {queue}||?", length + 1);
        assert_eq!(play.got().join("\n"), expected);
    }
}

#[test]
fn a_request_that_a_full_queue_refuses_is_answered() {
    check(
        "A> 1 queue.declare queue=q arguments={x-max-length:0,x-overflow:reject-publish}
         A< 1 queue.declare-ok queue=q
         A> 1 queue.bind queue=q exchange=amq.topic routing_key=service
         A< 1 queue.bind-ok
         > SUB _INBOX.1 9
         > PUB service _INBOX.1 1|?
         < HMSG _INBOX.1 9 39 39|NATS/1.0 503|Nats-Subject: service||
         > PUB $QUEUE.q _INBOX.1 1|?
         < HMSG _INBOX.1 9 40 40|NATS/1.0 503|Nats-Subject: $QUEUE.q||",
    );
}

//! Retained messages, as clients of each version see them.

use super::speech::check;

#[test]
fn retained_messages_come_to_who_subscribes_later() {
    for version in ["", " v5"] {
        check(&format!(
            "> connect client=a{version}
             < connack Success
             > publish x/1 one retain
             > publish x/2 two retain qos=1 id=1
             < puback 1
             > publish x/3 three retain qos=2 id=2
             < pubrec 2
             > pubrel id=2
             < pubcomp 2
             > publish x/4 four
             b> connect client=b{version}
             b< connack Success
             b> subscribe id=1 x/+
             b< suback 1 [Success]
             b< publish x/1 one retain
             b< publish x/2 two retain
             b< publish x/3 three retain
             c> connect client=c{version}
             c< connack Success
             c> subscribe id=1 x/# qos=2
             c< suback 1 [GrantedQos2]
             c< publish x/1 one retain
             c< publish x/2 two qos=1 id=2 retain
             c< publish x/3 three qos=2 id=3 retain
             c> puback id=2
             c> pubrec id=3
             c< pubrel 3
             c> pubcomp id=3
             d> connect client=d{version}
             d< connack Success
             d> subscribe id=1 x/3 qos=1
             d< suback 1 [GrantedQos1]
             d< publish x/3 three qos=1 id=2 retain
             d> subscribe id=2 y/#
             d< suback 2 [Success]"
        ));
    }
}

#[test]
fn those_who_subscribe_already_get_them_as_any_other() {
    check(
        "> connect client=a v5
         < connack Success
         > subscribe id=1 x as-published
         < suback 1 [Success]
         b> connect client=b
         b< connack Success
         b> subscribe id=1 x qos=1
         b< suback 1 [GrantedQos1]
         c> connect client=c
         c< connack Success
         c> publish x one retain
         < publish x one retain
         b< publish x one
         c> publish x two retain qos=1 id=1
         < publish x two retain
         b< publish x two qos=1 id=3
         c< puback 1
         b> puback id=3",
    );
}

#[test]
fn an_empty_message_takes_the_retained_one_away() {
    for qos in ["", "qos=1 id=7"] {
        let answer = if qos.is_empty() { "" } else { "< puback 7" };
        check(&format!(
            "> connect client=a
             < connack Success
             > publish x one retain
             > publish x '' retain {qos}
             {answer}
             > subscribe id=1 #
             < suback 1 [Success]"
        ));
    }
}

#[test]
fn retain_handling_says_when_they_come() {
    check(
        "> connect client=a v5
         < connack Success
         > publish x one retain
         > subscribe id=1 x retain-handling=2
         < suback 1 [Success]
         > subscribe id=2 x retain-handling=1
         < suback 2 [Success]
         > subscribe id=3 x
         < suback 3 [Success]
         < publish x one retain
         > subscribe id=4 # retain-handling=1
         < suback 4 [Success]
         < publish x one retain
         > unsubscribe id=5 #
         < unsuback 5 [Success]
         > subscribe id=6 # retain-handling=1
         < suback 6 [Success]
         < publish x one retain
         > subscribe id=7 $share/g/x
         < suback 7 [Success]",
    );
}

#[test]
fn they_have_the_identifier_of_the_subscription_that_they_come_for() {
    for (qos, granted, id) in [("0", "Success", ""), ("1", "GrantedQos1", " qos=1 id=2")] {
        check(&format!(
            "> connect client=a v5
             < connack Success
             > publish x one retain qos=1 id=1 message-expiry=100
             < puback 1
             > subscribe id=1 # retain-handling=2 qos=2 identifier=7
             < suback 1 [GrantedQos2]
             > subscribe id=2 x qos={qos} identifier=300
             < suback 2 [{granted}]
             < publish x one{id} retain SubscriptionIdentifier=300 MessageExpiryInterval=100"
        ));
    }
}

#[test]
fn topics_of_the_broker_are_hidden_from_leading_wildcards() {
    check(
        "> connect client=a
         < connack Success
         > publish $x/y one retain
         > publish a/*/b two retain
         > publish a/c/b three retain
         > subscribe id=1 #
         < suback 1 [Success]
         < publish a/*/b two retain
         < publish a/c/b three retain
         > subscribe id=2 +/y
         < suback 2 [Success]
         > subscribe id=3 $x/+
         < suback 3 [Success]
         < publish $x/y one retain
         > subscribe id=4 a/*/b qos=1
         < suback 4 [GrantedQos1]
         < publish a/*/b two retain",
    );
}

#[test]
fn wills_are_retained() {
    check(
        "> connect client=a will=gone:bye will-retain qos=1
         < connack Success
         b> connect client=b v5
         b< connack Success
         b> subscribe id=1 gone as-published
         b< suback 1 [Success]
         > bytes ff
         < closed: malformed packet: the flags of a packet are reserved
         b< publish gone bye retain
         b> subscribe id=2 gone
         b< suback 2 [Success]
         b< publish gone bye retain",
    );
}

#[test]
fn a_kept_session_gets_what_it_has_not_acknowledged_again() {
    check(
        "b> connect client=b
         b< connack Success
         b> publish x/1 one retain qos=1 id=1
         b< puback 1
         b> publish x/2 two retain qos=1 id=2
         b< puback 2
         > connect client=a v5 session-expiry=100 receive-maximum=1
         < connack Success
         > subscribe id=1 x/# qos=1 identifier=7
         < suback 1 [GrantedQos1]
         < publish x/1 one qos=1 id=2 retain SubscriptionIdentifier=7
         > disconnect
         < closed: the client has disconnected: success
         c> connect client=a v5 session-expiry=100 resume
         c< connack present Success
         c< publish x/1 one qos=1 id=2 retain dup SubscriptionIdentifier=7
         c< publish x/2 two qos=1 id=3 retain SubscriptionIdentifier=7",
    );
}

//! What clients can do.

use super::speech::{check, check_with};
use crate::mqtt::Settings;
use std::time::Duration;

#[test]
fn messages_go_to_those_whose_filters_match() {
    check(
        "> connect client=a
         < connack Success
         > subscribe id=1 a/+ b/# c//d +
         < suback 1 [Success, Success, Success, Success]
         b> connect client=b v5
         b< connack Success
         b> publish a/x 1
         < publish a/x 1
         b> publish a/x/y 2
         b> publish b 3
         < publish b 3
         b> publish b/1.5/* 4
         < publish b/1.5/* 4
         b> publish c//d 5
         < publish c//d 5
         b> publish c/d 6
         b> publish $QUEUE 7
         b> publish /a 8
         > unsubscribe id=2 a/+ nothing
         < unsuback 2 []
         b> publish a/x 9
         b> publish b 10
         < publish b 10",
    );
}

#[test]
fn wildcards_in_front_do_not_match_what_is_the_brokers() {
    check(
        "> connect client=a
         < connack Success
         > subscribe id=1 # +/x $X/# a/*/b
         < suback 1 [Success, Success, Success, Success]
         > publish $X/x 1
         < publish $X/x 1
         > publish a/c/b 2
         < publish a/c/b 2
         > publish $SYS/x 3
         > unsubscribe id=2 #
         < unsuback 2 []
         > publish a/c/b 4
         > publish a/*/b 5
         < publish a/*/b 5",
    );
}

#[test]
fn overlapping_subscriptions_get_one_copy_with_all_identifiers() {
    check(
        "> connect client=a v5
         < connack Success
         > subscribe id=1 a/# identifier=1
         < suback 1 [Success]
         > subscribe id=2 a/+ identifier=2
         < suback 2 [Success]
         > publish a/x 1
         < publish a/x 1 SubscriptionIdentifier=1 SubscriptionIdentifier=2
         > publish a/x 2
         < publish a/x 2 SubscriptionIdentifier=1 SubscriptionIdentifier=2
         > publish a 3
         < publish a 3 SubscriptionIdentifier=1
         > subscribe id=3 a/+ identifier=7
         < suback 3 [Success]
         > publish a/x 4
         < publish a/x 4 SubscriptionIdentifier=1 SubscriptionIdentifier=7",
    );
}

#[test]
fn messages_with_qos_1_and_2_are_acknowledged() {
    check(
        "> connect client=a
         < connack Success
         > subscribe id=1 a
         < suback 1 [Success]
         > publish a one qos=1 id=7
         < publish a one
         < puback 7
         > publish b nobody qos=1 id=8
         < puback 8
         > publish a two qos=2 id=9
         < publish a two
         < pubrec 9
         > publish a two qos=2 id=9 dup
         < pubrec 9
         > pubrel id=9
         < pubcomp 9
         > pubrel id=9
         < pubcomp 9
         > publish a three qos=2 id=9
         < publish a three
         < pubrec 9
         b> connect client=b v5
         b< connack Success
         b> publish b nobody qos=1 id=1
         b< puback 1 NoMatchingSubscribers
         b> pubrel id=5
         b< pubcomp 5 PacketIdentifierNotFound
         b> publish $SYS/x forbidden qos=1 id=2
         b< puback 2 NotAuthorized",
    );
}

#[test]
fn properties_go_along() {
    check(
        "> connect client=a v5
         < connack Success
         b> connect client=b
         b< connack Success
         > subscribe id=1 a
         < suback 1 [Success]
         b> subscribe id=1 a
         b< suback 1 [Success]
         > publish a x payload-format=1 content-type=text/plain response-topic=r/1 \
correlation-data=c user-property=k:v
         < publish a x PayloadFormatIndicator=1 ContentType='text/plain' ResponseTopic='r/1' \
CorrelationData=c UserProperty=k:v
         b< publish a x
         > publish a x topic-alias=3
         < publish a x
         b< publish a x
         > publish _ y topic-alias=3
         < publish a y
         b< publish a y
         > publish _ z topic-alias=3 user-property=k:v
         < publish a z UserProperty=k:v
         b< publish a z",
    );
}

#[test]
fn no_local_subscriptions_do_not_get_their_clients_own_messages() {
    check(
        "> connect client=a v5
         < connack Success
         > subscribe id=1 a no-local
         < suback 1 [Success]
         > publish a own
         > publish a own qos=1 id=1
         < puback 1
         b> connect client=b
         b< connack Success
         b> publish a other
         < publish a other",
    );
}

#[test]
fn shared_subscriptions_share() {
    check(
        "> connect client=a
         < connack Success
         > subscribe id=1 $share/g/a/#
         < suback 1 [Success]
         b> connect client=b
         b< connack Success
         b> subscribe id=1 $share/g/a/# $share/g/a/x $share/other/a/#
         b< suback 1 [Success, Success, Success]
         c> connect client=c
         c< connack Success
         c> publish a/y 1
         b< publish a/y 1
         b< publish a/y 1
         c> publish a/y 2
         < publish a/y 2
         b< publish a/y 2",
    );
}

#[test]
fn what_is_too_large_for_a_client_is_not_sent_to_it() {
    check(
        "> connect client=a v5 maximum-packet-size=20
         < connack Success
         > subscribe id=1 a
         < suback 1 [Success]
         > publish a 12345678901234567890
         > publish a 1234567890
         < publish a 1234567890",
    );
}

#[test]
fn reasons_are_left_out_of_packets_that_a_client_does_not_take() {
    check(
        "> connect client=a v5 maximum-packet-size=20 authentication-method=X
         < connack BadAuthenticationMethod
         < closed: bad authentication method: the method is not offered: SCRAM-SHA-256 is
         b> connect client=b v5 maximum-packet-size=100 authentication-method=X
         b< connack BadAuthenticationMethod ReasonString='the method is not offered: SCRAM-SHA-256 is'
         b< closed: bad authentication method: the method is not offered: SCRAM-SHA-256 is
         c> connect client=c v5 maximum-packet-size=20
         c< connack Success
         c> publish _ x
         c< disconnect ProtocolError
         c< closed: protocol error: a message has neither a topic nor an alias for one",
    );
}

#[test]
fn clients_are_named_and_told_what_holds() {
    check_with(
        Settings { keep_alive_max: Some(Duration::from_secs(60)), ..Settings::default() },
        "> connect client=a v5 keep-alive=120
         < connack Success ServerKeepAlive=60
         > ping
         < pong
         > wait 89000
         > ping
         < pong
         > wait 89000
         > wait 1000
         < disconnect KeepAliveTimeout ReasonString='silent for 1.5 times its keep-alive of 60 s'
         < closed: keep alive timeout: silent for 1.5 times its keep-alive of 60 s
         b> connect keep-alive=10
         b< connack Success
         b> wait 15000
         b< closed: keep alive timeout: silent for 1.5 times its keep-alive of 10 s
         c> connect resume
         c< connack ClientIdentifierNotValid
         c< closed: client identifier not valid: a client without an identifier has to ask for a \
clean session
         d> wait 10000
         d< closed: handshake timeout: no CONNECT within 10 s",
    );
}

#[test]
fn the_broker_says_when_it_goes() {
    check(
        "> connect client=a v5
         < connack Success
         > shutdown bye
         < disconnect ServerShuttingDown ReasonString='bye'
         > wait 1
         < closed: bye
         b> connect client=b
         b< connack Success
         b> disconnect
         b< closed: the client has disconnected: success",
    );
}

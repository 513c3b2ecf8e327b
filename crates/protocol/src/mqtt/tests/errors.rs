//! What clients do wrong, and what the broker answers.

use super::speech::{check, check_with};
use crate::mqtt::Settings;
use crate::mqtt::codec::subscribe::FILTERS_MAX;

#[test]
fn logins_are_refused_with_a_code() {
    check(
        "> connect client=a user=guest password=wrong
         < connack BadUserNameOrPassword
         < closed: login refused: wrong password for 'guest'
         b> connect client=b v5 user=guest password=wrong
         b< connack BadUserNameOrPassword
         b< closed: login refused: wrong password for 'guest'
         c> connect client=c user=stranger password=stranger
         c< connack NotAuthorized
         c< closed: login refused: access to vhost '/' refused for user 'stranger'
         log: user 'stranger' has no rights in virtual host '/': `angarium permission set stranger \
--vhost /` gives it some; from here:1
         d> connect client=d v5 password=x
         d< connack NotAuthorized
         d< closed: login refused: the client has a password without a user name
         log: the client has a password without a user name; from here:1
         e> connect client=e user=apart:both password=both
         e< connack Success
         f> connect client=f v5 authentication-method=X
         f< connack BadAuthenticationMethod ReasonString='the method is not offered: SCRAM-SHA-256 is'
         f< closed: bad authentication method: the method is not offered: SCRAM-SHA-256 is",
    );
    check_with(
        Settings { anonymous_user: None, ..Settings::default() },
        "> connect client=a
         < connack NotAuthorized
         < closed: login refused: the client has no credentials
         log: the client has no credentials; from here:1",
    );
}

#[test]
fn what_is_no_mqtt_ends_the_connection() {
    check(
        "> ping
         < closed: protocol error: the first packet is not CONNECT
         b> bytes 100d00044d51545304020000000163
         b< connack UnsupportedProtocolVersion
         b< closed: unsupported protocol version: CONNECT names another protocol than MQTT
         c> bytes 00
         c< closed: malformed packet: a packet is of the reserved type 0
         d> connect client=d
         d< connack Success
         d> connect client=d
         d< closed: protocol error: a second CONNECT
         e> connect client=e v5
         e< connack Success
         e> connect client=e v5
         e< disconnect ProtocolError ReasonString='a second CONNECT'
         e< closed: protocol error: a second CONNECT
         f> connect client=f v5 request-problem-information=0
         f< connack Success
         f> publish a/# x
         f< disconnect TopicNameInvalid
         f< closed: topic name invalid: a topic name has a wildcard in it
         g> connect client=g
         g< connack Success
         g> subscribe id=1 a/#/b
         g< closed: topic filter invalid: a filter has '#' before its end
         h> connect client=h v5
         h< connack Success
         h> subscribe id=1 a/#/b b $share/g
         h< suback 1 [TopicFilterInvalid, Success, TopicFilterInvalid]
         h> unsubscribe id=2 a/#/b b c
         h< unsuback 2 [TopicFilterInvalid, Success, NoSubscriptionExisted]",
    );
}

#[test]
fn what_is_not_offered_is_refused() {
    check_with(
        Settings { retain_available: false, ..Settings::default() },
        "> connect client=a v5 will=w:gone will-retain
         < connack RetainNotSupported ReasonString='a will is to be retained: retained messages are \
not offered'
         < closed: retain not supported: a will is to be retained: retained messages are not offered
         b> connect client=b will=w:gone will-retain
         b< connack Success
         c> connect client=c will=$SYS/w:gone
         c< connack NotAuthorized
         c< closed: not authorized: a will has a topic of the broker's own
         d> connect client=d v5
         d< connack Success
         d> publish a x retain
         d< disconnect RetainNotSupported ReasonString='retained messages are not offered'
         d< closed: retain not supported: retained messages are not offered
         e> connect client=e
         e< connack Success
         e> publish _ x
         e< closed: topic name invalid: a topic name is empty
         f> connect client=f v5
         f< connack Success
         f> publish _ x
         f< disconnect ProtocolError ReasonString='a message has neither a topic nor an alias for one'
         f< closed: protocol error: a message has neither a topic nor an alias for one",
    );
}

#[test]
fn what_is_refused_is_not_subscribed_to() {
    let long = "x".repeat(4_095);
    check(&format!(
        "> connect client=a v5
         < connack Success
         > subscribe id=1 +
         < suback 1 [Success]
         > subscribe id=2 {long}/# b/c qos=1
         < suback 2 [QuotaExceeded, GrantedQos1]
         > publish {long} here
         < publish {long} here
         > publish b/c there qos=1 id=1
         < publish b/c there qos=1 id=2
         < puback 1
         > unsubscribe id=3 {long}/# b/c
         < unsuback 3 [NoSubscriptionExisted, Success]"
    ));
}

#[test]
fn filters_of_a_packet_are_bounded() {
    let most = ["a"; FILTERS_MAX].join(" ");
    check(&format!(
        "> connect client=a v5
         < connack Success
         > unsubscribe id=1 {most} a
         < disconnect QuotaExceeded ReasonString='a SUBSCRIBE or UNSUBSCRIBE has more than 1,000 filters'
         < closed: quota exceeded: a SUBSCRIBE or UNSUBSCRIBE has more than 1,000 filters
         b> connect client=b
         b< connack Success
         b> unsubscribe id=1 {most}
         b< unsuback 1 []"
    ));
}

#[test]
fn limits_are_kept() {
    check_with(
        Settings { receive_maximum: 2, packet_bytes_max: 64, ..Settings::default() },
        "> connect client=a v5
         < connack Success
         > publish a x qos=2 id=1
         < pubrec 1 NoMatchingSubscribers
         > publish a x qos=2 id=2
         < pubrec 2 NoMatchingSubscribers
         > publish a x qos=2 id=1 dup
         < pubrec 1
         > pubrel id=1
         < pubcomp 1
         > publish a x qos=2 id=3
         < pubrec 3 NoMatchingSubscribers
         > publish a x qos=1 id=4
         < disconnect ReceiveMaximumExceeded ReasonString='more messages are on their way than the \
receive maximum allows'
         < closed: receive maximum exceeded: more messages are on their way than the receive maximum \
allows
         b> connect client=b v5
         b< connack Success
         b> publish a 1234567890123456789012345678901234567890123456789012345678901234567890
         b< disconnect PacketTooLarge ReasonString='a packet is larger than allowed'
         b< closed: packet too large: a packet is larger than allowed
         c> connect client=c v5
         c< connack Success
         c> publish _ x topic-alias=9
         c< disconnect ProtocolError ReasonString='a topic alias stands for no topic'
         c< closed: protocol error: a topic alias stands for no topic
         d> connect client=d v5
         d< connack Success
         d> publish a x topic-alias=65
         d< disconnect TopicAliasInvalid ReasonString='a topic alias is greater than the maximum'
         d< closed: topic alias invalid: a topic alias is greater than the maximum",
    );
}

#[test]
fn rights_are_asked_for() {
    check(
        "> connect client=a user=writer password=writer
         < connack Success
         > subscribe id=1 a
         < suback 1 [UnspecifiedError]
         b> connect client=b v5 user=reader password=reader
         b< connack Success
         b> subscribe id=1 a
         b< suback 1 [Success]
         b> publish a x
         b> publish a x qos=1 id=1
         b< puback 1 NotAuthorized ReasonString='write access to exchange 'amq.topic' in vhost '/' \
refused for user 'reader''
         > publish a x qos=1 id=2
         < puback 2
         b< publish a x",
    );
}

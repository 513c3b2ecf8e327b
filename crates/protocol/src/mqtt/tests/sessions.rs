//! Messages with QoS 1 and 2 to clients, and sessions that outlive their connections.

use super::speech::check;

#[test]
fn messages_go_out_with_the_lower_qos_of_both() {
    check(
        "> connect client=a
         < connack Success
         > subscribe id=1 a qos=1
         < suback 1 [GrantedQos1]
         > subscribe id=2 b qos=2
         < suback 2 [GrantedQos2]
         b> connect client=b
         b< connack Success
         b> publish a zero
         < publish a zero
         b> publish a one qos=1 id=1
         < publish a one qos=1 id=3
         b< puback 1
         b> publish a two qos=2 id=2
         < publish a two qos=1 id=4
         b< pubrec 2
         b> publish b one qos=1 id=3
         < publish b one qos=1 id=5
         b< puback 3
         b> publish b two qos=2 id=4
         < publish b two qos=2 id=6
         b< pubrec 4
         > puback id=3
         > puback id=4
         > puback id=5
         > pubrec id=6
         < pubrel 6
         > pubrec id=6
         < pubrel 6
         > pubcomp id=6
         > pubcomp id=6
         > puback id=99",
    );
}

#[test]
fn a_client_gets_no_more_at_once_than_it_takes() {
    check(
        "> connect client=a v5 receive-maximum=2
         < connack Success
         > subscribe id=1 a qos=2
         < suback 1 [GrantedQos2]
         b> connect client=b
         b< connack Success
         b> publish a 1 qos=1 id=1
         < publish a 1 qos=1 id=2
         b< puback 1
         b> publish a 2 qos=2 id=2
         < publish a 2 qos=2 id=3
         b< pubrec 2
         b> publish a 3 qos=1 id=3
         b< puback 3
         > pubrec id=3
         < pubrel 3
         > puback id=2
         < publish a 3 qos=1 id=4
         b> publish a 4 qos=1 id=4
         b< puback 4
         > pubcomp id=3
         < publish a 4 qos=1 id=5",
    );
}

#[test]
fn kept_sessions_collect_and_resume() {
    check(
        "> connect client=a v5 session-expiry=100
         < connack Success
         > subscribe id=1 a/# qos=1 identifier=7
         < suback 1 [GrantedQos1]
         > subscribe id=2 b
         < suback 2 [Success]
         b> connect client=b
         b< connack Success
         b> publish a/1 first qos=1 id=1
         < publish a/1 first qos=1 id=2 SubscriptionIdentifier=7
         b< puback 1
         > cut
         < closed: cut
         b> publish a/2 second qos=1 id=2
         b< puback 2
         b> publish b lost
         c> connect client=a v5 resume session-expiry=100
         c< connack present Success
         c< publish a/1 first qos=1 id=2 dup SubscriptionIdentifier=7
         c< publish a/2 second qos=1 id=3 SubscriptionIdentifier=7
         c> puback id=2
         c> puback id=3
         b> publish b here
         c< publish b here
         c> disconnect
         c< closed: the client has disconnected: success
         b> publish a/3 third qos=1 id=3
         b< puback 3
         b> wait 101000
         d> connect client=a v5 resume
         d< connack Success",
    );
}

#[test]
fn exactly_once_goes_on_over_connections() {
    check(
        "> connect client=a resume
         < connack Success
         > subscribe id=1 a qos=2
         < suback 1 [GrantedQos2]
         b> connect client=b resume
         b< connack Success
         b> publish a one qos=2 id=9
         < publish a one qos=2 id=2
         b< pubrec 9
         b> cut
         b< closed: cut
         c> connect client=b resume
         c< connack present Success
         c> publish a one qos=2 id=9 dup
         c< pubrec 9
         c> pubrel id=9
         c< pubcomp 9
         > pubrec id=2
         < pubrel 2
         > cut
         < closed: cut
         d> connect client=a resume
         d< connack present Success
         d< pubrel 2
         d> pubcomp id=2
         c> publish a two qos=2 id=9
         c< pubrec 9
         d< publish a two qos=2 id=3",
    );
}

#[test]
fn a_resumed_session_is_exact_although_it_will_end_with_its_connection() {
    check(
        "> connect client=a v5 session-expiry=100
         < connack Success
         > subscribe id=1 a qos=2
         < suback 1 [GrantedQos2]
         b> connect client=b v5 session-expiry=100
         b< connack Success
         b> publish a one qos=2 id=9
         < publish a one qos=2 id=2
         b< pubrec 9
         b> cut
         b< closed: cut
         c> connect client=b v5 resume
         c< connack present Success
         c> publish a one qos=2 id=9 dup
         c< pubrec 9
         c> pubrel id=9
         c< pubcomp 9
         > pubrec id=2
         < pubrel 2
         > cut
         < closed: cut
         d> connect client=a v5 resume
         d< connack present Success
         d< pubrel 2
         e> connect client=a v5 resume session-expiry=100
         d< disconnect SessionTakenOver ReasonString='another connection has the same client identifier'
         d< closed: session taken over: another connection has the same client identifier
         e< connack Success",
    );
}

#[test]
fn a_client_that_connects_again_takes_over() {
    check(
        "> connect client=a v5
         < connack Success
         > subscribe id=1 a qos=1
         < suback 1 [GrantedQos1]
         b> connect client=a v5
         < disconnect SessionTakenOver ReasonString='another connection has the same client identifier'
         < closed: session taken over: another connection has the same client identifier
         b< connack Success
         b> publish a x qos=1 id=1
         b< puback 1 NoMatchingSubscribers
         c> connect client=a user=both password=both
         c< connack NotAuthorized
         c> wait 1
         c< closed: session 'a' belongs to another user",
    );
}

#[test]
fn wills_are_published_where_connections_are_lost() {
    check(
        "> connect client=watch v5
         < connack Success
         > subscribe id=1 w/#
         < suback 1 [Success]
         b> connect client=b will=w/b:gone qos=1
         b< connack Success
         b> cut
         < publish w/b gone
         b< closed: cut
         c> connect client=c will=w/c:gone
         c< connack Success
         c> disconnect
         c< closed: the client has disconnected: success
         d> connect client=d v5 will=w/d:gone
         d< connack Success
         d> disconnect reason=4
         < publish w/d gone
         d< closed: the client has disconnected: disconnect with will message
         g> connect client=g v5 will=w/g:gone
         g< connack Success
         g> disconnect reason=128
         < publish w/g gone
         g< closed: the client has disconnected: unspecified error
         e> connect client=e v5 will=w/e:gone
         e< connack Success
         f> connect client=e v5
         < publish w/e gone
         e< disconnect SessionTakenOver ReasonString='another connection has the same client identifier'
         e< closed: session taken over: another connection has the same client identifier
         f< connack Success",
    );
}

#[test]
fn overlapping_subscriptions_of_all_kinds_get_one_copy() {
    check(
        "> connect client=a v5
         < connack Success
         > subscribe id=1 a/# identifier=1
         < suback 1 [Success]
         > subscribe id=2 a/+ qos=1 identifier=2
         < suback 2 [GrantedQos1]
         > subscribe id=3 a/b qos=2 identifier=3
         < suback 3 [GrantedQos2]
         > publish a/b x qos=1 id=1
         < publish a/b x qos=1 id=2 SubscriptionIdentifier=1 SubscriptionIdentifier=2 \
SubscriptionIdentifier=3
         < puback 1
         > puback id=2
         > publish a/b y
         < publish a/b y SubscriptionIdentifier=1 SubscriptionIdentifier=2 SubscriptionIdentifier=3
         > publish a/b/c z
         < publish a/b/c z SubscriptionIdentifier=1
         > unsubscribe id=4 a/+ a/b
         < unsuback 4 [Success, Success]
         > publish a/b v qos=1 id=2
         < publish a/b v SubscriptionIdentifier=1
         < puback 2
         > subscribe id=5 a/# qos=1
         < suback 5 [GrantedQos1]
         > publish a/b u qos=1 id=3
         < publish a/b u qos=1 id=4
         < puback 3
         > puback id=4",
    );
}

#[test]
fn topics_of_queued_messages_have_aliases() {
    check(
        "> connect client=a v5 topic-alias-maximum=1 maximum-packet-size=30
         < connack Success
         > subscribe id=1 a b qos=1
         < suback 1 [GrantedQos1, GrantedQos1]
         > publish a 1234567890123456789012345 qos=1 id=1
         < puback 1
         > publish a one qos=1 id=2
         < publish a one qos=1 id=3 TopicAlias=1
         < puback 2
         > publish a two qos=1 id=3
         < publish  two qos=1 id=4 TopicAlias=1
         < puback 3
         > publish b three qos=1 id=4
         < publish b three qos=1 id=5
         < puback 4",
    );
}

#[test]
fn an_expiry_is_told_with_what_is_left_of_it() {
    check(
        "> connect client=a v5 session-expiry=1000
         < connack Success
         > subscribe id=1 a qos=1
         < suback 1 [GrantedQos1]
         > cut
         < closed: cut
         b> connect client=b v5
         b< connack Success
         b> publish a x qos=1 id=1 message-expiry=10
         b< puback 1
         b> publish a y qos=1 id=2 message-expiry=3
         b< puback 2
         b> wait 4500
         c> connect client=a v5 resume session-expiry=1000
         c< connack present Success
         c< publish a x qos=1 id=2 MessageExpiryInterval=6",
    );
}

/// Two members of a shared subscription, `a` and `b`, and a publisher `p`.
const MEMBERS: &str = "> connect client=a v5 session-expiry=100 receive-maximum=1
     < connack Success
     > subscribe id=1 $share/g/a/# qos=2 identifier=7
     < suback 1 [GrantedQos2]
     b> connect client=b v5
     b< connack Success
     b> subscribe id=1 $share/g/a/# qos=1
     b< suback 1 [GrantedQos1]
     p> connect client=p
     p< connack Success";

#[test]
fn messages_of_a_shared_subscription_go_to_one_member_each() {
    // To a session that is kept they go once it is flushed that they are its own.
    check(&format!(
        "{MEMBERS}
         p> publish a/1 one qos=1 id=1
         p< puback 1
         p> wait 1
         < publish a/1 one qos=1 id=2 SubscriptionIdentifier=7
         p> publish a/2 two qos=2 id=2
         b< publish a/2 two qos=1 id=2
         p< pubrec 2
         p> publish a/3 three qos=1 id=3
         b< publish a/3 three qos=1 id=3
         p< puback 3
         p> publish a/4 four
         b< publish a/4 four
         p> publish a/5 five
         < publish a/5 five SubscriptionIdentifier=7
         > puback id=2
         > subscribe id=2 a/6
         < suback 2 [Success]
         p> publish a/6 six qos=2 id=4
         < publish a/6 six
         p< pubrec 4
         p> wait 1
         < publish a/6 six qos=2 id=3 SubscriptionIdentifier=7"
    ));
}

#[test]
fn a_member_that_is_away_takes_nothing_and_keeps_what_it_was_sent() {
    check(&format!(
        "{MEMBERS}
         p> publish a/1 one qos=2 id=1
         p< pubrec 1
         p> wait 1
         < publish a/1 one qos=2 id=2 SubscriptionIdentifier=7
         > cut
         < closed: cut
         p> publish a/2 two qos=2 id=2
         b< publish a/2 two qos=1 id=2
         p< pubrec 2
         p> publish a/3 three qos=1 id=3
         b< publish a/3 three qos=1 id=3
         p< puback 3
         b> disconnect
         b< closed: the client has disconnected: success
         p> publish a/4 four qos=1 id=4
         p< puback 4
         c> connect client=a v5 resume session-expiry=100
         c< connack present Success
         c< publish a/1 one qos=2 id=2 dup SubscriptionIdentifier=7
         c< publish a/3 three qos=1 id=3 dup SubscriptionIdentifier=7
         c< publish a/4 four qos=1 id=4 SubscriptionIdentifier=7
         c> pubrec id=2
         c< pubrel 2
         c> pubcomp id=2"
    ));
}

#[test]
fn messages_of_a_member_whose_session_ends_go_to_another() {
    for (how, ends) in [("", ""), ("session-expiry=5", "p> wait 6000")] {
        let sent = |message: &str, answer: &str| match how {
            "" => format!("< publish {message}\np< {answer}"),
            _ => format!("p< {answer}\np> wait 1\n< publish {message}"),
        };
        check(&format!(
            "> connect client=a v5 {how}
             < connack Success
             > subscribe id=1 $share/g/+ qos=2
             < suback 1 [GrantedQos2]
             p> connect client=p
             p< connack Success
             p> publish x one qos=1 id=1
             {}
             p> publish x two qos=2 id=2
             {}
             b> connect client=b
             b< connack Success
             b> subscribe id=1 $share/g/+ qos=2
             b< suback 1 [GrantedQos2]
             > cut
             < closed: cut
             {ends}
             b< publish x one qos=1 id=2 dup
             b> unsubscribe id=2 $share/g/+
             b< unsuback 2 []
             p> publish x three qos=1 id=3
             p< puback 3",
            sent("x one qos=1 id=2", "puback 1"),
            sent("x two qos=2 id=3", "pubrec 2"),
        ));
    }
}

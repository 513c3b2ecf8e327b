//! What the broker tells about itself, as its clients see it.

use super::speech::check;

#[test]
fn those_who_subscribe_by_name_are_told_at_once_and_of_changes() {
    for version in ["", " v5"] {
        check(&format!(
            "> connect client=a{version}
             < connack Success
             > told 2 0
             > subscribe id=1 $SYS/broker/clients/connected
             < suback 1 [Success]
             < publish $SYS/broker/clients/connected 2 retain
             > told 2 10
             > told 3 20
             < publish $SYS/broker/clients/connected 3
             > subscribe id=2 $SYS/broker/clients/+ qos=1
             < suback 2 [GrantedQos1]
             < publish $SYS/broker/clients/active 3 retain
             < publish $SYS/broker/clients/connected 3 retain
             < publish $SYS/broker/clients/disconnected 0 retain
             < publish $SYS/broker/clients/inactive 0 retain
             < publish $SYS/broker/clients/maximum 3 retain
             < publish $SYS/broker/clients/total 3 retain"
        ));
    }
}

#[test]
fn wildcards_in_front_and_shared_subscriptions_do_not_match() {
    check(
        "> connect client=a v5
         < connack Success
         > told 2 0
         > subscribe id=1 # +/broker/uptime $share/g/$SYS/broker/uptime
         < suback 1 [Success, Success, Success]
         > told 3 10",
    );
}

#[test]
fn a_subscription_has_its_options() {
    check(
        "> connect client=a v5
         < connack Success
         > told 2 0
         > subscribe id=1 $SYS/broker/uptime qos=2 identifier=7 as-published
         < suback 1 [GrantedQos2]
         < publish $SYS/broker/uptime 0 seconds retain SubscriptionIdentifier=7
         > told 2 10
         < publish $SYS/broker/uptime 10 seconds retain SubscriptionIdentifier=7
         > subscribe id=2 $SYS/+/uptime retain-handling=2
         < suback 2 [Success]
         > told 2 20
         < publish $SYS/broker/uptime 20 seconds retain SubscriptionIdentifier=7",
    );
}

#[test]
fn they_outlive_a_connection() {
    check(
        "> connect client=a v5 session-expiry=60
         < connack Success
         > subscribe id=1 $SYS/broker/uptime qos=1
         < suback 1 [GrantedQos1]
         > cut
         < closed: cut
         > told 1 0
         b> connect client=a v5 session-expiry=60 resume
         b< connack present Success
         b> told 1 10
         b< publish $SYS/broker/uptime 10 seconds",
    );
}

#[test]
fn nobody_else_may_publish_or_read_them() {
    check(
        "> connect client=a v5
         < connack Success
         > subscribe id=1 $SYS/broker/uptime $SYS/broker/x/#
         < suback 1 [Success, Success]
         b> connect client=b v5
         b< connack Success
         b> publish $SYS/broker/x/y false
         b> publish $SYS/broker/x/y false qos=1 id=2
         b< puback 2 NotAuthorized
         c> connect client=c v5 user=writer password=writer
         c< connack Success
         c> subscribe id=1 $SYS/broker/uptime
         c< suback 1 [NotAuthorized]
         c> told 1 0
         < publish $SYS/broker/uptime 0 seconds",
    );
}

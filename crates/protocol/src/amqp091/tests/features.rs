//! What clients do with queues, exchanges and messages, as they see it on the wire.

use super::check;

#[test]
fn publish_and_consume() {
    check(
        "> 1 queue.declare queue=q
         < 1 queue.declare-ok queue=q
         > 1 basic.publish routing_key=q | content_type=text/plain delivery_mode=2 \"first\"
         > 1 basic.publish routing_key=q | \"\"
         > 1 queue.declare queue=q passive=true
         < 1 queue.declare-ok queue=q message_count=2
         > 1 basic.qos prefetch_count=1
         < 1 basic.qos-ok
         > 1 basic.consume queue=q consumer_tag=c
         < 1 basic.consume-ok consumer_tag=c
         < 1 basic.deliver consumer_tag=c delivery_tag=1 routing_key=q | content_type=text/plain \
           delivery_mode=2 \"first\"
         > 1 basic.ack delivery_tag=1
         < 1 basic.deliver consumer_tag=c delivery_tag=2 routing_key=q | \"\"
         > 1 basic.reject delivery_tag=2 requeue=true
         < 1 basic.deliver consumer_tag=c delivery_tag=3 redelivered=true routing_key=q | \
           headers={x-delivery-count:1} \"\"
         > 1 basic.nack delivery_tag=3
         > 1 basic.cancel consumer_tag=c
         < 1 basic.cancel-ok consumer_tag=c
         > 1 queue.delete queue=q
         < 1 queue.delete-ok",
    );
}

#[test]
fn a_group_of_messages_has_one_consumer() {
    check(
        "> 1 queue.declare queue=q arguments={x-message-groups:true}
         < 1 queue.declare-ok queue=q
         > 1 basic.qos prefetch_count=1
         < 1 basic.qos-ok
         > 1 basic.consume queue=q consumer_tag=c
         < 1 basic.consume-ok consumer_tag=c
         > 1 basic.consume queue=q consumer_tag=d
         < 1 basic.consume-ok consumer_tag=d
         > 1 basic.publish routing_key=q | headers={JMSXGroupID:a} \"a1\"
         < 1 basic.deliver consumer_tag=c delivery_tag=1 routing_key=q | headers={JMSXGroupID:a} \"a1\"
         > 1 basic.publish routing_key=q | headers={JMSXGroupID:a,JMSXGroupSeq:-1} \"a2\"
         > 1 basic.publish routing_key=q | headers={JMSXGroupID:b} \"b1\"
         < 1 basic.deliver consumer_tag=d delivery_tag=2 routing_key=q | headers={JMSXGroupID:b} \"b1\"
         > 1 basic.ack delivery_tag=1
         < 1 basic.deliver consumer_tag=c delivery_tag=3 routing_key=q | \
           headers={JMSXGroupID:a,JMSXGroupSeq:-1} \"a2\"
         > 1 basic.publish routing_key=q | headers={JMSXGroupID:a} \"a3\"
         > 1 basic.ack delivery_tag=2
         < 1 basic.deliver consumer_tag=d delivery_tag=4 routing_key=q | headers={JMSXGroupID:a} \"a3\"",
    );
}

#[test]
fn get_and_recover() {
    check(
        "> 1 queue.declare queue=q
         < 1 queue.declare-ok queue=q
         > 1 basic.get queue=q
         < 1 basic.get-empty
         > 1 basic.publish routing_key=q | \"one\"
         > 1 basic.publish routing_key=q | \"two\"
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=1 routing_key=q message_count=1 | \"one\"
         > 1 basic.get queue=q no_ack=true
         < 1 basic.get-ok delivery_tag=2 routing_key=q | \"two\"
         > 1 basic.recover requeue=true
         < 1 basic.recover-ok
         > 1 basic.recover-async requeue=true
         > 1 queue.purge queue=q
         < 1 queue.purge-ok message_count=1",
    );
}

#[test]
fn queues_are_remembered_and_no_wait_is_silent() {
    check(
        "> 1 queue.declare queue=q no_wait=true
         > 1 exchange.declare exchange=e kind=fanout no_wait=true
         > 1 queue.bind exchange=e no_wait=true
         > 1 basic.publish exchange=e | \"x\"
         > 1 queue.declare queue=q passive=true
         < 1 queue.declare-ok queue=q message_count=1
         > 1 queue.unbind exchange=e
         < 1 queue.unbind-ok
         > 1 basic.publish exchange=e mandatory=true | \"y\"
         < 1 basic.return reply_code=312 reply_text=NO_ROUTE exchange=e | \"y\"
         > 1 exchange.delete exchange=e no_wait=true
         > 1 queue.purge no_wait=true
         > 1 queue.delete no_wait=true
         > 1 basic.get queue=q
         < 1 channel.close reply_code=404 reply_text=\"NOT_FOUND - no queue 'q' in vhost '/'\" \
           class_id=60 method_id=70",
    );
}

#[test]
fn exchanges_are_bound_to_exchanges() {
    check(
        "> 1 exchange.declare exchange=up kind=topic
         < 1 exchange.declare-ok
         > 1 exchange.declare exchange=down kind=headers
         < 1 exchange.declare-ok
         > 1 exchange.bind source=up destination=down routing_key=a.#
         < 1 exchange.bind-ok
         > 1 queue.declare queue=q
         < 1 queue.declare-ok queue=q
         > 1 queue.bind queue=q exchange=down arguments={x-match:all,kind:log}
         < 1 queue.bind-ok
         > 1 basic.publish exchange=up routing_key=a.b | headers={kind:log} \"yes\"
         > 1 basic.publish exchange=up routing_key=a.b | headers={kind:other} \"no\"
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=1 exchange=up routing_key=a.b | headers={kind:log} \"yes\"
         > 1 basic.get queue=q
         < 1 basic.get-empty
         > 1 exchange.unbind source=up destination=down routing_key=a.#
         < 1 exchange.unbind-ok
         > 1 exchange.delete exchange=up
         < 1 exchange.delete-ok",
    );
}

#[test]
fn publishes_are_confirmed() {
    check(
        "> 1 confirm.select
         < 1 confirm.select-ok
         > 1 basic.publish routing_key=nowhere mandatory=true | \"x\"
         < 1 basic.return reply_code=312 reply_text=NO_ROUTE routing_key=nowhere | \"x\"
         < 1 basic.ack delivery_tag=1
         > 1 queue.declare queue=q durable=true arguments={x-max-length:1,x-overflow:reject-publish}
         < 1 queue.declare-ok queue=q
         > 1 basic.publish routing_key=q | delivery_mode=2 \"x\"
         < 1 basic.ack delivery_tag=2
         > 1 basic.publish routing_key=q | delivery_mode=2 \"x\"
         < 1 basic.nack delivery_tag=3",
    );
}

#[test]
fn transactions_wait_for_commit() {
    check(
        "> 1 queue.declare queue=q
         < 1 queue.declare-ok queue=q
         > 1 tx.select
         < 1 tx.select-ok
         > 1 basic.publish routing_key=q | \"kept\"
         > 1 basic.get queue=q
         < 1 basic.get-empty
         > 1 tx.commit
         < 1 tx.commit-ok
         > 1 basic.publish routing_key=q | \"dropped\"
         > 1 tx.rollback
         < 1 tx.rollback-ok
         > 1 basic.get queue=q no_ack=true
         < 1 basic.get-ok delivery_tag=1 routing_key=q | \"kept\"
         > 1 basic.get queue=q
         < 1 basic.get-empty",
    );
}

#[test]
fn carbon_copies_and_what_is_hidden() {
    check(
        "> 1 queue.declare queue=a
         < 1 queue.declare-ok queue=a
         > 1 queue.declare queue=b
         < 1 queue.declare-ok queue=b
         > 1 queue.declare queue=c
         < 1 queue.declare-ok queue=c
         > 1 basic.publish routing_key=a | headers={CC:[b],BCC:[c],k:v} \"x\"
         > 1 basic.get queue=a
         < 1 basic.get-ok delivery_tag=1 routing_key=a | headers={CC:[b],k:v} \"x\"
         > 1 basic.get queue=b
         < 1 basic.get-ok delivery_tag=2 routing_key=a | headers={CC:[b],k:v} \"x\"
         > 1 basic.get queue=c
         < 1 basic.get-ok delivery_tag=3 routing_key=a | headers={CC:[b],k:v} \"x\"",
    );
}

/// Plays a transcript after the declaration of a queue `q` whose dead letters go to `graves`.
fn check_dead_letters(transcript: &str) {
    check(&format!(
        "> 1 queue.declare queue=graves
         < 1 queue.declare-ok queue=graves
         > 1 queue.declare queue=q arguments={{x-dead-letter-exchange:,\
           x-dead-letter-routing-key:graves}}
         < 1 queue.declare-ok queue=q
         {transcript}"
    ));
}

#[test]
fn dead_letters_say_why() {
    check_dead_letters(
        "> 1 basic.publish routing_key=q | expiration=100 \"late\"
         > wait 100
         > 1 basic.get queue=graves
         < 1 basic.get-ok delivery_tag=1 routing_key=graves | headers={x-death:[{count:1,\
           reason:expired,queue:q,time:@1700000000,exchange:,routing-keys:[q],\
           original-expiration:100}],x-first-death-reason:expired,x-first-death-queue:q,\
           x-first-death-exchange:,x-last-death-reason:expired,x-last-death-queue:q,\
           x-last-death-exchange:} \"late\"",
    );
}

#[test]
fn replies_go_straight_back() {
    check(
        "> 1 basic.consume queue=amq.rabbitmq.reply-to no_ack=true
         < 1 basic.consume-ok consumer_tag=amq.ctag-0.1.1
         > 1 queue.declare queue=amq.rabbitmq.reply-to passive=true
         < 1 queue.declare-ok queue=amq.rabbitmq.reply-to consumer_count=1
         b> 1 queue.declare queue=amq.rabbitmq.reply-to.gone passive=true
         b< 1 channel.close reply_code=404 reply_text=\"NOT_FOUND - no queue \
           'amq.rabbitmq.reply-to.gone' in vhost '/'\" class_id=50 method_id=10
         > 1 basic.consume queue=amq.rabbitmq.reply-to no_ack=true
         < 1 channel.close reply_code=406 reply_text=\"PRECONDITION_FAILED - reply consumer \
           already set\" class_id=60 method_id=20",
    );
}

#[test]
fn consumers_hear_that_their_queue_has_gone() {
    check(
        "> 1 queue.declare queue=q
         < 1 queue.declare-ok queue=q
         b> 1 basic.consume queue=q
         b< 1 basic.consume-ok consumer_tag=amq.ctag-1.1.1
         > 1 queue.delete queue=q
         < 1 queue.delete-ok
         b< 1 basic.cancel consumer_tag=amq.ctag-1.1.1 no_wait=true",
    );
}

#[test]
fn a_consumer_tag_is_used_once() {
    check(
        "> 1 queue.declare queue=q
         < 1 queue.declare-ok queue=q
         > 1 basic.consume queue=q consumer_tag=c no_wait=true
         > 1 basic.cancel consumer_tag=unknown
         < 1 basic.cancel-ok consumer_tag=unknown
         > 1 basic.consume queue=q consumer_tag=c
         < 0 connection.close reply_code=530 reply_text=\"NOT_ALLOWED - attempt to reuse \
           consumer tag 'c'\" class_id=60 method_id=20",
    );
}

#[test]
fn exclusive_queues_belong_to_their_connection() {
    check(
        "> 1 queue.declare queue=mine exclusive=true
         < 1 queue.declare-ok queue=mine
         b> 1 basic.get queue=mine
         b< 1 channel.close reply_code=405 reply_text=\"RESOURCE_LOCKED - queue 'mine' is \
           exclusive to another connection\" class_id=60 method_id=70
         > cut
         < closed: cut
         b> 1 channel.close-ok
         b> 1 channel.open
         b< 1 channel.open-ok
         b> 1 queue.declare queue=mine passive=true
         b< 1 channel.close reply_code=404 reply_text=\"NOT_FOUND - no queue 'mine' in vhost \
           '/'\" class_id=50 method_id=10",
    );
}

#[test]
fn deliveries_stop_and_go_on() {
    check(
        "> 1 queue.declare queue=q
         < 1 queue.declare-ok queue=q
         > 1 basic.consume queue=q consumer_tag=c no_ack=true
         < 1 basic.consume-ok consumer_tag=c
         > 1 channel.flow
         < 1 channel.flow-ok
         > 1 basic.publish routing_key=q | \"x\"
         > 1 channel.flow active=true
         < 1 channel.flow-ok active=true
         < 1 basic.deliver consumer_tag=c delivery_tag=1 routing_key=q | \"x\"
         > 1 access.request realm=/data
         < 1 access.request-ok ticket=1",
    );
}

#[test]
fn messages_are_delayed_on_any_exchange() {
    check(
        "> 1 queue.declare queue=q
         < 1 queue.declare-ok queue=q
         > 1 queue.bind queue=q exchange=amq.fanout
         < 1 queue.bind-ok
         > 1 basic.publish routing_key=q | headers={x-delay:1000} \"named\"
         > 1 basic.publish exchange=amq.fanout | headers={x-delay:500} \"bound\"
         > 1 basic.publish routing_key=none mandatory=true | headers={x-delay:1000} \"lost\"
         < 1 basic.return reply_code=312 reply_text=NO_ROUTE routing_key=none | \
           headers={x-delay:1000} \"lost\"
         > 1 tx.select
         < 1 tx.select-ok
         > 1 basic.publish routing_key=q | headers={x-delay:1000} \"held\"
         > 1 tx.commit
         < 1 tx.commit-ok
         > 1 basic.get queue=q
         < 1 basic.get-empty
         > wait 1000
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=1 exchange=amq.fanout message_count=2 | \
           headers={x-delay:-500} \"bound\"
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=2 routing_key=q message_count=1 | headers={x-delay:-1000} \
           \"named\"
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=3 routing_key=q | headers={x-delay:-1000} \"held\"",
    );
}

#[test]
fn messages_are_delayed() {
    check(
        "> 1 exchange.declare exchange=later kind=x-delayed-message \
           arguments={x-delayed-type:direct}
         < 1 exchange.declare-ok
         > 1 queue.declare queue=q
         < 1 queue.declare-ok queue=q
         > 1 queue.bind queue=q exchange=later routing_key=k
         < 1 queue.bind-ok
         > 1 basic.publish exchange=later routing_key=k | headers={x-delay:1000} \"x\"
         > 1 basic.get queue=q
         < 1 basic.get-empty
         > wait 1000
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=1 exchange=later routing_key=k | headers={x-delay:-1000} \
           \"x\"
         > 1 basic.publish exchange=later routing_key=k | headers={k:v,x-delay:\"1000\"} \"text\"
         > 1 basic.publish exchange=later routing_key=k | headers={x-delay:0} \"none\"
         > 1 basic.publish exchange=later routing_key=k | headers={x-delay:-5} \"past\"
         > 1 basic.publish exchange=later routing_key=k | headers={x-delay:soon} \"word\"
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=2 exchange=later routing_key=k message_count=2 | \
           headers={x-delay:0} \"none\"
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=3 exchange=later routing_key=k message_count=1 | \
           headers={x-delay:-5} \"past\"
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=4 exchange=later routing_key=k | headers={x-delay:soon} \
           \"word\"
         > wait 1000
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=5 exchange=later routing_key=k | headers={k:v,\
           x-delay:-1000} \"text\"",
    );
}

#[test]
fn a_dead_letter_with_a_key_of_its_own_loses_cc() {
    check_dead_letters(
        "> 1 basic.publish routing_key=q | headers={CC:[nowhere],k:v} \"x\"
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=1 routing_key=q | headers={CC:[nowhere],k:v} \"x\"
         > 1 basic.reject delivery_tag=1
         > 1 basic.get queue=graves
         < 1 basic.get-ok delivery_tag=2 routing_key=graves | headers={k:v,x-death:[{count:1,\
           reason:rejected,queue:q,time:@1700000000,exchange:,routing-keys:[q,nowhere]}],\
           x-first-death-reason:rejected,x-first-death-queue:q,x-first-death-exchange:,\
           x-last-death-reason:rejected,x-last-death-queue:q,x-last-death-exchange:} \"x\"",
    );
}

#[test]
fn a_queue_without_a_type_is_classic() {
    check(
        "> 1 queue.declare queue=q arguments={x-queue-type:classic}
         < 1 queue.declare-ok queue=q
         > 1 queue.declare queue=q
         < 1 queue.declare-ok queue=q",
    );
}

#[test]
fn arguments_that_mean_nothing_are_not_compared() {
    check(
        "> 1 queue.declare queue=q durable=true arguments={x-ha-policy:all}
         < 1 queue.declare-ok queue=q
         > 1 queue.declare queue=q durable=true arguments={x-own:1}
         < 1 queue.declare-ok queue=q
         > 1 queue.declare queue=q durable=true arguments={x-queue-type:quorum}
         < 1 channel.close reply_code=406 reply_text=\"PRECONDITION_FAILED - inequivalent arg \
           'x-queue-type' for queue 'q' in vhost '/': received the value 'quorum' of type 'longstr' \
           but current is none\" class_id=50 method_id=10",
    );
}

/// Two messages were got from `q` in a transaction.
fn check_transaction(transcript: &str) {
    check(&format!(
        "> 1 queue.declare queue=q
         < 1 queue.declare-ok queue=q
         > 1 basic.publish routing_key=q | \"x\"
         > 1 basic.publish routing_key=q | \"y\"
         > 1 tx.select
         < 1 tx.select-ok
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=1 routing_key=q message_count=1 | \"x\"
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=2 routing_key=q | \"y\"
         {transcript}"
    ));
}

#[test]
fn a_transaction_settles_a_tag_once() {
    let acks = ["delivery_tag=1", "delivery_tag=1 multiple=true", "delivery_tag=2 multiple=true"];
    for (first, then) in [(0, 0), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)] {
        let is_more = (first, then) == (0, 2);
        let answer = if is_more {
            "> 1 tx.commit
             < 1 tx.commit-ok"
        } else {
            "< 1 channel.close reply_code=406 reply_text=\"PRECONDITION_FAILED - unknown delivery \
               tag TAG\" class_id=60 method_id=80"
        };
        let tag = &acks[then]["delivery_tag=".len()..][..1];
        let answer = answer.replace("TAG", tag);
        let (first, then) = (acks[first], acks[then]);
        check_transaction(&format!("> 1 basic.ack {first}\n> 1 basic.ack {then}\n{answer}"));
    }
}

#[test]
fn recover_keeps_what_a_transaction_settles() {
    check_transaction(
        "> 1 basic.ack delivery_tag=1
         > 1 basic.recover requeue=true
         < 1 basic.recover-ok
         > 1 tx.commit
         < 1 tx.commit-ok
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=3 redelivered=true routing_key=q | \
           headers={x-delivery-count:1} \"y\"
         > 1 basic.ack delivery_tag=3
         > 1 tx.rollback
         < 1 tx.rollback-ok
         > 1 basic.recover requeue=true
         < 1 basic.recover-ok
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=4 redelivered=true routing_key=q | \
           headers={x-delivery-count:2} \"y\"",
    );
}

#[test]
fn names_lose_their_line_ends() {
    check(
        "> 1 queue.declare queue=\"q\\r\\n\"
         < 1 queue.declare-ok queue=q
         > 1 exchange.declare exchange=\"\\nx\" kind=fanout
         < 1 exchange.declare-ok
         > 1 queue.bind queue=q exchange=\"x\\n\"
         < 1 queue.bind-ok
         > 1 basic.publish exchange=x | \"x\"
         > 1 basic.get queue=\"q\\n\"
         < 1 basic.get-ok delivery_tag=1 exchange=x | \"x\"",
    );
}

#[test]
fn dead_letters_tell_the_expiration_that_they_had() {
    check_dead_letters(
        "> 1 basic.publish routing_key=q | expiration=60000 \"x\"
         > 1 basic.get queue=q
         < 1 basic.get-ok delivery_tag=1 routing_key=q | expiration=60000 \"x\"
         > 1 basic.reject delivery_tag=1
         > 1 basic.get queue=graves
         < 1 basic.get-ok delivery_tag=2 routing_key=graves | headers={x-death:[{count:1,\
           reason:rejected,queue:q,time:@1700000000,exchange:,routing-keys:[q],\
           original-expiration:60000}],x-first-death-reason:rejected,x-first-death-queue:q,\
           x-first-death-exchange:,x-last-death-reason:rejected,x-last-death-queue:q,\
           x-last-death-exchange:} \"x\"",
    );
}

#[test]
fn exclusive_queues_are_not_durable_and_an_empty_type_is_none() {
    check(
        "> 1 queue.declare queue=q exclusive=true durable=true
         < 1 queue.declare-ok queue=q
         > 1 queue.declare queue=q exclusive=true
         < 1 queue.declare-ok queue=q
         > 1 queue.declare queue=r arguments={x-queue-type:}
         < 1 queue.declare-ok queue=r
         > 1 queue.declare queue=r
         < 1 queue.declare-ok queue=r",
    );
}

#[test]
fn made_up_names_are_remembered() {
    check(
        "> 1 queue.declare no_wait=true exclusive=true
         > 1 queue.bind exchange=amq.topic routing_key=a.*
         < 1 queue.bind-ok
         > 1 basic.publish exchange=amq.topic routing_key=a.b | \"x\"
         > 1 basic.get no_ack=true
         < 1 basic.get-ok delivery_tag=1 exchange=amq.topic routing_key=a.b | \"x\"",
    );
}

#[test]
fn credit_is_per_consumer_or_per_channel() {
    check(
        "> 1 queue.declare queue=q
         < 1 queue.declare-ok queue=q
         > 1 basic.publish routing_key=q | \"1\"
         > 1 basic.publish routing_key=q | \"2\"
         > 1 basic.publish routing_key=q | \"3\"
         > 1 basic.qos prefetch_count=2
         < 1 basic.qos-ok
         > 1 basic.qos prefetch_count=1 global=true
         < 1 basic.qos-ok
         > 1 basic.consume queue=q consumer_tag=c
         < 1 basic.consume-ok consumer_tag=c
         < 1 basic.deliver consumer_tag=c delivery_tag=1 routing_key=q | \"1\"
         > 1 basic.qos global=true
         < 1 basic.qos-ok
         < 1 basic.deliver consumer_tag=c delivery_tag=2 routing_key=q | \"2\"
         > 1 basic.ack delivery_tag=2 multiple=true
         < 1 basic.deliver consumer_tag=c delivery_tag=3 routing_key=q | \"3\"",
    );
}

#[test]
fn a_request_and_its_reply() {
    use super::{TestHost, open, script};
    let mut host = TestHost::new(crate::amqp091::Settings::default());
    let (asks, answers) = (open(&mut host), open(&mut host));
    let send = |host: &mut TestHost, number, line: &str| {
        host.receive(number, &script::encode(line, 0));
        host.turn_ends();
        script::decode(&host.output(number), 0)
    };
    send(&mut host, answers, "1 queue.declare queue=rpc");
    send(&mut host, answers, "1 basic.consume queue=rpc consumer_tag=c no_ack=true");
    let consume = "1 basic.consume queue=amq.rabbitmq.reply-to consumer_tag=replies no_ack=true";
    assert_eq!(send(&mut host, asks, consume), ["1 basic.consume-ok consumer_tag=replies"]);
    let publish = "1 basic.publish routing_key=rpc | reply_to=amq.rabbitmq.reply-to \"question\"";
    send(&mut host, asks, publish);
    let got = script::decode(&host.output(answers), 0).join("");
    let address = got.split("reply_to=").nth(1).unwrap().split(' ').next().unwrap();
    assert!(address.starts_with("amq.rabbitmq.reply-to."), "{got}");
    let exists = send(&mut host, answers, &format!("1 queue.declare queue={address} passive=true"));
    assert!(exists[0].starts_with("1 queue.declare-ok"), "{exists:?}");
    send(&mut host, answers, &format!("1 basic.publish routing_key={address} | \"answer\""));
    let reply = script::decode(&host.output(asks), 0);
    assert_eq!(
        reply,
        [format!(
            "1 basic.deliver consumer_tag=replies delivery_tag=1 routing_key={address} | \"answer\""
        )]
    );
    send(&mut host, asks, "1 basic.cancel consumer_tag=replies");
    let gone = send(&mut host, answers, &format!("1 queue.declare queue={address} passive=true"));
    assert!(gone[0].contains("reply_code=404"), "{gone:?}");
}

#[test]
fn a_connection_and_a_channel_are_small() {
    let bytes = size_of::<crate::amqp091::Handler>() + size_of::<super::super::channel::Channel>();
    assert!(bytes <= 768, "{bytes} bytes");
}

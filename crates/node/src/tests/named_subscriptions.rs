//! Named subscriptions and temporary queues and topics, used by in-process clients of any shard.

use super::sessions::{Script, check};
use angarium_engine::{
    BindingTarget, Consume, CreateTemporary, Credit, Lifetime, LifetimeEnd, OpenSubscription,
    Outcome, QueueOptions, Request, TemporaryKind,
};

/// Requests about them: `open NAME KEY durable shared`, `temporary queue HOLDER NAME`.
pub(super) fn request(words: &[&str]) -> Request {
    let text = |at: usize| words[at].to_owned();
    let owner = Some("client".to_owned());
    match words[0] {
        "open" => Request::OpenSubscription(Box::new(OpenSubscription {
            owner,
            name: text(1),
            source: "amq.topic".to_owned(),
            keys: vec![text(2)],
            durable: words.contains(&"durable"),
            shared: words.contains(&"shared"),
            ..OpenSubscription::default()
        })),
        "find" => Request::FindSubscription { owner, name: text(1) },
        "delete" => Request::DeleteSubscription { owner, name: text(1) },
        "consume" => Request::Consume(Consume {
            queue: text(1),
            name: "c".to_owned(),
            browses: false,
            presettled: false,
            exclusive: false,
            priority: 0,
            credit: Credit::default(),
            settle_timeout: None,
            is_granted: false,
            on_close: Outcome::REQUEUE,
            on_loss: Outcome::REQUEUE,
            filter: None,
        }),
        "temporary" => Request::CreateTemporary(Box::new(CreateTemporary {
            name: text(3),
            kind: match words[1] {
                "queue" => TemporaryKind::Queue(QueueOptions::default()),
                _ => TemporaryKind::Topic,
            },
            exclusive: true,
            holder: text(2),
            lifetime: Lifetime { until: LifetimeEnd::CreatorLeaves, drains: false },
        })),
        "hold" if words[1] == "queue" => {
            Request::Hold { node: BindingTarget::Queue(text(2)), holder: text(3) }
        }
        "hold" => Request::Hold { node: BindingTarget::Exchange(text(2)), holder: text(3) },
        "release" => Request::Release { holder: text(1) },
        other => panic!("unknown request '{other}'"),
    }
}

#[test]
fn subscriptions_are_found_from_any_shard() {
    check(
        "a@0
         b@1
         b open s k durable
         > b queue amq.durable-client/s 0
         a find s
         > a amq.durable-client/s amq.topic k
         a consume amq.durable-client/s
         > a ok
         b open s k durable
         > b ResourceLocked
         b delete s
         > b ResourceLocked
         a gone
         b open s l durable
         > b queue amq.durable-client/s 0
         b open v k shared
         > b queue amq.volatile-client/v 0
         b gone
         c@2
         c find s
         > c amq.durable-client/s amq.topic l
         c consume amq.volatile-client/v
         > c NotFound",
    );
}

#[test]
fn temporary_queues_and_topics_go_with_a_connection_of_any_shard() {
    check(
        "a@1
         b@2
         a temporary queue h q
         > a created q
         a temporary topic i t
         > a created t
         b hold queue q s
         > b ok
         b hold topic t r
         > b ok
         b consume q
         > b ResourceLocked
         a release h
         > a ok
         b release s
         > b ok
         b hold queue q s
         > b NotFound
         a gone
         b release r
         > b ok
         b hold topic t r
         > b NotFound",
    );
}

#[test]
fn durable_subscriptions_survive_crashes_once_they_are_answered() {
    for shards in [1, 3] {
        let mut script = Script::new(shards);
        script.play(
            "a@1
             a open s k durable
             > a queue amq.durable-client/s 0
             a open s l durable
             > a queue amq.durable-client/s 0
             a open gone k durable
             > a queue amq.durable-client/gone 0
             a delete gone
             > a ok
             crash
             b@2
             b find s
             > b amq.durable-client/s amq.topic l
             b find gone
             > b NotFound",
        );
        let node = script.host.node();
        let listed = node.engine().list_named_subscriptions_in(0..usize::MAX);
        let names: Vec<(&str, bool)> = listed.map(|it| (it.name, it.durable)).collect();
        assert_eq!(names, [("s", true)]);
    }
}

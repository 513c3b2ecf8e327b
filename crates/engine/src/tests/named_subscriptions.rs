//! Named subscriptions: opened, joined, replaced, deleted; what is in the way; what a restart brings back.

use super::host::Words;
use super::{TestHost, check, check_in};
use crate::interface::limits::Limits;
use crate::*;

/// Requests about named subscriptions: `open NAME SOURCE KEY,KEY owner=OWNER`.
pub(super) fn request(words: &Words<'_>) -> Request {
    let name = words.0[1].to_owned();
    let owner = words.value("owner").map(str::to_owned);
    match words.0[0] {
        "open" => Request::OpenSubscription(Box::new(OpenSubscription {
            owner,
            name,
            source: words.0[2].to_owned(),
            keys: words.0[3].split(',').map(str::to_owned).collect(),
            durable: words.has("durable"),
            shared: words.has("shared"),
            filter: super::filters::filter(words),
            not_from: words.value("not-from").map(str::to_owned),
            consumer: words.value("for").map(str::to_owned),
            options: QueueOptions {
                expires: words.millis("expires"),
                length_max: words.number("length"),
                ..QueueOptions::default()
            },
        })),
        "find" => Request::FindSubscription { owner, name },
        _ => Request::DeleteSubscription { owner, name },
    }
}

#[test]
fn its_filter_and_whose_messages_it_does_not_get_belong_to_it() {
    check_restart(
        "a open s amq.topic x owner=c durable filter=size_>_1 not-from=me
         > a queue amq.durable-c/s 0 0",
        "a find s owner=c
         > a amq.durable-c/s amq.topic x where size > 1 not from me 0 0
         a publish amq.topic x 1 props=size:1
         a publish amq.topic x 2 props=size:2
         a open s amq.topic x owner=c durable filter=size_>_1 not-from=me
         > a queue amq.durable-c/s 1 0
         // Another one takes its place.
         a open s amq.topic x owner=c durable filter=size_>_0 not-from=me
         > a queue amq.durable-c/s 0 0
         a publish amq.topic x 1 props=size:1
         a open s amq.topic x owner=c durable filter=size_>_0
         > a queue amq.durable-c/s 0 0
         a publish amq.topic x 1 props=size:1
         a consume amq.durable-c/s t
         > a consuming t
         > a deliver t #1 1
         b open s amq.topic x owner=c durable
         > b refused ResourceLocked: subscription 's' of client 'c' is in use with another source, keys or \
         selector: end its consumers first",
    );
}

/// Runs `before`, a restart that keeps all records, and `after`: from records alone, and with a snapshot, of
/// one turn or of several, after each line of `before`.
fn check_restart(before: &str, after: &str) {
    let lines: Vec<&str> = before.lines().collect();
    check(&format!("{before}\nrestart\n{after}"));
    for middle in 0..=lines.len() {
        if lines.get(middle).is_some_and(|line| line.trim_start().starts_with('>')) {
            continue;
        }
        let (first, second) = (lines[..middle].join("\n"), lines[middle..].join("\n"));
        check(&format!("{first}\nsnapshot\n{second}\nrestart\n{after}"));
        check(&format!("{first}\ncheckpoint\n{second}\nrestart\n{after}"));
    }
}

#[test]
fn a_durable_subscription_keeps_what_comes_while_nobody_consumes() {
    check(
        "a open s amq.topic x.*,y owner=c durable
         > a queue amq.durable-c/s 0 0
         a publish amq.topic x.1 1
         a consume amq.durable-c/s t
         > a consuming t
         > a deliver t #1 1
         b open s amq.topic x.*,y owner=c durable
         > b refused ResourceLocked: subscription 's' of client 'c' is in use by another consumer
         b consume amq.durable-c/s t
         > b refused ResourceLocked: subscription 's' of client 'c' is in use by another consumer
         a close
         b publish amq.topic y 2
         // The order of keys means nothing, nor do the options of one that is there.
         b open s amq.topic y,x.*,y owner=c durable length=1
         > b queue amq.durable-c/s 2 0
         b find s owner=c
         > b amq.durable-c/s amq.topic x.*,y 2 0
         b find s
         > b refused NotFound: no durable subscription 's' in vhost '/'
         // Another owner's, and that of all.
         b open s amq.topic z owner=d durable
         > b queue amq.durable-d/s 0 0
         b open s amq.topic z durable
         > b queue amq.durable-/s 0 0",
    );
}

#[test]
fn another_source_or_keys_take_its_place_unless_it_is_in_use() {
    check(
        "a open s amq.topic x owner=c durable
         > a queue amq.durable-c/s 0 0
         a consume amq.durable-c/s t
         > a consuming t
         a publish amq.topic x 1
         > a deliver t #1 1
         a publish amq.topic x 2
         > a deliver t #2 2
         b open s amq.topic y owner=c durable
         > b refused ResourceLocked: subscription 's' of client 'c' is in use with another source, keys or \
         selector: end its consumers first
         a cancel t
         > a ok
         a publish amq.topic x 3
         b open s amq.topic y owner=c durable
         > b queue amq.durable-c/s 0 0
         // What was delivered of the one before does not come to this one.
         a requeue 1
         b publish amq.topic x 4
         b publish amq.topic y 5
         b consume amq.durable-c/s t
         > b consuming t
         > b deliver t #1 5
         b open nothing amq.topic y owner=c durable
         > b queue amq.durable-c/nothing 0 0",
    );
}

#[test]
fn what_is_refused_changes_nothing() {
    let long = format!("a.{}", "x".repeat(4095));
    let mut host = TestHost::new();
    for line in
        ["a exchange gone topic", "a open s amq.topic x owner=c durable", "a publish amq.topic x 1"]
    {
        host.run(line);
    }
    let records = host.fx.records.len();
    let mut host = check_in(
        host,
        &format!(
            "a open s amq.topic y,{long} owner=c durable
             > a refused LimitExceeded: binding key of 4097 bytes is longer than 4096
             a open s nowhere y owner=c durable
             > a refused NotFound: no exchange 'nowhere' in vhost '/'
             a open s gone y owner=c durable
             > a refused PreconditionFailed: subscription 's' of client 'c' is durable and exchange \
           'gone' is not: it would get nothing after a restart
             a open s amq.topic x owner=c durable
             > a queue amq.durable-c/s 1 0
             a publish amq.topic y 2
             a publish amq.topic x 3
             a find s owner=c
             > a amq.durable-c/s amq.topic x 2 0
             a open t amq.topic y,{long} owner=c durable
             > a refused LimitExceeded: binding key of 4097 bytes is longer than 4096
             a find t owner=c
             > a refused NotFound: no durable subscription 't' of client 'c' in vhost '/'
             a publish amq.topic y 2
             a passive amq.durable-c/t
             > a refused NotFound: no queue 'amq.durable-c/t' in vhost '/'
             a queue amq.durable-c/u
             > a queue amq.durable-c/u 0 0
             a open u amq.topic y owner=c durable
             > a refused PreconditionFailed: subscription 'u' of client 'c' needs the queue name \
           'amq.durable-c/u', which another queue has"
        ),
    );
    assert_eq!(host.fx.records.len(), records, "nothing is recorded");
    host.run(&format!("a open {} amq.topic y durable", "n".repeat(1025)));
    let many: Vec<String> = (0..=1024).map(|key| key.to_string()).collect();
    let refused = host.run(&format!("a open s amq.topic {} durable", many.join(",")));
    assert_eq!(refused, ["a refused LimitExceeded: more than 1024 keys in one subscription"]);
}

#[test]
fn shared_and_unshared_ones_of_a_name_are_in_each_others_way() {
    check(
        "a open s amq.topic x owner=c durable shared
         > a queue amq.durable-c/s 0 0
         a open s amq.topic x owner=c durable
         > a refused PreconditionFailed: subscription 's' of client 'c' is shared: it cannot be opened \
           as one that is not before it is deleted
         a open t amq.topic x owner=c durable
         > a queue amq.durable-c/t 0 0
         a open t amq.topic x owner=c durable shared
         > a refused PreconditionFailed: subscription 't' of client 'c' is not shared: it cannot be \
           opened as a shared one before it is deleted
         // One that is not durable is another one.
         a open t amq.topic x owner=c shared
         > a queue amq.volatile-c/t 0 0",
    );
}

#[test]
fn a_shared_one_is_joined_by_the_same_and_only_by_those() {
    check(
        "a open s amq.topic x durable shared
         > a queue amq.durable-/s 0 0
         a consume amq.durable-/s t
         > a consuming t
         b open s amq.topic x durable shared
         > b queue amq.durable-/s 0 1
         b consume amq.durable-/s t
         > b consuming t
         a publish amq.topic x 1
         > a deliver t #1 1
         a publish amq.topic x 2
         > b deliver t #1 2
         a open s amq.topic y durable shared
         > a refused ResourceLocked: subscription 's' is in use with another source, keys or \
         selector: end its consumers first
         a delete-subscription s
         > a refused ResourceLocked: subscription 's' is in use: end its consumers first
         a close
         > b deliver t #2 1 redelivered count=1
         b cancel t
         > b ok
         b open s amq.topic y durable shared
         > b queue amq.durable-/s 0 0
         b delete-subscription s
         > b ok
         b delete-subscription s
         > b refused NotFound: no durable subscription 's' in vhost '/'",
    );
}

#[test]
fn one_that_is_not_durable_goes_with_its_last_consumer() {
    check(
        "a open s amq.topic x shared
         > a queue amq.volatile-/s 0 0
         a publish amq.topic x 1
         a consume amq.volatile-/s t
         > a consuming t
         > a deliver t #1 1
         // Who has opened it finds it still there.
         b open s amq.topic x shared
         > b queue amq.volatile-/s 0 1
         a close
         b open s amq.topic y shared
         > b refused ResourceLocked: subscription 's' is in use with another source, keys or \
         selector: end its consumers first
         b consume amq.volatile-/s t
         > b consuming t
         > b deliver t #1 1 redelivered count=1
         b cancel t
         > b ok
         b passive amq.volatile-/s
         > b refused NotFound: no queue 'amq.volatile-/s' in vhost '/'
         b open s amq.topic y shared
         > b queue amq.volatile-/s 0 0
         // Who has opened it and consumed nothing does not leave it behind.
         b close
         a passive amq.volatile-/s
         > a refused NotFound: no queue 'amq.volatile-/s' in vhost '/'",
    );
}

#[test]
fn it_goes_with_its_queue() {
    for end in [
        "a delete amq.durable-c/s\n> a messages 0",
        "time 1001",
        "a delete-subscription s owner=c\n> a ok",
    ] {
        check(&format!(
            "a open s amq.topic x owner=c durable expires=1000
             > a queue amq.durable-c/s 0 0
             {end}
             a find s owner=c
             > a refused NotFound: no durable subscription 's' of client 'c' in vhost '/'
             a open s amq.topic y owner=c durable shared
             > a queue amq.durable-c/s 0 0"
        ));
    }
}

#[test]
fn durable_ones_survive_a_restart() {
    check_restart(
        "a open s amq.topic x.*,y owner=c durable
         > a queue amq.durable-c/s 0 0
         a open t amq.topic x durable shared
         > a queue amq.durable-/t 0 0
         a open v amq.topic x shared
         > a queue amq.volatile-/v 0 0
         a publish amq.topic x.1 1 persistent
         a open gone amq.topic x durable
         > a queue amq.durable-/gone 0 0
         a delete-subscription gone
         > a ok
         a open t amq.topic y durable shared
         > a queue amq.durable-/t 0 0
         a publish amq.topic y 2 persistent",
        "a find s owner=c
         > a amq.durable-c/s amq.topic x.*,y 2 0
         a find t
         > a shared amq.durable-/t amq.topic y 1 0
         a find gone
         > a refused NotFound: no durable subscription 'gone' in vhost '/'
         a passive amq.volatile-/v
         > a refused NotFound: no queue 'amq.volatile-/v' in vhost '/'
         a publish amq.topic x.2 3
         a publish amq.topic x 4
         a open s amq.topic x.*,y owner=c durable
         > a queue amq.durable-c/s 3 0
         a open t amq.topic x durable shared
         > a queue amq.durable-/t 0 0",
    );
}

#[test]
fn all_records_of_a_change_are_recovered_or_none() {
    for lost in 0..=5 {
        let mut host = TestHost::new();
        host.run("a open s amq.topic x owner=c durable");
        host.run("a publish amq.topic x 1 persistent");
        let before = host.fx.records.len();
        host.run("a open s amq.topic y,z owner=c durable");
        // The old queue's end, the new queue, two bindings, the subscription.
        assert_eq!(host.fx.records.len() - before, 5);
        let (first, records, bytes) = *host.fx.groups.last().unwrap();
        assert_eq!((first, records), (before, 5));
        assert_eq!(bytes, host.fx.records[before..].iter().map(Vec::len).sum::<usize>());
        // A journal recovers the group as a whole.
        let lose = if lost == 0 { 0 } else { 5 };
        host.run(&format!("restart lose={lose}"));
        let found = host.run("a find s owner=c");
        let expected = if lost == 0 { "y,z 0 0" } else { "x 1 0" };
        assert_eq!(found, [format!("a amq.durable-c/s amq.topic {expected}")]);
    }
}

#[test]
fn rights_and_quotas_hold_as_for_queues() {
    let mut host = TestHost::new();
    for line in [
        "a user ann hash",
        "a permit ann amq.durable-c/.* amq.durable-c/.* ^(amq.topic|amq.durable-c/.*)$",
        "a quota ann queues=1",
        "login c ann",
    ] {
        host.run(line);
    }
    check_in(
        host,
        "c open s amq.topic x owner=d durable
         > c refused AccessRefused: configure access to queue 'amq.durable-d/s' in vhost '/' refused for \
           user 'ann'
         c open s amq.fanout x owner=c durable
         > c refused AccessRefused: read access to exchange 'amq.fanout' in vhost '/' refused for user 'ann'
         c open s amq.topic x owner=c durable
         flush
         > c queue amq.durable-c/s 0 0
         c open t amq.topic x owner=c durable
         > c refused LimitExceeded: cannot declare queue 'amq.durable-c/t': queue limit of user 'ann' \
           (1) is reached
         // One in place of another is not one more.
         c open s amq.topic y owner=c durable
         flush
         > c queue amq.durable-c/s 0 0
         c find s owner=d
         > c refused AccessRefused: read access to queue 'amq.durable-d/s' in vhost '/' refused for user 'ann'
         c delete-subscription s owner=d
         > c refused AccessRefused: configure access to queue 'amq.durable-d/s' in vhost '/' refused for \
           user 'ann'
         a narrow-subscribing ann ok.*
         > a ok
         c open s amq.topic z owner=c durable
         > c refused AccessRefused: read access to subject 'z' in vhost '/' refused for user 'ann'",
    );
    let limits = Limits { queues_max: 1, ..Limits::default() };
    check_in(
        TestHost::with(limits),
        "a open s amq.topic x durable
         > a queue amq.durable-/s 0 0
         a open s amq.topic y durable
         > a queue amq.durable-/s 0 0
         a open t amq.topic y durable
         > a refused LimitExceeded: more than 1 queues in a virtual host",
    );
}

#[test]
fn after_a_failed_journal_nothing_durable_changes() {
    check(
        "a open s amq.topic x durable
         > a queue amq.durable-/s 0 0
         storage failed
         a open t amq.topic x durable
         > a refused StorageUnavailable: the journal has failed: what is to survive a restart cannot be \
           changed
         a open s amq.topic y durable
         > a refused StorageUnavailable: the journal has failed: what is to survive a restart cannot be \
           changed
         a delete-subscription s
         > a refused StorageUnavailable: the journal has failed: what is to survive a restart cannot be \
           changed
         a open s amq.topic x durable
         > a queue amq.durable-/s 0 0
         a open v amq.topic x shared
         > a queue amq.volatile-/v 0 0",
    );
}

#[test]
fn one_that_was_opened_for_a_consumer_is_in_use_until_that_has_ended() {
    const OTHER: &str = "refused ResourceLocked: subscription 's' of client 'c' is in use with \
                         another source, keys or selector: end its consumers first";
    const SAME: &str =
        "refused ResourceLocked: subscription 's' of client 'c' is in use by another consumer";
    for end in [
        "a let-go 1\n> a ok",
        "a close",
        "a disconnect",
        "a consume QUEUE 1\n> a consuming 1\na close",
    ] {
        for (key, why) in [("x", SAME), ("y", OTHER)] {
            let end = end.replace("QUEUE", "amq.durable-c/s");
            check(&format!(
                "a open s amq.topic x owner=c durable for=1
                 > a queue amq.durable-c/s 0 0
                 b open s amq.topic {key} owner=c durable for=1
                 > b {why}
                 b delete-subscription s owner=c
                 > b refused ResourceLocked: subscription 's' of client 'c' is in use: end its consumers first
                 {end}
                 b open s amq.topic {key} owner=c durable for=1
                 > b queue amq.durable-c/s 0 0
                 b consume amq.durable-c/s 1
                 > b consuming 1"
            ));
        }
    }
}

//! Temporary queues and topics: who holds them, who may use them, when they go.

use super::host::Words;
use super::{check, check_in};
use crate::*;

/// Requests about temporary queues and topics: `temporary queue HOLDER NAME`, `hold queue NAME HOLDER`.
pub(super) fn request(words: &Words<'_>) -> Request {
    let text = |index: usize| words.0[index].to_owned();
    match words.0[0] {
        "temporary" => Request::CreateTemporary(Box::new(CreateTemporary {
            name: words.0.get(3).filter(|it| !it.contains('=')).map_or("", |it| *it).to_owned(),
            kind: match words.0[1] {
                "queue" => TemporaryKind::Queue(QueueOptions::default()),
                _ => TemporaryKind::Topic,
            },
            exclusive: words.value("of") == Some("connection"),
            holder: text(2),
            lifetime: Lifetime {
                until: match words.value("until") {
                    Some("unused") => LifetimeEnd::Unused,
                    _ => LifetimeEnd::CreatorLeaves,
                },
                drains: words.value("drains") == Some("yes"),
            },
        })),
        "hold" => Request::Hold {
            node: match words.0[1] {
                "queue" => BindingTarget::Queue(text(2)),
                _ => BindingTarget::Exchange(text(2)),
            },
            holder: text(3),
        },
        "be" => Request::ClaimClientName { name: text(1) },
        "take" => Request::TakePlace { place: text(1), holder: text(2) },
        _ => Request::Release { holder: text(1) },
    }
}

const GONE: &str = "refused NotFound: no queue 't' in vhost '/'";

#[test]
fn one_goes_with_its_creator_however_that_leaves() {
    for end in ["a let-go h\n> a ok", "a close", "a disconnect"] {
        check(&format!(
            "a temporary queue h t
             > a created t
             b hold queue t s
             > b ok
             b publish - t 1
             {end}
             b passive t
             > b {GONE}
             b let-go s
             > b ok
             a temporary queue h t
             > a created t"
        ));
    }
}

#[test]
fn one_goes_with_the_last_that_uses_it() {
    check(&format!(
        "a temporary queue h t until=unused
         > a created t
         b hold queue t s
         > b ok
         b consume t c
         > b consuming c
         a close
         b let-go s
         > b ok
         b publish - t 1
         > b deliver c #1 1
         b cancel c
         > b ok
         b passive t
         > b {GONE}"
    ));
}

#[test]
fn one_that_drains_goes_once_it_is_empty() {
    for until in ["unused", "creator"] {
        check(&format!(
            "a temporary queue h t until={until} drains=yes
             > a created t
             a publish - t 1
             a let-go h
             > a ok
             time 1000
             b get t
             > b deliver  #1 1
             > b got, 0 left
             time 1000
             b passive t
             > b queue t 0 0
             b accept 1
             time 1000
             b passive t
             > b {GONE}
             b temporary queue h t until={until} drains=yes
             > b created t
             b let-go h
             > b ok
             b passive t
             > b {GONE}"
        ));
    }
}

#[test]
fn one_that_drains_and_is_used_again_stays() {
    check(
        "a temporary queue h t until=unused drains=yes
         > a created t
         a publish - t 1
         a let-go h
         > a ok
         b hold queue t s
         > b ok
         b purge t
         > b messages 1
         time 5000
         b passive t
         > b queue t 0 0
         b close
         a passive t
         > a refused NotFound: no queue 't' in vhost '/'",
    );
}

#[test]
fn a_connections_own_one_is_consumed_by_it_alone_and_everybody_sends() {
    check(
        "a temporary queue h t of=connection
         > a created t
         b consume t c
         > b refused ResourceLocked: queue 't' is exclusive to another connection
         b hold queue t s
         > b ok
         a2 consume t c
         > a2 consuming c
         b publish - t 1
         > a2 deliver c #1 1
         a temporary topic g u of=connection
         > a created u
         b queue q
         > b queue q 0 0
         b bind u q x
         > b refused ResourceLocked: exchange 'u' is exclusive to another connection
         b open s u x shared
         > b refused ResourceLocked: exchange 'u' is exclusive to another connection
         a2 queue p exclusive
         > a2 queue p 0 0
         a2 bind u p -
         > a2 ok
         b publish u any 2
         a passive p
         > a queue p 1 0
         a disconnect
         b publish u any 3
         > b refused NotFound: no exchange 'u' in vhost '/'
         b passive t
         > b refused NotFound: no queue 't' in vhost '/'",
    );
}

#[test]
fn a_topic_goes_with_its_creator_or_the_last_that_uses_it() {
    check(
        "a temporary topic h t
         > a created t
         a queue q
         > a queue q 0 0
         a bind t q -
         > a ok
         a close
         b publish t x 1
         > b refused NotFound: no exchange 't' in vhost '/'
         b temporary topic h u until=unused
         > b created u
         b bind u q -
         > b ok
         b let-go h
         > b ok
         b hold topic u s
         > b ok
         b unbind u q -
         > b ok
         b publish u x 2
         b bind u q -
         > b ok
         b let-go s
         > b ok
         b publish u x 3
         b unbind u q -
         > b ok
         b publish u x 4
         > b refused NotFound: no exchange 'u' in vhost '/'
         b passive q
         > b queue q 1 0",
    );
}

#[test]
fn holders_are_named_once_in_a_channel_and_hold_what_is_there() {
    check(
        "a temporary queue h t
         > a created t
         a temporary topic h u
         > a refused NotAllowed: holder 'h' exists in this channel
         a hold queue t h
         > a refused NotAllowed: holder 'h' exists in this channel
         a2 hold queue t h
         > a2 ok
         a2 hold queue nothing i
         > a2 refused NotFound: no queue 'nothing' in vhost '/'
         a2 hold exchange nothing i
         > a2 refused NotFound: no exchange 'nothing' in vhost '/'
         a2 hold exchange amq.topic i
         > a2 ok
         a2 let-go nobody
         > a2 ok
         a temporary queue i t
         > a refused PreconditionFailed: there is a queue 't' already
         a temporary topic i amq.topic
         > a refused PreconditionFailed: there is an exchange 'amq.topic' already",
    );
}

#[test]
fn names_are_made_up_and_rights_hold() {
    let mut host = super::TestHost::new();
    for line in ["a user ann hash", "a permit ann ^amq.gen-.* .* .*", "login c ann"] {
        host.run(line);
    }
    let mut made: Vec<String> = Vec::new();
    for kind in ["queue", "topic", "queue"] {
        made.extend(host.run(&format!("c temporary {kind} h{}", made.len())));
    }
    assert!(made.iter().all(|line| line.starts_with("c created amq.gen-")), "{made:?}");
    made.dedup();
    assert_eq!(made.len(), 3);
    check_in(
        host,
        "c temporary queue k t
         > c refused AccessRefused: configure access to queue 't' in vhost '/' refused for user 'ann'
         c temporary topic k t
         > c refused AccessRefused: configure access to exchange 't' in vhost '/' refused for user 'ann'",
    );
}

//! Requests about sessions in scenarios.

use super::host::Words;
use super::options::queue_options;
use crate::*;
use std::time::Duration;

/// Whether a verb is one of them.
pub(super) fn is_one(verb: &str) -> bool {
    let verbs = [
        "claim", "detach", "end", "change", "will", "no-will", "forget", "let-out", "let-in",
        "join", "leave",
    ];
    verbs.contains(&verb)
}

/// `claim NAME`, `detach NAME`, `end NAME`, `change NAME put=KEY:VALUE remove=KEY`, `will KEY BODY`,
/// `no-will`, `forget NUMBER`, `let-out TAG`, `let-in PLACE`, `join GROUP KEY`, `leave GROUP`.
/// `expiry=MILLIS`; `expiry=-` is never. `claim` with `queue` and what queues are declared with.
pub(super) fn request(words: &Words<'_>) -> Request {
    let name = words.0.get(1).copied().unwrap_or_default().to_owned();
    let expiry = match words.value("expiry") {
        Some("-") => Some(SessionExpiry::Never),
        _ => words.millis("expiry").map(SessionExpiry::After),
    };
    match words.0[0] {
        "claim" => Request::ClaimSession(ClaimSession {
            name: if name == "''" { String::new() } else { name },
            fresh: words.has("fresh"),
            expiry: expiry.unwrap_or_default(),
            recorded: words.has("recorded"),
            state: words.value("state").map(|state| state.to_owned().into()),
            queue: words.has("queue").then(|| Box::new(queue_options(words))),
        }),
        "detach" => Request::DetachSession { name, expiry },
        "end" => Request::EndSession { name },
        "change" => {
            let pair =
                |(key, value): (&str, &str)| (key.to_owned().into(), value.to_owned().into());
            let put = words.value("put").into_iter().flat_map(|it| it.split(','));
            let remove = words.value("remove").into_iter().flat_map(|it| it.split(','));
            Request::ChangeSession(Box::new(ChangeSession {
                name,
                expiry,
                put: put.map(|it| pair(it.split_once(':').unwrap())).collect(),
                remove: remove.map(|it| it.to_owned().into()).collect(),
                waits_for_flush: words.value("flushed").map(|value| value == "on"),
            }))
        }
        "will" => Request::SetWill(Box::new(Will {
            exchange: match words.value("exchange") {
                Some("-") => String::new(),
                exchange => exchange.unwrap_or("amq.topic").to_owned(),
            },
            routing_key: name,
            format: Format(1),
            properties: Bytes::new(),
            body: words.0[2].to_owned().into(),
            persistent: words.has("persistent"),
            priority: 0,
            retain: words.has("retain"),
            ttl: words.millis("ttl"),
            delay: words.millis("delay").unwrap_or(Duration::ZERO),
        })),
        "no-will" => Request::ClearWill,
        "forget" => Request::ForgetPublished { number: name.parse().unwrap() },
        "join" => Request::JoinShared(Box::new(JoinShared {
            group: name,
            source: "amq.topic".to_owned(),
            key: words.0[2].to_owned(),
            queue: Box::default(),
        })),
        "leave" => Request::LeaveShared { group: name },
        "let-out" => Request::ReleaseDelivery { tag: name.parse().unwrap() },
        _ => Request::ForgetReleased { place: name.parse().unwrap() },
    }
}

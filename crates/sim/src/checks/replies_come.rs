//! A reply goes to its requester, once, as it was sent and in order; and it arrives as long as the
//! requester is there.
//!
//! The requester is there if a request it sent after the reply was confirmed (or returned) is
//! answered.

use crate::history::{Event, History, MessageId};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct Inbox {
    /// Confirmed and not received.
    due: BTreeSet<MessageId>,
    /// What was due, and returned, at its last request.
    asked: Option<(BTreeSet<MessageId>, Option<MessageId>)>,
    given_back: Option<MessageId>,
    /// The last reply of each producer.
    newest: BTreeMap<u32, MessageId>,
}

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut inboxes: BTreeMap<u32, Inbox> = BTreeMap::new();
    let mut replies = BTreeMap::new();
    let mut came = BTreeSet::new();
    for (_, event) in &history.events {
        match event {
            Event::Inbox { consumer } => {
                inboxes.insert(*consumer, Inbox::default());
            }
            Event::Reply { message, requester } => {
                replies.insert(*message, *requester);
            }
            Event::Confirm { message, accepted: true } if !came.contains(message) => {
                let inbox = replies.get(message).and_then(|requester| inboxes.get_mut(requester));
                if let Some(inbox) = inbox.filter(|inbox| inbox.given_back != Some(*message)) {
                    inbox.due.insert(*message);
                }
            }
            Event::Return { message } => {
                let inbox = replies.get(message).and_then(|requester| inboxes.get_mut(requester));
                if let Some(inbox) = inbox {
                    inbox.given_back = Some(*message);
                }
            }
            Event::Replied { consumer, message } => {
                let Some(message) = *message else {
                    return Err(format!("{consumer} got a reply that nobody sent"));
                };
                let requester = replies.get(&message);
                if requester != Some(consumer) {
                    return Err(format!("{consumer} got {message:?}, a reply to {requester:?}"));
                }
                if !came.insert(message) {
                    return Err(format!("reply {message:?} came twice"));
                }
                let inbox = inboxes.entry(*consumer).or_default();
                take(inbox, message)?;
            }
            Event::Asking { consumer } => {
                if let Some(inbox) = inboxes.get_mut(consumer) {
                    inbox.asked = Some((inbox.due.clone(), inbox.given_back));
                }
            }
            Event::Synced { consumer } => {
                let Some(inbox) = inboxes.get_mut(consumer) else { continue };
                let Some((due, given_back)) = inbox.asked.take() else { continue };
                if let Some(missing) = due.intersection(&inbox.due).next() {
                    return Err(format!("reply {missing:?} was confirmed and did not come"));
                }
                if let Some(message) = given_back {
                    return Err(format!(
                        "reply {message:?} was given back though {consumer} was there"
                    ));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn take(inbox: &mut Inbox, message: MessageId) -> Result<(), String> {
    inbox.due.remove(&message);
    if inbox.given_back == Some(message) {
        return Err(format!("reply {message:?} was given back, and came"));
    }
    match inbox.newest.insert(message.producer(), message).filter(|before| *before > message) {
        Some(before) => Err(format!("reply {before:?} came before {message:?}")),
        None => Ok(()),
    }
}

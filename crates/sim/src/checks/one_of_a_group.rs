//! Of all members of a queue group exactly one hears a message, whatever patterns they listen to; none
//! where it was handed to one whose connection was lost.

use crate::checks::subscriptions::{Ear, Hearing, Said};
use crate::history::{History, MessageId};
use std::collections::BTreeMap;

pub(super) fn check(history: &History) -> Result<(), String> {
    let hearing = Hearing::of(history);
    let mut groups: BTreeMap<&str, Vec<&Ear<'_>>> = BTreeMap::new();
    for ear in hearing.ears.values() {
        if let Some(group) = ear.group() {
            groups.entry(group).or_default().push(ear);
        }
    }
    for (group, members) in &groups {
        let mut heard: BTreeMap<MessageId, u32> = BTreeMap::new();
        for (_, hear) in members.iter().flat_map(|ear| &ear.heard) {
            let Some(message) = hear.message else { continue };
            if let Some(other) =
                heard.insert(message, hear.listener).filter(|other| *other != hear.listener)
            {
                let both = format!("{other} and {}", hear.listener);
                return Err(format!("{both}, of group '{group}', heard {message:?}"));
            }
        }
        // One that is behind is passed over without a word.
        if history.plan.can_lag() {
            continue;
        }
        for (message, said) in &hearing.said {
            if said.processed.is_some()
                && !heard.contains_key(message)
                && must_hear(&hearing, members, said)
            {
                return Err(format!("nobody of group '{group}' heard {message:?}"));
            }
        }
    }
    Ok(())
}

/// Whether one of a group must hear a message: a member is there, and no other may have lost it.
pub(super) fn must_hear(hearing: &Hearing<'_>, members: &[&Ear<'_>], said: &Said<'_>) -> bool {
    let is_lost = |ear: &&&Ear<'_>| hearing.may_hear(ear, said) && hearing.may_lose(ear);
    members.iter().any(|ear| hearing.surely_hears(ear, said))
        && !members.iter().any(|ear| is_lost(&ear))
}

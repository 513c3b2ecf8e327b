//! A listener hears the messages of one publisher in the order in which they were published. The
//! exception: what is handed on to another shard, because the members of a group on the shard that it
//! went to have left or are behind, may come after later ones.

use crate::checks::subscriptions::{Ear, Hearing};
use crate::history::{Event, History, MessageId};
use std::collections::BTreeMap;

pub(super) fn check(history: &History) -> Result<(), String> {
    let hearing = Hearing::of(history);
    let mut newest: BTreeMap<(u32, u32), MessageId> = BTreeMap::new();
    for (_, event) in &history.events {
        let Event::Hear(hear) = event else { continue };
        let Some(message) = hear.message else { continue };
        let who = hear.listener;
        let before = newest.entry((who, message.producer())).or_insert(message);
        if *before > message && !may_be_late(history, &hearing, who) {
            return Err(format!("listener {who} heard {before:?} before {message:?}"));
        }
        *before = message.max(*before);
    }
    Ok(())
}

/// Whether what the listener hears may have been meant for another member of its group.
fn may_be_late(history: &History, hearing: &Hearing<'_>, listener: u32) -> bool {
    let group = |ear: &Ear<'_>| ear.group().map(str::to_owned);
    let Some(own) = hearing.ears.get(&listener).and_then(group) else { return false };
    let is_other = |ear: &&Ear<'_>| {
        ear.listen.listener != listener && ear.group().is_some_and(|group| *group == own)
    };
    let mut others = hearing.ears.values().filter(is_other);
    let passes_on =
        |ear: &Ear<'_>| history.plan.can_lag() || !ear.ends.is_empty() || !hearing.stays(ear);
    history.plan.shards.count > 1 && others.any(passes_on)
}

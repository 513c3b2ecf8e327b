//! A listener hears the messages of one publisher in the order in which they were published.

use crate::history::{Event, History, MessageId};
use std::collections::BTreeMap;

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut newest: BTreeMap<(u32, u32), MessageId> = BTreeMap::new();
    for (_, event) in &history.events {
        let Event::Hear(hear) = event else { continue };
        let Some(message) = hear.message else { continue };
        let before = newest.insert((hear.listener, message.producer()), message);
        if let Some(before) = before.filter(|before| *before > message) {
            let who = hear.listener;
            return Err(format!("listener {who} heard {before:?} before {message:?}"));
        }
    }
    Ok(())
}

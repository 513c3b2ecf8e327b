//! No listener hears a direct message twice.

use crate::history::{Event, History};
use std::collections::BTreeSet;

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut heard = BTreeSet::new();
    for (_, event) in &history.events {
        if let Event::Hear(hear) = event
            && let Some(message) = hear.message
            && !heard.insert((hear.listener, message))
        {
            return Err(format!("listener {} heard {message:?} twice", hear.listener));
        }
    }
    Ok(())
}

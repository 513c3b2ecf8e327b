//! No subscriber receives a direct message twice.

use crate::history::{Event, History};
use std::collections::BTreeSet;

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut received = BTreeSet::new();
    for (_, event) in &history.events {
        if let Event::Receive(direct) = event
            && let Some(message) = direct.message
            && !received.insert((direct.subscription, message))
        {
            return Err(format!("subscription {} received {message:?} twice", direct.subscription));
        }
    }
    Ok(())
}

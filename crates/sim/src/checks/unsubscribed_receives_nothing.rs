//! A listener hears nothing once the broker is known to know that it wants no more.

use crate::checks::subscriptions::Hearing;
use crate::history::History;

pub(super) fn check(history: &History) -> Result<(), String> {
    let hearing = Hearing::of(history);
    for (listener, ear) in &hearing.ears {
        let known = ear.ends.iter().filter(|end| end.after.is_none()).filter_map(|end| end.known);
        let Some(known) = known.min() else { continue };
        if let Some((_, hear)) = ear.heard.iter().find(|(at, _)| *at > known) {
            let message = hear.message;
            return Err(format!("listener {listener} had ended and heard {message:?}"));
        }
    }
    Ok(())
}

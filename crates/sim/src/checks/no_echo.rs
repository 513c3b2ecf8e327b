//! Who does not want its own messages does not hear them.

use crate::checks::subscriptions::Hearing;
use crate::history::History;

pub(super) fn check(history: &History) -> Result<(), String> {
    let hearing = Hearing::of(history);
    for (listener, ear) in &hearing.ears {
        for message in ear.heard.iter().filter_map(|(_, hear)| hear.message) {
            let emit = hearing.said.get(&message).map(|said| said.emit);
            let is_own = |connection| connection == ear.listen.connection;
            if emit.is_some_and(|emit| !emit.echo && is_own(emit.connection)) {
                return Err(format!("listener {listener} heard its own {message:?}"));
            }
        }
    }
    Ok(())
}

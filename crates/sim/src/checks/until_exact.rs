//! A listener that is to end after so many messages hears no more than that, but for those that were on
//! their way when the broker got to know. (That it hears no fewer is part of hearing everything.)

use crate::checks::subscriptions::Hearing;
use crate::history::History;

pub(super) fn check(history: &History) -> Result<(), String> {
    let hearing = Hearing::of(history);
    for (listener, ear) in &hearing.ears {
        for end in &ear.ends {
            let (Some(after), Some(known)) = (end.after, end.known) else { continue };
            let on_their_way = ear.heard.iter().filter(|(at, _)| *at < known).count() as u64;
            let most = after.max(on_their_way);
            let heard = ear.heard.len() as u64;
            if heard > most {
                return Err(format!(
                    "listener {listener} wanted {most} messages and heard {heard}"
                ));
            }
        }
    }
    Ok(())
}

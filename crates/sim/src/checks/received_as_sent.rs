//! Whatever a listener hears was published to a subject that it listens to, and comes as it was sent: its
//! subject, reply subject, headers and body; and it was not rolled back.

use crate::checks::subscriptions::{Ear, Hearing, takes};
use crate::history::{HeadersSeen, Hear, History};

pub(super) fn check(history: &History) -> Result<(), String> {
    let hearing = Hearing::of(history);
    for ear in hearing.ears.values() {
        for (at, hear) in &ear.heard {
            judge(&hearing, ear, *at, hear)?;
        }
    }
    Ok(())
}

fn judge(hearing: &Hearing<'_>, ear: &Ear<'_>, at: usize, hear: &Hear) -> Result<(), String> {
    let who = hear.listener;
    let Some(message) = hear.message else {
        return Err(format!("listener {who} heard a body that nobody published"));
    };
    let said = hearing.said.get(&message).filter(|said| said.at < at);
    let Some(emit) = said.map(|said| said.emit) else {
        return Err(format!("listener {who} heard {message:?} that nobody published"));
    };
    let wrong = |what: &str| Err(format!("listener {who} heard {message:?} with {what}"));
    if hear.subject != emit.subject {
        return wrong("another subject");
    }
    if !takes(&ear.listen.pattern, &hear.subject) {
        return wrong("a subject that it does not listen to");
    }
    if hear.reply != emit.reply {
        return wrong("another reply subject");
    }
    let has_headers = emit.has_headers && ear.listen.takes_headers;
    let headers = if has_headers { HeadersSeen::Own } else { HeadersSeen::None };
    if hear.headers != headers {
        return wrong("other headers");
    }
    if hearing.undone.contains(&message) {
        return wrong("no commit of its transaction");
    }
    Ok(())
}

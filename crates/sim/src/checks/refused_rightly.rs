//! Clients are only refused where the plan lets them collide or the disk failed, and never for
//! breaking the protocol.

use crate::history::{Event, History};

/// The node shuts down, or an operator closes the connection (spec 1.8, connection-forced).
const CONNECTION_FORCED: u16 = 320;

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut has_failed = false;
    for (_, event) in &history.events {
        match event {
            Event::Fault(_) => has_failed = true,
            Event::ErrorReported { text, .. } => {
                return Err(format!("a client got an error: {text}"));
            }
            Event::Refused { code: CONNECTION_FORCED, .. } => {}
            Event::Refused { code, text } => {
                // 4xx are soft errors: the request cannot be met. 5xx are errors of client or
                // broker.
                let is_soft = (400..500).contains(code) || (*code == 506 && has_failed);
                if !is_soft || !(history.plan.may_refuse || has_failed) {
                    return Err(format!("a client was refused: {code} {text}"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

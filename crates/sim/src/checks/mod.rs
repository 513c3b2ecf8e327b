//! The promises that a history is checked for, a function each.

mod browses;
mod conduct;
mod confirmed_is_kept;
mod deliveries;
mod leases_kept;
mod limits_kept;
mod mqtt;
mod one_of_a_group;
mod received;
mod received_completely;
mod replies_come;
mod requests_answered;
mod returns;
mod sessions_kept;
mod settled_is_gone;
mod subscriptions;
mod transactions_atomic;

#[cfg(test)]
mod tests;

use crate::history::History;

/// A promise: its name, and whether a history keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Its name in reports.
    pub name: &'static str,
    /// Returns what was broken.
    pub check: fn(&History) -> Result<(), String>,
}

/// All promises.
pub const ALL: &[Check] = &[
    Check { name: "confirmed is kept", check: confirmed_is_kept::check },
    Check { name: "nothing invented", check: deliveries::nothing_invented },
    Check { name: "order kept", check: deliveries::order_kept },
    Check { name: "no unmarked duplicate", check: deliveries::no_unmarked_duplicate },
    Check { name: "settled is gone", check: settled_is_gone::check },
    Check { name: "credit respected", check: deliveries::credit_respected },
    Check { name: "returns counted", check: returns::counted_rightly },
    Check { name: "returns in place", check: returns::in_place },
    Check { name: "drains complete", check: returns::drained_completely },
    Check { name: "browses complete", check: browses::shown_rightly },
    Check { name: "browses take nothing", check: browses::untouched },
    Check { name: "transactions atomic", check: transactions_atomic::check },
    Check { name: "limits kept", check: limits_kept::check },
    Check { name: "replies come", check: replies_come::check },
    Check { name: "leases kept", check: leases_kept::check },
    Check { name: "received at most once", check: received::at_most_once },
    Check { name: "received as sent", check: received::as_sent },
    Check { name: "received in order", check: received::in_order },
    Check { name: "received completely", check: received_completely::check },
    Check { name: "one of a group", check: one_of_a_group::check },
    Check { name: "requests answered", check: requests_answered::check },
    Check { name: "unsubscribed receives nothing", check: received::nothing_after_unsubscribe },
    Check { name: "until exact", check: received::until_exact },
    Check { name: "no echo", check: received::no_echo },
    Check { name: "only slow consumers are closed", check: conduct::only_slow_consumers_closed },
    Check { name: "spill kept", check: conduct::spill_kept },
    Check { name: "sessions kept", check: sessions_kept::check },
    Check { name: "sessions receive once", check: mqtt::once },
    Check { name: "sessions receive in order", check: mqtt::in_order },
    Check { name: "sessions receive completely", check: mqtt::completely },
    Check { name: "retained is newest", check: mqtt::retained },
    Check { name: "memory bounded", check: conduct::memory_bounded },
    Check { name: "refused rightly", check: conduct::refused_rightly },
];

/// Checks every promise; the error names the first that was broken.
pub fn all(history: &History) -> Result<(), String> {
    for promise in ALL {
        (promise.check)(history).map_err(|what| format!("{}: {what}", promise.name))?;
    }
    Ok(())
}

//! The promises that a history is checked for, one file each.

mod confirmed_is_kept;
mod credit_respected;
mod leases_kept;
mod limits_kept;
mod memory_bounded;
mod no_echo;
mod no_unmarked_duplicate;
mod nothing_invented;
mod one_of_a_group;
mod only_slow_consumers_closed;
mod order_kept;
mod received_as_sent;
mod received_at_most_once;
mod received_completely;
mod received_in_order;
mod refused_rightly;
mod replies_come;
mod requests_answered;
mod sessions_kept;
mod settled_is_gone;
mod spill_kept;
mod subscriptions;
mod transactions_atomic;
mod unsubscribed_receives_nothing;
mod until_exact;

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
    Check { name: "nothing invented", check: nothing_invented::check },
    Check { name: "order kept", check: order_kept::check },
    Check { name: "no unmarked duplicate", check: no_unmarked_duplicate::check },
    Check { name: "settled is gone", check: settled_is_gone::check },
    Check { name: "credit respected", check: credit_respected::check },
    Check { name: "transactions atomic", check: transactions_atomic::check },
    Check { name: "limits kept", check: limits_kept::check },
    Check { name: "replies come", check: replies_come::check },
    Check { name: "leases kept", check: leases_kept::check },
    Check { name: "received at most once", check: received_at_most_once::check },
    Check { name: "received as sent", check: received_as_sent::check },
    Check { name: "received in order", check: received_in_order::check },
    Check { name: "received completely", check: received_completely::check },
    Check { name: "one of a group", check: one_of_a_group::check },
    Check { name: "requests answered", check: requests_answered::check },
    Check { name: "unsubscribed receives nothing", check: unsubscribed_receives_nothing::check },
    Check { name: "until exact", check: until_exact::check },
    Check { name: "no echo", check: no_echo::check },
    Check { name: "only slow consumers are closed", check: only_slow_consumers_closed::check },
    Check { name: "spill kept", check: spill_kept::check },
    Check { name: "sessions kept", check: sessions_kept::check },
    Check { name: "memory bounded", check: memory_bounded::check },
    Check { name: "refused rightly", check: refused_rightly::check },
];

/// Checks every promise; the error names the first that was broken.
pub fn all(history: &History) -> Result<(), String> {
    for promise in ALL {
        (promise.check)(history).map_err(|what| format!("{}: {what}", promise.name))?;
    }
    Ok(())
}

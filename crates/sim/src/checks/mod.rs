//! The promises, one file each: a function from a history to `Ok`, or to what was broken.

mod confirmed_is_kept;
mod credit_respected;
mod leases_kept;
mod limits_kept;
mod memory_bounded;
mod no_unmarked_duplicate;
mod nothing_invented;
mod order_kept;
mod refused_rightly;
mod replies_come;
mod settled_is_gone;
mod transactions_atomic;

#[cfg(test)]
mod tests;

use crate::history::History;

/// A promise: its name, and whether a history keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// Says what was broken.
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

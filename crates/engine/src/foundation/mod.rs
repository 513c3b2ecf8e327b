//! Data structures with bounded steps, timers, random numbers and the work budget: what the rules
//! are built on.

pub(crate) mod deferred_drop;
pub(crate) mod random;
pub(crate) mod shared_body;
pub(crate) mod slab;
pub(crate) mod table;
pub(crate) mod timers;
pub(crate) mod work_budget;

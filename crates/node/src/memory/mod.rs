//! Memory that peers hold: counted, and bounded by making those wait, or refusing them, that hold most.

pub(crate) mod account;
pub(crate) mod reckoning;
pub(crate) mod shortage;
pub(crate) mod stalled;

//! How fast clients may send, and what becomes of those that receive too slowly.

pub(crate) mod publisher_stall;
pub(crate) mod quota;
pub(crate) mod rate;
pub(crate) mod slow_consumer_events;
pub(crate) mod slow_consumers;
pub(crate) mod throttle;

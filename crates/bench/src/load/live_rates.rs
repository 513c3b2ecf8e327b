//! The rates of the running load, for progress displays.

use std::sync::atomic::{AtomicU64, Ordering};

/// Messages per second; one load runs at a time.
static PUBLISHED: AtomicU64 = AtomicU64::new(0);
static DELIVERED: AtomicU64 = AtomicU64::new(0);

/// Sets the rates of the last second.
pub(super) fn set(published: f64, delivered: f64) {
    PUBLISHED.store(published as u64, Ordering::Relaxed);
    DELIVERED.store(delivered as u64, Ordering::Relaxed);
}

/// Messages published and delivered in the last measured second.
pub(crate) fn current() -> (u64, u64) {
    (PUBLISHED.load(Ordering::Relaxed), DELIVERED.load(Ordering::Relaxed))
}

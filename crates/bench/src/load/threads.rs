//! Joining the threads of a run, and sleeping until its end.

use super::sampler::SAMPLE;
use crate::client::Error;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Joins a thread; its panic continues in the calling thread.
pub(super) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Joins all threads, then returns the first error, which is the one that ended the others.
pub(super) fn join<T>(
    handles: Vec<ScopedJoinHandle<'_, Result<T, Error>>>,
) -> Result<Vec<T>, Error> {
    let results: Vec<_> = handles.into_iter().map(joined).collect();
    results.into_iter().collect()
}

/// Sleeps for `span`, or until the run is over.
pub(super) fn rest(span: Duration, over: &impl Fn() -> bool) {
    let end = Instant::now() + span;
    while !over() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(SAMPLE));
    }
}

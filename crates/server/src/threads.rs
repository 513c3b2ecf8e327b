//! Starts threads.

use crate::allocator;
use std::thread::{Builder, JoinHandle};

/// Starts a thread of that name; the error is in words.
pub(crate) fn spawn(
    name: impl Into<String>,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, String> {
    // A thread that begins needs some before it could use the allocator's reserve.
    if allocator::is_exhausted() {
        return Err("cannot start a thread: the system refuses memory".to_owned());
    }
    let run = move || {
        allocator::prepare_thread();
        run();
    };
    let thread = Builder::new().name(name.into()).spawn(run);
    thread.map_err(|error| format!("cannot start a thread: {error}"))
}

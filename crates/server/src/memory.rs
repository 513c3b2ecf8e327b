//! Gives freed memory back to the operating system, on a thread of its own (decision 0015). Knows nothing of
//! what it was used for.

use std::time::Duration;

/// The allocator gives memory back a second after it was freed, on the thread that next comes by: on this
/// one, as long as it comes by more often.
const INTERVAL: Duration = Duration::from_millis(750);

/// Starts the thread, which ends with the process.
pub(crate) fn start() -> Result<(), String> {
    let run = || {
        loop {
            std::thread::sleep(INTERVAL);
            give_back();
        }
    };
    std::thread::Builder::new()
        .name("memory".into())
        .spawn(run)
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    Ok(())
}

/// Has the allocator give back what all threads have freed. Their own lists, of which it takes nothing, are
/// theirs alone.
#[expect(unsafe_code, reason = "the allocator's interface is one of C")]
fn give_back() {
    // SAFETY: it takes no pointer, may be called on any thread at any time, and does nothing where another
    // allocator is in use.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

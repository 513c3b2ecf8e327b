//! Gives freed memory back to the operating system, on a thread of its own (decision 0015). Knows nothing of
//! what it was used for.

use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The allocator gives memory back a second after it was freed, on the thread that next comes by: on this
/// one, as long as it comes by more often.
const INTERVAL: Duration = Duration::from_millis(750);

/// Takes what is so large that it is given back as soon as it is freed (decision 0017).
static LARGE: OnceLock<Sender<Box<dyn Send>>> = OnceLock::new();

/// Starts the thread, which ends with the process.
pub(crate) fn start() -> Result<(), String> {
    let (sender, receiver) = channel::<Box<dyn Send>>();
    let run = move || {
        let mut next = Instant::now() + INTERVAL;
        loop {
            match receiver.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(large) => drop(large),
                Err(RecvTimeoutError::Timeout) => {
                    give_back();
                    next = Instant::now() + INTERVAL;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    };
    std::thread::Builder::new()
        .name("memory".into())
        .spawn(run)
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    let _ = LARGE.set(sender);
    angarium_engine::free_large_with(free);
    Ok(())
}

/// Frees something on that thread. Where it cannot be sent there, it is dropped here.
fn free(large: Box<dyn Send>) {
    if let Some(sender) = LARGE.get() {
        let _ = sender.send(large);
    }
}

/// Has the allocator give back what all threads have freed. Their own lists, of which it takes nothing, are
/// theirs alone.
#[expect(unsafe_code, reason = "the allocator's interface is one of C")]
fn give_back() {
    // SAFETY: it takes no pointer, may be called on any thread at any time, and does nothing where another
    // allocator is in use.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

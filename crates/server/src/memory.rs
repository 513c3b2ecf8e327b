//! A thread that drops large values and gives freed memory back to the operating system (decision 0015).

use crate::threads;
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// The allocator gives memory back a second after it was freed, on the thread that next asks it: on this
/// one, as long as it asks more often.
const INTERVAL: Duration = Duration::from_millis(750);

/// Values that may wait to be dropped: a shard that brings more drops them itself.
const WAITING_MAX: usize = 64;

/// Takes what is to be dropped there, such as large bodies (decision 0017).
static WAITING: OnceLock<SyncSender<Box<dyn Send>>> = OnceLock::new();

/// Starts the thread, which ends with the process.
pub(crate) fn start() -> Result<(), String> {
    let (sender, receiver) = sync_channel::<Box<dyn Send>>(WAITING_MAX);
    let run = move || {
        let mut next = Instant::now() + INTERVAL;
        loop {
            let left = next.saturating_duration_since(Instant::now());
            match receiver.recv_timeout(left) {
                Ok(what) => drop(what),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // Also where there is always something to drop.
            if left.is_zero() {
                give_back();
                next = Instant::now() + INTERVAL;
            }
        }
    };
    threads::spawn("memory", run)?;
    let _ = WAITING.set(sender);
    angarium_engine::drop_elsewhere_with(take);
    Ok(())
}

/// Drops something on that thread. Where it cannot be sent there, it is dropped here.
fn take(what: Box<dyn Send>) {
    if let Some(sender) = WAITING.get() {
        let _ = sender.try_send(what);
    }
}

/// Has the allocator give back what all threads have freed, except what is on the threads' own lists.
#[expect(unsafe_code, reason = "the allocator's interface is one of C")]
fn give_back() {
    // SAFETY: it takes no pointer, may be called on any thread at any time, and does nothing where another
    // allocator is in use.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

//! A thread that drops large values, gives freed memory back to the operating system (decision 0015), and
//! says when the system refuses memory and when there is some again.

use crate::{allocator, threads};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// The allocator gives memory back a second after it was freed, on the thread that next asks it: on this
/// one, as long as it asks more often.
const INTERVAL: Duration = Duration::from_millis(750);

/// How long memory is exhausted at least, so that clients that hold much are refused meanwhile.
const EXHAUSTED: Duration = Duration::from_secs(2);

/// Values that may wait to be dropped: a shard that brings more drops them itself.
const WAITING_MAX: usize = 64;

/// Takes what is to be dropped there, such as large bodies (decision 0017).
static WAITING: OnceLock<SyncSender<Box<dyn Send>>> = OnceLock::new();

/// Starts the thread, which ends with the process.
pub(crate) fn start() -> Result<(), String> {
    if !allocator::make_reserves() {
        return Err("there is too little memory for a broker: raise the limit of the process (ulimit -v and \
             -d; LimitAS=, LimitDATA= of the service)"
            .to_owned());
    }
    let (sender, receiver) = sync_channel::<Box<dyn Send>>(WAITING_MAX);
    let run = move || {
        let (mut next, mut exhausted) = (Instant::now() + INTERVAL, None);
        loop {
            let left = next.saturating_duration_since(Instant::now());
            match receiver.recv_timeout(left) {
                Ok(what) => drop(what),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // Also where there is always something to drop.
            if left.is_zero() {
                allocator::give_back();
                watch(&mut exhausted);
                next = Instant::now() + INTERVAL;
            }
        }
    };
    threads::spawn("memory", run)?;
    let _ = WAITING.set(sender);
    angarium_engine::drop_elsewhere_with(take);
    Ok(())
}

/// Says that memory is exhausted, and ends it when there is memory again. `since`: when it began.
fn watch(since: &mut Option<Instant>) {
    match since {
        None if allocator::is_exhausted() => {
            *since = Some(Instant::now());
            tracing::error!(
                "the system refuses memory: messages for queues, connections and whatever holds memory are \
                 refused until there is some again; raise the limit of the process (ulimit -v and -d; \
                 LimitAS=, LimitDATA= of the service) or lower memory-max and resident-bytes-max; \
                 `angarium connection list` and `angarium queue list` show who has much"
            );
        }
        Some(began) if began.elapsed() >= EXHAUSTED && allocator::has_recovered() => {
            *since = None;
            tracing::warn!("there is memory again: messages and connections are taken");
        }
        _ => {}
    }
}

/// Drops something on that thread. Where it cannot be sent there, it is dropped here.
fn take(what: Box<dyn Send>) {
    if let Some(sender) = WAITING.get() {
        let _ = sender.try_send(what);
    }
}

//! SIGINT and SIGTERM: complete runs are kept, the current one is broken off.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A signal within this span of the first counts as the same request: `timeout` and terminals signal both the
/// process and its group.
const SAME_WISH: Duration = Duration::from_secs(1);

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Handles SIGINT and SIGTERM from now on. The second request exits immediately; the process reaper then ends
/// the brokers that were started.
pub fn install() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut first: Option<Instant> = None;
        for _ in signals.forever() {
            REQUESTED.store(true, Ordering::Relaxed);
            match first {
                None => first = Some(Instant::now()),
                Some(first) if first.elapsed() < SAME_WISH => {}
                Some(_) => std::process::exit(130),
            }
        }
    })?;
    Ok(())
}

/// Whether a signal has asked the benchmark to end.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

//! Whether somebody wants the benchmark to end: what is done is kept, and what runs is broken off.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A signal so soon after another is the same wish: `timeout` and terminals send to the whole group
/// and to the process.
const SAME_WISH: Duration = Duration::from_secs(1);

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Takes SIGINT and SIGTERM as a wish to end. The second wish ends this process at once; the reaper
/// then ends the brokers that were started.
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

/// Whether the wish has come.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

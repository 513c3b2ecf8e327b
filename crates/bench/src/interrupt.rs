//! Whether somebody wants the benchmark to end: what is done is kept, what runs is broken off, and
//! no broker that was started here is left behind.

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A signal so soon after another is the same wish: `timeout` and terminals send to the whole group
/// and to the process.
const SAME_WISH: Duration = Duration::from_secs(1);

static REQUESTED: AtomicBool = AtomicBool::new(false);
/// Processes that were started here and must not outlive us.
static STARTED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Takes SIGINT and SIGTERM as a wish to end. The second wish ends the started processes and this
/// one at once.
pub fn install() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut first: Option<Instant> = None;
        for _ in signals.forever() {
            REQUESTED.store(true, Ordering::Relaxed);
            match first {
                None => first = Some(Instant::now()),
                Some(first) if first.elapsed() < SAME_WISH => {}
                Some(_) => leave(),
            }
        }
    })?;
    Ok(())
}

fn leave() -> ! {
    for pid in STARTED.lock().map(|started| started.clone()).unwrap_or_default() {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // One that has ended already is what is wanted.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    std::process::exit(130)
}

/// Whether the wish has come.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// A process was started that must not outlive us.
pub(crate) fn started(pid: u32) {
    if let Ok(mut started) = STARTED.lock() {
        started.push(pid);
    }
}

/// It has ended.
pub(crate) fn ended(pid: u32) {
    if let Ok(mut started) = STARTED.lock() {
        started.retain(|it| *it != pid);
    }
}

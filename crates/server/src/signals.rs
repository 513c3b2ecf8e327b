//! What the operating system asks of the process: stop in order, stop immediately, read settings again.

use crate::threads;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Makes a write beyond the limit of a file's size (`ulimit -f`) an error of that write and not the end of
/// the process.
pub fn survive_file_limits() -> Result<(), String> {
    let ignored = Arc::new(AtomicBool::new(false));
    let registered = signal_hook::flag::register(SIGXFSZ, ignored);
    registered.map(drop).map_err(|error| format!("cannot ignore SIGXFSZ: {error}"))
}

/// Calls `stop` for the first SIGTERM, SIGINT or, as nats-server's operators send it, SIGUSR2, and `reload`
/// for each SIGHUP, on a thread of its own. A second signal to stop ends the process immediately; what was
/// confirmed is on the disk in any case.
pub fn listen(
    stop: impl FnOnce() + Send + 'static,
    mut reload: impl FnMut() + Send + 'static,
) -> Result<(), String> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGUSR2, SIGHUP])
        .map_err(|error| format!("cannot listen for signals: {error}"))?;
    let run = move || {
        let mut stop = Some(stop);
        for signal in signals.forever() {
            match signal {
                SIGHUP => reload(),
                _ => match stop.take() {
                    Some(stop) => stop(),
                    None => std::process::exit(128 + signal),
                },
            }
        }
    };
    threads::spawn("signals", run).map(drop)
}

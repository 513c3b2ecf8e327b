//! What the operating system asks of the process: stop in order, stop at once, read settings anew.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
use signal_hook::iterator::Signals;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// SIGTERM, SIGINT or, as nats-server's operators send it, SIGUSR2; the first of them.
    Stop,
    /// SIGHUP.
    Reload,
}

/// Calls `react` on a thread of its own for each signal. A second wish to stop ends the process at
/// once; what was confirmed is on the disk in any case.
pub fn listen(mut react: impl FnMut(Asked) + Send + 'static) -> Result<(), String> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGUSR2, SIGHUP])
        .map_err(|error| format!("cannot listen for signals: {error}"))?;
    let run = move || {
        let mut is_stopping = false;
        for signal in signals.forever() {
            match signal {
                SIGHUP => react(Asked::Reload),
                _ if is_stopping => std::process::exit(128 + signal),
                _ => {
                    is_stopping = true;
                    react(Asked::Stop);
                }
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(run)
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    Ok(())
}

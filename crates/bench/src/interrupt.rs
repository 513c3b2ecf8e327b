//! Whether somebody wants the benchmark to end: what is done is kept, what runs is broken off.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static REQUESTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Takes SIGINT and SIGTERM as a wish to end; the second of them ends the process at once.
pub fn install() -> io::Result<()> {
    let requested = Arc::clone(REQUESTED.get_or_init(Arc::default));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&requested))?;
        flag::register(signal, Arc::clone(&requested))?;
    }
    Ok(())
}

/// Whether the wish has come.
pub fn requested() -> bool {
    REQUESTED.get().is_some_and(|requested| requested.load(Ordering::Relaxed))
}

//! What is said to the standard output. Whoever reads it may have read enough, as `head` does.

use std::io::{self, ErrorKind, Write};

/// Writes it as it is.
pub(crate) fn put(text: &str) {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => eprintln!("bench: {error}"),
        _ => {}
    }
}

/// Writes it as a line.
pub(crate) fn line(text: &str) {
    put(&format!("{text}\n"));
}

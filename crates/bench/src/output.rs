//! Writing to the standard output. A reader that closed it, as `head` does, is no error.

use std::io::{self, ErrorKind, Write};

/// Writes `text` as it is.
pub(crate) fn put(text: &str) {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => eprintln!("bench: {error}"),
        _ => {}
    }
}

/// An error as a message.
pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Writes `text` as a line.
pub(crate) fn line(text: &str) {
    put(&format!("{text}\n"));
}

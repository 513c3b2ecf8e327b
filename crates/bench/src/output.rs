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

/// A whole number with commas between thousands.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0
            && (digits.len() - index).is_multiple_of(3)
            && digits.as_bytes()[index - 1] != b'-'
        {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

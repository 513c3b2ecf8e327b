//! Standard output of commands. A reader that closes it, as `head` does, is no error.

use std::io::{self, ErrorKind, Write};

/// Writes text; `false` if the reader has gone.
pub(super) fn put(text: impl AsRef<[u8]>) -> Result<bool, String> {
    put_to(&mut io::stdout().lock(), text.as_ref())
}

fn put_to(out: &mut impl Write, text: &[u8]) -> Result<bool, String> {
    match out.write_all(text).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("standard output: {error}")),
    }
}

/// Writes a line to the standard error, if it can be written to.
pub(super) fn complain(line: &str) {
    let _ = writeln!(io::stderr().lock(), "angarium: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output that fails so.
    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_mistake() {
        assert_eq!(put_to(&mut Vec::new(), b"text"), Ok(true));
        assert_eq!(put_to(&mut Failing(ErrorKind::BrokenPipe), b"text"), Ok(false));
        let full = put_to(&mut Failing(ErrorKind::StorageFull), b"text");
        assert_eq!(full, Err("standard output: no storage space".to_owned()));
    }
}

//! Redis's append-only file, which is flushed before each reply.

use crate::client::{Error, Target, resp};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// How long the first append-only file may take, which contains everything stored by then.
const PATIENCE: Duration = Duration::from_secs(30);

/// Turns the append-only file on or off.
pub(super) fn set_durable(target: &Target, durable: bool) -> Result<(), Error> {
    let mut connection = resp::Connection::open(target)?;
    connection.ask(&["CONFIG", "SET", "appendonly", if durable { "yes" } else { "no" }])?;
    let start = Instant::now();
    // Another process rewrites the file, and nothing is flushed until that is done.
    while durable && !is_flushing(&connection.ask(&["INFO", "persistence"])?) {
        if start.elapsed() > PATIENCE {
            return Err(io::Error::other("Redis does not begin its append-only file").into());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn is_flushing(info: &str) -> bool {
    let wanted = ["aof_enabled:1", "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0"];
    wanted.iter().all(|wanted| info.lines().any(|line| line.trim_end() == *wanted))
}

#[cfg(test)]
mod tests {
    use super::is_flushing;

    #[test]
    fn a_file_that_is_begun_is_told_from_one_that_is_not() {
        let info = |enabled, rewriting| {
            format!(
                "# Persistence\r\nloading:0\r\naof_enabled:{enabled}\r\n\
                 aof_rewrite_in_progress:{rewriting}\r\naof_rewrite_scheduled:0\r\n"
            )
        };
        assert!(is_flushing(&info(1, 0)));
        assert!(!is_flushing(&info(0, 0)) && !is_flushing(&info(1, 1)) && !is_flushing(""));
    }
}

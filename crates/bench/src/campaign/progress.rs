//! What is said while a campaign runs: one line that changes on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How far it is.
#[derive(Debug)]
pub(super) struct Progress {
    start: Instant,
    terminal: bool,
    done: usize,
    total: usize,
    quiet: bool,
}

impl Progress {
    /// Of so many runs.
    pub(super) fn new(total: usize, quiet: bool) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        Progress { start: Instant::now(), terminal, done: 0, total, quiet }
    }

    /// A run begins.
    pub(super) fn begin(&self, what: &str) {
        if self.terminal && !self.quiet {
            self.say(&format!("\r\x1b[2K{} {what}", self.head()));
        }
    }

    /// A run has ended.
    pub(super) fn end(&mut self, what: &str, result: &str) {
        self.done += 1;
        if self.quiet {
            return;
        }
        let line = format!("{} {what}: {result}", self.head());
        self.say(&if self.terminal { format!("\r\x1b[2K{line}\n") } else { format!("{line}\n") });
    }

    /// Something that needs a line of its own.
    pub(super) fn note(&self, text: &str) {
        let clear = if self.terminal { "\r\x1b[2K" } else { "" };
        self.say(&format!("{clear}{text}\n"));
    }

    fn head(&self) -> String {
        let elapsed = self.start.elapsed();
        let left = remaining(elapsed, self.done, self.total);
        format!("[{}/{} {} left {}]", self.done, self.total, clock(elapsed), clock(left))
    }

    fn say(&self, text: &str) {
        let mut error = std::io::stderr().lock();
        // Progress that nobody can read is no reason to stop.
        let _ = error.write_all(text.as_bytes()).and_then(|()| error.flush());
    }
}

/// What is left if all runs take as long as those before.
fn remaining(elapsed: Duration, done: usize, total: usize) -> Duration {
    if done == 0 {
        return Duration::ZERO;
    }
    elapsed.mul_f64(total.saturating_sub(done) as f64 / done as f64)
}

fn clock(span: Duration) -> String {
    let seconds = span.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_was() {
        let seconds = Duration::from_secs;
        assert_eq!(remaining(seconds(30), 3, 9), seconds(60));
        assert_eq!(remaining(seconds(30), 0, 9), seconds(0));
        assert_eq!(remaining(seconds(30), 9, 9), seconds(0));
        assert_eq!(clock(seconds(125)), "2:05");
    }
}

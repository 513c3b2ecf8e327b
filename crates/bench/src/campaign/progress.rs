//! What is said while a campaign runs: one line that changes on a terminal, plain lines elsewhere.

use crate::load::live_rates;
use crate::report::grouped;
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// How often the line on a terminal changes.
const TICK: Duration = Duration::from_secs(1);
/// The width of a terminal that does not say it.
const COLUMNS: usize = 80;

/// How far it is.
#[derive(Debug)]
pub(crate) struct Progress {
    state: Arc<Mutex<State>>,
    terminal: bool,
    quiet: bool,
    /// Dropped, it ends the thread that changes the line.
    _ticker: Option<Sender<()>>,
}

#[derive(Debug)]
struct State {
    start: Instant,
    done: usize,
    total: usize,
    /// What runs, and since when.
    current: Option<(String, Instant)>,
}

impl Progress {
    /// Of so many runs.
    pub(crate) fn new(total: usize, quiet: bool) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let state = State { start: Instant::now(), done: 0, total, current: None };
        let state = Arc::new(Mutex::new(state));
        let ticker = (terminal && !quiet).then(|| tick(Arc::clone(&state)));
        Progress { state, terminal, quiet, _ticker: ticker.flatten() }
    }

    /// A run begins.
    pub(crate) fn begin(&self, what: &str) {
        if self.terminal && !self.quiet {
            let mut state = held(&self.state);
            state.current = Some((what.to_owned(), Instant::now()));
            say(&state.line());
        }
    }

    /// A run has ended.
    pub(crate) fn end(&mut self, what: &str, result: &str) {
        let mut state = held(&self.state);
        state.one_done();
        if self.quiet {
            return;
        }
        let line = format!("{} {what}: {result}", state.head());
        say(&if self.terminal { format!("\r\x1b[2K{line}\n") } else { format!("{line}\n") });
    }

    /// Something that needs a line of its own.
    pub(crate) fn note(&self, text: &str) {
        let clear = if self.terminal { "\r\x1b[2K" } else { "" };
        let _state = held(&self.state);
        say(&format!("{clear}{text}\n"));
    }
}

/// Keeps the line up to date from a thread of its own, until the sender is dropped. Without the
/// thread, the line changes with each run only.
fn tick(state: Arc<Mutex<State>>) -> Option<Sender<()>> {
    let (sender, ended) = mpsc::channel();
    let ticking = move || {
        while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            let state = held(&state);
            if state.current.is_some() {
                say(&state.line());
            }
        }
    };
    thread::Builder::new().name("progress".to_owned()).spawn(ticking).ok().map(|_| sender)
}

fn held(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(|poison| poison.into_inner())
}

fn say(text: &str) {
    let mut error = std::io::stderr().lock();
    // Progress that nobody can read is no reason to stop.
    let _ = error.write_all(text.as_bytes()).and_then(|()| error.flush());
}

impl State {
    /// Some cases are only known once their broker runs: then there are more than were counted.
    fn one_done(&mut self) {
        self.done += 1;
        self.total = self.total.max(self.done);
        self.current = None;
    }

    fn head(&self) -> String {
        let elapsed = self.start.elapsed();
        let left = remaining(elapsed, self.done, self.total).map_or("?".to_owned(), clock);
        format!("[{}/{} {} left {left}]", self.done, self.total, clock(elapsed))
    }

    /// The line of what runs, in place of the one before.
    fn line(&self) -> String {
        let Some((what, since)) = &self.current else { return String::new() };
        let now = doing(since.elapsed(), live_rates::current());
        let columns = rustix::termios::tcgetwinsize(std::io::stderr())
            .map_or(COLUMNS, |size| usize::from(size.ws_col));
        // A line that is broken in two cannot be replaced.
        let columns = if columns == 0 { COLUMNS } else { columns };
        let line: String = format!("{} {what}{now}", self.head()).chars().take(columns).collect();
        format!("\r\x1b[2K{line}")
    }
}

/// What a run has been doing.
fn doing(since: Duration, (published, delivered): (u64, u64)) -> String {
    let rates = match (published, delivered) {
        (0, 0) => String::new(),
        _ => format!(": {} in/s, {} out/s", grouped(published as f64), grouped(delivered as f64)),
    };
    match since.as_secs() {
        0 => rates,
        seconds => format!(", {seconds} s{rates}"),
    }
}

/// What is left if all runs take as long as those before.
fn remaining(elapsed: Duration, done: usize, total: usize) -> Option<Duration> {
    (done > 0).then(|| elapsed.mul_f64(total.saturating_sub(done) as f64 / done as f64))
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
        assert_eq!(remaining(seconds(30), 3, 9), Some(seconds(60)));
        assert_eq!(remaining(seconds(30), 0, 9), None);
        assert_eq!(remaining(seconds(30), 9, 9), Some(seconds(0)));
        assert_eq!(clock(seconds(125)), "2:05");
    }

    #[test]
    fn no_more_runs_are_done_than_there_are() {
        let mut state = State { start: Instant::now(), done: 0, total: 2, current: None };
        for counted in [(1, 2), (2, 2), (3, 3)] {
            state.one_done();
            assert_eq!((state.done, state.total), counted);
        }
    }

    #[test]
    fn a_run_shows_how_long_it_takes_and_what_it_does() {
        let seconds = Duration::from_secs;
        assert_eq!(doing(seconds(0), (0, 0)), "");
        assert_eq!(doing(seconds(4), (0, 0)), ", 4 s");
        assert_eq!(doing(seconds(4), (1_234_567, 80)), ", 4 s: 1,234,567 in/s, 80 out/s");
    }
}

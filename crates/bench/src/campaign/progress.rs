//! What a campaign shows while it runs: a line that changes on a terminal, by indicatif, and a line for each
//! run that ended.

use crate::load::live_rates;
use crate::report::grouped;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How often the line on a terminal changes.
const TICK: Duration = Duration::from_secs(1);

/// How many runs are done, and the one that runs.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Draws nothing where stderr is no terminal.
    bar: ProgressBar,
    /// When the current run began, if there is one.
    since: Arc<Mutex<Option<Instant>>>,
    quiet: bool,
}

impl Progress {
    /// The progress of `total` runs. Where it is `quiet`, it shows notes only.
    pub(crate) fn new(total: usize, quiet: bool) -> Progress {
        let since = Arc::new(Mutex::new(None));
        let shown = Arc::clone(&since);
        let now = move |_: &ProgressState, text: &mut dyn Write| {
            if let Some(since) = *held(&shown) {
                let (published, delivered) = live_rates();
                let _ = text.write_str(&doing(since.elapsed(), published, delivered));
            }
        };
        let style = ProgressStyle::with_template("[{pos}/{len} {elapsed} left {eta}] {msg}{now}");
        let style = style.expect("the template is valid").with_key("now", now);
        let target =
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(total as u64), target).with_style(style);
        bar.enable_steady_tick(TICK);
        Progress { bar, since, quiet }
    }

    /// A run begins.
    pub(crate) fn begin(&self, what: &str) {
        *held(&self.since) = Some(Instant::now());
        self.bar.set_message(what.to_owned());
    }

    /// A run has ended.
    pub(crate) fn end(&mut self, what: &str, result: &str) {
        *held(&self.since) = None;
        self.bar.set_message("");
        self.bar.inc(1);
        let done = self.bar.position();
        // Some cases are only known once their broker runs: then there are more than were counted.
        let total = self.bar.length().unwrap_or(0).max(done);
        self.bar.set_length(total);
        if !self.quiet {
            let elapsed = HumanDuration(self.bar.elapsed());
            self.note(&format!("[{done}/{total} {elapsed:#}] {what}: {result}"));
        }
    }

    /// A run that is left out.
    pub(crate) fn skip(&mut self) {
        self.bar.inc(1);
    }

    /// Something that needs a line of its own.
    pub(crate) fn note(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn held(since: &Mutex<Option<Instant>>) -> MutexGuard<'_, Option<Instant>> {
    since.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// What the current run has been doing: its time, and messages published and delivered per second.
fn doing(since: Duration, published: u64, delivered: u64) -> String {
    let rates = match (published, delivered) {
        (0, 0) => String::new(),
        _ => format!(": {} in/s, {} out/s", grouped(published as f64), grouped(delivered as f64)),
    };
    match since.as_secs() {
        0 => rates,
        seconds => format!(", {seconds} s{rates}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_runs_are_done_than_there_are() {
        let mut progress = Progress::new(2, true);
        for (done, total) in [(1, 2), (2, 2), (3, 3)] {
            progress.end("", "");
            assert_eq!((progress.bar.position(), progress.bar.length()), (done, Some(total)));
        }
    }

    #[test]
    fn a_run_shows_how_long_it_takes_and_what_it_does() {
        let seconds = Duration::from_secs;
        assert_eq!(doing(seconds(0), 0, 0), "");
        assert_eq!(doing(seconds(4), 0, 0), ", 4 s");
        assert_eq!(doing(seconds(4), 1_234_567, 80), ", 4 s: 1,234,567 in/s, 80 out/s");
    }
}

//! Logs: lines on standard error, text or JSON, as many as the setting says.
//!
//! Fields are values. What a client sent is logged as a text field, which both formats quote and escape, so
//! that it cannot forge a line.

use crate::settings::{LogFormat, LogLevel, SettingValue};
use std::time::{Duration, Instant};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// Changes the level of a running process.
#[derive(Clone, Debug)]
pub struct LevelSwitch(reload::Handle<LevelFilter, Registry>);

impl LevelSwitch {
    /// From now on, this level.
    pub fn set(&self, level: LogLevel) {
        if let Err(error) = self.0.reload(filter(level)) {
            tracing::error!(%error, "cannot change the log level");
        }
    }
}

/// Starts logging; the first call of a process counts.
pub fn start(level: LogLevel, format: LogFormat) -> LevelSwitch {
    let (level, switch) = reload::Layer::new(filter(level));
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_target(false).with_ansi(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let registry = tracing_subscriber::registry().with(level).with(lines);
    if tracing::subscriber::set_global_default(registry).is_err() {
        tracing::debug!("logging was started before");
    }
    LevelSwitch(switch)
}

fn filter(level: LogLevel) -> LevelFilter {
    level.show().parse().expect("they are levels of tracing")
}

/// Lets one line a second through, for what a client can cause at will.
#[derive(Debug, Default)]
pub struct OncePerSecond {
    last: Option<Instant>,
    held_back: u64,
}

impl OncePerSecond {
    /// `Some(n)`: log now, and say that `n` lines were held back since the last one.
    pub fn pass(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_some_and(|last| now < last + Duration::from_secs(1)) {
            self.held_back += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.held_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_passes() {
        let start = Instant::now();
        let mut gate = OncePerSecond::default();
        assert_eq!(gate.pass(start), Some(0));
        assert_eq!(gate.pass(start), None);
        assert_eq!(gate.pass(start + Duration::from_millis(999)), None);
        assert_eq!(gate.pass(start + Duration::from_millis(1000)), Some(2));
    }
}

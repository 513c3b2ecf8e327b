//! Which drivers to measure, and how.

use crate::load::stamp::TIMED_BYTES;
use crate::measure::bare_sockets::SIZE_BYTES_MAX;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The drivers: the schemes of their addresses, and their names to display.
pub(super) const DRIVERS: [(&str, &str); 7] = [
    ("amqp", "AMQP 0-9-1"),
    ("amqp10", "AMQP 1.0"),
    ("nats", "NATS"),
    ("mqtt", "MQTT 3.1.1"),
    ("mqtt5", "MQTT 5"),
    ("stomp", "STOMP"),
    ("redis", "RESP channel"),
];

/// What to measure.
#[derive(Debug, Clone)]
pub struct DriversPlan {
    /// Bytes of a body.
    pub size_bytes: usize,
    /// Duration of a run.
    pub span: Duration,
    /// Runs per side; the median counts.
    pub runs: usize,
    /// Whether bodies carry a checksum, as those of presets do.
    pub checksum: bool,
    /// Whether latencies are taken, as presets do.
    pub latency: bool,
    /// The schemes of the drivers to measure; empty for all.
    pub schemes: Vec<String>,
}

impl DriversPlan {
    /// Says what is wrong with the plan, if anything.
    pub fn check(&self) -> Result<(), String> {
        if !(TIMED_BYTES..=SIZE_BYTES_MAX).contains(&self.size_bytes) {
            return Err(format!("messages must have {TIMED_BYTES} to {SIZE_BYTES_MAX} octets"));
        }
        if self.runs == 0 {
            return Err("without any run nothing is measured".to_owned());
        }
        let is_known = |scheme: &&String| DRIVERS.iter().any(|(known, _)| known == scheme);
        if let Some(unknown) = self.schemes.iter().find(|scheme| !is_known(scheme)) {
            let known: Vec<&str> = DRIVERS.iter().map(|(scheme, _)| *scheme).collect();
            return Err(format!("`{unknown}` is none of {}", known.join(", ")));
        }
        Ok(())
    }

    pub(super) fn drivers(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let wanted = |scheme| self.schemes.is_empty() || self.schemes.iter().any(|it| it == scheme);
        DRIVERS.into_iter().filter(move |(scheme, _)| wanted(*scheme))
    }

    /// Number of sides to measure.
    pub fn steps(&self) -> usize {
        2 * self.drivers().count()
    }
}

/// A side of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Stamps batches and writes them.
    Producer,
    /// Reads, parses and counts.
    Consumer,
}

impl Side {
    /// The name to display.
    pub fn name(self) -> &'static str {
        match self {
            Side::Producer => "producer",
            Side::Consumer => "consumer",
        }
    }
}

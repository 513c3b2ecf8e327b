//! What a broker says of itself at one moment, and how much its counters have grown since another.

use crate::commands::http_client::Broker;
use serde_json::Value;
use std::time::Instant;

/// One look at a broker.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// When it was asked.
    pub(super) at: Instant,
    /// The broker in short: an object.
    pub(super) overview: Value,
    /// Its listings, in the order of `LISTINGS`: an object a row.
    pub(super) listings: [Vec<Value>; LISTINGS.len()],
}

/// The listings that are shown.
pub(super) const LISTINGS: [&str; 2] = ["queues", "connections"];

impl Sample {
    /// Asks a broker.
    pub(super) fn take(broker: &Broker) -> Result<Sample, String> {
        let at = Instant::now();
        let ask = |what: &str| broker.ask("GET", &format!("/v1/{what}"), None);
        let mut sample = Sample { at, overview: ask("overview")?, listings: Default::default() };
        for (name, rows) in LISTINGS.iter().zip(&mut sample.listings) {
            let Value::Array(listed) = ask(name)? else {
                return Err("the answer is not that of an Angarium broker".to_owned());
            };
            *rows = listed;
        }
        Ok(sample)
    }

    /// Seconds that have passed since another.
    pub(super) fn seconds_since(&self, before: &Sample) -> f64 {
        self.at.saturating_duration_since(before.at).as_secs_f64()
    }
}

/// How much a counter grows in a second; `None`: there was nothing before to compare with. A counter that is
/// smaller than before has begun anew.
pub(super) fn rate(now: &Value, before: &Value, seconds: f64) -> Option<f64> {
    let (now, before) = (now.as_f64()?, before.as_f64()?);
    let grown = if now >= before { now - before } else { now };
    (seconds > 0.0).then(|| grown / seconds)
}

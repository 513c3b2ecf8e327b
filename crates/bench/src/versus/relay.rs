//! What the machine allows of a load with a connection on each side: as many octets through a bare relay in
//! the broker's place.

use super::side::text;
use super::table::{Section, spread};
use crate::load::{self, Plan};
use crate::measure::raw::{self, Relayed};
use std::time::Duration;

/// The bare relay beside the rounds of one load.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// What went through it, and the octets of one of the load's messages on the wire.
    pub(super) found: Vec<(Relayed, usize)>,
}

impl Relay {
    /// Measures it for so long beside a load, if that has one connection on each side, as it has.
    pub(crate) fn measure(
        &mut self,
        name: &str,
        plan: &Plan,
        span: Duration,
    ) -> Result<(), String> {
        if (plan.producers, plan.consumers) != (1, 1) {
            return Ok(());
        }
        let (relayed, wire_bytes) =
            (raw::relayed(span).map_err(text)?, load::delivered_bytes(plan));
        eprintln!(
            "{name}: bare relay: {:.0} msgs/s of {wire_bytes} B, its CPU {:.0} ns a message",
            relayed.messages_per_s(wire_bytes),
            relayed.relay_ns(wire_bytes)
        );
        self.found.push((relayed, wire_bytes));
        Ok(())
    }

    /// Adds what was seen. No target hangs on it: a broker looks at what it hands on.
    pub(crate) fn describe(&self, section: &mut Section) {
        if self.found.is_empty() {
            return;
        }
        let each = self.found.iter();
        let rates = each.clone().map(|(relayed, bytes)| relayed.messages_per_s(*bytes));
        section.value("machine", "bare relay msgs/s", spread(rates, 0));
        let cpu = each.map(|(relayed, bytes)| relayed.relay_ns(*bytes));
        section.value("machine", "its CPU", format!("{} ns", spread(cpu, 0)));
    }
}

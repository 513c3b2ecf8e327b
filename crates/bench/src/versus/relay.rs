//! What the machine allows of a load with a connection on each side: as many octets through a bare relay in
//! the broker's place.

use super::side::text;
use super::table::{Section, spread};
use crate::load::{self, Plan};
use crate::measure::raw::{self, Relayed};
use std::time::Duration;

const BARE: &str = "bare relay";
const RELABELLING: &str = "relay with lines of its own";

/// The relays beside the rounds of one load.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// What went through it, and the octets of one of the load's messages on the wire.
    pub(super) found: Vec<(Relayed, usize)>,
    /// The same through one that puts another line before each message.
    pub(super) relabelled: Vec<(Relayed, usize)>,
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
        let wire_bytes = load::delivered_bytes(plan);
        let bare = raw::relayed(span).map_err(text)?;
        let relabelled = raw::relabelled(wire_bytes, span).map_err(text)?;
        for (which, relayed) in [(BARE, bare), (RELABELLING, relabelled)] {
            eprintln!(
                "{name}: {which}: {:.0} msgs/s of {wire_bytes} B, its CPU {:.0} ns a message",
                relayed.messages_per_s(wire_bytes),
                relayed.relay_ns(wire_bytes)
            );
        }
        self.found.push((bare, wire_bytes));
        self.relabelled.push((relabelled, wire_bytes));
        Ok(())
    }

    /// Adds what was seen. No target hangs on it: a broker looks at what it hands on.
    pub(crate) fn describe(&self, section: &mut Section) {
        for (which, found) in [(BARE, &self.found), (RELABELLING, &self.relabelled)] {
            if found.is_empty() {
                continue;
            }
            let each = found.iter();
            let rates = each.clone().map(|(relayed, bytes)| relayed.messages_per_s(*bytes));
            section.value("machine", &format!("{which} msgs/s"), spread(rates, 0));
            let cpu = each.map(|(relayed, bytes)| relayed.relay_ns(*bytes));
            section.value("machine", "its CPU", format!("{} ns", spread(cpu, 0)));
        }
    }
}

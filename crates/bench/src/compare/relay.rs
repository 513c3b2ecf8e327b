//! What the machine allows of a load with a connection on each side: as many octets through relays in the
//! broker's place, one that looks at nothing and one that puts another line before each message.

use super::side::text;
use super::table::{Section, spread};
use crate::load::{self, Plan};
use crate::measure::bare_sockets::{self, Relayed};
use std::time::Duration;

/// The relays beside the rounds of one load.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    pub(super) rounds: Vec<Round>,
}

/// What went through them, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    /// Octets of one of the load's messages on the wire.
    pub(super) wire_bytes: usize,
    pub(super) bare: Relayed,
    pub(super) relabelled: Relayed,
}

impl Round {
    /// Both, by their names.
    fn each(&self) -> [(&'static str, &Relayed); 2] {
        [("bare relay", &self.bare), ("relay with lines of its own", &self.relabelled)]
    }
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
        let bare = bare_sockets::relayed(span).map_err(text)?;
        let relabelled = bare_sockets::relabelled(wire_bytes, span).map_err(text)?;
        let round = Round { wire_bytes, bare, relabelled };
        for (which, relayed) in round.each() {
            eprintln!(
                "{name}: {which}: {:.0} msgs/s of {wire_bytes} B, its CPU {:.0} ns a message",
                relayed.messages_per_s(wire_bytes),
                relayed.relay_ns(wire_bytes)
            );
        }
        self.rounds.push(round);
        Ok(())
    }

    /// Adds what was seen. No target hangs on it: a broker looks at what it hands on.
    pub(crate) fn describe(&self, section: &mut Section) {
        let Some(first) = self.rounds.first() else { return };
        for (at, (which, _)) in first.each().into_iter().enumerate() {
            let rounds = || self.rounds.iter().map(|round| (round.each()[at].1, round.wire_bytes));
            let rates = rounds().map(|(relayed, bytes)| relayed.messages_per_s(bytes));
            section.value("machine", &format!("{which} msgs/s"), spread(rates, 0));
            let cpu = rounds().map(|(relayed, bytes)| relayed.relay_ns(bytes));
            section.value("machine", "its CPU", format!("{} ns", spread(cpu, 0)));
        }
    }
}

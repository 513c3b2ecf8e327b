//! The machine's limit of a load with one connection on each side: the same octets through relays in the
//! broker's place, one that copies and one that puts a new line before each message.

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

/// One measurement of both, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    /// Octets of one of the load's messages on the wire.
    pub(super) wire_bytes: usize,
    pub(super) bare: Relayed,
    pub(super) relabelled: Relayed,
}

impl Round {
    /// Both relays with their names.
    fn each(&self) -> [(&'static str, &Relayed); 2] {
        [("bare relay", &self.bare), ("relay with lines of its own", &self.relabelled)]
    }
}

impl Relay {
    /// Measures both for `span` if the load has one connection on each side.
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

    /// Adds the figures to the section. They are no target: a broker reads what it forwards.
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

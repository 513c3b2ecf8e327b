//! Rules of NATS broken on purpose, on the way between a client and the node.

use super::incoming::{Arrived, Incoming};
use crate::canary::{Canary, PERCENT};
use crate::history::HeadersSeen;
use crate::random::Random;

/// Sits between a client and its connection.
#[derive(Debug)]
pub(super) struct Proxy {
    /// Whose rule it breaks.
    pub(super) canary: Canary,
    pub(super) random: Random,
}

impl Proxy {
    /// Alters what the node sent before the client gets it.
    pub(super) fn alter_direct(&mut self, incoming: &mut Vec<Incoming>) {
        let (canary, random) = (self.canary, &mut self.random);
        incoming.retain(|what| match what {
            Incoming::Message(message) if message.no_responders.is_some() => {
                canary != Canary::NoRespondersLost
            }
            Incoming::Message(_) => canary != Canary::ReceivedLost || !random.percent(PERCENT),
            _ => true,
        });
        for at in 0..incoming.len() {
            let is_chosen = self.random.percent(PERCENT);
            let is_next = matches!(incoming.get(at + 1), Some(Incoming::Message(_)));
            let Incoming::Message(message) = &mut incoming[at] else { continue };
            match canary {
                Canary::MissedNotReported => message.missed = 0,
                Canary::ReceivedTwice if is_chosen => {
                    let copy = incoming[at].clone();
                    incoming.insert(at, copy);
                }
                Canary::ReceivedSwapped if is_chosen && is_next => incoming.swap(at, at + 1),
                Canary::ReceivedAltered if is_chosen => self.alter_one(at, incoming),
                _ => {}
            }
        }
    }

    fn alter_one(&mut self, at: usize, incoming: &mut [Incoming]) {
        let Incoming::Message(message) = &mut incoming[at] else { return };
        let Arrived { id, subject, reply, headers, .. } = message;
        match self.random.below(4) {
            0 => *id = None,
            1 => subject.push('x'),
            2 => *reply = Some("elsewhere".to_owned()),
            _ => *headers = HeadersSeen::Other,
        }
    }
}

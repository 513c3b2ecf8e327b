//! Rules of direct messages broken on purpose, on the way between the node and its NATS clients.

use crate::canary::{Canary, PERCENT, Proxy};
use crate::client::nats::connection::{Arrived, Incoming};
use crate::history::HeadersSeen;
use angarium_engine::QUEUE_SUBJECT_PREFIX;

impl Proxy {
    /// The node hears that the client wants its own messages.
    pub(crate) fn forces_echo(&self) -> bool {
        self.canary == Canary::EchoForced
    }

    /// The node does not hear of queue groups.
    pub(crate) fn ignores_groups(&self) -> bool {
        self.canary == Canary::GroupsIgnored
    }

    /// The end of a subscription, now or after so many messages, gets lost on its way to the node.
    pub(crate) fn swallows_unsubscribe(&self, after: Option<usize>) -> bool {
        let lost = if after.is_none() { Canary::UnsubscribesLost } else { Canary::UntilIgnored };
        self.canary == lost
    }

    /// A message to a queue gets lost on its way to the node.
    pub(crate) fn swallows_publish(&self, subject: &[u8]) -> bool {
        let is_to_queue = subject.starts_with(QUEUE_SUBJECT_PREFIX.as_bytes());
        self.canary == Canary::CaughtLost && is_to_queue
    }

    /// What the client gets instead of what the node sent.
    pub(crate) fn alter_direct(&mut self, incoming: &mut Vec<Incoming>) {
        let (canary, random) = (self.canary, &mut self.random);
        incoming.retain(|what| match what {
            Incoming::Message(message) if message.unheard.is_some() => {
                canary != Canary::NoRespondersLost
            }
            Incoming::Message(_) => canary != Canary::HeardLost || !random.percent(PERCENT),
            _ => true,
        });
        for at in 0..incoming.len() {
            let is_chosen = self.random.percent(PERCENT);
            let is_next = matches!(incoming.get(at + 1), Some(Incoming::Message(_)));
            let Incoming::Message(message) = &mut incoming[at] else { continue };
            match canary {
                Canary::MissedUntold => message.missed = 0,
                Canary::HeardTwice if is_chosen => {
                    let copy = incoming[at].clone();
                    incoming.insert(at, copy);
                }
                Canary::HeardSwapped if is_chosen && is_next => incoming.swap(at, at + 1),
                Canary::HeardAltered if is_chosen => self.alter_one(at, incoming),
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

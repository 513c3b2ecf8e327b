//! A canary's deed, between a shard and its clients: a PING of NATS that a shard has read is answered at
//! once, whether or not all shards know what was subscribed before it.

use super::World;
use crate::canary::Canary;
use crate::network::Place;
use std::collections::BTreeMap;

const PING: &[u8] = b"PING\r\n";
const PONG: &[u8] = b"PONG\r\n";

/// What is known of connections, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Hasty {
    /// The last bytes that the shard has read.
    read: BTreeMap<u64, Vec<u8>>,
    /// How many of its answers are not to reach the client, which has had them.
    early: BTreeMap<u64, usize>,
}

impl Hasty {
    /// Notes what was read; says how many questions that completes.
    fn pings(&mut self, link: u64, bytes: &[u8]) -> usize {
        let read = self.read.entry(link).or_default();
        read.extend_from_slice(bytes);
        let count = read.windows(PING.len()).filter(|window| *window == PING).count();
        read.drain(..(read.len() + 1).saturating_sub(PING.len()));
        count
    }
}

impl World {
    /// Answers what the shard has read and not answered, where its output is at the end of an operation.
    pub(super) fn answer_hastily(&mut self, link: u64, place: Place, bytes: &[u8]) {
        if self.canary != Some(Canary::NewsUnawaited) {
            return;
        }
        let asked = self.hasty.pings(link, bytes);
        let has_answered = self.broker.as_ref().is_none_or(|broker| {
            broker.outgoing(place).windows(PONG.len()).any(|window| window == PONG)
        });
        if asked != 1 || has_answered {
            return;
        }
        self.send_down(place);
        let is_sent = self.broker.as_ref().is_some_and(|broker| broker.outgoing(place).is_empty());
        if let Some(link_of) =
            self.links.get_mut(&link).filter(|link| is_sent && link.place.is_some())
            && link_of.down.room() >= PONG.len()
        {
            link_of.down.write(PONG);
            *self.hasty.early.entry(link).or_default() += 1;
            self.schedule_down(link);
        }
    }

    /// Sends what comes before answers that the client has had, and passes over those.
    pub(super) fn pass_over_early(&mut self, number: u64, place: Place) {
        let Some(early) = self.hasty.early.get_mut(&number) else { return };
        let (Some(broker), Some(link)) = (self.broker.as_mut(), self.links.get_mut(&number)) else {
            return;
        };
        while *early > 0 {
            let output = broker.outgoing(place);
            let answer = output.windows(PONG.len()).position(|window| window == PONG);
            let Some(answer) = answer else { return };
            let written = link.down.write(&output[..answer]);
            if written < answer {
                // What else there is finds no room either.
                if written > 0 {
                    broker.sent(place, written);
                }
                return;
            }
            broker.sent(place, answer + PONG.len());
            *early -= 1;
        }
    }
}

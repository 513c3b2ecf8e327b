//! Messages of the session's queue that the client has not acknowledged, and how many more it may be sent.

use std::collections::BTreeMap;

/// Packet identifiers that there are; 0 is none.
const PACKET_IDS: u64 = 65_535;

/// A message that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// The delivery's tag; 0: it was settled on an earlier connection.
    pub(super) tag: u64,
    /// Its place in the queue.
    pub(super) place: u64,
    /// What is awaited of the client.
    pub(super) awaits: Awaits,
}

/// What is awaited of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaits {
    Puback,
    Pubrec,
    /// PUBREC came: PUBREL goes out once that is safe.
    Release,
    Pubcomp,
}

/// Messages on their way out.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    sent: BTreeMap<u16, Sent>,
    /// How many the client takes at once.
    pub(super) window: u64,
    /// Deliveries of the consumer that nothing more is awaited for.
    done: u64,
    /// How far the consumer may be delivered to.
    granted: u64,
    /// Messages of earlier connections that count towards the window.
    earlier: u64,
    /// Tags of deliveries for which nothing is awaited of the client: they are to be settled.
    pub(super) passed: Vec<u64>,
}

/// Deliveries in a row that are to be settled, by their tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) last: u64,
}

/// The packet identifier of the message at a place.
pub(super) fn packet_id_of(place: u64) -> u16 {
    (place % PACKET_IDS + 1) as u16
}

impl Outgoing {
    /// A delivery is written with a packet identifier.
    pub(super) fn send(&mut self, packet_id: u16, sent: Sent) {
        self.sent.insert(packet_id, sent);
    }

    /// A message was released on an earlier connection: PUBCOMP is awaited.
    pub(super) fn resume_released(&mut self, place: u64) -> u16 {
        let packet_id = packet_id_of(place);
        self.sent.insert(packet_id, Sent { tag: 0, place, awaits: Awaits::Pubcomp });
        self.earlier += 1;
        packet_id
    }

    /// The message of that packet identifier.
    pub(super) fn get(&mut self, packet_id: u16) -> Option<&mut Sent> {
        self.sent.get_mut(&packet_id)
    }

    /// Nothing more is awaited for a message.
    pub(super) fn end(&mut self, packet_id: u16) {
        match self.sent.remove(&packet_id) {
            Some(Sent { tag: 0, .. }) => self.earlier -= 1,
            Some(_) => self.done += 1,
            None => {}
        }
    }

    /// A delivery needs nothing of the client.
    pub(super) fn pass(&mut self, tag: u64) {
        self.passed.push(tag);
        self.done += 1;
    }

    /// How far the consumer may be delivered to, where that is further than before.
    pub(super) fn next_grant(&mut self) -> Option<u64> {
        let up_to = (self.done + self.window).saturating_sub(self.earlier);
        (up_to > self.granted).then(|| {
            self.granted = up_to;
            up_to
        })
    }

    /// Bytes that they take, about.
    pub(super) fn held_bytes(&self) -> usize {
        self.sent.len() * 2 * size_of::<Sent>() + self.passed.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_moves_with_what_is_done() {
        let mut outgoing = Outgoing { window: 3, ..Outgoing::default() };
        assert_eq!(outgoing.resume_released(65_535), 1);
        assert_eq!((outgoing.next_grant(), outgoing.next_grant()), (Some(2), None));
        let sent = |tag| Sent { tag, place: tag, awaits: Awaits::Puback };
        outgoing.send(2, sent(1));
        outgoing.send(3, sent(2));
        outgoing.end(2);
        outgoing.end(2);
        assert_eq!(outgoing.next_grant(), Some(3));
        outgoing.end(1);
        assert_eq!(outgoing.next_grant(), Some(4));
        outgoing.pass(3);
        assert_eq!((outgoing.next_grant(), outgoing.passed.as_slice()), (Some(5), &[3][..]));
        assert!(outgoing.get(3).is_some() && outgoing.get(2).is_none());
    }

    #[test]
    fn places_within_the_range_of_identifiers_have_different_ones() {
        assert_eq!((packet_id_of(0), packet_id_of(65_534), packet_id_of(65_535)), (1, 65_535, 1));
    }
}

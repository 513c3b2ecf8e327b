//! Messages from the client that wait for their outcome, in order, and the acknowledgements that tell it.

use super::codec::{Ack, PropertiesWriter, PropertyId, Reason, Version};
use super::frame::PacketType;
use super::mapping;
use super::settings::REASON_BYTES_MAX;
use angarium_engine::{Confirm, PublishRefusal};
use std::collections::{BTreeSet, VecDeque};

/// Most bytes of an acknowledgement beside its reason string.
const EXPLAINED_BYTES: usize = 12;

/// A message that waits.
#[derive(Debug)]
struct Waiting {
    packet_id: u16,
    /// It is answered by PUBREC, else by PUBACK.
    is_exactly_once: bool,
    outcome: Option<Outcome>,
}

/// What became of it, and why, if that is to be said.
#[derive(Debug)]
struct Outcome {
    reason: Reason,
    text: Option<Box<str>>,
}

/// Messages on their way in.
#[derive(Debug)]
pub(super) struct Incoming {
    /// How many were answered.
    gone: u64,
    waiting: VecDeque<Waiting>,
    /// Packet identifiers of QoS 2 that PUBREL has not come for.
    received: BTreeSet<u16>,
    /// A message was refused that the client cannot be told of.
    pub(super) refused: Option<Box<str>>,
    /// Largest acknowledgement that may have a reason string; 0: the client wants none.
    pub(super) explained_bytes_max: usize,
}

impl Default for Incoming {
    fn default() -> Self {
        Incoming {
            gone: 0,
            waiting: VecDeque::new(),
            received: BTreeSet::new(),
            refused: None,
            explained_bytes_max: usize::MAX,
        }
    }
}

/// What is done with a message of QoS 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// It is new.
    New,
    /// It is here already, and is answered again.
    Again,
    /// It is on its way already, and is answered then.
    Underway,
}

impl Incoming {
    /// How many messages the client may not count as done.
    pub(super) fn len(&self) -> usize {
        let once = self.waiting.iter().filter(|it| !it.is_exactly_once).count();
        once + self.received.len()
    }

    /// A message of QoS 2 has come.
    pub(super) fn receive(&mut self, packet_id: u16) -> Received {
        if self.received.insert(packet_id) {
            return Received::New;
        }
        match self.waiting.iter().any(|it| it.is_exactly_once && it.packet_id == packet_id) {
            true => Received::Underway,
            false => Received::Again,
        }
    }

    /// PUBREL has come; says whether the message had.
    pub(super) fn release(&mut self, packet_id: u16) -> bool {
        self.received.remove(&packet_id)
    }

    /// Adds the message that is published next.
    #[inline]
    pub(super) fn push(&mut self, packet_id: u16, is_exactly_once: bool) {
        self.waiting.push_back(Waiting { packet_id, is_exactly_once, outcome: None });
    }

    /// The last message was refused before it got a number.
    pub(super) fn pop(&mut self) {
        if let Some(Waiting { packet_id, is_exactly_once: true, .. }) = self.waiting.pop_back() {
            self.received.remove(&packet_id);
        }
    }

    /// Notes outcomes, and writes what can be answered in order.
    #[inline]
    pub(super) fn confirm(&mut self, version: Version, confirm: Confirm<'_>, out: &mut Vec<u8>) {
        let count = confirm.number.saturating_sub(self.gone);
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(self.waiting.len());
        if count == 0 {
            return;
        }
        let first = if confirm.multiple { 0 } else { count - 1 };
        for waiting in self.waiting.range_mut(first..count) {
            waiting.outcome.get_or_insert_with(|| Outcome::of(confirm.refused));
        }
        while let Some(Waiting { outcome: Some(_), .. }) = self.waiting.front() {
            self.answer_first(version, out);
        }
    }

    fn answer_first(&mut self, version: Version, out: &mut Vec<u8>) {
        let Some(Waiting { packet_id, is_exactly_once, outcome: Some(outcome) }) =
            self.waiting.pop_front()
        else {
            return;
        };
        self.gone += 1;
        let packet_type = if is_exactly_once { PacketType::Pubrec } else { PacketType::Puback };
        let Outcome { reason, text } = outcome;
        if reason.is_error() {
            if is_exactly_once {
                self.received.remove(&packet_id);
            }
            // Earlier versions have no word for it. Who may not publish is left in ignorance, as the
            // specification allows; other messages the client has to send again.
            if !version.has_properties() && reason != Reason::NotAuthorized {
                self.refused = Some(text.unwrap_or_else(|| reason.words().into()));
                return;
            }
        }
        let mut properties = PropertiesWriter::new();
        if let Some(text) = text.filter(|it| self.may_explain(it)) {
            properties.put_text(PropertyId::ReasonString, &text);
        }
        let properties = properties.properties();
        Ack { packet_type, packet_id, reason, properties }.write(version, out);
    }

    fn may_explain(&self, text: &str) -> bool {
        text.len() <= REASON_BYTES_MAX && text.len() + EXPLAINED_BYTES <= self.explained_bytes_max
    }

    /// Bytes that they take, about.
    pub(super) fn held_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<Waiting>() + self.received.len() * 4
    }
}

impl Outcome {
    #[inline]
    fn of(refused: Option<PublishRefusal<'_>>) -> Outcome {
        match refused {
            None => Outcome { reason: Reason::Success, text: None },
            Some(PublishRefusal { kind, text }) => {
                let reason = mapping::publish_refused(kind);
                let text = reason.is_error().then(|| text.into());
                Outcome { reason, text }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angarium_engine::RefusalKind;

    fn confirm(incoming: &mut Incoming, number: u64, multiple: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let confirm = Confirm { number, multiple, refused: None };
        incoming.confirm(Version::V311, confirm, &mut out);
        out
    }

    #[test]
    fn answers_come_in_the_order_of_the_messages() {
        let mut incoming = Incoming::default();
        for id in 1..=4 {
            incoming.push(id, id == 3);
        }
        assert!(confirm(&mut incoming, 2, false).is_empty());
        assert_eq!(confirm(&mut incoming, 1, false), b"\x40\x02\0\x01\x40\x02\0\x02");
        assert_eq!(confirm(&mut incoming, 4, true), b"\x50\x02\0\x03\x40\x02\0\x04");
        assert!(confirm(&mut incoming, 9, true).is_empty());
    }

    #[test]
    fn refusals_are_told_where_there_is_a_word_for_them() {
        let text = "queue is full";
        let refused = |kind| Some(PublishRefusal { kind, text });
        for (version, kind, bytes, ends) in [
            (
                Version::V5,
                RefusalKind::LimitExceeded,
                &b"\x40\x14\0\x01\x97\x10\x1f\0\x0dqueue is full"[..],
                false,
            ),
            (Version::V5, RefusalKind::Unroutable, b"\x40\x03\0\x01\x10", false),
            (Version::V311, RefusalKind::Unroutable, b"\x40\x02\0\x01", false),
            (Version::V311, RefusalKind::AccessRefused, b"\x40\x02\0\x01", false),
            (Version::V311, RefusalKind::LimitExceeded, b"", true),
        ] {
            let (mut incoming, mut out) = (Incoming::default(), Vec::new());
            incoming.push(1, false);
            let confirm = Confirm { number: 1, multiple: false, refused: refused(kind) };
            incoming.confirm(version, confirm, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(incoming.refused.is_some(), ends);
        }
    }

    #[test]
    fn reasons_are_told_to_clients_that_take_them() {
        let refused =
            Some(PublishRefusal { kind: RefusalKind::LimitExceeded, text: "queue is full" });
        for (most, bytes) in [(0, 5), (24, 5), (25, 22), (usize::MAX, 22)] {
            let mut incoming = Incoming { explained_bytes_max: most, ..Incoming::default() };
            let mut out = Vec::new();
            incoming.push(1, false);
            let confirm = Confirm { number: 1, multiple: false, refused };
            incoming.confirm(Version::V5, confirm, &mut out);
            assert_eq!(out.len(), bytes, "{most}");
        }
    }

    #[test]
    fn messages_of_qos_2_are_known_until_they_are_released() {
        let mut incoming = Incoming::default();
        assert_eq!(incoming.receive(7), Received::New);
        incoming.push(7, true);
        assert_eq!(incoming.receive(7), Received::Underway);
        assert_eq!(confirm(&mut incoming, 1, false), b"\x50\x02\0\x07");
        assert_eq!(incoming.receive(7), Received::Again);
        assert_eq!(incoming.len(), 1);
        assert!(incoming.release(7) && !incoming.release(7));
    }
}

//! What is kept of an MQTT message beside its topic and payload: the format `MQTT`.
//!
//! Nothing for a message with QoS 0 that has neither properties nor the retain flag. Else an octet, with the
//! QoS in its lowest bits and the retain flag above them, and the properties as they came, without those that
//! are between the client and the broker: the topic alias, and the expiry, which the engine keeps.

use super::codec::property::put;
use super::codec::{Properties, PropertyId, Qos};

const QOS: u8 = 3;
const RETAIN: u8 = 4;

/// What is kept of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stored<'a> {
    /// How it was published.
    pub(super) qos: Qos,
    /// Whether it was to be retained.
    pub(super) retain: bool,
    /// Its properties.
    pub(super) properties: Properties<'a>,
}

impl<'a> Stored<'a> {
    /// Reads what [`Stored::write`] wrote. What is neither was stored by nobody, and is passed over.
    #[inline]
    pub(super) fn read(raw: &'a [u8]) -> Stored<'a> {
        let Some((&flags, properties)) = raw.split_first() else { return Stored::default() };
        let qos = Qos::of(flags & QOS).unwrap_or_default();
        let retain = flags & RETAIN != 0;
        Stored { qos, retain, properties: Properties::of(properties) }
    }

    /// Appends it.
    #[inline]
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Stored { qos, retain, properties } = *self;
        if qos == Qos::AtMostOnce && !retain && properties.is_empty() {
            return;
        }
        out.push(qos as u8 | if retain { RETAIN } else { 0 });
        for (id, value) in properties.iter().filter(|(id, _)| is_kept(*id)) {
            put(out, id, value);
        }
    }
}

/// Whether a message that is kept so was published with QoS 2.
pub(crate) fn is_exactly_once(raw: &[u8]) -> bool {
    Stored::read(raw).qos == Qos::ExactlyOnce
}

/// Whether a property of a message goes to its receivers as it is.
fn is_kept(id: PropertyId) -> bool {
    matches!(
        id,
        PropertyId::PayloadFormatIndicator
            | PropertyId::ContentType
            | PropertyId::ResponseTopic
            | PropertyId::CorrelationData
            | PropertyId::UserProperty
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back() {
        let raw =
            b"\x01\x01\x02\0\0\0\x05\x23\0\x07\x03\0\x01t\x26\0\x01a\0\x01b\x26\0\x01a\0\x01c";
        let kept = b"\x01\x01\x03\0\x01t\x26\0\x01a\0\x01b\x26\0\x01a\0\x01c";
        for (qos, retain) in [(Qos::AtMostOnce, false), (Qos::ExactlyOnce, true)] {
            let mut out = Vec::new();
            Stored { qos, retain, properties: Properties::of(raw) }.write(&mut out);
            let expected = Stored { qos, retain, properties: Properties::of(kept) };
            assert_eq!(Stored::read(&out), expected);
        }
        let mut out = Vec::new();
        Stored::default().write(&mut out);
        assert!(out.is_empty());
        assert_eq!(Stored::read(&[0xFF]).qos, Qos::AtMostOnce);
    }
}

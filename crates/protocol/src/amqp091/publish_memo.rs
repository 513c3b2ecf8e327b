//! The last basic.publish of a connection, decoded: the next one is most likely the same octets, and then
//! its names need not be checked again.

use super::codec::PublishMethod;

/// Misses before a new one is remembered: where all differ, little is spent on remembering.
const MISSES_MAX: u8 = 16;

/// The fields of one basic.publish and what they mean.
#[derive(Debug, Default)]
pub(super) struct PublishMemo {
    fields: Vec<u8>,
    /// Exchange and routing key, one after the other.
    names: String,
    /// Where the routing key begins.
    split: usize,
    mandatory: bool,
    immediate: bool,
    misses: u8,
}

impl PublishMemo {
    /// What the fields mean, where they are those that are remembered.
    #[inline]
    pub(super) fn meaning(&self, fields: &[u8]) -> Option<PublishMethod<'_>> {
        // Nothing is remembered at first, and no fields at all mean nothing.
        if self.fields.is_empty() || self.fields != fields {
            return None;
        }
        let (exchange, routing_key) = self.names.split_at_checked(self.split)?;
        let (mandatory, immediate) = (self.mandatory, self.immediate);
        Some(PublishMethod { exchange, routing_key, mandatory, immediate })
    }

    /// The fields were others than those remembered, and mean this.
    pub(super) fn missed(&mut self, fields: &[u8], method: &PublishMethod<'_>) {
        self.misses += 1;
        if self.misses < MISSES_MAX {
            return;
        }
        self.misses = 0;
        self.fields.clear();
        self.fields.extend_from_slice(fields);
        self.names.clear();
        self.names.push_str(method.exchange);
        self.names.push_str(method.routing_key);
        self.split = method.exchange.len();
        self.mandatory = method.mandatory;
        self.immediate = method.immediate;
    }
}

#[cfg(test)]
mod tests {
    use super::{MISSES_MAX, PublishMemo, PublishMethod};

    fn fields(exchange: &str, routing_key: &str, bits: u8) -> Vec<u8> {
        let mut fields = vec![0, 0];
        for name in [exchange, routing_key] {
            fields.push(name.len() as u8);
            fields.extend_from_slice(name.as_bytes());
        }
        fields.push(bits);
        fields
    }

    #[test]
    fn what_is_remembered_means_what_decoding_says() {
        let all =
            [("", "q", 0), ("x", "", 1), ("x", "q", 2), ("", "", 3), ("exchange", "schlüssel", 0)];
        let mut last = PublishMemo::default();
        assert_eq!(last.meaning(&[]), None);
        for (exchange, routing_key, bits) in all {
            let fields = fields(exchange, routing_key, bits);
            let method = PublishMethod::decode(&fields).unwrap();
            for _ in 0..MISSES_MAX {
                assert_eq!(last.meaning(&fields), None);
                last.missed(&fields, &method);
            }
            assert_eq!(last.meaning(&fields), Some(method));
        }
        for (exchange, routing_key, bits) in
            [("exchange", "schlüssel", 1), ("exchang", "eschlüssel", 0)]
        {
            assert_eq!(last.meaning(&fields(exchange, routing_key, bits)), None);
        }
    }
}

//! What protocols keep with sessions, as values by key: opaque bytes to the engine.

use crate::Refusal;
use crate::interface::limits::{
    SESSION_ATTRIBUTE_KEY_BYTES_MAX, SESSION_ATTRIBUTES_BYTES_MAX, SESSION_ATTRIBUTES_MAX,
};
use crate::interface::refusal::refuse;
use bytes::Bytes;
use std::collections::BTreeMap;

/// What an attribute takes in memory beside its bytes.
const ATTRIBUTE_BYTES: usize = 96;

/// The attributes of a session.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    values: BTreeMap<Bytes, Bytes>,
    /// Of all keys and values.
    bytes: usize,
}

impl Attributes {
    /// About how much memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.values.len() * ATTRIBUTE_BYTES
    }

    /// All of them, by key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Bytes, &Bytes)> + Clone {
        self.values.iter()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Refuses attributes that are more than one session may have beside those that there are.
    pub(super) fn check(&self, put: &[(Bytes, Bytes)]) -> Result<(), Refusal> {
        let most = SESSION_ATTRIBUTE_KEY_BYTES_MAX;
        if let Some((key, _)) = put.iter().find(|(key, _)| key.len() > most) {
            refuse!(
                LimitExceeded,
                "a session attribute's key of {} bytes is longer than {most}",
                key.len()
            );
        }
        let is_new = |(key, _): &&(Bytes, Bytes)| !self.values.contains_key(key);
        let (count, most) =
            (self.values.len() + put.iter().filter(is_new).count(), SESSION_ATTRIBUTES_MAX);
        if count > most {
            refuse!(LimitExceeded, "a session with {count} attributes; the limit is {most}");
        }
        let more: usize = put.iter().map(|(key, value)| key.len() + value.len()).sum();
        let (bytes, most) = (self.bytes + more, SESSION_ATTRIBUTES_BYTES_MAX);
        if bytes > most {
            refuse!(LimitExceeded, "session attributes of {bytes} bytes; the limit is {most}");
        }
        Ok(())
    }

    /// Sets one. It is copied: what is handed in may be a part of something large.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) {
        let before = self.values.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        match before {
            Some(before) => self.bytes = self.bytes + value.len() - before.len(),
            None => self.bytes += key.len() + value.len(),
        }
    }

    /// Takes one away, if it is there.
    pub(super) fn remove(&mut self, key: &[u8]) {
        if let Some((key, value)) = self.values.remove_entry(key) {
            self.bytes -= key.len() + value.len();
        }
    }
}

//! The retained messages of all virtual hosts, by subject, and what they come to.

use super::subject::{Key, Look, Pattern, next_after};
use crate::queue::blob::Blob;
use crate::queue::entry::{NEVER, NOWHERE};
use crate::{Position, Time};
use std::collections::BTreeMap;
use std::ops::Bound;

/// What a retained message takes in memory beside its key and itself: its places in two thirds full trees.
const VALUE_BYTES: u64 = 160;

/// A retained message.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    /// Where its record is.
    pub(crate) position: Position,
    /// Counted up over all that were ever retained.
    pub(crate) number: u64,
    pub(crate) expires: Time,
    /// What it takes up once it is read.
    pub(crate) bytes: u32,
    pub(crate) persistent: bool,
    /// As in [`Entry`](crate::queue::entry::Entry).
    pub(crate) mark: bool,
    /// It is in memory.
    pub(crate) message: Option<Blob>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Values {
    /// By the slot of their virtual host.
    vhosts: BTreeMap<u32, BTreeMap<Key, Value>>,
    /// Those that expire, in that order.
    expiring: BTreeMap<(Time, u64), (u32, Key)>,
    count: usize,
    bytes: u64,
    key_bytes: u64,
    /// What memory is counted for those that are there.
    resident: u64,
}

impl Values {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Bytes of all messages.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What memory is counted for messages.
    pub(crate) fn resident(&self) -> u64 {
        self.resident
    }

    /// What they take in memory beside messages.
    pub(crate) fn index_bytes(&self) -> u64 {
        self.count as u64 * VALUE_BYTES + self.key_bytes
    }

    pub(crate) fn get(&self, vhost: u32, key: &[u8]) -> Option<&Value> {
        self.vhosts.get(&vhost)?.get(key)
    }

    pub(crate) fn get_mut(&mut self, vhost: u32, key: &[u8]) -> Option<&mut Value> {
        self.vhosts.get_mut(&vhost)?.get_mut(key)
    }

    /// Puts one in; its subject has none.
    pub(super) fn insert(&mut self, vhost: u32, key: Key, value: Value) {
        self.count += 1;
        self.bytes += u64::from(value.bytes);
        self.key_bytes += key.len() as u64;
        self.resident += value.resident_cost();
        if value.expires != NEVER {
            self.expiring.insert((value.expires, value.number), (vhost, key.clone()));
        }
        self.vhosts.entry(vhost).or_default().insert(key, value);
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, vhost: u32, key: &[u8]) -> Option<Value> {
        let of_vhost = self.vhosts.get_mut(&vhost)?;
        let value = of_vhost.remove(key)?;
        if of_vhost.is_empty() {
            self.vhosts.remove(&vhost);
        }
        self.count -= 1;
        self.bytes -= u64::from(value.bytes);
        self.key_bytes -= key.len() as u64;
        self.resident -= value.resident_cost();
        self.expiring.remove(&(value.expires, value.number));
        Some(value)
    }

    /// The next one to expire.
    pub(super) fn first_to_expire(&self) -> Option<(Time, u32, &Key)> {
        let ((at, _), (vhost, key)) = self.expiring.first_key_value()?;
        Some((*at, *vhost, key))
    }

    /// The first subject of a virtual host.
    pub(super) fn first_of(&self, vhost: u32) -> Option<&Key> {
        self.vhosts.get(&vhost)?.keys().next()
    }

    /// All, by virtual host and subject.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Key, &Value)> {
        let of = |(vhost, values): (&u32, _)| (*vhost, values);
        self.vhosts.iter().map(of).flat_map(|(vhost, values): (u32, &BTreeMap<Key, Value>)| {
            values.iter().map(move |(key, value)| (vhost, key, value))
        })
    }

    /// The one behind a place, or the first.
    pub(crate) fn behind(&mut self, place: Option<&(u32, Key)>) -> Option<(u32, &Key, &mut Value)> {
        let from = place.map_or(0, |(vhost, _)| *vhost);
        for (vhost, values) in self.vhosts.range_mut(from..) {
            let behind = place.filter(|(of, _)| of == vhost).map(|(_, key)| key);
            let behind = behind.map_or(Bound::Unbounded, Bound::Excluded);
            if let Some((key, value)) =
                values.range_mut::<Key, _>((behind, Bound::Unbounded)).next()
            {
                return Some((*vhost, key, value));
            }
        }
        None
    }

    /// The first one of a virtual host that a pattern matches and whose key is not before `next`, which is
    /// then behind it. `None`: there is none, or none was found in `looks`, which is 0 then.
    pub(super) fn find(
        &self,
        vhost: u32,
        pattern: &Pattern,
        next: &mut Vec<u8>,
        looks: &mut usize,
    ) -> Option<(&Key, &Value)> {
        let of_vhost = self.vhosts.get(&vhost)?;
        while *looks > 0 {
            let from = (Bound::Included(&next[..]), Bound::Unbounded);
            let (key, value) = of_vhost.range::<[u8], _>(from).next()?;
            *looks -= 1;
            match pattern.look(key) {
                Look::Match => {
                    *next = next_after(key);
                    return Some((key, value));
                }
                Look::Seek(key) => *next = key,
                Look::End => {
                    *looks = (*looks).max(1);
                    return None;
                }
            }
        }
        None
    }
}

impl Value {
    /// One of which no record says where it is.
    pub(super) fn new(expires: Time, bytes: usize, persistent: bool) -> Value {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let (position, number, mark, message) = (NOWHERE, 0, false, None);
        Value { position, number, expires, bytes, persistent, mark, message }
    }

    pub(super) fn resident_cost(&self) -> u64 {
        self.message.as_ref().map_or(0, Blob::cost)
    }
}

#[cfg(test)]
impl Values {
    /// Panics where the sums disagree.
    pub(crate) fn check_invariants(&self) {
        assert_eq!(self.iter().count(), self.count);
        let sum =
            |of: fn(&Key, &Value) -> u64| self.iter().map(|(_, key, it)| of(key, it)).sum::<u64>();
        assert_eq!(sum(|_, value| value.bytes.into()), self.bytes);
        assert_eq!(sum(|key, _| key.len() as u64), self.key_bytes);
        assert_eq!(sum(|_, value| value.resident_cost()), self.resident);
        assert_eq!(sum(|_, value| u64::from(value.expires != NEVER)), self.expiring.len() as u64);
    }
}

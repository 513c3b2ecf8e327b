//! The canary `PrematurePong`: answers a NATS PING as soon as a shard has read it, before all
//! shards know the subscriptions made before it.

use std::collections::BTreeMap;

const PING: &[u8] = b"PING\r\n";
pub(super) const PONG: &[u8] = b"PONG\r\n";

/// State of connections, by their numbers.
#[derive(Debug, Default)]
pub(super) struct PrematurePong {
    /// The last bytes that the shard has read.
    read: BTreeMap<u64, Vec<u8>>,
    /// How many later PONGs of the shard are dropped, since the client has had them.
    pub(super) early: BTreeMap<u64, usize>,
}

impl PrematurePong {
    /// Records what was read; returns how many PINGs that completes.
    pub(super) fn pings(&mut self, link: u64, bytes: &[u8]) -> usize {
        let read = self.read.entry(link).or_default();
        read.extend_from_slice(bytes);
        let count = read.windows(PING.len()).filter(|window| *window == PING).count();
        read.drain(..(read.len() + 1).saturating_sub(PING.len()));
        count
    }
}

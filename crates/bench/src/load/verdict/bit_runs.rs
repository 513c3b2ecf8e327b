//! Serializes bit sets as runs of ones, for tallies sent between machines.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A sequence number this far above the highest seen was never published in this run: that many messages
/// would have to be lost in a row. Bounds what a broken broker makes this tool allocate.
pub(super) const GAP_MAX: u64 = 1 << 26;

/// Writes the start and length of each run of ones.
pub(super) fn serialize<S: Serializer>(bits: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (word, ones) in bits.iter().enumerate() {
        for bit in (0..64).filter(|bit| ones >> bit & 1 == 1) {
            let at = word as u64 * 64 + bit;
            match runs.last_mut() {
                Some((start, count)) if *start + *count == at => *count += 1,
                _ => runs.push((at, 1)),
            }
        }
    }
    runs.serialize(serializer)
}

/// Reads runs; they must be in order, and their gaps and lengths bounded.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<u64>, D::Error> {
    let runs = Vec::<(u64, u64)>::deserialize(deserializer)?;
    let (mut bits, mut before) = (Vec::new(), 0);
    for (start, count) in runs {
        let end =
            start.checked_add(count).filter(|end| start >= before && *end <= before + GAP_MAX);
        let end = end.ok_or_else(|| D::Error::custom("runs that are out of order or too long"))?;
        bits.resize(end.div_ceil(64) as usize, 0u64);
        for bit in start..end {
            bits[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        before = end;
    }
    Ok(bits)
}

//! CRC-32C, by the processor's own instructions where it has them.

use crc_fast::{CrcAlgorithm, Digest};

/// The CRC-32C of `bytes`.
pub fn of(bytes: &[u8]) -> u32 {
    append(0, bytes)
}

/// Continues the checksum `before` over further `bytes`.
pub(crate) fn append(before: u32, bytes: &[u8]) -> u32 {
    let state = u64::from(!before);
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, state);
    digest.update(bytes);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_crc_32c_however_it_is_cut() {
        assert_eq!(of(b"123456789"), 0xe306_9283);
        assert_eq!(of(b""), 0);
        let bytes: Vec<u8> = (0..3000u32).map(|at| ((at * 7919) >> 3) as u8).collect();
        for length in [1, 15, 16, 20, 255, 256, 1032, 3000] {
            let whole = bitwise(&bytes[..length]);
            assert_eq!(of(&bytes[..length]), whole, "{length} bytes");
            assert_eq!(append(of(&bytes[..length / 3]), &bytes[length / 3..length]), whole);
        }
    }

    /// The definition: bit by bit.
    fn bitwise(bytes: &[u8]) -> u32 {
        let mut state = !0u32;
        for byte in bytes {
            state ^= u32::from(*byte);
            for _ in 0..8 {
                state = (state >> 1) ^ (0x82f6_3b78 * (state & 1));
            }
        }
        !state
    }
}

//! A small seeded generator (splitmix64).

/// A generator; the field is its seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
    /// A number below `end`; 0 where `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next() % end as u64) as usize }
    }
    /// `bytes` in pieces of random sizes, `bytes_max` at most.
    pub(crate) fn pieces<'a>(&mut self, mut bytes: &'a [u8], bytes_max: usize) -> Vec<&'a [u8]> {
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(1 + self.below(bytes.len().min(bytes_max)));
            pieces.push(piece);
            bytes = rest;
        }
        pieces
    }
    /// Ten pieces of noise.
    pub(crate) fn noise(&mut self) -> Vec<Vec<u8>> {
        (0..10).map(|_| (0..20).map(|_| self.next() as u8).collect()).collect()
    }
}

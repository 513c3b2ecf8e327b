//! Sessions against the real engine: transcripts, fragmentation, and what the two need.

pub(super) mod random;

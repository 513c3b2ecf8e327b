//! Where a record lies in the log.

/// Segment number in the upper 32 bits, byte offset in the lower: later records compare greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// The position of a byte in a segment.
    pub const fn at(segment: u32, offset: u32) -> Position {
        Position((segment as u64) << 32 | offset as u64)
    }
    /// The segment's number.
    pub const fn segment(self) -> u32 {
        (self.0 >> 32) as u32
    }
    /// The byte offset in the segment's file.
    pub const fn offset(self) -> u32 {
        self.0 as u32
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at offset {}", crate::files::segment_name(self.segment()), self.offset())
    }
}

//! A journal's state and counters.

/// Whether records can be made durable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Yes.
    #[default]
    Ready,
    /// No space for another segment, or no memory to write. What is appended (settles, say) still goes into
    /// the reserve, or waits for memory.
    Full,
    /// A write or flush failed: nothing becomes durable in this process again. The text says what failed.
    Failed(String),
}

/// Counters for metrics. Backlog, segments, bytes on the disk and references are current values; the
/// others count since the journal was opened.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Records appended.
    pub records: u64,
    /// Their bytes, framing excluded.
    pub record_bytes: u64,
    /// Jobs of kind `Flush` that succeeded.
    pub flushes: u64,
    /// Those of them that wrote without flushing.
    pub unsynced: u64,
    /// Bytes they wrote, padding included.
    pub flushed_bytes: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Bytes appended and not yet written.
    pub backlog_bytes: u64,
    /// Segments with records.
    pub segments: u64,
    /// Bytes of all segment files, those prepared for later included.
    pub disk_bytes: u64,
    /// References that keep records.
    pub live_references: u64,
}

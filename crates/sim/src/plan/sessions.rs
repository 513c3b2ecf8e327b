//! What clients of named sessions do. They are in-process: no protocol claims sessions.

/// A client that claims sessions and gives them up.
#[derive(Clone, Debug)]
pub struct SessionClient {
    /// How many sessions there are to choose from; all such clients name them alike.
    pub sessions: usize,
    /// Longest expiry, in milliseconds.
    pub expiry_max: u64,
    /// How many in a hundred claims are recorded.
    pub recorded_percent: u64,
    /// How many in a hundred claims are of a fresh session.
    pub fresh_percent: u64,
    /// Longest pause between two requests, in microseconds.
    pub pause_max: u64,
}

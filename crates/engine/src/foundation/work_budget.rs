//! How much work one turn may do, in bytes: direct messages count for their size, everything else
//! for the bytes that take as long. Independent of who gets it.

/// What a message counts for in bytes, at least, for each further queue whose consumer takes it
/// immediately.
const PASSED_BYTES: u64 = 1 << 10;
/// How often its own bytes count there, if that is more: what lies ready for fifty consumers has to
/// fit a processor's cache until it is sent.
const PASSED_TIMES: u64 = 4;
/// What it counts for in bytes where the queue stores it.
const STORED_BYTES: u64 = 4 << 10;

/// What looking at a node, a binding or an exchange counts for in bytes.
const ROUTING_BYTES: u64 = 512;

/// What a term of a filter counts for in bytes, beside the bytes of the properties that it may look through.
const TERM_BYTES: u64 = 64;

/// What a message's place in a page of the journal counts for in bytes.
const PAGED_BYTES: u64 = 256;

/// Filters that a message was evaluated against.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filtering {
    /// Their terms, in sum.
    pub(crate) terms: usize,
    /// Bytes of the message's properties.
    pub(crate) property_bytes: usize,
}

/// What was done since the step began.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    done: u64,
    most: u64,
    /// Who works is to do nothing more in this turn.
    is_over: bool,
}

impl WorkBudget {
    /// Begins a turn.
    #[inline]
    pub(crate) fn begin(&mut self) {
        (self.done, self.is_over) = (0, false);
    }

    /// A budget of `most` bytes for each turn.
    pub(crate) fn new(most: u64) -> WorkBudget {
        WorkBudget { done: 0, most, is_over: false }
    }

    /// Messages were handed out, or subscribers looked at for them.
    #[inline]
    pub(crate) fn count_handed(&mut self, bytes: u64) {
        self.done += bytes;
    }

    /// Counts a message with a body of `bytes` that went to `queues` queues, of which `stored`
    /// stored it. One queue counts for nothing: the reads of a turn bound it.
    #[inline]
    pub(crate) fn count_placed(&mut self, bytes: usize, queues: usize, stored: usize) {
        let further = queues.saturating_sub(1);
        let stored = stored.min(further);
        let passed_bytes = PASSED_BYTES.max(PASSED_TIMES * bytes as u64);
        self.done += (further - stored) as u64 * passed_bytes + stored as u64 * STORED_BYTES;
    }

    /// Counts a page of `messages` messages that was written.
    #[inline]
    pub(crate) fn count_paged(&mut self, entries: usize) {
        self.done += entries as u64 * PAGED_BYTES;
    }

    /// Nodes, bindings and exchanges were looked at to find where a message goes.
    #[inline]
    pub(crate) fn count_routing(&mut self, looked_at: u64) {
        self.done += looked_at * ROUTING_BYTES;
    }

    /// A message was evaluated against filters.
    #[inline]
    pub(crate) fn count_filtering(&mut self, filtering: Filtering) {
        let Filtering { terms, property_bytes } = filtering;
        self.done += terms as u64 * (TERM_BYTES + property_bytes as u64);
    }

    /// Nothing more is to be done in this turn, for the client that is at work.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    /// Another client is at work, in what is left of the turn.
    pub(crate) fn go_on(&mut self) {
        self.is_over = false;
    }

    /// What may still be done.
    #[inline]
    pub(crate) fn left(&self) -> u64 {
        if self.is_over { 0 } else { self.most.saturating_sub(self.done) }
    }
}

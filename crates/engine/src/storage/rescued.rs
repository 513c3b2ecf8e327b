//! Queues that were made for messages whose queue is not declared.

use std::collections::BTreeMap;

/// By number, with the messages that came for each.
#[derive(Debug, Default)]
pub(crate) struct Rescued {
    pub(crate) queues: BTreeMap<u64, u64>,
}

//! What the rest of the simulator asks of a client's plan, whichever protocol it speaks.

use super::queue::QueueIndex;

/// Bytes of a message beside its body: names, numbers, headers.
const AROUND_BYTES: usize = 600;

/// The plan of one client.
pub trait ClientPlan {
    /// Bytes of the longest body that it publishes.
    fn body_max(&self) -> u64;
    /// Whether it takes messages from `queue` that are settled once they are sent.
    fn takes_presettled(&self, queue: QueueIndex) -> bool;
    /// Bytes of all direct messages that it publishes; each request gets up to `responders` answers.
    /// Messages to the exchange `subjects` are direct ones, too.
    fn direct_bytes(&self, subjects: Option<usize>, responders: usize) -> usize;
    /// Services on its connection, each of which answers requests.
    fn responders(&self) -> usize {
        0
    }
    /// Most copies of one direct message that go to it.
    fn direct_copies(&self) -> usize;
    /// Whether it receives messages that no queue holds.
    fn receives_direct(&self) -> bool;
    /// Whether it takes part in the rounds at the end of a run.
    fn takes_part_in_rounds(&self) -> bool;
}

/// Bytes of `count` direct messages with bodies of `body` bytes, as they are written.
pub(super) fn direct_bytes(count: u32, body: u64) -> usize {
    count as usize * (body as usize + AROUND_BYTES)
}

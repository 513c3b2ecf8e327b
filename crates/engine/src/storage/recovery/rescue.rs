//! Messages to queues whose declaration is lost: the queue is made anew, without arguments.

use crate::QueueOptions;
use crate::engine::Engine;
use crate::queue::Queue;

/// Where a queue is made whose virtual host is not known.
const VHOST: &str = "/";

impl Engine {
    /// Records may be missing before those that are replayed from here on: a queue that a message is for and
    /// that is not known was not deleted, its declaration is lost.
    pub fn expect_gaps(&mut self) {
        self.storage.rescued.get_or_insert_default();
    }

    /// The slot of the queue that a message is for. One whose declaration is lost is made anew; `name`: the
    /// message says its name.
    pub(crate) fn queue_of_message(
        &mut self,
        number: u64,
        name: impl FnOnce() -> Option<String>,
    ) -> Result<Option<u32>, String> {
        let slot = match self.queues.slot_of(number) {
            None if self.storage.rescued.is_some() => Some(self.rescue_queue(number, name())?),
            slot => slot,
        };
        if let Some(rescued) = &mut self.storage.rescued
            && let Some(messages) = rescued.queues.get_mut(&number)
        {
            *messages += 1;
        }
        Ok(slot)
    }

    fn rescue_queue(&mut self, number: u64, name: Option<String>) -> Result<u32, String> {
        let vhost = match self.topology.vhost_slots.get(VHOST) {
            Some(slot) => *slot,
            None => self.add_vhost(VHOST),
        };
        let router = &self.topology.vhosts[vhost].router;
        let mut name = name.unwrap_or_else(|| format!("recovered-{number}"));
        while router.queue(&name).is_some() {
            name = format!("recovered-{number}-{name}");
        }
        let options = QueueOptions { durable: true, ..QueueOptions::default() };
        let slot = self.restore_queue(Queue::new(number, vhost, name, options))?;
        if let Some(rescued) = &mut self.storage.rescued {
            rescued.queues.insert(number, 0);
        }
        Ok(slot)
    }

    /// What was made anew, in sentences.
    pub fn take_rescued(&mut self) -> Vec<String> {
        let Some(rescued) = self.storage.rescued.take() else { return Vec::new() };
        let told = |(number, messages): (u64, u64)| {
            let queue = &self.queues[self.queues.slot_of(number)?];
            Some(format!(
                "the declaration of queue number {number} is lost: its {messages} messages are in the \
                 durable queue '{}' of virtual host '{VHOST}', made without arguments and bindings",
                queue.name
            ))
        };
        rescued.queues.into_iter().filter_map(told).collect()
    }
}

//! Queues that follow policies.

use super::{FollowedByQueue, Follower, Policies, definition};
use crate::queue::Queue;

impl Policies {
    /// Has a queue follow them, as they are now; says whether its options have changed by that.
    pub(crate) fn lead(&self, queue: &mut Queue) -> bool {
        let is_led = !self.is_empty() || queue.followed.is_some();
        // A log keeps what sessions have not had, whatever it is called.
        if !is_led || queue.options.is_log {
            return false;
        }
        let follower = Follower::Queue { name: &queue.name, kind: queue.options.queue_type };
        let followed = self.followed(follower);
        let declared = queue.declared().clone();
        let mut options = declared.clone();
        if let Some((_, definition)) = &followed {
            definition::set_queue_options(&mut options, definition);
        }
        if queue.own.is_some() || queue.shared.is_some() {
            // It goes with its sessions, and so do its messages.
            options.expires = declared.expires;
            options.delivery_limit = declared.delivery_limit;
        }
        let changed = options != queue.options;
        queue.options = options;
        queue.followed = followed.map(|(names, _)| Box::new(FollowedByQueue { names, declared }));
        changed
    }
}

//! Messages to an inbox: an address that lives as long as its channel, and is no queue.

use crate::engine::Engine;
use crate::queue::stored::Incoming;
use crate::{DirectMessage, Effects, Publish, SendOutcome};

impl Engine {
    /// Delivers to the channel that has opened the inbox; false where that has no room: the reply is
    /// lost.
    #[cold]
    pub(crate) fn deliver_to_inbox<F: Effects>(
        &mut self,
        owner: u32,
        publish: &Publish<'_>,
        fx: &mut F,
    ) -> bool {
        let Some(channel) = self.clients.channels.get_mut(owner) else { return false };
        let tag = channel.take_tag();
        let Some(inbox) = &channel.inbox else { return false };
        let heard = fx.send_direct(&DirectMessage {
            channel: channel.id,
            subscription: &inbox.name,
            tag,
            missed: 0,
            slow_consumer_policy: None,
            emission: 0,
            route: 0,
            message: Incoming::of(publish).view(),
        });
        if heard == SendOutcome::Dropped {
            return false;
        }
        self.counters.delivered += 1;
        self.counters.accepted += 1;
        true
    }
}

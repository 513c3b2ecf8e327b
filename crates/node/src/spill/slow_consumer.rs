//! A slow consumer's cursor in the spill log, and its subscriptions.

use crate::outbox::Whose;
use angarium_engine::{ConnectionId, DirectMessage, Lost};
use std::collections::BTreeMap;

/// One client's place in the log.
#[derive(Debug, Default)]
pub(super) struct SlowConsumer {
    pub(super) connection: ConnectionId,
    pub(super) chunk: u64,
    pub(super) offset: usize,
    /// Recipients of the record there that were looked at.
    pub(super) recipient: usize,
    /// Bytes of others' messages that its cursor has passed since it last rested.
    pub(super) passed: usize,
    pub(super) subscriptions: Vec<SpooledSubscription>,
    pub(super) by_whose: BTreeMap<Whose, u32>,
}

/// One of its subscriptions.
#[derive(Debug)]
pub(super) struct SpooledSubscription {
    pub(super) whose: Whose,
    pub(super) name: Box<str>,
    /// What it would miss if the chunk that is being filled were lost.
    pub(super) owed: Lost,
    /// What it has read of the chunk where the cursor is.
    pub(super) read: Lost,
}

impl SlowConsumer {
    /// The number of the subscription that a message is for.
    pub(super) fn subscription(&mut self, message: &DirectMessage<'_>) -> u32 {
        let whose = Whose { channel: message.channel.number, tag: message.tag };
        let next =
            u32::try_from(self.subscriptions.len()).expect("limits keep subscriptions below 2^32");
        let number = *self.by_whose.entry(whose).or_insert(next);
        if number == next {
            let (name, none) = (message.subscription.into(), Lost::default());
            self.subscriptions.push(SpooledSubscription { whose, name, owed: none, read: none });
        }
        number
    }

    /// Goes to the beginning of a chunk.
    pub(super) fn enter(&mut self, chunk: u64) {
        self.chunk = chunk;
        self.offset = 0;
        self.recipient = 0;
        for subscription in &mut self.subscriptions {
            subscription.read = Lost::default();
        }
    }
}

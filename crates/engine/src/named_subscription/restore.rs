//! Named subscriptions in records and snapshots.

use super::NamedSubscription;
use crate::engine::Engine;
use crate::storage::codec::Malformed;
use crate::storage::record::SubscriptionRecord;

impl NamedSubscription {
    /// It as records and snapshots have it: it is durable.
    pub(crate) fn record(&self) -> SubscriptionRecord<'_> {
        SubscriptionRecord {
            owner: self.owner.as_deref(),
            name: &self.name,
            shared: self.shared,
            source: &self.source,
            keys: self.keys.clone(),
            filter: self.filter.clone(),
            not_from: self.not_from.as_deref(),
        }
    }
}

impl Engine {
    /// Makes the queue of that number a named subscription, as a record or a snapshot says.
    pub(crate) fn restore_subscription(
        &mut self,
        number: u64,
        record: SubscriptionRecord<'_>,
    ) -> Result<(), Malformed> {
        let Some(queue) = self.queues.numbered(number) else {
            return Err(format!("there is no queue of number {number} for a subscription"));
        };
        let SubscriptionRecord { owner, name, shared, source, keys, filter, not_from } = record;
        let subscription = NamedSubscription {
            owner: owner.map(Into::into),
            name: name.into(),
            durable: true,
            shared,
            source: source.to_owned(),
            keys,
            filter,
            not_from: not_from.map(str::to_owned),
            openings: 0,
        };
        let vhost = &mut self.topology.vhosts[queue.vhost];
        vhost.router.tally.went(queue.by, queue.definition_bytes());
        if let Some(before) = queue.subscription.take() {
            self.subscriptions.forget(queue.vhost, &before, number);
        }
        self.subscriptions.insert(queue.vhost, &subscription, number);
        queue.subscription = Some(Box::new(subscription));
        vhost.router.tally.came(queue.by, queue.definition_bytes());
        self.definitions.take(&mut vhost.router.tally);
        Ok(())
    }
}

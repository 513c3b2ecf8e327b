//! Temporary topics: exchanges that lead every message to every binding, and go by themselves.

use super::bindings::ExchangeKey;
use super::exchanges::TemporaryTopic;
use super::{Change, Router};
use crate::interface::refusal::refuse;
use crate::lifetime::Held;
use crate::{ConnectionId, ExchangeKind, ExchangeOptions, LifetimeEnd, Refusal};

impl Router {
    /// Declares a temporary topic under a name that may be reserved. Refused: the name is taken, the limit.
    pub(crate) fn declare_temporary_topic(
        &mut self,
        name: &str,
        owner: Option<ConnectionId>,
        held: Held,
    ) -> Result<Change, Refusal> {
        if self.exchanges.find(name).is_some() {
            refuse!(PreconditionFailed, "there is an exchange '{name}' already");
        }
        let options = ExchangeOptions {
            kind: ExchangeKind::Fanout,
            delaying: false,
            durable: false,
            auto_delete: false,
            internal: false,
            alternate: None,
        };
        let change = self.add_exchange(name, &options)?;
        if let Some(key) = self.exchanges.find(name) {
            self.exchanges.get_mut(key).temporary = Some(Box::new(TemporaryTopic { owner, held }));
        }
        Ok(change)
    }

    /// The connection that alone may bind to a topic, if one has it to itself.
    pub(crate) fn topic_owner(&self, name: &str) -> Option<ConnectionId> {
        self.exchanges.get(self.exchanges.find(name)?).temporary.as_ref()?.owner
    }

    /// Counts another holder of an exchange; false: it is not temporary. Refused: there is none.
    pub(crate) fn hold_topic(&mut self, name: &str) -> Result<bool, Refusal> {
        let key = self.exchanges.find(name).ok_or_else(|| self.no_exchange(name))?;
        let exchange = self.exchanges.get_mut(key);
        let Some(topic) = &mut exchange.temporary else { return Ok(false) };
        topic.held.holders += 1;
        exchange.options.auto_delete = false;
        Ok(true)
    }

    /// A holder has gone, and the topic with it where it has lived to its end.
    pub(crate) fn release_topic(&mut self, name: &str, is_creator: bool) -> Change {
        let mut change = Change::default();
        let Some(key) = self.exchanges.find(name) else { return change };
        let exchange = self.exchanges.get_mut(key);
        let is_used = exchange.outgoing_count > 0;
        let Some(topic) = &mut exchange.temporary else { return change };
        topic.held.released(is_creator);
        if topic.held.is_over(is_used) {
            self.end_topic(key, &mut change);
        } else if topic.held.lifetime.until == LifetimeEnd::Unused && topic.held.holders == 0 {
            // It goes with its last binding.
            exchange.options.auto_delete = true;
        }
        change
    }

    fn end_topic(&mut self, key: ExchangeKey, change: &mut Change) {
        change.changed = true;
        self.take_exchange(key, change);
    }
}

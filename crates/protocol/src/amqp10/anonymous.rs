//! Messages to links without a target, which name their destinations themselves.

use super::address::{self, Address, NodeKind};
use super::codec::{Map, Value};
use super::handler::Handler;
use super::mapping;
use super::pending::Pending;
use super::stored::Taken;
use crate::names::NAMES;
use crate::{Context, Host};
use angarium_engine::{Request, fitting_name};

/// Queues that a connection has had made by messages, of which it remembers no more.
const MADE_QUEUES_MAX: usize = 256;
/// The annotation in which JMS clients say what a message's destination is: 0 a queue, 1 a topic, 2 and 3 the
/// same for temporary ones.
const JMS_DESTINATION: &str = "x-opt-jms-dest";

/// What a JMS client says its message's destination is.
pub(super) fn jms_kind(annotations: Map<'_>) -> Option<NodeKind> {
    match annotations.get(JMS_DESTINATION)? {
        Value::Byte(0 | 2) => Some(NodeKind::Queue),
        Value::Byte(1 | 3) => Some(NodeKind::Topic),
        _ => None,
    }
}

impl Handler {
    /// Makes the queue that a JMS client's message is for, where it is not there: such a client sends to any
    /// destination by one link without a target, and expects a queue to be made as a link to it makes it.
    /// The engine carries it out before the message is published.
    pub(super) fn make_queue_for(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        message: &Taken<'_>,
    ) {
        let kind = jms_kind(message.annotations);
        if !self.settings.creates_queues || kind != Some(NodeKind::Queue) {
            return;
        }
        let Some(to) = message.properties.to else { return };
        let Ok(Address::Queue(name)) = address::parse(to, Some(NodeKind::Queue)) else { return };
        let name = fitting_name(&name);
        // A temporary queue that is gone does not come back; who waits for an answer needs no queue.
        let is_special = name.starts_with(NAMES.reserved_prefix) || NAMES.is_answer_address(&name);
        if is_special || self.made_queues.contains(&*name) {
            return;
        }
        if self.made_queues.len() >= MADE_QUEUES_MAX {
            self.made_queues.clear();
        }
        let name = name.into_owned();
        self.made_queues.insert(name.clone());
        let options = Some(mapping::named_queue(true));
        self.ask(context, number, Request::DeclareQueue { name, options }, Pending::Nothing);
    }
}

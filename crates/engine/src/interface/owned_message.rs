//! A message that outlives its publisher's input: it is kept until it can be handed out.

use super::message::{Annotations, Format, MessageView};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// Such a message.
#[derive(Debug)]
pub struct OwnedMessage {
    exchange: Box<str>,
    routing_key: Arc<str>,
    format: Format,
    properties: Box<[u8]>,
    body: Bytes,
    is_shared: bool,
    persistent: bool,
    priority: u8,
    ttl: Option<Duration>,
    annotations: Annotations,
}

impl OwnedMessage {
    /// Keeps a message. `shared`: its payload, where its receivers share a buffer.
    #[must_use]
    pub fn of(message: &MessageView<'_>, shared: Option<Bytes>) -> OwnedMessage {
        let is_shared = shared.is_some();
        OwnedMessage {
            exchange: message.exchange.into(),
            routing_key: message.routing_key.into(),
            format: message.format,
            properties: message.properties.into(),
            body: shared.unwrap_or_else(|| Bytes::copy_from_slice(message.body)),
            is_shared,
            persistent: message.persistent,
            priority: message.priority,
            ttl: message.ttl,
            annotations: message.annotations.clone(),
        }
    }

    /// The message as it is handed out.
    #[must_use]
    pub fn view(&self) -> MessageView<'_> {
        MessageView {
            exchange: &self.exchange,
            routing_key: &self.routing_key,
            format: self.format,
            properties: &self.properties,
            body: &self.body,
            shared: self.is_shared.then_some(&self.body),
            persistent: self.persistent,
            priority: self.priority,
            ttl: self.ttl,
            annotations: &self.annotations,
        }
    }

    /// Its routing key.
    #[must_use]
    pub fn routing_key(&self) -> &Arc<str> {
        &self.routing_key
    }

    /// What its content and its names take in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let names = self.exchange.len() + self.routing_key.len();
        self.body.len() + self.properties.len() + names
    }
}

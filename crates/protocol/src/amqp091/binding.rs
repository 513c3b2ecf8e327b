//! The binding that a bind or unbind names, of queues and of exchanges.

use super::codec::Table;
use super::fault::Fault;
use super::mapping;
use crate::amqp091::handler::Handler;
use angarium_engine::{Binding, BindingTarget};

impl Handler {
    /// The binding of a queue that a method names: with neither queue nor key given, both are the last
    /// declared queue's name (spec, queue.bind).
    pub(super) fn queue_binding(
        &self,
        index: usize,
        queue: &str,
        exchange: &str,
        key: &str,
        arguments: Table<'_>,
    ) -> Result<Binding, Fault> {
        self.not_default(exchange)?;
        let name = self.queue_name(index, queue)?;
        let key = if queue.is_empty() && key.is_empty() { name.clone() } else { key.to_owned() };
        let arguments = mapping::arguments(arguments);
        Ok(Binding {
            source: exchange.to_owned(),
            target: BindingTarget::Queue(name),
            key,
            arguments,
        })
    }

    /// The binding of an exchange that a method names.
    pub(super) fn exchange_binding(
        &self,
        destination: &str,
        source: &str,
        key: &str,
        arguments: Table<'_>,
    ) -> Result<Binding, Fault> {
        self.not_default(source)?;
        self.not_default(destination)?;
        Ok(Binding {
            source: source.to_owned(),
            target: BindingTarget::Exchange(destination.to_owned()),
            key: key.to_owned(),
            arguments: mapping::arguments(arguments),
        })
    }
}

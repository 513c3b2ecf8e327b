//! Management over links: requests that arrive as messages, and their answers.
//!
//! `/management` answers RabbitMQ's AMQP 1.0 clients, which declare and delete by it: HTTP in messages
//! (RabbitMQ's documentation, "HTTP over AMQP 1.0"). `$management` answers questions of the AMQP management
//! draft 1.0 (OASIS, working draft 16) and changes nothing. `$cbs` takes tokens, which change nothing either.
//!
//! A request is a [`Call`]: it asks the engine for one thing after the other, until it has its answer.

mod claims;
mod node;
mod paths;
mod rabbitmq;
mod step;
mod values;

#[cfg(test)]
mod tests;

use super::codec::{Malformed, Sections};
use angarium_engine::{Refusal, Reply};
pub(super) use step::{Begun, Step};

/// Which of them is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// `/management`
    Rabbitmq,
    /// `$management`
    Queries,
    /// `$cbs`
    Claims,
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(super) enum Call {
    Rabbitmq(Box<rabbitmq::Call>),
    Queries(node::Call),
}

impl Service {
    /// Begins a request.
    ///
    /// # Errors
    /// The message is not well-formed, or lacks what an answer needs; it is rejected.
    pub(super) fn begin(
        self,
        request: &Sections<'_>,
        vhost: &str,
    ) -> Result<Begun<Call>, Malformed> {
        Ok(match self {
            Service::Rabbitmq => {
                rabbitmq::begin(request, vhost)?.map(|call| Call::Rabbitmq(call.into()))
            }
            Service::Queries => node::begin(request)?.map(Call::Queries),
            Service::Claims => claims::begin(request)?.map(|call| match call {}),
        })
    }
}

impl Call {
    /// Continues with the engine's reply to what was asked last.
    pub(super) fn replied(&mut self, reply: Result<Reply, Refusal>) -> Step {
        match self {
            Call::Rabbitmq(call) => call.replied(reply),
            Call::Queries(call) => call.replied(reply),
        }
    }
}

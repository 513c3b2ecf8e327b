//! Clients of the simulated broker, with a folder per protocol.

mod amqp091;
mod amqp10;
mod context;
mod endpoint;
mod mqtt;
mod nats;

pub use context::{Numbers, Presence, Surroundings};
pub use endpoint::{Endpoint, PASSWORD, Round, USER};

use crate::plan::Client;
use crate::random::Random;
use angarium_engine::Time;

/// A client for `plan` that first connects at `start`.
pub fn client_for(plan: &Client, start: Time, random: Random) -> Box<dyn Endpoint> {
    match plan {
        Client::Amqp091(roles) => Box::new(amqp091::Client::new(roles, start, random)),
        Client::Amqp10(plan) => amqp10::client_for(plan, start, random),
        Client::Mqtt(plan) => Box::new(mqtt::Client::new(plan.clone(), start, random)),
        Client::Nats(plan) => Box::new(nats::Client::new(plan.clone(), start, random)),
    }
}

/// The client that empties all queues.
pub fn drain(start: Time, random: Random) -> Box<dyn Endpoint> {
    Box::new(amqp091::Client::drain(start, random))
}

//! Brokers that can be started and stopped here, each on loopback ports with its own data folder.

mod command;
mod configuration;
mod kind;
mod port;
mod programs;
mod rabbitmq;
mod redis;
mod running;
mod setup;

pub use command::CommandBroker;
pub use kind::{FOREIGN, Kind, Level, QUORUM, unknown};
pub use port::free_port;
pub use programs::Programs;
pub use rabbitmq::RabbitMq;
pub use running::Peer;

//! Brokers that can be started and stopped here, each on a loopback port with a data folder of its
//! own.

mod activemq;
mod catalog;
mod command;
mod configuration;
mod nats;
mod rabbitmq;
mod redis;

pub use catalog::{FOREIGN, Kind, Level, Peer, Programs, unknown};
pub use command::CommandBroker;
pub use rabbitmq::RabbitMq;

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// A loopback port that nobody listened on a moment ago.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

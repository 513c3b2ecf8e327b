//! What one case uses. Every connection is closed and every queue deleted afterwards.

use futures_lite::StreamExt;
use lapin::message::Delivery;
use lapin::options::{ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ConnectionProperties, Consumer};
use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::timeout;

/// The longest wait for anything that must come.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How a case ends.
pub type Outcome = Result<(), Box<dyn Error>>;

/// What one case opened.
#[derive(Default)]
pub struct World {
    connections: Vec<Connection>,
    queues: Vec<String>,
}

/// Where the broker is.
pub fn url() -> String {
    let default = "amqp://guest:guest@127.0.0.1:5672/%2f".to_string();
    std::env::var("AMQP_URL").unwrap_or(default)
}

/// A name that nobody else uses.
pub fn name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("r-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

impl World {
    /// A channel on a connection of its own.
    pub async fn channel(&mut self) -> Result<Channel, Box<dyn Error>> {
        let connection = Connection::connect(&url(), ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        self.connections.push(connection);
        Ok(channel)
    }

    /// A second channel on the connection that was opened last.
    pub async fn sibling(&self) -> Result<Channel, Box<dyn Error>> {
        let connection = self.connections.last().ok_or("no connection yet")?;
        Ok(connection.create_channel().await?)
    }

    /// A channel in confirm mode.
    pub async fn confirming(&mut self) -> Result<Channel, Box<dyn Error>> {
        let channel = self.channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(channel)
    }

    /// A queue of a fresh name.
    pub async fn queue(
        &mut self,
        channel: &Channel,
        durable: bool,
    ) -> Result<String, Box<dyn Error>> {
        let name = name();
        let options = QueueDeclareOptions { durable, ..QueueDeclareOptions::default() };
        channel.queue_declare(name.as_str().into(), options, FieldTable::default()).await?;
        self.queues.push(name.clone());
        Ok(name)
    }

    /// Cleans up.
    pub async fn close(self) -> Outcome {
        for connection in self.connections {
            // A case may have closed it, or had it closed.
            let _ = connection.close(200, "done".into()).await;
        }
        let connection = Connection::connect(&url(), ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        for queue in self.queues {
            channel.queue_delete(queue.as_str().into(), QueueDeleteOptions::default()).await?;
        }
        connection.close(200, "done".into()).await?;
        Ok(())
    }
}

/// The next delivery, which must come.
pub async fn next(consumer: &mut Consumer) -> Result<Delivery, Box<dyn Error>> {
    let delivery = timeout(PATIENCE, consumer.next()).await?;
    Ok(delivery.ok_or("the consumer ended")??)
}

/// Fails unless both are the same.
pub fn same<T: PartialEq + std::fmt::Debug>(expected: T, found: T, what: &str) -> Outcome {
    if expected == found {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, found {found:?}").into())
}

//! The two brokers of a comparison while they run.

use crate::client::Target;
use crate::peer::{CommandBroker, RabbitMq, free_port};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long our broker may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// One broker, stopped when dropped.
#[derive(Debug)]
pub(crate) struct Side {
    /// Its name in the report.
    pub(crate) name: &'static str,
    /// Where it listens.
    pub(crate) uri: Target,
    broker: Broker,
}

#[derive(Debug)]
enum Broker {
    Ours(CommandBroker),
    RabbitMq(RabbitMq),
}

/// The name of our side.
pub(crate) const OURS: &str = "Angarium";
/// The name of the other side, with the version that Debian 12 packages.
pub(crate) const THEIRS: &str = "RabbitMQ 3.10.8";

impl Side {
    /// Starts ours, if there is a program, and RabbitMQ, if it is wanted; ours comes first.
    pub(crate) fn start(
        program: Option<&Path>,
        rabbitmq: bool,
        folder: &Path,
    ) -> Result<Vec<Side>, String> {
        let mut sides = Vec::new();
        if let Some(program) = program {
            let (command, uri) = our_command(program, &folder.join("angarium"))?;
            let broker = CommandBroker::start(&command, &uri, PATIENCE).map_err(text)?;
            sides.push(Side { name: OURS, uri, broker: Broker::Ours(broker) });
        }
        if rabbitmq {
            let folder = folder.join("rabbitmq");
            fs::create_dir_all(&folder).map_err(text)?;
            let broker = RabbitMq::start(&folder).map_err(text)?;
            let uri = broker.uri().clone();
            sides.push(Side { name: THEIRS, uri, broker: Broker::RabbitMq(broker) });
        }
        Ok(sides)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        match &self.broker {
            Broker::Ours(broker) => broker.pid(),
            Broker::RabbitMq(broker) => broker.pid(),
        }
    }
}

/// The command that starts our broker on a free port with its data in `data`, and where it will
/// listen.
pub(crate) fn our_command(program: &Path, data: &Path) -> Result<(Vec<String>, Target), String> {
    let port = free_port().map_err(text)?;
    let address = format!("127.0.0.1:{port}");
    let data = data.to_string_lossy().into_owned();
    let program = program.to_string_lossy().into_owned();
    let flags = ["serve", "--data", &data, "--amqp", &address, "--http", "off"];
    let command = std::iter::once(program).chain(flags.map(str::to_owned)).collect();
    Ok((command, format!("amqp://{address}").parse()?))
}

/// An error as a message.
pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

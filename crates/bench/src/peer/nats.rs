//! nats-server as it is built from its sources: one program in the foreground, on loopback, with
//! nothing set that is not said here.

use super::command::CommandBroker;
use super::free_port;
use crate::client::{Error, Target};
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running nats-server without JetStream; stopped when dropped.
#[derive(Debug)]
pub struct NatsServer {
    broker: CommandBroker,
    target: Target,
    version: String,
}

impl NatsServer {
    /// Starts `program` with its log in `folder`, and waits until it answers.
    pub fn start(program: &Path, folder: &Path) -> Result<NatsServer, Error> {
        let version = version(program)?;
        let port = free_port()?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (port_text, log) = (port.to_string(), text(&folder.join("nats-server.log")));
        let flags = ["-a", "127.0.0.1", "-p", &port_text, "-l", &log];
        let command: Vec<String> =
            std::iter::once(text(program)).chain(flags.map(str::to_owned)).collect();
        let address = format!("nats://127.0.0.1:{port}");
        let target: Target = address.parse().map_err(io::Error::other)?;
        let broker = CommandBroker::start(&command, &target, PATIENCE)?;
        Ok(NatsServer { broker, target, version })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.broker.pid()
    }

    /// Where it listens.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Its version, as it says itself.
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// What `nats-server --version` prints after the name.
fn version(program: &Path) -> Result<String, Error> {
    let output = Command::new(program).arg("--version").output().map_err(|error| {
        let hint = "go install github.com/nats-io/nats-server/v2@latest";
        io::Error::other(format!("{}: {error}; to have it: {hint}", program.display()))
    })?;
    let said = String::from_utf8_lossy(&output.stdout);
    let version = said.rsplit_once(": v").map_or("", |(_, version)| version.trim());
    Ok(if version.is_empty() { "of unknown version".to_owned() } else { version.to_owned() })
}

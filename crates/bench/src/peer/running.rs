//! A running broker of any kind: configured, started, killed, restarted and stopped.

use super::command::{CommandBroker, Foreground};
use super::configuration::{self, Start};
use super::kind::Kind;
use super::programs::Programs;
use super::rabbitmq::RabbitMq;
use super::redis;
use super::setup::foreground;
use crate::client::{Error, Target};
use crate::load::durability::RestartableBroker;
use crate::measure::process;
use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a broker may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running broker; stopped when dropped.
#[derive(Debug)]
pub struct Peer {
    kind: Kind,
    version: String,
    configuration: String,
    targets: Vec<Target>,
    folder: PathBuf,
    process: Process,
}

#[derive(Debug)]
enum Process {
    Program(CommandBroker),
    RabbitMq(RabbitMq),
}

impl Peer {
    /// Starts one with its data in `folder`, which must be empty.
    pub fn start(kind: Kind, programs: &Programs, folder: &Path) -> Result<Peer, Error> {
        Peer::start_for(kind, &kind.schemes()[0], programs, folder)
    }

    /// Starts one, configured for loads by one of its schemes, where that makes a difference.
    pub fn start_for(
        kind: Kind,
        scheme: &str,
        programs: &Programs,
        folder: &Path,
    ) -> Result<Peer, Error> {
        let program = kind.find(programs).ok_or_else(|| {
            io::Error::other(format!("{} is not installed; {}", kind.name(), kind.hint()))
        })?;
        fs::create_dir_all(folder)?;
        if kind == Kind::RabbitMq {
            let broker = RabbitMq::start(Some(&program), folder, true)?;
            return Ok(Peer {
                kind,
                version: broker.version(),
                configuration: broker.configuration(),
                targets: broker.targets(),
                folder: folder.to_owned(),
                process: Process::RabbitMq(broker),
            });
        }
        let version = kind.version(&program);
        let Foreground { command, targets, files } =
            foreground(kind.setup(scheme), &program, folder)?;
        let log = File::create(folder.join("start.log"))?;
        let broker = CommandBroker::start(&command, &targets[0], PATIENCE, log.into());
        let broker = broker.map_err(|error| match error {
            Error::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                io::Error::other(format!("{error}; to have it: {}", kind.hint())).into()
            }
            error => error,
        })?;
        let is_script = kind == Kind::Artemis;
        let running = if is_script { process::command_line(broker.pid()) } else { Vec::new() };
        let start = Start {
            environment: configuration::inherited(kind.environment(), env::vars_os()),
            command: &command,
            running: &running,
            files: files.as_deref(),
        };
        let configuration = start.describe();
        let (folder, process) = (folder.to_owned(), Process::Program(broker));
        Ok(Peer { kind, version, configuration, targets, folder, process })
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The version that it reports.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its variables, command lines and configuration files.
    pub fn configuration(&self) -> &str {
        &self.configuration
    }

    /// All addresses, the one that loads use first.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Turns flushing on or off, for a broker that is slower with it even for direct messages. Returns
    /// whether that makes a difference.
    pub fn set_durable(&mut self, durable: bool) -> Result<bool, Error> {
        match self.kind {
            Kind::Redis => redis::set_durable(&self.targets[0], durable).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        match &self.process {
            Process::Program(broker) => broker.pid(),
            Process::RabbitMq(broker) => broker.pid(),
        }
    }
}

impl RestartableBroker for Peer {
    fn kill(&mut self) -> Result<(), Error> {
        match &mut self.process {
            Process::Program(broker) => Ok(broker.kill()?),
            Process::RabbitMq(broker) => broker.kill(),
        }
    }

    fn restart(&mut self) -> Result<(), Error> {
        match &mut self.process {
            Process::Program(broker) => broker.restart(),
            Process::RabbitMq(broker) => broker.restart(),
        }
    }

    fn folder(&self) -> &Path {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named_with_how_to_have_it() {
        let folder = env::temp_dir().join(format!("bench-peer-{}", std::process::id()));
        let programs = Programs::of_one(Kind::Nats, Path::new("/nowhere/nats-server"));
        let why =
            Peer::start(Kind::Nats, &programs, &folder).map(|_| ()).map_err(|it| it.to_string());
        drop(fs::remove_dir_all(&folder));
        let why = why.expect_err("it is not there");
        assert!(why.contains("/nowhere/nats-server") && why.contains("go install"), "{why}");
    }
}

//! The two brokers of a comparison while they run.

use crate::client::{Protocol, Target};
pub(crate) use crate::output::text;
use crate::peer::{CommandBroker, Kind, Peer, Programs, RabbitMq, free_port};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long our broker may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// One broker, stopped when dropped.
#[derive(Debug)]
pub(crate) struct Side {
    /// Its name in the report.
    pub(crate) name: String,
    /// Where it listens.
    pub(crate) uri: Target,
    broker: Broker,
}

#[derive(Debug)]
enum Broker {
    Program(CommandBroker),
    RabbitMq(RabbitMq),
    Peer(Box<Peer>),
}

/// The name of our side.
pub(crate) const OURS: &str = "Angarium";
/// The name of RabbitMQ, before its version.
pub(crate) const RABBITMQ: &str = "RabbitMQ";
/// The names of the peers by MQTT, before their versions.
pub(crate) const MOSQUITTO: &str = "Mosquitto";
pub(crate) const RUMQTTD: &str = "rumqttd";

impl Side {
    /// Starts our broker.
    pub(crate) fn ours(program: &Path, protocol: Protocol, folder: &Path) -> Result<Side, String> {
        Side::ours_with(program, protocol, folder, &[])
    }

    /// Starts our broker with further flags.
    pub(crate) fn ours_with(
        program: &Path,
        protocol: Protocol,
        folder: &Path,
        flags: &[&str],
    ) -> Result<Side, String> {
        let Launch { mut command, uri } = our_command(program, protocol, &our_data(folder))?;
        command.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let log = Stdio::inherit();
        let broker = CommandBroker::start(&command, &uri, PATIENCE, log).map_err(text)?;
        Ok(Side { name: OURS.to_owned(), uri, broker: Broker::Program(broker) })
    }

    /// Starts RabbitMQ by that script, or Debian's.
    pub(crate) fn rabbitmq(program: Option<&Path>, folder: &Path) -> Result<Side, String> {
        let folder = folder.join("rabbitmq");
        fs::create_dir_all(&folder).map_err(text)?;
        let broker = RabbitMq::start(program, &folder, false).map_err(text)?;
        let (name, uri) = (format!("{RABBITMQ} {}", broker.version()), broker.uri().clone());
        Ok(Side { name, uri, broker: Broker::RabbitMq(broker) })
    }

    /// Starts nats-server.
    pub(crate) fn nats(program: &Path, folder: &Path) -> Result<Side, String> {
        Side::peer(Kind::Nats, program, folder, "nats-server")
    }

    /// Starts Mosquitto, whose name in the report says what its confirms mean.
    pub(crate) fn mosquitto(program: &Path, folder: &Path) -> Result<Side, String> {
        let mut side = Side::peer(Kind::Mosquitto, program, &folder.join("mosquitto"), MOSQUITTO)?;
        side.name += &format!(", confirms {}", Kind::Mosquitto.level(Protocol::Mqtt).name());
        Ok(side)
    }

    /// Starts rumqttd.
    pub(crate) fn rumqttd(program: &Path, folder: &Path) -> Result<Side, String> {
        Side::peer(Kind::Rumqttd, program, &folder.join("rumqttd"), RUMQTTD)
    }

    fn peer(kind: Kind, program: &Path, folder: &Path, name: &str) -> Result<Side, String> {
        let programs = Programs::of_one(kind, program);
        let broker = Peer::start(kind, &programs, folder).map_err(text)?;
        let name = format!("{name} {}", broker.version());
        Ok(Side { name, uri: broker.targets()[0].clone(), broker: Broker::Peer(broker.into()) })
    }

    /// Starts Artemis for loads by AMQP 1.0.
    pub(crate) fn artemis(program: &Path, folder: &Path) -> Result<Side, String> {
        let (programs, scheme) = (Programs::of_one(Kind::Artemis, program), "amqp10");
        let folder = folder.join("artemis");
        let broker = Peer::start_for(Kind::Artemis, scheme, &programs, &folder).map_err(text)?;
        let mut targets = broker.targets().iter();
        let uri = targets.find(|target| target.scheme() == scheme).cloned();
        let uri = uri.ok_or("Artemis was started without AMQP 1.0")?;
        let has_aio = broker.configuration().contains("<journal-type>ASYNCIO");
        let journal = if has_aio { "AIO" } else { "NIO (there is no libaio)" };
        let name = format!("Artemis {}, journal by {journal}", broker.version());
        Ok(Side { name, uri, broker: Broker::Peer(broker.into()) })
    }

    /// Starts nats-server with these settings.
    pub(crate) fn nats_with(program: &Path, folder: &Path, settings: &str) -> Result<Side, String> {
        let file = folder.join("nats-server.conf");
        fs::create_dir_all(folder).and_then(|()| fs::write(&file, settings)).map_err(text)?;
        let port = free_port().map_err(text)?.to_string();
        let log = folder.join("nats-server.log");
        let (program, file) = (program.to_string_lossy(), file.to_string_lossy());
        let log = log.to_string_lossy();
        let command = [&*program, "-c", &*file, "-a", "127.0.0.1", "-p", &port, "-l", &*log];
        let uri: Target = format!("nats://127.0.0.1:{port}").parse()?;
        let command = command.map(str::to_owned);
        let broker = CommandBroker::start(&command, &uri, PATIENCE, Stdio::null()).map_err(text)?;
        Ok(Side { name: "nats-server".to_owned(), uri, broker: Broker::Program(broker) })
    }

    /// Has our broker, whose data is in `folder`, carry out a command of its command line; what follows
    /// ` <<< ` is its standard input.
    pub(crate) fn administer(program: &Path, folder: &Path, command: &str) -> Result<(), String> {
        let (words, input) = command.split_once(" <<< ").unwrap_or((command, ""));
        let mut child = Command::new(program)
            .args(words.split_whitespace())
            .arg("--data")
            .arg(our_data(folder))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(text)?;
        // A command that reads nothing may have ended.
        let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().map_err(text)?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        match &self.broker {
            Broker::Program(broker) => broker.pid(),
            Broker::RabbitMq(broker) => broker.pid(),
            Broker::Peer(broker) => broker.pid(),
        }
    }
}

fn our_data(folder: &Path) -> PathBuf {
    folder.join("angarium")
}

/// The administration socket of our broker with its data in `folder`.
pub(crate) fn administration(folder: &Path) -> PathBuf {
    our_data(folder).join("admin.sock")
}

/// How our broker is started.
#[derive(Debug)]
pub(crate) struct Launch {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// The address that it listens on.
    pub(crate) uri: Target,
}

/// The command that starts our broker on a free port with its data in `data`, and its address for `protocol`.
pub(crate) fn our_command(
    program: &Path,
    protocol: Protocol,
    data: &Path,
) -> Result<Launch, String> {
    let listen = || Ok::<_, String>(format!("127.0.0.1:{}", free_port().map_err(text)?));
    let amqp = listen()?;
    let data = data.to_string_lossy().into_owned();
    let program = program.to_string_lossy().into_owned();
    let mut command = vec![program];
    let other = listen()?;
    let only = |meant: Protocol| if protocol == meant { &*other } else { "off" };
    let (nats, stomp, mqtt) = (only(Protocol::Nats), only(Protocol::Stomp), only(Protocol::Mqtt));
    let flags = ["serve", "--data", &data, "--amqp", &amqp, "--nats", nats, "--stomp", stomp];
    command.extend(flags.map(str::to_owned));
    command.extend(["--mqtt", mqtt, "--http", "off"].map(str::to_owned));
    let uri = match protocol {
        Protocol::Amqp091 => format!("amqp://{amqp}"),
        Protocol::Amqp10 => format!("amqp10://{amqp}"),
        Protocol::Nats => format!("nats://{other}"),
        Protocol::Stomp => format!("stomp://{other}"),
        Protocol::Mqtt => format!("mqtt://{other}"),
        Protocol::JetStream | Protocol::Resp => {
            return Err(format!("our broker does not speak {}", protocol.name()));
        }
    };
    Ok(Launch { command, uri: uri.parse()? })
}

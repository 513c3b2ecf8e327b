//! The brokers that can be started here: how each is found, configured and what its confirms are
//! worth.

use super::activemq;
use super::command::CommandBroker;
use super::configuration::{self, Start};
use super::free_port;
use super::nats;
use super::rabbitmq::RabbitMq;
use super::redis;
use crate::client::{Error, Protocol, Target};
use crate::load::durability::RestartableBroker;
use crate::measure::process;
use serde::{Deserialize, Serialize};
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long one may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a confirm of a persistent message says.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// There are none.
    AtMostOnce,
    /// The broker has it in its memory.
    Memory,
    /// The kernel has it in its page cache.
    PageCache,
    /// The disk has it.
    Flushed,
    /// Nobody said.
    #[default]
    Unknown,
}

impl Level {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Level::AtMostOnce => "at most once",
            Level::Memory => "in memory",
            Level::PageCache => "page cache",
            Level::Flushed => "flushed",
            Level::Unknown => "unknown",
        }
    }

    /// Reads one of the names with dashes.
    pub fn from_text(text: &str) -> Result<Level, String> {
        Ok(match text {
            "at-most-once" => Level::AtMostOnce,
            "memory" => Level::Memory,
            "page-cache" => Level::PageCache,
            "flushed" => Level::Flushed,
            _ => return Err("at-most-once, memory, page-cache or flushed".to_owned()),
        })
    }
}

/// A broker that we know how to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Our own.
    Angarium,
    /// RabbitMQ, with its STOMP and MQTT plugins.
    RabbitMq,
    /// nats-server, with JetStream where its streams are asked for.
    Nats,
    /// Mosquitto.
    Mosquitto,
    /// ActiveMQ Artemis.
    Artemis,
    /// The classic ActiveMQ.
    ActiveMq,
    /// Redis, by channels and streams.
    Redis,
}

/// Brokers that are asked for and cannot be measured: this tool speaks none of what they speak.
pub const FOREIGN: [(&str, &str); 1] = [("kafka", "a protocol of its own")];

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 7] = [
        Kind::Angarium,
        Kind::RabbitMq,
        Kind::Nats,
        Kind::Mosquitto,
        Kind::Artemis,
        Kind::ActiveMq,
        Kind::Redis,
    ];

    /// What it is asked for by.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Angarium => "angarium",
            Kind::RabbitMq => "rabbitmq",
            Kind::Nats => "nats",
            Kind::Mosquitto => "mosquitto",
            Kind::Artemis => "artemis",
            Kind::ActiveMq => "activemq",
            Kind::Redis => "redis",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The protocols that we can speak to it, the one that loads use first.
    pub fn schemes(self) -> &'static [&'static str] {
        match self {
            Kind::Angarium => &["amqp", "nats"],
            Kind::RabbitMq => &["amqp", "stomp", "mqtt"],
            Kind::Nats => &["nats", "jetstream"],
            Kind::Mosquitto => &["mqtt", "mqtt5"],
            // Its one port speaks them all; AMQP 1.0 is not spoken by this tool yet.
            Kind::Artemis => &["stomp", "mqtt", "mqtt5"],
            Kind::ActiveMq => &["stomp", "mqtt"],
            Kind::Redis => &["redis"],
        }
    }

    /// How to have it.
    pub fn hint(self) -> &'static str {
        match self {
            Kind::Angarium => "this program, or `--program angarium=PATH`",
            Kind::RabbitMq => "on Debian: apt-get install rabbitmq-server",
            Kind::Nats => "go install github.com/nats-io/nats-server/v2@latest",
            Kind::Mosquitto => "on Debian: apt-get install mosquitto",
            Kind::Redis => "on Debian: apt-get install redis-server",
            Kind::Artemis => {
                "from Maven: org.apache.activemq:apache-artemis:tar.gz:bin; then \
                 `--program artemis=FOLDER/bin/artemis`"
            }
            Kind::ActiveMq => {
                "from Maven: org.apache.activemq:apache-activemq:tar.gz:bin; then \
                 `--program activemq=FOLDER/bin/activemq`"
            }
        }
    }

    /// What its confirms of persistent messages say as it is configured here.
    pub fn level(self, protocol: Protocol) -> Level {
        match (self, protocol) {
            (_, Protocol::Nats) => Level::AtMostOnce,
            (Kind::Angarium | Kind::RabbitMq | Kind::Artemis | Kind::ActiveMq, _) => Level::Flushed,
            // It writes its store now and then, and never before it confirms.
            (Kind::Mosquitto, _) => Level::Memory,
            // Of what is added to a stream; a channel or a subject keeps and confirms nothing.
            (Kind::Redis, _) | (Kind::Nats, Protocol::JetStream) => Level::Flushed,
            (Kind::Nats, _) => Level::AtMostOnce,
        }
    }

    /// Its program, if it is here.
    pub fn find(self, programs: &Programs) -> Option<PathBuf> {
        if let Some(path) = programs.of(self) {
            return Some(path.to_owned());
        }
        match self {
            Kind::Angarium => {
                let own = env::current_exe().ok()?;
                if own.file_stem()?.to_str()? == "angarium" {
                    return Some(own);
                }
                let beside = own.with_file_name("angarium");
                beside.exists().then_some(beside).or_else(|| on_path("angarium"))
            }
            Kind::RabbitMq => RabbitMq::is_installed().then(|| PathBuf::from("rabbitmq-server")),
            Kind::Nats => on_path("nats-server"),
            Kind::Mosquitto => on_path("mosquitto"),
            Kind::Artemis => on_path("artemis"),
            Kind::ActiveMq => on_path("activemq"),
            Kind::Redis => on_path("redis-server"),
        }
    }

    /// Its version, as it says itself.
    pub fn version(self, program: &Path) -> String {
        let output = match self {
            Kind::RabbitMq => Command::new("dpkg-query")
                .args(["--show", "--showformat=${Version}", "rabbitmq-server"])
                .output(),
            Kind::Mosquitto => Command::new(program).arg("-h").output(),
            Kind::Artemis => Command::new(program).arg("version").output(),
            Kind::Angarium | Kind::Nats | Kind::ActiveMq | Kind::Redis => {
                Command::new(program).arg("--version").output()
            }
        };
        let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        first_version(&said.unwrap_or_default()).unwrap_or_else(|| "of unknown version".to_owned())
    }
}

/// The first word that begins with a digit, after `v` or `v=` if that is there.
pub(super) fn first_version(said: &str) -> Option<String> {
    // The classic ActiveMQ tells everything about its Java machine first, and Artemis nothing.
    let classic =
        said.rsplit("\nActiveMQ ").find(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let said = classic.unwrap_or(said);
    let bare = |word: &'_ str| word.trim_start_matches(['v', '=']).to_owned();
    let is_version = |word: &String| word.starts_with(|c: char| c.is_ascii_digit());
    said.split_whitespace().map(bare).find(is_version)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let home = env::var_os("HOME").map(|home| Path::new(&home).join("go/bin"));
    let more = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    env::split_paths(&path).chain(more).chain(home).map(|it| it.join(name)).find(|it| it.is_file())
}

/// Where programs are that are not found by themselves.
#[derive(Debug, Clone, Default)]
pub struct Programs(Vec<(Kind, PathBuf)>);

impl Programs {
    /// Reads `name=path` of each.
    pub fn parse(texts: &[String]) -> Result<Programs, String> {
        let one = |text: &String| {
            let (name, path) = text.split_once('=').ok_or("a program is NAME=PATH")?;
            let kind = Kind::from_name(name).ok_or_else(|| unknown(name))?;
            Ok::<_, String>((kind, PathBuf::from(path)))
        };
        Ok(Programs(texts.iter().map(one).collect::<Result<_, _>>()?))
    }

    /// This one, and what is found by itself.
    pub fn of_one(kind: Kind, program: &Path) -> Programs {
        Programs(vec![(kind, program.to_owned())])
    }

    fn of(&self, kind: Kind) -> Option<&Path> {
        self.0.iter().find(|(it, _)| *it == kind).map(|(_, path)| path.as_path())
    }
}

/// What to say about a broker that we do not know.
pub fn unknown(name: &str) -> String {
    let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    let why = FOREIGN.iter().find(|(foreign, _)| *foreign == name);
    let why = why.map_or(String::new(), |(_, speaks)| {
        format!(": it speaks {speaks}, of which there is no driver")
    });
    format!("no peer `{name}`{why}; there are: {}", names.join(", "))
}

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
        Peer::start_for(kind, kind.schemes()[0], programs, folder)
    }

    /// The same, configured for loads by one of its schemes, where that makes a difference.
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
        let version = kind.version(&program);
        if kind == Kind::RabbitMq {
            let broker = RabbitMq::start_with_plugins(folder)?;
            return Ok(Peer {
                kind,
                version,
                configuration: broker.configuration(),
                targets: broker.targets(),
                folder: folder.to_owned(),
                process: Process::RabbitMq(broker),
            });
        }
        let (command, targets, file) = command(kind, scheme, &program, folder)?;
        let log = folder.join("start.log");
        let broker = CommandBroker::start_logged(&command, &targets[0], PATIENCE, &log);
        let broker = broker.map_err(|error| match error {
            Error::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                io::Error::other(format!("{error}; to have it: {}", kind.hint())).into()
            }
            error => error,
        })?;
        let is_script = kind == Kind::Artemis;
        let running = if is_script { process::command_line(broker.pid()) } else { Vec::new() };
        let start = Start {
            environment: configuration::inherited(kind, env::vars_os()),
            command: &command,
            running: &running,
            files: file.as_deref(),
        };
        let configuration = start.describe();
        let (folder, process) = (folder.to_owned(), Process::Program(broker));
        Ok(Peer { kind, version, configuration, targets, folder, process })
    }

    /// Which it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its version, as it says itself.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its variables, its command line and what its files say.
    pub fn configuration(&self) -> &str {
        &self.configuration
    }

    /// All addresses, the one that loads use first.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Whether it is to flush what it keeps from now on, where one that does so is slower with what need
    /// not be flushed. Returns whether that makes a difference.
    pub fn set_durable(&mut self, durable: bool) -> Result<bool, Error> {
        match self.kind {
            Kind::Redis => redis::set_durable(&self.targets[0], durable).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Its process.
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

/// A broker that stays in the foreground: its command line, its addresses, and what its files say
/// and how they came about, if it has any.
pub(super) type Foreground = (Vec<String>, Vec<Target>, Option<String>);

fn command(kind: Kind, scheme: &str, program: &Path, folder: &Path) -> Result<Foreground, Error> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let address = |scheme: &str, port: u16| -> Result<Target, Error> {
        Ok(format!("{scheme}://127.0.0.1:{port}").parse().map_err(io::Error::other)?)
    };
    let program = text(program);
    let port = free_port()?;
    Ok(match kind {
        Kind::Angarium => {
            let nats = free_port()?;
            let data = text(&folder.join("data"));
            let (amqp_at, nats_at) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{nats}"));
            let flags =
                ["serve", "--data", &data, "--amqp", &amqp_at, "--nats", &nats_at, "--http", "off"];
            let command = std::iter::once(program).chain(flags.map(str::to_owned)).collect();
            (command, vec![address("amqp", port)?, address("nats", nats)?], None)
        }
        Kind::Nats if scheme == "jetstream" => return nats::with_streams(&program, folder, port),
        Kind::Nats => return nats::without_streams(&program, folder, port),
        Kind::Mosquitto => {
            // Without these three it drops what a subscriber has not taken beyond 20 and 1,000.
            let file = format!(
                "listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n\
                 persistence false\nmax_inflight_messages 0\nmax_queued_messages 0\n\
                 max_queued_bytes 0\nlog_type error\n"
            );
            let path = folder.join("mosquitto.conf");
            fs::write(&path, &file)?;
            let command = vec![program, "-c".to_owned(), text(&path)];
            (command, vec![address("mqtt", port)?, address("mqtt5", port)?], Some(file))
        }
        Kind::Artemis => return activemq::artemis(&program, folder, port),
        Kind::ActiveMq => return activemq::classic(&program, folder, port),
        Kind::Redis => return redis::command(&program, folder, port),
        Kind::RabbitMq => unreachable!("it is started by its own script"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (said, version) in [
            ("nats-server: v2.15.2\n", Some("2.15.2")),
            ("mosquitto version 2.0.11\n\nmosquitto is", Some("2.0.11")),
            ("angarium 0.1.0", Some("0.1.0")),
            ("3.10.8-1.1+deb12u1", Some("3.10.8-1.1+deb12u1")),
            ("Java Runtime: Debian 17.0.15 /usr\n\nActiveMQ 5.18.3\nFor help", Some("5.18.3")),
            ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64", Some("7.0.15")),
            (
                "Apache ActiveMQ Artemis 2.40.0\nActiveMQ Artemis home: /opt/a\nActiveMQ Artemis \
                 instance: null\n",
                Some("2.40.0"),
            ),
            ("nothing of that kind", None),
        ] {
            assert_eq!(first_version(said).as_deref(), version);
        }
    }

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

    #[test]
    fn programs_are_named() {
        let programs = Programs::parse(&["nats=/opt/nats".to_owned()]).expect("it is one");
        assert_eq!(Kind::Nats.find(&programs), Some(PathBuf::from("/opt/nats")));
        assert!(Programs::parse(&["nats".to_owned()]).is_err());
        assert!(Programs::parse(&["x=y".to_owned()]).is_err_and(|why| why.contains("rabbitmq")));
        assert!(unknown("kafka").contains("of its own"), "{}", unknown("kafka"));
    }
}

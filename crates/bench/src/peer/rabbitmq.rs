//! RabbitMQ on loopback, with all its files in one folder: that of Debian's package, or of another script.
//!
//! Its start script forks and leaves a name server (`epmd`) running, so the processes to stop are found
//! by their ports.

use super::command::{self, RETRY, wait_until_open};
use super::configuration::{self, Start};
use super::kind::Kind;
use super::port::free_port;
use crate::client::{Error, Link, Target, amqp091};
use crate::measure::process::{command_line, listener_pid};
use crate::process_reaper;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// The start script of Debian's package.
pub(super) const SCRIPT: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
/// What the script prints, in the broker's folder.
const START_LOG: &str = "start.log";

/// A running RabbitMQ; stopped when dropped.
#[derive(Debug)]
pub struct RabbitMq {
    script: Child,
    program: PathBuf,
    folder: PathBuf,
    ports: Ports,
    processes: Processes,
    uri: Target,
}

/// Its ports.
#[derive(Debug, Clone, Copy)]
struct Ports {
    amqp: u16,
    name_server: u16,
    peers: u16,
    /// STOMP and MQTT, if the plugins are enabled.
    plugins: Option<PluginPorts>,
}

/// The ports of the plugins.
#[derive(Debug, Clone, Copy)]
struct PluginPorts {
    stomp: u16,
    mqtt: u16,
}

/// Its processes.
#[derive(Debug, Clone, Copy)]
struct Processes {
    /// The Erlang VM.
    machine: u32,
    name_server: Option<u32>,
}

impl RabbitMq {
    /// Whether it is installed.
    pub fn is_installed() -> bool {
        Path::new(SCRIPT).exists()
    }

    /// Starts one by its script `program`, or Debian's, in `folder`, which must be empty, with the STOMP and
    /// MQTT plugins or without, and waits until it answers.
    pub fn start(program: Option<&Path>, folder: &Path, plugins: bool) -> Result<RabbitMq, Error> {
        let program = program.unwrap_or(Path::new(SCRIPT)).to_owned();
        if !program.exists() {
            let (hint, program) = (Kind::RabbitMq.hint(), program.display());
            return Err(io::Error::other(format!("there is no {program}; {hint}")).into());
        }
        let ports = || Ok::<_, io::Error>(PluginPorts { stomp: free_port()?, mqtt: free_port()? });
        let plugins = plugins.then(ports).transpose()?;
        let (amqp, name_server, peers) = (free_port()?, free_port()?, free_port()?);
        let ports = Ports { amqp, name_server, peers, plugins };
        fs::create_dir_all(folder.join("base"))?;
        fs::write(folder.join("rabbitmq.conf"), ports.configuration())?;
        fs::write(folder.join("enabled_plugins"), ports.enabled())?;
        let mut script = spawn(&program, folder, &ports)?;
        let processes = wait(&mut script, &ports, folder)?;
        let folder = folder.to_owned();
        Ok(RabbitMq { script, program, folder, ports, processes, uri: ports.uri() })
    }

    /// Kills its process by SIGKILL.
    pub fn kill(&mut self) -> Result<(), Error> {
        let pid = i32::try_from(self.processes.machine).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::KILL).map_err(io::Error::from)?;
        }
        process_reaper::ended(self.processes.machine);
        self.script.wait()?;
        process_reaper::ended(self.script.id());
        Ok(end(self.processes.name_server.take())?)
    }

    /// Starts it again with the same data and ports, and waits until it answers.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.script = spawn(&self.program, &self.folder, &self.ports)?;
        self.processes = wait(&mut self.script, &self.ports, &self.folder)?;
        Ok(())
    }

    /// Its variables, command lines and configuration files.
    pub fn configuration(&self) -> String {
        let running = command_line(self.processes.machine);
        describe(&self.program, &self.folder, &self.ports, env::vars_os(), &running)
    }

    /// The version that it reports to clients.
    pub fn version(&self) -> String {
        amqp091::server_version(&self.uri).unwrap_or_else(|| "of unknown version".to_owned())
    }

    /// All addresses: AMQP 0-9-1 first, then those of the plugins.
    pub fn targets(&self) -> Vec<Target> {
        let mut targets = vec![self.uri.clone()];
        if let Some(PluginPorts { stomp, mqtt }) = self.ports.plugins {
            let addresses = [
                format!("stomp://guest:guest@127.0.0.1:{stomp}"),
                format!("mqtt://guest:guest@127.0.0.1:{mqtt}"),
            ];
            targets.extend(addresses.iter().filter_map(|address| address.parse().ok()));
        }
        targets
    }

    /// The process id of the Erlang VM.
    pub fn pid(&self) -> u32 {
        self.processes.machine
    }

    /// Its AMQP 0-9-1 address.
    pub fn uri(&self) -> &Target {
        &self.uri
    }

    fn stop(&mut self) -> io::Result<()> {
        end(Some(self.processes.machine))?;
        let asked = Instant::now();
        while self.script.try_wait()?.is_none() {
            if asked.elapsed() > Duration::from_secs(20) {
                self.script.kill()?;
            }
            thread::sleep(Duration::from_millis(20));
        }
        process_reaper::ended(self.script.id());
        end(self.processes.name_server)
    }
}

impl Ports {
    fn configuration(&self) -> String {
        let mut text = format!(
            "listeners.tcp.default = 127.0.0.1:{}\nlog.console = false\nlog.file.level = warning\n",
            self.amqp
        );
        if let Some(PluginPorts { stomp, mqtt }) = self.plugins {
            text += &format!(
                "stomp.listeners.tcp.1 = 127.0.0.1:{stomp}\nmqtt.listeners.tcp.1 = 127.0.0.1:{mqtt}\n"
            );
        }
        text
    }

    fn enabled(&self) -> &'static str {
        match self.plugins {
            Some(_) => "[rabbitmq_stomp,rabbitmq_mqtt].\n",
            None => "[].\n",
        }
    }

    fn uri(&self) -> Target {
        format!("amqp://127.0.0.1:{}", self.amqp).parse().expect("it is an address")
    }
}

/// The variables that configure its script, which has no flags.
fn environment(folder: &Path, ports: &Ports) -> Vec<(&'static str, OsString)> {
    let within = |name: &str| folder.join(name).into_os_string();
    vec![
        ("HOME", folder.as_os_str().to_owned()),
        ("RABBITMQ_BASE", within("base")),
        ("RABBITMQ_MNESIA_BASE", within("mnesia")),
        ("RABBITMQ_LOG_BASE", within("log")),
        ("RABBITMQ_CONFIG_FILE", within("rabbitmq.conf")),
        ("RABBITMQ_ENABLED_PLUGINS_FILE", within("enabled_plugins")),
        ("RABBITMQ_CONF_ENV_FILE", "/dev/null".into()),
        ("RABBITMQ_NODENAME", format!("bench{}@localhost", ports.amqp).into()),
        ("RABBITMQ_DIST_PORT", ports.peers.to_string().into()),
        ("ERL_EPMD_ADDRESS", "127.0.0.1".into()),
        ("ERL_EPMD_PORT", ports.name_server.to_string().into()),
        (
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            "-kernel inet_dist_use_interface {127,0,0,1}".into(),
        ),
    ]
}

/// Describes its variables, command lines and files, given this process's variables and its own command
/// line.
fn describe(
    program: &Path,
    folder: &Path,
    ports: &Ports,
    inherited: impl Iterator<Item = (OsString, OsString)>,
    running: &[String],
) -> String {
    let set = environment(folder, ports);
    // Variables set here are not inherited.
    let inherited = inherited.filter(|(name, _)| set.iter().all(|(other, _)| name != *other));
    let mut all = configuration::inherited(Kind::RabbitMq.environment(), inherited);
    let text = |value: &OsString| value.to_string_lossy().into_owned();
    all.extend(set.iter().map(|(name, value)| ((*name).to_owned(), text(value))));
    let (file, enabled) = (ports.configuration(), ports.enabled());
    let files = format!("# rabbitmq.conf\n{file}# enabled_plugins\n{enabled}");
    let command = [program.to_string_lossy().into_owned()];
    Start { environment: all, command: &command, running, files: Some(&files) }.describe()
}

fn spawn(program: &Path, folder: &Path, ports: &Ports) -> io::Result<Child> {
    let log = fs::File::create(folder.join(START_LOG))?;
    let mut script = Command::new(program);
    script.envs(environment(folder, ports)).stdout(log.try_clone()?).stderr(log);
    command::start(&mut script)
}

/// Waits until it answers. The error ends with what its script printed last, since its folder goes.
fn wait(script: &mut Child, ports: &Ports, folder: &Path) -> Result<Processes, Error> {
    let opened = wait_until_open(&ports.uri(), Duration::from_secs(60), RETRY, || {
        Ok(script.try_wait()?.map(|status| format!("rabbitmq-server ended: {status}")))
    })
    .and_then(Link::close);
    let name_server_pid = listener_pid(ports.name_server);
    if let Err(error) = opened {
        script.kill()?;
        script.wait()?;
        end(name_server_pid)?;
        let printed = fs::read(folder.join(START_LOG)).unwrap_or_default();
        let printed = String::from_utf8_lossy(&printed);
        let last: Vec<&str> = printed.lines().rev().take(5).collect();
        let last = last.into_iter().rev().collect::<Vec<_>>().join("\n");
        let why = format!("rabbitmq-server did not start: {error}; it printed:\n{last}");
        return Err(io::Error::other(why).into());
    }
    let pid = listener_pid(ports.amqp).unwrap_or_else(|| script.id());
    std::iter::once(pid).chain(name_server_pid).for_each(process_reaper::started);
    Ok(Processes { machine: pid, name_server: name_server_pid })
}

impl Drop for RabbitMq {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!(
                "RabbitMQ, process {}, could not be stopped: {error}",
                self.processes.machine
            );
        }
    }
}

/// Sends SIGTERM to a process, if it is running.
fn end(pid: Option<u32>) -> io::Result<()> {
    pid.into_iter().for_each(process_reaper::ended);
    let pid = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    match pid {
        Some(pid) if test_kill_process(pid).is_ok() => Ok(kill_process(pid, Signal::TERM)?),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_it_was_started_with_is_told() {
        let ports = Ports {
            amqp: 1,
            name_server: 2,
            peers: 3,
            plugins: Some(PluginPorts { stomp: 4, mqtt: 5 }),
        };
        let inherited = [
            ("RABBITMQ_IO_THREAD_POOL_SIZE", "4"),
            ("RABBITMQ_BASE", "/elsewhere"),
            ("PATH", "/usr/bin"),
        ];
        let inherited = inherited.map(|(name, value)| (name.into(), value.into())).into_iter();
        let running = ["beam.smp", "-W", "w", "-s", "prelaunch"].map(str::to_owned);
        let text = describe(Path::new(SCRIPT), Path::new("/data"), &ports, inherited, &running);
        assert_eq!(
            text,
            "RABBITMQ_IO_THREAD_POOL_SIZE=4\nHOME=/data\nRABBITMQ_BASE=/data/base\n\
             RABBITMQ_MNESIA_BASE=/data/mnesia\nRABBITMQ_LOG_BASE=/data/log\n\
             RABBITMQ_CONFIG_FILE=/data/rabbitmq.conf\n\
             RABBITMQ_ENABLED_PLUGINS_FILE=/data/enabled_plugins\n\
             RABBITMQ_CONF_ENV_FILE=/dev/null\nRABBITMQ_NODENAME=bench1@localhost\n\
             RABBITMQ_DIST_PORT=3\nERL_EPMD_ADDRESS=127.0.0.1\nERL_EPMD_PORT=2\n\
             RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}'\n\
             /usr/lib/rabbitmq/bin/rabbitmq-server\n# which runs as\nbeam.smp -W w -s prelaunch\n\
             # rabbitmq.conf\nlisteners.tcp.default = 127.0.0.1:1\nlog.console = false\n\
             log.file.level = warning\nstomp.listeners.tcp.1 = 127.0.0.1:4\n\
             mqtt.listeners.tcp.1 = 127.0.0.1:5\n# enabled_plugins\n\
             [rabbitmq_stomp,rabbitmq_mqtt].\n"
        );
    }
}

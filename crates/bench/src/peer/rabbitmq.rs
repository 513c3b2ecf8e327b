//! RabbitMQ as Debian packages it, on loopback, with all that it writes in one folder.
//!
//! Its start script forks and leaves a name server (`epmd`) behind, so what is stopped is found by
//! the ports.

use super::command::wait_until_open;
use super::free_port;
use crate::client::amqp091::Uri;
use crate::client::{Error, Target};
use crate::measure::process::listener_pid;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Where Debian's package has its start script.
const SCRIPT: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/// A running RabbitMQ; stopped when dropped.
#[derive(Debug)]
pub struct RabbitMq {
    script: Child,
    pid: u32,
    name_server_pid: Option<u32>,
    uri: Target,
}

impl RabbitMq {
    /// Starts one in `folder`, which must be empty, and waits until it answers.
    pub fn start(folder: &Path) -> Result<RabbitMq, Error> {
        if !Path::new(SCRIPT).exists() {
            let hint = "RabbitMQ is not installed; on Debian: apt-get install rabbitmq-server";
            return Err(io::Error::other(hint).into());
        }
        let [port, name_port, peer_port] = [free_port()?, free_port()?, free_port()?];
        fs::create_dir_all(folder.join("base"))?;
        let config = format!(
            "listeners.tcp.default = 127.0.0.1:{port}\nlog.console = false\nlog.file.level = warning\n"
        );
        fs::write(folder.join("rabbitmq.conf"), config)?;
        fs::write(folder.join("enabled_plugins"), "[].\n")?;
        let log = fs::File::create(folder.join("start.log"))?;
        let mut script = Command::new(SCRIPT)
            .env("HOME", folder)
            .env("RABBITMQ_BASE", folder.join("base"))
            .env("RABBITMQ_MNESIA_BASE", folder.join("mnesia"))
            .env("RABBITMQ_LOG_BASE", folder.join("log"))
            .env("RABBITMQ_CONFIG_FILE", folder.join("rabbitmq.conf"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("enabled_plugins"))
            .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
            .env("RABBITMQ_NODENAME", format!("bench{port}@localhost"))
            .env("RABBITMQ_DIST_PORT", peer_port.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("ERL_EPMD_PORT", name_port.to_string())
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "-kernel inet_dist_use_interface {127,0,0,1}",
            )
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let uri = Target::Amqp091(Uri {
            user: "guest".to_owned(),
            password: "guest".to_owned(),
            host: "127.0.0.1".to_owned(),
            port,
            virtual_host: "/".to_owned(),
        });
        let opened = wait_until_open(&uri, Duration::from_secs(60), || {
            Ok(script.try_wait()?.map(|status| format!("rabbitmq-server ended: {status}")))
        });
        let name_server_pid = listener_pid(name_port);
        if let Err(error) = opened {
            script.kill()?;
            script.wait()?;
            end(name_server_pid)?;
            return Err(error);
        }
        let pid = listener_pid(port).unwrap_or_else(|| script.id());
        Ok(RabbitMq { script, pid, name_server_pid, uri })
    }

    /// The process of the Erlang machine.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where it listens.
    pub fn uri(&self) -> &Target {
        &self.uri
    }

    fn stop(&mut self) -> io::Result<()> {
        end(Some(self.pid))?;
        let asked = Instant::now();
        while self.script.try_wait()?.is_none() {
            if asked.elapsed() > Duration::from_secs(20) {
                self.script.kill()?;
            }
            thread::sleep(Duration::from_millis(20));
        }
        end(self.name_server_pid)
    }
}

impl Drop for RabbitMq {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("RabbitMQ, process {}, could not be stopped: {error}", self.pid);
        }
    }
}

/// Asks a process to end, if it still runs.
fn end(pid: Option<u32>) -> io::Result<()> {
    let pid = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    match pid {
        Some(pid) if test_kill_process(pid).is_ok() => Ok(kill_process(pid, Signal::TERM)?),
        _ => Ok(()),
    }
}

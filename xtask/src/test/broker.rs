//! Starts the program as users do, in an empty data folder, on free ports of the loopback address.

use super::certificates;
use crate::layout;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The URL of another broker to test, instead of one that is started here.
const URL_VARIABLE: &str = "BROKER_TEST_URL";
/// Tells clients the broker's AMQP URL.
pub(super) const AMQP_URL: &str = "AMQP_URL";
/// Lets the broker choose a free port and print it.
const ANY_PORT: &str = "127.0.0.1:0";
/// Begins the line that it prints after its listeners.
const AFTER_LISTENERS: &str = "  data in ";
/// How long a start or a stop may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// An environment variable of clients.
type Variable = (&'static str, String);

/// A running broker; stopped when dropped.
#[derive(Debug)]
pub(super) struct Broker {
    /// Tells clients where and what the broker is.
    pub(super) environment: Vec<Variable>,
    child: Option<Child>,
}

impl Broker {
    /// Starts the release build with its data in the target folder, or uses the broker that the environment
    /// names.
    pub(super) fn start(
        root: &Path,
        name: &str,
        shards: usize,
        tls: bool,
    ) -> Result<Broker, String> {
        if let Ok(url) = std::env::var(URL_VARIABLE) {
            println!("broker: {url} ({URL_VARIABLE})");
            return Ok(Broker { environment: vec![(AMQP_URL, url)], child: None });
        }
        let target = layout::target_folder(root)?;
        let data = target.join("clients/data").join(name);
        fresh(&data)?;
        let program = layout::program(root)?;
        let mut command = Command::new(&program);
        command.args(["serve", "--http", "off", "--amqp", ANY_PORT, "--nats", ANY_PORT]);
        command.args(["--stomp", ANY_PORT, "--mqtt", ANY_PORT]);
        command.args(["--ws", ANY_PORT, "--any", ANY_PORT]);
        command.args(["--shards", &shards.to_string(), "--data"]).arg(&data);
        // Spreads clients over the shards, so that AMQP clients are on other shards than their queues.
        command.args(["--clients-together", "0"]);
        let mut environment = vec![
            ("BROKER_TEST_PROGRAM", program.display().to_string()),
            ("BROKER_TEST_DATA", data.display().to_string()),
        ];
        if tls {
            let folder = target.join("clients/certificates");
            fresh(&folder)?;
            certificates::make(&folder)?;
            command.args(["--amqps", ANY_PORT, "--nats-tls", ANY_PORT, "--stomps", ANY_PORT]);
            command.args(["--mqtts", ANY_PORT]);
            command.arg("--tls-certificate");
            command.arg(folder.join("server.pem")).arg("--tls-key").arg(folder.join("server.key"));
            command.arg("--tls-client-authorities").arg(folder.join("authority.pem"));
            command.arg("--tls-client-revocations").arg(folder.join("revoked.pem"));
            environment.push(("BROKER_TEST_CERTIFICATES", folder.display().to_string()));
        }
        Broker::run(command, environment, |listener, address| {
            let port = || address.port().to_string();
            Some(match listener {
                "amqp" => (AMQP_URL, format!("amqp://guest:guest@{address}/%2f")),
                "nats" => ("NATS_URL", format!("nats://{address}")),
                "amqps" => ("BROKER_TEST_TLS_PORT", port()),
                "mqtt" => ("BROKER_TEST_MQTT_PORT", port()),
                "mqtts" => ("BROKER_TEST_MQTTS_PORT", port()),
                "stomp" => ("BROKER_TEST_STOMP_PORT", port()),
                "stomps" => ("BROKER_TEST_STOMPS_PORT", port()),
                "ws" => ("BROKER_TEST_WS_PORT", port()),
                "any" => ("BROKER_TEST_ANY_PORT", port()),
                "nats-tls" => ("BROKER_TEST_NATS_TLS_PORT", port()),
                _ => return None,
            })
        })
    }

    /// Starts a broker with little memory and its data in `folder`, which is on a small disk.
    pub(super) fn start_small(root: &Path, folder: &Path, shards: usize) -> Result<Broker, String> {
        let mut command = Command::new(layout::program(root)?);
        command.args(["serve", "--http", "off", "--nats", "off", "--amqp", ANY_PORT]);
        command.args(["--stomp", "off", "--mqtt", "off"]);
        command.args(["--segment-bytes", "1MiB", "--checkpoint-bytes", "1MiB"]);
        command.args(["--shards", &shards.to_string(), "--clients-together", "0"]);
        // Most messages in queues are on the disk only.
        command.args(["--resident-bytes-max", "1MiB", "--queue-resident-bytes-max", "1MiB"]);
        command.arg("--data").arg(folder.join("data"));
        let environment = vec![("BROKER_TEST_SMALL_DISK", folder.display().to_string())];
        Broker::run(command, environment, |listener, address| {
            let url = format!("amqp://guest:guest@{address}/%2f");
            (listener == "amqp").then_some(("BROKER_TEST_SMALL_URL", url))
        })
    }

    /// Whether the environment names a broker, so that none is started.
    pub(super) fn is_given() -> bool {
        std::env::var_os(URL_VARIABLE).is_some()
    }

    /// Starts the broker, and adds to `environment` what `variable_of` returns for each listener.
    fn run(
        mut command: Command,
        environment: Vec<Variable>,
        variable_of: impl Fn(&str, SocketAddr) -> Option<Variable>,
    ) -> Result<Broker, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            format!("cannot start {}: {error}", command.get_program().to_string_lossy())
        })?;
        let stdout = child.stdout.take().expect("standard output was asked for as a pipe");
        let stderr = child.stderr.take().expect("standard error was asked for as a pipe");
        let mut broker = Broker { environment, child: Some(child) };
        let errors = std::thread::spawn(|| show_errors(stderr));
        let printed = lines(stdout);
        loop {
            match printed.recv_timeout(PATIENCE) {
                Ok(line) if line.starts_with(AFTER_LISTENERS) => return Ok(broker),
                Ok(line) => {
                    if let Some((name, address)) = listener(&line) {
                        broker.environment.extend(variable_of(name, address));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("the broker does not listen after {PATIENCE:?}"));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let last = errors.join().unwrap_or_default();
                    return Err(format!("the broker ended at its start: {last}"));
                }
            }
        }
    }

    fn exited(&mut self) -> Result<Option<std::process::ExitStatus>, String> {
        let Some(child) = &mut self.child else { return Ok(None) };
        child.try_wait().map_err(|error| format!("broker: {error}"))
    }

    /// Sends SIGTERM and waits; fails if the broker had ended before, or ends with an error.
    pub(super) fn stop(mut self) -> Result<(), String> {
        if let Some(status) = self.exited()? {
            self.child = None;
            return Err(format!("the broker ended during the tests ({status})"));
        }
        let Some(child) = &self.child else { return Ok(()) };
        let pid = child.id().to_string();
        let killed = Command::new("kill").args(["-TERM", &pid]).status();
        killed.map_err(|error| format!("cannot start 'kill': {error}"))?;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.exited()? {
                self.child = None;
                let failed = format!("the broker failed on SIGTERM ({status})");
                return if status.success() { Ok(()) } else { Err(failed) };
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(format!("the broker does not end {PATIENCE:?} after SIGTERM"))
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The child may have ended, and an error here could not be reported.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Makes `folder` an empty folder.
pub(super) fn fresh(folder: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(failed)?;
    }
    std::fs::create_dir_all(folder).map_err(failed)
}

/// The lines of its standard output; it is read even if no line is received.
fn lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}

/// Shows its standard error; returns the last line when it has ended.
fn show_errors(stderr: ChildStderr) -> String {
    let shown = |line: &String| eprintln!("{line}");
    let lines = BufReader::new(stderr).lines().map_while(Result::ok);
    lines.inspect(shown).last().unwrap_or_default()
}

/// A listener and its address, of a line such as `  amqp on 127.0.0.1:5672`.
fn listener(line: &str) -> Option<(&str, SocketAddr)> {
    let (name, address) = line.trim_start().split_once(" on ")?;
    Some((name, address.parse().ok()?))
}

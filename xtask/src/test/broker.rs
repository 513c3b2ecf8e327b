//! The program as users start it: in a fresh data folder, on a free port of the loopback address.

use super::certificates;
use crate::layout;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where a broker of the user's choice is, instead of one that is started here.
const URL_VARIABLE: &str = "BROKER_TEST_URL";
/// How long a start or a stop may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running broker; stopped when dropped.
#[derive(Debug)]
pub(super) struct Broker {
    /// What clients need to know, as variables of their environment.
    pub(super) environment: Vec<(&'static str, String)>,
    child: Option<Child>,
}

impl Broker {
    /// Starts the release build with its data in the target folder, or takes the one that the environment
    /// names (to try the tests on another broker).
    pub(super) fn start(
        root: &Path,
        name: &str,
        shards: usize,
        tls: bool,
    ) -> Result<Broker, String> {
        if let Ok(url) = std::env::var(URL_VARIABLE) {
            println!("broker: {url} ({URL_VARIABLE})");
            return Ok(Broker { environment: vec![("AMQP_URL", url)], child: None });
        }
        let target = layout::target_folder(root)?;
        let data = target.join("clients/data").join(name);
        fresh(&data)?;
        let address = free_address()?;
        let nats = free_address()?;
        let program = layout::program(root)?;
        let mut command = Command::new(&program);
        command.args(["serve", "--http", "off", "--amqp", &address.to_string(), "--data"]);
        command
            .arg(&data)
            .args(["--nats", &nats.to_string(), "--shards", &shards.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut environment = vec![
            ("AMQP_URL", format!("amqp://guest:guest@{address}/%2f")),
            ("NATS_URL", format!("nats://{nats}")),
            ("BROKER_TEST_PROGRAM", program.display().to_string()),
            ("BROKER_TEST_DATA", data.display().to_string()),
        ];
        if tls {
            let folder = target.join("clients/certificates");
            fresh(&folder)?;
            certificates::make(&folder)?;
            let address = free_address()?;
            command.args(["--amqps", &address.to_string(), "--tls-certificate"]);
            command.arg(folder.join("server.pem")).arg("--tls-key").arg(folder.join("server.key"));
            command.arg("--tls-client-authorities").arg(folder.join("authority.pem"));
            environment.push(("BROKER_TEST_TLS_PORT", address.port().to_string()));
            let address = free_address()?;
            command.args(["--nats-tls", &address.to_string()]);
            environment.push(("BROKER_TEST_NATS_TLS_PORT", address.port().to_string()));
            environment.push(("BROKER_TEST_CERTIFICATES", folder.display().to_string()));
        }
        Broker::run(command, address, environment)
    }

    /// Starts a second one with its data in `folder`, which is on a small disk, and little memory.
    pub(super) fn start_small(root: &Path, folder: &Path, shards: usize) -> Result<Broker, String> {
        let address = free_address()?;
        let mut command = Command::new(layout::program(root)?);
        command.args(["serve", "--http", "off", "--nats", "off", "--amqp", &address.to_string()]);
        command.args(["--segment-bytes", "1MiB", "--checkpoint-bytes", "1MiB"]);
        command.args(["--shards", &shards.to_string()]);
        // What waits is soon on the disk alone.
        command.args(["--resident-bytes-max", "1MiB", "--queue-resident-bytes-max", "1MiB"]);
        command.arg("--data");
        command.arg(folder.join("data")).stdin(Stdio::null()).stdout(Stdio::null());
        let environment = vec![
            ("BROKER_TEST_SMALL_URL", format!("amqp://guest:guest@{address}/%2f")),
            ("BROKER_TEST_SMALL_DISK", folder.display().to_string()),
        ];
        Broker::run(command, address, environment)
    }

    /// Whether the environment names a broker, and none is started.
    pub(super) fn is_given() -> bool {
        std::env::var_os(URL_VARIABLE).is_some()
    }

    fn run(
        mut command: Command,
        address: SocketAddr,
        environment: Vec<(&'static str, String)>,
    ) -> Result<Broker, String> {
        let child = command.spawn().map_err(|error| {
            format!("cannot start {}: {error}", command.get_program().to_string_lossy())
        })?;
        let mut broker = Broker { environment, child: Some(child) };
        broker.wait_until_it_listens(address)?;
        Ok(broker)
    }

    fn wait_until_it_listens(&mut self, address: SocketAddr) -> Result<(), String> {
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = self.exited()? {
                return Err(format!("the broker ended at its start ({status})"));
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("the broker does not listen on {address} after {PATIENCE:?}"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn exited(&mut self) -> Result<Option<std::process::ExitStatus>, String> {
        let Some(child) = &mut self.child else { return Ok(None) };
        child.try_wait().map_err(|error| format!("broker: {error}"))
    }

    /// Asks it to end (SIGTERM) and waits; fails if it had ended before, or ends badly.
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
                let failed = format!("the broker ended badly on SIGTERM ({status})");
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
            // The child may be gone already, and there is nothing left to report to.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// An empty folder, whatever was there.
pub(super) fn fresh(folder: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(failed)?;
    }
    std::fs::create_dir_all(folder).map_err(failed)
}

fn free_address() -> Result<SocketAddr, String> {
    let listener =
        TcpListener::bind(("127.0.0.1", 0)).map_err(|error| format!("no port: {error}"))?;
    listener.local_addr().map_err(|error| format!("no port: {error}"))
}

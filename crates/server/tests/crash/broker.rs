//! The real program, started, killed and started again on the same data folder.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a start or an end may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A shell command that starts another broker on port 15999, to try these tests on it.
const COMMAND: &str = "CRASH_COMMAND";

/// The program to test, instead of the one that Cargo built for these tests.
const PROGRAM: &str = "CRASH_PROGRAM";

/// A running broker. It is killed when dropped.
#[derive(Debug)]
pub(crate) struct Broker {
    /// Where it listens for AMQP.
    pub(crate) address: SocketAddr,
    /// Where it listens for MQTT.
    pub(crate) mqtt: SocketAddr,
    data: PathBuf,
    child: Child,
}

impl Broker {
    /// Starts it with its data in `data`.
    pub(crate) fn start(data: &Path) -> Broker {
        let foreign = std::env::var(COMMAND).ok();
        let port = if foreign.is_some() { 15_999 } else { free_port() };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mqtt = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let child = spawn(foreign.as_deref(), data, [address, mqtt]);
        let mut broker = Broker { address, mqtt, data: data.to_path_buf(), child };
        broker.wait_until_it_listens();
        broker
    }

    /// kill -9, and a new start; returns how long the start took.
    pub(crate) fn kill_and_restart(&mut self) -> Duration {
        self.kill();
        self.restart()
    }

    /// kill -9, unless it was killed already.
    pub(crate) fn kill(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        self.signal("KILL");
        self.child.wait().expect("a child can be waited for");
        // Where a script started it, the script may be gone before the broker is.
        let begun = Instant::now();
        while TcpStream::connect(self.address).is_ok() {
            assert!(begun.elapsed() < PATIENCE, "the broker survives kill -9");
        }
    }

    /// Starts it again where it was.
    pub(crate) fn restart(&mut self) -> Duration {
        let begun = Instant::now();
        self.child = self.spawn();
        self.wait_until_it_listens();
        begun.elapsed()
    }

    /// kill -9, a start, and kill -9 again after `delay`, wherever it is then; and a start.
    pub(crate) fn kill_and_restart_within(&mut self, delay: Duration) {
        self.kill();
        self.child = self.spawn();
        std::thread::sleep(delay);
        self.kill();
        self.restart();
    }

    fn spawn(&self) -> Child {
        let foreign = std::env::var(COMMAND).ok();
        spawn(foreign.as_deref(), &self.data, [self.address, self.mqtt])
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "the broker does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn signal(&self, name: &str) {
        // The whole process group: another broker may be started by a script.
        let group = format!("-{}", self.child.id());
        let status = Command::new("kill").args(["-s", name, "--", &group]).status();
        assert!(status.is_ok_and(|status| status.success()), "cannot send SIG{name}");
    }

    fn wait_until_it_listens(&mut self) {
        let begun = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            let ended = self.child.try_wait().expect("a child can be waited for");
            assert!(ended.is_none(), "the broker ended at its start: {ended:?}");
            assert!(begun.elapsed() < PATIENCE, "the broker does not listen");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

fn spawn(foreign: Option<&str>, data: &Path, [amqp, mqtt]: [SocketAddr; 2]) -> Child {
    let mut command = match foreign {
        Some(line) => {
            let mut command = Command::new("sh");
            command.args(["-c", line]);
            command
        }
        None => {
            let built = || env!("CARGO_BIN_EXE_angarium").into();
            let mut command = Command::new(std::env::var_os(PROGRAM).unwrap_or_else(built));
            command.args([
                "serve",
                "--http",
                "off",
                "--nats",
                "off",
                "--mqtt",
                &mqtt.to_string(),
                "--stomp",
                "off",
                "--amqp",
                &amqp.to_string(),
                "--data",
            ]);
            command.arg(data);
            command
        }
    };
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().expect("the program can be started")
}

fn free_port() -> u16 {
    let listener =
        TcpListener::bind(("127.0.0.1", 0)).expect("the loopback address has free ports");
    listener.local_addr().expect("a bound listener has an address").port()
}

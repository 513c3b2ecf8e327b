//! Commands whose output is a pipe that nobody reads any more, as behind `head`: they end quietly, and a
//! broker goes on.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a start or an end may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A broker, which is killed when dropped.
struct Broker(Child);

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program with its output to a pipe whose reader has gone.
fn unread(arguments: &[&str]) -> Command {
    let (reader, writer) = std::io::pipe().expect("there are pipes");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_angarium"));
    command.args(arguments).stdin(Stdio::null()).stdout(writer);
    command
}

fn output(arguments: &[&str]) -> Output {
    let mut command = unread(arguments);
    command.stderr(Stdio::piped()).spawn().and_then(Child::wait_with_output).expect("it was built")
}

#[track_caller]
fn check_quiet(arguments: &[&str]) {
    let Output { status, stderr, .. } = output(arguments);
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.success() && said.is_empty(), "{arguments:?}: {status}: {said}");
}

/// Waits until that is so.
fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn who_has_read_enough_ends_commands_quietly_and_no_broker() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let data = &folder.path().display().to_string();
    // Clients come by a socket in the folder: no port has to be free.
    let socket = &format!("{data}/amqp.sock");
    let amqp = &format!("unix:{socket}");
    let off = ["--nats", "off", "--stomp", "off", "--mqtt", "off", "--http", "off"];
    let ports = [&off[..], &["--amqp", amqp]].concat();
    let serve = [&["serve", "--data", data][..], &ports].concat();
    let mut broker = Broker(unread(&serve).spawn().expect("it was built"));
    until(|| {
        let ended = broker.0.try_wait().expect("a child can be waited for");
        assert!(ended.is_none(), "nobody reads what it says: {ended:?}");
        output(&["queue", "list", "--data", data]).status.success() && Path::new(socket).exists()
    });
    for arguments in [
        &["queue", "add", "q", "--data", data][..],
        &["status", "--data", data],
        &["queue", "list", "--data", data],
        &["connection", "list", "--json", "--data", data],
        &["publish", "--queue", "q", "message", "--socket", socket],
        // It has no count: it ends because nobody reads.
        &["consume", "q", "--socket", socket],
        &["consume", "q", "--rate", "1", "--json", "--socket", socket],
    ] {
        check_quiet(arguments);
    }
    let kill = Command::new("kill").arg(broker.0.id().to_string()).status();
    assert!(kill.is_ok_and(|status| status.success()));
    assert!(broker.0.wait().expect("a child can be waited for").success(), "it stopped in order");
    check_quiet(&["journal", "check", "--data", data]);
}

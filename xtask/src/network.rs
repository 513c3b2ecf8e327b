//! A network of its own for what is measured over loopback, with Linux's default congestion control. Knows
//! nothing of what is run there.
//!
//! Where a machine's default is BBR, a public load tool's sockets pace what they send to loopback, with
//! timers that run on the broker's processor and count as its time: half as much again for messages of 1 KiB.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

const CONGESTION_CONTROL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// A network namespace, with the rights of root in it and nowhere else.
const UNSHARE: &[&str] = &["--user", "--map-root-user", "--net"];
/// Takes what is to be run as its arguments.
const SET_UP: &str = "ip link set lo up && echo cubic > /proc/sys/net/ipv4/tcp_congestion_control";

/// Runs `program` in such a network where the machine's default is another one. Where that is not allowed,
/// or a tool is lacking, as it is, and says so.
pub(crate) fn with_cubic(program: impl AsRef<OsStr>) -> Command {
    let default = fs::read_to_string(CONGESTION_CONTROL).unwrap_or_default();
    let default = default.trim();
    if default.is_empty() || default == "cubic" {
        return Command::new(program);
    }
    if !is_possible() {
        eprintln!(
            "this machine paces clients (net.ipv4.tcp_congestion_control = {default}), which counts as the \
             broker's time, and lets nobody have a network of his own with cubic (unshare, ip)"
        );
        return Command::new(program);
    }
    eprintln!(
        "in a network of its own, with Linux's default congestion control (cubic); this machine's is \
         {default}"
    );
    inside(&format!("{SET_UP} && exec \"$@\""), program)
}

/// A shell there that runs `script`, with an argument.
fn inside(script: &str, argument: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("unshare");
    command.args(UNSHARE).args(["sh", "-c", script, "sh"]).arg(argument);
    command
}

fn is_possible() -> bool {
    let mut trial = inside(SET_UP, "");
    let status = trial.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_there_gets_its_arguments_and_has_cubic() {
        if !is_possible() {
            return;
        }
        let script = format!("{SET_UP} && cat {CONGESTION_CONTROL} && exec \"$@\"");
        let output = inside(&script, "echo").args(["one", "two words"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "cubic\none two words\n");
    }
}

//! A network of its own for what is measured over loopback, with a congestion control that does not pace.
//! Knows nothing of what is run there.
//!
//! Where a machine's default is BBR, a public load tool's sockets pace what they send to loopback, with
//! timers that run on the broker's processor and count as its time: half as much again for messages of 1 KiB.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

const CONGESTION_CONTROL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// A network namespace, with the rights of root in it and nowhere else.
const UNSHARE: &[&str] = &["--user", "--map-root-user", "--net"];
/// Linux's default first; the other one is there, and allowed to everybody, wherever Linux is.
const UNPACED: [&str; 2] = ["cubic", "reno"];

/// Runs `program` in such a network where the machine's default is another one. Where that is not allowed,
/// or a tool is lacking, as it is, and says so.
pub(crate) fn unpaced(program: impl AsRef<OsStr>) -> Command {
    let default = fs::read_to_string(CONGESTION_CONTROL).unwrap_or_default();
    let default = default.trim();
    if default.is_empty() || UNPACED.contains(&default) {
        return Command::new(program);
    }
    let Some(chosen) = UNPACED.into_iter().find(|name| is_possible(name)) else {
        eprintln!(
            "this machine paces clients (net.ipv4.tcp_congestion_control = {default}), which counts as the \
             broker's time, and lets nobody have a network of his own without that (unshare, ip)"
        );
        return Command::new(program);
    };
    eprintln!(
        "in a network of its own, with {chosen} for congestion control; this machine's is {default}"
    );
    inside(&format!("{} && exec \"$@\"", set_up(chosen)), program)
}

fn set_up(congestion_control: &str) -> String {
    format!("ip link set lo up && echo {congestion_control} > {CONGESTION_CONTROL}")
}

/// A shell there that runs `script`. What that is to run are its arguments, of which this is the first.
fn inside(script: &str, argument: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("unshare");
    command.args(UNSHARE).args(["sh", "-c", script, "sh"]).arg(argument);
    command
}

fn is_possible(congestion_control: &str) -> bool {
    let mut trial = inside(&set_up(congestion_control), "");
    let status = trial.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_there_gets_its_arguments_and_is_not_paced() {
        for name in UNPACED.into_iter().filter(|name| is_possible(name)) {
            let script = format!("{} && cat {CONGESTION_CONTROL} && exec \"$@\"", set_up(name));
            let output = inside(&script, "echo").args(["one", "two words"]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{name}\none two words\n"));
        }
    }
}

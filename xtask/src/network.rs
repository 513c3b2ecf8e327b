//! Runs a program in a network namespace with a congestion control that does not pace.
//!
//! Where a machine's default is BBR, the sockets of load tools pace what they send over loopback, by timers
//! that run on the broker's processor and count as its time: half as much again for messages of 1 KiB.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

const CONGESTION_CONTROL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// A network namespace, as root; then one for anybody, with root's rights only inside it, where a peer's
/// script can mount nothing.
const UNSHARE: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];
/// Linux's default first; the other one exists on every Linux and needs no rights.
const UNPACED: [&str; 2] = ["cubic", "reno"];

/// The command that runs `program` in such a network if the machine's default paces. Where that is not
/// allowed, or a tool is missing, it is run as it is, with a warning.
pub(crate) fn unpaced(program: impl AsRef<OsStr>) -> Command {
    let default = fs::read_to_string(CONGESTION_CONTROL).unwrap_or_default();
    let default = default.trim();
    if default.is_empty() || UNPACED.contains(&default) {
        return Command::new(program);
    }
    let possible = UNSHARE
        .iter()
        .flat_map(|unshare| UNPACED.map(|chosen| (unshare, chosen)))
        .find(|(unshare, chosen)| is_possible(unshare, chosen));
    let Some((unshare, chosen)) = possible else {
        eprintln!(
            "this machine paces clients (net.ipv4.tcp_congestion_control = {default}), which counts as the \
             broker's time, and does not allow a network without that (unshare, ip)"
        );
        return Command::new(program);
    };
    eprintln!(
        "in a separate network with {chosen} for congestion control; this machine's is {default}"
    );
    inside(unshare, &format!("{} && exec \"$@\"", set_up(chosen)), program)
}

fn set_up(congestion_control: &str) -> String {
    format!("ip link set lo up && echo {congestion_control} > {CONGESTION_CONTROL}")
}

/// A shell in the network that runs `script`; the arguments of the script begin with `argument`.
fn inside(unshare: &[&str], script: &str, argument: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("unshare");
    command.args(unshare).args(["sh", "-c", script, "sh"]).arg(argument);
    command
}

fn is_possible(unshare: &[&str], congestion_control: &str) -> bool {
    let mut trial = inside(unshare, &set_up(congestion_control), "");
    let status = trial.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_the_network_gets_its_arguments_and_is_not_paced() {
        for unshare in UNSHARE {
            for name in UNPACED.into_iter().filter(|name| is_possible(unshare, name)) {
                let script = format!("{} && cat {CONGESTION_CONTROL} && exec \"$@\"", set_up(name));
                let output = inside(unshare, &script, "echo").args(["one", "two words"]).output();
                let printed = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
                assert_eq!(printed, format!("{name}\none two words\n"));
            }
        }
    }
}

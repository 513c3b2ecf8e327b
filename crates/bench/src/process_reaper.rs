//! A process of our own that ends the brokers which we started and did not stop, however we end:
//! kill -9 included. Knows them by their numbers alone.
//!
//! It reads what was started and what was stopped from a pipe whose other end only we hold, so the
//! end of the pipe is the end of us. A broker is left only where we are killed in the moment between
//! its start and our word of it, before we connect. A signal at the parent's death (prctl) would not
//! do: it does not reach what a start script has forked, as RabbitMQ's does.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::BTreeSet;
use std::env;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Mutex;

/// The command that is the other process.
pub(crate) const COMMAND: &str = "process-reaper";

/// Our end of the pipe. Where there is none, as in tests of this library, brokers are stopped when
/// they are dropped and not otherwise.
static PIPE: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// Starts the reaper. Called by commands that start brokers, before they do.
pub(crate) fn start() -> io::Result<()> {
    // We are the program `angarium`, whose command `bench` has ours below it, or the benchmark alone.
    let mounted = env::args_os().nth(1).filter(|first| first == "bench");
    let mut reaper = Command::new(env::current_exe()?)
        .args(mounted)
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // It outlives what is sent to our group.
        .process_group(0)
        .spawn()?;
    *PIPE.lock().unwrap_or_else(|poison| poison.into_inner()) = reaper.stdin.take();
    Ok(())
}

/// A process was started that must not outlive us, nor may what is in its group.
pub(crate) fn started(pid: u32) {
    say('+', pid);
}

/// It has ended.
pub(crate) fn ended(pid: u32) {
    say('-', pid);
}

fn say(what: char, pid: u32) {
    // One write: a pipe takes few octets as a whole or not at all, and half a number is another's.
    let line = format!("{what}{pid}\n");
    if let Ok(mut pipe) = PIPE.lock()
        && let Some(pipe) = pipe.as_mut()
        && let Err(error) = pipe.write_all(line.as_bytes())
    {
        eprintln!("nobody ends process {pid} if we are killed: {error}");
    }
}

/// What the other process does.
pub(crate) fn reap() -> io::Result<()> {
    for pid in left(io::stdin().lock())? {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { continue };
        // What has ended already is what is wanted.
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = kill_process(pid, Signal::KILL);
    }
    Ok(())
}

/// Which processes were started and not stopped when `said` ends.
fn left(said: impl BufRead) -> io::Result<BTreeSet<u32>> {
    let mut left = BTreeSet::new();
    for line in said.lines() {
        let line = line?;
        match line.split_at_checked(1).map(|(what, pid)| (what, pid.parse())) {
            Some(("+", Ok(pid))) => drop(left.insert(pid)),
            Some(("-", Ok(pid))) => drop(left.remove(&pid)),
            _ => return Err(io::Error::other(format!("`{line}` is no `+PID` or `-PID`"))),
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::left;

    #[test]
    fn what_was_started_and_not_stopped_is_left() {
        let check = |said: &str, wanted: Option<&[u32]>| {
            let found = left(said.as_bytes()).ok();
            assert_eq!(found.map(|left| left.into_iter().collect::<Vec<_>>()).as_deref(), wanted);
        };
        check("", Some(&[]));
        check("+12\n+7\n-12\n", Some(&[7]));
        check("+12\n-12\n+12\n-5\n", Some(&[12]));
        check("+12\nkill 1\n", None);
        check("\n", None);
    }
}

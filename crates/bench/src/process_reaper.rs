//! A child process that kills the brokers which the tool started and did not stop, however the tool ends:
//! kill -9 included. Knows process ids only.
//!
//! It reads process ids from a pipe whose other end only the tool holds, so the pipe ends when the tool does.
//! A broker survives only if the tool is killed between the broker's start and the write of its id. A signal
//! at the parent's death (prctl) does not reach what a start script has forked, as RabbitMQ's does.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::BTreeSet;
use std::env;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Mutex;

/// The hidden command that runs the reaper.
pub(crate) const COMMAND: &str = "process-reaper";

/// The tool's end of the pipe. Without a reaper, as in tests of this library, brokers are stopped only when
/// they are dropped.
static PIPE: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// Starts the reaper. Commands that start brokers call it first.
pub(crate) fn start() -> io::Result<()> {
    // The program is `angarium`, which has these commands below `bench`, or the benchmark alone.
    let mounted = env::args_os().nth(1).filter(|first| first == "bench");
    let mut reaper = Command::new(env::current_exe()?)
        .args(mounted)
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A group of its own: signals to the tool's group do not reach it.
        .process_group(0)
        .spawn()?;
    *PIPE.lock().unwrap_or_else(|poison| poison.into_inner()) = reaper.stdin.take();
    Ok(())
}

/// Records that process `pid` was started: it and its group must not outlive the tool.
pub(crate) fn started(pid: u32) {
    say('+', pid);
}

/// Records that process `pid` has ended.
pub(crate) fn ended(pid: u32) {
    say('-', pid);
}

fn say(what: char, pid: u32) {
    // One write of a few bytes is atomic on a pipe: half a number would be another process.
    let line = format!("{what}{pid}\n");
    if let Ok(mut pipe) = PIPE.lock()
        && let Some(pipe) = pipe.as_mut()
        && let Err(error) = pipe.write_all(line.as_bytes())
    {
        eprintln!("process {pid} would outlive a kill of the tool: {error}");
    }
}

/// Runs the reaper: waits for the end of the pipe and kills what was not stopped.
pub(crate) fn reap() -> io::Result<()> {
    for pid in left(io::stdin().lock())? {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { continue };
        // A process that has already ended is no error.
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = kill_process(pid, Signal::KILL);
    }
    Ok(())
}

/// The processes that were started and not stopped when `said` ends.
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

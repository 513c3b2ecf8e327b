//! A run and everything that it has started end together, however it ends: by itself, by a signal, or killed.
//!
//! The run is a child with a mark in its environment, which all that it starts inherits. A second child waits
//! until this process is gone, and kills what still has the mark.

use crate::process;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The variable with the mark.
const MARK: &str = "XTASK_RUN";
/// The command of the child that kills.
pub(crate) const REAP: &str = "reap";
/// How often is looked for processes with the mark: some may be starting others.
const LOOKS: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Whether this process is a run already.
pub(crate) fn is_run() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Has a child carry `arguments` out, and ends what that leaves behind.
pub(crate) fn supervise(arguments: &[String]) -> Result<ExitCode, String> {
    let failed = |error: std::io::Error| format!("cannot start the run: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mark = format!("{}-{}", std::process::id(), since.as_nanos());
    // In a group of its own: an interrupt of the keyboard is not for it.
    let mut reaper = Command::new(&program)
        .args([REAP, &mark])
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let status = Command::new(&program).args(arguments).env(MARK, &mark).status();
    drop(reaper.stdin.take());
    let reaped = reaper.wait();
    let status = status.map_err(failed)?;
    reaped.map_err(failed)?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Waits for the end of the process that started this one, and kills what has the mark.
pub(crate) fn reap(mark: &str) -> Result<(), String> {
    // The end of the stream is the end of that process.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    end_marked(mark)
}

fn end_marked(mark: &str) -> Result<(), String> {
    for _ in 0..LOOKS {
        let left = marked(mark);
        if left.is_empty() {
            return Ok(());
        }
        let arguments: Vec<&str> =
            ["-KILL"].into_iter().chain(left.iter().map(String::as_str)).collect();
        // One of them may have ended by now.
        let _ = process::output("kill", &arguments, Path::new("/"));
        std::thread::sleep(PAUSE);
    }
    match marked(mark) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("processes of the run are still there: {}", left.join(" "))),
    }
}

/// The living processes with that mark.
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().into_string().ok());
    let ids = ids.filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()));
    let has_it = |id: &String| {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    ids.filter(has_it).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_the_mark_is_ended_and_nothing_else() {
        let mark = format!("test-{}", std::process::id());
        let sleep = |mark: &str| {
            let mut command = Command::new("sh");
            // A child of a child, in a group of its own.
            let script = "setsid sleep 100 & wait";
            command.args(["-c", script]).env(MARK, mark).spawn().expect("it starts")
        };
        let (mut ours, mut other) = (sleep(&mark), sleep("another"));
        let until = std::time::Instant::now() + Duration::from_secs(10);
        // A process that has just become another program shows no environment for a moment.
        let mut found = marked(&mark).len();
        while found < 2 && std::time::Instant::now() < until {
            std::thread::sleep(PAUSE);
            found = marked(&mark).len();
        }
        assert_eq!(found, 2);
        let ended = std::thread::spawn(move || end_marked(&mark));
        assert!(!ours.wait().expect("it was started").success());
        assert_eq!(ended.join().expect("no panic"), Ok(()));
        assert!(other.try_wait().expect("it was started").is_none());
        assert_eq!(
            end_marked("another"),
            other.wait().map(drop).map_err(|error| error.to_string())
        );
    }
}

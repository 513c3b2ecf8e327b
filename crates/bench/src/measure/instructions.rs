//! Instructions that a process executes, counted by `perf stat` where the kernel and the machine let
//! it. Virtual machines often do not; then nothing is counted and nothing reported.

use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// A count that runs.
#[derive(Debug)]
pub struct Instructions(Child);

impl Instructions {
    /// Starts to count what the process and its threads execute, in user mode.
    pub fn start(pid: u32) -> Option<Instructions> {
        let child = Command::new("perf")
            .args(["stat", "-x", ",", "-e", "instructions:u", "-p", &pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        child.ok().map(Instructions)
    }

    /// Ends the count. `None` where nothing could be counted.
    pub fn finish(mut self) -> Option<u64> {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)?;
        // It prints when it is interrupted. One that has ended already has said why.
        let _ = kill_process(pid, Signal::INT);
        let mut said = String::new();
        let read = self.0.stderr.take()?.read_to_string(&mut said);
        self.0.wait().ok()?;
        read.ok()?;
        parse(&said)
    }
}

/// Reads a line such as `123456,,instructions:u,1000,100.00,,`.
pub(super) fn parse(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains(",instructions"))?;
    line.split(',').next()?.parse().ok()
}

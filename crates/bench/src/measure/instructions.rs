//! Instructions that a process executes, counted by `perf stat` where kernel and machine support it.

use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// A running count.
#[derive(Debug)]
pub struct Instructions(Child);

impl Instructions {
    /// Starts to count the user-mode instructions of all threads of a process.
    pub fn start(pid: u32) -> Option<Instructions> {
        let child = Command::new("perf")
            .args(["stat", "-x", ",", "-e", "instructions:u", "-p", &pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        child.ok().map(Instructions)
    }

    /// Ends the count. `None` if nothing could be counted.
    pub fn finish(mut self) -> Option<u64> {
        // perf prints its count when interrupted. If it has ended already, it has printed why.
        let _ = kill_process(Pid::from_child(&self.0), Signal::INT);
        let mut output = String::new();
        let read = self.0.stderr.take()?.read_to_string(&mut output);
        self.0.wait().ok()?;
        read.ok()?;
        parse(&output)
    }
}

/// Parses a line such as `123456,,instructions:u,1000,100.00,,`.
pub(super) fn parse(output: &str) -> Option<u64> {
    let line = output.lines().find(|line| line.contains(",instructions"))?;
    line.split(',').next()?.parse().ok()
}

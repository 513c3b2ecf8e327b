//! The time from a broker's start to the first message at a consumer.

use super::first_message::receive;
use super::message::{self, Message};
use super::verdict::{Judge, Verdict};
use crate::client::{Error, Link, PATIENCE, Route, Source, Target};
use crate::process_reaper;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::io;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between connection attempts.
const RETRY: Duration = Duration::from_micros(200);
/// The queue of the first message; not durable, so it disappears with the broker.
const QUEUE: &str = "angarium-bench-start";
const BODY_BYTES: usize = 32;

/// The result.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartTime {
    /// Until a connection was accepted.
    pub listening_ms: f64,
    /// Until an undamaged message was delivered through a new queue.
    pub first_message_ms: f64,
}

/// Starts `command`, which listens at `target` in the foreground, measures, and stops it by SIGTERM.
pub fn measure(
    command: &[String],
    target: &Target,
    patience: Duration,
) -> Result<StartTime, Error> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| io::Error::other("there is no command to start"))?;
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    process_reaper::started(child.id());
    let outcome = first_message(&mut child, target, start, patience);
    stop(&mut child)?;
    process_reaper::ended(child.id());
    outcome
}

fn first_message(
    child: &mut Child,
    target: &Target,
    start: Instant,
    patience: Duration,
) -> Result<StartTime, Error> {
    let mut link = loop {
        match Link::open(target) {
            Ok(link) => break link,
            // A broker may listen before it answers.
            Err(Error::Io(_)) if start.elapsed() < patience => {}
            Err(error) => return Err(error),
        }
        if let Some(status) = child.try_wait()? {
            return Err(io::Error::other(format!("the broker ended at its start: {status}")).into());
        }
        thread::sleep(RETRY);
    };
    let listening_ms = start.elapsed().as_secs_f64() * 1e3;
    pass_first(&mut link)?;
    let first_message_ms = start.elapsed().as_secs_f64() * 1e3;
    link.close()?;
    Ok(StartTime { listening_ms, first_message_ms })
}

/// Sends one message through a new queue of a running broker; an error unless it arrives undamaged.
pub fn deliver_first(target: &Target) -> Result<(), Error> {
    let mut link = Link::open(target)?;
    pass_first(&mut link)?;
    link.close()
}

fn pass_first(link: &mut Link) -> Result<(), Error> {
    link.declare_queue(QUEUE, false, &[])?;
    link.subscribe(&Source::plain(QUEUE), 0)?;
    let route = Route { exchange: "", key: QUEUE, persistent: false };
    let mut message = Message::new(link, &route, &message::body(BODY_BYTES), 0);
    link.write(message.next())?;
    let mut judge = Judge::new(1, BODY_BYTES, true);
    receive(link, &mut judge, 1, PATIENCE)?;
    let mut verdict = Verdict::default();
    verdict.add_queue(&judge.tally, &[1]);
    if !verdict.is_clean() {
        return Err(Error::Invalid(format!("a first message: {}", verdict.describe())));
    }
    Ok(())
}

/// Stops a child process: by SIGTERM, and by SIGKILL after ten seconds.
pub fn stop(child: &mut Child) -> io::Result<()> {
    if child.try_wait()?.is_none() {
        kill_process(Pid::from_child(child), Signal::TERM)?;
    }
    let asked = Instant::now();
    while child.try_wait()?.is_none() {
        if asked.elapsed() > Duration::from_secs(10) {
            child.kill()?;
            child.wait()?;
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

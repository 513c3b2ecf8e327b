//! The time from a broker's start to the first message at a consumer.

use super::first_message::receive;
use super::message::{self, Message};
use super::verdict::{Judge, Verdict};
use crate::client::{Error, Link, PATIENCE, Route, Source, Target};
use crate::peer::CommandBroker;
use serde::{Deserialize, Serialize};
use std::process::Stdio;
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
    let start = Instant::now();
    let (broker, mut link) =
        CommandBroker::start_open(command, target, patience, RETRY, Stdio::null())?;
    let listening_ms = start.elapsed().as_secs_f64() * 1e3;
    pass_first(&mut link)?;
    let first_message_ms = start.elapsed().as_secs_f64() * 1e3;
    link.close()?;
    drop(broker);
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

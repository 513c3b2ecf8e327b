//! The protocol between coordinator and worker: JSON, one value per line.

use crate::client::{Error, is_timeout};
use crate::load::consumer::Consumed;
use crate::load::control::Counts;
use crate::load::plan::Plan;
use crate::load::producer::Produced;
use crate::load::topology::Topology;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::Duration;

/// Version of this protocol; in practice both run the same build.
pub(super) const VERSION: u32 = 4;
/// Limit on a peer's silence while a part runs.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(10);
pub(super) const SIGN_EVERY: Duration = Duration::from_millis(500);
/// The longest line: a tally of very many messages out of order.
const LINE_BYTES_MAX: u64 = 256 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// The first request.
    Hello { version: u32 },
    /// Asks for the worker's clock.
    Clock,
    /// Connect the clients of this part and wait.
    Prepare(Box<Part>),
    /// Keep waiting, and report progress; a sign of life.
    Wait,
    /// Publish, and report progress.
    Go { measuring: bool },
    /// Stop publishing, receive the last confirms, and report progress.
    StopPublishing,
    /// Stop consuming, and send the outcome.
    Finish,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// To a hello.
    Hello { version: u32 },
    /// Nanoseconds of the worker's clock.
    Clock { now_ns: u64 },
    /// A sign of life; another answer follows.
    Working,
    /// All connections are open.
    Prepared,
    /// How far the worker is.
    Progress(Progress),
    /// The outcome of the part.
    Outcome { produced: Vec<Produced>, consumed: Vec<Consumed> },
    /// The part failed; the reason.
    Failed(String),
}

/// A worker's part of a plan.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) plan: Plan,
    pub(super) topology: Topology,
    pub(super) producers: Range<usize>,
    pub(super) consumers: Range<usize>,
    /// Added to the worker's clock to get the coordinator's.
    pub(super) offset_ns: i64,
}

/// The progress of all producers and consumers of a worker.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Progress {
    pub(super) counts: Counts,
    pub(super) producers_done: bool,
    /// A consumer has ended early.
    pub(super) broken: bool,
    pub(super) cpu_ns: u64,
}

/// A connection between coordinator and worker, with a limit on the peer's silence.
pub(super) struct Wire {
    reader: BufReader<TcpStream>,
    silence: Duration,
    /// Whether the limit was exceeded.
    pub(super) is_lost: bool,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, silence: Duration) -> Result<Wire, Error> {
        stream.set_nodelay(true)?;
        let mut wire = Wire { reader: BufReader::new(stream), silence, is_lost: false };
        wire.set_silence(silence)?;
        Ok(wire)
    }

    pub(super) fn set_silence(&mut self, silence: Duration) -> io::Result<()> {
        self.silence = silence;
        self.reader.get_ref().set_read_timeout(Some(silence))?;
        self.reader.get_ref().set_write_timeout(Some(silence))
    }

    pub(super) fn send(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let mut line = serde_json::to_vec(value).map_err(|error| invalid(&error))?;
        line.push(b'\n');
        let sent = self.reader.get_mut().write_all(&line);
        Ok(sent.map_err(|error| self.timeout_error(error, "taken"))?)
    }

    /// Returns `None` at the end of the stream.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        let mut line = Vec::new();
        let read = self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        read.map_err(|error| self.timeout_error(error, "said"))?;
        match line.last() {
            None => Ok(None),
            Some(b'\n') => {
                Ok(Some(serde_json::from_slice(&line).map_err(|error| invalid(&error))?))
            }
            Some(_) => Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
        }
    }

    /// Translates a socket timeout into an error.
    fn timeout_error(&mut self, error: io::Error, what: &str) -> io::Error {
        if !is_timeout(&error) {
            return error;
        }
        self.is_lost = true;
        let seconds = self.silence.as_secs_f64();
        io::Error::other(format!("it has {what} nothing for {seconds} s"))
    }
}

fn invalid(error: &serde_json::Error) -> Error {
    io::Error::other(format!("it sent an invalid line: {error}")).into()
}

//! What coordinator and worker say to each other: JSON, one value a line. Knows no sockets but as
//! streams of bytes.

use super::super::consumer::Consumed;
use super::super::plan::Plan;
use super::super::producer::Produced;
use super::super::topology::Topology;
use crate::client::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::Duration;

/// The version of this language; both must be the same build in practice.
pub(super) const VERSION: u32 = 3;
/// Who says nothing for so long while a part is held has hung or is gone.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How often each gives a sign where it has nothing else to say.
pub(super) const SIGN_EVERY: Duration = Duration::from_millis(500);
/// The longest line: a tally of very many messages that came in disorder.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// What a coordinator says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// First of all.
    Hello { version: u32 },
    /// What does your clock say?
    Clock,
    /// Connect your part and wait.
    Prepare(Box<Part>),
    /// Wait for the others; I am still here. Say how far you are.
    Wait,
    /// Publish; and say how far you are.
    Go { measuring: bool },
    /// Publish no more, take the last confirms, and say how far you are.
    StopPublishing,
    /// Consume no more, and say what became of it.
    Finish,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// To a hello.
    Hello { version: u32 },
    /// Nanoseconds of its own clock.
    Clock { now_ns: u64 },
    /// It is at it, and still there: another answer follows.
    Working,
    /// All its connections are there.
    Prepared,
    /// How far it is.
    Progress(Progress),
    /// What became of it.
    Outcome(Box<PartOutcome>),
    /// It broke, and how.
    Failed(String),
}

/// A worker's share of a plan.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) plan: Plan,
    pub(super) topology: Topology,
    pub(super) producers: Range<usize>,
    pub(super) consumers: Range<usize>,
    /// What is to be added to the worker's clock to have the coordinator's.
    pub(super) offset_ns: i64,
}

/// How far a worker is, over all that it holds.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Progress {
    pub(super) published: u64,
    pub(super) confirmed: u64,
    pub(super) refused: u64,
    pub(super) delivered: u64,
    pub(super) delivered_bytes: u64,
    /// All its producers have ended.
    pub(super) producers_done: bool,
    /// One of its threads has ended before its time.
    pub(super) broken: bool,
    /// CPU of the worker's process.
    pub(super) cpu_ns: u64,
}

/// What a worker's part came to.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PartOutcome {
    pub(super) produced: Vec<Produced>,
    pub(super) consumed: Vec<Consumed>,
}

/// A connection between the two, which ends with an error once the other has been silent for too long.
pub(super) struct Wire {
    reader: BufReader<TcpStream>,
    silence: Duration,
    is_lost: bool,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, silence: Duration) -> Result<Wire, Error> {
        stream.set_nodelay(true)?;
        let mut wire = Wire { reader: BufReader::new(stream), silence, is_lost: false };
        wire.set_silence(silence)?;
        Ok(wire)
    }

    /// How long the other may say and take nothing from now on.
    pub(super) fn set_silence(&mut self, silence: Duration) -> io::Result<()> {
        self.silence = silence;
        self.reader.get_ref().set_read_timeout(Some(silence))?;
        self.reader.get_ref().set_write_timeout(Some(silence))
    }

    /// Whether the other was silent for too long.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    pub(super) fn send(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let mut line = serde_json::to_vec(value).map_err(|error| nonsense(&error))?;
        line.push(b'\n');
        let sent = self.reader.get_mut().write_all(&line);
        Ok(sent.map_err(|error| self.patience(error, "taken"))?)
    }

    /// `None` at the end of the stream.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        let mut line = Vec::new();
        let read = self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        read.map_err(|error| self.patience(error, "said"))?;
        match line.last() {
            None => Ok(None),
            Some(b'\n') => {
                Ok(Some(serde_json::from_slice(&line).map_err(|error| nonsense(&error))?))
            }
            Some(_) => Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
        }
    }

    /// What the end of the socket's patience means.
    fn patience(&mut self, error: io::Error, what: &str) -> io::Error {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                self.is_lost = true;
                let seconds = self.silence.as_secs_f64();
                io::Error::other(format!("it has {what} nothing for {seconds} s"))
            }
            _ => error,
        }
    }
}

fn nonsense(error: &serde_json::Error) -> Error {
    io::Error::other(format!("it sent no line that is understood: {error}")).into()
}

//! What coordinator and worker say to each other: JSON, one value a line. Knows no sockets but as
//! streams of bytes.

use super::super::consumer::Consumed;
use super::super::plan::Plan;
use super::super::producer::Produced;
use super::super::tally::Tally;
use super::super::topology::Topology;
use crate::client::Error;
use crate::measure::latency::Latencies;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;

/// The version of this language; both must be the same build in practice.
pub(super) const VERSION: u32 = 1;
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
    pub(super) produced: Vec<ProducedWire>,
    pub(super) consumed: Vec<ConsumedWire>,
}

/// See [`Produced`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ProducedWire {
    published: u64,
    confirm_latencies: Option<Vec<(u64, u64)>>,
    times_ns: [u64; 3],
    lags: Vec<(u64, u64)>,
    due: u64,
    cpu_ns: u64,
    lived_ns: u64,
}

/// See [`Consumed`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ConsumedWire {
    tally: Tally,
    latencies: Option<Vec<(u64, u64)>>,
    times_ns: [u64; 2],
    travels: Vec<f32>,
    cpu_ns: u64,
    lived_ns: u64,
    cut_off: Option<String>,
}

impl From<Produced> for ProducedWire {
    fn from(it: Produced) -> ProducedWire {
        ProducedWire {
            published: it.published,
            confirm_latencies: it.confirm_latencies.as_ref().map(Latencies::counts),
            times_ns: [it.first_ns, it.last_ns, it.settled_ns],
            lags: it.lags.counts(),
            due: it.due,
            cpu_ns: it.cpu_ns,
            lived_ns: it.lived_ns,
        }
    }
}

impl From<ProducedWire> for Produced {
    fn from(it: ProducedWire) -> Produced {
        Produced {
            published: it.published,
            confirm_latencies: it.confirm_latencies.as_deref().map(Latencies::of_counts),
            first_ns: it.times_ns[0],
            last_ns: it.times_ns[1],
            settled_ns: it.times_ns[2],
            lags: Latencies::of_counts(&it.lags),
            due: it.due,
            cpu_ns: it.cpu_ns,
            lived_ns: it.lived_ns,
        }
    }
}

impl From<Consumed> for ConsumedWire {
    fn from(it: Consumed) -> ConsumedWire {
        ConsumedWire {
            tally: it.tally,
            latencies: it.latencies.as_ref().map(Latencies::counts),
            times_ns: [it.first_ns, it.last_ns],
            travels: it.travels,
            cpu_ns: it.cpu_ns,
            lived_ns: it.lived_ns,
            cut_off: it.cut_off,
        }
    }
}

impl From<ConsumedWire> for Consumed {
    fn from(it: ConsumedWire) -> Consumed {
        Consumed {
            tally: it.tally,
            latencies: it.latencies.as_deref().map(Latencies::of_counts),
            first_ns: it.times_ns[0],
            last_ns: it.times_ns[1],
            travels: it.travels,
            cpu_ns: it.cpu_ns,
            lived_ns: it.lived_ns,
            cut_off: it.cut_off,
        }
    }
}

/// A connection between the two.
pub(super) struct Wire {
    reader: BufReader<TcpStream>,
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Result<Wire, Error> {
        stream.set_nodelay(true)?;
        Ok(Wire { reader: BufReader::new(stream) })
    }

    pub(super) fn send(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let mut line = serde_json::to_vec(value).map_err(|error| nonsense(&error))?;
        line.push(b'\n');
        Ok(self.reader.get_mut().write_all(&line)?)
    }

    /// `None` at the end of the stream.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        let mut line = Vec::new();
        self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        match line.last() {
            None => Ok(None),
            Some(b'\n') => {
                Ok(Some(serde_json::from_slice(&line).map_err(|error| nonsense(&error))?))
            }
            Some(_) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }
}

fn nonsense(error: &serde_json::Error) -> Error {
    Error::Nonsense(format!("no line that is understood: {error}"))
}

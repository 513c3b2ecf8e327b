//! One run of a producer or a consumer against a fake server, and one of bare sockets in its endpoint.

use super::bare_socket::BareSocket;
use super::fake_server::{FakeServer, play};
use super::plan::{DriversPlan, Side};
use crate::client::{self, Error, FakeBroker};
use crate::interrupt;
use crate::load::batch::Batch;
use crate::load::consumer::{Consumed, Consumer};
use crate::load::control::Control;
use crate::load::plan::Plan;
use crate::load::producer::{Produced, Producer};
use crate::load::threads::{joined, rest};
use crate::load::topology::Topology;
use crate::load::verdict::{Checked, Verdict};
use crate::measure::bare_sockets;
use crate::tcp;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;

/// The CPU time of a driver's thread and of a bare socket's.
#[derive(Debug, Clone)]
pub(super) struct Round {
    pub(super) messages: u64,
    /// Bytes of a message on the wire.
    pub(super) wire_bytes: usize,
    /// CPU nanoseconds per message of the driver's thread.
    pub(super) driver_ns: f64,
    /// CPU nanoseconds per message of a thread with a bare socket.
    pub(super) bare_ns: f64,
    pub(super) verdict: Verdict,
}

/// The result of a driver's thread.
pub(super) struct Driven {
    messages: u64,
    cpu_ns: u64,
    wire_bytes: usize,
    pub(super) verdict: Verdict,
}

impl Driven {
    fn ns(&self) -> f64 {
        self.cpu_ns as f64 / self.messages.max(1) as f64
    }

    fn ns_per_byte(&self) -> f64 {
        self.ns() / self.wire_bytes as f64
    }

    fn compared_with(self, bare: &BareSocket) -> Round {
        Round {
            messages: self.messages,
            wire_bytes: self.wire_bytes,
            driver_ns: self.ns(),
            bare_ns: bare.spent_ns as f64 / bare.bytes.max(1) as f64 * self.wire_bytes as f64,
            verdict: self.verdict,
        }
    }
}

/// A listening fake broker.
pub(super) struct Endpoint {
    listener: TcpListener,
    fake_broker: FakeBroker,
    load: Plan,
}

/// Measures one side of the driver for a URI scheme.
pub(super) fn round(scheme: &str, side: Side, plan: &DriversPlan) -> Result<Round, Error> {
    let endpoint = Endpoint::listen(scheme, plan)?;
    match side {
        Side::Producer => {
            let (driven, batch) = produce(&endpoint, plan)?;
            let bare = write_bare(&endpoint, &batch, &driven, plan)?;
            Ok(driven.compared_with(&bare))
        }
        Side::Consumer => {
            let driven = consume(&endpoint, |stream, batch, now_ns, over| {
                play(stream, batch, plan.span, now_ns, over)
            })?;
            let bare = read_bare(&endpoint, &driven, plan)?;
            Ok(driven.compared_with(&bare))
        }
    }
}

/// Publishes to a fake server that discards messages. Returns also the bytes of a batch.
fn produce(endpoint: &Endpoint, plan: &DriversPlan) -> Result<(Driven, Vec<u8>), Error> {
    let (topology, message_bytes) = (Topology::of(&endpoint.load), OnceLock::new());
    let control = Control::new(1, 0, 0, 1);
    control.measuring.store(true, Ordering::Relaxed);
    thread::scope(|scope| {
        let fake_server =
            FakeServer { fake_broker: &endpoint.fake_broker, message_bytes: &message_bytes };
        let serving = scope.spawn(move || fake_server.greet(endpoint.listener.accept()?.0));
        let route = topology.route(&endpoint.load, 0);
        let producer = Producer::connect(&endpoint.load, &control, 0, &route);
        let producer = producer.inspect_err(|_| endpoint.release())?;
        let wire_bytes = producer.batch().message().len();
        let batch = producer.batch().whole().to_vec();
        message_bytes.get_or_init(|| wire_bytes);
        let producing = scope.spawn(move || producer.run());
        rest(plan.span, &|| producing.is_finished() || interrupt::requested());
        control.stop_publishing.store(true, Ordering::Relaxed);
        let Produced { published, cpu_ns, .. } = joined(producing)?;
        let delivered = joined(serving)?;
        let verdict = Verdict {
            expected: published,
            delivered: delivered.min(published),
            lost: published.saturating_sub(delivered),
            invented: delivered.saturating_sub(published),
            ..Verdict::default()
        };
        Ok((Driven { messages: published, cpu_ns, wire_bytes, verdict }, batch))
    })
}

/// Consumes what `play` sends: it gets the socket, a batch, the clock, and a check whether the run is
/// over early, and returns the number of messages sent. The consumer receives everything sent before the
/// answer to its end, so anything missing by then is lost and not waited for.
pub(super) fn consume(
    endpoint: &Endpoint,
    play: impl FnOnce(&TcpStream, &mut Batch, &dyn Fn() -> u64, &dyn Fn() -> bool) -> io::Result<u64>,
) -> Result<Driven, Error> {
    let (load, topology, no_messages) =
        (&endpoint.load, Topology::of(&endpoint.load), OnceLock::new());
    let control = Control::new(0, 1, 0, 1);
    control.measuring.store(true, Ordering::Relaxed);
    let source = topology.source(load, 0);
    let mut batch = endpoint.deliveries(source.name);
    thread::scope(|scope| {
        let fake_server =
            FakeServer { fake_broker: &endpoint.fake_broker, message_bytes: &no_messages };
        let (sender, accepted) = mpsc::channel();
        let serving = scope.spawn(move || {
            let (stream, _) = endpoint.listener.accept()?;
            // If the connection failed, nothing receives this.
            let _ = sender.send(stream.try_clone()?);
            fake_server.greet(stream)
        });
        let consumer = Consumer::connect(load, &control, 0, &source);
        let consumer = consumer.inspect_err(|_| endpoint.release())?;
        let consuming = scope.spawn(move || consumer.run());
        let stream = accepted.recv().map_err(|_| Error::hung_up());
        let over = || consuming.is_finished() || interrupt::requested();
        let played =
            stream.and_then(|stream| Ok(play(&stream, &mut batch, &|| control.now_ns(), &over)?));
        control.stop_consuming.store(true, Ordering::Relaxed);
        let consumed = joined(consuming)?;
        joined(serving)?;
        judged(&consumed, played?, batch.message().len(), load)
    })
}

fn judged(
    consumed: &Consumed,
    played: u64,
    wire_bytes: usize,
    load: &Plan,
) -> Result<Driven, Error> {
    if let Some(why) = &consumed.cut_off {
        return Err(Error::Invalid(format!("something that its driver rejects: {why}")));
    }
    let mut verdict = Verdict::new(Checked::of(load.size_bytes, load.checksum));
    verdict.add_queue(&consumed.tally, &[played]);
    let messages = verdict.delivered;
    Ok(Driven { messages, cpu_ns: consumed.cpu_ns, wire_bytes, verdict })
}

/// Writes a batch to a fake server that discards it like published messages.
fn write_bare(
    endpoint: &Endpoint,
    batch: &[u8],
    driven: &Driven,
    plan: &DriversPlan,
) -> Result<BareSocket, Error> {
    let (near, far) = bare_sockets::pair()?;
    let message_bytes = OnceLock::from(driven.wire_bytes);
    thread::scope(|scope| {
        let fake_server =
            FakeServer { fake_broker: &endpoint.fake_broker, message_bytes: &message_bytes };
        let serving = scope.spawn(move || fake_server.serve(far));
        let pace = driven.ns_per_byte();
        let writing = scope.spawn(move || BareSocket::begin(pace).write(near, batch, plan.span));
        let bare = joined(writing)?;
        joined(serving)?;
        Ok(bare)
    })
}

/// Reads what a fake server sends.
fn read_bare(
    endpoint: &Endpoint,
    driven: &Driven,
    plan: &DriversPlan,
) -> Result<BareSocket, Error> {
    let (near, far) = bare_sockets::pair()?;
    let control = Control::new(0, 0, 0, 1);
    let mut batch =
        endpoint.deliveries(Topology::of(&endpoint.load).source(&endpoint.load, 0).name);
    thread::scope(|scope| {
        let pace = driven.ns_per_byte();
        let reading = scope.spawn(move || BareSocket::begin(pace).read(near));
        let over = || reading.is_finished() || interrupt::requested();
        let played = play(&far, &mut batch, plan.span, || control.now_ns(), over);
        let ended = far.shutdown(Shutdown::Write);
        let bare = joined(reading)?;
        played?;
        ended?;
        Ok(bare)
    })
}

impl Endpoint {
    /// Listens as the fake broker for a URI scheme.
    pub(super) fn listen(scheme: &str, plan: &DriversPlan) -> Result<Endpoint, Error> {
        let listener = tcp::listen()?;
        let target = format!("{scheme}://{}", listener.local_addr()?).parse();
        let load = plan.load(target.map_err(Error::Invalid)?);
        Ok(Endpoint { fake_broker: client::fake_broker(&load.target), listener, load })
    }

    /// Ends the accept call if no client connects.
    fn release(&self) {
        if let Ok(address) = self.listener.local_addr() {
            drop(TcpStream::connect(address));
        }
    }

    fn deliveries(&self, source: &str) -> Batch {
        Batch::new(&self.load, 0, |body, out| self.fake_broker.deliver(source, body, out))
    }
}

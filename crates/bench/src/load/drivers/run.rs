//! One run of a producer or a consumer against a fake server, and one of bare sockets in its place.

use super::bare_socket::BareSocket;
use super::fake_server::{FakeServer, play};
use super::plan::{DriversPlan, Side};
use crate::client::Error;
use crate::interrupt;
use crate::load::consumer::Consumer;
use crate::load::control::{Control, joined, rest};
use crate::load::message::Batch;
use crate::load::producer::{Produced, Producer};
use crate::load::topology::Topology;
use crate::load::verdict::{Checked, Verdict};
use crate::measure::bare_sockets;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;

/// The CPU time of a driver's thread and of a bare socket's.
pub(super) struct Round {
    pub(super) messages: u64,
    pub(super) wire_bytes: usize,
    /// CPU nanoseconds per message of the driver's thread.
    pub(super) driver_ns: f64,
    /// CPU nanoseconds per message of a thread with a bare socket; 0 until it has run.
    pub(super) bare_ns: f64,
    pub(super) verdict: Verdict,
}

impl Round {
    fn of_driver(messages: u64, cpu_ns: u64, wire_bytes: usize, verdict: Verdict) -> Round {
        let driver_ns = cpu_ns as f64 / messages.max(1) as f64;
        Round { messages, wire_bytes, driver_ns, bare_ns: 0.0, verdict }
    }

    /// A bare socket that takes the driver's CPU time for each byte.
    fn bare_socket(&self) -> BareSocket {
        BareSocket::begin(self.driver_ns / self.wire_bytes as f64)
    }
}

/// Measures one side of the driver for a URI scheme.
pub(super) fn round(scheme: &str, side: Side, plan: &DriversPlan) -> Result<Round, Error> {
    let server = FakeServer::listen(scheme, plan)?;
    let (mut round, bare) = match side {
        Side::Producer => {
            let (driven, batch) = produce(&server, plan)?;
            let bare = write_bare(&server, &batch, &driven, plan)?;
            (driven, bare)
        }
        Side::Consumer => {
            let driven = consume(&server, |stream, batch, now_ns, over| {
                play(stream, batch, plan.span, now_ns, over)
            })?;
            let bare = read_bare(&server, &driven, plan)?;
            (driven, bare)
        }
    };
    round.bare_ns = bare.spent_ns as f64 / bare.bytes.max(1) as f64 * round.wire_bytes as f64;
    Ok(round)
}

/// Publishes to a fake server that discards messages. Returns also the bytes of a batch.
fn produce(server: &FakeServer, plan: &DriversPlan) -> Result<(Round, Vec<u8>), Error> {
    let (load, topology) = (&server.load, Topology::of(&server.load));
    let control = Control::new(1, 0, 0, 1);
    control.measuring.store(true, Ordering::Relaxed);
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.greet(server.listener.accept()?.0));
        let producer = Producer::connect(load, &control, 0, &topology.route(load, 0));
        let producer = producer.inspect_err(|_| server.release())?;
        let (wire_bytes, batch) = (producer.batch.message_bytes, producer.batch.bytes.clone());
        server.message_bytes.get_or_init(|| wire_bytes);
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
        Ok((Round::of_driver(published, cpu_ns, wire_bytes, verdict), batch))
    })
}

/// Consumes what `play` sends: it gets the socket, a batch, the clock, and a check whether the run is
/// over early, and returns the number of messages sent. The consumer receives everything sent before the
/// answer to its end, so anything missing by then is lost and not waited for.
pub(super) fn consume(
    server: &FakeServer,
    play: impl FnOnce(&TcpStream, &mut Batch, &dyn Fn() -> u64, &dyn Fn() -> bool) -> io::Result<u64>,
) -> Result<Round, Error> {
    let (load, topology) = (&server.load, Topology::of(&server.load));
    let control = Control::new(0, 1, 0, 1);
    control.measuring.store(true, Ordering::Relaxed);
    let mut batch = server.deliveries(&topology);
    thread::scope(|scope| {
        let (sender, accepted) = mpsc::channel();
        let serving = scope.spawn(move || {
            let (stream, _) = server.listener.accept()?;
            // If the connection failed, nothing receives this.
            let _ = sender.send(stream.try_clone()?);
            server.greet(stream)
        });
        let consumer = Consumer::connect(load, &control, 0, &topology.source(load, 0));
        let consumer = consumer.inspect_err(|_| server.release())?;
        let consuming = scope.spawn(move || consumer.run());
        let stream = accepted.recv().map_err(|_| Error::hung_up());
        let over = || consuming.is_finished() || interrupt::requested();
        let played =
            stream.and_then(|stream| Ok(play(&stream, &mut batch, &|| control.now_ns(), &over)?));
        control.stop_consuming.store(true, Ordering::Relaxed);
        let consumed = joined(consuming)?;
        joined(serving)?;
        let played = played?;
        if let Some(why) = &consumed.cut_off {
            return Err(Error::Invalid(format!("something that its driver rejects: {why}")));
        }
        let mut verdict = Verdict::new(Checked::of(load.size_bytes, load.checksum));
        verdict.add_queue(&consumed.tally, &[played]);
        Ok(Round::of_driver(verdict.delivered, consumed.cpu_ns, batch.message_bytes, verdict))
    })
}

/// Writes a batch to a fake server that discards it like published messages.
fn write_bare(
    server: &FakeServer,
    batch: &[u8],
    driven: &Round,
    plan: &DriversPlan,
) -> Result<BareSocket, Error> {
    let (near, far) = bare_sockets::pair()?;
    thread::scope(|scope| {
        let serving = scope.spawn(move || server.serve(far));
        let writing = scope.spawn(move || driven.bare_socket().write(near, batch, plan.span));
        let bare = joined(writing)?;
        joined(serving)?;
        Ok(bare)
    })
}

/// Reads what a fake server sends.
fn read_bare(server: &FakeServer, driven: &Round, plan: &DriversPlan) -> Result<BareSocket, Error> {
    let (near, far) = bare_sockets::pair()?;
    let control = Control::new(0, 0, 0, 1);
    let mut batch = server.deliveries(&Topology::of(&server.load));
    thread::scope(|scope| {
        let reading = scope.spawn(move || driven.bare_socket().read(near));
        let over = || reading.is_finished() || interrupt::requested();
        let played = play(&far, &mut batch, plan.span, || control.now_ns(), over);
        let ended = far.shutdown(Shutdown::Write);
        let bare = joined(reading)?;
        played?;
        ended?;
        Ok(bare)
    })
}

//! The peer of measured sockets: answers requests and discards messages, or sends pre-encoded deliveries.
//! Independent of protocols, which [`FakeBroker`] knows.

use super::plan::DriversPlan;
use crate::client::{self, Error, FakeBroker, PATIENCE, ReceiveBuffer};
use crate::load::message::Batch;
use crate::load::plan::Plan;
use crate::load::topology::Topology;
use crate::tcp;
use std::convert::Infallible;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub(super) struct FakeServer {
    pub(super) listener: TcpListener,
    fake_broker: FakeBroker,
    /// The load whose producer or consumer runs.
    pub(super) load: Plan,
    /// Bytes of a published message, set before the first one.
    pub(super) message_bytes: OnceLock<usize>,
}

impl FakeServer {
    /// Listens as the fake broker for a URI scheme.
    pub(super) fn listen(scheme: &str, plan: &DriversPlan) -> Result<FakeServer, Error> {
        let listener = tcp::listen()?;
        let target = format!("{scheme}://{}", listener.local_addr()?).parse();
        let DriversPlan { size_bytes, checksum, latency, .. } = *plan;
        let load = Plan::new(target.map_err(Error::Invalid)?);
        let load = Plan { size_bytes, checksum, latency, ..load };
        let (fake_broker, message_bytes) = (client::fake_broker(&load.target), OnceLock::new());
        Ok(FakeServer { listener, fake_broker, load, message_bytes })
    }

    /// Ends the accept call if no client connects.
    pub(super) fn release(&self) {
        if let Ok(address) = self.listener.local_addr() {
            drop(TcpStream::connect(address));
        }
    }

    /// A batch of deliveries to the first consumer.
    pub(super) fn deliveries(&self, topology: &Topology) -> Batch {
        let name = topology.source(&self.load, 0).name;
        Batch::new(&self.load, 0, |body, out| self.fake_broker.deliver(name, body, out))
    }

    pub(super) fn greet(&self, mut stream: TcpStream) -> io::Result<u64> {
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&self.fake_broker.greeting)?;
        self.serve(stream)
    }

    /// Answers requests, and counts and discards messages, until the client hangs up.
    pub(super) fn serve(&self, mut stream: TcpStream) -> io::Result<u64> {
        let (mut incoming, mut messages) = (ReceiveBuffer::default(), 0);
        while incoming.fill(&mut stream)? > 0 {
            while let Some(count) = self.take(&mut incoming, &mut stream)? {
                messages += count;
            }
        }
        Ok(messages)
    }

    /// Takes one request, or as many messages as it returns. `None` if nothing is complete.
    fn take(
        &self,
        incoming: &mut ReceiveBuffer,
        stream: &mut TcpStream,
    ) -> io::Result<Option<u64>> {
        if let Some(&size) = self.message_bytes.get() {
            let whole = |bytes: &[u8]| {
                let count = self.fake_broker.messages(bytes, size);
                Ok::<_, Infallible>((count > 0).then_some((count as u64, count * size)))
            };
            if let Ok(Some(count)) = incoming.take(whole) {
                return Ok(Some(count));
            }
        }
        let request = |bytes: &[u8]| {
            let Some((reply, octets)) = self.fake_broker.request(bytes) else { return Ok(None) };
            stream.write_all(reply)?;
            Ok::<_, io::Error>(Some((0, octets)))
        };
        incoming.take(request)
    }
}

/// Sends deliveries for `span`, or until it is `over`. Returns their count.
pub(super) fn play(
    mut stream: &TcpStream,
    batch: &mut Batch,
    span: Duration,
    now_ns: impl Fn() -> u64,
    over: impl Fn() -> bool,
) -> io::Result<u64> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let (start, mut played) = (Instant::now(), 0);
    while start.elapsed() < span && !over() {
        let sent_ns = now_ns();
        stream.write_all(batch.stamp(batch.capacity, played, |_| sent_ns))?;
        played += batch.capacity;
    }
    Ok(played)
}

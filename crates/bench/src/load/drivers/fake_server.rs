//! The other ends of measured sockets: one that answers and discards, one that plays deliveries. Knows
//! requests and messages only through a stand-in.

use crate::client::{FakeBroker, PATIENCE, ReceiveBuffer};
use crate::load::batch::Batch;
use std::convert::Infallible;
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What serves one connection until the client hangs up.
pub(super) struct FakeServer<'a> {
    pub(super) fake_broker: &'a FakeBroker,
    /// Octets of a published message, known before the first one is.
    pub(super) message_bytes: &'a OnceLock<usize>,
}

impl FakeServer<'_> {
    /// Greets, and serves.
    pub(super) fn greet(&self, mut stream: TcpStream) -> io::Result<u64> {
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&self.fake_broker.greeting)?;
        self.serve(stream)
    }

    /// Answers requests and counts messages, which it discards.
    pub(super) fn serve(&self, mut stream: TcpStream) -> io::Result<u64> {
        let (mut incoming, mut messages) = (ReceiveBuffer::default(), 0);
        while incoming.fill(&mut stream)? > 0 {
            while let Some(count) = self.take(&mut incoming, &mut stream)? {
                messages += count;
            }
        }
        Ok(messages)
    }

    /// Takes what there is: as many messages as it returns, or a request. `None` if there is nothing
    /// whole.
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

/// Plays deliveries for so long, or until it is `over`. Returns how many.
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
        stream.write_all(batch.stamp(batch.capacity(), played, |_| sent_ns))?;
        played += batch.capacity();
    }
    Ok(played)
}

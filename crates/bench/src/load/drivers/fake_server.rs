//! The peers of measured sockets: one answers requests and discards messages, one sends pre-encoded
//! deliveries. Independent of protocols, which [`FakeBroker`] knows.

use crate::client::{FakeBroker, PATIENCE, ReceiveBuffer};
use crate::load::batch::Batch;
use std::convert::Infallible;
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Serves one connection until the client hangs up.
pub(super) struct FakeServer<'a> {
    pub(super) fake_broker: &'a FakeBroker,
    /// Bytes of a published message, set before the first one.
    pub(super) message_bytes: &'a OnceLock<usize>,
}

impl FakeServer<'_> {
    /// Sends the greeting, and serves.
    pub(super) fn greet(&self, mut stream: TcpStream) -> io::Result<u64> {
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&self.fake_broker.greeting)?;
        self.serve(stream)
    }

    /// Answers requests, and counts and discards messages.
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
        stream.write_all(batch.stamp(batch.capacity(), played, |_| sent_ns))?;
        played += batch.capacity();
    }
    Ok(played)
}

//! Speed of bare TCP sockets here, with a relay in place of a broker: the limit of any broker.

use super::latency::{Latencies, Summary};
use super::process;
use crate::client::PATIENCE;
use crate::tcp;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes per read of the relay and the receiver.
const READ_BYTES: usize = 256 * 1024;
/// The line that a relabelling relay puts before each message.
const LINE: &[u8] = b"MSG bench.12345.0 1 1024\r\n";
const BATCH_BYTES: usize = 64 * 1024;
/// The largest message that is measured.
pub const SIZE_BYTES_MAX: usize = 1 << 20;

/// The result.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct SocketSpeed {
    /// Bytes of a message.
    pub size_bytes: u64,
    /// Messages per second in one direction through the relay, sent in batches.
    pub messages_per_s: f64,
    /// Bytes per second of the same stream.
    pub bytes_per_s: f64,
    /// CPU nanoseconds per message of sender, relay and receiver together.
    pub cpu_ns_per_message: f64,
    /// Round trips of single messages through the relay.
    pub round_trip: Option<Summary>,
    /// Round trips of single messages without a relay.
    pub echo: Option<Summary>,
}

/// A stream through the relay, with one connection on each side of it.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Relayed {
    /// Relayed bytes.
    pub bytes: u64,
    /// Duration.
    pub seconds: f64,
    /// CPU nanoseconds of the relay's thread.
    pub relay_cpu_ns: u64,
}

impl Relayed {
    /// Messages per second, if each has `wire_bytes`.
    pub fn messages_per_s(&self, wire_bytes: usize) -> f64 {
        self.bytes_per_s() / wire_bytes.max(1) as f64
    }

    /// CPU nanoseconds of the relay per message, if each has `wire_bytes`.
    pub fn relay_ns(&self, wire_bytes: usize) -> f64 {
        self.relay_cpu_ns as f64 / self.bytes.max(1) as f64 * wire_bytes as f64
    }

    fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.seconds.max(1e-9)
    }
}

/// Measures a stream through the relay, then single round trips with and without it, each for `span`.
pub fn measure(size_bytes: usize, span: Duration) -> io::Result<SocketSpeed> {
    let size_bytes = size_bytes.clamp(1, SIZE_BYTES_MAX);
    let (relayed, cpu_ns) = stream(size_bytes * (BATCH_BYTES / size_bytes).max(1), span, relay)?;
    Ok(SocketSpeed {
        size_bytes: size_bytes as u64,
        messages_per_s: relayed.messages_per_s(size_bytes),
        bytes_per_s: relayed.bytes_per_s(),
        cpu_ns_per_message: cpu_ns as f64 / relayed.bytes.max(1) as f64 * size_bytes as f64,
        round_trip: round_trips(size_bytes, span)?.summary(),
        echo: echoes(size_bytes, span)?.summary(),
    })
}

/// Measures only round trips through the relay, which are two hops each way.
pub fn round_trip(size_bytes: usize, span: Duration) -> io::Result<Option<Summary>> {
    Ok(round_trips(size_bytes.clamp(1, SIZE_BYTES_MAX), span)?.summary())
}

/// Measures only the stream, with writes and reads as large as the load generator's with one producer.
pub fn relayed(span: Duration) -> io::Result<Relayed> {
    Ok(stream(READ_BYTES, span, relay)?.0)
}

/// Measures a stream through a relay that replaces the line before each message, as every broker does.
pub fn relabelled(wire_bytes: usize, span: Duration) -> io::Result<Relayed> {
    let wire_bytes = wire_bytes.clamp(1, SIZE_BYTES_MAX);
    Ok(stream(READ_BYTES, span, move |from, to| relabel(from, to, wire_bytes))?.0)
}

/// Both ends of a loopback connection.
pub(crate) fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = tcp::listen()?;
    let near = tcp::connect(listener.local_addr()?, PATIENCE)?;
    let (far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    Ok((near, far))
}

/// Copies from one socket to the other until the end of the stream.
fn relay(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return to.shutdown(Shutdown::Write);
        }
        to.write_all(&buffer[..count])?;
    }
}

/// Copies whole messages until the end of the stream, and replaces the line before each.
fn relabel(mut from: TcpStream, mut to: TcpStream, wire_bytes: usize) -> io::Result<()> {
    let line = &LINE[..LINE.len().min(wire_bytes)];
    let mut input = vec![0; READ_BYTES + wire_bytes];
    let mut output = Vec::with_capacity(input.len());
    let mut held = 0;
    loop {
        let count = from.read(&mut input[held..held + READ_BYTES])?;
        if count == 0 {
            return to.shutdown(Shutdown::Write);
        }
        held += count;
        output.clear();
        let messages = input[..held].chunks_exact(wire_bytes);
        let left = messages.remainder().len();
        for message in messages {
            output.extend_from_slice(line);
            output.extend_from_slice(&message[line.len()..]);
        }
        to.write_all(&output)?;
        input.copy_within(held - left..held, 0);
        held = left;
    }
}

/// Streams through `relay` for `span`, `write_bytes` per write. Returns also the CPU nanoseconds of
/// sender, relay and receiver together.
fn stream(
    write_bytes: usize,
    span: Duration,
    relay: impl FnOnce(TcpStream, TcpStream) -> io::Result<()> + Send,
) -> io::Result<(Relayed, u64)> {
    let (mut sender, relay_in) = pair()?;
    let (relay_out, mut receiver) = pair()?;
    thread::scope(|scope| {
        let relaying = scope.spawn(move || {
            relay(relay_in, relay_out)?;
            Ok::<_, io::Error>(process::thread_cpu_ns())
        });
        let sending = scope.spawn(move || {
            let batch = vec![b'x'; write_bytes];
            let start = Instant::now();
            while start.elapsed() < span {
                sender.write_all(&batch)?;
            }
            sender.shutdown(Shutdown::Write)
        });
        let mut buffer = vec![0; READ_BYTES];
        let (start, cpu_ns, mut bytes) = (Instant::now(), process::own_cpu_ns(), 0u64);
        loop {
            let count = receiver.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            bytes += count as u64;
        }
        let seconds = start.elapsed().as_secs_f64();
        let cpu_ns = process::own_cpu_ns() - cpu_ns;
        sending.join().expect("the sender does not panic")?;
        let relay_cpu_ns = relaying.join().expect("the relay does not panic")?;
        Ok((Relayed { bytes, seconds, relay_cpu_ns }, cpu_ns))
    })
}

fn round_trips(size_bytes: usize, span: Duration) -> io::Result<Latencies> {
    let (near, relay_near) = pair()?;
    let (relay_far, far) = pair()?;
    let (back_in, back_out) = (relay_far.try_clone()?, relay_near.try_clone()?);
    thread::scope(|scope| {
        let there = scope.spawn(move || relay(relay_near, relay_far));
        let back = scope.spawn(move || relay(back_in, back_out));
        let echoing = scope.spawn(move || echo(far, size_bytes));
        let latencies = ask(near, size_bytes, span)?;
        echoing.join().expect("the echo does not panic")?;
        there.join().expect("the relay does not panic")?;
        back.join().expect("the relay does not panic")?;
        Ok(latencies)
    })
}

fn echoes(size_bytes: usize, span: Duration) -> io::Result<Latencies> {
    let (near, far) = pair()?;
    thread::scope(|scope| {
        let echoing = scope.spawn(move || echo(far, size_bytes));
        let latencies = ask(near, size_bytes, span)?;
        echoing.join().expect("the echo does not panic")?;
        Ok(latencies)
    })
}

/// Sends every message back until the end of the stream.
fn echo(mut socket: TcpStream, size_bytes: usize) -> io::Result<()> {
    let mut message = vec![0; size_bytes];
    while socket.read_exact(&mut message).is_ok() {
        socket.write_all(&message)?;
    }
    socket.shutdown(Shutdown::Write)
}

/// Sends a message and waits for it, repeatedly for `span`, then ends the stream.
fn ask(mut socket: TcpStream, size_bytes: usize, span: Duration) -> io::Result<Latencies> {
    let mut latencies = Latencies::default();
    let mut message = vec![b'x'; size_bytes];
    let start = Instant::now();
    while start.elapsed() < span {
        let before = Instant::now();
        socket.write_all(&message)?;
        socket.read_exact(&mut message)?;
        latencies.record(before.elapsed().as_nanos() as u64);
    }
    socket.shutdown(Shutdown::Write)?;
    Ok(latencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_is_measured() {
        let speed = measure(100, Duration::from_millis(20)).expect("loopback works");
        assert!(speed.messages_per_s > 0.0 && speed.cpu_ns_per_message > 0.0);
        assert!(speed.round_trip.is_some_and(|trip| trip.count > 0));
        assert!(speed.echo.is_some_and(|trip| trip.count > 0));
        let relayed = relayed(Duration::from_millis(20)).expect("loopback works");
        assert!(relayed.bytes >= READ_BYTES as u64, "{relayed:?}");
        assert!(relayed.seconds > 0.0 && relayed.relay_cpu_ns > 0, "{relayed:?}");
    }

    #[test]
    fn every_message_gets_another_line() {
        for wire_bytes in [1, 26, 100, 1_053, 300_000] {
            let (mut sender, relay_in) = pair().expect("loopback works");
            let (relay_out, mut receiver) = pair().expect("loopback works");
            let sent = vec![b'x'; wire_bytes * 3];
            let mut message = sent[..wire_bytes].to_vec();
            let line = LINE.len().min(wire_bytes);
            message[..line].copy_from_slice(&LINE[..line]);
            thread::scope(|scope| {
                scope.spawn(move || relabel(relay_in, relay_out, wire_bytes));
                scope.spawn(move || {
                    sender.write_all(&sent).and_then(|()| sender.shutdown(Shutdown::Write))
                });
                let mut arrived = Vec::new();
                receiver.read_to_end(&mut arrived).expect("loopback works");
                assert!(arrived == message.repeat(3), "{wire_bytes} octets each");
            });
        }
        let relayed = relabelled(100, Duration::from_millis(20)).expect("loopback works");
        assert!(relayed.bytes > 100 && relayed.relay_cpu_ns > 0, "{relayed:?}");
    }

    #[test]
    fn octets_through_the_relay_are_those_of_so_many_messages() {
        let relayed = Relayed { bytes: 1_000_000_000, seconds: 2.0, relay_cpu_ns: 500_000_000 };
        for (wire_bytes, rate, ns) in [(1, 5e8, 0.5), (125, 4e6, 62.5), (1_000, 5e5, 500.0)] {
            assert_eq!(relayed.messages_per_s(wire_bytes), rate);
            assert_eq!(relayed.relay_ns(wire_bytes), ns);
        }
        // An empty stream.
        assert_eq!(
            (Relayed::default().messages_per_s(1), Relayed::default().relay_ns(1)),
            (0., 0.)
        );
    }
}

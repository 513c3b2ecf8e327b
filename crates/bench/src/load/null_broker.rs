//! The null broker of the isolation control run: takes floods and feeds readers at the pace that the real
//! broker had, without routing. What healthy clients lose beside it is the machine's doing. Independent of
//! protocols.

use super::misbehaving_clients::{Deeds, FLOOD_BYTES, Misbehaving, PATIENCE, RECEIVE_BUFFER_BYTES};
use super::misbehaving_clients::{dawdle, pour, spawn, stall};
use crate::client::is_timeout;
use crate::measure::bare_sockets;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// Octets per second that the broker took from, or gave to, all clients of a kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Paces {
    pub(super) flooding: f64,
    pub(super) unacking: f64,
    pub(super) draining: f64,
    /// What one that is slow reads.
    pub(super) slow_bytes_per_s: u64,
}

/// Lets the same clients loose on sinks, one for each, until `deeds.stop`.
pub(super) fn release<'scope>(
    scope: &'scope Scope<'scope, '_>,
    misbehaving: &Misbehaving,
    paces: Paces,
    deeds: &'scope Deeds,
) -> io::Result<()> {
    for _ in 0..misbehaving.stalled {
        let (client, sink) = sluggish()?;
        spawn(scope, move || stall(client, deeds));
        scope.spawn(move || feed(&sink, None, deeds));
    }
    for _ in 0..misbehaving.slow {
        let (client, sink) = sluggish()?;
        spawn(scope, move || dawdle(client, paces.slow_bytes_per_s, deeds, || None));
        scope.spawn(move || feed(&sink, None, deeds));
    }
    let takers = [
        (misbehaving.unacking, paces.unacking),
        (usize::from(misbehaving.drains()), paces.draining),
    ];
    for (count, pace) in takers {
        for _ in 0..count {
            let (client, sink) = pair()?;
            spawn(scope, move || take(&client, None, deeds));
            scope.spawn(move || feed(&sink, Some(pace / count as f64), deeds));
        }
    }
    for _ in 0..misbehaving.flooding {
        let (client, sink) = pair()?;
        let pace = paces.flooding / misbehaving.flooding as f64;
        spawn(scope, move || {
            // A sink that ends does so with the run.
            let _ = pour(&client, &vec![b'f'; FLOOD_BYTES], deeds);
        });
        scope.spawn(move || take(&sink, Some(pace), deeds));
    }
    Ok(())
}

/// Both ends of a connection over loopback.
fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let (client, sink) = bare_sockets::pair()?;
    for stream in [&client, &sink] {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
    }
    Ok((client, sink))
}

/// The same, with a client for which the kernel keeps little.
fn sluggish() -> io::Result<(TcpStream, TcpStream)> {
    let (client, sink) = pair()?;
    set_socket_recv_buffer_size(&client, RECEIVE_BUFFER_BYTES)?;
    Ok((client, sink))
}

/// Reads and discards, at that pace or as fast as it comes.
fn take(mut stream: &TcpStream, pace: Option<f64>, deeds: &Deeds) {
    let mut buffer = vec![0; FLOOD_BYTES];
    paced(pace, deeds, || stream.read(&mut buffer));
}

/// Writes, at that pace or as fast as it goes.
fn feed(mut stream: &TcpStream, pace: Option<f64>, deeds: &Deeds) {
    let buffer = vec![b's'; FLOOD_BYTES];
    paced(pace, deeds, || stream.write(&buffer));
}

/// Does one step after the other until it is over or the connection is.
fn paced(pace: Option<f64>, deeds: &Deeds, mut step: impl FnMut() -> io::Result<usize>) {
    let (start, mut octets) = (Instant::now(), 0);
    while !deeds.stop.load(Ordering::Relaxed) {
        let early = pace.map_or(Duration::ZERO, |pace| early(octets, pace, start.elapsed()));
        if !early.is_zero() {
            thread::sleep(early.min(PATIENCE));
            continue;
        }
        match step() {
            Ok(0) => return,
            Ok(count) => octets += count as u64,
            Err(error) if is_timeout(&error) => {}
            Err(_) => return,
        }
    }
}

/// How long so many octets are before their time.
fn early(octets: u64, pace: f64, elapsed: Duration) -> Duration {
    // Whoever did nothing in the whole run does nothing here.
    let due = Duration::try_from_secs_f64(octets.max(1) as f64 / pace).unwrap_or(Duration::MAX);
    due.saturating_sub(elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_have_their_time() {
        let second = Duration::from_secs(1);
        assert_eq!(early(3_000, 1_000.0, second), 2 * second);
        assert_eq!(early(1_000, 1_000.0, second), Duration::ZERO);
        assert_eq!(early(0, 1e9, second), Duration::ZERO);
        assert!(early(0, 0.0, second) > 1_000 * second);
    }

    #[test]
    fn all_kinds_are_let_loose_and_end() {
        let deeds = Deeds::default();
        let misbehaving =
            Misbehaving { stalled: 1, slow: 2, flooding: 2, unacking: 1, backlog_bytes: 1 };
        let paces = Paces { flooding: 1e9, unacking: 1e9, draining: 1e9, slow_bytes_per_s: 1_000 };
        let enough = 4 * FLOOD_BYTES as u64;
        thread::scope(|scope| {
            release(scope, &misbehaving, paces, &deeds).expect("loopback has ports");
            // More than what fits into sockets: it is taken, too.
            while deeds.flooded_bytes.load(Ordering::Relaxed) < 200 * enough {
                thread::sleep(Duration::from_millis(1));
            }
            deeds.stop.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn what_the_broker_did_not_take_is_not_taken() {
        let deeds = Deeds::default();
        let (client, sink) = pair().expect("loopback has ports");
        thread::scope(|scope| {
            let taking = scope.spawn(|| take(&sink, Some(0.0), &deeds));
            (&client).write_all(b"flood").expect("it fits");
            // Long enough for it to be taken if it were.
            thread::sleep(2 * PATIENCE);
            deeds.stop.store(true, Ordering::Relaxed);
            taking.join().expect("it does not panic");
        });
        let mut left = [0; 8];
        assert_eq!((&sink).read(&mut left).expect("it lies there"), 5);
    }
}

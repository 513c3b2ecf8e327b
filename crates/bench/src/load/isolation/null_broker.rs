//! The null broker of the control run: takes floods and feeds readers at the real broker's pace, without
//! routing. What healthy clients lose beside it is the machine's doing. Independent of protocols.

use super::misbehaving_clients::{
    Activity, FLOOD_BYTES, Misbehaving, PATIENCE, RECEIVE_BUFFER_BYTES, never_read, read_slowly,
    spawn, write_flood,
};
use crate::client::is_timeout;
use crate::measure::bare_sockets;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// Bytes per second that the broker took from, or gave to, all clients of a kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Paces {
    pub(super) flooding: f64,
    pub(super) unacking: f64,
    pub(super) draining: f64,
    /// Of one slow client.
    pub(super) slow_bytes_per_s: u64,
}

/// Runs the same clients against null brokers, one for each, until `activity.stop`.
pub(super) fn release<'scope>(
    scope: &'scope Scope<'scope, '_>,
    misbehaving: &Misbehaving,
    paces: Paces,
    activity: &'scope Activity,
) -> io::Result<()> {
    for _ in 0..misbehaving.stalled {
        let (client, server) = pair()?;
        set_socket_recv_buffer_size(&client, RECEIVE_BUFFER_BYTES)?;
        spawn(scope, move || never_read(client, activity));
        scope.spawn(move || write_paced(&server, None, activity));
    }
    for _ in 0..misbehaving.slow {
        let (client, server) = pair()?;
        set_socket_recv_buffer_size(&client, RECEIVE_BUFFER_BYTES)?;
        spawn(scope, move || read_slowly(client, paces.slow_bytes_per_s, activity, || None));
        scope.spawn(move || write_paced(&server, None, activity));
    }
    let takers = [
        (misbehaving.unacking, paces.unacking),
        (usize::from(misbehaving.backlog_bytes > 0), paces.draining),
    ];
    for (count, pace) in takers {
        for _ in 0..count {
            let (client, server) = pair()?;
            spawn(scope, move || read_paced(&client, None, activity));
            scope.spawn(move || write_paced(&server, Some(pace / count as f64), activity));
        }
    }
    for _ in 0..misbehaving.flooding {
        let (client, server) = pair()?;
        let pace = paces.flooding / misbehaving.flooding as f64;
        spawn(scope, move || {
            // A null broker ends with the run.
            let _ = write_flood(&client, &vec![b'f'; FLOOD_BYTES], activity);
        });
        scope.spawn(move || read_paced(&server, Some(pace), activity));
    }
    Ok(())
}

fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let (client, server) = bare_sockets::pair()?;
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
    }
    Ok((client, server))
}

/// Reads and discards, at this pace or as fast as possible.
fn read_paced(mut stream: &TcpStream, pace: Option<f64>, activity: &Activity) {
    let mut buffer = vec![0; FLOOD_BYTES];
    paced(pace, activity, || stream.read(&mut buffer));
}

/// Writes, at this pace or as fast as possible.
fn write_paced(mut stream: &TcpStream, pace: Option<f64>, activity: &Activity) {
    let buffer = vec![b's'; FLOOD_BYTES];
    paced(pace, activity, || stream.write(&buffer));
}

/// Repeats a step until the run is over or the connection fails.
fn paced(pace: Option<f64>, activity: &Activity, mut step: impl FnMut() -> io::Result<usize>) {
    let (start, mut octets) = (Instant::now(), 0);
    while !activity.stop.load(Ordering::Relaxed) {
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

/// How long before its due time this many bytes are moved.
fn early(octets: u64, pace: f64, elapsed: Duration) -> Duration {
    // A pace of 0 moves nothing.
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
        let activity = Activity::default();
        let misbehaving =
            Misbehaving { stalled: 1, slow: 2, flooding: 2, unacking: 1, backlog_bytes: 1 };
        let paces = Paces { flooding: 1e9, unacking: 1e9, draining: 1e9, slow_bytes_per_s: 1_000 };
        let enough = 4 * FLOOD_BYTES as u64;
        thread::scope(|scope| {
            release(scope, &misbehaving, paces, &activity).expect("loopback has ports");
            // More than sockets buffer: it is read, too.
            while activity.flooded_bytes.load(Ordering::Relaxed) < 200 * enough {
                thread::sleep(Duration::from_millis(1));
            }
            activity.stop.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn what_the_broker_did_not_take_is_not_taken() {
        let activity = Activity::default();
        let (client, server) = pair().expect("loopback has ports");
        thread::scope(|scope| {
            let taking = scope.spawn(|| read_paced(&server, Some(0.0), &activity));
            (&client).write_all(b"flood").expect("it fits");
            // Long enough for a read.
            thread::sleep(2 * PATIENCE);
            activity.stop.store(true, Ordering::Relaxed);
            taking.join().expect("it does not panic");
        });
        let mut left = [0; 8];
        assert_eq!((&server).read(&mut left).expect("it lies there"), 5);
    }
}

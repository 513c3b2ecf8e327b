//! The machine's limit for one message to very many connections: bare sockets, written by one thread per
//! processor. Independent of brokers and protocols.

use super::fanout_latency::{FanoutReceivers, stamped_body};
use super::idle::raise_descriptor_limit;
use super::plan::DRAIN;
use crate::client::Error;
use crate::measure::bare_sockets;
use rustix::process::{Resource, getrlimit};
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;

/// Descriptors left for other files.
const OTHER_DESCRIPTORS: u64 = 200;

/// Milliseconds of each wave until the last of `connections` sockets was read. If the descriptor limit
/// allows fewer sockets, the times are extrapolated in proportion.
pub(crate) fn measure(connections: usize, waves: usize) -> Result<Vec<f64>, Error> {
    raise_descriptor_limit(2 * connections as u64 + OTHER_DESCRIPTORS);
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let pairs = (allowed.saturating_sub(OTHER_DESCRIPTORS) / 2).clamp(1, connections as u64);
    let pairs: io::Result<Vec<_>> = (0..pairs).map(|_| bare_sockets::pair()).collect();
    let (near, far): (Vec<_>, Vec<_>) = pairs?.into_iter().unzip();
    let part = far.len() as f64 / connections as f64;
    Ok(send(&near, &far, waves)?.into_iter().map(|ms| ms / part).collect())
}

/// Writes each wave from all threads and reads it here. Returns the milliseconds of each.
fn send(near: &[TcpStream], far: &[TcpStream], waves: usize) -> Result<Vec<f64>, Error> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut receivers = FanoutReceivers::new(near)?;
    thread::scope(|scope| {
        let writers: Vec<mpsc::Sender<u64>> = far
            .chunks(far.len().div_ceil(threads))
            .map(|share| {
                let (begin, begun) = mpsc::channel();
                scope.spawn(move || begun.iter().try_for_each(|wave| write(share, wave)));
                begin
            })
            .collect();
        let publish = |wave| {
            for writer in &writers {
                // A failed writer shows as a wave that does not complete.
                let _ = writer.send(wave);
            }
            Ok(())
        };
        receivers.waves(waves, publish, DRAIN)
    })
}

fn write(sockets: &[TcpStream], wave: u64) -> io::Result<()> {
    let body = stamped_body(wave);
    sockets.iter().try_for_each(|mut socket| socket.write_all(&body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wave_reaches_all_of_them() {
        let waves = measure(50, 3).expect("loopback has ports");
        assert!(waves.len() == 3 && waves.iter().all(|&ms| ms > 0.0), "{waves:?}");
    }
}

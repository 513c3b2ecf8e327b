//! One message to very many connections at once: how long until the last of them has it.

use crate::client::Error;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// What every message of a wave ends its body with.
const MARKER: &[u8; 16] = b"-wave-ends-here-";
/// Octets of a body.
pub(super) const BODY_BYTES: usize = 100;
/// How long a wave may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The body of a wave's message.
pub(super) fn body() -> Vec<u8> {
    let mut body = vec![b'x'; BODY_BYTES - MARKER.len()];
    body.extend_from_slice(MARKER);
    body
}

/// Sockets that wait for waves, all in one epoll instance.
pub(super) struct Shore<'a> {
    sockets: &'a [TcpStream],
    epoll: OwnedFd,
    buffer: Vec<u8>,
    /// Of a socket whose last read ended amid a message: the end of it.
    tails: BTreeMap<usize, Vec<u8>>,
}

impl<'a> Shore<'a> {
    pub(super) fn new(sockets: &'a [TcpStream]) -> Result<Shore<'a>, Error> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        for (index, socket) in sockets.iter().enumerate() {
            socket.set_nonblocking(true)?;
            epoll::add(&epoll, socket, EventData::new_u64(index as u64), EventFlags::IN)
                .map_err(io::Error::from)?;
        }
        let mut shore =
            Shore { sockets, epoll, buffer: vec![0; 16 * 1024], tails: BTreeMap::new() };
        // What came before, such as a broker's pings, is no part of a wave.
        while shore.look(Duration::from_millis(20), &mut |_| {})? > 0 {}
        shore.tails.clear();
        Ok(shore)
    }

    /// Calls `publish` and waits until every socket has one message. Returns how long that took.
    pub(super) fn wave(
        &mut self,
        publish: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Duration, Error> {
        let mut have = vec![false; self.sockets.len()];
        let mut missing = self.sockets.len();
        let start = Instant::now();
        publish()?;
        while missing > 0 {
            self.look(Duration::from_secs(1), &mut |index| {
                if !std::mem::replace(&mut have[index], true) {
                    missing -= 1;
                }
            })?;
            if start.elapsed() > PATIENCE {
                let count = self.sockets.len();
                return Err(Error::Nonsense(format!("no message to {missing} of {count}")));
            }
        }
        Ok(start.elapsed())
    }

    /// Reads every socket that has something, and tells which messages ended. Returns how many
    /// sockets had something.
    fn look(&mut self, wait: Duration, arrived: &mut impl FnMut(usize)) -> Result<usize, Error> {
        let timeout =
            Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut events: Vec<Event> = Vec::with_capacity(1_024);
        epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout))
            .map_err(io::Error::from)?;
        for event in &events {
            let index = event.data.u64() as usize;
            let count = match (&self.sockets[index]).read(&mut self.buffer) {
                Ok(0) => return Err(Error::hung_up()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            };
            self.scan(index, count, arrived);
        }
        Ok(events.len())
    }

    fn scan(&mut self, index: usize, count: usize, arrived: &mut impl FnMut(usize)) {
        let mut bytes = self.tails.remove(&index).unwrap_or_default();
        bytes.extend_from_slice(&self.buffer[..count]);
        let mut from = 0;
        while let Some(at) = find(&bytes[from..]) {
            arrived(index);
            from += at + MARKER.len();
        }
        // The end of a message is behind its marker; a part of a marker is shorter than that.
        let tail = &bytes[from..];
        let keep = tail.len().min(MARKER.len() - 1);
        if tail[tail.len() - keep..].contains(&b'-') {
            self.tails.insert(index, tail[tail.len() - keep..].to_vec());
        }
    }
}

fn find(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MARKER.len()).position(|window| window == MARKER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn a_wave_ends_when_the_last_socket_has_its_message() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
        let address = listener.local_addr().expect("it is bound");
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for _ in 0..50 {
            near.push(TcpStream::connect(address).expect("it listens"));
            far.push(listener.accept().expect("it connects").0);
        }
        far[0].write_all(b"PING\r\n").expect("it reads");
        let mut shore = Shore::new(&near).expect("epoll is there");
        for round in 0..3 {
            let publish = || {
                for (index, socket) in far.iter_mut().enumerate() {
                    let mut message = b"MSG a 1 100\r\n".to_vec();
                    message.extend_from_slice(&body());
                    message.extend_from_slice(b"\r\n");
                    // In pieces that cut the marker at every place.
                    let cut = message.len() - 2 - index % MARKER.len();
                    socket.write_all(&message[..cut])?;
                    socket.write_all(&message[cut..])?;
                }
                Ok(())
            };
            shore.wave(publish).unwrap_or_else(|error| panic!("wave {round}: {error}"));
        }
        drop(far.pop());
        assert!(shore.wave(|| Ok(())).is_err());
    }
}

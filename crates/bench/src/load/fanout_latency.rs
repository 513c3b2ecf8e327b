//! Fan-out latency: a wave is one message to very many connections; measured is the time until the last
//! of them has it, and checked that each has it once and undamaged.

use super::message;
use super::stamp::{self, Stamp, TIMED_BYTES};
use super::verdict::{Checked, Judge, Verdict};
use crate::client::Error;
use crate::interrupt;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

/// Follows the stamp in every body of a wave, and finds bodies within the bytes of any protocol: ten
/// thousands of connections have no room for a client's buffers each.
const MARK: &[u8; 16] = b"-a-wave-is-here-";
pub(super) const BODY_BYTES: usize = 100;
/// No protocol ends a message with more bytes than this; every protocol begins one with more.
const END_BYTES_MAX: usize = 8;
/// How long input gathers before it is read; a wave's time is at most that much too long. A tool that wakes
/// for every message competes with the broker for the processors, which remote clients do not.
const GATHER: Duration = Duration::from_micros(500);
const PAUSE: Duration = Duration::from_millis(100);
/// How long nothing must arrive before the receivers are considered silent.
const SILENCE: Duration = Duration::from_millis(50);
/// Limit on the wait for silence.
const NOISE_MAX: Duration = Duration::from_secs(5);

/// The body of a wave's message, before it is stamped.
pub(super) fn body() -> Vec<u8> {
    let mut body = message::body(BODY_BYTES);
    body[TIMED_BYTES..TIMED_BYTES + MARK.len()].copy_from_slice(MARK);
    body
}

/// The body as stamped for this wave.
pub(super) fn stamped_body(wave: u64) -> Vec<u8> {
    let mut body = body();
    let mut stamp = Stamp::of(0, wave);
    stamp.checksum = stamp::checksum(&stamp, crc32fast::hash(&body[TIMED_BYTES..]));
    stamp.write(&mut body);
    body
}

/// A body that a socket received.
struct Arrival {
    socket: usize,
    body: [u8; BODY_BYTES],
}

/// Sockets that receive waves, all in one epoll instance.
pub(super) struct FanoutReceivers<'a> {
    sockets: &'a [TcpStream],
    epoll: OwnedFd,
    buffer: Vec<u8>,
    /// The incomplete end of the last read, by socket.
    tails: BTreeMap<usize, Vec<u8>>,
    /// Bytes received by each socket since the wave began.
    octets: Vec<u64>,
    /// Received bodies by socket, judged once the wave's time is taken.
    arrivals: Vec<Arrival>,
    judges: Vec<Judge>,
    published: u64,
}

impl<'a> FanoutReceivers<'a> {
    pub(super) fn new(sockets: &'a [TcpStream]) -> Result<FanoutReceivers<'a>, Error> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        for (index, socket) in sockets.iter().enumerate() {
            socket.set_nonblocking(true)?;
            epoll::add(&epoll, socket, EventData::new_u64(index as u64), EventFlags::IN)
                .map_err(io::Error::from)?;
        }
        let mut receivers = FanoutReceivers {
            sockets,
            epoll,
            buffer: vec![0; 16 * 1024],
            tails: BTreeMap::new(),
            octets: vec![0; sockets.len()],
            arrivals: Vec::with_capacity(sockets.len() + sockets.len() / 8),
            judges: sockets.iter().map(|_| Judge::new(1, BODY_BYTES, true)).collect(),
            published: 0,
        };
        // Earlier input, such as a broker's pings, is not part of a wave.
        receivers.fall_silent(Duration::from_millis(20))?;
        receivers.tails.clear();
        Ok(receivers)
    }

    /// Sends up to `count` waves, and stops after an incomplete one, whose losses would be waited for again.
    /// `publish` sends the wave with this number. Returns the milliseconds of complete waves.
    pub(super) fn waves(
        &mut self,
        count: usize,
        mut publish: impl FnMut(u64) -> Result<(), Error>,
        drain: Duration,
    ) -> Result<Vec<f64>, Error> {
        let mut waves_ms = Vec::new();
        for _ in 0..count {
            // Lets the broker become idle, as it is between rare messages.
            thread::sleep(PAUSE);
            let Some(time) = self.wave(&mut publish, drain)? else { break };
            waves_ms.push(time.as_secs_f64() * 1e3);
        }
        Ok(waves_ms)
    }

    /// Calls `publish` with the wave's number and waits until every socket has its message. Returns the
    /// time; `None` if some have none and nothing arrived for `drain`.
    fn wave(
        &mut self,
        publish: impl FnOnce(u64) -> Result<(), Error>,
        drain: Duration,
    ) -> Result<Option<Duration>, Error> {
        let mut have = vec![false; self.sockets.len()];
        let (mut missing, mut seen) = (self.sockets.len(), 0);
        self.octets.fill(0);
        let start = Instant::now();
        publish(self.published)?;
        self.published += 1;
        let mut moved = Instant::now();
        while missing > 0 && moved.elapsed() < drain && !interrupt::requested() {
            thread::sleep(GATHER);
            self.look(drain.min(Duration::from_secs(1)))?;
            // A broker's pings do not extend the wait.
            if self.arrivals.len() > seen {
                moved = Instant::now();
            }
            for Arrival { socket, body } in &self.arrivals[seen..] {
                let is_this = Stamp::read(body).is_some_and(|it| it.sequence + 1 == self.published);
                if is_this && !std::mem::replace(&mut have[*socket], true) {
                    missing -= 1;
                }
            }
            seen = self.arrivals.len();
        }
        let time = start.elapsed();
        if missing > 0 {
            self.arrivals.iter().for_each(|it| have[it.socket] = true);
            for (index, judge) in self.judges.iter_mut().enumerate() {
                // A message's worth of bytes without a recognizable body is a damaged message.
                if !have[index] && self.octets[index] >= BODY_BYTES as u64 {
                    judge.tally.record_corrupt();
                }
            }
        }
        self.judge();
        Ok((missing == 0).then_some(time))
    }

    /// Waits for late input and judges all waves: each message had to reach each socket.
    pub(super) fn verdict(mut self) -> Result<Verdict, Error> {
        self.fall_silent(SILENCE)?;
        self.judge();
        let mut verdict = Verdict::new(Checked::of(BODY_BYTES, true));
        for judge in &self.judges {
            verdict.add_queue(&judge.tally, &[self.published]);
        }
        Ok(verdict)
    }

    fn judge(&mut self) {
        for Arrival { socket, body } in self.arrivals.drain(..) {
            self.judges[socket].judge(&body);
        }
    }

    /// Reads until nothing arrives for `silence`, or for [`NOISE_MAX`].
    fn fall_silent(&mut self, silence: Duration) -> Result<(), Error> {
        let begun = Instant::now();
        while begun.elapsed() < NOISE_MAX && !interrupt::requested() && self.look(silence)? > 0 {}
        Ok(())
    }

    /// Reads every readable socket and keeps received bodies. Returns the number of readable sockets.
    fn look(&mut self, wait: Duration) -> Result<usize, Error> {
        let timeout = Timespec::try_from(wait).expect("a short wait");
        let mut events: Vec<Event> = Vec::with_capacity(1_024);
        let spare = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.epoll, spare, Some(&timeout)) {
            // The callers check for interrupts.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        for event in &events {
            let index = event.data.u64() as usize;
            let count = match (&self.sockets[index]).read(&mut self.buffer) {
                Ok(0) => return Err(Error::hung_up()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            };
            self.scan(index, count);
        }
        Ok(events.len())
    }

    fn scan(&mut self, index: usize, count: usize) {
        self.octets[index] += count as u64;
        let read = &self.buffer[..count];
        let joined = self.tails.remove(&index).map(|tail| [&tail, read].concat());
        let bytes = joined.as_deref().unwrap_or(read);
        let arrivals = &mut self.arrivals;
        let kept_from = bodies(bytes, |body| arrivals.push(Arrival { socket: index, body: *body }));
        if kept_from < bytes.len() {
            self.tails.insert(index, bytes[kept_from..].to_vec());
        }
    }
}

/// Calls `each` for every complete body. Returns the offset of bytes that may begin the next one.
fn bodies(bytes: &[u8], mut each: impl FnMut(&[u8; BODY_BYTES])) -> usize {
    let mut from = 0;
    while let Some(at) = bytes[from..].windows(MARK.len()).position(|window| window == MARK) {
        let Some(start) = (from + at).checked_sub(TIMED_BYTES) else {
            // A mark without room for a stamp is not part of a wave.
            from += at + MARK.len();
            continue;
        };
        let Some(body) = bytes[start..].first_chunk() else { return start };
        each(body);
        from = start + BODY_BYTES;
    }
    let left = bytes.len() - from;
    match from > 0 && left <= END_BYTES_MAX {
        true => bytes.len(),
        // The bytes may end with a stamp and a part of the mark.
        false => bytes.len() - left.min(TIMED_BYTES + MARK.len() - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener};

    /// A NATS message with the body of this wave.
    fn message(wave: u64) -> Vec<u8> {
        [b"MSG bench.123.idle 1 100\r\n", stamped_body(wave).as_slice(), b"\r\n"].concat()
    }

    /// The waves found in bytes that arrive in two reads.
    fn found(bytes: &[u8], cut: usize) -> Vec<u64> {
        let mut waves = Vec::new();
        let mut each =
            |body: &[u8; BODY_BYTES]| waves.push(Stamp::read(body).expect("it fits").sequence);
        let (first, second) = bytes.split_at(cut);
        let kept_from = bodies(first, &mut each);
        bodies(&[&first[kept_from..], second].concat(), &mut each);
        waves
    }

    #[test]
    fn bodies_are_found_wherever_a_read_ends() {
        let bytes = [message(0), b"PING\r\n".to_vec(), message(1), message(2)].concat();
        for cut in 0..=bytes.len() {
            assert_eq!(found(&bytes, cut), [0, 1, 2], "cut at {cut}");
        }
        assert_eq!(found(MARK, 3), [0; 0]);
    }

    /// Fifty connections, both ends.
    fn pairs() -> (Vec<TcpStream>, Vec<TcpStream>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
        let address = listener.local_addr().expect("it is bound");
        let connect = |_| {
            let near = TcpStream::connect(address).expect("it listens");
            (near, listener.accept().expect("it connects").0)
        };
        (0..50).map(connect).unzip()
    }

    const DRAIN: Duration = Duration::from_millis(200);

    #[test]
    fn a_wave_ends_when_the_last_socket_has_its_message() {
        let (near, mut far) = pairs();
        far[0].write_all(b"PING\r\n").expect("it reads");
        let mut receivers = FanoutReceivers::new(&near).expect("epoll is there");
        for round in 0..3 {
            let publish = |wave| {
                assert_eq!(wave, round);
                for (index, socket) in far.iter_mut().enumerate() {
                    let message = message(wave);
                    let (first, second) = message.split_at(index * 2);
                    socket.write_all(first)?;
                    socket.write_all(second)?;
                }
                Ok(())
            };
            let time = receivers.wave(publish, Duration::from_secs(30));
            assert!(time.unwrap_or_else(|error| panic!("wave {round}: {error}")).is_some());
        }
        let verdict = receivers.verdict().expect("all are there");
        assert!(verdict.is_clean() && verdict.delivered == 150, "{verdict:?}");
    }

    #[test]
    fn what_a_socket_has_not_has_twice_or_has_harmed_is_told() {
        let (near, mut far) = pairs();
        let mut receivers = FanoutReceivers::new(&near).expect("epoll is there");
        let publish = |wave| {
            for (index, socket) in far.iter_mut().enumerate() {
                let mut message = message(wave);
                match index {
                    0 => continue,
                    1 => message.extend(message.clone()),
                    // After the mark, in the mark, and in the sequence number.
                    2 => message[120] ^= 1,
                    3 => message[55] ^= 1,
                    4 => message[26 + 8] ^= 2,
                    _ => {}
                }
                socket.write_all(&message)?;
            }
            Ok(())
        };
        assert_eq!(receivers.wave(publish, DRAIN).expect("all are there"), None);
        let verdict = receivers.verdict().expect("all are there");
        let Verdict { expected, delivered, lost, duplicated, corrupt, .. } = verdict;
        // An unrecognizable one, or one with a wrong number, did not arrive.
        assert_eq!([expected, delivered, lost, duplicated, corrupt], [50, 47, 3, 1, 3]);
    }

    #[test]
    fn a_connection_that_ends_is_an_error() {
        let (near, mut far) = pairs();
        let mut receivers = FanoutReceivers::new(&near).expect("epoll is there");
        drop(far.pop());
        assert!(receivers.wave(|_| Ok(()), DRAIN).is_err());
    }
}

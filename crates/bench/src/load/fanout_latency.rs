//! One message to very many connections at once: how long until the last of them has it, and whether each
//! had it once and unharmed.

use super::judge::Judge;
use super::message;
use super::stamp::{self, Stamp, TIMED_BYTES};
use super::tally::{Checked, Verdict};
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

/// What follows the stamp of every message of a wave: by it bodies are found among the octets of any
/// protocol. Connections that wait by the ten thousand have no room for a client's buffers.
const MARK: &[u8; 16] = b"-a-wave-is-here-";
/// Octets of a body.
pub(super) const BODY_BYTES: usize = 100;
/// What a protocol ends a message with is no longer than this; what it begins one with is.
const END_BYTES_MAX: usize = 8;
/// How long what comes gathers before it is read; a wave ends so much later at most. Woken for every message,
/// we would take turns with the broker on its processors, which clients on machines of their own do not.
const GATHER: Duration = Duration::from_micros(500);
/// Between two waves.
const PAUSE: Duration = Duration::from_millis(100);
/// How long there must be silence before nothing more comes.
const SILENCE: Duration = Duration::from_millis(50);
/// How long something that is no silence is listened to.
const NOISE_MAX: Duration = Duration::from_secs(5);

/// The body of a wave's message, before it is stamped.
pub(super) fn body() -> Vec<u8> {
    let mut body = message::body(BODY_BYTES);
    body[TIMED_BYTES..TIMED_BYTES + MARK.len()].copy_from_slice(MARK);
    body
}

/// As it is when stamped for that wave.
pub(super) fn stamped_body(wave: u64) -> Vec<u8> {
    let mut body = body();
    let mut stamp = Stamp { producer: 0, checksum: 0, sequence: wave, sent_ns: 0 };
    stamp.checksum = stamp::checksum(&stamp, crc32fast::hash(&body[TIMED_BYTES..]));
    stamp.write(&mut body);
    body
}

/// Sockets that wait for waves, all in one epoll instance.
pub(super) struct FanoutReceivers<'a> {
    sockets: &'a [TcpStream],
    epoll: OwnedFd,
    buffer: Vec<u8>,
    /// Of a socket whose last read ended amid a message: what came of it.
    tails: BTreeMap<usize, Vec<u8>>,
    /// Octets that each socket brought since the wave began.
    octets: Vec<u64>,
    /// Whose bodies came, to be judged once the wave's time is taken.
    arrivals: Vec<(usize, [u8; BODY_BYTES])>,
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
        // What came before, such as a broker's pings, is no part of a wave.
        receivers.fall_silent(Duration::from_millis(20))?;
        receivers.tails.clear();
        Ok(receivers)
    }

    /// Sends so many waves, one after the other, but none after one that not all have had: what is lost once
    /// would be waited for again. `publish` sends the one with that number. Returns the times of those that
    /// all have had, in milliseconds.
    pub(super) fn waves(
        &mut self,
        count: usize,
        mut publish: impl FnMut(u64) -> Result<(), Error>,
        drain: Duration,
    ) -> Result<Vec<f64>, Error> {
        let mut waves_ms = Vec::new();
        for _ in 0..count {
            // The broker is to be idle, as it would be between rare messages.
            thread::sleep(PAUSE);
            let Some(time) = self.wave(&mut publish, drain)? else { break };
            waves_ms.push(time.as_secs_f64() * 1e3);
        }
        Ok(waves_ms)
    }

    /// Calls `publish` with the wave's number and waits until every socket has its message. Returns how
    /// long that took; `None` if nothing came for `drain` and some have none.
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
            // A broker's pings are no sign that a message will come.
            if self.arrivals.len() > seen {
                moved = Instant::now();
            }
            for (index, body) in &self.arrivals[seen..] {
                let is_this = Stamp::read(body).is_some_and(|it| it.sequence + 1 == self.published);
                if is_this && !std::mem::replace(&mut have[*index], true) {
                    missing -= 1;
                }
            }
            seen = self.arrivals.len();
        }
        let time = start.elapsed();
        if missing > 0 {
            self.arrivals.iter().for_each(|(index, _)| have[*index] = true);
            self.judge_unrecognized(&have);
        }
        self.judge();
        Ok((missing == 0).then_some(time))
    }

    /// Waits for what comes late, and judges all waves: each message had to reach each socket.
    pub(super) fn verdict(mut self) -> Result<Verdict, Error> {
        self.fall_silent(SILENCE)?;
        self.judge();
        let mut verdict = Verdict::new(Checked::of(BODY_BYTES, true));
        for judge in &self.judges {
            verdict.add_queue(judge.tally(), &[self.published]);
        }
        Ok(verdict)
    }

    /// A socket that brought a message's octets, and nothing that is known again, had one that was harmed.
    fn judge_unrecognized(&mut self, recognized: &[bool]) {
        for (index, judge) in self.judges.iter_mut().enumerate() {
            if !recognized[index] && self.octets[index] >= BODY_BYTES as u64 {
                judge.record_corrupt();
            }
        }
    }

    fn judge(&mut self) {
        for (index, body) in self.arrivals.drain(..) {
            self.judges[index].judge(&body);
        }
    }

    /// Reads on until nothing came for `silence`, some seconds at most.
    fn fall_silent(&mut self, silence: Duration) -> Result<(), Error> {
        let begun = Instant::now();
        while begun.elapsed() < NOISE_MAX && !interrupt::requested() && self.look(silence)? > 0 {}
        Ok(())
    }

    /// Reads every socket that has something, and keeps the bodies that came. Returns how many sockets had
    /// something.
    fn look(&mut self, wait: Duration) -> Result<usize, Error> {
        let timeout =
            Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut events: Vec<Event> = Vec::with_capacity(1_024);
        let spare = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.epoll, spare, Some(&timeout)) {
            // A signal that asks for the end is looked at by those who wait.
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
        let kept_from = bodies(bytes, |body| arrivals.push((index, *body)));
        if kept_from < bytes.len() {
            self.tails.insert(index, bytes[kept_from..].to_vec());
        }
    }
}

/// Calls `each` for every body that is whole. Returns from where on octets may be a part of the next one.
fn bodies(bytes: &[u8], mut each: impl FnMut(&[u8; BODY_BYTES])) -> usize {
    let mut from = 0;
    while let Some(at) = find(&bytes[from..]) {
        let Some(start) = (from + at).checked_sub(TIMED_BYTES) else {
            // A mark without a stamp before it is nothing of ours.
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
        // A stamp and a part of the mark behind it may end them.
        false => bytes.len() - left.min(TIMED_BYTES + MARK.len() - 1),
    }
}

fn find(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MARK.len()).position(|window| window == MARK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener};

    /// A message of NATS with the body of that wave.
    fn message(wave: u64) -> Vec<u8> {
        [b"MSG bench.123.idle 1 100\r\n", stamped_body(wave).as_slice(), b"\r\n"].concat()
    }

    /// The waves whose bodies are found in octets that come in two reads.
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

    /// Fifty connections, and their other ends.
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
                    // In what follows the mark, in the mark, and in the number.
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
        // One that cannot be recognized, or by a wrong number, did not come.
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

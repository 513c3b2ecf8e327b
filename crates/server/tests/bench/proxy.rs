//! A proxy that knows where the deliveries of a broker begin and end, and harms some of them. Knows
//! no benchmark.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// One delivery of this number is harmed, in the middle: another one always follows it, so that one that is
/// held back comes late and is not lost.
pub(crate) const EVERY: u64 = 100;

/// What it does to a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// It never comes.
    Drop,
    /// It comes twice.
    Duplicate,
    /// It comes after the next one.
    Reorder,
    /// One bit of its body is another.
    Corrupt,
}

/// What client and broker speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Amqp091,
    Nats,
}

/// A piece of what a broker says.
struct Piece {
    octets: usize,
    /// Where the last octet of the body lies, if it is a delivery.
    body_end: Option<usize>,
}

impl Language {
    /// The first piece of `said`, if it is there as a whole.
    fn piece(self, said: &[u8]) -> Option<Piece> {
        match self {
            Language::Amqp091 => amqp_piece(said),
            Language::Nats => nats_piece(said),
        }
    }
}

/// A frame, or the frames of a delivery: method, header and body (AMQP 0-9-1, 2.3.5).
fn amqp_piece(said: &[u8]) -> Option<Piece> {
    let mut octets = frame(said)?.len();
    if !is_basic(frame(said)?, 60) {
        return Some(Piece { octets, body_end: None });
    }
    let header = frame(&said[octets..])?;
    octets += header.len();
    // After the frame's own seven octets, the class and the weight.
    let mut left = number(&header[11..19]) as usize;
    while left > 0 {
        let body = frame(&said[octets..])?;
        octets += body.len();
        left -= body.len() - 8;
    }
    Some(Piece { octets, body_end: Some(octets - 2) })
}

/// Type, channel, length, payload and end of the first frame.
fn frame(said: &[u8]) -> Option<&[u8]> {
    said.get(..8 + number(said.get(3..7)?) as usize)
}

/// Whether a frame holds this method of the class basic.
fn is_basic(frame: &[u8], method: u8) -> bool {
    frame[0] == 1 && frame.get(7..11) == Some(&[0, 60, 0, method])
}

fn number(octets: &[u8]) -> u64 {
    octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet))
}

/// A line, or a line and the payload whose length is its last word.
fn nats_piece(said: &[u8]) -> Option<Piece> {
    let line = said.windows(2).position(|two| two == b"\r\n")?;
    let text = String::from_utf8_lossy(&said[..line]);
    if !text.starts_with("MSG ") && !text.starts_with("HMSG ") {
        return Some(Piece { octets: line + 2, body_end: None });
    }
    let length: usize = text.rsplit(' ').next()?.parse().expect("a length ends the line");
    let octets = line + 2 + length + 2;
    (said.len() >= octets).then_some(Piece { octets, body_end: Some(octets - 3) })
}

/// Delivery tags that were delivered twice: a broker closes the channel of a client that
/// acknowledges one twice (AMQP 0-9-1, basic.ack), so it hears of it once.
type Doubled = Arc<Mutex<BTreeSet<u64>>>;

/// Listens on a free port of the loopback address for clients of the broker at `broker`, until the
/// process ends. Returns the port.
pub(crate) fn start(language: Language, fault: Fault, broker: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let broker = TcpStream::connect(("127.0.0.1", broker)).expect("the broker listens");
            let ends = |from: &TcpStream, to: &TcpStream| {
                (from.try_clone().expect("descriptors"), to.try_clone().expect("descriptors"))
            };
            let doubled = Doubled::default();
            let (back, there) = (ends(&broker, &client), ends(&client, &broker));
            let tags = Arc::clone(&doubled);
            thread::spawn(move || {
                let mut harm = Harm { language, fault, tags, count: 0, held: Vec::new() };
                carry(back.0, back.1, |said, out| harm.pass(said, out));
            });
            thread::spawn(move || {
                let mut header = if language == Language::Amqp091 { 8 } else { 0 };
                carry(there.0, there.1, |said, out| match language {
                    Language::Amqp091 => pass_once(said, out, &mut header, &doubled),
                    Language::Nats => out.append(said),
                });
            });
        }
    });
    port
}

/// Carries what `pass` takes from the one and gives to the other until one of them ends.
fn carry(mut from: TcpStream, mut to: TcpStream, mut pass: impl FnMut(&mut Vec<u8>, &mut Vec<u8>)) {
    let mut buffer = vec![0; 64 * 1024];
    let (mut said, mut out) = (Vec::new(), Vec::new());
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        said.extend_from_slice(&buffer[..count]);
        pass(&mut said, &mut out);
        if to.write_all(&out).is_err() {
            break;
        }
        out.clear();
    }
    // One that has gone already is what is wanted.
    drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
}

/// From the broker to a client.
struct Harm {
    language: Language,
    fault: Fault,
    tags: Doubled,
    count: u64,
    held: Vec<u8>,
}

impl Harm {
    fn pass(&mut self, said: &mut Vec<u8>, out: &mut Vec<u8>) {
        let mut used = 0;
        while let Some(piece) = self.language.piece(&said[used..]) {
            let bytes = &mut said[used..used + piece.octets];
            used += piece.octets;
            let Some(body_end) = piece.body_end else {
                out.extend_from_slice(bytes);
                continue;
            };
            self.count += 1;
            match self.fault {
                _ if self.count % EVERY != EVERY / 2 => {
                    out.extend_from_slice(bytes);
                    out.append(&mut self.held);
                }
                Fault::None => out.extend_from_slice(bytes),
                Fault::Drop => {}
                Fault::Duplicate => {
                    if self.language == Language::Amqp091 {
                        self.tags.lock().expect("no panic").insert(tag_of_delivery(bytes));
                    }
                    out.extend_from_slice(bytes);
                    out.extend_from_slice(bytes);
                }
                Fault::Reorder => self.held = bytes.to_vec(),
                Fault::Corrupt => {
                    bytes[body_end] ^= 1;
                    out.extend_from_slice(bytes);
                }
            }
        }
        said.drain(..used);
    }
}

/// It follows the consumer's tag, a short string.
fn tag_of_delivery(frames: &[u8]) -> u64 {
    let at = 12 + usize::from(frames[11]);
    number(&frames[at..at + 8])
}

/// From a client to the broker, without the protocol's header: all but one acknowledgement of what
/// was delivered twice.
fn pass_once(said: &mut Vec<u8>, out: &mut Vec<u8>, header: &mut usize, doubled: &Doubled) {
    let mut used = said.len().min(*header);
    *header -= used;
    out.extend_from_slice(&said[..used]);
    while let Some(frame) = frame(&said[used..]) {
        used += frame.len();
        let is_second = is_basic(frame, 80)
            && doubled.lock().expect("no panic").remove(&number(&frame[11..19]));
        if !is_second {
            out.extend_from_slice(frame);
        }
    }
    said.drain(..used);
}

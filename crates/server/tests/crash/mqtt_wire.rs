//! A minimal blocking MQTT client. It shares no line with the broker's own codec, so that a mistake there
//! cannot hide itself. Independent of what the tests check.

use crate::wire::PATIENCE;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub(crate) const PUBLISH: u8 = 3;
pub(crate) const PUBACK: u8 = 4;
pub(crate) const PUBREC: u8 = 5;
pub(crate) const PUBREL: u8 = 6;
pub(crate) const PUBCOMP: u8 = 7;
const SUBACK: u8 = 9;

/// A packet of a message or of its handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) kind: u8,
    pub(crate) qos: u8,
    pub(crate) duplicate: bool,
    /// 0 where there is none.
    pub(crate) id: u16,
    pub(crate) payload: Vec<u8>,
}

/// A message that comes some time after its client was lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Will<'a> {
    pub(crate) topic: &'a str,
    pub(crate) delay_s: u32,
}

/// A connection to a session that is kept.
#[derive(Debug)]
pub(crate) struct MqttClient {
    input: BufReader<TcpStream>,
    /// Whether the broker had the session.
    pub(crate) resumed: bool,
}

impl MqttClient {
    /// Connects by MQTT 3.1.1.
    pub(crate) fn connect(address: SocketAddr, name: &str) -> io::Result<MqttClient> {
        let mut content = b"\0\x04MQTT\x04\0\0\0".to_vec();
        put(&mut content, name.as_bytes());
        MqttClient::open(address, &content)
    }

    /// Connects by MQTT 5, which has wills that wait.
    pub(crate) fn connect_with(
        address: SocketAddr,
        name: &str,
        will: Will<'_>,
    ) -> io::Result<MqttClient> {
        // A will with QoS 1; the session has ten minutes.
        let mut content = b"\0\x04MQTT\x05\x0C\0\0\x05\x11\0\0\x02\x58".to_vec();
        put(&mut content, name.as_bytes());
        content.extend_from_slice(b"\x05\x18");
        content.extend_from_slice(&will.delay_s.to_be_bytes());
        put(&mut content, will.topic.as_bytes());
        put(&mut content, b"gone");
        MqttClient::open(address, &content)
    }

    fn open(address: SocketAddr, connect: &[u8]) -> io::Result<MqttClient> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let input = BufReader::with_capacity(64 << 10, stream);
        let mut client = MqttClient { input, resumed: false };
        client.send(0x10, connect)?;
        match client.read()? {
            (0x20, content) if content.get(1) == Some(&0) => {
                client.resumed = content[0] & 1 == 1;
                Ok(client)
            }
            other => Err(broken(&format!("an answer to CONNECT: {other:?}"))),
        }
    }

    /// Subscribes with QoS 2; what comes before the answer is a mistake, for there is no session yet.
    pub(crate) fn subscribe(&mut self, filter: &str) -> io::Result<()> {
        let mut content = vec![0, 1];
        put(&mut content, filter.as_bytes());
        content.push(2);
        self.send(0x82, &content)?;
        match self.read()? {
            (first, content) if first >> 4 == SUBACK && content == [0, 1, 2] => Ok(()),
            other => Err(broken(&format!("an answer to SUBSCRIBE: {other:?}"))),
        }
    }

    pub(crate) fn publish(&mut self, topic: &str, packet: &Packet) -> io::Result<()> {
        let mut content = Vec::new();
        put(&mut content, topic.as_bytes());
        content.extend_from_slice(&packet.id.to_be_bytes());
        content.extend_from_slice(&packet.payload);
        self.send(0x30 | u8::from(packet.duplicate) << 3 | packet.qos << 1, &content)
    }

    /// Sends a packet of a handshake.
    pub(crate) fn answer(&mut self, kind: u8, id: u16) -> io::Result<()> {
        self.send(kind << 4 | if kind == PUBREL { 2 } else { 0 }, &id.to_be_bytes())
    }

    /// The next packet; `None` if nothing comes within `silence`. What is under way is waited for.
    pub(crate) fn next_within(&mut self, silence: Duration) -> io::Result<Option<Packet>> {
        if self.input.buffer().is_empty() {
            self.input.get_ref().set_read_timeout(Some(silence))?;
            let peeked = self.input.get_ref().peek(&mut [0]);
            self.input.get_ref().set_read_timeout(Some(PATIENCE))?;
            match peeked {
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Ok(None);
                }
                other => other?,
            };
        }
        let (first, content) = self.read()?;
        packet(first, &content).map(Some).ok_or_else(|| broken("a packet that is too short"))
    }

    /// The next packet, which must come.
    pub(crate) fn next(&mut self) -> io::Result<Packet> {
        self.next_within(PATIENCE)?.ok_or_else(|| broken("nothing came"))
    }

    fn send(&mut self, first: u8, content: &[u8]) -> io::Result<()> {
        let mut out = vec![first];
        let mut left = content.len();
        loop {
            let low = (left & 0x7F) as u8;
            left >>= 7;
            out.push(if left > 0 { low | 0x80 } else { low });
            if left == 0 {
                break;
            }
        }
        out.extend_from_slice(content);
        self.input.get_mut().write_all(&out)
    }

    fn read(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let first = self.byte()?;
        let mut length = 0;
        for shift in [0, 7, 14] {
            let byte = self.byte()?;
            length |= usize::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                let mut content = vec![0; length];
                self.input.read_exact(&mut content)?;
                return Ok((first, content));
            }
        }
        Err(broken("a packet that is too long"))
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        Ok(byte[0])
    }
}

fn packet(first: u8, content: &[u8]) -> Option<Packet> {
    let (kind, qos) = (first >> 4, first >> 1 & 3);
    let (mut id_at, has_id) = (0, kind != PUBLISH || qos > 0);
    if kind == PUBLISH {
        let (length, _) = content.split_first_chunk()?;
        id_at = 2 + usize::from(u16::from_be_bytes(*length));
    }
    let mut packet = Packet { kind, qos, duplicate: first & 8 != 0, id: 0, payload: Vec::new() };
    let mut rest = content.get(id_at..)?;
    if has_id {
        let (id, after) = rest.split_first_chunk()?;
        (packet.id, rest) = (u16::from_be_bytes(*id), after);
    }
    packet.payload = rest.to_vec();
    Some(packet)
}

fn put(out: &mut Vec<u8>, text: &[u8]) {
    let length = u16::try_from(text.len()).expect("the tests use short names");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(text);
}

fn broken(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

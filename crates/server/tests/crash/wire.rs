//! A minimal blocking AMQP 0-9-1 client with one channel. It shares no line with the broker's own
//! codec, so that a mistake there cannot hide itself. Independent of what the tests check.

use std::collections::VecDeque;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The longest silence on a connection that waits for something.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

const CHANNEL: u16 = 1;
const FRAME_BYTES_MAX: u32 = 128 << 10;

/// What the broker says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A message for the consumer, or one that was asked for.
    Delivery { tag: u64, redelivered: bool, body: Vec<u8> },
    /// A confirm: positive or negative.
    Confirm { tag: u64, multiple: bool, positive: bool },
    /// The broker takes no publishes for now.
    Blocked(String),
    /// It takes them again.
    Unblocked,
    /// The broker ends the connection or the channel.
    Closed { code: u16, text: String },
    /// Any other method, by class and number, with its arguments.
    Method(u16, u16, Vec<u8>),
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    input: BufReader<TcpStream>,
    output: Vec<u8>,
    waiting: VecDeque<Event>,
}

impl Client {
    /// Connects as guest, opens the virtual host `/` and one channel.
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut client = Client {
            input: BufReader::with_capacity(64 << 10, stream),
            output: Vec::new(),
            waiting: VecDeque::new(),
        };
        client.output.extend_from_slice(b"AMQP\x00\x00\x09\x01");
        client.expect(10, 10)?;
        client.method(0, 10, 11, |out| {
            let capabilities = "\x12connection.blockedt\x01";
            let table = format!(
                "\x0ccapabilitiesF\0\0\0{}{capabilities}",
                char::from(capabilities.len() as u8)
            );
            long_string(out, table.as_bytes());
            short_string(out, "PLAIN");
            long_string(out, b"\0guest\0guest");
            short_string(out, "en_US");
        });
        client.expect(10, 30)?;
        client.method(0, 10, 31, |out| {
            out.extend_from_slice(&2047u16.to_be_bytes());
            out.extend_from_slice(&FRAME_BYTES_MAX.to_be_bytes());
            out.extend_from_slice(&0u16.to_be_bytes());
        });
        client.method(0, 10, 40, |out| {
            short_string(out, "/");
            out.extend_from_slice(&[0, 0]);
        });
        client.expect(10, 41)?;
        client.method(CHANNEL, 20, 10, |out| out.push(0));
        client.expect(20, 11)?;
        Ok(client)
    }

    /// Declares a durable queue; returns how many messages are ready in it.
    pub(crate) fn declare_queue(&mut self, name: &str) -> io::Result<u32> {
        self.method(CHANNEL, 50, 10, |out| {
            out.extend_from_slice(&[0, 0]);
            short_string(out, name);
            out.push(0b10);
            out.extend_from_slice(&[0; 4]);
        });
        let answer = self.expect(50, 11)?;
        let counts = answer.get(1 + name.len()..).unwrap_or_default();
        let ready = counts.get(..4).ok_or_else(|| broken("short declare-ok"))?;
        Ok(u32::from_be_bytes(ready.try_into().map_err(|_| broken("short declare-ok"))?))
    }

    /// Declares a durable fanout exchange.
    pub(crate) fn declare_fanout(&mut self, name: &str) -> io::Result<()> {
        self.method(CHANNEL, 40, 10, |out| {
            out.extend_from_slice(&[0, 0]);
            short_string(out, name);
            short_string(out, "fanout");
            out.push(0b10);
            out.extend_from_slice(&[0; 4]);
        });
        self.expect(40, 11).map(drop)
    }

    /// Binds a queue to an exchange.
    pub(crate) fn bind(&mut self, queue: &str, exchange: &str) -> io::Result<()> {
        self.method(CHANNEL, 50, 20, |out| {
            out.extend_from_slice(&[0, 0]);
            short_string(out, queue);
            short_string(out, exchange);
            short_string(out, "");
            out.push(0);
            out.extend_from_slice(&[0; 4]);
        });
        self.expect(50, 21).map(drop)
    }

    /// Asks for confirms.
    pub(crate) fn select_confirms(&mut self) -> io::Result<()> {
        self.method(CHANNEL, 85, 10, |out| out.push(0));
        self.expect(85, 11).map(drop)
    }

    /// Starts transactions.
    pub(crate) fn select_transactions(&mut self) -> io::Result<()> {
        self.method(CHANNEL, 90, 10, |_| {});
        self.expect(90, 11).map(drop)
    }

    /// Commits; returns once the broker says that it is done.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        self.method(CHANNEL, 90, 20, |_| {});
        self.expect(90, 21).map(drop)
    }

    /// Bounds what is delivered and not settled.
    pub(crate) fn prefetch(&mut self, count: u16) -> io::Result<()> {
        self.method(CHANNEL, 60, 10, |out| {
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&count.to_be_bytes());
            out.push(0);
        });
        self.expect(60, 11).map(drop)
    }

    /// Starts to consume with manual acknowledgement.
    pub(crate) fn consume(&mut self, queue: &str) -> io::Result<()> {
        self.method(CHANNEL, 60, 20, |out| {
            out.extend_from_slice(&[0, 0]);
            short_string(out, queue);
            short_string(out, "c");
            out.push(0);
            out.extend_from_slice(&[0; 4]);
        });
        self.expect(60, 21).map(drop)
    }

    /// Takes one message, if there is one.
    pub(crate) fn get(&mut self, queue: &str) -> io::Result<Option<Event>> {
        self.method(CHANNEL, 60, 70, |out| {
            out.extend_from_slice(&[0, 0]);
            short_string(out, queue);
            out.push(0);
        });
        loop {
            match self.next()? {
                Event::Method(60, 72, _) => return Ok(None),
                delivery @ Event::Delivery { .. } => return Ok(Some(delivery)),
                Event::Closed { code, text } => return Err(closed(code, &text)),
                _ => {}
            }
        }
    }

    /// Declares a durable fanout exchange that holds messages back as they say.
    pub(crate) fn declare_delaying(&mut self, name: &str) -> io::Result<()> {
        self.method(CHANNEL, 40, 10, |out| {
            out.extend_from_slice(&[0, 0]);
            short_string(out, name);
            short_string(out, "x-delayed-message");
            out.push(0b10);
            long_string(out, b"\x0ex-delayed-typeS\0\0\0\x06fanout");
        });
        self.expect(40, 11).map(drop)
    }

    /// Buffers a persistent publish.
    pub(crate) fn publish(&mut self, exchange: &str, key: &str, body: &[u8]) {
        // The flag of delivery-mode, and 2: persistent.
        self.publish_with(exchange, key, body, 0x1000, &[2]);
    }

    /// The same of a message that expires in its queue after that many milliseconds.
    pub(crate) fn publish_expiring(&mut self, queue: &str, millis: u32) {
        let mut properties = vec![2];
        short_string(&mut properties, &millis.to_string());
        self.publish_with("", queue, b"expires", 0x1100, &properties);
    }

    /// The same of a message that is held back for that many milliseconds.
    pub(crate) fn publish_delayed(&mut self, exchange: &str, millis: u32) {
        let mut headers = b"\x07x-delayI".to_vec();
        headers.extend_from_slice(&millis.to_be_bytes());
        let mut properties = Vec::new();
        long_string(&mut properties, &headers);
        properties.push(2);
        self.publish_with(exchange, "", b"held back", 0x3000, &properties);
    }

    fn publish_with(
        &mut self,
        exchange: &str,
        key: &str,
        body: &[u8],
        flags: u16,
        properties: &[u8],
    ) {
        self.method(CHANNEL, 60, 40, |out| {
            out.extend_from_slice(&[0, 0]);
            short_string(out, exchange);
            short_string(out, key);
            out.push(0);
        });
        let mut header = vec![0, 60, 0, 0];
        header.extend_from_slice(&(body.len() as u64).to_be_bytes());
        header.extend_from_slice(&flags.to_be_bytes());
        header.extend_from_slice(properties);
        frame(&mut self.output, 2, CHANNEL, &header);
        for part in body.chunks(FRAME_BYTES_MAX as usize - 8) {
            frame(&mut self.output, 3, CHANNEL, part);
        }
    }

    /// Buffers an acknowledgement.
    pub(crate) fn ack(&mut self, tag: u64, multiple: bool) {
        self.method(CHANNEL, 60, 80, |out| {
            out.extend_from_slice(&tag.to_be_bytes());
            out.push(u8::from(multiple));
        });
    }

    /// Buffers a negative acknowledgement that puts the message back.
    pub(crate) fn requeue(&mut self, tag: u64) {
        self.method(CHANNEL, 60, 120, |out| {
            out.extend_from_slice(&tag.to_be_bytes());
            out.push(0b10);
        });
    }

    /// Buffers the answer to the broker's close.
    pub(crate) fn accept_close(&mut self) {
        self.method(0, 10, 51, |_| {});
    }

    /// Sends what is buffered.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.input.get_mut().write_all(&self.output)?;
        self.output.clear();
        Ok(())
    }

    /// Sends what is buffered and waits for what the broker says next.
    pub(crate) fn next(&mut self) -> io::Result<Event> {
        self.flush()?;
        match self.waiting.pop_front() {
            Some(event) => Ok(event),
            None => self.read_event(),
        }
    }

    /// As [`Client::next`], and `None` if nothing came within `silence`. What is under way is waited
    /// for, so a frame is never left half read.
    pub(crate) fn next_within(&mut self, silence: Duration) -> io::Result<Option<Event>> {
        self.flush()?;
        if let Some(event) = self.waiting.pop_front() {
            return Ok(Some(event));
        }
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
        self.read_event().map(Some)
    }

    /// Whether the transport ends here, at the end of a frame.
    pub(crate) fn ends_cleanly(&mut self) -> bool {
        let mut byte = [0];
        match self.input.read(&mut byte) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }

    /// Waits for one method; keeps everything else for later.
    fn expect(&mut self, class: u16, number: u16) -> io::Result<Vec<u8>> {
        self.flush()?;
        loop {
            match self.read_event()? {
                Event::Method(c, n, arguments) if (c, n) == (class, number) => {
                    return Ok(arguments);
                }
                Event::Closed { code, text } => return Err(closed(code, &text)),
                event => self.waiting.push_back(event),
            }
        }
    }

    fn read_event(&mut self) -> io::Result<Event> {
        loop {
            let (kind, payload) = self.read_frame()?;
            if kind == 8 {
                continue;
            }
            let mut input = Input(&payload);
            let (class, number) = (input.u16()?, input.u16()?);
            return match (class, number) {
                (10, 50) | (20, 40) => {
                    Ok(Event::Closed { code: input.u16()?, text: input.short_string()? })
                }
                (10, 60) => Ok(Event::Blocked(input.short_string()?)),
                (10, 61) => Ok(Event::Unblocked),
                (60, 80) => Ok(Event::Confirm {
                    tag: input.u64()?,
                    multiple: input.u8()? & 1 == 1,
                    positive: true,
                }),
                (60, 120) => Ok(Event::Confirm {
                    tag: input.u64()?,
                    multiple: input.u8()? & 1 == 1,
                    positive: false,
                }),
                (60, 60) => {
                    input.short_string()?;
                    self.read_delivery(input.u64()?, input.u8()?)
                }
                (60, 71) => self.read_delivery(input.u64()?, input.u8()?),
                _ => Ok(Event::Method(class, number, input.0.to_vec())),
            };
        }
    }

    fn read_delivery(&mut self, tag: u64, redelivered: u8) -> io::Result<Event> {
        let (kind, header) = self.read_frame()?;
        let size = header.get(4..12).filter(|_| kind == 2).ok_or_else(|| broken("no header"))?;
        let size = u64::from_be_bytes(size.try_into().map_err(|_| broken("no header"))?);
        let mut body = Vec::new();
        while (body.len() as u64) < size {
            let (kind, part) = self.read_frame()?;
            if kind != 3 {
                return Err(broken("no body"));
            }
            body.extend_from_slice(&part);
        }
        Ok(Event::Delivery { tag, redelivered: redelivered & 1 == 1, body })
    }

    fn read_frame(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut header = [0; 7];
        self.input.read_exact(&mut header)?;
        let size = u32::from_be_bytes([header[3], header[4], header[5], header[6]]);
        if size > FRAME_BYTES_MAX {
            return Err(broken("a frame larger than agreed"));
        }
        let mut payload = vec![0; size as usize + 1];
        self.input.read_exact(&mut payload)?;
        match payload.pop() {
            Some(0xCE) => Ok((header[0], payload)),
            _ => Err(broken("a frame without its end")),
        }
    }

    fn method(
        &mut self,
        channel: u16,
        class: u16,
        number: u16,
        arguments: impl FnOnce(&mut Vec<u8>),
    ) {
        let mut payload = Vec::with_capacity(64);
        payload.extend_from_slice(&class.to_be_bytes());
        payload.extend_from_slice(&number.to_be_bytes());
        arguments(&mut payload);
        frame(&mut self.output, 1, channel, &payload);
    }
}

fn frame(out: &mut Vec<u8>, kind: u8, channel: u16, payload: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&channel.to_be_bytes());
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    out.extend_from_slice(payload);
    out.push(0xCE);
}

fn short_string(out: &mut Vec<u8>, text: &str) {
    out.push(u8::try_from(text.len()).expect("the tests use short names"));
    out.extend_from_slice(text.as_bytes());
}

fn long_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn broken(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

fn closed(code: u16, text: &str) -> io::Error {
    io::Error::other(format!("closed by the broker: {code} {text}"))
}

/// Reads numbers and strings off a method's arguments.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(|| broken("a short method"))?;
        self.0 = rest;
        Ok(*taken)
    }
    fn u8(&mut self) -> io::Result<u8> {
        self.take().map(u8::from_be_bytes)
    }
    fn u16(&mut self) -> io::Result<u16> {
        self.take().map(u16::from_be_bytes)
    }
    fn u64(&mut self) -> io::Result<u64> {
        self.take().map(u64::from_be_bytes)
    }
    fn short_string(&mut self) -> io::Result<String> {
        let length = usize::from(self.u8()?);
        let (text, rest) =
            self.0.split_at_checked(length).ok_or_else(|| broken("a short method"))?;
        self.0 = rest;
        Ok(String::from_utf8_lossy(text).into_owned())
    }
}

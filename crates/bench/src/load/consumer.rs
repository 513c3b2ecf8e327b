//! One consumer: takes deliveries, notes their stamps, acknowledges. Knows nothing about producers.

use super::control::Control;
use super::plan::Plan;
use super::stamp::{self, Stamp, TIMED_BYTES};
use super::tally::Tally;
use crate::client::amqp091::{Connection, Error, connection, write_ack};
use crate::measure::latency::Latencies;
use angarium_protocol::amqp091::codec::content::{self, ContentHeader};
use angarium_protocol::amqp091::codec::wire::Reader;
use angarium_protocol::amqp091::frame::{self, Frame};
use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a read waits before the consumer looks whether the run is over.
const IDLE: Duration = Duration::from_millis(50);

/// The first octets of a channel.close-ok method.
const CHANNEL_CLOSE_OK: [u8; 4] = [0, 20, 0, 41];

/// What a consumer brings home.
pub(super) struct Consumed {
    /// Which messages it saw.
    pub tally: Tally,
    /// From sending to the read that brought the message.
    pub latencies: Option<Latencies>,
}

/// The delivery whose frames are arriving.
#[derive(Debug, Default)]
struct Content {
    tag: u64,
    redelivered: bool,
    expected: u64,
    received: u64,
    head: [u8; TIMED_BYTES],
    rest: crc32fast::Hasher,
}

/// A consumer that has subscribed.
pub(super) struct Consumer<'a> {
    control: &'a Control,
    index: usize,
    connection: Connection,
    sink: Sink,
}

impl<'a> Consumer<'a> {
    /// Connects and subscribes.
    pub(super) fn connect(
        plan: &'a Plan,
        control: &'a Control,
        index: usize,
        queue: &str,
    ) -> Result<Consumer<'a>, Error> {
        let mut connection = Connection::open(&plan.uri)?;
        if plan.prefetch > 0 {
            connection.set_prefetch(plan.prefetch)?;
        }
        connection.consume(queue, plan.ack_every == 0)?;
        connection.stream.set_read_timeout(Some(IDLE))?;
        Ok(Consumer { control, index, connection, sink: Sink::new(plan) })
    }

    /// Takes deliveries until told to stop, then closes the channel and takes what was still on its
    /// way.
    pub(super) fn run(mut self) -> Result<Consumed, Error> {
        // Deliveries may have come with the answer to the subscription.
        self.parse()?;
        while !self.control.stop_consuming.load(Ordering::Relaxed) {
            self.take_deliveries()?;
        }
        self.acknowledge_rest()?;
        self.connection.send_channel_close()?;
        while !self.sink.closed {
            self.take_deliveries()?;
        }
        self.connection.close()?;
        Ok(Consumed { tally: self.sink.tally, latencies: self.sink.latencies })
    }

    fn take_deliveries(&mut self) -> Result<(), Error> {
        match self.connection.incoming.fill(&mut self.connection.stream) {
            Ok(0) => return Err(connection::hung_up()),
            Ok(_) => {}
            Err(error) if is_timeout(&error) => return self.acknowledge_rest(),
            Err(error) => return Err(error.into()),
        }
        self.parse()
    }

    fn parse(&mut self) -> Result<(), Error> {
        let timed = self.sink.latencies.is_some() && self.control.measuring.load(Ordering::Relaxed);
        self.sink.now_ns = if timed { self.control.now_ns() } else { 0 };
        while let Some(frame) = self.connection.incoming.next_frame()? {
            self.sink.frame(&frame)?;
        }
        let counter = &self.control.consumers[self.index];
        counter.messages.store(self.sink.messages, Ordering::Relaxed);
        counter.second.store(self.sink.messages * self.sink.size_bytes, Ordering::Relaxed);
        self.control.progressed();
        if !self.sink.acks.is_empty() {
            self.connection.stream.write_all(&self.sink.acks)?;
            self.sink.acks.clear();
        }
        Ok(())
    }

    /// Acknowledges what has not added up to a whole multiple acknowledgement.
    fn acknowledge_rest(&mut self) -> Result<(), Error> {
        if self.sink.unacked > 0 {
            self.sink.unacked = 0;
            let mut ack = Vec::with_capacity(32);
            write_ack(&mut ack, connection::CHANNEL, self.sink.last_tag, true);
            self.connection.stream.write_all(&ack)?;
        }
        Ok(())
    }
}

/// Where the frames of one connection go.
struct Sink {
    size_bytes: u64,
    ack_every: u32,
    checksum: bool,
    identified: bool,
    content: Content,
    unacked: u32,
    last_tag: u64,
    acks: Vec<u8>,
    tally: Tally,
    latencies: Option<Latencies>,
    messages: u64,
    now_ns: u64,
    closed: bool,
}

impl Sink {
    fn new(plan: &Plan) -> Sink {
        Sink {
            size_bytes: plan.size_bytes as u64,
            ack_every: plan.ack_every,
            checksum: plan.checksum,
            identified: plan.size_bytes >= stamp::IDENTITY_BYTES,
            content: Content::default(),
            unacked: 0,
            last_tag: 0,
            acks: Vec::with_capacity(64 * 1024),
            tally: Tally::new(plan.producers),
            latencies: plan.latency.then(Latencies::new),
            messages: 0,
            now_ns: 0,
            closed: false,
        }
    }

    #[inline]
    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), Error> {
        match frame.kind {
            frame::BODY => self.body(frame.payload),
            frame::HEADER => {
                self.content.expected = ContentHeader::decode(frame.payload)?.body_bytes;
                if self.content.expected == 0 {
                    self.complete();
                }
                Ok(())
            }
            _ => self.method(frame),
        }
    }

    #[inline]
    fn method(&mut self, frame: &Frame<'_>) -> Result<(), Error> {
        match frame.payload.split_first_chunk::<4>() {
            Some((&content::DELIVER, fields)) => {
                // What follows the flag is the exchange and the key, which matter to nobody here.
                let mut fields = Reader::new(fields);
                fields.short_bytes()?;
                self.content.tag = fields.longlong()?;
                self.content.redelivered = fields.octet()? & 1 != 0;
                self.content.received = 0;
            }
            Some((&CHANNEL_CLOSE_OK, _)) => self.closed = true,
            _ => connection::refusal(frame)?,
        }
        Ok(())
    }

    #[inline]
    fn body(&mut self, octets: &[u8]) -> Result<(), Error> {
        let content = &mut self.content;
        let at = content.received as usize;
        let mut rest = octets;
        if at < TIMED_BYTES {
            let take = octets.len().min(TIMED_BYTES - at);
            content.head[at..at + take].copy_from_slice(&octets[..take]);
            rest = &octets[take..];
        }
        if self.checksum {
            content.rest.update(rest);
        }
        content.received += octets.len() as u64;
        if content.received > content.expected {
            return Err(Error::Nonsense("a body longer than its header said".to_owned()));
        }
        if content.received == content.expected {
            self.complete();
        }
        Ok(())
    }

    /// The delivery is whole.
    #[inline]
    fn complete(&mut self) {
        self.messages += 1;
        let head = &self.content.head[..(self.content.received as usize).min(TIMED_BYTES)];
        if self.identified {
            match Stamp::read(head) {
                Some(stamp) if self.content.received == self.size_bytes => {
                    self.tally.record(&stamp, self.content.redelivered);
                    if self.checksum && !self.verify(&stamp) {
                        self.tally.record_corrupt();
                    }
                    if self.now_ns > 0
                        && let Some(latencies) = &mut self.latencies
                    {
                        latencies.record(self.now_ns.saturating_sub(stamp.sent_ns));
                    }
                }
                _ => self.tally.record_corrupt(),
            }
        }
        if self.ack_every > 0 {
            self.last_tag = self.content.tag;
            self.unacked += 1;
            if self.unacked == self.ack_every {
                let multiple = self.ack_every > 1;
                write_ack(&mut self.acks, connection::CHANNEL, self.last_tag, multiple);
                self.unacked = 0;
            }
        }
    }

    fn verify(&mut self, stamp: &Stamp) -> bool {
        let rest = std::mem::take(&mut self.content.rest).finalize();
        stamp::checksum(stamp, rest) == stamp.checksum
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

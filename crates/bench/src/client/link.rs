//! One connection to a broker, whatever its protocol: the interface between workloads and protocol
//! drivers.

use super::amqp10;
use super::amqp091::{self, Argument};
use super::error::is_timeout;
use super::mqtt;
use super::nats::{self, jetstream};
use super::resp;
use super::stomp;
use super::{Encoded, Error, Protocol, Receiver, Route, Session, Source, Target};
use std::io::{self, Write};
use std::net::TcpStream;

/// An open connection.
#[derive(Debug)]
pub enum Link {
    /// With one channel open.
    Amqp091(amqp091::Connection),
    /// After its open was answered.
    Amqp10(amqp10::Connection),
    /// After its CONNECT was taken.
    Nats(nats::Connection),
    /// After its CONNECT was taken.
    JetStream(jetstream::Connection),
    /// After its CONNECT was taken.
    Mqtt(mqtt::Connection),
    /// After its CONNECT was taken.
    Stomp(stomp::Connection),
    /// After its HELLO was taken.
    Resp(resp::Connection),
}

/// Calls the same method of the connection in any variant; JetStream may get another expression.
macro_rules! either {
    ($link:expr, $connection:ident => $call:expr) => {
        either!($link, $connection => $call, $call)
    };
    ($link:expr, $connection:ident => $call:expr, $jetstream:expr) => {
        match $link {
            Link::Amqp091($connection) => $call,
            Link::Amqp10($connection) => $call,
            Link::Nats($connection) => $call,
            Link::JetStream($connection) => $jetstream,
            Link::Mqtt($connection) => $call,
            Link::Stomp($connection) => $call,
            Link::Resp($connection) => $call,
        }
    };
}

impl Link {
    /// Connects and authenticates.
    pub fn open(target: &Target) -> Result<Link, Error> {
        Ok(match target.protocol() {
            Protocol::Amqp091 => Link::Amqp091(amqp091::Connection::open(target)?),
            Protocol::Amqp10 => Link::Amqp10(amqp10::Connection::open(target)?),
            Protocol::Nats => Link::Nats(nats::Connection::open(target)?),
            Protocol::JetStream => Link::JetStream(jetstream::Connection::open(target)?),
            Protocol::Mqtt => Link::Mqtt(mqtt::Connection::open(target)?),
            Protocol::Stomp => Link::Stomp(stomp::Connection::open(target)?),
            Protocol::Resp => Link::Resp(resp::Connection::open(target)?),
        })
    }

    /// The protocol it speaks.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        match self {
            Link::Amqp091(_) => Protocol::Amqp091,
            Link::Amqp10(_) => Protocol::Amqp10,
            Link::Nats(_) => Protocol::Nats,
            Link::JetStream(_) => Protocol::JetStream,
            Link::Mqtt(_) => Protocol::Mqtt,
            Link::Stomp(_) => Protocol::Stomp,
            Link::Resp(_) => Protocol::Resp,
        }
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        either!(self, it => &it.wire.stream, &it.core.wire.stream)
    }

    /// Returns the socket and drops the receive buffer.
    pub fn into_stream(self) -> TcpStream {
        either!(self, it => it.wire.stream, it.core.wire.stream)
    }

    /// Writes all bytes to the socket, messages as soon as the broker gives credit for them (AMQP 1.0).
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Link::Amqp10(connection) => connection.write(bytes),
            _ => Ok(self.stream().write_all(bytes)?),
        }
    }

    /// How many messages the broker takes now, where it says so (AMQP 1.0).
    #[inline]
    pub fn room(&self) -> u64 {
        let Link::Amqp10(connection) = self else { return u64::MAX };
        connection.room()
    }

    /// Reads once. Returns the bytes read; 0 is the end of the stream.
    #[inline]
    pub fn fill(&mut self) -> io::Result<usize> {
        match self {
            // RESP sends its next read request together with pending acknowledgements, AMQP 1.0 credit, MQTT
            // the second packets of handshakes.
            Link::Resp(connection) => connection.fill(),
            Link::Amqp10(connection) => connection.fill(),
            Link::Mqtt(connection) => connection.fill(),
            _ => either!(self, it => it.wire.fill(), it.fill()),
        }
    }

    /// Reads once. Returns the bytes read, or `None` if the socket's timeout ended the read; the end of
    /// the stream is an error.
    #[inline]
    pub fn fill_within(&mut self) -> Result<Option<usize>, Error> {
        match self.fill() {
            Ok(0) => Err(Error::hung_up()),
            Ok(count) => Ok(Some(count)),
            Err(error) if is_timeout(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads once; the end of the stream and a timeout are errors.
    #[inline]
    pub fn fill_some(&mut self) -> Result<(), Error> {
        if self.fill()? == 0 { Err(Error::hung_up()) } else { Ok(()) }
    }

    /// Hands everything received to `receiver`, and answers what the protocol wants answered.
    #[inline]
    pub fn parse(&mut self, receiver: &mut impl Receiver) -> Result<(), Error> {
        either!(self, it => it.parse(receiver))
    }

    /// Declares a queue, where the protocol has them; a `durable` one survives a restart. STOMP declares by
    /// the first SEND or SUBSCRIBE, AMQP 1.0 mostly by the first attach.
    pub fn declare_queue(
        &mut self,
        queue: &str,
        durable: bool,
        arguments: &[(String, Argument)],
    ) -> Result<(), Error> {
        match self {
            Link::Amqp091(connection) => connection.declare_queue(queue, durable, arguments),
            Link::Amqp10(connection) => connection.declare_queue(queue, durable, arguments),
            _ => Ok(()),
        }
    }

    /// Declares a session that stores what is published while no client is connected (MQTT), a durable
    /// subscription (AMQP 1.0), a stream's consumer group (RESP), or a stream and its consumer (JetStream).
    pub fn declare_session(&mut self, session: &Session<'_>) -> Result<(), Error> {
        match self {
            Link::Mqtt(connection) => connection.declare_session(session),
            Link::Amqp10(connection) => connection.declare_session(session),
            Link::Resp(connection) => connection.declare_session(session),
            Link::JetStream(connection) => connection.declare_session(session),
            _ => Ok(()),
        }
    }

    /// Deletes a session of this filter and what it stores (MQTT, AMQP 1.0).
    pub fn delete_session(&mut self, name: &str, filter: &str) -> Result<(), Error> {
        match self {
            Link::Mqtt(connection) => connection.delete_session(name),
            Link::Amqp10(connection) => connection.delete_session(name, filter),
            _ => Ok(()),
        }
    }

    /// Declares a fanout exchange and binds these queues to it.
    pub fn declare_fan_out(&mut self, exchange: &str, queues: &[String]) -> Result<(), Error> {
        let Link::Amqp091(connection) = self else { return Ok(()) };
        connection.declare_exchange(exchange, "fanout")?;
        queues.iter().try_for_each(|queue| connection.bind_queue(queue, exchange, ""))
    }

    /// Declares a topic exchange, where the protocol has them.
    pub fn declare_topic(&mut self, exchange: &str) -> Result<(), Error> {
        let Link::Amqp091(connection) = self else { return Ok(()) };
        connection.declare_exchange(exchange, "topic")
    }

    /// Binds a queue to an exchange with each of the keys.
    pub fn bind(
        &mut self,
        queue: &str,
        exchange: &str,
        keys: impl IntoIterator<Item = String>,
    ) -> Result<(), Error> {
        let Link::Amqp091(connection) = self else { return Ok(()) };
        keys.into_iter().try_for_each(|key| connection.bind_queue(queue, exchange, &key))
    }

    /// Deletes a queue and its messages.
    pub fn delete_queue(&mut self, queue: &str) -> Result<(), Error> {
        match self {
            Link::Amqp091(connection) => connection.delete_queue(queue),
            Link::Amqp10(connection) => connection.delete_queue(queue),
            _ => self.delete_stream(queue),
        }
    }

    /// Deletes an exchange, or the stream that stands for it.
    pub fn delete_exchange(&mut self, exchange: &str) -> Result<(), Error> {
        match self {
            Link::Amqp091(connection) => connection.delete_exchange(exchange),
            _ => self.delete_stream(exchange),
        }
    }

    fn delete_stream(&mut self, stream: &str) -> Result<(), Error> {
        match self {
            Link::Resp(connection) => connection.delete(stream),
            Link::JetStream(connection) => connection.delete(stream),
            _ => Ok(()),
        }
    }

    /// Asks for a confirm of every message published from now on.
    pub fn select_confirms(&mut self) -> Result<(), Error> {
        either!(self, it => it.select_confirms())
    }

    /// Publishes and consumes exactly once what would be at least once (MQTT's QoS 2).
    pub fn select_exactly_once(&mut self) -> Result<(), Error> {
        let Link::Mqtt(connection) = self else {
            return Err(Error::Closed("only MQTT has messages that come exactly once".to_owned()));
        };
        connection.select_exactly_once();
        Ok(())
    }

    /// Publishes without answers from now on, where a broker answers each message by default (RESP).
    pub fn disable_replies(&mut self) -> Result<(), Error> {
        let Link::Resp(connection) = self else { return Ok(()) };
        connection.disable_replies()
    }

    /// Publishes and acknowledges within transactions from now on.
    pub fn select_transactions(&mut self) -> Result<(), Error> {
        match self {
            Link::Amqp091(connection) => connection.select_transactions(),
            Link::Amqp10(connection) => connection.select_transactions(),
            Link::Resp(connection) => connection.select_transactions(),
            _ => Err(Error::Closed("only AMQP and RESP have transactions here".to_owned())),
        }
    }

    /// Begins the first transaction of publishes, where the protocol needs that (RESP).
    pub fn begin_transaction(&mut self) -> Result<(), Error> {
        let Link::Resp(connection) = self else { return Ok(()) };
        connection.begin()
    }

    /// The id of the open transaction, which messages carry; empty where they carry none (all but AMQP 1.0).
    pub fn transaction(&self) -> &[u8] {
        let Link::Amqp10(connection) = self else { return &[] };
        connection.transaction()
    }

    /// Appends a commit; [`Receiver::committed`] reports the answer.
    pub fn encode_commit(&mut self, out: &mut Vec<u8>) {
        match self {
            Link::Amqp091(connection) => connection.encode_commit(out),
            Link::Amqp10(connection) => connection.encode_commit(out),
            Link::Resp(connection) => connection.encode_commit(out),
            _ => {}
        }
    }

    /// Starts to consume with at most `prefetch` unacknowledged deliveries (0 is no limit).
    pub fn subscribe(&mut self, source: &Source<'_>, prefetch: u16) -> Result<(), Error> {
        either!(self, it => it.subscribe(source, prefetch))
    }

    /// Subscribes to many subjects, where the protocol has them.
    pub fn subscribe_bystanders(
        &mut self,
        subjects: impl Iterator<Item = String>,
    ) -> Result<(), Error> {
        match self {
            Link::Amqp091(_) | Link::Amqp10(_) | Link::Stomp(_) => Ok(()),
            Link::Nats(connection) => connection.subscribe_many(subjects, None),
            Link::JetStream(connection) => connection.core.subscribe_many(subjects, None),
            Link::Mqtt(connection) => connection.subscribe_many(subjects),
            Link::Resp(connection) => connection.subscribe_many(subjects),
        }
    }

    /// Opens what messages of this route go over (AMQP 1.0), before the first one is encoded.
    pub fn prepare(&mut self, route: &Route<'_>) -> Result<(), Error> {
        let Link::Amqp10(connection) = self else { return Ok(()) };
        connection.prepare(route)
    }

    /// Appends an encoded publish. Its route must be prepared.
    pub fn encode(&self, route: &Route<'_>, body: &[u8], out: &mut Vec<u8>) -> Encoded {
        either!(self, it => it.encode(route, body, out))
    }

    /// Appends an acknowledgement of a delivery; with `multiple`, of all up to it. RESP and JetStream send it
    /// with the next read.
    #[inline]
    pub fn encode_ack(&mut self, out: &mut Vec<u8>, tag: u64, multiple: bool) {
        either!(self, it => it.encode_ack(out, tag, multiple))
    }

    /// Asks the broker to stop delivering and to answer once it has processed everything sent before;
    /// [`Receiver::ended`] reports the answer.
    pub fn send_end(&mut self) -> Result<(), Error> {
        either!(self, it => it.send_end())
    }

    /// Waits for the answer to [`Link::send_end`]; everything before it goes to `receiver`.
    pub fn expect_end(&mut self, receiver: &mut impl Receiver) -> Result<(), Error> {
        let mut end = UntilEnd { receiver, ended: false };
        self.parse(&mut end)?;
        while !end.ended {
            self.fill_some()?;
            self.parse(&mut end)?;
        }
        Ok(())
    }

    /// Closes the connection as the protocol specifies. Data still in flight is dropped.
    pub fn close(self) -> Result<(), Error> {
        match self {
            Link::Amqp091(connection) => connection.close(),
            Link::Amqp10(connection) => connection.close(),
            Link::Mqtt(connection) => connection.close(),
            Link::Resp(connection) => connection.close(),
            Link::JetStream(connection) => connection.close(),
            // Dropping the socket is enough: after the answer to `send_end` nothing is in flight.
            Link::Nats(_) | Link::Stomp(_) => Ok(()),
        }
    }
}

/// Notes the end and passes everything on.
struct UntilEnd<'a, R> {
    receiver: &'a mut R,
    ended: bool,
}

impl<R: Receiver> Receiver for UntilEnd<'_, R> {
    fn begin(&mut self, head: super::Head) {
        self.receiver.begin(head);
    }

    fn body(&mut self, octets: &[u8]) {
        self.receiver.body(octets);
    }

    fn complete(&mut self) {
        self.receiver.complete();
    }

    fn confirm(&mut self, confirm: super::Confirm) -> Result<(), Error> {
        self.receiver.confirm(confirm)
    }

    fn committed(&mut self) {
        self.receiver.committed();
    }

    fn ended(&mut self) {
        self.ended = true;
        self.receiver.ended();
    }
}

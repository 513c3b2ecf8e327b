//! An AMQP 1.0 connection: handshake, links, and what a load does with them.

use super::input::{Acceptance, FRAME_BYTES_MAX, Input, closed, next_frame};
use super::message::{self, Sending};
use super::session::{End, Session};
use super::terminus;
use super::transaction::{self, Accepted};
use crate::client::{
    Encoded, Error, PATIENCE, Receiver, Route, Session as Subscription, Source, Target, Wire,
    is_timeout,
};
use angarium_protocol::amqp10::codec::{
    ACCEPTED, Attach, Close, Detach, Disposition, Open, Performative, Role, SaslCode, SaslInit,
    SaslPerformative, Symbol, Transfer, Value, descriptor_code, write_frame,
};
use angarium_protocol::amqp10::frame::{self, PROTOCOL_HEADER_BYTES, ProtocolHeader};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Signs of life are sent this many times within the time after which the broker hangs up.
const BEATS: u32 = 3;

/// Counter for container ids and link names.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// What the broker is, and the session with the links of requests and answers.
#[derive(Debug, Default)]
pub(super) struct Management {
    /// The product that the broker names.
    pub(super) product: String,
    pub(super) channel: Option<u16>,
    /// How many requests there were.
    pub(super) requests: u32,
}

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) wire: Wire,
    pub(super) input: Input,
    target: Target,
    number: u64,
    /// The largest frame that the broker takes.
    pub(super) frame_bytes_max: u32,
    /// How long nothing may be sent; `None` is for ever.
    beat: Option<Duration>,
    last_sent: Instant,
    /// Messages are sent unsettled: an outcome is asked for.
    confirms: bool,
    transacted: bool,
    /// The end was asked for, and waits for commits.
    end_wanted: bool,
    pub(super) management: Management,
}

impl Connection {
    /// Connects and authenticates: by PLAIN with the address's login, or by ANONYMOUS without one, where the
    /// broker offers that.
    pub(crate) fn open(target: &Target) -> Result<Connection, Error> {
        let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let name = format!("angarium-bench-{}-{number}", std::process::id());
        Connection::open_as(target, &name, number)
    }

    /// Connects with this container id, which owns durable subscriptions.
    fn open_as(target: &Target, container_id: &str, number: u64) -> Result<Connection, Error> {
        let mut connection = Connection {
            wire: Wire::open(target)?,
            input: Input::default(),
            target: target.clone(),
            number,
            frame_bytes_max: frame::MIN_MAX_BYTES,
            beat: None,
            last_sent: Instant::now(),
            confirms: false,
            transacted: false,
            end_wanted: false,
            management: Management::default(),
        };
        connection.greet(ProtocolHeader::Sasl)?;
        connection.authenticate()?;
        connection.greet(ProtocolHeader::Amqp)?;
        connection.negotiate(container_id)?;
        Ok(connection)
    }

    /// Sends a protocol header and waits for the same one.
    fn greet(&mut self, header: ProtocolHeader) -> Result<(), Error> {
        self.wire.send(&header.bytes())?;
        self.wire.expect(|bytes| {
            let Some(answer) = bytes.first_chunk::<PROTOCOL_HEADER_BYTES>() else {
                return Ok(None);
            };
            if *answer != header.bytes() {
                let told = answer.escape_ascii();
                return Err(Error::Closed(format!(
                    "it answers AMQP 1.0 by the protocol header \"{told}\", not by \"{}\"",
                    header.bytes().escape_ascii()
                )));
            }
            Ok(Some((Some(()), PROTOCOL_HEADER_BYTES)))
        })
    }

    fn authenticate(&mut self) -> Result<(), Error> {
        let (has_login, login) = (self.target.login.is_some(), self.target.login_or_guest());
        let is_anonymous = self.expect_sasl(|performative| match performative {
            SaslPerformative::SaslMechanisms(offered) => {
                let offers = |name| offered.mechanisms.contains(name);
                match (offers("PLAIN"), offers("ANONYMOUS")) {
                    (_, true) if !has_login => Ok(Some(true)),
                    (true, _) => Ok(Some(false)),
                    _ => {
                        let names: Vec<&str> = offered.mechanisms.iter().map(|it| it.0).collect();
                        Err(Error::Closed(format!("its only SASL mechanisms are {names:?}")))
                    }
                }
            }
            _ => Ok(None),
        })?;
        let plain = format!("\0{}\0{}", login.user, login.password());
        let (mechanism, response) = match is_anonymous {
            true => ("ANONYMOUS", &b"angarium-bench"[..]),
            false => ("PLAIN", plain.as_bytes()),
        };
        let init = SaslPerformative::SaslInit(SaslInit {
            mechanism: Symbol(mechanism),
            initial_response: Some(response),
            hostname: Some(self.target.host()),
        });
        let mut out = Vec::new();
        init.write_frame(&mut out);
        self.wire.send(&out)?;
        self.expect_sasl(|performative| match performative {
            SaslPerformative::SaslOutcome(outcome) if outcome.code == SaslCode::Ok => Ok(Some(())),
            SaslPerformative::SaslOutcome(outcome) => Err(Error::Closed(match outcome.code {
                SaslCode::Auth => format!("wrong user or password (SASL {mechanism})"),
                code => format!("SASL {mechanism} failed: {code:?}"),
            })),
            _ => Ok(None),
        })
    }

    fn expect_sasl<T>(
        &mut self,
        mut wanted: impl FnMut(&SaslPerformative<'_>) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        self.wire.expect(|bytes| {
            let Some((frame, octets)) = frame::read(bytes, FRAME_BYTES_MAX)? else {
                return Ok(None);
            };
            if frame.kind != frame::SASL {
                return Err(Error::invalid("a frame of AMQP before the end of SASL"));
            }
            Ok(Some((wanted(&SaslPerformative::decode_body(frame.body)?)?, octets)))
        })
    }

    fn negotiate(&mut self, container_id: &str) -> Result<(), Error> {
        let hostname = match self.target.virtual_host.as_str() {
            "/" => self.target.host().to_owned(),
            name => format!("vhost:{name}"),
        };
        let open = Performative::Open(Open {
            container_id,
            hostname: Some(&hostname),
            max_frame_size: FRAME_BYTES_MAX,
            ..Open::default()
        });
        self.send(&[(0, open)])?;
        let mut product = String::new();
        let (frame_bytes_max, idle_ms) = self.expect(|_, performative| match performative {
            Performative::Open(open) => {
                if let Some(Value::String(name)) = open.properties.and_then(|it| it.get("product"))
                {
                    name.clone_into(&mut product);
                }
                Ok(Some((open.max_frame_size, open.idle_time_out)))
            }
            _ => Ok(None),
        })?;
        self.management.product = product;
        self.frame_bytes_max = frame_bytes_max.clamp(frame::MIN_MAX_BYTES, FRAME_BYTES_MAX);
        self.beat = idle_ms.filter(|ms| *ms > 0).map(|ms| Duration::from_millis(ms.into()) / BEATS);
        Ok(())
    }

    /// Whether the broker has hung up because nothing was sent for long.
    pub(super) fn is_stale(&self) -> bool {
        self.beat.is_some_and(|beat| self.last_sent.elapsed() > beat)
    }

    /// Connects again.
    pub(super) fn reopen(&mut self) -> Result<(), Error> {
        *self = Connection::open(&self.target)?;
        Ok(())
    }

    /// Sends these frames, each on its channel.
    pub(super) fn send(&mut self, frames: &[(u16, Performative<'_>)]) -> Result<(), Error> {
        let mut out = Vec::with_capacity(512);
        frames.iter().for_each(|(channel, it)| it.write_frame(*channel, &[], &mut out));
        self.last_sent = Instant::now();
        self.wire.send(&out)
    }

    /// Waits for the frame that `wanted` takes; it also gets the broker's channel. Of frames before it only
    /// what they say of sessions is noted.
    pub(super) fn expect<T>(
        &mut self,
        mut wanted: impl FnMut(u16, &Performative<'_>) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let input = &mut self.input;
        self.wire.expect(|bytes| {
            let Some((frame, octets)) = frame::read(bytes, FRAME_BYTES_MAX)? else {
                return Ok(None);
            };
            if frame.body.is_empty() {
                return Ok(Some((None, octets)));
            }
            let (performative, _) = Performative::decode_body(frame.body)?;
            input.answer(frame.channel, &performative)?;
            Ok(Some((wanted(frame.channel, &performative)?, octets)))
        })
    }

    /// Begins a session on our channel and attaches its link.
    pub(super) fn attach(
        &mut self,
        channel: u16,
        session: Session,
        attach: Performative<'_>,
    ) -> Result<(), Error> {
        let index = usize::from(channel);
        if self.input.sessions.len() <= index {
            self.input.sessions.resize_with(index + 1, || None);
        }
        let is_sender = matches!(session.end, End::Sender(_));
        self.input.sessions[index] = Some(session);
        self.send(&[(channel, Performative::Begin(Session::begin())), (channel, attach)])?;
        let mut remote = None;
        self.expect(|from, performative| match performative {
            Performative::Begin(begin) if begin.remote_channel == Some(channel) => {
                remote = Some(from);
                Ok(None)
            }
            // A broker that refuses the link says why in the detach that follows.
            Performative::Attach(Attach { source: None, role: Role::Sender, .. })
            | Performative::Attach(Attach { target: None, role: Role::Receiver, .. }) => Ok(None),
            Performative::Attach(_) if remote == Some(from) => Ok(Some(())),
            _ => Ok(None),
        })?;
        if is_sender && self.room_on(index) == 0 {
            self.expect(|from, performative| match performative {
                Performative::Flow(flow) if remote == Some(from) => {
                    Ok((flow.link_credit.unwrap_or(0) > 0).then_some(()))
                }
                _ => Ok(None),
            })?;
        }
        Ok(())
    }

    fn room_on(&self, index: usize) -> u64 {
        self.input.sessions.get(index).and_then(Option::as_ref).map_or(0, Session::room)
    }

    /// The next channel of a link; the first one is for transactions.
    pub(super) fn next_channel(&self) -> u16 {
        (self.input.sessions.len().max(1)) as u16
    }

    pub(super) fn link_name(&self, channel: u16) -> String {
        format!("bench-{:06}-{channel:02}", self.number % 1_000_000)
    }

    /// The address of a queue or topic.
    fn address(&self, name: &str) -> String {
        terminus::address(name, self.management.has_declared_queues())
    }

    /// Asks for the outcome of each message from now on.
    pub(crate) fn select_confirms(&mut self) -> Result<(), Error> {
        self.confirms = true;
        Ok(())
    }

    /// Attaches to the coordinator and begins the first transaction.
    pub(crate) fn select_transactions(&mut self) -> Result<(), Error> {
        let link = self.link_name(transaction::CHANNEL);
        self.attach(transaction::CHANNEL, Session::sender(""), terminus::coordinator(&link))?;
        (self.confirms, self.transacted) = (true, true);
        let mut out = Vec::new();
        self.input.transactions.declare(&mut out);
        self.write(&out)?;
        while self.input.transactions.is_busy() {
            if self.fill()? == 0 {
                return Err(Error::hung_up());
            }
            self.parse(&mut ())?;
        }
        Ok(())
    }

    /// The id of the open transaction; empty without one.
    pub(crate) fn transaction(&self) -> &[u8] {
        self.input.transactions.id()
    }

    /// Appends a commit; the next transaction begins with it.
    pub(crate) fn encode_commit(&mut self, out: &mut Vec<u8>) {
        self.input.transactions.commit(out);
    }

    /// Creates a durable subscription, which stores what is published to its topic.
    pub(crate) fn declare_session(&mut self, session: &Subscription<'_>) -> Result<(), Error> {
        self.subscription(session.name, session.filter, false)
    }

    /// Deletes a durable subscription and what it stores.
    pub(crate) fn delete_session(&mut self, name: &str, topic: &str) -> Result<(), Error> {
        self.subscription(name, topic, true)
    }

    fn subscription(&self, name: &str, topic: &str, deletes: bool) -> Result<(), Error> {
        let source = Source { session: Some(name), auto_ack: false, ..Source::plain(topic) };
        let mut owner = Connection::open_as(&self.target, name, self.number)?;
        owner.attach_receiver(&source, None, 1)?;
        owner.input.ending = Some(1);
        let detach = Detach { handle: 0, closed: deletes, error: None };
        owner.send(&[(1, Performative::Detach(detach))])?;
        owner.expect(|_, performative| {
            Ok(matches!(performative, Performative::Detach(_)).then_some(()))
        })?;
        owner.close()
    }

    fn attach_receiver(
        &mut self,
        source: &Source<'_>,
        label: Option<&str>,
        prefetch: u16,
    ) -> Result<u16, Error> {
        let channel = self.next_channel();
        let name = terminus::receiver_name(self.link_name(channel), source);
        let address = self.address(source.name);
        let filter = label.map(terminus::filter);
        let session = Session::receiver(prefetch, source.auto_ack, source.session.is_some());
        self.attach(
            channel,
            session,
            terminus::receiver(&name, source, &address, filter.as_ref()),
        )?;
        Ok(channel)
    }

    /// Attaches a link that receives, or one for each label, and gives it credit; deliveries may follow
    /// immediately.
    pub(crate) fn subscribe(&mut self, source: &Source<'_>, prefetch: u16) -> Result<(), Error> {
        if let Some(session) = source.session {
            let transacted = self.transacted;
            *self = Connection::open_as(&self.target, session, self.number)?;
            if transacted {
                self.select_transactions()?;
            }
        }
        // Credit comes last: deliveries before would not be handed on.
        let mut out = Vec::new();
        match source.labels {
            None => {
                let channel = self.attach_receiver(source, None, prefetch)?;
                self.input.top_up(channel.into(), &mut out);
            }
            Some(labels) => {
                for label in labels.texts() {
                    let channel = self.attach_receiver(source, Some(&label), prefetch)?;
                    self.input.top_up(channel.into(), &mut out);
                }
            }
        }
        self.wire.send(&out)
    }

    /// Attaches the link that messages of this route go over, if none is attached, and waits until the broker
    /// takes the first one.
    pub(crate) fn prepare(&mut self, route: &Route<'_>) -> Result<(), Error> {
        if self.sender(route).is_some() {
            return Ok(());
        }
        let channel = self.next_channel();
        let name = self.link_name(channel);
        let (queue, _) = terminus::split_label(route.key);
        let address = self.address(queue);
        let attach = terminus::sender(&name, queue, &address, self.confirms);
        self.attach(channel, Session::sender(route.key), attach)
    }

    /// The channel of a route.
    fn sender(&self, route: &Route<'_>) -> Option<u16> {
        let mut sessions = self.input.sessions.iter().skip(1);
        let links = sessions.position(|session| match session {
            Some(Session { end: End::Sender(sender), .. }) => sender.name == route.key,
            _ => false,
        })?;
        Some(links as u16 + 1)
    }

    /// Appends a message.
    pub(crate) fn encode(&self, route: &Route<'_>, body: &[u8], out: &mut Vec<u8>) -> Encoded {
        let sending = Sending {
            channel: self.sender(route).expect("the route was prepared"),
            settled: !self.confirms,
            transaction: self.transaction(),
            frame_bytes_max: self.frame_bytes_max,
        };
        let (_, label) = terminus::split_label(route.key);
        message::write(out, sending, &message::sections(route.persistent, label, body), body.len())
    }

    /// How many messages the broker takes now, over the link that takes the fewest.
    #[inline]
    pub(crate) fn room(&self) -> u64 {
        let links = self.input.sessions.iter().skip(1).flatten();
        let senders = links.filter(|it| matches!(it.end, End::Sender(_)));
        senders.map(Session::room).min().unwrap_or(u64::MAX)
    }

    /// Writes frames; messages wait until the broker takes them.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let (mut rest, mut since) = (bytes, Instant::now());
        loop {
            let ready = self.input.admit(rest);
            if ready > 0 {
                since = Instant::now();
                self.wire.send(&rest[..ready])?;
                if self.beat.is_some() {
                    self.last_sent = Instant::now();
                }
            }
            rest = &rest[ready..];
            if rest.is_empty() {
                return Ok(());
            }
            self.wait_for_room(since)?;
        }
    }

    /// Reads once and looks for flows in what is not parsed yet, which stays as it is. There is no room since
    /// then: the socket's timeout may be much shorter than the patience with the broker.
    fn wait_for_room(&mut self, since: Instant) -> Result<(), Error> {
        match self.fill() {
            Ok(0) => return Err(Error::hung_up()),
            Ok(_) => {}
            Err(error) if is_timeout(&error) && since.elapsed() < PATIENCE => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let input = &mut self.input;
        self.wire.incoming.take(|mut bytes| {
            while let Some((frame, octets)) = frame::read(bytes, FRAME_BYTES_MAX)? {
                let code = descriptor_code(frame.body);
                let is_told = [Transfer::INFO.code, Disposition::INFO.code];
                if code.is_some_and(|code| !is_told.contains(&code.into())) {
                    let (performative, _) = Performative::decode_body(frame.body)?;
                    match performative {
                        Performative::Flow(_) => input.answer(frame.channel, &performative)?,
                        Performative::Close(close) => {
                            return Err(closed("the connection", close.error.as_ref()));
                        }
                        Performative::Detach(detach) => {
                            return Err(closed("the link", detach.error.as_ref()));
                        }
                        _ => {}
                    }
                }
                bytes = &bytes[octets..];
            }
            Ok(None::<((), usize)>)
        })?;
        Ok(())
    }

    /// Sends what is pending and reads once.
    pub(crate) fn fill(&mut self) -> io::Result<usize> {
        if let Some(beat) = self.beat
            && self.last_sent.elapsed() >= beat
        {
            frame::write_empty(&mut self.input.pending);
        }
        if !self.input.pending.is_empty() {
            self.last_sent = Instant::now();
            self.wire.flush(&mut self.input.pending)?;
        }
        self.wire.fill()
    }

    /// Hands all received frames to `receiver`.
    #[inline]
    pub(crate) fn parse(&mut self, receiver: &mut impl Receiver) -> Result<(), Error> {
        while let Some(frame) = next_frame(&mut self.wire.incoming)? {
            self.input.frame(&frame, receiver)?;
        }
        if self.end_wanted && !self.input.transactions.is_busy() {
            self.detach_all();
        }
        if self.input.ending == Some(0) {
            self.input.ending = None;
            receiver.ended();
        }
        self.input.top_up_all();
        Ok(())
    }

    /// Appends the acceptance of a delivery; with `multiple`, of all up to it. Within a transaction it waits
    /// for the answer to the last commit.
    #[inline]
    pub(crate) fn encode_ack(&mut self, out: &mut Vec<u8>, tag: u64, multiple: bool) {
        let last = tag as u32;
        let Some(Acceptance { accepted, count }) = self.input.accept(last, multiple) else {
            return;
        };
        let Accepted { channel, first, last } = accepted;
        if self.transacted {
            self.input.transactions.accept(accepted, out);
        } else {
            let disposition = Disposition {
                role: Role::Receiver,
                first,
                last: (last != first).then_some(last),
                settled: true,
                state: Some(ACCEPTED),
                batchable: false,
            };
            write_frame(&disposition, channel, &[], out);
        }
        self.input.settled(channel.into(), count, out);
    }

    /// Detaches all links, once commits are answered. The broker answers after everything sent before.
    pub(crate) fn send_end(&mut self) -> Result<(), Error> {
        if self.input.transactions.is_busy() {
            self.end_wanted = true;
        } else {
            self.detach_all();
        }
        Ok(self.wire.flush(&mut self.input.pending)?)
    }

    fn detach_all(&mut self) {
        self.end_wanted = false;
        let mut count = 0;
        for (channel, session) in self.input.sessions.iter().enumerate().skip(1) {
            let Some(session) = session else { continue };
            let keeps = matches!(&session.end, End::Receiver(receiver) if receiver.durable);
            let detach = Detach { handle: 0, closed: !keeps, error: None };
            write_frame(&detach, channel as u16, &[], &mut self.input.pending);
            count += 1;
        }
        self.input.ending = Some(count);
    }

    /// Closes the connection; frames still on their way are dropped.
    pub(crate) fn close(mut self) -> Result<(), Error> {
        if self.is_stale() {
            return Ok(());
        }
        self.send(&[(0, Performative::Close(Close::default()))])?;
        loop {
            while let Some(frame) = next_frame(&mut self.wire.incoming)? {
                if descriptor_code(frame.body) == Some(Close::INFO.code as u8) {
                    return match Performative::decode_body(frame.body)?.0 {
                        Performative::Close(Close { error: error @ Some(_) }) => {
                            Err(closed("the connection", error.as_ref()))
                        }
                        _ => Ok(()),
                    };
                }
            }
            if self.wire.fill()? == 0 {
                return Ok(());
            }
        }
    }
}

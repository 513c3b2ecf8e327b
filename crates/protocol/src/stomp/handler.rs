//! One STOMP connection's state machine: frames in, what must happen next.
//!
//! | file | concern |
//! |---|---|
//! | `handshake` | CONNECT, STOMP |
//! | `publish`, `reassembly` | SEND |
//! | `subscribe`, `unsubscribe` | SUBSCRIBE, UNSUBSCRIBE |
//! | `settle` | ACK, NACK |
//! | `transactions` | BEGIN, COMMIT, ABORT |
//! | `close` | DISCONNECT, errors, the end |
//!
//! Requests and publishes go by channel 0; each subscription has a channel of its own, so that cumulative
//! acknowledgements are those of its messages. While a request that decides about what follows is not
//! answered, the connection takes no input.

use super::asked::{Asked, Declared, MAIN, Taken, check_receipt};
use super::codec::{Frame, Headers, body_of};
use super::fault::Fault;
use super::frame::{Head, Limits, Version, gap};
use super::settings::Settings;
use super::subscription::{Subscription, Transaction};
use super::unfinished::Reassembly;
use super::writer::Writer;
use crate::output::Output;
use crate::{
    AnyWriter, Authentication, ClientProperties, Close, ConnectionInfo, Context, Host, Peer,
    ProtocolHandler,
};
use angarium_engine::{ChannelId, ConnectionId, Refusal, Reply, Request, Settle, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a body without a length that are looked through again when more arrives.
const SEARCHED_AGAIN_MAX: usize = 16 << 10;
/// Bytes of the body of a frame that has no use for one.
const IDLE_BODY_BYTES_MAX: u64 = 64 << 10;

/// A connection that speaks STOMP.
#[derive(Debug)]
pub struct Handler {
    pub(super) id: ConnectionId,
    pub(super) settings: Arc<Settings>,
    pub(super) peer: Peer,
    pub(super) state: State,
    pub(super) waiting: Option<Waiting>,
    pub(super) version: Version,
    /// What message ids begin with.
    pub(crate) session: Box<str>,
    /// What the client calls itself, if it does.
    pub(super) client_id: Option<Box<str>>,
    pub(super) subscriptions: Vec<Subscription>,
    /// Subscriptions so far.
    pub(super) serials: u32,
    pub(super) transactions: BTreeMap<Box<str>, Transaction>,
    /// The queues that the connection calls `/temp-queue/` and this.
    pub(super) temporary: BTreeMap<Box<str>, String>,
    /// Answers on channel 0 that nobody waits for, and that come before those that somebody does.
    pub(super) ignored: u32,
    /// The queue that was declared last for a message, and as what.
    pub(super) declared: Option<Box<Declared>>,
    /// Why that was refused: the message is presented again.
    pub(super) not_declared: Option<Box<Fault>>,
    pub(super) reassembly: Option<Box<Reassembly>>,
    /// When input last arrived.
    pub(super) last_input: Time,
    /// When the next heart-beat goes out.
    pub(super) beat: Time,
    /// When the handshake, or the wait for the client's end, is over.
    pub(super) patience: Time,
    /// How often we give a sign of life, and how long the client may be silent.
    pub(super) beat_interval: Option<Duration>,
    pub(super) silence_max: Option<Duration>,
    pub(super) user: String,
    pub(super) vhost: String,
    pub(super) client: Box<ClientProperties>,
    /// The engine knows the connection.
    pub(super) connected: bool,
    /// The broker cannot take persistent messages.
    pub(super) is_blocked: bool,
    /// Room for the headers of the message at hand.
    pub(super) kept: Vec<u8>,
    /// Why it ends, for the log.
    pub(super) ending: Option<Box<str>>,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// CONNECT has to come.
    Greeting,
    /// In use.
    Open,
    /// The client has said DISCONNECT: it closes the connection.
    Leaving,
    /// To be closed at the next opportunity.
    Over,
}

/// What a connection waits for before it takes more input.
#[derive(Debug)]
pub(super) enum Waiting {
    Authentication,
    /// Until home has said whether its virtual host has room.
    ToEnter,
    /// Until all shards know what was subscribed to: then the receipt goes out.
    Shards(Option<Box<str>>),
    /// Until there is room for more publishes that wait for their outcome.
    Confirms,
    /// Until the engine has answered what was asked on a channel.
    Answer(u16, Asked),
}

impl Handler {
    /// A connection that has just been accepted.
    #[must_use]
    pub fn new(id: ConnectionId, peer: Peer, settings: Arc<Settings>, now: Time) -> Handler {
        let patience = now.plus(settings.handshake_timeout);
        Handler {
            id,
            peer,
            state: State::Greeting,
            waiting: None,
            version: Version::V1_0,
            session: "".into(),
            client_id: None,
            subscriptions: Vec::new(),
            serials: 0,
            transactions: BTreeMap::new(),
            temporary: BTreeMap::new(),
            ignored: 0,
            declared: None,
            not_declared: None,
            reassembly: None,
            last_input: now,
            beat: now,
            patience,
            beat_interval: None,
            silence_max: None,
            user: String::new(),
            vhost: String::new(),
            client: Box::default(),
            connected: false,
            is_blocked: false,
            kept: Vec::new(),
            ending: None,
            settings,
        }
    }

    /// What listings show.
    #[must_use]
    pub fn info(&self) -> ConnectionInfo<'_> {
        let seconds = self.beat_interval.map_or(0, |interval| interval.as_secs() * 2);
        ConnectionInfo {
            peer: &self.peer,
            user: &self.user,
            vhost: &self.vhost,
            client: &self.client,
            state: match self.state {
                State::Greeting => "starting",
                State::Open if self.is_blocked => "blocked",
                State::Open => "running",
                State::Leaving | State::Over => "closing",
            },
            channels: if self.connected { 1 + self.subscriptions.len() } else { 0 },
            frame_bytes_max: u32::try_from(self.settings.body_bytes_max).unwrap_or(u32::MAX),
            heartbeat_seconds: u16::try_from(seconds).unwrap_or(u16::MAX),
            protocol: match self.version {
                Version::V1_0 => "STOMP 1.0",
                Version::V1_1 => "STOMP 1.1",
                Version::V1_2 => "STOMP 1.2",
            },
            last_input: self.last_input,
        }
    }

    pub(super) fn channel_id(&self, number: u16) -> ChannelId {
        ChannelId { connection: self.id, number }
    }

    /// The other half of the connection.
    #[inline]
    pub(super) fn outgoing<'c>(
        &self,
        context: &'c mut Context<impl Host>,
    ) -> (&'c mut Writer, &'c mut Output) {
        context.host.writer(self.id).stomp()
    }

    /// Asks the engine for something; what it is for comes back with the answer.
    pub(super) fn ask(
        &mut self,
        context: &mut Context<impl Host>,
        channel: u16,
        request: Request,
        asked: Asked,
    ) {
        self.waiting = Some(Waiting::Answer(channel, asked));
        context.engine.request(context.now, self.channel_id(channel), request, context.host);
    }

    /// Asks the engine for something on channel 0 whose outcome shows in what follows.
    pub(super) fn ask_aside(&mut self, context: &mut Context<impl Host>, request: Request) {
        self.ignored += 1;
        context.engine.request(context.now, self.channel_id(MAIN), request, context.host);
    }

    /// Tells the client that a frame was carried out, if it asked for that.
    pub(super) fn receipt(&self, context: &mut Context<impl Host>, receipt: Option<&str>) {
        if let Some(receipt) = receipt {
            let (writer, out) = self.outgoing(context);
            writer.put_receipt(out, receipt);
        }
    }

    /// Takes what `input` begins with and returns how many bytes that was; 0: more is needed, or it is
    /// presented again.
    #[inline]
    fn step(&mut self, context: &mut Context<impl Host>, input: &[u8]) -> Result<usize, Close> {
        if self.reassembly.is_some() {
            return self.gather(context, input);
        }
        let gap = gap(input);
        if gap > 0 {
            return Ok(gap);
        }
        let limits = self.settings.limits();
        let read = Head::read(input, &limits).and_then(|head| {
            let Some(head) = head else { return Ok(None) };
            let is_message = head.command == b"SEND" && self.state == State::Open;
            let most = if is_message { limits.body_bytes_max } else { IDLE_BODY_BYTES_MAX };
            let limits = Limits { body_bytes_max: most, ..limits };
            let body = body_of(&head, &input[head.bytes..], &limits)?;
            Ok(Some((head, body, is_message)))
        });
        match read {
            Ok(None) => Ok(0),
            Ok(Some((head, Some(body), _))) => {
                let headers = Headers::new(head.lines, self.frame_version(head.command));
                let frame = Frame { command: head.command, headers, body };
                match self.frame(context, &frame)? {
                    Taken::Done => Ok(head.bytes + body.len() + 1),
                    Taken::Again => Ok(0),
                }
            }
            Ok(Some((head, None, is_message))) => {
                let behind = &input[head.bytes..];
                let is_large = match head.content_length {
                    Some(length) => length >= context.engine.large_body_bytes() as u64,
                    None => behind.len() >= SEARCHED_AGAIN_MAX,
                };
                if !is_message || !is_large {
                    return Ok(0);
                }
                self.reassembly = Some(Box::new(Reassembly::new(&head, &input[..head.bytes])));
                Ok(head.bytes)
            }
            Err(malformed) => Err(self.fail_message(context, input, &malformed.into())),
        }
    }

    /// How the headers of a frame are escaped.
    pub(super) fn frame_version(&self, command: &[u8]) -> Version {
        match command {
            b"CONNECT" | b"STOMP" => Version::V1_0,
            _ => self.version,
        }
    }

    /// Ends the connection for a frame that is not taken whole. `input` begins with its head, which names
    /// the receipt if it can be read.
    #[cold]
    pub(super) fn fail_message(
        &mut self,
        context: &mut Context<impl Host>,
        input: &[u8],
        fault: &Fault,
    ) -> Close {
        let head = Head::read(input, &self.settings.limits()).ok().flatten();
        let receipt = head.and_then(|head| {
            let headers = Headers::new(head.lines, self.frame_version(head.command));
            headers.get("receipt").ok().flatten()
        });
        self.fail(context, fault, receipt.as_deref())
    }

    /// Takes a frame.
    #[inline]
    fn frame(
        &mut self,
        context: &mut Context<impl Host>,
        frame: &Frame<'_>,
    ) -> Result<Taken, Close> {
        let taken = match (self.state, frame.command) {
            (State::Greeting, b"CONNECT" | b"STOMP") => self.connect(context, &frame.headers),
            (State::Greeting, _) => {
                let text = "the first frame has to be CONNECT or STOMP";
                Err(Fault::new("Not connected", text))
            }
            (_, b"SEND") => self.send(context, &frame.headers, frame.body, None),
            (_, b"ACK" | b"NACK") => self.acknowledge(context, frame),
            _ => self.control(context, frame),
        };
        taken.map_err(|fault| {
            let receipt = frame.headers.get("receipt").ok().flatten();
            self.fail(context, &fault, receipt.as_deref())
        })
    }

    fn control(
        &mut self,
        context: &mut Context<impl Host>,
        frame: &Frame<'_>,
    ) -> Result<Taken, Fault> {
        let headers = &frame.headers;
        check_receipt(headers.get("receipt")?.as_deref())?;
        match frame.command {
            b"SUBSCRIBE" => self.subscribe(context, headers),
            b"UNSUBSCRIBE" => self.unsubscribe(context, headers),
            b"BEGIN" => self.begin_transaction(context, headers),
            b"COMMIT" => self.end_transaction(context, headers, true),
            b"ABORT" => self.end_transaction(context, headers, false),
            b"DISCONNECT" => self.disconnect(context, headers),
            b"CONNECT" | b"STOMP" => {
                Err(Fault::new("Already connected", "a second CONNECT on a connection"))
            }
            other => {
                let name = String::from_utf8_lossy(other);
                let text = format!("Could not interpret command {name:?}");
                Err(Fault::new("Bad command", text))
            }
        }
    }

    fn answered(
        &mut self,
        context: &mut Context<impl Host>,
        asked: Asked,
        reply: Result<Reply, Refusal>,
    ) {
        let done = match asked {
            Asked::Queue(declared) => {
                self.declared = Some(declared);
                self.not_declared = reply.err().map(|refusal| Box::new(refusal.into()));
                Ok(())
            }
            Asked::Subscribe(subscribing) => self.subscribe_answered(context, *subscribing, reply),
            Asked::Unsubscribe(unsubscribing) => {
                self.unsubscribe_answered(context, unsubscribing, reply)
            }
            Asked::Begin(beginning) => self.begun(context, beginning, reply),
            Asked::End(ending) => self.ended(context, ending, reply),
            Asked::Acknowledge(it) => self.acknowledge_answered(context, *it, reply),
        };
        if let Err((fault, receipt)) = done {
            self.fail_later(context, &fault, receipt.as_deref());
        }
    }

    /// Takes no more input while many publishes wait for their outcome.
    #[cold]
    fn await_room(&mut self, context: &mut Context<impl Host>) {
        if self.waiting.is_none() && self.state == State::Open {
            self.waiting = Some(Waiting::Confirms);
            self.outgoing(context).0.awaits_room = true;
        }
    }

    /// Whether an ERROR frame was written that ends the connection.
    fn has_failed(&self, context: &mut Context<impl Host>) -> bool {
        self.outgoing(context).0.failed.is_some()
    }
}

impl ProtocolHandler for Handler {
    fn begin(&mut self, context: &mut Context<impl Host>) {
        context.host.writer(self.id).protocol = AnyWriter::Stomp(Box::default());
    }

    fn receive(&mut self, context: &mut Context<impl Host>, input: &[u8]) -> Result<usize, Close> {
        let mut used = 0;
        self.last_input = context.now;
        while !self.is_waiting() && used < input.len() {
            if matches!(self.state, State::Leaving) {
                return Ok(input.len());
            }
            if self.state == State::Over || self.has_failed(context) {
                return Err(self.closed(context));
            }
            match self.step(context, &input[used..])? {
                0 => break,
                step => used += step,
            }
            if context.engine.is_step_over() {
                break;
            }
            if self.outgoing(context).0.unconfirmed.is_full() {
                self.await_room(context);
            }
        }
        let is_over = match self.state {
            State::Open => self.has_failed(context),
            // Without a receipt the client waits for nothing.
            State::Leaving => self.patience <= context.now,
            State::Greeting | State::Over => false,
        };
        if is_over { Err(self.closed(context)) } else { Ok(used) }
    }

    fn written(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if self.has_failed(context) {
            return Err(self.closed(context));
        }
        self.waiting.take_if(|it| matches!(it, Waiting::Confirms));
        Ok(())
    }

    fn replied(
        &mut self,
        context: &mut Context<impl Host>,
        id: ChannelId,
        reply: Result<Reply, Refusal>,
    ) {
        if id.number == MAIN && self.ignored > 0 {
            self.ignored -= 1;
            return;
        }
        match self.waiting.take() {
            Some(Waiting::Answer(channel, asked)) if channel == id.number => {
                if self.state == State::Open {
                    self.answered(context, asked, reply);
                }
            }
            other => self.waiting = other,
        }
    }

    fn authenticated(
        &mut self,
        context: &mut Context<impl Host>,
        answer: Authentication,
    ) -> Result<(), Close> {
        if !matches!(self.waiting, Some(Waiting::Authentication)) {
            return Ok(());
        }
        self.waiting = None;
        self.log_in(context, answer)
    }

    fn entered(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if !matches!(self.waiting, Some(Waiting::ToEnter)) {
            return Ok(());
        }
        self.waiting = None;
        self.enter(context)
    }

    fn known_to_shards(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if context.host.is_known_to_shards(self.id)
            && let Some(Waiting::Shards(receipt)) =
                self.waiting.take_if(|it| matches!(it, Waiting::Shards(_)))
        {
            self.receipt(context, receipt.as_deref());
        }
        Ok(())
    }

    fn refused(
        &mut self,
        context: &mut Context<impl Host>,
        _: ChannelId,
        _: Option<Settle>,
        refusal: Refusal,
    ) {
        self.fail_later(context, &refusal.into(), None);
    }

    fn channel_failed(&mut self, context: &mut Context<impl Host>, _: ChannelId, why: Refusal) {
        self.fail_later(context, &why.into(), None);
    }

    #[inline]
    fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    fn blocked(&mut self, _: &mut Context<impl Host>, why: Option<&str>) {
        self.is_blocked = why.is_some();
    }

    fn drops_input(&self) -> bool {
        matches!(self.state, State::Leaving | State::Over)
    }

    fn held_bytes(&self) -> usize {
        let names = |it: &Subscription| size_of::<Subscription>() + it.name_bytes();
        let temporary = self.temporary.iter().map(|(name, queue)| name.len() + queue.len());
        let transactions = self.transactions.values().map(Transaction::held_bytes);
        self.reassembly.as_ref().map_or(0, |it| it.held_bytes())
            + self.kept.capacity()
            + self.subscriptions.iter().map(names).sum::<usize>()
            + transactions.sum::<usize>()
            + self.transactions.keys().map(|name| name.len()).sum::<usize>()
            + temporary.sum::<usize>()
    }

    fn refuse_unfinished(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        let Some(reassembly) = self.reassembly.take() else { return Ok(()) };
        let text = "memory is short: the message was given up before it had arrived whole";
        let fault = Fault::new("resource_error", text);
        Err(self.fail_message(context, &reassembly.head, &fault))
    }

    fn reading_paused(&mut self, now: Time) {
        self.last_input = self.last_input.max(now);
    }

    fn close(&mut self, context: &mut Context<impl Host>, why: &str) {
        match self.state {
            State::Open | State::Greeting => {
                self.fail_later(context, &Fault::new("Connection closed", why), None);
            }
            State::Leaving | State::Over => {}
        }
    }

    fn disconnected(&mut self, context: &mut Context<impl Host>) {
        self.leave(context);
        self.state = State::Over;
    }

    fn deadline(&self) -> Option<Time> {
        Some(match self.state {
            // The writer may have had to end the connection, which is looked for from time to time.
            State::Open => Time::default(),
            _ => self.patience,
        })
    }

    fn expire(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        let now = context.now;
        if self.state != State::Open {
            if now < self.patience {
                return Ok(());
            }
            if self.state == State::Greeting && self.waiting.is_none() {
                let limit = self.settings.handshake_timeout.as_secs();
                let text = format!("no CONNECT frame within {limit} s");
                return Err(self.fail(context, &Fault::new("Not connected", text), None));
            }
            // The receipt of DISCONNECT may still have to come.
            let waits = self.waiting.is_some() || self.outgoing(context).0.owes_farewell();
            return if waits { Ok(()) } else { Err(self.closed(context)) };
        }
        if self.has_failed(context) {
            return Err(self.closed(context));
        }
        if let Some(most) = self.silence_max
            && self.waiting.is_none()
            && now >= self.last_input.plus(most)
        {
            let silence = now.since(self.last_input).as_secs();
            let text = format!("no heart-beat: the client was silent for {silence} s");
            return Err(self.fail(context, &Fault::new("Heart-beat missed", text), None));
        }
        if let Some(interval) = self.beat_interval
            && now >= self.beat
        {
            let (_, out) = self.outgoing(context);
            // Bytes that wait to be sent are a sign of life themselves.
            if out.bytes.is_empty() && out.shared_body.is_none() {
                out.bytes.push(b'\n');
            }
            self.beat = now.plus(interval);
        }
        Ok(())
    }
}

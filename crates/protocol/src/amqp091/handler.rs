//! One AMQP 0-9-1 connection's state machine: frames in, what must happen next.
//!
//! The handshake is in `handshake`, control methods in `control`, messages in `publish`, errors and closing
//! in `close`.

use super::channel::Channels;
use super::codec::method::{self, DecodeError};
use super::codec::{Malformed, Method, content};
use super::control::Pending;
use super::fault::{Code, Fault};
use super::frame::{self, Frame};
use super::mapping;
use super::publish::BASIC_PUBLISH;
use super::settings::Settings;
use crate::amqp091::publish_memo::PublishMemo;
use crate::{
    Authentication, ClientProperties, Close, ConnectionInfo, Context, Host, Peer, ProtocolHandler,
};
use angarium_engine::{ChannelId, ConnectionId, Outcome, Refusal, Reply, Settle, Time};
use std::sync::Arc;
use std::time::Duration;

/// A connection that speaks AMQP 0-9-1.
#[derive(Debug)]
pub struct Handler {
    pub(super) id: ConnectionId,
    pub(super) settings: Arc<Settings>,
    pub(super) peer: Peer,
    pub(super) state: State,
    pub(super) waiting: Option<Waiting>,
    pub(super) channels: Channels,
    /// A body frame has arrived in part.
    pub(super) part: Option<Part>,
    pub(super) publish_memo: Option<Box<PublishMemo>>,
    pub(super) frame_bytes_max: u32,
    pub(super) channels_max: u16,
    pub(super) heartbeat_seconds: u16,
    /// When input last arrived.
    pub(super) last_input: Time,
    /// When the next heartbeat goes out.
    pub(super) beat: Time,
    /// When the handshake, or the wait for close-ok, is over.
    pub(super) patience: Time,
    pub(super) user: String,
    pub(super) vhost: String,
    pub(super) client: Box<ClientProperties>,
    pub(super) capabilities: Capabilities,
    pub(super) mechanism: &'static str,
    /// It has published: only then does it get connection.blocked.
    pub(super) published: bool,
    pub(super) blocked: Option<Box<str>>,
    /// The engine knows the connection.
    pub(super) connected: bool,
    /// Consumer tags generated.
    pub(super) tags_made: u32,
    /// Why it ends, for the log.
    pub(super) ending: Option<Box<str>>,
    /// The numbers of the method being handled, for close methods.
    pub(super) current: (u16, u16),
}

/// What a client said it understands, of what changes how we talk to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    pub(super) consumer_cancel_notify: bool,
    pub(super) connection_blocked: bool,
    pub(super) authentication_failure_close: bool,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The protocol header has to come.
    Greeting,
    /// connection.start-ok has to come.
    Starting,
    /// connection.tune-ok has to come.
    Tuning,
    /// connection.open has to come.
    Opening,
    /// In use.
    Open,
    /// We sent connection.close, or close-ok: only connection.close-ok counts, or the end of the input.
    Closing,
    /// As `Closing`, and what comes cannot be told apart any more.
    Deaf,
    /// To be closed at the next opportunity.
    Over,
}

/// What a connection waits for before it takes more input.
#[derive(Debug)]
pub(super) enum Waiting {
    Authentication,
    /// Until home has said whether its virtual host has room.
    ToEnter,
    Reply(Pending),
    /// Until every request is complete on all shards: then close-ok is sent, on a channel or for the
    /// connection (0).
    ToClose(u16),
    /// Until every earlier request is complete on all shards: then the input is presented again.
    EarlierRequests,
    /// Until every earlier request is complete on all shards: then the error of a message on this channel is
    /// sent.
    Fault(u16, Box<Fault>),
}

/// The rest of a body frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) channel: u16,
    /// Octets of payload to come, before the frame's end.
    pub(super) left: u32,
}

pub(super) fn syntax(what: &str, malformed: Malformed) -> Fault {
    Fault::new(Code::SYNTAX_ERROR, format!("{what} {malformed}"))
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
            channels: Channels::default(),
            part: None,
            publish_memo: None,
            frame_bytes_max: frame::MIN_MAX_BYTES,
            channels_max: settings.channels_max,
            heartbeat_seconds: 0,
            last_input: now,
            beat: now,
            patience,
            user: String::new(),
            vhost: String::new(),
            client: Box::default(),
            capabilities: Capabilities::default(),
            mechanism: "",
            published: false,
            blocked: None,
            connected: false,
            tags_made: 0,
            ending: None,
            current: (0, 0),
            settings,
        }
    }

    /// What listings show.
    #[must_use]
    pub fn info(&self) -> ConnectionInfo<'_> {
        ConnectionInfo {
            peer: &self.peer,
            user: &self.user,
            vhost: &self.vhost,
            client: &self.client,
            state: match self.state {
                State::Greeting | State::Starting => "starting",
                State::Tuning => "tuning",
                State::Opening => "opening",
                State::Open if self.published && self.blocked.is_some() => "blocked",
                State::Open => "running",
                State::Closing | State::Deaf | State::Over => "closing",
            },
            channels: self.channels.len(),
            frame_bytes_max: self.frame_bytes_max,
            heartbeat_seconds: self.heartbeat_seconds,
            protocol: "AMQP 0-9-1",
            last_input: self.last_input,
        }
    }

    /// Whether it has taken nothing yet, so that the client may speak another version.
    #[must_use]
    pub fn is_greeting(&self) -> bool {
        self.state == State::Greeting
    }

    pub(super) fn channel_id(&self, number: u16) -> ChannelId {
        ChannelId { connection: self.id, number }
    }

    pub(super) fn send(&self, context: &mut Context<impl Host>, channel: u16, method: &Method<'_>) {
        method.write_frame(channel, &mut context.host.writer(self.id).output.bytes);
    }

    /// Takes a frame, or a part of one, and returns its bytes. 0: more input is needed.
    #[inline]
    fn step(&mut self, context: &mut Context<impl Host>, input: &[u8]) -> Result<usize, Close> {
        match self.state {
            State::Open | State::Closing => {}
            State::Greeting => return self.greet(context, input),
            State::Starting | State::Tuning | State::Opening => {}
            State::Deaf => return Ok(input.len()),
            State::Over => return Err(self.closed()),
        }
        if let Some(part) = self.part {
            return Ok(self.body_part(context, part, input));
        }
        let Some(head) = frame::head(input) else { return Ok(0) };
        match frame::read(input, self.frame_bytes_max) {
            Ok(Some((frame, bytes))) => self.frame(context, frame, bytes, input),
            Ok(None) if head.kind == frame::BODY => Ok(self.begin_part(context, head)),
            Ok(None) => Ok(0),
            Err(error) => Ok(self.bad_frame(context, error, input.len())),
        }
    }

    /// Takes a whole frame, which `input` begins with, and returns how much of the input was used.
    #[inline]
    fn frame(
        &mut self,
        context: &mut Context<impl Host>,
        frame: Frame<'_>,
        bytes: usize,
        input: &[u8],
    ) -> Result<usize, Close> {
        if self.state == State::Open
            && frame.channel != 0
            && frame.kind == frame::METHOD
            && let Some((&content::PUBLISH, fields)) = frame.payload.split_first_chunk::<4>()
        {
            let taken = self.publish_method(context, frame.channel, fields, &input[bytes..]);
            return Ok(taken.map_or(0, |taken| bytes + taken));
        }
        if self.state == State::Closing {
            return self.while_closing(context, frame).map(|()| bytes);
        }
        let taken = match frame.kind {
            frame::METHOD => self.method_frame(context, frame)?,
            frame::HEADER => self.header_frame(context, frame),
            frame::BODY => self.body_frame(context, frame),
            _ if frame.channel == 0 => Ok(()),
            _ => {
                self.current = (0, 0);
                let text = format!("heartbeat on channel {}", frame.channel);
                Err(Fault::new(Code::UNEXPECTED_FRAME, text))
            }
        };
        if let Err(fault) = taken {
            self.fail(context, frame.channel, fault);
        }
        if self.is_presented_again() { Ok(0) } else { Ok(bytes) }
    }

    #[inline]
    fn method_frame(
        &mut self,
        context: &mut Context<impl Host>,
        frame: Frame<'_>,
    ) -> Result<Result<(), Fault>, Close> {
        if self.state == State::Open
            && frame.channel != 0
            && let Some(done) = self.settle_method(context, frame)
        {
            return Ok(done);
        }
        let method = match Method::decode(frame.payload) {
            Ok(method) => method,
            Err(error) => return Ok(Err(self.undecodable(frame.payload, error))),
        };
        self.current = method.ids();
        if frame.channel == 0 {
            return self.connection_method(context, &method);
        }
        Ok(self.channel_method(context, frame.channel, &method))
    }

    fn undecodable(&mut self, payload: &[u8], error: DecodeError) -> Fault {
        match error {
            DecodeError::Unknown { class, id } => {
                self.current = (class, id);
                let text = format!("there is no method {id} in class {class}");
                Fault::new(Code::COMMAND_INVALID, text)
            }
            DecodeError::Malformed(malformed) => {
                if let Some(&[c0, c1, m0, m1]) = payload.first_chunk::<4>() {
                    self.current = (u16::from_be_bytes([c0, c1]), u16::from_be_bytes([m0, m1]));
                }
                syntax(method::name(self.current.0, self.current.1), malformed)
            }
        }
    }

    /// How long the peer may be silent.
    fn silence_max(&self) -> Duration {
        Duration::from_secs(u64::from(self.heartbeat_seconds) * 2)
    }

    pub(super) fn heartbeat_interval(&self) -> Duration {
        Duration::from_millis(u64::from(self.heartbeat_seconds) * 500)
    }
}

impl Handler {
    /// A channel has failed: whatever it has asked for since is not answered.
    fn forget_request(&mut self, channel: u16) {
        self.waiting.take_if(
            |waiting| matches!(waiting, Waiting::Reply(pending) if pending.channel == channel),
        );
    }
}

impl ProtocolHandler for Handler {
    fn receive(&mut self, context: &mut Context<impl Host>, input: &[u8]) -> Result<usize, Close> {
        let mut used = 0;
        self.last_input = context.now;
        while self.waiting.is_none() && used < input.len() {
            match self.step(context, &input[used..])? {
                0 => break,
                step => used += step,
            }
            if context.engine.is_step_over() {
                break;
            }
        }
        Ok(used)
    }

    fn replied(
        &mut self,
        context: &mut Context<impl Host>,
        id: ChannelId,
        reply: Result<Reply, Refusal>,
    ) {
        match self.waiting.take() {
            Some(Waiting::Reply(pending)) if pending.channel == id.number => {
                self.current = pending.method;
                if let Err(fault) = self.answer(context, pending, reply) {
                    self.fail_now(context, id.number, fault);
                }
            }
            // The connection or channel ended while the engine was at it.
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
        match answer {
            Ok(identity) => {
                self.user = identity.user;
                self.tune(context);
                Ok(())
            }
            Err(why) => self.refuse_login(context, &why),
        }
    }

    fn entered(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if matches!(self.waiting, Some(Waiting::ToEnter)) {
            self.waiting = None;
            let vhost = std::mem::take(&mut self.vhost);
            if let Err(fault) = self.enter(context, &vhost) {
                self.fail_now(context, 0, fault);
            }
        }
        Ok(())
    }

    fn known_to_shards(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if !context.host.is_known_to_shards(self.id) {
            return Ok(());
        }
        match self.waiting.take() {
            Some(Waiting::ToClose(0)) => {
                self.close_ok(context);
            }
            Some(Waiting::ToClose(channel)) => {
                self.send(context, channel, &Method::ChannelCloseOk {});
            }
            Some(Waiting::EarlierRequests) | None => {}
            Some(Waiting::Fault(channel, fault)) => {
                // What came for a channel that had failed before was not looked at.
                if self.channels.get(channel).is_none_or(|channel| !channel.closing) {
                    self.current = BASIC_PUBLISH;
                    self.fail_now(context, channel, *fault);
                }
            }
            other => self.waiting = other,
        }
        Ok(())
    }

    fn refused(
        &mut self,
        context: &mut Context<impl Host>,
        id: ChannelId,
        settle: Option<Settle>,
        refusal: Refusal,
    ) {
        let channel = id.number;
        self.forget_request(channel);
        let fault = match settle {
            None => mapping::fault(refusal),
            Some(settle) => mapping::settle_fault(settle.tag(), refusal),
        };
        self.current = match settle.map(|settle| settle.outcome) {
            None => BASIC_PUBLISH,
            Some(Outcome::Accept) => (content::BASIC, 80),
            Some(Outcome::Return(_) | Outcome::Discard) => {
                let rejected_by = self.channels.get(channel).map_or(90, |it| it.rejected_by);
                (content::BASIC, rejected_by)
            }
        };
        self.fail_now(context, channel, fault);
    }

    fn channel_failed(&mut self, context: &mut Context<impl Host>, id: ChannelId, why: Refusal) {
        self.forget_request(id.number);
        self.current = (0, 0);
        self.fail_now(context, id.number, mapping::fault(why));
    }

    fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    fn blocked(&mut self, context: &mut Context<impl Host>, why: Option<&str>) {
        let told = self.blocked.is_some();
        self.blocked = why.map(Into::into);
        if self.published && self.state == State::Open && self.capabilities.connection_blocked {
            match why {
                Some(reason) => self.send(context, 0, &Method::ConnectionBlocked { reason }),
                None if told => self.send(context, 0, &Method::ConnectionUnblocked {}),
                None => {}
            }
        }
    }

    fn drops_input(&self) -> bool {
        matches!(self.state, State::Closing | State::Deaf) || self.channels.are_closing()
    }

    fn held_bytes(&self) -> usize {
        self.channels.held_bytes()
    }

    fn refuse_unfinished(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        self.current = BASIC_PUBLISH;
        for channel in self.channels.unfinished() {
            let text = "memory is short: the message was given up before it had arrived whole";
            self.fail_now(context, channel, Fault::new(Code::CONTENT_TOO_LARGE, text));
        }
        Ok(())
    }

    fn reading_paused(&mut self, now: Time) {
        self.last_input = self.last_input.max(now);
    }

    fn close(&mut self, context: &mut Context<impl Host>, why: &str) {
        match self.state {
            State::Closing | State::Deaf | State::Over => {}
            State::Greeting => {
                self.state = State::Over;
                self.ending = Some(why.into());
                self.patience = context.now;
            }
            _ => {
                self.current = (0, 0);
                self.end(context, &Fault::new(Code::CONNECTION_FORCED, why));
            }
        }
    }

    fn disconnected(&mut self, context: &mut Context<impl Host>) {
        self.leave(context);
        self.state = State::Over;
    }

    fn deadline(&self) -> Option<Time> {
        match self.state {
            State::Open if self.heartbeat_seconds == 0 => None,
            // While an answer is awaited we take no input, and its absence proves nothing.
            State::Open if self.waiting.is_some() => Some(self.beat),
            State::Open => Some(self.beat.min(self.last_input.plus(self.silence_max()))),
            _ => Some(self.patience),
        }
    }

    fn expire(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        let now = context.now;
        if self.state != State::Open {
            if now < self.patience {
                return Ok(());
            }
            let late = match self.state {
                State::Closing | State::Deaf | State::Over => return Err(self.closed()),
                State::Greeting => "no protocol header",
                State::Starting => "no connection.start-ok",
                State::Tuning => "no connection.tune-ok",
                _ => "no connection.open",
            };
            let limit = self.settings.handshake_timeout;
            self.ending =
                Some(format!("handshake timeout: {late} within {} s", limit.as_secs()).into());
            return Err(self.closed());
        }
        if self.heartbeat_seconds == 0 {
            return Ok(());
        }
        if self.waiting.is_none() && now >= self.last_input.plus(self.silence_max()) {
            let silence = now.since(self.last_input).as_secs();
            self.ending = Some(format!("missed heartbeats: silent for {silence} s").into());
            return Err(self.closed());
        }
        if now >= self.beat {
            let out = &mut context.host.writer(self.id).output.bytes;
            // Bytes that wait to be sent are a sign of life themselves.
            if out.is_empty() {
                frame::write_heartbeat(out);
            }
            self.beat = now.plus(self.heartbeat_interval());
        }
        Ok(())
    }
}

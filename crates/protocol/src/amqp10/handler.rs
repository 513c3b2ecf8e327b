//! One AMQP 1.0 connection's state machine: frames in, what must happen next.
//!
//! | file | concern |
//! |---|---|
//! | `handshake` | protocol headers, SASL, the open frame |
//! | `session`, `session_state` | sessions: the handler's half, and what the writer has to know |
//! | `attach`, `link`, `link_state` | links |
//! | `incoming` | messages from the peer |
//! | `settle` | outcomes of deliveries to the peer |
//! | `requests` | what the engine is asked for, and its answers |
//! | `close` | errors and the end |

use super::codec::{
    Condition, Disposition, Field, Flow, Performative, Transfer, decode_body, descriptor_code,
    write_frame,
};
use super::fault::Fault;
use super::frame::{self, Frame};
use super::mapping;
use super::sessions::{Session, Sessions};
use super::settings::Settings;
use super::writer::Writer;
use crate::output::Output;
use crate::scram::Dialogue;
use crate::{
    Authentication, ClientProperties, Close, ConnectionInfo, Context, Host, Peer, ProtocolHandler,
};
use angarium_engine::{ChannelId, ConnectionId, Refusal, Reply, Settle, Time};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The channel on which a connection asks for its name: beyond those of sessions.
pub(super) const NAMING_CHANNEL: u16 = u16::MAX;
/// Requests of a connection that may wait for the engine; it is not read from while there are more.
const PENDING_MAX: usize = 128;

/// A connection that speaks AMQP 1.0.
#[derive(Debug)]
pub struct Handler {
    pub(super) id: ConnectionId,
    pub(super) settings: Arc<Settings>,
    pub(super) peer: Peer,
    pub(super) state: State,
    pub(super) waiting: Option<Waiting>,
    pub(super) sessions: Sessions,
    /// The highest channel that both sides allow.
    pub(super) channel_max: u16,
    /// How long the peer lets us be silent.
    pub(super) idle: Option<Duration>,
    /// When input last arrived.
    pub(super) last_input: Time,
    /// When the next sign of life goes out.
    pub(super) beat: Time,
    /// When the handshake, or the wait for the peer's close, is over.
    pub(super) patience: Time,
    pub(super) user: String,
    pub(super) vhost: String,
    /// The peer's container id.
    pub(super) container: Box<str>,
    pub(super) client: Box<ClientProperties>,
    pub(super) mechanism: &'static str,
    /// A login by SCRAM, as far as it has come.
    pub(super) scram: Option<Box<Dialogue>>,
    /// We have sent the open frame.
    pub(super) has_opened: bool,
    /// No other connection may have its container id.
    pub(super) is_sole: bool,
    /// Another connection has it, which may be lost and found out to be: it is claimed again.
    pub(super) claim: Option<Claim>,
    /// The engine knows the connection.
    pub(super) connected: bool,
    /// The broker cannot take persistent messages.
    pub(super) is_blocked: bool,
    /// A request was made of the engine in this call.
    pub(super) has_asked: bool,
    /// Why it ends, for the log.
    pub(super) ending: Option<Box<str>>,
    /// Room for the properties of the message at hand.
    pub(super) properties: Vec<u8>,
    /// Queues that were made for messages which name their destinations.
    pub(super) made_queues: BTreeSet<String>,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A protocol header has to come.
    Greeting,
    /// The client has to choose a SASL mechanism.
    Mechanism,
    /// It has to answer our challenge.
    Response,
    /// It has logged in; AMQP's protocol header has to come.
    LoggedIn,
    /// The open frame has to come.
    Opening,
    /// In use.
    Open,
    /// We have sent close: only the peer's counts.
    Closing,
    /// As `Closing`, and what comes cannot be told apart any more.
    Deaf,
    /// To be closed at the next opportunity.
    Over,
}

/// A container id that is claimed again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// When it is claimed next.
    pub(super) next: Time,
    /// When that is given up.
    pub(super) until: Time,
}

/// What a connection waits for before it takes more input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Authentication,
    /// Until the engine has given it its name.
    Name,
    /// Until home has said whether its virtual host has room.
    ToEnter,
    /// Until the requests of this session are answered, or those of all: then the input is presented again.
    Answers(Option<u16>),
    /// Until all shards know what it has asked for: then its close is answered.
    ToClose,
}

impl Handler {
    /// A connection whose first bytes are of AMQP 1.0; its handshake has to be over by `patience`.
    #[must_use]
    pub fn new(
        id: ConnectionId,
        peer: Peer,
        settings: Arc<Settings>,
        patience: Option<Time>,
    ) -> Handler {
        let patience = patience.unwrap_or_default();
        Handler {
            id,
            peer,
            state: State::Greeting,
            waiting: None,
            sessions: Sessions::default(),
            channel_max: 0,
            idle: None,
            last_input: Time::default(),
            beat: Time::default(),
            patience,
            user: String::new(),
            vhost: String::new(),
            container: "".into(),
            client: Box::default(),
            mechanism: "",
            scram: None,
            has_opened: false,
            is_sole: false,
            claim: None,
            connected: false,
            is_blocked: false,
            has_asked: false,
            ending: None,
            properties: Vec::new(),
            made_queues: BTreeSet::new(),
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
                State::Greeting | State::Mechanism | State::Response => "starting",
                State::LoggedIn | State::Opening => "opening",
                State::Open if self.is_blocked => "blocked",
                State::Open => "running",
                State::Closing | State::Deaf | State::Over => "closing",
            },
            channels: self.sessions.all.len(),
            frame_bytes_max: self.settings.frame_bytes_max,
            heartbeat_seconds: u16::try_from(self.settings.idle_timeout.as_secs())
                .unwrap_or(u16::MAX),
            protocol: "AMQP 1.0",
            last_input: self.last_input,
        }
    }

    /// The other half of the connection.
    #[inline]
    pub(super) fn outgoing<'c>(
        &self,
        context: &'c mut Context<impl Host>,
    ) -> (&'c mut Writer, &'c mut Output) {
        context.host.writer(self.id).amqp10()
    }

    pub(super) fn send<'a>(
        &self,
        context: &mut Context<impl Host>,
        channel: u16,
        performative: &impl Field<'a>,
    ) {
        write_frame(performative, channel, &[], &mut context.host.writer(self.id).output.bytes);
    }

    /// Takes a frame and returns its octets; 0: more input is needed.
    #[inline]
    fn step(&mut self, context: &mut Context<impl Host>, input: &[u8]) -> Result<usize, Close> {
        match self.state {
            State::Open | State::Closing | State::Opening => {}
            State::Greeting | State::LoggedIn => return self.header(context, input),
            State::Mechanism | State::Response => return self.sasl_frame(context, input),
            State::Deaf => return Ok(input.len()),
            State::Over => return Err(self.closed()),
        }
        match frame::read(input, self.settings.frame_bytes_max) {
            Ok(Some((frame, bytes))) => {
                self.frame(context, frame)?;
                Ok(if matches!(self.waiting, Some(Waiting::Answers(_))) { 0 } else { bytes })
            }
            Ok(None) => Ok(0),
            Err(error) => {
                self.bad_frame(context, error);
                Ok(input.len())
            }
        }
    }

    #[inline]
    fn frame(&mut self, context: &mut Context<impl Host>, frame: Frame<'_>) -> Result<(), Close> {
        if frame.body.is_empty() {
            return Ok(());
        }
        if self.state == State::Closing {
            return self.while_closing(frame);
        }
        let taken = match descriptor_code(frame.body) {
            _ if frame.kind != frame::AMQP || self.state != State::Open => {
                self.rare_frame(context, frame)
            }
            Some(0x14) => match decode_body::<Transfer<'_>>(frame.body) {
                Ok((transfer, payload)) => {
                    self.transfer(context, frame.channel, &transfer, payload)
                }
                Err(malformed) => Err(Fault::malformed(malformed)),
            },
            Some(0x15) => match decode_body::<Disposition<'_>>(frame.body) {
                Ok((disposition, _)) => self.disposition(context, frame.channel, &disposition),
                Err(malformed) => Err(Fault::malformed(malformed)),
            },
            Some(0x13) => match decode_body::<Flow<'_>>(frame.body) {
                Ok((flow, _)) => self.flow(context, frame.channel, &flow),
                Err(malformed) => Err(Fault::malformed(malformed)),
            },
            _ => self.rare_frame(context, frame),
        };
        if let Err(fault) = taken {
            self.fail(context, frame.channel, fault);
        }
        Ok(())
    }

    /// Takes a frame that is not on the hot path.
    fn rare_frame(
        &mut self,
        context: &mut Context<impl Host>,
        frame: Frame<'_>,
    ) -> Result<(), Fault> {
        if frame.kind != frame::AMQP {
            let text = "a frame of the SASL layer behind the SASL dialogue";
            return Err(Fault::connection(Condition::FramingError, text));
        }
        let (performative, payload) =
            Performative::decode_body(frame.body).map_err(Fault::malformed)?;
        let number = frame.channel;
        match (self.state, &performative) {
            (State::Opening, Performative::Open(open)) => return self.open(context, open),
            (State::Opening, Performative::Close(_)) => {
                self.close_asked(context, None);
                return Ok(());
            }
            (State::Opening, _) => {
                let text = "the first frame has to be open";
                return Err(Fault::connection(Condition::NotAllowed, text));
            }
            _ => {}
        }
        match performative {
            Performative::Open(_) => {
                Err(Fault::connection(Condition::NotAllowed, "a second open frame"))
            }
            Performative::Begin(begin) => self.begin(context, number, &begin),
            Performative::Attach(attach) => self.attach(context, number, &attach, frame.body),
            Performative::Flow(flow) => self.flow(context, number, &flow),
            Performative::Transfer(transfer) => self.transfer(context, number, &transfer, payload),
            Performative::Disposition(it) => self.disposition(context, number, &it),
            Performative::Detach(detach) => self.detach(context, number, &detach),
            Performative::End(_) => self.end_session(context, number),
            Performative::Close(close) => {
                self.close_asked(context, close.error);
                Ok(())
            }
        }
    }

    /// How long the peer may be silent.
    fn silence_max(&self) -> Duration {
        self.settings.idle_timeout.saturating_mul(2)
    }

    /// How often we give a sign of life.
    pub(super) fn beat_interval(&self) -> Duration {
        self.idle.map_or(Duration::MAX, |idle| idle / 2)
    }
}

impl ProtocolHandler for Handler {
    fn receive(&mut self, context: &mut Context<impl Host>, input: &[u8]) -> Result<usize, Close> {
        let mut used = 0;
        self.last_input = context.now;
        self.has_asked = false;
        while !self.is_waiting() && used < input.len() {
            match self.step(context, &input[used..])? {
                0 => break,
                step => used += step,
            }
            // What was asked for is answered before more is taken.
            if self.has_asked || context.engine.is_step_over() {
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
        if id.number == NAMING_CHANNEL {
            return self.named(context, reply);
        }
        self.answered(context, id.number, reply);
    }

    fn authenticated(
        &mut self,
        context: &mut Context<impl Host>,
        answer: Authentication,
    ) -> Result<(), Close> {
        if self.waiting != Some(Waiting::Authentication) {
            return Ok(());
        }
        self.waiting = None;
        match answer {
            Ok(identity) => {
                self.user = identity.user;
                self.logged_in(context);
                Ok(())
            }
            Err(why) => self.refuse_login(context, &why),
        }
    }

    fn entered(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if self.waiting == Some(Waiting::ToEnter) {
            self.waiting = None;
            if let Err(fault) = self.enter(context) {
                self.fail(context, 0, fault);
            }
        }
        Ok(())
    }

    fn known_to_shards(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if self.waiting == Some(Waiting::ToClose) && context.host.is_known_to_shards(self.id) {
            self.waiting = None;
            self.put_close(context, None);
        }
        Ok(())
    }

    fn refused(
        &mut self,
        context: &mut Context<impl Host>,
        id: ChannelId,
        _settle: Option<Settle>,
        refusal: Refusal,
    ) {
        self.channel_failed(context, id, refusal);
    }

    fn channel_failed(&mut self, context: &mut Context<impl Host>, id: ChannelId, why: Refusal) {
        let fault = Fault::session(mapping::condition(why.kind), why.text);
        self.lost_session(context, id.number, fault);
    }

    fn is_waiting(&self) -> bool {
        self.waiting.is_some() || self.sessions.pending() > PENDING_MAX
    }

    fn blocked(&mut self, context: &mut Context<impl Host>, why: Option<&str>) {
        self.is_blocked = why.is_some();
        let is_blocked = self.is_blocked;
        let (writer, out) = self.outgoing(context);
        writer.pause(out, is_blocked);
    }

    fn drops_input(&self) -> bool {
        matches!(self.state, State::Closing | State::Deaf)
    }

    fn held_bytes(&self) -> usize {
        self.sessions.all.iter().map(Session::held_bytes).sum::<usize>()
            + self.properties.capacity()
    }

    fn refuse_unfinished(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        self.give_up_unfinished(context);
        Ok(())
    }

    fn reading_paused(&mut self, now: Time) {
        self.last_input = self.last_input.max(now);
    }

    fn close(&mut self, context: &mut Context<impl Host>, why: &str) {
        match self.state {
            State::Closing | State::Deaf | State::Over => {}
            State::Open | State::Opening => {
                self.end(context, &Fault::connection(Condition::ConnectionForced, why));
            }
            _ => {
                self.state = State::Over;
                self.ending = Some(why.into());
                self.patience = context.now;
            }
        }
    }

    fn disconnected(&mut self, context: &mut Context<impl Host>) {
        self.leave(context);
        self.state = State::Over;
    }

    fn doubted(&mut self, context: &mut Context<impl Host>) {
        if self.state == State::Open {
            frame::write_empty(&mut context.host.writer(self.id).output.bytes);
        }
    }

    fn deadline(&self) -> Option<Time> {
        if self.state != State::Open {
            return Some(self.claim.map_or(self.patience, |claim| claim.next.min(self.patience)));
        }
        let beat = self.idle.map(|_| self.beat);
        // While an answer is awaited we take no input, and its absence proves nothing.
        let silent = (!self.is_waiting() && !self.settings.idle_timeout.is_zero())
            .then(|| self.last_input.plus(self.silence_max()));
        beat.into_iter().chain(silent).min()
    }

    fn expire(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        let now = context.now;
        if self.state != State::Open {
            if now < self.patience {
                self.claim_again(context);
                return Ok(());
            }
            let late = match self.state {
                State::Closing | State::Deaf | State::Over => return Err(self.closed()),
                State::Greeting => "no protocol header",
                State::Mechanism | State::Response => "no login",
                State::LoggedIn => "no protocol header behind the login",
                _ => "no open frame",
            };
            let limit = self.settings.handshake_timeout.as_secs();
            self.ending = Some(format!("handshake timeout: {late} within {limit} s").into());
            return Err(self.closed());
        }
        let is_timed = !self.settings.idle_timeout.is_zero();
        if is_timed && !self.is_waiting() && now >= self.last_input.plus(self.silence_max()) {
            let silence = now.since(self.last_input).as_secs();
            let text = format!("the idle time-out is over: silent for {silence} s");
            self.end(context, &Fault::connection(Condition::ResourceLimitExceeded, text));
            return Ok(());
        }
        if self.idle.is_some() && now >= self.beat {
            let out = &mut context.host.writer(self.id).output.bytes;
            // Bytes that wait to be sent are a sign of life themselves.
            if out.is_empty() {
                frame::write_empty(out);
            }
            self.beat = now.plus(self.beat_interval());
        }
        Ok(())
    }
}

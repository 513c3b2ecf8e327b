//! One MQTT connection's state machine: packets in, what must happen next.
//!
//! | file | concern |
//! |---|---|
//! | `handshake` | CONNECT and CONNACK |
//! | `authentication` | AUTH |
//! | `publish` | messages from the client |
//! | `subscribe` | SUBSCRIBE and UNSUBSCRIBE |
//! | `close` | errors and the end |

use super::aliases::Aliases;
use super::answers::Subscribing;
use super::beginning::Beginning;
use super::codec::{Disconnect, Malformed, Packet, Reason, Version};
use super::enhanced::Enhanced;
use super::frame::{Frame, PacketType};
use super::outgoing::Run;
use super::pending::Pending;
use super::settings::{CONNECT_BYTES_MAX, PENDING_MAX, Settings};
use super::writer::Writer;
use crate::output::Output;
use crate::{
    Authentication, ClientProperties, Close, ConnectionInfo, Context, Host, Peer, ProtocolHandler,
};
use angarium_engine::{
    CachedRoute, ChannelId, ConnectionId, Refusal, RefusalKind, Reply, SessionExpiry, SessionLoss,
    Settle, Time,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A connection that speaks MQTT.
#[derive(Debug)]
pub struct Handler {
    pub(super) id: ConnectionId,
    pub(super) settings: Arc<Settings>,
    pub(super) peer: Peer,
    pub(super) state: State,
    pub(super) version: Version,
    /// CONNECT has come.
    pub(super) has_connected: bool,
    /// The engine knows the connection.
    pub(super) is_connected: bool,
    /// The client wants to be told reasons.
    pub(super) wants_reasons: bool,
    /// How it was to be known was left to us.
    pub(super) is_named_by_us: bool,
    /// It may use response information.
    pub(super) wants_response_information: bool,
    pub(super) user: String,
    pub(super) vhost: String,
    /// How the client calls itself.
    pub(super) client_id: Box<str>,
    pub(super) client: Box<ClientProperties>,
    /// Seconds within which the client sends something; 0: it need not.
    pub(super) keep_alive: u16,
    /// The client was told another one than it asked for.
    pub(super) is_keep_alive_ours: bool,
    /// When input last arrived.
    pub(super) last_input: Time,
    /// When the handshake, or the wait for the end, is over.
    pub(super) due: Time,
    /// The topic of the last message, and the subject that it is.
    pub(super) topic: Vec<u8>,
    pub(super) subject: String,
    /// Buffer for the properties of the message at hand.
    pub(super) scratch: Vec<u8>,
    pub(super) aliases: Option<Box<Aliases>>,
    /// What CONNECT has asked for, until CONNACK.
    pub(super) beginning: Option<Box<Beginning>>,
    /// How long the session lives on without the connection.
    pub(super) expiry: SessionExpiry,
    /// The session lives on, or has lived on until now: it remembers messages of QoS 2.
    pub(super) has_state: bool,
    /// The session's queue; empty: it has none.
    pub(super) queue: Box<str>,
    /// What answers of the engine are awaited for, in order.
    pub(super) pending: VecDeque<Pending>,
    /// The SUBSCRIBE or UNSUBSCRIBE at hand.
    pub(super) subscribing: Option<Box<Subscribing>>,
    /// Deliveries that are settled before anything else is asked of the engine.
    pub(super) settling: Option<Run>,
    /// The client authenticates itself by AUTH.
    pub(super) enhanced: Option<Box<Enhanced>>,
    /// Why it ends, for the log.
    pub(super) ending: Option<Box<str>>,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// CONNECT has to come.
    Greeting,
    /// It has to prove who it is by AUTH.
    Proving,
    /// Its credentials are being checked.
    Authenticating,
    /// Home is asked whether its virtual host has room.
    Entering,
    /// The engine prepares what is to be there before CONNACK.
    Preparing,
    /// In use.
    Open,
    /// It was told to go.
    Leaving,
    /// To be closed at the next opportunity.
    Over,
}

impl Handler {
    /// A connection that has just been accepted.
    #[must_use]
    pub fn new(id: ConnectionId, peer: Peer, settings: Arc<Settings>, now: Time) -> Handler {
        Handler {
            id,
            peer,
            state: State::Greeting,
            version: Version::default(),
            has_connected: false,
            is_connected: false,
            wants_reasons: true,
            is_named_by_us: false,
            wants_response_information: false,
            user: String::new(),
            vhost: String::new(),
            client_id: "".into(),
            client: Box::default(),
            keep_alive: 0,
            is_keep_alive_ours: false,
            last_input: now,
            due: now.plus(settings.handshake_timeout),
            topic: Vec::new(),
            subject: String::new(),
            scratch: Vec::new(),
            aliases: None,
            beginning: None,
            expiry: SessionExpiry::default(),
            has_state: false,
            queue: "".into(),
            pending: VecDeque::new(),
            subscribing: None,
            settling: None,
            enhanced: None,
            ending: None,
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
                State::Greeting | State::Proving | State::Authenticating => "starting",
                State::Entering | State::Preparing => "opening",
                State::Open => "running",
                State::Leaving | State::Over => "closing",
            },
            channels: usize::from(self.is_connected),
            frame_bytes_max: u32::try_from(self.settings.packet_bytes_max).unwrap_or(u32::MAX),
            heartbeat_seconds: self.keep_alive,
            protocol: if self.has_connected { self.version.title() } else { "MQTT" },
            last_input: self.last_input,
        }
    }

    pub(super) fn channel(&self) -> ChannelId {
        ChannelId { connection: self.id, number: 0 }
    }

    /// The client was told that it may go on, and not that it has to go.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    pub(super) fn out<'a>(&self, context: &'a mut Context<'_, impl Host>) -> &'a mut Vec<u8> {
        &mut context.host.writer(self.id).output.bytes
    }

    /// The other half of the connection.
    #[inline]
    pub(super) fn outgoing<'c>(
        &self,
        context: &'c mut Context<impl Host>,
    ) -> (&'c mut Writer, &'c mut Output) {
        context.host.writer(self.id).mqtt()
    }

    fn packet_bytes_max(&self) -> usize {
        if self.state == State::Open { self.settings.packet_bytes_max } else { CONNECT_BYTES_MAX }
    }

    /// Carries out a packet; returns whether the next one may be taken in the same call.
    #[inline]
    fn take(
        &mut self,
        context: &mut Context<impl Host>,
        frame: &Frame<'_>,
        cached_route: &mut Option<CachedRoute>,
    ) -> Result<bool, Close> {
        let packet = match Packet::decode(frame, self.version) {
            Ok(packet) => packet,
            Err(malformed) => return Err(self.refuse_packet(context, frame, malformed)),
        };
        if let Packet::Publish(publish) = &packet
            && self.is_open()
        {
            return self.publish(context, publish, cached_route);
        }
        *cached_route = None;
        self.take_rare(context, packet)?;
        Ok(!self.is_waiting())
    }

    fn take_rare(
        &mut self,
        context: &mut Context<impl Host>,
        packet: Packet<'_>,
    ) -> Result<(), Close> {
        let broken = |text| Malformed::new(Reason::ProtocolError, text);
        if self.state == State::Greeting {
            let Packet::Connect(connect) = packet else {
                let text = "the first packet is not CONNECT";
                return Err(self.refuse(context, broken(text)));
            };
            return self.connect(context, &connect);
        }
        if self.state == State::Proving {
            return match packet {
                Packet::Auth(auth) => self.auth(context, &auth),
                Packet::Disconnect(_) => Err(Close { reason: "the client has left".to_owned() }),
                _ => Err(self.refuse(context, broken("neither AUTH nor DISCONNECT"))),
            };
        }
        match packet {
            Packet::Subscribe(subscribe) => self.subscribe(context, &subscribe),
            Packet::Unsubscribe(unsubscribe) => {
                self.unsubscribe(context, &unsubscribe);
                Ok(())
            }
            Packet::Ack(ack) => {
                self.acknowledged(context, &ack);
                Ok(())
            }
            Packet::Pingreq => {
                Packet::Pingresp.write(self.version, self.out(context));
                Ok(())
            }
            Packet::Disconnect(disconnect) => Err(self.disconnect(context, &disconnect)),
            Packet::Auth(auth) => self.auth(context, &auth),
            Packet::Connect(_) => Err(self.refuse(context, broken("a second CONNECT"))),
            Packet::Connack(_)
            | Packet::Suback(_)
            | Packet::Unsuback(_)
            | Packet::Pingresp
            | Packet::Publish(_) => {
                Err(self.refuse(context, broken("a packet that clients do not send")))
            }
        }
    }

    /// Refuses what could not be read. Of a CONNECT nothing is known, its version neither.
    fn refuse_packet(
        &mut self,
        context: &mut Context<impl Host>,
        frame: &Frame<'_>,
        malformed: Malformed,
    ) -> Close {
        let is_first = self.state == State::Greeting && frame.packet_type == PacketType::Connect;
        if is_first {
            // The level comes behind the name of the protocol; 5 has it in the same place as 4.
            let level = frame.body.get(6).copied().unwrap_or_default();
            self.version = if level >= 5 { Version::V5 } else { Version::V311 };
            self.has_connected = self.version == Version::V5
                || malformed.reason == Reason::UnsupportedProtocolVersion;
        }
        self.refuse(context, malformed)
    }

    /// The client ends the connection.
    fn disconnect(
        &mut self,
        context: &mut Context<impl Host>,
        disconnect: &Disconnect<'_>,
    ) -> Close {
        let keeps_will = disconnect.reason != Reason::Success;
        self.settle_run(context);
        if !self.give_up(context, disconnect, keeps_will) {
            let text = "a session that ends with its connection is given an expiry";
            return self.fail(context, Reason::ProtocolError, text);
        }
        self.leave(context);
        let reason = disconnect.reason.words();
        Close { reason: format!("the client has disconnected: {reason}") }
    }

    /// Ends the connection where a message was refused that the client cannot be told of.
    pub(super) fn check_refused(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        let (writer, _) = self.outgoing(context);
        match writer.incoming.refused.take() {
            Some(why) => Err(self.fail(context, Reason::ImplementationSpecificError, &why)),
            None => Ok(()),
        }
    }

    /// How long the client may be silent.
    fn silence_max(&self) -> Duration {
        Duration::from_millis(u64::from(self.keep_alive) * 1_500)
    }
}

impl ProtocolHandler for Handler {
    fn receive(&mut self, context: &mut Context<impl Host>, input: &[u8]) -> Result<usize, Close> {
        self.last_input = context.now;
        let (mut used, mut cached_route) = (0, None);
        let mut goes_on = true;
        while goes_on && !self.is_waiting() && used < input.len() {
            if self.state == State::Over {
                return Err(Close { reason: self.ending.as_deref().unwrap_or("over").to_owned() });
            }
            match Frame::read(&input[used..], self.packet_bytes_max()) {
                Ok(Some((frame, bytes))) => {
                    if !context.host.is_known_to_shards(self.id)
                        && frame.packet_type != PacketType::Subscribe
                    {
                        break;
                    }
                    used += bytes;
                    goes_on = self.take(context, &frame, &mut cached_route)?;
                    if goes_on && cached_route.is_some() {
                        used += self.publish_batch(context, &input[used..], &mut cached_route);
                        goes_on = !context.engine.is_step_over();
                    }
                }
                Ok(None) => break,
                Err(bad) => return Err(self.refuse(context, bad.into())),
            }
        }
        self.settle_run(context);
        self.answer(context);
        self.grant(context);
        Ok(used)
    }

    fn replied(
        &mut self,
        context: &mut Context<impl Host>,
        _: ChannelId,
        reply: Result<Reply, Refusal>,
    ) {
        self.take_reply(context, reply);
        self.answer(context);
    }

    fn session_lost(
        &mut self,
        context: &mut Context<impl Host>,
        _: ChannelId,
        _: &str,
        why: SessionLoss,
    ) -> Result<(), Close> {
        let (reason, text) = match why {
            SessionLoss::TakenOver => {
                (Reason::SessionTakenOver, "another connection has the same client identifier")
            }
            SessionLoss::Ended => (Reason::AdministrativeAction, "the session was ended"),
        };
        Err(self.fail(context, reason, text))
    }

    fn broker_topics_changed(&mut self, context: &mut Context<impl Host>) {
        self.tell_changed_topics(context);
    }

    fn written(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        self.settle_passed(context);
        self.check_refused(context)
    }

    fn authenticated(
        &mut self,
        context: &mut Context<impl Host>,
        answer: Authentication,
    ) -> Result<(), Close> {
        match self.state {
            State::Authenticating => self.log_in(context, answer),
            _ => self.authenticated_again(context, answer),
        }
    }

    fn entered(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if self.state == State::Entering { self.enter(context) } else { Ok(()) }
    }

    fn known_to_shards(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        self.answer(context);
        Ok(())
    }

    fn refused(
        &mut self,
        context: &mut Context<impl Host>,
        id: ChannelId,
        _: Option<Settle>,
        refusal: Refusal,
    ) {
        self.channel_failed(context, id, refusal);
    }

    fn channel_failed(&mut self, context: &mut Context<impl Host>, _: ChannelId, why: Refusal) {
        let reason = match why.kind {
            RefusalKind::AccessRefused => Reason::NotAuthorized,
            RefusalKind::LimitExceeded | RefusalKind::MemoryShort => Reason::QuotaExceeded,
            _ => Reason::ImplementationSpecificError,
        };
        self.end_soon(context, reason, &why.text);
    }

    #[inline]
    fn is_waiting(&self) -> bool {
        matches!(self.state, State::Authenticating | State::Entering | State::Preparing)
            || self.subscribing.is_some()
            || self.pending.len() >= PENDING_MAX
            || self.state == State::Leaving
    }

    fn held_bytes(&self) -> usize {
        let aliases = self.aliases.as_ref().map_or(0, |aliases| aliases.held_bytes());
        let subscribing = self.subscribing.as_ref().map_or(0, |it| it.held_bytes());
        let beginning = self.beginning.as_ref().map_or(0, |it| it.held_bytes());
        let pending = self.pending.capacity() * size_of::<Pending>();
        let buffers = self.topic.capacity() + self.subject.capacity() + self.scratch.capacity();
        aliases + subscribing + beginning + pending + buffers
    }

    fn refuse_unfinished(&mut self, _: &mut Context<impl Host>) -> Result<(), Close> {
        Ok(())
    }

    fn reading_paused(&mut self, now: Time) {
        self.last_input = self.last_input.max(now);
    }

    fn close(&mut self, context: &mut Context<impl Host>, why: &str) {
        self.end_soon(context, Reason::ServerShuttingDown, why);
    }

    fn disconnected(&mut self, context: &mut Context<impl Host>) {
        self.leave(context);
    }

    fn deadline(&self) -> Option<Time> {
        match self.state {
            State::Open if self.keep_alive == 0 || self.is_waiting() => None,
            State::Open => Some(self.last_input.plus(self.silence_max())),
            _ => Some(self.due),
        }
    }

    fn expire(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if self.deadline().is_none_or(|due| context.now < due) {
            return Ok(());
        }
        if let Some(why) = &self.ending {
            return Err(Close { reason: why.to_string() });
        }
        match self.state {
            State::Open => {
                let text = format!("silent for 1.5 times its keep-alive of {} s", self.keep_alive);
                Err(self.fail(context, Reason::KeepAliveTimeout, &text))
            }
            State::Authenticating | State::Entering | State::Preparing => Ok(()),
            _ => {
                let limit = self.settings.handshake_timeout.as_secs();
                let awaited = if self.state == State::Proving { "AUTH" } else { "CONNECT" };
                let reason = format!("handshake timeout: no {awaited} within {limit} s");
                Err(Close { reason })
            }
        }
    }
}

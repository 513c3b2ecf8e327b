//! One NATS connection's state machine: operations in, what must happen next.
//!
//! The login is in `handshake`, messages in `publish`, requests to the broker itself in `sys_requests`.
//! A connection waits only for its login and for answers to such requests.

use super::codec::client::Limits;
use super::codec::{ClientOp, Connect, client, server};
use super::settings::{Settings, Tls};
use super::subject::is_subject;
use super::{fault, mapping};
use crate::connection_query::QueryResult;
use crate::nats::reassembly::Reassembly;
use crate::nats::sys_requests::Asked;
use crate::peer::{ClientProperties, ConnectionInfo};
use crate::{Authentication, Close, Context, Host, Peer, ProtocolHandler};
use angarium_engine::{CachedRoute, ChannelId, ConnectionId, Subscribe, Time};
use std::sync::Arc;

/// PINGs that may be unanswered, for instance while spilled messages come before PONG. Beyond that the
/// connection is not read from.
const PONGS_OWED_MAX: u32 = 1_024;

/// A connection that speaks NATS's client protocol.
#[derive(Debug)]
pub struct Handler {
    pub(super) id: ConnectionId,
    /// The number by which people know it.
    pub(super) number: u64,
    pub(super) settings: Arc<Settings>,
    pub(super) limits: Limits,
    pub(super) peer: Peer,
    pub(super) state: State,
    pub(super) wishes: Wishes,
    /// What an nkey user has to sign.
    pub(crate) nonce: String,
    pub(super) user: String,
    pub(super) vhost: String,
    pub(super) client: Box<ClientProperties>,
    /// When input last arrived.
    pub(super) last_input: Time,
    /// When the client's silence is checked next; before the login and while leaving, when it times out.
    pub(super) due: Time,
    pings_out: u32,
    /// Its user may answer what it is sent; when that came is noted at the next look at the connection.
    pub(super) may_answer: bool,
    /// It began without CONNECT, so that no +OK answers it.
    pub(super) is_nobody: bool,
    /// It has sent CONNECT.
    pub(super) has_connected: bool,
    /// The first PING is answered with a second INFO, for clients that take it.
    told_account: bool,
    /// It unsubscribed while it had spilled messages: PONGs come after those.
    pub(super) has_left: bool,
    /// PINGs that are not answered yet.
    pongs_owed: u32,
    /// The subject of the message at hand, and until the next one that of the last; empty: none yet.
    pub(super) subject: String,
    /// Buffer for the properties of the message at hand.
    pub(super) scratch: Vec<u8>,
    /// The message at hand, where its large payload has not all arrived.
    pub(super) reassembly: Option<Box<Reassembly>>,
    /// Its unanswered question about connections.
    pub(super) asked: Option<Box<Asked>>,
    /// Why it ends, for the log.
    pub(super) ending: Option<Box<str>>,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// CONNECT has to come.
    Greeting,
    /// Its credentials are being checked.
    Waiting,
    /// Home is asked whether its virtual host has room.
    Entering,
    /// In use.
    Open,
    /// It was told to go and still has some time.
    Leaving,
}

/// The options of CONNECT that matter after the login.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes {
    pub(super) verbose: bool,
    pub(super) pedantic: bool,
    pub(super) echo: bool,
    pub(super) no_responders: bool,
    pub(super) headers: bool,
    /// It takes INFO at any time.
    pub(super) infos: bool,
}

impl Handler {
    /// A connection that has just been accepted and that people know by `number`;
    /// [`Handler::begin`] comes next.
    #[must_use]
    pub fn new(
        id: ConnectionId,
        number: u64,
        peer: Peer,
        settings: Arc<Settings>,
        now: Time,
    ) -> Handler {
        Handler {
            id,
            number,
            limits: Limits {
                control_line_bytes_max: settings.control_line_bytes_max,
                payload_bytes_max: settings.payload_bytes_max,
                takes_headers: false,
            },
            peer,
            state: State::Greeting,
            wishes: Wishes::of(&Connect::default()),
            nonce: String::new(),
            user: String::new(),
            vhost: String::new(),
            client: Box::default(),
            last_input: now,
            due: now.plus(settings.login_timeout),
            pings_out: 0,
            may_answer: false,
            is_nobody: false,
            has_connected: false,
            told_account: false,
            has_left: false,
            pongs_owed: 0,
            subject: String::new(),
            scratch: Vec::new(),
            reassembly: None,
            asked: None,
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
                State::Greeting | State::Waiting | State::Entering => "starting",
                State::Open => "running",
                State::Leaving => "closing",
            },
            channels: usize::from(self.is_open()),
            frame_bytes_max: u32::try_from(self.limits.payload_bytes_max).unwrap_or(u32::MAX),
            heartbeat_seconds: u16::try_from(self.settings.ping_interval.as_secs())
                .unwrap_or(u16::MAX),
            protocol: "NATS",
            last_input: self.last_input,
        }
    }

    /// The transport was encrypted after INFO had been sent.
    pub fn encrypted(&mut self, certificate_name: Option<String>) {
        self.peer.encrypted = true;
        self.peer.certificate_name = certificate_name;
    }

    pub(super) fn channel(&self) -> ChannelId {
        ChannelId { connection: self.id, number: 0 }
    }

    /// The engine knows the connection.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Leaving)
    }

    pub(super) fn out<'a>(&self, context: &'a mut Context<'_, impl Host>) -> &'a mut Vec<u8> {
        &mut context.host.writer(self.id).output.bytes
    }

    /// Writes an error that leaves the connection open.
    pub(super) fn complain(&self, context: &mut Context<impl Host>, text: &str) {
        server::write_error(self.out(context), text);
    }

    /// Writes an error that ends the connection.
    pub(super) fn fail(&self, context: &mut Context<impl Host>, text: &str) -> Close {
        self.complain(context, text);
        Close { reason: text.to_owned() }
    }

    /// Writes +OK to verbose clients.
    pub(super) fn done(&self, context: &mut Context<impl Host>) {
        if self.wishes.verbose {
            server::write_ok(self.out(context));
        }
    }

    /// Carries out an operation; returns whether the next one may be taken in the same call. After a
    /// subscription, and after messages with many subscribers, the host may serve other connections.
    #[inline]
    fn take(
        &mut self,
        context: &mut Context<impl Host>,
        op: ClientOp<'_>,
        cached_route: &mut Option<CachedRoute>,
        rest: &[u8],
    ) -> Result<bool, Close> {
        // The cached route is valid as long as only messages arrive.
        let found = cached_route.take();
        match op {
            ClientOp::Publish(message) => {
                *cached_route = found;
                return Ok(self.publish(context, &message, None, cached_route)
                    && !context.engine.is_step_over());
            }
            ClientOp::Subscribe { subject, group, sid } => {
                self.subscribe(context, subject, group, sid);
                return Ok(false);
            }
            ClientOp::Unsubscribe { sid, max } => {
                // A sid that is no text was never subscribed with.
                if let Ok(sid) = str::from_utf8(sid) {
                    let after = max.map(|max| max as u64);
                    context.engine.unsubscribe(self.channel(), sid, after, context.host);
                    self.has_left |= context.host.has_spilled_messages(self.id);
                }
                self.done(context);
                return Ok(false);
            }
            ClientOp::Ping => self.ping(context, rest),
            ClientOp::Pong => self.pings_out = 0,
            ClientOp::Connect(options) => self.connect(context, options)?,
            ClientOp::Ignored => {}
            ClientOp::Error(text) => {
                let reason = format!("the client said -ERR {}", String::from_utf8_lossy(text));
                return Err(Close { reason });
            }
        }
        Ok(!self.is_waiting())
    }

    /// Some clients (nats.py) write PING before the subscriptions that they flush with it, so PONG comes
    /// after those in the same input. With +OK for everything, answers keep their order.
    #[cold]
    fn ping(&mut self, context: &mut Context<impl Host>, rest: &[u8]) {
        self.pongs_owed = self.pongs_owed.saturating_add(1);
        let subscribes = matches!(rest, [b'S' | b's' | b'U' | b'u', ..]);
        if !subscribes || self.wishes.verbose {
            self.pong(context);
        }
    }

    /// Answers PINGs, unless requests or spilled messages before them are not complete.
    pub(super) fn pong(&mut self, context: &mut Context<impl Host>) {
        if self.pongs_owed == 0 || self.has_left || !context.host.are_requests_complete(self.id) {
            return;
        }
        for _ in 0..std::mem::take(&mut self.pongs_owed) {
            client::write_pong(self.out(context));
        }
        if !self.told_account && self.wishes.infos {
            self.told_account = true;
            self.write_info(context, true, false);
        }
    }

    fn subscribe(
        &mut self,
        context: &mut Context<impl Host>,
        subject: &[u8],
        group: &[u8],
        sid: &[u8],
    ) {
        let (Ok(subject), Ok(group), Ok(sid)) =
            (str::from_utf8(subject), str::from_utf8(group), str::from_utf8(sid))
        else {
            return self.complain(context, fault::INVALID_SUBJECT);
        };
        let found = mapping::with_policy(subject);
        let Some((slow_consumer_policy, subject)) =
            found.filter(|(_, it)| is_subject(it.as_bytes()))
        else {
            return self.complain(context, fault::INVALID_SUBJECT);
        };
        let group = Some(group).filter(|group| !group.is_empty());
        let subscribe = Subscribe { subject, group, name: sid, slow_consumer_policy };
        match context.engine.subscribe(self.channel(), subscribe, context.host) {
            Ok(()) => self.done(context),
            Err(refusal) => {
                let violation = || fault::subscription_violation(&subscribe);
                let text = mapping::subscription_refused(&refusal, violation);
                self.complain(context, &text);
            }
        }
    }

    /// Tells the engine, once, that the connection is gone.
    pub(super) fn leave(&mut self, context: &mut Context<impl Host>) {
        if self.is_open() {
            context.engine.disconnect(context.now, self.id, context.host);
        }
        self.state = State::Greeting;
    }

    /// Sends PING to a silent client, or gives it up.
    fn look_for_silence(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        let silent_until = self.last_input.plus(self.settings.ping_interval);
        if context.now < silent_until {
            self.due = silent_until;
            return Ok(());
        }
        if self.pings_out >= self.settings.pings_out_max {
            return Err(self.fail(context, fault::STALE_CONNECTION));
        }
        (self.scratch, self.subject) = (Vec::new(), String::new());
        client::write_ping(self.out(context));
        self.pings_out += 1;
        self.due = context.now.plus(self.settings.ping_interval);
        Ok(())
    }
}

impl ProtocolHandler for Handler {
    fn begin(&mut self, context: &mut Context<impl Host>) {
        self.greet(context);
    }

    fn receive(&mut self, context: &mut Context<impl Host>, input: &[u8]) -> Result<usize, Close> {
        self.last_input = context.now;
        let (mut used, mut cached_route) = (0, None);
        let mut goes_on = !self.is_waiting();
        if goes_on && self.reassembly.is_some() {
            (used, goes_on) = self.gather(context, input, &mut cached_route)?;
        }
        while goes_on && used < input.len() {
            match ClientOp::decode(&input[used..], &self.limits) {
                Ok(Some((op, bytes))) => {
                    // Subscriptions may follow each other; all else waits until all shards know them.
                    // They do not overtake PONGs.
                    let is_subscription =
                        matches!(op, ClientOp::Subscribe { .. } | ClientOp::Unsubscribe { .. });
                    let may_follow = is_subscription
                        && self.pongs_owed == 0
                        && context.host.may_broadcast_more(self.id);
                    if !may_follow && !context.host.is_known_to_shards(self.id) {
                        break;
                    }
                    // What may end the connection comes after all answers.
                    let may_end = matches!(op, ClientOp::Connect(_) | ClientOp::Error(_));
                    if may_end && self.is_open() && !context.host.are_requests_complete(self.id) {
                        break;
                    }
                    if self.state == State::Greeting && !matches!(op, ClientOp::Connect(_)) {
                        // It is presented again once the client is logged in without credentials.
                        self.log_in_nobody(context)?;
                        break;
                    }
                    used += bytes;
                    goes_on = self.take(context, op, &mut cached_route, &input[used..])?;
                    if goes_on && cached_route.is_some() {
                        used += self.publish_batch(context, &input[used..], &mut cached_route);
                        goes_on = !context.engine.is_step_over();
                    }
                }
                Ok(None) => {
                    // The login does not wait for a payload.
                    if self.state == State::Greeting && !matches!(input[used], b'C' | b'c') {
                        self.log_in_nobody(context)?;
                    }
                    if self.is_open() {
                        used += self.begin_reassembly(context, &input[used..])?;
                    }
                    break;
                }
                // It is presented again when every earlier request is complete.
                Err(_) if self.is_open() && !context.host.are_requests_complete(self.id) => break,
                Err(malformed) => {
                    self.pong(context);
                    return Err(self.fail(context, fault::text(malformed)));
                }
            }
        }
        self.pong(context);
        Ok(used)
    }

    fn authenticated(
        &mut self,
        context: &mut Context<impl Host>,
        answer: Authentication,
    ) -> Result<(), Close> {
        if self.state == State::Waiting { self.log_in(context, answer) } else { Ok(()) }
    }

    fn entered(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if self.state == State::Entering { self.enter(context) } else { Ok(()) }
    }

    fn connections_found(&mut self, context: &mut Context<impl Host>, found: &QueryResult) {
        if self.is_open() {
            self.tell_connections(context, found);
        }
    }

    fn no_responders(&mut self, context: &mut Context<impl Host>, subject: &str, reply: &str) {
        if self.is_open() {
            self.unanswered(context, subject, reply.as_bytes());
        }
    }

    #[inline]
    fn is_waiting(&self) -> bool {
        let owes_much = self.has_left && self.pongs_owed >= PONGS_OWED_MAX;
        matches!(self.state, State::Waiting | State::Entering) || self.asked.is_some() || owes_much
    }

    fn spill_drained(&mut self, context: &mut Context<impl Host>) {
        self.has_left = false;
        self.pong(context);
    }

    fn known_to_shards(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        self.pong(context);
        Ok(())
    }

    fn held_bytes(&self) -> usize {
        let payload = self.reassembly.as_ref().map_or(0, |it| it.held_bytes());
        payload + self.scratch.capacity() + self.subject.capacity()
    }

    fn refuse_unfinished(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        if self.reassembly.is_none() {
            return Ok(());
        }
        Err(self.fail(context, fault::TOO_MUCH_MEMORY))
    }

    fn reading_paused(&mut self, now: Time) {
        self.last_input = self.last_input.max(now);
    }

    fn close(&mut self, context: &mut Context<impl Host>, why: &str) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some(why.into());
        if self.state == State::Open {
            if self.wishes.infos {
                self.write_info(context, false, true);
            }
            self.state = State::Leaving;
            self.due = context.now.plus(self.settings.lame_duck);
        } else {
            self.due = context.now;
        }
    }

    fn disconnected(&mut self, context: &mut Context<impl Host>) {
        self.leave(context);
    }

    fn deadline(&self) -> Option<Time> {
        let is_always_due = self.may_answer && self.state == State::Open;
        Some(if is_always_due { Time::default() } else { self.due })
    }

    fn expire(&mut self, context: &mut Context<impl Host>) -> Result<(), Close> {
        let now = context.now;
        if self.may_answer
            && let Some(requests) = self.requests(context)
        {
            requests.date(now);
        }
        if context.now < self.due {
            return Ok(());
        }
        if let Some(why) = &self.ending {
            return Err(Close { reason: why.to_string() });
        }
        match self.state {
            State::Open => self.look_for_silence(context),
            State::Waiting | State::Entering => Ok(()),
            _ if self.settings.tls == Tls::Required && !self.peer.encrypted => {
                Err(self.fail(context, fault::TLS_REQUIRED))
            }
            _ => Err(self.fail(context, fault::AUTHENTICATION_TIMEOUT)),
        }
    }
}

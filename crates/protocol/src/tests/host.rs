//! A host for tests: the real engine, a journal that flushes at the end of each turn, and
//! connections whose bytes are given and taken by hand.

mod broker_topics;
mod users;

use super::login::login;
use crate::{Close, Context, Credentials, Host, Peer, Protocol, ProtocolHandler, Writer};
use crate::{ConnectionQuery, ConnectionRow, Figures, QueryResult, ToldTopics, Traffic};
use crate::{amqp10, amqp091, mqtt, nats, stomp};
use angarium_engine::{
    CancelReason, ChannelId, Confirm, ConnectionId, Delivery, DirectMessage, Effects, Engine,
    GetAnswer, Hints, Load, MessageView, Options, Position, Refusal, Reply, Request, Responses,
    SendOutcome, SessionLoss, StorageState, SubjectPermissions, SubjectRules, Subscribe, Time,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// 2023-11-14T22:13:20Z: every test begins then.
pub(crate) const START: Time = Time(1_700_000_000_000_000);
/// The connection by which tests set up users; clients have lower numbers.
const ADMIN: ConnectionId = ConnectionId(63);

/// What the engine and the handlers call.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    writers: Vec<Writer>,
    replies: VecDeque<(ChannelId, Result<Reply, Refusal>)>,
    lost_sessions: Vec<(ChannelId, String, SessionLoss)>,
    logins: VecDeque<(ConnectionId, Credentials)>,
    queries: VecDeque<(ConnectionId, ConnectionQuery)>,
    refused: Vec<String>,
    topics: ToldTopics,
    records: BTreeMap<Position, Vec<u8>>,
    loads: VecDeque<Load>,
    next_position: u64,
}

impl Surroundings {
    /// Copies a shared body behind the bytes before it.
    fn copy_shared_body(&mut self, connection: ConnectionId) {
        let output = &mut self.writer(connection).output;
        if let Some(body) = output.shared_body.take() {
            body.parts().for_each(|part| output.bytes.extend_from_slice(part));
        }
    }
}

impl Hints for Surroundings {}

impl Effects for Surroundings {
    fn deliver(&mut self, delivery: &Delivery<'_>) {
        self.writer(delivery.channel.connection).deliver(delivery);
        self.copy_shared_body(delivery.channel.connection);
    }
    fn answer_get(&mut self, answer: &GetAnswer<'_>) {
        self.writer(answer.channel.connection).answer_get(answer);
        self.copy_shared_body(answer.channel.connection);
    }
    fn send_direct(&mut self, message: &DirectMessage<'_>) -> SendOutcome {
        self.writer(message.channel.connection).send_direct(message);
        self.copy_shared_body(message.channel.connection);
        SendOutcome::Sent
    }
    fn confirm(&mut self, channel: ChannelId, confirm: Confirm<'_>) {
        self.writer(channel.connection).confirm(channel, confirm);
    }
    fn return_unroutable(&mut self, channel: ChannelId, message: &MessageView<'_>) {
        self.writer(channel.connection).return_unroutable(channel, message);
        self.copy_shared_body(channel.connection);
    }
    fn consumer_cancelled(&mut self, channel: ChannelId, consumer: &str, why: CancelReason) {
        self.writer(channel.connection).consumer_cancelled(channel, consumer, why);
    }
    fn drained(&mut self, channel: ChannelId, consumer: &str, delivered: u64) {
        self.writer(channel.connection).drained(channel, consumer, delivered);
    }
    fn subscription_revoked(&mut self, channel: ChannelId, subscribed: &Subscribe<'_>) {
        self.writer(channel.connection).subscription_revoked(subscribed);
    }
    fn session_lost(&mut self, channel: ChannelId, session: &str, why: SessionLoss) {
        self.lost_sessions.push((channel, session.to_owned(), why));
    }
    fn reply(&mut self, channel: ChannelId, reply: Result<Reply, Refusal>) {
        self.replies.push_back((channel, reply));
    }
    fn has_room(&self, _: ConnectionId) -> bool {
        true
    }
    fn append(&mut self, parts: &[&[u8]], _: bool) -> Position {
        self.next_position += 1;
        let position = Position(self.next_position);
        self.records.insert(position, parts.concat());
        position
    }
    fn reserve(&mut self, _: usize, _: usize) {}
    fn retain(&mut self, _: Position, _: u32) {}
    fn release(&mut self, _: Position, _: u32) {}
    fn load(&mut self, load: Load) {
        self.loads.push_back(load);
    }
}

impl Host for Surroundings {
    fn writer(&mut self, connection: ConnectionId) -> &mut Writer {
        &mut self.writers[connection.0 as usize]
    }
    fn stall(&mut self, _: Time, _: ConnectionId) {}
    fn note_quick(&mut self, _: ConnectionId) {}
    fn authenticate(&mut self, connection: ConnectionId, credentials: Credentials) {
        self.logins.push_back((connection, credentials));
    }
    fn ask_to_enter(&mut self, _connection: ConnectionId, _vhost: &str) {
        unreachable!("this is home")
    }
    fn query_connections(&mut self, connection: ConnectionId, query: ConnectionQuery) {
        self.queries.push_back((connection, query));
    }
    fn broker_topics(&mut self) -> Option<&mut ToldTopics> {
        Some(&mut self.topics)
    }
    fn login_refused(&mut self, why: String) {
        self.refused.push(why);
    }
}

/// A handler of any protocol.
#[derive(Debug)]
pub(crate) enum AnyHandler {
    Amqp091(Box<amqp091::Handler>),
    Amqp10(Box<amqp10::Handler>),
    Mqtt(Box<mqtt::Handler>),
    Nats(Box<nats::Handler>),
    Stomp(Box<stomp::Handler>),
}

/// Calls a method of the handler inside.
macro_rules! of_any {
    ($handler:expr, $inner:ident => $call:expr) => {
        match $handler {
            AnyHandler::Amqp091($inner) => $call,
            AnyHandler::Amqp10($inner) => $call,
            AnyHandler::Mqtt($inner) => $call,
            AnyHandler::Nats($inner) => $call,
            AnyHandler::Stomp($inner) => $call,
        }
    };
}

type Here<'a> = Context<'a, Surroundings>;

/// One client's connection.
#[derive(Debug)]
struct Client {
    handler: AnyHandler,
    input: Vec<u8>,
    /// Why it ended.
    closed: Option<String>,
}

/// The engine and its connections.
#[derive(Debug)]
pub(crate) struct TestHost {
    engine: Engine,
    host: Surroundings,
    clients: Vec<Client>,
    amqp091: Arc<amqp091::Settings>,
    nats: Arc<nats::Settings>,
    pub(crate) now: Time,
}

impl TestHost {
    /// One whose NATS connections have default settings.
    pub(crate) fn new(amqp091: amqp091::Settings) -> TestHost {
        TestHost::of(amqp091, nats::Settings::default())
    }

    /// One where all bodies are large.
    pub(crate) fn sharing() -> TestHost {
        TestHost::made(amqp091::Settings::default(), nats::Settings::default(), 1)
    }

    pub(crate) fn of(amqp091: amqp091::Settings, nats: nats::Settings) -> TestHost {
        TestHost::made(amqp091, nats, usize::MAX)
    }

    fn made(amqp091: amqp091::Settings, nats: nats::Settings, large_body_bytes: usize) -> TestHost {
        let mut options = Options::alone([7; 32], &crate::CONVENTIONS);
        // Each direct message is the last one of a step: the next one has to be presented again.
        options.limits.handed_at_once = 1;
        options.limits.large_body_bytes = large_body_bytes;
        let mut host = TestHost {
            engine: Engine::new(options),
            host: Surroundings::default(),
            clients: Vec::new(),
            amqp091: Arc::new(amqp091),
            nats: Arc::new(nats),
            now: START,
        };
        host.host.writers.resize_with(64, Writer::default);
        host.add_users();
        host
    }

    /// `guest` may do everything, `reader` may only read, `writer` only write; `stranger` has no
    /// rights at all; `UAPART`, `both` and `x:y` have some in virtual host `apart`; `responder` may answer
    /// what it is sent, once each.
    fn add_users(&mut self) {
        self.engine.connect_internal(ADMIN, "/").unwrap();
        let handler = ChannelId { connection: ADMIN, number: 1 };
        self.engine.open(handler);
        self.admin(handler, Request::CreateVhost { name: "apart".to_owned() });
        for (user, vhost, configure, write, read) in [
            ("guest", "/", ".*", ".*", ".*"),
            ("reader", "/", "", "", ".*"),
            ("writer", "/", "", ".*", ""),
            ("token", "/", "", ".*", ".*"),
            ("UKEY", "/", "", ".*", ".*"),
            ("UAPART", "apart", "", ".*", ".*"),
            ("both", "apart", "", ".*", ".*"),
            ("both", "/", "", ".*", ".*"),
            ("x:y", "apart", "", ".*", ".*"),
            ("responder", "/", "", ".*", ".*"),
        ] {
            if self.engine.password_hash(user).is_none() {
                let (name, password_hash) = (user.to_owned(), String::new());
                let user = Request::CreateUser { name, password_hash, administrator: false };
                self.admin(handler, user);
            }
            self.admin(
                handler,
                Request::SetPermissions {
                    user: user.to_owned(),
                    vhost: vhost.to_owned(),
                    configure: configure.to_owned(),
                    write: write.to_owned(),
                    read: read.to_owned(),
                },
            );
        }
        let publish = SubjectRules { deny: vec![">".to_owned()], ..SubjectRules::default() };
        let responses = Some(Responses { messages: 1, within: Duration::from_secs(120) });
        let subjects = SubjectPermissions { publish, responses, ..SubjectPermissions::default() };
        let (user, vhost) = ("responder".to_owned(), "/".to_owned());
        self.admin(handler, Request::SetSubjectPermissions { user, vhost, subjects });
        self.turn_ends();
    }

    fn admin(&mut self, handler: ChannelId, request: Request) {
        self.engine.request(self.now, handler, request, &mut self.host);
    }

    /// Accepts an AMQP 0-9-1 connection and returns its number.
    pub(crate) fn accept(&mut self, peer: Peer) -> usize {
        let settings = self.amqp091.clone();
        let now = self.now;
        self.add(Protocol::Amqp, |id| {
            AnyHandler::Amqp091(Box::new(amqp091::Handler::new(id, peer, settings, now)))
        })
    }

    /// Accepts a connection that speaks AMQP 1.0 and returns its number.
    pub(crate) fn accept_amqp10(&mut self, peer: Peer, settings: amqp10::Settings) -> usize {
        let patience = self.now.plus(settings.handshake_timeout);
        self.add(Protocol::Amqp, |id| {
            let handler = amqp10::Handler::new(id, peer, Arc::new(settings), Some(patience));
            AnyHandler::Amqp10(Box::new(handler))
        })
    }

    /// Accepts an MQTT connection and returns its number.
    pub(crate) fn accept_mqtt(&mut self, peer: Peer, settings: mqtt::Settings) -> usize {
        let now = self.now;
        self.add(Protocol::Mqtt, |id| {
            let handler = mqtt::Handler::new(id, peer, Arc::new(settings), now);
            AnyHandler::Mqtt(Box::new(handler))
        })
    }

    /// Accepts a NATS connection and returns its number.
    pub(crate) fn accept_nats(&mut self, peer: Peer) -> usize {
        let settings = self.nats.clone();
        let now = self.now;
        self.add(Protocol::Nats, |id| {
            let number = id.0.into();
            AnyHandler::Nats(Box::new(nats::Handler::new(id, number, peer, settings, now)))
        })
    }

    /// Accepts a STOMP connection and returns its number.
    pub(crate) fn accept_stomp(&mut self, peer: Peer, settings: stomp::Settings) -> usize {
        let now = self.now;
        self.add(Protocol::Stomp, |id| {
            let settings = Arc::new(settings);
            AnyHandler::Stomp(Box::new(stomp::Handler::new(id, peer, settings, now)))
        })
    }

    fn add(
        &mut self,
        protocol: Protocol,
        handler: impl FnOnce(ConnectionId) -> AnyHandler,
    ) -> usize {
        let number = self.clients.len();
        self.host.writers[number] = Writer::new(protocol);
        let handler = handler(ConnectionId(number as u32));
        self.clients.push(Client { handler, input: Vec::new(), closed: None });
        self.with(number, |handler, context| of_any!(handler, inner => inner.begin(context)));
        number
    }

    /// Gives input to a connection; whenever it waits, a turn ends.
    pub(crate) fn receive(&mut self, number: usize, bytes: &[u8]) {
        self.clients[number].input.extend_from_slice(bytes);
        loop {
            let client = &mut self.clients[number];
            if client.closed.is_some() {
                return;
            }
            let mut context =
                Context { now: self.now, engine: &mut self.engine, host: &mut self.host };
            let input = &client.input;
            let used = match of_any!(&mut client.handler, inner => inner.receive(&mut context, input))
            {
                Ok(used) => used,
                Err(close) => return self.ended(number, close.reason),
            };
            client.input.drain(..used);
            if of_any!(&client.handler, inner => inner.is_waiting()) {
                self.turn_ends();
                if of_any!(&self.clients[number].handler, inner => inner.is_waiting()) {
                    // For what only time brings.
                    return;
                }
            } else if used == 0 || client.input.is_empty() {
                return;
            }
        }
    }

    fn with<T>(
        &mut self,
        number: usize,
        act: impl FnOnce(&mut AnyHandler, &mut Here<'_>) -> T,
    ) -> T {
        let mut context = Context { now: self.now, engine: &mut self.engine, host: &mut self.host };
        act(&mut self.clients[number].handler, &mut context)
    }

    fn went_on(&mut self, number: usize, done: Result<(), Close>) {
        if let Err(close) = done {
            self.ended(number, close.reason);
        }
    }

    fn ended(&mut self, number: usize, reason: String) {
        self.with(
            number,
            |handler, context| of_any!(handler, inner => inner.disconnected(context)),
        );
        self.clients[number].closed = Some(reason);
    }

    /// Hands out answers, flushes, and serves consumers until nothing is left to do.
    pub(crate) fn turn_ends(&mut self) {
        loop {
            let mut idle = true;
            while let Some((id, credentials)) = self.host.logins.pop_front() {
                idle = false;
                let number = id.0 as usize;
                let stored = self.engine.password_hash(credentials.user());
                let answer = login(credentials, stored.unwrap_or_default());
                let done = self.with(
                    number,
                    |handler, context| of_any!(handler, inner => inner.authenticated(context, answer)),
                );
                self.went_on(number, done);
            }
            while let Some((id, query)) = self.host.queries.pop_front() {
                idle = false;
                let found = self.look_around(&query);
                self.with(id.0 as usize, |handler, context| {
                    of_any!(handler, inner => inner.connections_found(context, &found));
                });
            }
            idle &= !self.tell_lost_sessions();
            while let Some((handler, reply)) = self.host.replies.pop_front() {
                idle = false;
                let number = handler.connection.0 as usize;
                if handler.connection == ADMIN {
                    reply.unwrap();
                } else {
                    self.with(
                        number,
                        |any, context| of_any!(any, inner => inner.replied(context, handler, reply)),
                    );
                }
            }
            while let Some(load) = self.host.loads.pop_front() {
                idle = false;
                let records =
                    load.positions.iter().map(|at| self.host.records[at].as_slice().into());
                let records = Ok(records.collect());
                self.engine.finish_load(self.now, load.id, records, &mut self.host);
            }
            let flushed = Position(self.host.next_position + 1);
            self.engine.durable(flushed, &mut self.host);
            idle &= !self.call_handlers();
            self.engine.dispatch(self.now, &mut self.host);
            idle &= !self.call_handlers();
            if idle && self.host.replies.is_empty() && self.host.loads.is_empty() {
                return;
            }
        }
    }

    /// Tells connections that they have lost their sessions; says whether there were any.
    fn tell_lost_sessions(&mut self) -> bool {
        let any = !self.host.lost_sessions.is_empty();
        for (channel, session, why) in std::mem::take(&mut self.host.lost_sessions) {
            let number = channel.connection.0 as usize;
            let done = self.with(number, |any, context| {
                of_any!(any, inner => inner.session_lost(context, channel, &session, why))
            });
            self.went_on(number, done);
        }
        any
    }

    /// Calls the handlers for which what was written leaves something to do; says whether there were any.
    fn call_handlers(&mut self) -> bool {
        let mut any = false;
        for number in 0..self.clients.len() {
            let output = &mut self.host.writers[number].output;
            if !std::mem::take(&mut output.calls_handler) || self.clients[number].closed.is_some() {
                continue;
            }
            any = true;
            let done =
                self.with(number, |any, context| of_any!(any, inner => inner.written(context)));
            self.went_on(number, done);
        }
        any
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        self.engine.expire(self.now, &mut self.host);
        for number in 0..self.clients.len() {
            let handler = &self.clients[number].handler;
            let deadline = of_any!(handler, inner => inner.deadline());
            let due = deadline.is_some_and(|deadline| deadline <= self.now);
            if due
                && self.clients[number].closed.is_none()
                && let Err(close) =
                    self.with(number, |any, context| of_any!(any, inner => inner.expire(context)))
            {
                self.ended(number, close.reason);
            }
        }
        self.turn_ends();
    }

    /// The journal fails before what was asked for is flushed.
    pub(crate) fn fail_journal(&mut self) {
        self.engine.storage_changed(StorageState::Failed, &mut self.host);
        self.turn_ends();
    }

    /// The transport of a connection is gone.
    pub(crate) fn cut(&mut self, number: usize) {
        self.ended(number, "cut".to_owned());
        self.turn_ends();
    }

    /// An administrator deletes a queue.
    pub(crate) fn delete_queue(&mut self, name: &str) {
        let (name, handler) = (name.to_owned(), ChannelId { connection: ADMIN, number: 1 });
        self.admin(handler, Request::DeleteQueue { name, if_unused: false, if_empty: false });
        self.turn_ends();
    }

    /// The names of all queues.
    pub(crate) fn queues(&self) -> Vec<String> {
        self.engine.list_queues().map(|queue| queue.name.to_owned()).collect()
    }

    /// Bytes that a connection's handler and writer hold.
    pub(crate) fn held_bytes(&self, number: usize) -> usize {
        let held = of_any!(&self.clients[number].handler, inner => inner.held_bytes());
        let writer = &self.host.writers[number];
        held + writer.held_bytes() + writer.output.held
    }

    pub(crate) fn blocked(&mut self, why: Option<&str>) {
        for number in 0..self.clients.len() {
            self.with(number, |any, context| of_any!(any, inner => inner.blocked(context, why)));
        }
    }

    pub(crate) fn shut_down(&mut self, number: usize, why: &str) {
        self.with(number, |any, context| of_any!(any, inner => inner.close(context, why)));
        self.turn_ends();
    }

    /// The handler of an AMQP 0-9-1 connection.
    pub(crate) fn amqp091(&self, number: usize) -> &amqp091::Handler {
        match &self.clients[number].handler {
            AnyHandler::Amqp091(handler) => handler,
            _ => panic!("connection {number} does not speak AMQP 0-9-1"),
        }
    }

    /// What a client of NATS has to sign.
    pub(crate) fn nonce(&self, number: usize) -> String {
        match &self.clients[number].handler {
            AnyHandler::Nats(handler) => handler.nonce.clone(),
            _ => String::new(),
        }
    }

    /// What the message ids of a STOMP connection begin with.
    pub(crate) fn stomp_session(&self, number: usize) -> String {
        match &self.clients[number].handler {
            AnyHandler::Stomp(handler) => handler.session.to_string(),
            _ => String::new(),
        }
    }

    /// Input that the handler has not used.
    pub(crate) fn unused_bytes(&self, number: usize) -> usize {
        self.clients[number].input.len()
    }

    /// Takes what was written to a connection.
    pub(crate) fn output(&mut self, number: usize) -> Vec<u8> {
        std::mem::take(&mut self.host.writers[number].output.bytes)
    }

    /// What a query finds, of the clients here; what is counted of each is made up from its number.
    fn look_around(&self, query: &ConnectionQuery) -> QueryResult {
        let mut found = QueryResult::default();
        for (number, client) in (1..).zip(&self.clients) {
            let info = of_any!(&client.handler, inner => inner.info());
            if info.vhost != query.vhost || query.user.as_ref().is_some_and(|it| it != info.user) {
                continue;
            }
            let traffic = Traffic {
                subjects: number,
                messages_received: 10 * number,
                messages_sent: 20 * number,
                bytes_received: 100 * number,
                bytes_sent: 200 * number,
            };
            let (connected_at, last_input, unsent_bytes) = (START, START, 7);
            let figures = Figures { number, connected_at, last_input, unsent_bytes, traffic };
            found.connections += 1;
            found.traffic.add(&traffic);
            found.rows.push(ConnectionRow {
                figures,
                protocol: info.protocol,
                address: info.peer.address.clone(),
                user: info.user.to_owned(),
                client: info.client.clone(),
                subjects: vec!["a.*".to_owned(); usize::from(query.with_subjects)],
            });
        }
        let mut all = QueryResult::default();
        all.merge(found, query);
        all
    }

    /// Takes what the log is to say of refused logins.
    pub(crate) fn refused_logins(&mut self) -> Vec<String> {
        std::mem::take(&mut self.host.refused)
    }

    /// Takes the reason why a connection ended, if it did since the last call.
    pub(crate) fn closed(&mut self, number: usize) -> Option<String> {
        match &mut self.clients[number].closed {
            Some(reason) if !reason.is_empty() => Some(std::mem::take(reason)),
            _ => None,
        }
    }
}

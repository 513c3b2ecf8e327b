//! A connection's protocol handler: one variant for each protocol.

use crate::connection::key::ConnectionKey;
use crate::options::Options;
use angarium_engine::{ChannelId, ConnectionId, Engine, Refusal, Reply, SessionLoss, Settle, Time};
use angarium_protocol::{
    Authentication, Close, ConnectionInfo, Context, Host, Peer, Protocol, ProtocolHandler,
    QueryResult, TurnedAway, Undecided, amqp10, amqp091, mqtt, nats, stomp, websocket,
};

/// The protocol handler of a connection.
#[derive(Debug)]
pub(crate) enum AnyHandler {
    /// AMQP 0-9-1; and, before its first bytes say which, AMQP of any version.
    Amqp091(amqp091::Handler),
    Amqp10(Box<amqp10::Handler>),
    Mqtt(Box<mqtt::Handler>),
    Nats(nats::Handler),
    Stomp(Box<stomp::Handler>),
    /// Before it is known which one is spoken.
    Undecided(Box<Undecided>),
}

macro_rules! each {
    ($any:expr, $handler:ident => $result:expr) => {
        match $any {
            AnyHandler::Amqp091($handler) => $result,
            AnyHandler::Amqp10($handler) => $result,
            AnyHandler::Mqtt($handler) => $result,
            AnyHandler::Nats($handler) => $result,
            AnyHandler::Stomp($handler) => $result,
            AnyHandler::Undecided($handler) => $result,
        }
    };
}

impl AnyHandler {
    /// The handler of a connection that has just been accepted.
    pub(crate) fn new(
        options: &Options,
        ConnectionKey { id, serial }: ConnectionKey,
        peer: &Peer,
        now: Time,
    ) -> AnyHandler {
        let peer = peer.clone();
        match peer.protocol {
            Protocol::Amqp => {
                let settings = options.amqp091.clone();
                AnyHandler::Amqp091(amqp091::Handler::new(id, peer, settings, now))
            }
            Protocol::Mqtt => {
                let settings = options.mqtt.clone();
                AnyHandler::Mqtt(Box::new(mqtt::Handler::new(id, peer, settings, now)))
            }
            Protocol::Nats => {
                let settings = options.nats.clone();
                let number = options.number_of(serial);
                AnyHandler::Nats(nats::Handler::new(id, number, peer, settings, now))
            }
            Protocol::Stomp => {
                let settings = options.stomp.clone();
                AnyHandler::Stomp(Box::new(stomp::Handler::new(id, peer, settings, now)))
            }
            Protocol::WebSocket | Protocol::Any => {
                AnyHandler::Undecided(Box::new(Undecided::new(peer, &options.undecided, now)))
            }
        }
    }

    /// Whether the first bytes have to say which version the client speaks.
    #[inline]
    pub(crate) fn is_undecided(&self) -> bool {
        matches!(self, AnyHandler::Amqp091(handler) if handler.is_greeting())
    }

    /// Becomes the handler of the version that these first bytes are of; false: more of them are needed.
    pub(crate) fn decide(
        &mut self,
        options: &Options,
        id: ConnectionId,
        peer: &Peer,
        input: &[u8],
    ) -> bool {
        match amqp10::spoken(input) {
            amqp10::Spoken::Unknown => false,
            amqp10::Spoken::Other => true,
            amqp10::Spoken::Amqp10 => {
                // What was granted to the handshake goes on.
                let patience = self.deadline();
                let settings = options.amqp10.clone();
                let handler = amqp10::Handler::new(id, peer.clone(), settings, patience);
                *self = AnyHandler::Amqp10(Box::new(handler));
                true
            }
        }
    }

    /// What [`crate::Node::turned_away`] says.
    pub(crate) fn turned_away(&mut self, engine: &mut Engine, why: TurnedAway) -> Vec<u8> {
        match self {
            AnyHandler::Nats(handler) => handler.turned_away(engine, why),
            AnyHandler::Stomp(handler) => handler.turned_away(why),
            AnyHandler::Undecided(handler) => match handler.info().peer.protocol {
                Protocol::WebSocket => websocket::turned_away(why),
                _ => Vec::new(),
            },
            AnyHandler::Amqp091(_) | AnyHandler::Amqp10(_) | AnyHandler::Mqtt(_) => Vec::new(),
        }
    }

    /// The transport was encrypted after the connection had begun.
    pub(crate) fn encrypted(&mut self, certificate_name: Option<String>) {
        match self {
            AnyHandler::Nats(handler) => handler.encrypted(certificate_name),
            AnyHandler::Undecided(handler) => handler.encrypted(certificate_name),
            // TLS comes first or not at all.
            AnyHandler::Amqp091(_)
            | AnyHandler::Amqp10(_)
            | AnyHandler::Mqtt(_)
            | AnyHandler::Stomp(_) => {}
        }
    }

    pub(crate) fn info(&self) -> ConnectionInfo<'_> {
        each!(self, handler => handler.info())
    }
}

/// Methods that call the one of the connection's protocol.
macro_rules! forward {
    ($(fn $name:ident(&mut self, $($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => { $(
        #[inline]
        fn $name(&mut self, $($argument: $type),*) $(-> $result)? {
            each!(self, handler => handler.$name($($argument),*))
        }
    )* };
}

impl ProtocolHandler for AnyHandler {
    forward! {
        fn begin(&mut self, context: &mut Context<impl Host>);
        fn receive(&mut self, context: &mut Context<impl Host>, input: &[u8]) -> Result<usize, Close>;
        fn replied(
            &mut self, context: &mut Context<impl Host>, id: ChannelId, reply: Result<Reply, Refusal>
        );
        fn authenticated(
            &mut self, context: &mut Context<impl Host>, answer: Authentication
        ) -> Result<(), Close>;
        fn entered(&mut self, context: &mut Context<impl Host>) -> Result<(), Close>;
        fn connections_found(&mut self, context: &mut Context<impl Host>, found: &QueryResult);
        fn no_responders(&mut self, context: &mut Context<impl Host>, subject: &str, reply: &str);
        fn known_to_shards(&mut self, context: &mut Context<impl Host>) -> Result<(), Close>;
        fn refused(
            &mut self,
            context: &mut Context<impl Host>, id: ChannelId, settle: Option<Settle>, refusal: Refusal
        );
        fn channel_failed(&mut self, context: &mut Context<impl Host>, id: ChannelId, why: Refusal);
        fn session_lost(
            &mut self, context: &mut Context<impl Host>, id: ChannelId, session: &str, why: SessionLoss
        ) -> Result<(), Close>;
        fn broker_topics_changed(&mut self, context: &mut Context<impl Host>);
        fn written(&mut self, context: &mut Context<impl Host>) -> Result<(), Close>;
        fn blocked(&mut self, context: &mut Context<impl Host>, why: Option<&str>);
        fn refuse_unfinished(&mut self, context: &mut Context<impl Host>) -> Result<(), Close>;
        fn spill_drained(&mut self, context: &mut Context<impl Host>);
        fn reading_paused(&mut self, now: Time);
        fn doubted(&mut self, context: &mut Context<impl Host>);
        fn close(&mut self, context: &mut Context<impl Host>, why: &str);
        fn disconnected(&mut self, context: &mut Context<impl Host>);
        fn expire(&mut self, context: &mut Context<impl Host>) -> Result<(), Close>;
    }

    fn drops_input(&self) -> bool {
        each!(self, handler => handler.drops_input())
    }

    fn held_bytes(&self) -> usize {
        each!(self, handler => handler.held_bytes())
    }

    fn is_waiting(&self) -> bool {
        each!(self, handler => handler.is_waiting())
    }

    fn deadline(&self) -> Option<Time> {
        each!(self, handler => handler.deadline())
    }
}

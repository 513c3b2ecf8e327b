//! A connection's protocol handler: one variant for each protocol.

use crate::connection::key::ConnectionKey;
use crate::options::Options;
use angarium_engine::{ChannelId, Engine, Refusal, Reply, Settle, Time};
use angarium_protocol::{
    Authentication, Close, ConnectionInfo, Context, Host, Peer, Protocol, ProtocolHandler,
    QueryResult, TurnedAway, amqp091, nats,
};

/// The protocol handler of a connection.
#[derive(Debug)]
pub(crate) enum AnyHandler {
    Amqp091(amqp091::Handler),
    Nats(nats::Handler),
}

macro_rules! each {
    ($any:expr, $handler:ident => $result:expr) => {
        match $any {
            AnyHandler::Amqp091($handler) => $result,
            AnyHandler::Nats($handler) => $result,
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
            Protocol::Amqp091 => {
                let settings = options.amqp091.clone();
                AnyHandler::Amqp091(amqp091::Handler::new(id, peer, settings, now))
            }
            Protocol::Nats => {
                let settings = options.nats.clone();
                let number = options.number_of(serial);
                AnyHandler::Nats(nats::Handler::new(id, number, peer, settings, now))
            }
        }
    }

    /// What [`crate::Node::turned_away`] says.
    pub(crate) fn turned_away(&mut self, engine: &mut Engine, why: TurnedAway) -> Vec<u8> {
        match self {
            AnyHandler::Nats(handler) => handler.turned_away(engine, why),
            AnyHandler::Amqp091(_) => Vec::new(),
        }
    }

    /// The transport was encrypted after the connection had begun.
    pub(crate) fn encrypted(&mut self, certificate_name: Option<String>) {
        match self {
            AnyHandler::Nats(handler) => handler.encrypted(certificate_name),
            // TLS comes first or not at all.
            AnyHandler::Amqp091(_) => {}
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
        fn connections_found(&mut self, context: &mut Context<impl Host>, found: &QueryResult);
        fn no_responders(&mut self, context: &mut Context<impl Host>, subject: &str, reply: &str);
        fn known_to_shards(&mut self, context: &mut Context<impl Host>) -> Result<(), Close>;
        fn refused(
            &mut self,
            context: &mut Context<impl Host>, id: ChannelId, settle: Option<Settle>, refusal: Refusal
        );
        fn channel_failed(&mut self, context: &mut Context<impl Host>, id: ChannelId, why: Refusal);
        fn blocked(&mut self, context: &mut Context<impl Host>, why: Option<&str>);
        fn refuse_unfinished(&mut self, context: &mut Context<impl Host>) -> Result<(), Close>;
        fn spill_drained(&mut self, context: &mut Context<impl Host>);
        fn reading_paused(&mut self, now: Time);
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

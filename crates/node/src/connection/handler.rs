//! A connection's session, whichever protocol it speaks.

use crate::options::Options;
use angarium_engine::{ChannelId, ConnectionId, Engine, Refusal, Reply, Settle, Time};
use angarium_protocol::{
    Authentication, Close, ConnectionInfo, Context, Findings, Peer, Protocol, Session, World,
    amqp091, nats,
};

/// One session of each protocol.
#[derive(Debug)]
pub(crate) enum AnyHandler {
    Amqp091(amqp091::Connection),
    Nats(nats::Connection),
}

macro_rules! each {
    ($any:expr, $session:ident => $result:expr) => {
        match $any {
            AnyHandler::Amqp091($session) => $result,
            AnyHandler::Nats($session) => $result,
        }
    };
}

impl AnyHandler {
    /// The session of a connection that has just been accepted.
    pub(crate) fn new(
        options: &Options,
        (id, serial): (ConnectionId, u64),
        peer: &Peer,
        now: Time,
    ) -> AnyHandler {
        let peer = peer.clone();
        match peer.protocol {
            Protocol::Amqp091 => {
                let settings = options.amqp091.clone();
                AnyHandler::Amqp091(amqp091::Connection::new(id, peer, settings, now))
            }
            Protocol::Nats => {
                let settings = options.nats.clone();
                let number = options.number_of(serial);
                AnyHandler::Nats(nats::Connection::new(id, number, peer, settings, now))
            }
        }
    }

    /// What [`crate::Node::turned_away`] says.
    pub(crate) fn turned_away(&mut self, engine: &mut Engine) -> Vec<u8> {
        match self {
            AnyHandler::Nats(session) => session.turned_away(engine),
            AnyHandler::Amqp091(_) => Vec::new(),
        }
    }

    /// The transport was encrypted after the session had begun.
    pub(crate) fn encrypted(&mut self, certificate_name: Option<String>) {
        match self {
            AnyHandler::Nats(session) => session.encrypted(certificate_name),
            // TLS comes first or not at all.
            AnyHandler::Amqp091(_) => {}
        }
    }

    /// What listings show.
    pub(crate) fn info(&self) -> ConnectionInfo<'_> {
        each!(self, session => session.info())
    }
}

impl Session for AnyHandler {
    fn begin<W: World>(&mut self, turn: &mut Context<'_, W>) {
        each!(self, session => session.begin(turn));
    }
    #[inline]
    fn receive<W: World>(
        &mut self,
        turn: &mut Context<'_, W>,
        input: &[u8],
    ) -> Result<usize, Close> {
        each!(self, session => session.receive(turn, input))
    }
    fn replied<W: World>(
        &mut self,
        turn: &mut Context<'_, W>,
        id: ChannelId,
        reply: Result<Reply, Refusal>,
    ) -> Result<(), Close> {
        each!(self, session => session.replied(turn, id, reply))
    }
    fn authenticated<W: World>(
        &mut self,
        turn: &mut Context<'_, W>,
        answer: Authentication,
    ) -> Result<(), Close> {
        each!(self, session => session.authenticated(turn, answer))
    }
    fn surveyed<W: World>(&mut self, turn: &mut Context<'_, W>, found: &Findings) {
        each!(self, session => session.surveyed(turn, found));
    }
    fn unheard<W: World>(&mut self, turn: &mut Context<'_, W>, subject: &str, reply: &str) {
        each!(self, session => session.unheard(turn, subject, reply));
    }
    fn settled<W: World>(&mut self, turn: &mut Context<'_, W>) -> Result<(), Close> {
        each!(self, session => session.settled(turn))
    }
    fn refused<W: World>(
        &mut self,
        turn: &mut Context<'_, W>,
        id: ChannelId,
        settle: Option<Settle>,
        refusal: Refusal,
    ) {
        each!(self, session => session.refused(turn, id, settle, refusal));
    }
    fn is_waiting(&self) -> bool {
        each!(self, session => session.is_waiting())
    }
    fn blocked<W: World>(&mut self, turn: &mut Context<'_, W>, why: Option<&str>) {
        each!(self, session => session.blocked(turn, why));
    }
    fn caught_up<W: World>(&mut self, turn: &mut Context<'_, W>) {
        each!(self, session => session.caught_up(turn));
    }
    fn unread(&mut self, now: Time) {
        each!(self, session => session.unread(now));
    }
    fn close<W: World>(&mut self, turn: &mut Context<'_, W>, why: &str) {
        each!(self, session => session.close(turn, why));
    }
    fn disconnected<W: World>(&mut self, turn: &mut Context<'_, W>) {
        each!(self, session => session.disconnected(turn));
    }
    fn deadline(&self) -> Option<Time> {
        each!(self, session => session.deadline())
    }
    fn expire<W: World>(&mut self, turn: &mut Context<'_, W>) -> Result<(), Close> {
        each!(self, session => session.expire(turn))
    }
}

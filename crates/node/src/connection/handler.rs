//! A connection's session, whichever protocol it speaks.

use crate::options::Options;
use angarium_engine::{ConnectionId, Engine, Refusal, Reply, SessionId, Settle, Time};
use angarium_protocol::{
    Authentication, Close, ConnectionInfo, Findings, Peer, Protocol, Session, Turn, World, amqp091,
    nats,
};

/// One session of each protocol.
#[derive(Debug)]
pub(crate) enum AnySession {
    Amqp091(amqp091::Connection),
    Nats(nats::Connection),
}

macro_rules! each {
    ($any:expr, $session:ident => $result:expr) => {
        match $any {
            AnySession::Amqp091($session) => $result,
            AnySession::Nats($session) => $result,
        }
    };
}

impl AnySession {
    /// The session of a connection that has just been accepted.
    pub(crate) fn new(
        options: &Options,
        (id, serial): (ConnectionId, u64),
        peer: &Peer,
        now: Time,
    ) -> AnySession {
        let peer = peer.clone();
        match peer.protocol {
            Protocol::Amqp091 => {
                let settings = options.amqp091.clone();
                AnySession::Amqp091(amqp091::Connection::new(id, peer, settings, now))
            }
            Protocol::Nats => {
                let settings = options.nats.clone();
                let number = options.number_of(serial);
                AnySession::Nats(nats::Connection::new(id, number, peer, settings, now))
            }
        }
    }

    /// What [`crate::Node::turned_away`] says.
    pub(crate) fn turned_away(&mut self, engine: &mut Engine) -> Vec<u8> {
        match self {
            AnySession::Nats(session) => session.turned_away(engine),
            AnySession::Amqp091(_) => Vec::new(),
        }
    }

    /// The transport was encrypted after the session had begun.
    pub(crate) fn encrypted(&mut self, certificate_name: Option<String>) {
        match self {
            AnySession::Nats(session) => session.encrypted(certificate_name),
            // TLS comes first or not at all.
            AnySession::Amqp091(_) => {}
        }
    }

    /// What listings show.
    pub(crate) fn info(&self) -> ConnectionInfo<'_> {
        each!(self, session => session.info())
    }
}

impl Session for AnySession {
    fn begin<W: World>(&mut self, turn: &mut Turn<'_, W>) {
        each!(self, session => session.begin(turn));
    }
    #[inline]
    fn receive<W: World>(&mut self, turn: &mut Turn<'_, W>, input: &[u8]) -> Result<usize, Close> {
        each!(self, session => session.receive(turn, input))
    }
    fn replied<W: World>(
        &mut self,
        turn: &mut Turn<'_, W>,
        id: SessionId,
        reply: Result<Reply, Refusal>,
    ) -> Result<(), Close> {
        each!(self, session => session.replied(turn, id, reply))
    }
    fn authenticated<W: World>(
        &mut self,
        turn: &mut Turn<'_, W>,
        answer: Authentication,
    ) -> Result<(), Close> {
        each!(self, session => session.authenticated(turn, answer))
    }
    fn surveyed<W: World>(&mut self, turn: &mut Turn<'_, W>, found: &Findings) {
        each!(self, session => session.surveyed(turn, found));
    }
    fn unheard<W: World>(&mut self, turn: &mut Turn<'_, W>, subject: &str, reply: &str) {
        each!(self, session => session.unheard(turn, subject, reply));
    }
    fn settled<W: World>(&mut self, turn: &mut Turn<'_, W>) -> Result<(), Close> {
        each!(self, session => session.settled(turn))
    }
    fn refused<W: World>(
        &mut self,
        turn: &mut Turn<'_, W>,
        id: SessionId,
        settle: Option<Settle>,
        refusal: Refusal,
    ) {
        each!(self, session => session.refused(turn, id, settle, refusal));
    }
    fn is_waiting(&self) -> bool {
        each!(self, session => session.is_waiting())
    }
    fn blocked<W: World>(&mut self, turn: &mut Turn<'_, W>, why: Option<&str>) {
        each!(self, session => session.blocked(turn, why));
    }
    fn caught_up<W: World>(&mut self, turn: &mut Turn<'_, W>) {
        each!(self, session => session.caught_up(turn));
    }
    fn unread(&mut self, now: Time) {
        each!(self, session => session.unread(now));
    }
    fn close<W: World>(&mut self, turn: &mut Turn<'_, W>, why: &str) {
        each!(self, session => session.close(turn, why));
    }
    fn disconnected<W: World>(&mut self, turn: &mut Turn<'_, W>) {
        each!(self, session => session.disconnected(turn));
    }
    fn deadline(&self) -> Option<Time> {
        each!(self, session => session.deadline())
    }
    fn expire<W: World>(&mut self, turn: &mut Turn<'_, W>) -> Result<(), Close> {
        each!(self, session => session.expire(turn))
    }
}

//! A client that speaks NATS: runs the parts of its plan on one connection, and reconnects when
//! that is lost.

mod connection;
mod context;
mod incoming;
mod proxy;
mod publishing;
mod requesting;
mod responding;
mod subscribing;

use super::endpoint::RETURN_MAX;
use super::{Endpoint, Round, Surroundings};
use crate::canary::Canary;
use crate::history::{DirectMessage, Event};
use crate::plan::nats::{Client as Plan, Part};
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::Protocol;
use connection::Connection;
use context::{Behaviour, Context};
use incoming::{Arrived, Incoming};
use proxy::Proxy;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not connected; reconnects at the time.
    Away(Time),
    /// Connected; waits for INFO.
    Greeting,
    /// CONNECT was sent; waits for the PONG.
    Entering,
    /// Open; its parts act.
    Working,
    /// Closed for good.
    Gone,
}

/// A part, and when it wants to be woken.
#[derive(Debug)]
struct Actor {
    behaviour: Box<dyn Behaviour>,
    wake_at: Option<Time>,
}

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    plan: Plan,
    actors: Vec<Actor>,
    phase: Phase,
    connection: Connection,
    random: Random,
    is_closing: bool,
    is_finishing: bool,
}

impl Client {
    /// A client that first connects at `start`.
    pub(super) fn new(plan: Plan, start: Time, random: Random) -> Client {
        let actor = |part: &Part| {
            let behaviour: Box<dyn Behaviour> = match part.clone() {
                Part::Subscribe(plan) => Box::new(subscribing::Subscriber::new(plan)),
                Part::Publish(plan) => Box::new(publishing::Publisher::new(plan)),
                Part::Request(plan) => Box::new(requesting::Requester::new(plan)),
                Part::Respond(plan) => Box::new(responding::Responder::new(plan)),
            };
            Actor { behaviour, wake_at: None }
        };
        Client {
            actors: plan.parts.iter().map(actor).collect(),
            plan,
            phase: Phase::Away(start),
            connection: Connection::default(),
            random,
            is_closing: false,
            is_finishing: false,
        }
    }

    fn take(&mut self, at: &mut Surroundings<'_>, what: Incoming) -> Result<(), String> {
        match what {
            Incoming::Info { .. } if self.phase == Phase::Greeting => {
                self.connection.connect(&self.plan);
                self.connection.ping();
                self.phase = Phase::Entering;
            }
            Incoming::Info { lame_duck } => {
                // Half of the clients leave in lame duck mode, the others stay until they are cut
                // off.
                if lame_duck && self.random.percent(50) {
                    self.leave(at);
                }
            }
            Incoming::Ping => self.connection.pong(),
            Incoming::Pong => {
                for event in self.connection.ponged()? {
                    at.history.note(at.now, event);
                }
                if self.phase == Phase::Entering {
                    self.phase = Phase::Working;
                    self.play_all(at, |part, context| part.begin(context));
                }
            }
            Incoming::Done => {}
            Incoming::Error(text) => {
                let connection = self.connection.number;
                at.history.note(at.now, Event::ErrorReported { connection, text });
            }
            Incoming::Message(message) => self.hear(at, message)?,
        }
        Ok(())
    }

    fn hear(&mut self, at: &mut Surroundings<'_>, message: Arrived) -> Result<(), String> {
        let subscribed = self
            .connection
            .subscribed(message.sid)
            .ok_or("a message came for a subscription that there is not")?;
        let event = match &message.no_responders {
            Some(subject) => {
                let (inbox, subject) = (message.subject.clone(), subject.clone());
                Event::NoResponders { inbox, subject }
            }
            None => Event::Receive(DirectMessage {
                subscription: subscribed.subscription,
                message: message.id,
                subject: message.subject.clone(),
                reply: message.reply.clone(),
                headers: message.headers,
                missed: message.missed,
            }),
        };
        at.history.note(at.now, event);
        self.play(at, subscribed.part, |part, context| part.received(context, &message));
        Ok(())
    }

    /// Closes the transport and reconnects later.
    fn leave(&mut self, at: &mut Surroundings<'_>) {
        self.ended(at);
        self.is_closing = true;
        self.not_reachable(at.now);
    }

    fn ended(&mut self, at: &mut Surroundings<'_>) {
        let connection = self.connection.number;
        at.history.note(at.now, Event::Disconnected { connection });
        for actor in &mut self.actors {
            actor.behaviour.ended();
            actor.wake_at = None;
        }
    }

    fn play_all(
        &mut self,
        at: &mut Surroundings<'_>,
        mut act: impl FnMut(&mut dyn Behaviour, &mut Context<'_>),
    ) {
        for part in 0..self.actors.len() {
            self.play(at, part, &mut act);
        }
    }

    /// Lets a part act.
    fn play(
        &mut self,
        at: &mut Surroundings<'_>,
        part: usize,
        act: impl FnOnce(&mut dyn Behaviour, &mut Context<'_>),
    ) {
        if self.phase != Phase::Working {
            return;
        }
        let actor = &mut self.actors[part];
        let mut context = Context {
            now: at.now,
            random: &mut self.random,
            history: at.history,
            numbers: at.numbers,
            connection: &mut self.connection,
            takes_headers: self.plan.headers,
            echo: self.plan.echo,
            part,
            wake_at: &mut actor.wake_at,
        };
        act(actor.behaviour.as_mut(), &mut context);
    }

    /// While finishing, pings until everything that was sent is confirmed.
    fn ask_at_the_end(&mut self) {
        let is_working = self.is_finishing && self.phase == Phase::Working;
        if is_working && !self.connection.is_synced() && !self.connection.is_asking() {
            self.connection.ping();
        }
    }
}

impl Endpoint for Client {
    fn protocol(&self) -> Protocol {
        Protocol::Nats
    }

    fn break_rule(&mut self, canary: Canary, random: Random) {
        self.connection = Connection::behind(Some(Proxy::new(canary, random)));
    }

    fn learns_why_closed(&self) -> bool {
        false
    }

    fn reads_slowly(&self) -> bool {
        self.plan.slow
    }

    fn deadline(&self) -> Option<Time> {
        match self.phase {
            Phase::Away(until) => Some(until),
            Phase::Working => self.actors.iter().filter_map(|actor| actor.wake_at).min(),
            _ => None,
        }
    }

    fn woken(&mut self, at: &mut Surroundings<'_>) {
        for part in 0..self.actors.len() {
            if self.actors[part].wake_at.is_some_and(|due| due <= at.now) {
                self.actors[part].wake_at = None;
                self.play(at, part, |part, context| part.woken(context));
            }
        }
        self.ask_at_the_end();
    }

    fn wants_connection(&self, now: Time) -> bool {
        matches!(self.phase, Phase::Away(until) if until <= now)
    }

    fn not_reachable(&mut self, now: Time) {
        let pause = self.random.between(10_000, RETURN_MAX);
        self.phase = Phase::Away(now.plus(Duration::from_micros(pause)));
    }

    fn connected(&mut self, at: &mut Surroundings<'_>) {
        at.numbers.connection += 1;
        self.connection = self.connection.renewed(at.numbers.connection);
        self.phase = Phase::Greeting;
        self.is_closing = false;
    }

    fn received(&mut self, at: &mut Surroundings<'_>, bytes: &[u8]) -> Result<(), String> {
        for what in self.connection.received(bytes)? {
            if matches!(self.phase, Phase::Away(_) | Phase::Gone) {
                break;
            }
            self.take(at, what)?;
        }
        self.ask_at_the_end();
        Ok(())
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.connection.output
    }

    fn wants_to_close(&self) -> bool {
        self.is_closing
    }

    fn lost(&mut self, at: &mut Surroundings<'_>) {
        if !matches!(self.phase, Phase::Away(_) | Phase::Gone) {
            self.ended(at);
            self.not_reachable(at.now);
        }
    }

    fn finish(&mut self) {
        self.is_finishing = true;
        for actor in &mut self.actors {
            actor.behaviour.finish();
        }
        self.ask_at_the_end();
    }

    fn call(&mut self, at: &mut Surroundings<'_>, round: Round) {
        if self.phase == Phase::Working {
            if round == Round::FinalMessages {
                self.play_all(at, |part, context| part.final_messages(context));
            }
            self.connection.ping();
        }
    }

    fn is_done(&self) -> bool {
        let is_done = || self.actors.iter().all(|actor| actor.behaviour.is_done());
        let is_idle = self.phase == Phase::Working && self.connection.is_synced();
        self.phase == Phase::Gone || (is_idle && is_done())
    }

    fn waits_for(&self) -> String {
        let Client { phase, actors, connection, .. } = self;
        format!("{phase:?}, asking {}, {actors:?}", connection.is_asking())
    }

    fn retire(&mut self, at: &mut Surroundings<'_>) {
        if !matches!(self.phase, Phase::Away(_) | Phase::Gone) {
            self.ended(at);
        }
        self.is_closing = true;
        self.phase = Phase::Gone;
    }

    fn is_gone(&self) -> bool {
        self.phase == Phase::Gone
    }
}

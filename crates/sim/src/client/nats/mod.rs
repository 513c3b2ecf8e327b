//! A client that speaks NATS: runs the parts of its plan on one connection, and reconnects when
//! that is lost.

mod connection;
mod context;
mod incoming;
mod parts;
mod proxy;

use super::context::{Activity, Phase, Presence, Surroundings, next};
use super::endpoint::{Endpoint, Round};
use crate::canary::Canary;
use crate::history::{DirectMessage, Event};
use crate::plan::nats::{Client as Plan, Part};
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::Protocol;
use angarium_protocol::nats::codec::client::write_pong;
use connection::Connection;
use context::{Behaviour, Context};
use incoming::{Arrived, Incoming};
use parts::{Publisher, Requester, Responder, Subscriber};
use proxy::Proxy;

/// A part, and what is kept for it.
#[derive(Debug)]
struct Actor {
    behaviour: Box<dyn Behaviour>,
    activity: Activity,
}

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    plan: Plan,
    actors: Vec<Actor>,
    presence: Presence,
    connection: Connection,
}

impl Client {
    /// A client that first connects at `start`.
    pub(super) fn new(plan: Plan, start: Time, random: Random) -> Client {
        let actor =
            |part: &Part| Actor { behaviour: behaviour(part), activity: Activity::default() };
        let mut presence = Presence::new(Protocol::Nats, start, random);
        presence.is_slow = plan.slow;
        Client {
            actors: plan.parts.iter().map(actor).collect(),
            plan,
            presence,
            connection: Connection::default(),
        }
    }

    fn take(&mut self, at: &mut Surroundings<'_>, what: Incoming) -> Result<(), String> {
        match what {
            Incoming::Info { .. } if self.presence.phase == Phase::Greeting => {
                self.connection.connect(&self.plan);
                self.connection.ping();
                self.presence.phase = Phase::Entering;
            }
            Incoming::Info { lame_duck } => {
                // Half of the clients leave in lame duck mode, the others stay until they are cut
                // off.
                if lame_duck && self.presence.random.percent(50) {
                    self.leave(at);
                }
            }
            Incoming::Ping => write_pong(&mut self.connection.output),
            Incoming::Pong => {
                for event in self.connection.ponged()? {
                    at.note(event);
                }
                if self.presence.phase == Phase::Entering {
                    self.presence.phase = Phase::Working;
                    self.play_all(at, |part, context| part.begin(context));
                }
            }
            Incoming::Done => {}
            Incoming::Error(text) => {
                let connection = self.connection.number;
                at.note(Event::ErrorReported { connection, text });
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
        at.note(event);
        self.play(at, subscribed.part, |part, context| part.received(context, &message));
        Ok(())
    }

    /// Closes the transport and reconnects later.
    fn leave(&mut self, at: &mut Surroundings<'_>) {
        self.ended(at);
        self.presence.is_closing = true;
        self.presence.stay_away(at.now);
    }

    fn ended(&mut self, at: &mut Surroundings<'_>) {
        at.note(Event::Disconnected { connection: self.connection.number });
        for actor in &mut self.actors {
            actor.activity.wake_at = None;
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
        if !self.presence.is_working() {
            return;
        }
        let Actor { behaviour, activity } = &mut self.actors[part];
        self.connection.part = part;
        let mut context = Context::new(at, &mut self.presence, activity, &mut self.connection);
        act(behaviour.as_mut(), &mut context);
    }

    /// While finishing, pings until everything that was sent is confirmed.
    fn ask_at_the_end(&mut self) {
        let is_over = self.presence.is_finishing && self.presence.is_working();
        if is_over && !self.connection.is_synced() && !self.connection.is_asking() {
            self.connection.ping();
        }
    }
}

impl Endpoint for Client {
    fn break_rule(&mut self, canary: Canary, random: Random) {
        self.connection.proxy = Some(Proxy { canary, random });
    }

    fn learns_why_closed(&self) -> bool {
        false
    }

    fn presence(&mut self) -> &mut Presence {
        &mut self.presence
    }

    fn wake_at(&self) -> Option<Time> {
        self.actors.iter().filter_map(|actor| actor.activity.wake_at).min()
    }

    fn woken(&mut self, at: &mut Surroundings<'_>) {
        for part in 0..self.actors.len() {
            if self.actors[part].activity.wake_at.take_if(|due| *due <= at.now).is_some() {
                self.play(at, part, |part, context| part.woken(context));
            }
        }
        self.ask_at_the_end();
    }

    fn connected(&mut self, at: &mut Surroundings<'_>) {
        let number = next(&mut at.numbers.connection);
        self.connection = self.connection.renewed(number, &self.plan);
        self.presence.phase = Phase::Greeting;
        self.presence.is_closing = false;
    }

    fn received(&mut self, at: &mut Surroundings<'_>, bytes: &[u8]) -> Result<(), String> {
        for what in self.connection.received(bytes)? {
            if !self.presence.is_connected() {
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

    fn lost(&mut self, at: &mut Surroundings<'_>) {
        if self.presence.is_connected() {
            self.ended(at);
            self.presence.stay_away(at.now);
        }
    }

    fn finish(&mut self) {
        self.presence.is_finishing = true;
        self.ask_at_the_end();
    }

    fn call(&mut self, at: &mut Surroundings<'_>, round: Round) {
        if self.presence.is_working() {
            if round == Round::FinalMessages {
                self.play_all(at, |part, context| part.final_messages(context));
            }
            self.connection.ping();
        }
    }

    fn is_idle(&self) -> bool {
        self.connection.is_synced() && self.actors.iter().all(|actor| actor.behaviour.is_done())
    }

    fn waits_for(&self) -> String {
        let Client { presence, actors, connection, .. } = self;
        format!("{:?}, asking {}, {actors:?}", presence.phase, connection.is_asking())
    }

    fn retire(&mut self, at: &mut Surroundings<'_>) {
        if self.presence.is_connected() {
            self.ended(at);
        }
        self.presence.is_closing = true;
        self.presence.phase = Phase::Gone;
    }
}

fn behaviour(part: &Part) -> Box<dyn Behaviour> {
    match part.clone() {
        Part::Subscribe(plan) => Box::new(Subscriber { plan, now: None }),
        Part::Publish(plan) => Box::new(Publisher { plan, total: 0 }),
        Part::Request(plan) => Box::new(Requester { plan, total: 0, waiting: Default::default() }),
        Part::Respond(plan) => Box::new(Responder { plan, owed: Vec::new() }),
    }
}

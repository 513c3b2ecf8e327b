//! A client that speaks NATS: connects, does on its connection what its plan says, comes back when it was
//! cut off. Knows nothing about pipes and virtual time beyond the instants it is given.

mod connection;
mod context;
mod proxy;
mod publishing;
mod requesting;
mod responding;
mod subscribing;

use super::{Endpoint, Round, Surroundings};
use crate::canary::Proxy;
use crate::client::nats::connection::{Arrived, Incoming, Line};
use crate::client::nats::context::{Act, Scene};
use crate::history::{Event, Hear};
use crate::plan::nats::{Nats, Part};
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::Protocol;
use std::time::Duration;

/// Longest pause before a lost client comes back, in microseconds.
const RETURN_MAX: u64 = 300_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not connected; comes back at the time.
    Away(Time),
    /// Connected; INFO has to come.
    Greeting,
    /// It said who it is; the answer has to come.
    Entering,
    /// Its parts do what they say.
    Working,
    /// Will not come back.
    Gone,
}

/// A part, and when it wants to be woken.
#[derive(Debug)]
struct Seat {
    act: Box<dyn Act>,
    wake_at: Option<Time>,
}

/// One client.
#[derive(Debug)]
pub struct Client {
    plan: Nats,
    seats: Vec<Seat>,
    phase: Phase,
    line: Line,
    random: Random,
    is_closing: bool,
    is_finishing: bool,
}

impl Client {
    /// A client that first connects at `start`.
    #[must_use]
    pub fn new(plan: Nats, start: Time, random: Random) -> Client {
        let seat = |part: &Part| {
            let act: Box<dyn Act> = match part.clone() {
                Part::Listen(plan) => Box::new(subscribing::Listener::new(plan)),
                Part::Publish(plan) => Box::new(publishing::Publisher::new(plan)),
                Part::Request(plan) => Box::new(requesting::Requester::new(plan)),
                Part::Respond(plan) => Box::new(responding::Responder::new(plan)),
            };
            Seat { act, wake_at: None }
        };
        Client {
            seats: plan.parts.iter().map(seat).collect(),
            plan,
            phase: Phase::Away(start),
            line: Line::default(),
            random,
            is_closing: false,
            is_finishing: false,
        }
    }

    fn take(&mut self, at: &mut Surroundings<'_>, what: Incoming) -> Result<(), String> {
        match what {
            Incoming::Info { .. } if self.phase == Phase::Greeting => {
                self.line.connect(&self.plan);
                self.line.ping();
                self.phase = Phase::Entering;
            }
            Incoming::Info { lame_duck } => {
                // Some go elsewhere at once, others stay until they are cut off.
                if lame_duck && self.random.percent(50) {
                    self.leave(at);
                }
            }
            Incoming::Ping => self.line.pong(),
            Incoming::Pong => {
                for event in self.line.ponged()? {
                    at.history.note(at.now, event);
                }
                if self.phase == Phase::Entering {
                    self.phase = Phase::Working;
                    self.play_all(at, |act, scene| act.begin(scene));
                }
            }
            Incoming::Done => {}
            Incoming::Error(text) => {
                let connection = self.line.connection;
                at.history.note(at.now, Event::Complained { connection, text });
            }
            Incoming::Message(message) => self.hear(at, message)?,
        }
        Ok(())
    }

    fn hear(&mut self, at: &mut Surroundings<'_>, message: Arrived) -> Result<(), String> {
        let subscribed = self
            .line
            .subscribed(message.sid)
            .ok_or("a message came for a subscription that there is not")?;
        let event = match &message.unheard {
            Some(subject) => {
                let (inbox, subject) = (message.subject.clone(), subject.clone());
                Event::NoResponders { inbox, subject }
            }
            None => Event::Hear(Hear {
                listener: subscribed.listener,
                message: message.id,
                subject: message.subject.clone(),
                reply: message.reply.clone(),
                headers: message.headers,
                missed: message.missed,
            }),
        };
        at.history.note(at.now, event);
        self.play(at, subscribed.part, |act, scene| act.heard(scene, &message));
        Ok(())
    }

    /// Closes the transport, and comes back later.
    fn leave(&mut self, at: &mut Surroundings<'_>) {
        self.ended(at);
        self.is_closing = true;
        self.not_reachable(at.now);
    }

    fn ended(&mut self, at: &mut Surroundings<'_>) {
        let connection = self.line.connection;
        at.history.note(at.now, Event::Parted { connection });
        for seat in &mut self.seats {
            seat.act.ended();
            seat.wake_at = None;
        }
    }

    fn play_all(
        &mut self,
        at: &mut Surroundings<'_>,
        mut act: impl FnMut(&mut dyn Act, &mut Scene<'_>),
    ) {
        for part in 0..self.seats.len() {
            self.play(at, part, &mut act);
        }
    }

    /// Lets a part act.
    fn play(
        &mut self,
        at: &mut Surroundings<'_>,
        part: usize,
        act: impl FnOnce(&mut dyn Act, &mut Scene<'_>),
    ) {
        if self.phase != Phase::Working {
            return;
        }
        let seat = &mut self.seats[part];
        let mut scene = Scene {
            now: at.now,
            random: &mut self.random,
            history: at.history,
            numbers: at.numbers,
            line: &mut self.line,
            takes_headers: self.plan.headers,
            echo: self.plan.echo,
            part,
            wake_at: &mut seat.wake_at,
        };
        act(seat.act.as_mut(), &mut scene);
    }

    /// At the end everything that was sent is asked after.
    fn ask_at_the_end(&mut self) {
        let is_working = self.is_finishing && self.phase == Phase::Working;
        if is_working && !self.line.is_synced() && !self.line.is_asking() {
            self.line.ping();
        }
    }
}

impl Endpoint for Client {
    fn protocol(&self) -> Protocol {
        Protocol::Nats
    }

    fn put_behind(&mut self, proxy: Proxy) {
        self.line = Line::behind(Some(proxy));
    }

    fn reads_slowly(&self) -> bool {
        self.plan.slow
    }

    fn deadline(&self) -> Option<Time> {
        match self.phase {
            Phase::Away(until) => Some(until),
            Phase::Working => self.seats.iter().filter_map(|seat| seat.wake_at).min(),
            _ => None,
        }
    }

    fn woken(&mut self, at: &mut Surroundings<'_>) {
        for part in 0..self.seats.len() {
            if self.seats[part].wake_at.is_some_and(|due| due <= at.now) {
                self.seats[part].wake_at = None;
                self.play(at, part, |act, scene| act.woken(scene));
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
        self.line = self.line.renewed(at.numbers.connection);
        self.phase = Phase::Greeting;
        self.is_closing = false;
    }

    fn received(&mut self, at: &mut Surroundings<'_>, bytes: &[u8]) -> Result<(), String> {
        for what in self.line.received(bytes)? {
            if matches!(self.phase, Phase::Away(_) | Phase::Gone) {
                break;
            }
            self.take(at, what)?;
        }
        self.ask_at_the_end();
        Ok(())
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.line.output
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
        for seat in &mut self.seats {
            seat.act.finish();
        }
        self.ask_at_the_end();
    }

    fn call(&mut self, at: &mut Surroundings<'_>, round: Round) {
        if self.phase == Phase::Working {
            if round == Round::LastWords {
                self.play_all(at, |act, scene| act.last_words(scene));
            }
            self.line.ping();
        }
    }

    fn is_done(&self) -> bool {
        let is_done = || self.seats.iter().all(|seat| seat.act.is_done());
        let is_idle = self.phase == Phase::Working && self.line.is_synced();
        self.phase == Phase::Gone || (is_idle && is_done())
    }

    fn waits_for(&self) -> String {
        let Client { phase, seats, line, .. } = self;
        format!("{phase:?}, asking {}, {seats:?}", line.is_asking())
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

//! A client that speaks AMQP 0-9-1: declares the plan's topology, plays a role on each channel,
//! and reconnects when its connection is lost.

mod consumer;
mod context;
mod deliveries;
mod drain;
mod incoming;
mod lease_keeper;
mod producer;
mod proxy;
mod publishes;
mod queue_deleter;
mod relay;
mod requester;
mod responder;
mod topology;
mod wire;

use crate::canary::Canary;
use crate::client::endpoint::RETURN_MAX;
use crate::client::{Endpoint, PASSWORD, Surroundings, USER};
use crate::history::Event;
use crate::plan::amqp091::Role;
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::Protocol;
use angarium_protocol::amqp091::codec::Method;
use angarium_protocol::amqp091::frame;
use context::{Asked, Behaviour, Context, Leave};
use drain::Drain;
use incoming::{Incoming, Way};
use proxy::Proxy;
use std::collections::VecDeque;
use std::time::Duration;
use wire::Wire;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not connected; reconnects at the time.
    Away(Time),
    /// Connected; the handshake is not complete.
    Greeting,
    /// Open; each role acts once its channel is set up.
    Working,
    /// connection.close was sent.
    Leaving,
    /// Closed for good.
    Gone,
}

/// A role on its channel.
#[derive(Debug)]
struct Actor {
    role: Box<dyn Behaviour>,
    asked: VecDeque<Asked>,
    wake_at: Option<Time>,
    /// The queue that only this channel declares.
    own_queue: Option<usize>,
    is_set_up: bool,
}

/// One client that speaks AMQP 0-9-1.
#[derive(Debug)]
pub(super) struct Client {
    /// Its roles, by channel number from 1.
    actors: Vec<Actor>,
    phase: Phase,
    /// The connection's bytes.
    wire: Wire,
    random: Random,
    heartbeat: Option<Duration>,
    next_heartbeat: Option<Time>,
    leave: Leave,
    /// It starts nothing new.
    is_finishing: bool,
    /// It does not reconnect.
    is_retiring: bool,
}

impl Client {
    /// A client that plays `roles`, and first connects at `start`.
    pub(super) fn new(roles: &[Role], start: Time, random: Random) -> Client {
        Client::with(roles.iter().map(Actor::new).collect(), start, random)
    }

    /// The client that empties all queues.
    pub(super) fn drain(start: Time, random: Random) -> Client {
        Client::with(vec![Actor::of(Box::new(Drain::default()), None)], start, random)
    }

    fn with(actors: Vec<Actor>, start: Time, random: Random) -> Client {
        Client {
            actors,
            phase: Phase::Away(start),
            wire: Wire::default(),
            random,
            heartbeat: None,
            next_heartbeat: None,
            leave: Leave::No,
            is_finishing: false,
            is_retiring: false,
        }
    }

    /// The connection has ended.
    fn ended(&mut self, at: &mut Surroundings<'_>, synced: bool) {
        for actor in &mut self.actors {
            actor.role.ended(at.history, at.now, synced);
        }
    }

    fn close(&mut self) {
        let method = Method::ConnectionClose {
            reply_code: 200,
            reply_text: "goodbye",
            class_id: 0,
            method_id: 0,
        };
        self.wire.send_connection(&method);
        self.phase = Phase::Leaving;
    }

    /// Handles what came for the connection.
    fn take(&mut self, at: &mut Surroundings<'_>, what: Incoming) -> Result<(), String> {
        match what {
            Incoming::Start => self.start(),
            Incoming::Tune { frame_max, heartbeat } => self.tune(at.now, frame_max, heartbeat),
            Incoming::Opened => self.set_up(at),
            Incoming::ConnectionClosed { code, text } => {
                at.history.note(at.now, Event::Refused { code, text });
                self.wire.send_connection(&Method::ConnectionCloseOk {});
                self.ended(at, false);
                self.away(at.now);
            }
            Incoming::Goodbye => {
                self.ended(at, true);
                self.away(at.now);
            }
            Incoming::Notice => {}
            other => return Err(format!("{other:?} came on no channel")),
        }
        Ok(())
    }

    /// Handles what came for the channel of one of its roles.
    fn take_on_channel(
        &mut self,
        at: &mut Surroundings<'_>,
        actor: usize,
        what: Incoming,
    ) -> Result<(), String> {
        match what {
            Incoming::Answer { messages } => {
                let asked = self.actors[actor].asked.pop_front().ok_or("an answer to nothing")?;
                self.answered(at, actor, asked, messages);
            }
            Incoming::Message(message) => {
                if matches!(message.way, Way::Got) {
                    self.actors[actor].asked.pop_front();
                }
                self.play(at, actor, |role, context| role.arrived(context, &message));
            }
            Incoming::Confirm { tag, multiple, accepted } => {
                self.play(at, actor, |role, context| {
                    role.confirmed(context, tag, multiple, accepted)
                });
            }
            Incoming::Cancelled => {
                // The queue is gone: reconnect and declare it again.
                if self.phase == Phase::Working {
                    self.close();
                }
            }
            Incoming::ChannelClosed { code, text } => {
                at.history.note(at.now, Event::Refused { code, text });
                if self.phase != Phase::Leaving {
                    let number = channel_of(actor);
                    self.wire.channel(number).send(&Method::ChannelCloseOk {});
                    self.actors[actor].role.ended(at.history, at.now, false);
                    self.close();
                }
            }
            other => return Err(format!("{other:?} came on a channel")),
        }
        Ok(())
    }

    fn away(&mut self, now: Time) {
        self.leave = Leave::Abruptly;
        self.stay_away(now);
    }

    /// Disconnects for a while or, when retiring, for good.
    fn stay_away(&mut self, now: Time) {
        if self.is_retiring {
            self.phase = Phase::Gone;
        } else {
            self.not_reachable(now);
        }
    }

    fn start(&mut self) {
        let response = format!("\0{USER}\0{PASSWORD}");
        let wire = &mut self.wire;
        wire::with_table(
            |table| {
                table.text("product", "simulated");
                table.table("capabilities", |capabilities| {
                    for name in ["publisher_confirms", "basic.nack", "consumer_cancel_notify"] {
                        capabilities.bool(name, true);
                    }
                    capabilities.bool("connection.blocked", true);
                    capabilities.bool("authentication_failure_close", true);
                });
            },
            |client_properties| {
                wire.send_connection(&Method::ConnectionStartOk {
                    client_properties,
                    mechanism: "PLAIN",
                    response: response.as_bytes(),
                    locale: "en_US",
                });
            },
        );
    }

    fn tune(&mut self, now: Time, frame_max: u32, heartbeat: u16) {
        let wish = *self.random.pick(&[4096, 5000, 16_384, 131_072]);
        let frame_max = if frame_max == 0 { wish } else { wish.min(frame_max) };
        let heartbeat = if self.random.percent(30) { heartbeat.clamp(1, 10) } else { 0 };
        self.wire.send_connection(&Method::ConnectionTuneOk {
            channel_max: 16,
            frame_max,
            heartbeat,
        });
        self.wire.frame_max = frame_max;
        self.heartbeat = (heartbeat > 0).then(|| Duration::from_millis(u64::from(heartbeat) * 500));
        self.next_heartbeat = self.heartbeat.map(|pause| now.plus(pause));
        self.wire.send_connection(&Method::ConnectionOpen {
            virtual_host: "/",
            capabilities: "",
            insist: false,
        });
    }

    /// Opens the channels and declares the plan's topology on each.
    fn set_up(&mut self, at: &mut Surroundings<'_>) {
        self.phase = Phase::Working;
        let plan = at.history.plan.clone();
        for (index, actor) in self.actors.iter_mut().enumerate() {
            let mut channel = self.wire.channel(channel_of(index));
            channel.send(&Method::ChannelOpen { out_of_band: "" });
            actor.asked.push_back(Asked::Done);
            topology::declare(&plan, actor.own_queue, &mut channel, &mut actor.asked);
            // Changes nothing; its answer shows that everything before is answered.
            let qos = Method::BasicQos { prefetch_size: 0, prefetch_count: 0, global: false };
            channel.send(&qos);
            actor.asked.push_back(Asked::Ready);
        }
    }

    fn answered(&mut self, at: &mut Surroundings<'_>, actor: usize, asked: Asked, messages: u32) {
        match asked {
            Asked::Done => {}
            Asked::Ready => {
                self.actors[actor].is_set_up = true;
                self.play(at, actor, |role, context| role.begin(context));
            }
            Asked::Depth(queue) => {
                let messages = u64::from(messages);
                at.history.note(at.now, Event::Depth { queue, messages });
                self.play(at, actor, |role, context| {
                    let count = u32::try_from(messages).unwrap_or(u32::MAX);
                    role.answered(context, Asked::Depth(queue), count);
                });
            }
            other => self.play(at, actor, |role, context| role.answered(context, other, messages)),
        }
    }

    /// Lets a role act, unless the connection is closing.
    fn play(
        &mut self,
        at: &mut Surroundings<'_>,
        actor: usize,
        act: impl FnOnce(&mut dyn Behaviour, &mut Context<'_>),
    ) {
        let Actor { role, asked, wake_at, is_set_up, .. } = &mut self.actors[actor];
        if self.phase != Phase::Working || !*is_set_up {
            return;
        }
        let mut leave = Leave::No;
        let mut context = Context {
            now: at.now,
            random: &mut self.random,
            history: at.history,
            numbers: at.numbers,
            asked,
            wire: self.wire.channel(channel_of(actor)),
            wake_at,
            wants_to_leave: &mut leave,
        };
        act(role.as_mut(), &mut context);
        match leave {
            Leave::No => {}
            Leave::Politely => self.close(),
            Leave::Abruptly => {
                self.ended(at, false);
                self.leave = Leave::Abruptly;
                self.not_reachable(at.now);
            }
        }
    }
}

impl Endpoint for Client {
    fn break_rule(&mut self, canary: Canary, random: Random) {
        self.wire = Wire::behind(Some(Proxy::new(canary, random)));
    }

    fn learns_why_closed(&self) -> bool {
        true
    }

    fn protocol(&self) -> Protocol {
        Protocol::Amqp091
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.wire.output
    }

    fn deadline(&self) -> Option<Time> {
        match self.phase {
            Phase::Away(until) => Some(until),
            Phase::Gone | Phase::Leaving => None,
            _ => {
                let actors = self.actors.iter().filter_map(|actor| actor.wake_at);
                actors.chain(self.next_heartbeat).min()
            }
        }
    }

    fn wants_connection(&self, now: Time) -> bool {
        matches!(self.phase, Phase::Away(until) if until <= now)
    }

    fn not_reachable(&mut self, now: Time) {
        let pause = self.random.between(10_000, RETURN_MAX);
        self.phase = Phase::Away(now.plus(Duration::from_micros(pause)));
    }

    fn connected(&mut self, _: &mut Surroundings<'_>) {
        self.phase = Phase::Greeting;
        self.wire = self.wire.renewed();
        self.wire.output.extend_from_slice(&frame::PROTOCOL_HEADER);
        for actor in &mut self.actors {
            actor.asked.clear();
            actor.wake_at = None;
            actor.is_set_up = false;
        }
        self.next_heartbeat = None;
        self.leave = Leave::No;
    }

    fn wants_to_close(&self) -> bool {
        self.leave == Leave::Abruptly
    }

    fn finish(&mut self) {
        self.is_finishing = true;
    }

    fn is_done(&self) -> bool {
        let is_done =
            |actor: &Actor| actor.is_set_up && actor.asked.is_empty() && actor.role.is_done();
        self.phase == Phase::Gone
            || (self.phase == Phase::Working && self.actors.iter().all(is_done))
    }

    fn waits_for(&self) -> String {
        let mut text = format!("{:?}", self.phase);
        for actor in &self.actors {
            text += &format!(", asked {:?}, {}", actor.asked, actor.role.waits_for());
        }
        text
    }

    fn lost(&mut self, at: &mut Surroundings<'_>) {
        if !matches!(self.phase, Phase::Away(_) | Phase::Gone) {
            self.ended(at, false);
            self.stay_away(at.now);
        }
    }

    fn retire(&mut self, at: &mut Surroundings<'_>) {
        self.is_retiring = true;
        match self.phase {
            Phase::Working => self.close(),
            Phase::Leaving | Phase::Gone => {}
            _ => {
                self.ended(at, false);
                self.phase = Phase::Gone;
                self.leave = Leave::Abruptly;
            }
        }
    }

    fn is_gone(&self) -> bool {
        self.phase == Phase::Gone
    }

    fn received(&mut self, at: &mut Surroundings<'_>, bytes: &[u8]) -> Result<(), String> {
        let mut incoming = Vec::new();
        self.wire.received(bytes, &mut incoming)?;
        for (channel, what) in incoming {
            if matches!(self.phase, Phase::Away(_) | Phase::Gone) {
                break;
            }
            if channel == 0 {
                self.take(at, what)?;
            } else {
                let actor = usize::from(channel) - 1;
                if actor >= self.actors.len() {
                    return Err(format!("something came on channel {channel}, which is not open"));
                }
                self.take_on_channel(at, actor, what)?;
            }
        }
        Ok(())
    }

    fn woken(&mut self, at: &mut Surroundings<'_>) {
        if self.next_heartbeat.is_some_and(|due| due <= at.now) {
            frame::write_heartbeat(&mut self.wire.output);
            self.next_heartbeat = self.heartbeat.map(|pause| at.now.plus(pause));
        }
        for actor in 0..self.actors.len() {
            if self.actors[actor].wake_at.is_some_and(|due| due <= at.now) {
                self.actors[actor].wake_at = None;
                if !self.is_finishing {
                    self.play(at, actor, |role, context| role.woken(context));
                }
            }
        }
    }
}

/// The channel number of an actor.
fn channel_of(actor: usize) -> u16 {
    u16::try_from(actor + 1).expect("clients have few roles")
}

impl Actor {
    fn new(role: &Role) -> Actor {
        let (behaviour, own_queue): (Box<dyn Behaviour>, _) = match role {
            Role::Producer(plan) => (Box::new(producer::Producing::new(plan.clone())), None),
            Role::Consumer(plan) => {
                (Box::new(consumer::Consuming::new(plan.clone())), Some(plan.queue))
            }
            Role::Relay(plan) => (Box::new(relay::Relaying::new(plan.clone())), None),
            Role::QueueDeleter(plan) => {
                (Box::new(queue_deleter::QueueDeleting::new(plan.clone())), None)
            }
            Role::Requester(plan) => (Box::new(requester::Requesting::new(plan.clone())), None),
            Role::Responder(plan) => (Box::new(responder::Responding::new(plan.clone())), None),
            Role::LeaseKeeper(plan) => {
                (Box::new(lease_keeper::LeaseKeeping::new(plan.clone())), None)
            }
        };
        Actor::of(behaviour, own_queue)
    }

    fn of(role: Box<dyn Behaviour>, own_queue: Option<usize>) -> Actor {
        Actor { role, asked: VecDeque::new(), wake_at: None, own_queue, is_set_up: false }
    }
}

//! Clients. One that speaks AMQP 0-9-1 connects, declares the plan's topology, does what its role says,
//! comes back when it was cut off. Knows nothing about pipes and virtual time beyond the instants it is
//! given.

mod consumer;
mod context;
mod deliveries;
mod drain;
mod endpoint;
mod lease_keeper;
pub mod nats;
mod producer;
mod publishes;
mod queue_deleter;
mod relay;
mod requester;
mod responder;
mod topology;
pub mod wire;

pub use crate::client::context::{Asked, Behaviour, Leave, Numbers, Scene, Surroundings};
pub use drain::Drain;
pub use endpoint::{Endpoint, Round};

use crate::canary::Proxy;
use crate::history::Event;
use crate::plan::Role;
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::Protocol;
use angarium_protocol::amqp091::codec::Method;
use angarium_protocol::amqp091::frame;
use std::collections::VecDeque;
use std::time::Duration;
use wire::{Incoming, Wire};

/// The user that every client is.
pub const USER: &str = "sim";
/// Its password.
pub const PASSWORD: &str = "secret";
/// What the tag of a subscription to an inbox begins with.
pub const INBOX_TAG: &str = "inbox.";
/// Longest pause before a lost client comes back.
const RETURN_MAX: u64 = 300_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not connected; comes back at the time.
    Away(Time),
    /// Connected; shakes hands.
    Greeting,
    /// Its roles do what they say, each once its channel is set up.
    Working,
    /// Said goodbye.
    Leaving,
    /// Will not come back.
    Gone,
}

/// A role on its channel.
#[derive(Debug)]
struct Seat {
    role: Box<dyn Behaviour>,
    asked: VecDeque<Asked>,
    wake_at: Option<Time>,
    /// Declared on this channel alone: what is exclusive to it.
    own_queue: Option<usize>,
    is_set_up: bool,
}

/// A client for `role`, that first connects at `start`.
#[must_use]
pub fn attend(role: &Role, start: Time, random: Random) -> Box<dyn Endpoint> {
    match role {
        Role::Nats(plan) => Box::new(nats::Client::new(plan.clone(), start, random)),
        role => Box::new(Client::new(role, start, random)),
    }
}

/// One client that speaks AMQP 0-9-1.
#[derive(Debug)]
pub struct Client {
    /// Its roles, by channel from 1 on.
    seats: Vec<Seat>,
    phase: Phase,
    /// The connection's bytes.
    wire: Wire,
    random: Random,
    heartbeat: Option<Duration>,
    next_heartbeat: Option<Time>,
    leave: Leave,
    /// It begins nothing new.
    is_finishing: bool,
    /// It will not come back once its connection has ended.
    is_retiring: bool,
}

impl Client {
    /// A client for `role`, that first connects at `start`.
    fn new(role: &Role, start: Time, random: Random) -> Client {
        let roles = match role {
            Role::Several(roles) => roles.as_slice(),
            role => std::slice::from_ref(role),
        };
        Client::with(roles.iter().map(Seat::new).collect(), start, random)
    }

    /// The client that empties all queues.
    #[must_use]
    pub fn drain(start: Time, random: Random) -> Client {
        Client::with(vec![Seat::of(Box::new(Drain::default()), None)], start, random)
    }

    fn with(seats: Vec<Seat>, start: Time, random: Random) -> Client {
        Client {
            seats,
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
        for seat in &mut self.seats {
            seat.role.ended(at.history, at.now, synced);
        }
    }

    fn say_goodbye(&mut self) {
        let method = Method::ConnectionClose {
            reply_code: 200,
            reply_text: "goodbye",
            class_id: 0,
            method_id: 0,
        };
        self.wire.send_connection(&method);
        self.phase = Phase::Leaving;
    }

    /// Takes what concerns the connection.
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

    /// Takes what concerns the channel of one of its roles.
    fn take_on_channel(
        &mut self,
        at: &mut Surroundings<'_>,
        seat: usize,
        what: Incoming,
    ) -> Result<(), String> {
        match what {
            Incoming::Answer { messages } => {
                let asked = self.seats[seat].asked.pop_front().ok_or("an answer to nothing")?;
                self.answered(at, seat, asked, messages);
            }
            Incoming::Message(message) => {
                if matches!(message.way, wire::Way::Got) {
                    self.seats[seat].asked.pop_front();
                }
                self.play(at, seat, |role, scene| role.arrived(scene, &message));
            }
            Incoming::Confirm { tag, multiple, accepted } => {
                self.play(at, seat, |role, scene| role.confirmed(scene, tag, multiple, accepted));
            }
            Incoming::Cancelled { .. } => {
                // What the subscription was for is gone: begin anew.
                if self.phase == Phase::Working {
                    self.say_goodbye();
                }
            }
            Incoming::ChannelClosed { code, text } => {
                at.history.note(at.now, Event::Refused { code, text });
                if self.phase != Phase::Leaving {
                    let number = channel_of(seat);
                    self.wire.channel(number).send(&Method::ChannelCloseOk {});
                    self.seats[seat].role.ended(at.history, at.now, false);
                    self.say_goodbye();
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

    /// For a while, or for good.
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

    /// Opens the channels and declares on each what the plan has.
    fn set_up(&mut self, at: &mut Surroundings<'_>) {
        self.phase = Phase::Working;
        let plan = at.history.plan.clone();
        for (index, seat) in self.seats.iter_mut().enumerate() {
            let mut channel = self.wire.channel(channel_of(index));
            channel.send(&Method::ChannelOpen { out_of_band: "" });
            seat.asked.push_back(Asked::Done);
            topology::declare(&plan, seat.own_queue, &mut channel, &mut seat.asked);
            // Says nothing new, and its answer says that all before it is answered.
            let qos = Method::BasicQos { prefetch_size: 0, prefetch_count: 0, global: false };
            channel.send(&qos);
            seat.asked.push_back(Asked::Ready);
        }
    }

    fn answered(&mut self, at: &mut Surroundings<'_>, seat: usize, asked: Asked, messages: u32) {
        match asked {
            Asked::Done => {}
            Asked::Ready => {
                self.seats[seat].is_set_up = true;
                self.play(at, seat, |role, scene| role.begin(scene));
            }
            Asked::Depth(queue) => {
                let messages = u64::from(messages);
                at.history.note(at.now, Event::Depth { queue, messages });
                self.play(at, seat, |role, scene| {
                    let count = u32::try_from(messages).unwrap_or(u32::MAX);
                    role.answered(scene, Asked::Depth(queue), count);
                });
            }
            other => self.play(at, seat, |role, scene| role.answered(scene, other, messages)),
        }
    }

    /// Lets a role act, unless the client has said goodbye: what still arrives then is unread.
    fn play(
        &mut self,
        at: &mut Surroundings<'_>,
        seat: usize,
        act: impl FnOnce(&mut dyn Behaviour, &mut Scene<'_>),
    ) {
        let Seat { role, asked, wake_at, is_set_up, .. } = &mut self.seats[seat];
        if self.phase != Phase::Working || !*is_set_up {
            return;
        }
        let mut leave = Leave::No;
        let mut scene = Scene {
            now: at.now,
            random: &mut self.random,
            history: at.history,
            numbers: at.numbers,
            asked,
            wire: self.wire.channel(channel_of(seat)),
            wake_at,
            wants_to_leave: &mut leave,
        };
        act(role.as_mut(), &mut scene);
        match leave {
            Leave::No => {}
            Leave::Politely => self.say_goodbye(),
            Leave::Abruptly => {
                self.ended(at, false);
                self.leave = Leave::Abruptly;
                self.not_reachable(at.now);
            }
        }
    }
}

impl Endpoint for Client {
    fn put_behind(&mut self, proxy: Proxy) {
        self.wire = Wire::behind(Some(proxy));
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
                let seats = self.seats.iter().filter_map(|seat| seat.wake_at);
                seats.chain(self.next_heartbeat).min()
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
        for seat in &mut self.seats {
            seat.asked.clear();
            seat.wake_at = None;
            seat.is_set_up = false;
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
        let is_done = |seat: &Seat| seat.is_set_up && seat.asked.is_empty() && seat.role.is_done();
        self.phase == Phase::Gone
            || (self.phase == Phase::Working && self.seats.iter().all(is_done))
    }

    fn waits_for(&self) -> String {
        let mut text = format!("{:?}", self.phase);
        for seat in &self.seats {
            text += &format!(", asked {:?}, {}", seat.asked, seat.role.waits_for());
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
            Phase::Working => self.say_goodbye(),
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
                let seat = usize::from(channel) - 1;
                if seat >= self.seats.len() {
                    return Err(format!("something came on channel {channel}, which is not open"));
                }
                self.take_on_channel(at, seat, what)?;
            }
        }
        Ok(())
    }

    fn woken(&mut self, at: &mut Surroundings<'_>) {
        if self.next_heartbeat.is_some_and(|due| due <= at.now) {
            frame::write_heartbeat(&mut self.wire.output);
            self.next_heartbeat = self.heartbeat.map(|pause| at.now.plus(pause));
        }
        for seat in 0..self.seats.len() {
            if self.seats[seat].wake_at.is_some_and(|due| due <= at.now) {
                self.seats[seat].wake_at = None;
                if !self.is_finishing {
                    self.play(at, seat, |role, scene| role.woken(scene));
                }
            }
        }
    }
}

/// The number of a seat's channel.
fn channel_of(seat: usize) -> u16 {
    u16::try_from(seat + 1).expect("clients have few roles")
}

impl Seat {
    fn new(role: &Role) -> Seat {
        let (behaviour, own_queue): (Box<dyn Behaviour>, _) = match role {
            Role::Producer(plan) => (Box::new(producer::Producing::new(plan.clone())), None),
            Role::Consumer(plan) => {
                (Box::new(consumer::Consuming::new(plan.clone())), Some(plan.queue))
            }
            Role::Relay(plan) => (Box::new(relay::Relaying::new(plan.clone())), None),
            Role::Meddler(plan) => (Box::new(queue_deleter::Meddling::new(plan.clone())), None),
            Role::Requester(plan) => (Box::new(requester::Requesting::new(plan.clone())), None),
            Role::Responder(plan) => (Box::new(responder::Responding::new(plan.clone())), None),
            Role::Lodger(plan) => (Box::new(lease_keeper::Lodging::new(plan.clone())), None),
            Role::Several(_) => unreachable!("roles of one connection are listed flat"),
            Role::Nats(_) => unreachable!("a client of another protocol"),
        };
        Seat::of(behaviour, own_queue)
    }

    fn of(role: Box<dyn Behaviour>, own_queue: Option<usize>) -> Seat {
        Seat { role, asked: VecDeque::new(), wake_at: None, own_queue, is_set_up: false }
    }
}

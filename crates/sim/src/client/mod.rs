//! A client: connects, declares the plan's topology, does what its role says, comes back when it was
//! cut off. Knows nothing about pipes and virtual time beyond the instants it is given.

mod consumer;
mod drain;
mod meddler;
mod producer;
mod relay;
mod topology;
pub mod wire;

pub use drain::Drain;

use crate::canary::Proxy;
use crate::history::{Event, History};
use crate::plan::{Plan, Role};
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Table};
use angarium_protocol::amqp091::frame;
use std::collections::VecDeque;
use std::time::Duration;
use wire::{Incoming, Message, Wire};

/// The user that every client is.
pub const USER: &str = "sim";
/// Its password.
pub const PASSWORD: &str = "secret";
/// Longest pause before a lost client comes back.
const RETURN_MAX: u64 = 300_000;

/// Numbers that must be unique in a run.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Of the last consumer.
    pub consumer: u32,
    /// Of the last producer.
    pub producer: u32,
    /// Of the last transaction.
    pub transaction: u32,
}

/// What a client can reach during one call.
pub struct Surroundings<'a> {
    /// The time.
    pub now: Time,
    /// Where everything is noted.
    pub history: &'a mut History,
    /// Unique numbers.
    pub numbers: &'a mut Numbers,
}

/// What a role can reach: its client's connection and surroundings.
pub struct Scene<'a> {
    /// The time.
    pub now: Time,
    /// The client's own chance.
    pub random: &'a mut Random,
    /// Where everything is noted.
    pub history: &'a mut History,
    /// Unique numbers.
    pub numbers: &'a mut Numbers,
    /// What was asked for and is not answered.
    asked: &'a mut VecDeque<Asked>,
    /// The connection.
    pub wire: &'a mut Wire,
    /// When the role wants to be woken; `None`: not before something arrives.
    pub wake_at: &'a mut Option<Time>,
    /// Set by a role that wants its connection closed.
    pub wants_to_leave: &'a mut Leave,
}

/// How a client ends its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leave {
    /// Not at all.
    #[default]
    No,
    /// By connection.close.
    Politely,
    /// By dropping the transport.
    Abruptly,
}

/// A request whose answer is awaited; answers come in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Something whose answer only says that it is done.
    Done,
    /// The client's last declaration: the role begins.
    Ready,
    /// The depth of a queue.
    Depth(usize),
    /// basic.get, on behalf of a consumer.
    Get,
    /// tx.commit.
    Commit(u32),
    /// tx.rollback.
    Rollback,
    /// basic.cancel.
    Cancel,
}

/// What a client does once it is connected.
pub trait Behaviour: std::fmt::Debug {
    /// Connected, channel open, topology declared.
    fn begin(&mut self, scene: &mut Scene<'_>);
    /// A message was delivered, got or returned.
    fn arrived(&mut self, scene: &mut Scene<'_>, message: &Message);
    /// A request was answered.
    fn answered(&mut self, scene: &mut Scene<'_>, asked: Asked, messages: u32);
    /// A publish was confirmed.
    fn confirmed(&mut self, _: &mut Scene<'_>, _tag: u64, _multiple: bool, _accepted: bool) {}
    /// The time asked for has come.
    fn woken(&mut self, scene: &mut Scene<'_>);
    /// The connection has ended; `synced`: after the broker had processed everything.
    fn ended(&mut self, history: &mut History, now: Time, synced: bool);
    /// From now on only what was begun is brought to its end.
    fn finish(&mut self) {}
    /// Whether nothing is under way that the broker has to answer.
    fn is_done(&self) -> bool;
    /// Why it may be stuck, if it is not done.
    fn waits_for(&self) -> String {
        format!("{self:?}")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not connected; comes back at the time.
    Away(Time),
    /// Connected; shakes hands.
    Greeting,
    /// Does what its role says.
    Working,
    /// Said goodbye.
    Leaving,
    /// Will not come back.
    Gone,
}

/// One client.
#[derive(Debug)]
pub struct Client {
    role: Box<dyn Behaviour>,
    phase: Phase,
    /// The connection's bytes.
    pub wire: Wire,
    asked: VecDeque<Asked>,
    random: Random,
    wake_at: Option<Time>,
    heartbeat: Option<Duration>,
    next_heartbeat: Option<Time>,
    leave: Leave,
    /// Declared by this client alone: what is exclusive to it.
    own_queue: Option<usize>,
    /// It will not come back once its connection has ended.
    is_retiring: bool,
}

impl Client {
    /// A client for `role`, that first connects at `start`.
    #[must_use]
    pub fn new(role: &Role, start: Time, random: Random) -> Client {
        let (behaviour, own_queue): (Box<dyn Behaviour>, _) = match role {
            Role::Producer(plan) => (Box::new(producer::Producing::new(plan.clone())), None),
            Role::Consumer(plan) => {
                (Box::new(consumer::Consuming::new(plan.clone())), Some(plan.queue))
            }
            Role::Relay(plan) => (Box::new(relay::Relaying::new(plan.clone())), None),
            Role::Meddler(plan) => (Box::new(meddler::Meddling::new(plan.clone())), None),
        };
        Client::with(behaviour, own_queue, start, random)
    }

    /// The client that empties all queues.
    #[must_use]
    pub fn drain(start: Time, random: Random) -> Client {
        Client::with(Box::new(Drain::default()), None, start, random)
    }

    fn with(
        role: Box<dyn Behaviour>,
        own_queue: Option<usize>,
        start: Time,
        random: Random,
    ) -> Client {
        Client {
            role,
            phase: Phase::Away(start),
            wire: Wire::default(),
            asked: VecDeque::new(),
            random,
            wake_at: None,
            heartbeat: None,
            next_heartbeat: None,
            leave: Leave::No,
            own_queue,
            is_retiring: false,
        }
    }

    /// Puts a proxy between it and its connections.
    pub fn put_behind(&mut self, proxy: Proxy) {
        self.wire = Wire::behind(Some(proxy));
    }

    /// When [`Client::woken`] is to be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        match self.phase {
            Phase::Away(until) => Some(until),
            Phase::Gone | Phase::Leaving => None,
            _ => [self.wake_at, self.next_heartbeat].into_iter().flatten().min(),
        }
    }

    /// Whether it wants to be connected now.
    #[must_use]
    pub fn wants_connection(&self, now: Time) -> bool {
        matches!(self.phase, Phase::Away(until) if until <= now)
    }

    /// Puts the next attempt off.
    pub fn not_reachable(&mut self, now: Time) {
        let pause = self.random.between(10_000, RETURN_MAX);
        self.phase = Phase::Away(now.plus(Duration::from_micros(pause)));
    }

    /// It is connected and speaks first.
    pub fn connected(&mut self) {
        self.phase = Phase::Greeting;
        self.wire = self.wire.renewed();
        self.wire.output.extend_from_slice(&frame::PROTOCOL_HEADER);
        self.asked.clear();
        self.wake_at = None;
        self.next_heartbeat = None;
        self.leave = Leave::No;
    }

    /// Whether it wants its end of the transport closed, all output sent.
    #[must_use]
    pub fn wants_to_close(&self) -> bool {
        self.leave == Leave::Abruptly
    }

    /// From now on it only brings to an end what it began.
    pub fn finish(&mut self) {
        self.role.finish();
    }

    /// Whether nothing of it is under way.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Gone)
            || (self.phase == Phase::Working && self.asked.is_empty() && self.role.is_done())
    }

    /// What it waits for, for the report of a run that got stuck.
    #[must_use]
    pub fn waits_for(&self) -> String {
        format!("{:?}, asked {:?}, {}", self.phase, self.asked, self.role.waits_for())
    }

    /// The transport is gone.
    pub fn lost(&mut self, at: &mut Surroundings<'_>) {
        if !matches!(self.phase, Phase::Away(_) | Phase::Gone) {
            self.role.ended(at.history, at.now, false);
            self.stay_away(at.now);
        }
    }

    /// Says goodbye for good.
    pub fn retire(&mut self, at: &mut Surroundings<'_>) {
        self.is_retiring = true;
        match self.phase {
            Phase::Working => self.say_goodbye(),
            Phase::Leaving | Phase::Gone => {}
            _ => {
                self.role.ended(at.history, at.now, false);
                self.phase = Phase::Gone;
                self.leave = Leave::Abruptly;
            }
        }
    }

    /// Whether it has said goodbye for good, and was answered.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.phase == Phase::Gone
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

    /// Bytes arrived. An error is a broken promise of the broker.
    pub fn received(&mut self, at: &mut Surroundings<'_>, bytes: &[u8]) -> Result<(), String> {
        let mut incoming = Vec::new();
        self.wire.received(bytes, &mut incoming)?;
        for what in incoming {
            if matches!(self.phase, Phase::Away(_) | Phase::Gone) {
                break;
            }
            self.take(at, what)?;
        }
        Ok(())
    }

    fn take(&mut self, at: &mut Surroundings<'_>, what: Incoming) -> Result<(), String> {
        match what {
            Incoming::Start => self.start(),
            Incoming::Tune { frame_max, heartbeat } => self.tune(at.now, frame_max, heartbeat),
            Incoming::Opened => self.set_up(at),
            Incoming::Answer { messages } => {
                let asked = self.asked.pop_front().ok_or("an answer to nothing")?;
                self.answered(at, asked, messages);
            }
            Incoming::Message(message) => {
                if matches!(message.way, wire::Way::Got) {
                    self.asked.pop_front();
                }
                self.play(at, |role, scene| role.arrived(scene, &message));
            }
            Incoming::Confirm { tag, multiple, accepted } => {
                self.play(at, |role, scene| role.confirmed(scene, tag, multiple, accepted));
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
                    self.wire.send(&Method::ChannelCloseOk {});
                    self.role.ended(at.history, at.now, false);
                    self.say_goodbye();
                }
            }
            Incoming::ConnectionClosed { code, text } => {
                at.history.note(at.now, Event::Refused { code, text });
                self.wire.send_connection(&Method::ConnectionCloseOk {});
                self.role.ended(at.history, at.now, false);
                self.away(at.now);
            }
            Incoming::Goodbye => {
                self.role.ended(at.history, at.now, true);
                self.away(at.now);
            }
            Incoming::Notice => {}
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

    /// Opens the channel and declares what the plan has.
    fn set_up(&mut self, at: &mut Surroundings<'_>) {
        let plan = at.history.plan.clone();
        self.wire.send(&Method::ChannelOpen { out_of_band: "" });
        self.asked.push_back(Asked::Done);
        topology::declare(&plan, self.own_queue, &mut self.wire, &mut self.asked);
        // Says nothing new, and its answer says that all before it is answered.
        self.wire.send(&Method::BasicQos { prefetch_size: 0, prefetch_count: 0, global: false });
        self.asked.push_back(Asked::Ready);
    }

    fn answered(&mut self, at: &mut Surroundings<'_>, asked: Asked, messages: u32) {
        match asked {
            Asked::Done => {}
            Asked::Ready => {
                self.phase = Phase::Working;
                self.play(at, |role, scene| role.begin(scene));
            }
            Asked::Depth(queue) => {
                let messages = u64::from(messages);
                at.history.note(at.now, Event::Depth { queue, messages });
                self.play(at, |role, scene| {
                    let count = u32::try_from(messages).unwrap_or(u32::MAX);
                    role.answered(scene, Asked::Depth(queue), count);
                });
            }
            other => self.play(at, |role, scene| role.answered(scene, other, messages)),
        }
    }

    /// The time that [`Client::deadline`] named has come.
    pub fn woken(&mut self, at: &mut Surroundings<'_>) {
        if self.next_heartbeat.is_some_and(|due| due <= at.now) {
            frame::write_heartbeat(&mut self.wire.output);
            self.next_heartbeat = self.heartbeat.map(|pause| at.now.plus(pause));
        }
        if self.wake_at.is_some_and(|due| due <= at.now) {
            self.wake_at = None;
            self.play(at, |role, scene| role.woken(scene));
        }
    }

    /// Lets the role act, unless the client has said goodbye: what still arrives then is unread.
    fn play(
        &mut self,
        at: &mut Surroundings<'_>,
        act: impl FnOnce(&mut dyn Behaviour, &mut Scene<'_>),
    ) {
        if self.phase != Phase::Working {
            return;
        }
        let mut leave = Leave::No;
        let mut scene = Scene {
            now: at.now,
            random: &mut self.random,
            history: at.history,
            numbers: at.numbers,
            asked: &mut self.asked,
            wire: &mut self.wire,
            wake_at: &mut self.wake_at,
            wants_to_leave: &mut leave,
        };
        act(self.role.as_mut(), &mut scene);
        match leave {
            Leave::No => {}
            Leave::Politely => self.say_goodbye(),
            Leave::Abruptly => {
                self.role.ended(at.history, at.now, false);
                self.leave = Leave::Abruptly;
                self.not_reachable(at.now);
            }
        }
    }
}

impl Scene<'_> {
    /// Sends a request and notes what its answer is for.
    pub fn ask(&mut self, method: &Method<'_>, asked: Asked) {
        self.wire.send(method);
        self.asked.push_back(asked);
    }

    /// Asks how many messages a queue has; also a way to learn that all before was processed.
    pub fn ask_depth(&mut self, queue: usize) {
        let name = self.history.plan.queues[queue].name.clone();
        let method = Method::QueueDeclare {
            ticket: 0,
            queue: &name,
            passive: true,
            durable: false,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments: Table::default(),
        };
        self.ask(&method, Asked::Depth(queue));
    }

    /// Notes an event.
    pub fn note(&mut self, event: Event) {
        self.history.note(self.now, event);
    }

    /// Wakes the role within `micros`, or earlier if it is to be woken earlier already.
    pub fn wake_within(&mut self, micros: u64) {
        let pause = self.random.below(micros) + 1;
        let due = self.now.plus(Duration::from_micros(pause));
        *self.wake_at = Some(self.wake_at.map_or(due, |earlier| earlier.min(due)));
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.history.plan
    }
}

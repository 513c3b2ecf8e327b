//! A client that speaks AMQP 0-9-1: declares the plan's topology, plays a role on each channel,
//! and reconnects when its connection is lost.

mod channel;
mod consumer;
mod declaring;
mod drain;
mod incoming;
mod producer;
mod proxy;
mod relay;
mod requests;
mod topology;
mod wire;

use super::context::{Activity, Phase, Presence, Surroundings};
use super::endpoint::{Endpoint, PASSWORD, USER};
use crate::canary::Canary;
use crate::history::{Ending, Event};
use crate::plan::amqp091::Role;
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::Protocol;
use angarium_protocol::amqp091::codec::Method;
use angarium_protocol::amqp091::frame;
use channel::{Asked, Behaviour, Channel, Context, Leave, Open};
use incoming::{Incoming, Message, Way};
use proxy::Proxy;
use std::time::Duration;
use wire::Wire;

/// What a client says in connection.start-ok that it can do.
const CAPABILITIES: [&str; 5] = [
    "publisher_confirms",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "authentication_failure_close",
];

/// A role on its channel.
#[derive(Debug)]
struct Actor {
    role: Box<dyn Behaviour>,
    open: Open,
    activity: Activity,
}

/// One client that speaks AMQP 0-9-1.
#[derive(Debug)]
pub(super) struct Client {
    /// Its roles, by channel number from 1.
    actors: Vec<Actor>,
    presence: Presence,
    wire: Wire,
    heartbeat: Option<Duration>,
    next_heartbeat: Option<Time>,
    /// It does not reconnect.
    is_retiring: bool,
}

impl Client {
    /// A client that plays `roles`, and first connects at `start`.
    pub(super) fn new(roles: &[Role], start: Time, random: Random) -> Client {
        Client::with(roles.iter().map(behaviour).collect(), start, random)
    }

    /// The client that empties all queues.
    pub(super) fn drain(start: Time, random: Random) -> Client {
        Client::with(vec![Box::new(drain::Drain::default())], start, random)
    }

    fn with(roles: Vec<Box<dyn Behaviour>>, start: Time, random: Random) -> Client {
        let actor = |role| Actor { role, open: Open::default(), activity: Activity::default() };
        Client {
            actors: roles.into_iter().map(actor).collect(),
            presence: Presence::new(Protocol::Amqp, start, random),
            wire: Wire::default(),
            heartbeat: None,
            next_heartbeat: None,
            is_retiring: false,
        }
    }

    /// The connection has ended; `synced`: after the broker had processed everything. Disconnects for
    /// a while or, when retiring, for good.
    fn ended(&mut self, at: &mut Surroundings<'_>, synced: bool) {
        for actor in &mut self.actors {
            actor.ended(at, synced);
        }
        if self.is_retiring {
            self.presence.phase = Phase::Gone;
        } else {
            self.presence.stay_away(at.now);
        }
    }

    fn close(&mut self) {
        let method = Method::ConnectionClose {
            reply_code: 200,
            reply_text: "goodbye",
            class_id: 0,
            method_id: 0,
        };
        self.wire.send(&method);
        self.presence.phase = Phase::Leaving;
    }

    /// Handles what came for the connection.
    fn take(&mut self, at: &mut Surroundings<'_>, what: Incoming) -> Result<(), String> {
        match what {
            Incoming::Start => self.start(),
            Incoming::Tune { frame_max, heartbeat } => self.tune(at.now, frame_max, heartbeat),
            Incoming::Opened => self.set_up(at),
            Incoming::ConnectionClosed { code, text } => {
                at.note(Event::Refused { code, text });
                self.wire.send(&Method::ConnectionCloseOk {});
                self.ended(at, false);
                self.presence.is_closing = true;
            }
            Incoming::Goodbye => {
                self.ended(at, true);
                self.presence.is_closing = true;
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
                let asked =
                    self.actors[actor].open.asked.pop_front().ok_or("an answer to nothing")?;
                self.answered(at, actor, asked, messages);
            }
            Incoming::Message(Message { way: Way::Returned, id, .. }) => {
                self.play(at, actor, |_, context| {
                    if let Some(message) = id {
                        context.note(Event::Return { message });
                    }
                });
            }
            Incoming::Message(message) => {
                if matches!(message.way, Way::Got) {
                    self.actors[actor].open.asked.pop_front();
                }
                self.play(at, actor, |role, context| role.arrived(context, &message));
            }
            Incoming::Confirm { tag, multiple, accepted } => {
                self.play(at, actor, |_, context| context.note_confirm(tag, multiple, accepted));
            }
            Incoming::Cancelled => {
                // The queue is gone: reconnect and declare it again.
                if self.presence.is_working() {
                    self.close();
                }
            }
            Incoming::ChannelClosed { code, text } => {
                at.note(Event::Refused { code, text });
                if self.presence.phase != Phase::Leaving {
                    self.wire.send_on(channel_of(actor), &Method::ChannelCloseOk {});
                    self.actors[actor].ended(at, false);
                    self.close();
                }
            }
            other => return Err(format!("{other:?} came on a channel")),
        }
        Ok(())
    }

    fn start(&mut self) {
        let response = format!("\0{USER}\0{PASSWORD}");
        let wire = &mut self.wire;
        wire::with_table(
            |table| {
                table.text("product", "simulated");
                table.table("capabilities", |capabilities| {
                    for name in CAPABILITIES {
                        capabilities.bool(name, true);
                    }
                });
            },
            |client_properties| {
                wire.send(&Method::ConnectionStartOk {
                    client_properties,
                    mechanism: "PLAIN",
                    response: response.as_bytes(),
                    locale: "en_US",
                });
            },
        );
    }

    fn tune(&mut self, now: Time, frame_max: u32, heartbeat: u16) {
        let random = &mut self.presence.random;
        let wish = *random.pick(&[4096, 5000, 16_384, 131_072]);
        let frame_max = if frame_max == 0 { wish } else { wish.min(frame_max) };
        let heartbeat = if random.percent(30) { heartbeat.clamp(1, 10) } else { 0 };
        self.wire.send(&Method::ConnectionTuneOk { channel_max: 16, frame_max, heartbeat });
        self.wire.frame_max = frame_max;
        self.heartbeat = (heartbeat > 0).then(|| Duration::from_millis(u64::from(heartbeat) * 500));
        self.next_heartbeat = self.heartbeat.map(|pause| now.plus(pause));
        let (virtual_host, capabilities, insist) = ("/", "", false);
        self.wire.send(&Method::ConnectionOpen { virtual_host, capabilities, insist });
    }

    /// Opens the channels and declares the plan's topology on each.
    fn set_up(&mut self, at: &Surroundings<'_>) {
        self.presence.phase = Phase::Working;
        for (index, actor) in self.actors.iter_mut().enumerate() {
            let (wire, number, open) = (&mut self.wire, channel_of(index), &mut actor.open);
            let mut channel = Channel { wire, number, open };
            channel.ask(&Method::ChannelOpen { out_of_band: "" }, Asked::Done);
            topology::declare(&at.history.plan, actor.role.own_queue(), &mut channel);
            // Changes nothing; its answer shows that everything before is answered.
            channel.ask_prefetch(0, 0, Asked::Ready);
        }
    }

    fn answered(&mut self, at: &mut Surroundings<'_>, actor: usize, asked: Asked, messages: u32) {
        match asked {
            Asked::Done => return,
            Asked::Ready => {
                self.actors[actor].open.is_set_up = true;
                return self.play(at, actor, |role, context| role.begin(context));
            }
            Asked::Depth(queue) | Asked::Sync(queue) => {
                at.note(Event::Depth { queue, messages: messages.into() });
            }
            _ => {}
        }
        self.play(at, actor, |role, context| {
            if let Asked::Sync(_) = asked {
                for (consumer, _) in context.link.open.consumers.clone() {
                    context.note(Event::Synced { consumer });
                }
            }
            if let Asked::Commit(transaction) = asked {
                context.note(Event::Transaction { transaction, ending: Ending::Committed });
            }
            role.answered(context, asked, messages);
        });
    }

    /// Lets a role act, unless the connection is closing.
    fn play(
        &mut self,
        at: &mut Surroundings<'_>,
        actor: usize,
        act: impl FnOnce(&mut dyn Behaviour, &mut Context<'_>),
    ) {
        let Actor { role, open, activity } = &mut self.actors[actor];
        if !self.presence.is_working() || !open.is_set_up {
            return;
        }
        let channel = Channel { wire: &mut self.wire, number: channel_of(actor), open };
        let mut context = Context::new(at, &mut self.presence, activity, channel);
        act(role.as_mut(), &mut context);
        match open.leave.take() {
            None => {}
            Some(Leave::Politely) => self.close(),
            Some(Leave::Abruptly) => {
                self.ended(at, false);
                self.presence.is_closing = true;
            }
        }
    }
}

impl Endpoint for Client {
    fn break_rule(&mut self, canary: Canary, random: Random) {
        self.wire.proxy = Some(Proxy::new(canary, random));
    }

    fn presence(&mut self) -> &mut Presence {
        &mut self.presence
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.wire.output
    }

    fn wake_at(&self) -> Option<Time> {
        let actors = self.actors.iter().filter_map(|actor| actor.activity.wake_at);
        actors.chain(self.next_heartbeat).min()
    }

    fn connected(&mut self, _: &mut Surroundings<'_>) {
        self.presence.phase = Phase::Greeting;
        self.presence.is_closing = false;
        self.wire = self.wire.renewed();
        self.wire.output.extend_from_slice(&frame::PROTOCOL_HEADER);
        for actor in &mut self.actors {
            actor.open = Open::default();
            actor.activity = Activity::default();
        }
        self.next_heartbeat = None;
    }

    fn is_idle(&self) -> bool {
        let is_idle = |actor: &Actor| actor.open.is_answered() && actor.role.is_done();
        self.actors.iter().all(is_idle)
    }

    fn waits_for(&self) -> String {
        let mut text = format!("{:?}", self.presence.phase);
        for actor in &self.actors {
            text += &format!(", {:?}, {}", actor.open, actor.role.waits_for());
        }
        text
    }

    fn lost(&mut self, at: &mut Surroundings<'_>) {
        if self.presence.is_connected() {
            self.ended(at, false);
        }
    }

    fn retire(&mut self, at: &mut Surroundings<'_>) {
        self.is_retiring = true;
        match self.presence.phase {
            Phase::Working => self.close(),
            Phase::Leaving | Phase::Gone => {}
            _ => {
                self.ended(at, false);
                self.presence.is_closing = true;
            }
        }
    }

    fn received(&mut self, at: &mut Surroundings<'_>, bytes: &[u8]) -> Result<(), String> {
        for (channel, what) in self.wire.received(bytes)? {
            if !self.presence.is_connected() {
                break;
            }
            match usize::from(channel).checked_sub(1) {
                None => self.take(at, what)?,
                Some(actor) if actor < self.actors.len() => {
                    self.take_on_channel(at, actor, what)?
                }
                _ => return Err(format!("something came on channel {channel}, which is not open")),
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
            let due = self.actors[actor].activity.wake_at.take_if(|due| *due <= at.now);
            if due.is_some() && !self.presence.is_finishing {
                self.play(at, actor, |role, context| role.woken(context));
            }
        }
    }
}

impl Actor {
    /// The connection or channel has ended.
    fn ended(&mut self, at: &mut Surroundings<'_>, synced: bool) {
        self.role.ended(at);
        self.open.unconfirmed.clear();
        for (consumer, _) in self.open.consumers.drain(..) {
            if synced {
                at.note(Event::Synced { consumer });
            }
            at.note(Event::Ended { consumer });
        }
    }
}

/// The channel number of an actor.
fn channel_of(actor: usize) -> u16 {
    u16::try_from(actor + 1).expect("clients have few roles")
}

fn behaviour(role: &Role) -> Box<dyn Behaviour> {
    match role.clone() {
        Role::Producer(plan) => Box::new(producer::Producing { plan, total: 0, transaction: None }),
        Role::Consumer(plan) => {
            Box::new(consumer::Consuming { plan, held: Vec::new(), leaves_at: None })
        }
        Role::Relay(plan) => {
            Box::new(relay::Relaying { plan, held: Vec::new(), ending: Vec::new() })
        }
        Role::QueueDeleter(plan) => Box::new(plan),
        Role::Requester(plan) => {
            Box::new(requests::Requesting { plan, consumer: 0, total: 0, open: 0 })
        }
        Role::Responder(plan) => {
            Box::new(requests::Responding { plan, requests: Default::default() })
        }
        Role::LeaseKeeper(plan) => Box::new(declaring::LeaseKeeping { plan, asked: None }),
    }
}

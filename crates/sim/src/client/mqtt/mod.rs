//! A client that speaks MQTT 5: publishes and subscribes in a session that outlives its connections, and has
//! wills; or subscribes anew on each connection and looks at what is retained.

mod packets;
mod proxy;
mod publisher;

use super::context::{Phase, Presence, Surroundings, next};
use super::endpoint::{Endpoint, PASSWORD, Round, USER};
use crate::canary::Canary;
use crate::history::{Event, MessageId, MqttEvent};
use crate::payload;
use crate::plan::mqtt::Client as Plan;
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::Protocol;
use angarium_protocol::mqtt::codec::{
    Ack, Connect, FilterOptions, Packet, Properties, PropertiesWriter, PropertyId, Qos,
    RetainHandling, Subscribe, Version, Will,
};
use angarium_protocol::mqtt::frame::PacketType;
use proxy::Proxy;
use publisher::Publisher;
use std::collections::BTreeSet;
use std::time::Duration;

/// Time without a message after which none is expected any more.
const QUIET: Duration = Duration::from_secs(5);
/// Longest time for which an acknowledgement is held back, in microseconds.
const LATE_MAX: u64 = 200_000;
/// Longest pause before something is tried again, in microseconds.
const PAUSE_MAX: u64 = 500_000;
/// Packet identifier of SUBSCRIBE: above those of messages.
const SUBSCRIBE_ID: u16 = 60_000;
const NEVER: u32 = u32::MAX;
const WILL_LENGTH: usize = 20;

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    plan: Plan,
    presence: Presence,
    input: Vec<u8>,
    output: Vec<u8>,
    proxy: Option<Proxy>,
    /// The number of its connection, or of its subscription where that is a new one each time.
    number: u32,
    publisher: Publisher,
    /// The number of the source of its messages, of its wills, and the last message of each.
    producer: u32,
    last: u32,
    will_producer: u32,
    wills: u32,
    /// Packet identifiers of messages with QoS 2 that it has, and that were not released.
    received: BTreeSet<u16>,
    /// Acknowledgements that it holds back.
    held: Vec<(PacketType, u16)>,
    /// The broker has told it of its session.
    has_session: bool,
    is_subscribed: bool,
    asks_to_subscribe: bool,
    wake_at: Option<Time>,
    leaves_at: Option<Time>,
    /// When it was connected, or a message came.
    active_at: Time,
    is_quiet: bool,
}

impl Client {
    /// A client that first connects at `start`.
    pub(super) fn new(plan: Plan, start: Time, random: Random) -> Client {
        let topic = match &plan {
            Plan::Kept(kept) => format!("t/{}", kept.number),
            Plan::Watcher(_) => String::new(),
        };
        Client {
            plan,
            presence: Presence::new(Protocol::Mqtt, start, random),
            input: Vec::new(),
            output: Vec::new(),
            proxy: None,
            number: 0,
            publisher: Publisher::new(topic),
            producer: 0,
            last: 0,
            will_producer: 0,
            wills: 0,
            received: BTreeSet::new(),
            held: Vec::new(),
            has_session: false,
            is_subscribed: false,
            asks_to_subscribe: false,
            wake_at: None,
            leaves_at: None,
            active_at: start,
            is_quiet: false,
        }
    }

    fn is_kept(&self) -> bool {
        matches!(self.plan, Plan::Kept(_))
    }

    fn note(&self, at: &mut Surroundings<'_>, event: MqttEvent) {
        at.note(Event::Mqtt(event));
    }

    fn will(&self) -> MessageId {
        MessageId::new(self.will_producer, self.wills)
    }

    fn has_will(&self) -> bool {
        matches!(&self.plan, Plan::Kept(kept) if kept.has_will)
    }

    fn connect(&mut self, at: &mut Surroundings<'_>) {
        let (name, window) = match &self.plan {
            Plan::Kept(kept) => {
                let window = kept.subscribe.as_ref().map_or(10, |it| it.window);
                (format!("kept.{}", kept.number), window)
            }
            Plan::Watcher(watcher) => (format!("watcher.{}", watcher.number), 100),
        };
        let mut properties = PropertiesWriter::new();
        if self.is_kept() {
            properties.put_number(PropertyId::SessionExpiryInterval, NEVER);
        }
        properties.put_number(PropertyId::ReceiveMaximum, window.into());
        let topic = format!("t/{name}");
        let body = payload::make(self.will(), WILL_LENGTH);
        let will = Will {
            qos: Qos::ExactlyOnce,
            retain: false,
            properties: Properties::NONE,
            topic: &topic,
            payload: &body,
        };
        if self.has_will() {
            let message = self.will();
            self.note(at, MqttEvent::Published { message, qos: 2, is_retained: false });
        }
        let connect = Connect {
            version: Version::V5,
            clean_start: !self.is_kept(),
            keep_alive: 0,
            properties: properties.properties(),
            client_id: &name,
            will: self.has_will().then_some(will),
            user_name: Some(USER),
            password: Some(PASSWORD.as_bytes()),
        };
        Packet::Connect(Box::new(connect)).write(Version::V5, &mut self.output);
    }

    /// The broker lets it in.
    fn entered(&mut self, at: &mut Surroundings<'_>, session_present: bool) -> Result<(), String> {
        if self.is_kept() && self.has_session && !session_present {
            return Err(format!("the session of {:?} is gone", self.plan));
        }
        if !self.is_kept() && session_present {
            return Err("a clean session was there before".to_owned());
        }
        self.has_session = self.is_kept();
        self.presence.phase = Phase::Working;
        (self.active_at, self.is_quiet) = (at.now, false);
        self.publisher.resume(&mut self.output);
        self.subscribe(at);
        let life_max = match &self.plan {
            Plan::Kept(kept) => kept.life_max,
            Plan::Watcher(watcher) => Some(watcher.life_max),
        };
        let random = &mut self.presence.random;
        self.leaves_at =
            life_max.map(|max| at.now.plus(Duration::from_micros(1 + random.below(max))));
        self.wake_within(at.now, PAUSE_MAX);
        Ok(())
    }

    /// Subscribes, if it has to.
    fn subscribe(&mut self, at: &mut Surroundings<'_>) {
        let (qos, is_shared) = match &self.plan {
            Plan::Kept(kept) => match &kept.subscribe {
                Some(subscribe) => (subscribe.qos, subscribe.is_shared),
                None => return,
            },
            Plan::Watcher(watcher) => (watcher.qos, false),
        };
        if self.is_subscribed || self.asks_to_subscribe {
            return;
        }
        self.asks_to_subscribe = true;
        let retain_handling = match self.is_kept() {
            true => RetainHandling::Never,
            false => RetainHandling::Always,
        };
        let qos = Qos::of(qos).expect("plans have such");
        let options = FilterOptions { qos, retain_handling, ..FilterOptions::default() };
        let filter = if is_shared { "$share/group/t/#" } else { "t/#" };
        let subscribe = Subscribe {
            packet_id: SUBSCRIBE_ID,
            properties: Properties::NONE,
            filters: vec![(filter, options)],
        };
        subscribe.write(Version::V5, &mut self.output);
        if !self.is_kept() {
            self.note(at, MqttEvent::Watching { subscription: self.number });
        }
    }

    fn acknowledge(&mut self, packet_type: PacketType, packet_id: u16) {
        Ack::plain(packet_type, packet_id).write(Version::V5, &mut self.output);
    }

    /// Acknowledges now or later.
    fn acknowledge_at_some_time(&mut self, now: Time, packet_type: PacketType, packet_id: u16) {
        let late = match &self.plan {
            Plan::Kept(kept) => kept.subscribe.as_ref().map_or(0, |it| it.late_percent),
            Plan::Watcher(_) => 0,
        };
        // Once one is held back, those behind it are too: they are to come in their order.
        if !self.held.is_empty() || self.presence.random.percent(late) {
            self.held.push((packet_type, packet_id));
            return self.wake_within(now, LATE_MAX);
        }
        self.acknowledge(packet_type, packet_id);
    }

    fn wake_within(&mut self, now: Time, micros: u64) {
        let due = now.plus(Duration::from_micros(1 + self.presence.random.below(micros)));
        self.wake_at = Some(self.wake_at.map_or(due, |earlier| earlier.min(due)));
    }

    /// Publishes some messages.
    fn publish(&mut self, at: &mut Surroundings<'_>) {
        let Plan::Kept(kept) = &self.plan else { return };
        let Some(publishing) = kept.publish.clone() else { return };
        if self.producer == 0 {
            self.producer = next(&mut at.numbers.producer);
        }
        let burst = self.presence.random.between(1, publishing.window as u64);
        for _ in 0..burst {
            if self.publisher.len() >= publishing.window || self.last >= publishing.messages {
                return;
            }
            self.last += 1;
            let message = MessageId::new(self.producer, self.last);
            let random = &mut self.presence.random;
            let is_retained = random.percent(publishing.retain_percent);
            let length = random.index(publishing.body_max as usize + 1);
            self.note(at, MqttEvent::Published { message, qos: publishing.qos, is_retained });
            let qos = Qos::of(publishing.qos).expect("plans have such");
            self.publisher.publish(message, length, qos, is_retained, &mut self.output);
        }
    }

    /// Closes the transport without a word, and comes back later.
    fn leave(&mut self, at: &mut Surroundings<'_>) {
        self.ended(at);
        self.presence.is_closing = true;
        self.presence.stay_away(at.now);
    }

    fn ended(&mut self, at: &mut Surroundings<'_>) {
        if self.presence.is_working() {
            let will = self.has_will().then(|| self.will());
            self.note(at, MqttEvent::Ended { subscription: self.number, will });
        }
        self.held.clear();
        (self.wake_at, self.leaves_at) = (None, None);
    }

    /// What it does from time to time.
    fn act(&mut self, at: &mut Surroundings<'_>) {
        for (packet_type, packet_id) in std::mem::take(&mut self.held) {
            self.acknowledge(packet_type, packet_id);
        }
        self.subscribe(at);
        if self.presence.is_finishing {
            self.is_quiet = at.now.since(self.active_at) >= QUIET;
        } else {
            self.publish(at);
        }
        self.wake_within(at.now, PAUSE_MAX);
        if let Plan::Kept(kept) = &self.plan
            && let Some(publishing) = &kept.publish
        {
            let pause = publishing.pause_max;
            self.wake_within(at.now, pause);
        }
        let is_over = self.leaves_at.is_some_and(|leaves_at| leaves_at <= at.now);
        if is_over && !self.presence.is_finishing {
            self.leave(at);
        }
    }
}

impl Endpoint for Client {
    fn break_rule(&mut self, canary: Canary, random: Random) {
        self.proxy = Some(Proxy::new(canary, random));
    }

    fn presence(&mut self) -> &mut Presence {
        &mut self.presence
    }

    fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    fn woken(&mut self, at: &mut Surroundings<'_>) {
        if self.wake_at.take_if(|due| *due <= at.now).is_some() && self.presence.is_working() {
            self.act(at);
        }
    }

    fn connected(&mut self, at: &mut Surroundings<'_>) {
        self.input.clear();
        self.output.clear();
        self.number = next(&mut at.numbers.subscription);
        if self.has_will() {
            if self.will_producer == 0 {
                self.will_producer = next(&mut at.numbers.producer);
            }
            self.wills += 1;
        }
        self.asks_to_subscribe = false;
        if !self.is_kept() {
            self.is_subscribed = false;
            self.received.clear();
        }
        self.presence.phase = Phase::Greeting;
        self.presence.is_closing = false;
        self.connect(at);
    }

    fn received(&mut self, at: &mut Surroundings<'_>, bytes: &[u8]) -> Result<(), String> {
        self.input.extend_from_slice(bytes);
        self.take_packets(at)
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    fn lost(&mut self, at: &mut Surroundings<'_>) {
        if self.presence.is_connected() {
            self.ended(at);
            self.presence.stay_away(at.now);
        }
    }

    fn call(&mut self, _: &mut Surroundings<'_>, _: Round) {}

    fn is_idle(&self) -> bool {
        self.publisher.len() == 0
            && self.held.is_empty()
            && !self.asks_to_subscribe
            && self.is_quiet
    }

    fn waits_for(&self) -> String {
        format!("{self:?}")
    }

    fn retire(&mut self, at: &mut Surroundings<'_>) {
        if self.presence.is_connected() {
            self.ended(at);
        }
        self.presence.is_closing = true;
        self.presence.phase = Phase::Gone;
    }
}

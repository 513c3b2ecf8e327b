//! A client that speaks AMQP 1.0: takes messages from a queue as far as it gives credit, drains, settles
//! ranges, and returns some messages.

mod wire;

use super::context::{Phase, Presence, Surroundings, next};
use super::endpoint::Endpoint;
use crate::canary::{Canary, PERCENT};
use crate::history::{Consume, Delivery, Event, MessageId, Outcome};
use crate::plan::amqp10::Taker;
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::Protocol;
use angarium_protocol::amqp10::codec::{ACCEPTED, DeliveryState, Modified};
use angarium_protocol::amqp10::frame;
use std::time::Duration;
use wire::{FORCED, Incoming, Message, Wire};

/// Percentage of settles that are of all deliveries it holds.
const RANGE_PERCENT: u64 = 25;
/// How often it sends something at least.
const BEAT: Duration = Duration::from_secs(5);
/// The code of a shutdown, and that of other errors, in the words of AMQP 0-9-1.
const CONNECTION_FORCED: u16 = 320;
const FAILED: u16 = 506;

/// A delivery that it has not settled.
#[derive(Clone, Copy, Debug)]
struct Held {
    delivery_id: u32,
    message: MessageId,
}

/// Its link.
#[derive(Debug)]
struct Link {
    /// The number of the consumer.
    consumer: u32,
    /// Deliveries so far, and what drains counted as such.
    delivery_count: u32,
    /// The delivery-count up to which credit was given, and the highest that it ever was.
    limit: u32,
    highest: u32,
    held: Vec<Held>,
    is_draining: bool,
    /// Answers to drains that the canary has anticipated.
    anticipated: u32,
}

/// One client that speaks AMQP 1.0.
#[derive(Debug)]
pub(super) struct Client {
    plan: Taker,
    presence: Presence,
    wire: Wire,
    link: Option<Link>,
    wake_at: Option<Time>,
    leaves_at: Option<Time>,
    is_retiring: bool,
    /// Its queue is declared: producers publish only after they have declared all queues. The broker would
    /// make another one of that name.
    is_declared: bool,
    broken: Option<(Canary, Random)>,
}

impl Client {
    pub(super) fn new(plan: Taker, start: Time, random: Random) -> Client {
        Client {
            plan,
            presence: Presence::new(Protocol::Amqp, start, random),
            wire: Wire::default(),
            link: None,
            wake_at: None,
            leaves_at: None,
            is_retiring: false,
            is_declared: false,
            broken: None,
        }
    }

    /// Whether the canary acts now.
    fn breaks(&mut self, canary: Canary) -> bool {
        let broken = self.broken.as_mut().filter(|(broken, _)| *broken == canary);
        broken.is_some_and(|(_, random)| random.percent(PERCENT))
    }

    fn ended(&mut self, at: &mut Surroundings<'_>) {
        if let Some(link) = self.link.take() {
            at.note(Event::Ended { consumer: link.consumer });
        }
        self.presence.is_closing = true;
        if self.is_retiring {
            self.presence.phase = Phase::Gone;
        } else {
            self.presence.stay_away(at.now);
        }
    }

    fn take(&mut self, at: &mut Surroundings<'_>, what: Incoming) -> Result<(), String> {
        match what {
            Incoming::Authenticated => {
                self.presence.phase = Phase::Entering;
                let queue = at.history.plan.queues[self.plan.queue].name.clone();
                self.wire.attach(&format!("taker.{}", self.plan.queue), &queue);
            }
            Incoming::Attached => self.begin(at),
            Incoming::Flow { delivery_count, credit, drain } => {
                // While it leaves it passes over messages too.
                if (drain || credit == 0) && self.presence.is_working() {
                    self.drained(at, delivery_count);
                }
            }
            Incoming::Message(message) => self.arrived(at, message)?,
            Incoming::Gone { what, condition, text } => {
                if self.presence.phase == Phase::Leaving {
                    if what == "connection" {
                        self.ended(at);
                    }
                    return Ok(());
                }
                // Its queue may not be declared yet.
                let is_expected = self.presence.phase == Phase::Entering;
                if !is_expected {
                    let is_forced = condition == FORCED;
                    let code = if is_forced { CONNECTION_FORCED } else { FAILED };
                    at.note(Event::Refused { code, text: format!("{what}: {condition} {text}") });
                }
                self.ended(at);
            }
        }
        Ok(())
    }

    fn begin(&mut self, at: &mut Surroundings<'_>) {
        let consumer = next(&mut at.numbers.consumer);
        at.note(Event::Consume(Consume { consumer, queue: self.plan.queue, ..Consume::default() }));
        self.link = Some(Link {
            consumer,
            delivery_count: 0,
            limit: 0,
            highest: 0,
            held: Vec::new(),
            is_draining: false,
            anticipated: 0,
        });
        self.presence.phase = Phase::Working;
        let random = &mut self.presence.random;
        self.leaves_at =
            self.plan.life_max.map(|max| at.now.plus(Duration::from_micros(random.below(max))));
        self.give_credit(at, false);
        self.wake_soon(at.now);
    }

    fn wake_soon(&mut self, now: Time) {
        let pause = self.presence.random.below(self.plan.think_max) + 1;
        self.wake_at = Some(now.plus(Duration::from_micros(pause)));
    }

    /// Gives credit, which may be less than before.
    fn give_credit(&mut self, at: &mut Surroundings<'_>, drain: bool) {
        let credit = self.presence.random.below(u64::from(self.plan.credit_max) + 1) as u32;
        let credit = credit.max(drain.into());
        let Some(link) = &mut self.link else { return };
        link.limit = link.delivery_count.wrapping_add(credit);
        link.highest = link.highest.max(link.limit);
        self.wire.flow(link.delivery_count, credit, drain);
        if !drain {
            return;
        }
        link.is_draining = true;
        at.note(Event::Asking { consumer: link.consumer });
        if self.breaks(Canary::DrainsEarly)
            && let Some(link) = &mut self.link
        {
            let limit = link.limit;
            self.drained(at, limit);
            if let Some(link) = &mut self.link {
                link.anticipated += 1;
            }
        }
    }

    /// The broker has no more to deliver, or has used the credit up; it has processed all that was sent
    /// before the drain.
    fn drained(&mut self, at: &mut Surroundings<'_>, delivery_count: u32) {
        let Some(link) = &mut self.link else { return };
        if link.anticipated > 0 {
            link.anticipated -= 1;
            return;
        }
        if !std::mem::take(&mut link.is_draining) {
            return;
        }
        let consumer = link.consumer;
        let is_empty = delivery_count > link.delivery_count;
        link.delivery_count = delivery_count;
        at.note(Event::Synced { consumer });
        if is_empty {
            at.note(Event::NothingLeft { consumer });
        }
    }

    fn arrived(&mut self, at: &mut Surroundings<'_>, message: Message) -> Result<(), String> {
        let queue = self.plan.queue;
        let Some(link) = self.link.as_mut().filter(|_| self.presence.phase == Phase::Working)
        else {
            return Ok(());
        };
        link.delivery_count = link.delivery_count.wrapping_add(1);
        if link.delivery_count > link.highest && link.anticipated == 0 && self.broken.is_none() {
            return Err(format!("credit respected: more than {} deliveries came", link.highest));
        }
        let Message { delivery_id, id, is_first, failures, bytes } = message;
        let consumer = link.consumer;
        link.held.extend(id.map(|message| Held { delivery_id, message }));
        at.note(Event::Deliver(Delivery {
            consumer,
            queue,
            message: id,
            redelivered: !is_first,
            bytes,
            requeues: failures.into(),
        }));
        Ok(())
    }

    /// Settles the oldest delivery, another one, or all.
    fn settle(&mut self, at: &mut Surroundings<'_>) {
        let random = &mut self.presence.random;
        let Some(link) = self.link.as_mut().filter(|link| !link.held.is_empty()) else { return };
        let settled: Vec<Held> = if random.percent(RANGE_PERCENT) {
            link.held.drain(..).collect()
        } else {
            let is_oldest = random.percent(60);
            let index = if is_oldest { 0 } else { random.index(link.held.len()) };
            vec![link.held.remove(index)]
        };
        let draw = random.below(100);
        let Taker { fail_percent, release_percent, queue, .. } = self.plan;
        let outcome = if draw < fail_percent {
            Outcome::Requeue
        } else if draw < fail_percent + release_percent {
            Outcome::Release
        } else {
            Outcome::Accept
        };
        let failed = Modified { delivery_failed: true, ..Modified::default() };
        let mut state = match outcome {
            Outcome::Requeue => DeliveryState::Modified(failed),
            Outcome::Release => wire::released(),
            _ => ACCEPTED,
        };
        let consumer = link.consumer;
        for Held { message, .. } in &settled {
            let (message, transaction) = (*message, None);
            at.note(Event::Settle { consumer, queue, message, outcome, transaction });
        }
        let is_release = outcome == Outcome::Release;
        if is_release && self.breaks(Canary::ReleasesCounted) {
            state = DeliveryState::Modified(failed);
        }
        if is_release && self.breaks(Canary::ReleasesLost) {
            return;
        }
        // They are in the order of their delivery.
        let (first, last) = (settled[0].delivery_id, settled[settled.len() - 1].delivery_id);
        self.wire.settle(first, last, state);
    }

    fn act(&mut self, at: &mut Surroundings<'_>) {
        if self.leaves_at.is_some_and(|due| due <= at.now) {
            if self.presence.random.percent(50) {
                return self.ended(at);
            }
            return self.leave();
        }
        if self.link.as_ref().is_none_or(|link| link.is_draining) {
            return;
        }
        self.settle(at);
        let is_used_up = self.link.as_ref().is_some_and(|link| link.delivery_count >= link.limit);
        if self.presence.random.percent(self.plan.drain_percent) {
            self.give_credit(at, true);
        } else if is_used_up || self.presence.random.percent(10) {
            self.give_credit(at, false);
        }
    }

    fn leave(&mut self) {
        self.wire.close();
        self.presence.phase = Phase::Leaving;
    }
}

impl Endpoint for Client {
    fn break_rule(&mut self, canary: Canary, random: Random) {
        self.broken = Some((canary, random));
    }

    fn presence(&mut self) -> &mut Presence {
        &mut self.presence
    }

    fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    fn woken(&mut self, at: &mut Surroundings<'_>) {
        self.wake_at = None;
        if !self.presence.is_working() {
            return;
        }
        if self.presence.is_finishing {
            frame::write_empty(&mut self.wire.output);
            self.wake_at = Some(at.now.plus(BEAT));
            return;
        }
        self.act(at);
        if self.presence.is_working() {
            self.wake_soon(at.now);
        }
    }

    fn connected(&mut self, at: &mut Surroundings<'_>) {
        self.presence.phase = Phase::Greeting;
        self.presence.is_closing = false;
        (self.wire, self.link) = (Wire::default(), None);
        (self.wake_at, self.leaves_at) = (None, None);
        let is_published_to = |(_, event): &(Time, Event)| matches!(event, Event::Publish(_));
        self.is_declared = self.is_declared || at.history.events.iter().any(is_published_to);
        if self.is_declared {
            self.wire.greet();
        } else {
            self.ended(at);
        }
    }

    fn is_done(&mut self) -> bool {
        let has_none = self.presence.is_finishing && !self.is_declared;
        has_none || self.is_gone() || (self.presence.is_working() && self.is_idle())
    }

    fn received(&mut self, at: &mut Surroundings<'_>, bytes: &[u8]) -> Result<(), String> {
        for what in self.wire.received(bytes)? {
            if self.presence.is_connected() {
                self.take(at, what)?;
            }
        }
        Ok(())
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.wire.output
    }

    fn lost(&mut self, at: &mut Surroundings<'_>) {
        if self.presence.is_connected() {
            self.ended(at);
        }
    }

    fn is_idle(&self) -> bool {
        self.link.as_ref().is_some_and(|link| !link.is_draining)
    }

    fn waits_for(&self) -> String {
        format!("{:?}, {:?}", self.presence.phase, self.link)
    }

    fn retire(&mut self, at: &mut Surroundings<'_>) {
        self.is_retiring = true;
        match self.presence.phase {
            Phase::Working => self.leave(),
            Phase::Leaving | Phase::Gone => {}
            _ => self.ended(at),
        }
    }
}

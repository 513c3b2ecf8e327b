//! What clients can reach, and what the activities of one client can reach: the roles on the channels
//! of an AMQP 0-9-1 client, the parts of a NATS client.

use crate::history::{Event, History, MessageId};
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::Protocol;
use std::time::Duration;

/// Longest pause before a client reconnects, in microseconds.
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
    /// Of the last browse.
    pub browse: u32,
    /// Of the last NATS connection.
    pub connection: u32,
    /// Of the last subscription.
    pub subscription: u32,
}

/// The number after `last`.
pub(super) fn next(last: &mut u32) -> u32 {
    *last += 1;
    *last
}

/// What a client can reach during one call.
pub struct Surroundings<'a> {
    /// The time.
    pub now: Time,
    /// The history of the run.
    pub history: &'a mut History,
    /// Unique numbers.
    pub numbers: &'a mut Numbers,
}

impl Surroundings<'_> {
    pub(super) fn note(&mut self, event: Event) {
        self.history.note(self.now, event);
    }
}

/// The phases of a client and its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not connected; reconnects at the time.
    Away(Time),
    /// Connected; the handshake is not complete.
    Greeting,
    /// NATS: CONNECT was sent; waits for the PONG.
    Entering,
    /// Open; its activities act.
    Working,
    /// AMQP 0-9-1: connection.close was sent.
    Leaving,
    /// Closed for good.
    Gone,
}

/// What a client of any protocol is, and what it knows of its connection.
#[derive(Debug)]
pub struct Presence {
    /// What it speaks.
    pub protocol: Protocol,
    /// It reads slowly.
    pub is_slow: bool,
    pub(super) phase: Phase,
    pub(super) random: Random,
    /// Its end of the transport is to be closed, all output sent.
    pub is_closing: bool,
    /// It starts nothing new.
    pub(super) is_finishing: bool,
}

impl Presence {
    /// Of a client that first connects at `start`.
    pub(super) fn new(protocol: Protocol, start: Time, random: Random) -> Presence {
        Presence {
            protocol,
            is_slow: false,
            phase: Phase::Away(start),
            random,
            is_closing: false,
            is_finishing: false,
        }
    }

    /// Whether it has a connection.
    pub fn is_connected(&self) -> bool {
        !matches!(self.phase, Phase::Away(_) | Phase::Gone)
    }

    pub(super) fn is_working(&self) -> bool {
        self.phase == Phase::Working
    }

    /// Reconnects later.
    pub fn stay_away(&mut self, now: Time) {
        let pause = self.random.between(10_000, RETURN_MAX);
        self.phase = Phase::Away(now.plus(Duration::from_micros(pause)));
    }
}

/// What is kept for an activity.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// When it wants to be woken; `None`: when something arrives.
    pub(super) wake_at: Option<Time>,
    /// The last message that it published on this connection.
    pub(super) last_message: MessageId,
}

/// What an activity can reach during one call.
pub(super) struct Context<'a, L> {
    pub(super) now: Time,
    pub(super) random: &'a mut Random,
    pub(super) history: &'a mut History,
    pub(super) numbers: &'a mut Numbers,
    pub(super) wake_at: &'a mut Option<Time>,
    pub(super) last_message: &'a mut MessageId,
    /// The client starts nothing new.
    pub(super) is_finishing: bool,
    /// Its channel or connection.
    pub(super) link: L,
}

impl<'a, L> Context<'a, L> {
    pub(super) fn new(
        at: &'a mut Surroundings<'_>,
        presence: &'a mut Presence,
        activity: &'a mut Activity,
        link: L,
    ) -> Context<'a, L> {
        Context {
            now: at.now,
            random: &mut presence.random,
            history: at.history,
            numbers: at.numbers,
            wake_at: &mut activity.wake_at,
            last_message: &mut activity.last_message,
            is_finishing: presence.is_finishing,
            link,
        }
    }

    pub(super) fn note(&mut self, event: Event) {
        self.history.note(self.now, event);
    }

    /// Wakes the activity within `micros`, or earlier if it is to be woken earlier already.
    pub(super) fn wake_within(&mut self, micros: u64) {
        let pause = self.random.below(micros) + 1;
        let due = self.now.plus(Duration::from_micros(pause));
        *self.wake_at = Some(self.wake_at.map_or(due, |earlier| earlier.min(due)));
    }

    /// Draws when something ends that lasts `life_max` microseconds at most, and wakes the activity
    /// by then.
    pub(super) fn draw_end(&mut self, life_max: Option<u64>) -> Option<Time> {
        life_max.map(|max| {
            self.wake_within(max);
            self.now.plus(Duration::from_micros(self.random.below(max)))
        })
    }

    /// Makes the activity a new producer; returns its number.
    pub(super) fn begin_publishing(&mut self) -> u32 {
        let producer = next(&mut self.numbers.producer);
        *self.last_message = MessageId::new(producer, 0);
        producer
    }

    /// The number of its next message.
    pub(super) fn next_message(&mut self) -> MessageId {
        self.last_message.0 += 1;
        *self.last_message
    }
}

//! What a part of a NATS client can reach, and what is asked of it.

use crate::client::Numbers;
use crate::client::nats::connection::{Arrived, Line};
use crate::history::{Emit, Event, History, Listen, MessageId, Publish};
use crate::payload;
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::nats::codec::client;
use std::time::Duration;

/// What a part can reach: its client's connection and surroundings.
pub(super) struct Scene<'a> {
    pub(super) now: Time,
    pub(super) random: &'a mut Random,
    pub(super) history: &'a mut History,
    pub(super) numbers: &'a mut Numbers,
    pub(super) line: &'a mut Line,
    /// The client takes headers.
    pub(super) takes_headers: bool,
    /// The client wants its own messages back.
    pub(super) echo: bool,
    /// Which part of its client it is.
    pub(super) part: usize,
    /// When it wants to be woken; `None`: not before something arrives.
    pub(super) wake_at: &'a mut Option<Time>,
}

/// One of the things that a client does.
pub(super) trait Act: std::fmt::Debug {
    /// Connected.
    fn begin(&mut self, scene: &mut Scene<'_>);
    /// A message came to one of its subscriptions.
    fn heard(&mut self, _: &mut Scene<'_>, _: &Arrived) {}
    /// The time asked for has come.
    fn woken(&mut self, _: &mut Scene<'_>) {}
    /// All others have finished, and listen.
    fn last_words(&mut self, _: &mut Scene<'_>) {}
    /// The connection has ended.
    fn ended(&mut self) {}
    /// From now on only what was begun is brought to its end.
    fn finish(&mut self) {}
    /// Whether nothing is under way that others have to answer.
    fn is_done(&self) -> bool {
        true
    }
}

impl Scene<'_> {
    pub(super) fn note(&mut self, event: Event) {
        self.history.note(self.now, event);
    }

    /// Wakes the part within `micros`, or earlier if it is to be woken earlier already.
    pub(super) fn wake_within(&mut self, micros: u64) {
        let pause = self.random.below(micros) + 1;
        let due = self.now.plus(Duration::from_micros(pause));
        *self.wake_at = Some(self.wake_at.map_or(due, |earlier| earlier.min(due)));
    }

    /// A number for one that publishes on this connection.
    pub(super) fn publisher(&mut self) -> u32 {
        self.numbers.producer += 1;
        self.numbers.producer
    }

    pub(super) fn publish(
        &mut self,
        message: MessageId,
        subject: &str,
        reply: Option<&str>,
        has_headers: bool,
        length: usize,
    ) {
        let has_headers = has_headers && self.takes_headers;
        self.note(Event::Publish(Publish {
            message,
            to: self.history.plan.caught(subject),
            persistent: true,
            priority: 0,
            transaction: None,
            expires: false,
            held_until: None,
        }));
        self.note(Event::Emit(Emit {
            message,
            subject: subject.to_owned(),
            connection: self.line.connection,
            echo: self.echo,
            reply: reply.map(str::to_owned),
            has_headers,
        }));
        let headers = if has_headers { payload::headers(message) } else { Vec::new() };
        let publish = client::Publish {
            subject: subject.as_bytes(),
            reply: reply.unwrap_or_default().as_bytes(),
            headers: &headers,
            body: &payload::make(message, length),
        };
        self.line.publish(message, &publish);
    }

    /// Begins to listen; returns the subscription's name.
    pub(super) fn listen(&mut self, pattern: &str, group: Option<&str>, answers: bool) -> u32 {
        self.numbers.listener += 1;
        let listener = self.numbers.listener;
        self.note(Event::Listen(Listen {
            listener,
            connection: self.line.connection,
            pattern: pattern.to_owned(),
            group: group.map(str::to_owned),
            takes_headers: self.takes_headers,
            answers,
        }));
        self.line.subscribe(pattern, group, listener, self.part)
    }

    /// Ceases to listen, now or after so many messages in all.
    pub(super) fn unlisten(&mut self, sid: u32, after: Option<u64>) {
        if let Some(subscribed) = self.line.subscribed(sid) {
            self.note(Event::Unlisten { listener: subscribed.listener, after });
        }
        self.line.unsubscribe(sid, after);
    }
}

//! The interface between a NATS client and its parts.

use super::connection::Connection;
use super::incoming::Arrived;
use crate::client::Numbers;
use crate::history::{DirectPublish, Event, History, MessageId, Publish, Subscription};
use crate::payload;
use crate::random::Random;
use angarium_engine::Time;
use angarium_protocol::nats::codec::client;
use std::time::Duration;

/// What a part can reach: its client's connection and surroundings.
pub(super) struct Context<'a> {
    pub(super) now: Time,
    pub(super) random: &'a mut Random,
    pub(super) history: &'a mut History,
    pub(super) numbers: &'a mut Numbers,
    pub(super) connection: &'a mut Connection,
    /// The client takes headers.
    pub(super) takes_headers: bool,
    /// The client wants its own messages back.
    pub(super) echo: bool,
    /// Which part of its client it is.
    pub(super) part: usize,
    /// When it wants to be woken; `None`: when something arrives.
    pub(super) wake_at: &'a mut Option<Time>,
}

/// One of the things that a client does.
pub(super) trait Behaviour: std::fmt::Debug {
    /// Connected.
    fn begin(&mut self, context: &mut Context<'_>);
    /// A message came to one of its subscriptions.
    fn received(&mut self, _: &mut Context<'_>, _: &Arrived) {}
    /// The time in `wake_at` has come.
    fn woken(&mut self, _: &mut Context<'_>) {}
    /// All others have finished and are subscribed: publish the final messages.
    fn final_messages(&mut self, _: &mut Context<'_>) {}
    /// The connection has ended.
    fn ended(&mut self) {}
    /// From now on it starts nothing new.
    fn finish(&mut self) {}
    /// Whether it waits for no answers.
    fn is_done(&self) -> bool {
        true
    }
}

impl Context<'_> {
    pub(super) fn note(&mut self, event: Event) {
        self.history.note(self.now, event);
    }

    /// Wakes the part within `micros`, or earlier if it is to be woken earlier already.
    pub(super) fn wake_within(&mut self, micros: u64) {
        let pause = self.random.below(micros) + 1;
        let due = self.now.plus(Duration::from_micros(pause));
        *self.wake_at = Some(self.wake_at.map_or(due, |earlier| earlier.min(due)));
    }

    /// A new publisher number for this connection.
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
            to: self.history.plan.routed(subject),
            persistent: true,
            priority: 0,
            transaction: None,
            expires: false,
            held_until: None,
        }));
        self.note(Event::DirectPublish(DirectPublish {
            message,
            subject: subject.to_owned(),
            connection: self.connection.number,
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
        self.connection.publish(message, &publish);
    }

    /// Subscribes; returns the sid.
    pub(super) fn subscribe(&mut self, pattern: &str, group: Option<&str>, answers: bool) -> u32 {
        self.numbers.subscription += 1;
        let subscription = self.numbers.subscription;
        self.note(Event::Subscribe(Subscription {
            number: subscription,
            connection: self.connection.number,
            pattern: pattern.to_owned(),
            group: group.map(str::to_owned),
            takes_headers: self.takes_headers,
            answers,
        }));
        self.connection.subscribe(pattern, group, subscription, self.part)
    }

    /// Unsubscribes, now or after `after` messages in all.
    pub(super) fn unsubscribe(&mut self, sid: u32, after: Option<u64>) {
        if let Some(subscribed) = self.connection.subscribed(sid) {
            self.note(Event::Unsubscribe { subscription: subscribed.subscription, after });
        }
        self.connection.unsubscribe(sid, after);
    }
}

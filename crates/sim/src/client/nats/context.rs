//! The interface between a NATS client and its parts.

use super::connection::Connection;
use super::incoming::Arrived;
use crate::client::context::{self, next};
use crate::history::{DirectPublish, Event, Publish, Subscription};
use crate::payload;
use angarium_protocol::nats::codec::client;

/// Longest request or answer.
const SHORT_MAX: usize = 64;

/// What a part can reach.
pub(super) type Context<'a> = context::Context<'a, &'a mut Connection>;

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
    /// Whether it waits for no answers.
    fn is_done(&self) -> bool {
        true
    }
}

impl Context<'_> {
    /// Publishes the part's next message, with a body of `length` bytes.
    pub(super) fn publish(
        &mut self,
        subject: &str,
        reply: Option<&str>,
        has_headers: bool,
        length: usize,
    ) {
        let message = self.next_message();
        let has_headers = has_headers && self.link.takes_headers;
        let to = self.history.plan.routed(subject);
        self.note(Event::Publish(Publish { message, to, persistent: true, ..Publish::default() }));
        self.note(Event::DirectPublish(DirectPublish {
            message,
            subject: subject.to_owned(),
            connection: self.link.number,
            echo: self.link.echo,
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
        self.link.publish(message, &publish);
    }

    /// Publishes a short message: a request with its inbox, or the answer to one.
    pub(super) fn publish_short(&mut self, subject: &str, inbox: Option<&str>) {
        let length = self.random.index(SHORT_MAX);
        let has_headers = self.random.percent(30);
        self.publish(subject, inbox, has_headers, length);
    }

    /// Subscribes; returns the sid.
    pub(super) fn subscribe(&mut self, pattern: &str, group: Option<&str>, answers: bool) -> u32 {
        let number = next(&mut self.numbers.subscription);
        self.note(Event::Subscribe(Subscription {
            number,
            connection: self.link.number,
            pattern: pattern.to_owned(),
            group: group.map(str::to_owned),
            takes_headers: self.link.takes_headers,
            answers,
        }));
        self.link.subscribe(pattern, group, number)
    }

    /// Unsubscribes, now or after `after` messages in all.
    pub(super) fn unsubscribe(&mut self, sid: u32, after: Option<u64>) {
        if let Some(subscribed) = self.link.subscribed(sid) {
            self.note(Event::Unsubscribe { subscription: subscribed.subscription, after });
        }
        self.link.unsubscribe(sid, after);
    }
}

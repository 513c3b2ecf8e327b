//! SUBSCRIBE and UNSUBSCRIBE.
//!
//! A filter with QoS 0 subscribes to direct messages; one with more binds the session's queue. One that is
//! shared does the former as a member of a group, and with more than QoS 0 it also joins the shared queue of
//! that group, which gets what is published with more than QoS 0. What is asked of the engine for one packet
//! is answered together.

use super::answers::{Answer, Subscribing};
use super::codec::{Filter, PropertyId, Qos, Reason, Subscribe, Unsubscribe};
use super::frame::PacketType;
use super::handler::Handler;
use super::mapping;
use super::pending::Pending;
use super::replay;
use super::settings::SUBSCRIPTIONS_MAX;
use super::subscriptions::Subscription;
use super::writer::name_above;
use crate::names::SUBJECT_EXCHANGE;
use crate::{Close, Context, Host};
use angarium_engine as engine;
use angarium_engine::{Binding, BindingTarget, Bytes, ChangeSession, JoinShared, Refusal, Request};

impl Handler {
    /// Takes SUBSCRIBE.
    pub(super) fn subscribe(
        &mut self,
        context: &mut Context<impl Host>,
        subscribe: &Subscribe<'_>,
    ) -> Result<(), Close> {
        let identifier = subscribe.properties.number(PropertyId::SubscriptionIdentifier);
        let mut reasons = Vec::with_capacity(subscribe.filters.len());
        let mut wanted = Vec::with_capacity(subscribe.filters.len());
        let (writer, _) = self.outgoing(context);
        let mut room = SUBSCRIPTIONS_MAX.saturating_sub(writer.subscriptions.len());
        for (index, (text, options)) in subscribe.filters.iter().enumerate() {
            match Filter::read(text) {
                Ok(_) if room == 0 && writer.subscriptions.get(text).is_none() => {
                    reasons.push(Reason::QuotaExceeded);
                }
                Ok(filter) => {
                    room -= usize::from(room > 0 && writer.subscriptions.get(text).is_none());
                    let identifier = identifier.unwrap_or_default();
                    let subscription = Subscription::new(&filter, *options, identifier);
                    wanted.push((index, Box::from(*text), subscription));
                    reasons.push(options.qos.granted());
                }
                // A filter that is none is refused alone where there is a code for it.
                Err(malformed) if self.version.has_properties() => reasons.push(malformed.reason),
                Err(malformed) => return Err(self.refuse(context, malformed)),
            }
        }
        let packet_type = PacketType::Suback;
        let needs_queue = wanted.iter().any(|(_, _, it)| it.options.qos > Qos::AtMostOnce);
        let answer = Answer { packet_type, packet_id: subscribe.packet_id, reasons };
        self.subscribing = Some(Box::new(Subscribing { wanted, ..Subscribing::new(answer) }));
        if needs_queue && self.queue.is_empty() {
            self.ask_for_queue(context);
        } else {
            self.subscribe_to_all(context);
        }
        Ok(())
    }

    /// The session has got a queue.
    pub(super) fn has_queue(&mut self, context: &mut Context<impl Host>, queue: String) {
        self.queue = queue.into();
        self.consume(context, Pending::Nothing);
        self.subscribe_to_all(context);
    }

    /// Something that the packet at hand takes was refused, for one filter or for all of them: what was
    /// refused is not subscribed to, even if it was before.
    pub(super) fn subscribing_refused(
        &mut self,
        context: &mut Context<impl Host>,
        index: Option<usize>,
        refusal: &Refusal,
    ) {
        let Some(subscribing) = &mut self.subscribing else { return };
        let reason = mapping::subscription_refused(refusal.kind);
        for (at, granted) in subscribing.answer.reasons.iter_mut().enumerate() {
            if !granted.is_error() && index.is_none_or(|index| index == at) {
                *granted = reason;
            }
        }
        if index.is_none() {
            subscribing.wanted.clear();
        }
        let is_refused = |(at, _): &mut (usize, Box<str>)| index.is_none_or(|index| index == *at);
        let refused: Vec<_> = subscribing.begun.extract_if(.., is_refused).collect();
        for (_, text) in refused {
            if self.drop_subscription(context, &text)
                && let Some(subscribing) = &mut self.subscribing
            {
                subscribing.remove.push(Bytes::copy_from_slice(text.as_bytes()));
            }
        }
        self.keep_subscriptions(context);
    }

    /// Ends the subscription to a filter; false: there is none.
    fn drop_subscription(&mut self, context: &mut Context<impl Host>, text: &str) -> bool {
        let (writer, _) = self.outgoing(context);
        let gone = writer.subscriptions.remove(text);
        writer.subscriptions_changed();
        let (Some(gone), Ok(filter)) = (gone, Filter::read(text)) else { return false };
        self.end_replay(context, text, &gone);
        if gone.is_queued() {
            let request = self.leaving(&filter, &gone);
            self.ask(context, request, Pending::Nothing);
        }
        if gone.is_direct() {
            self.stop_listening(context, text);
        }
        true
    }

    fn subscribe_to_all(&mut self, context: &mut Context<impl Host>) {
        let Some(subscribing) = &mut self.subscribing else { return };
        let wanted = std::mem::take(&mut subscribing.wanted);
        let mut has_exactly_once = false;
        for (index, text, subscription) in wanted {
            has_exactly_once |= subscription.options.qos == Qos::ExactlyOnce;
            let (writer, _) = self.outgoing(context);
            let wants_replay = replay::is_wanted(writer.subscriptions.get(&text), &subscription);
            self.watch_broker_topics(context, &text);
            let subscribed = self.subscribe_to(context, index, &text, &subscription);
            if let Some(subscribing) = self.subscribing.as_mut().filter(|_| wants_replay) {
                subscribing.replays.push((index, text.clone()));
            }
            if subscribed.is_ok() {
                let kept = self.keep_subscription(&text, &subscription);
                if let Some(subscribing) = &mut self.subscribing {
                    subscribing.put.push(kept);
                }
                let (writer, _) = self.outgoing(context);
                writer.subscriptions.put(&text, subscription);
                writer.subscriptions_changed();
            }
            if let Some(subscribing) = &mut self.subscribing {
                subscribing.begun.push((index, text));
            }
            if let Err(refusal) = subscribed {
                self.subscribing_refused(context, Some(index), &refusal);
            }
        }
        self.keep_subscriptions(context);
        self.wait_for_flush(context, has_exactly_once, Pending::Subscribing(None));
    }

    fn subscribe_to(
        &mut self,
        context: &mut Context<impl Host>,
        index: usize,
        text: &str,
        subscription: &Subscription,
    ) -> Result<(), Refusal> {
        let Ok(filter) = Filter::read(text) else { return Ok(()) };
        let (writer, _) = self.outgoing(context);
        let before = writer.subscriptions.get(text).cloned();
        if before.as_ref().is_some_and(Subscription::is_direct) && !subscription.is_direct() {
            self.stop_listening(context, text);
        }
        if subscription.is_direct() {
            self.listen(context, text, &filter)?;
        }
        if subscription.is_queued() {
            let request = self.entering(&filter, subscription);
            self.ask(context, request, Pending::Subscribing(Some(index)));
        }
        // What takes other messages was in its place.
        if let Some(before) = before.filter(Subscription::is_queued)
            && (!subscription.is_queued()
                || before.options.no_local != subscription.options.no_local)
        {
            let request = self.leaving(&filter, &before);
            self.ask(context, request, Pending::Nothing);
        }
        Ok(())
    }

    /// What leads the messages of a filter to the session's queue.
    fn entering(&self, filter: &Filter<'_>, subscription: &Subscription) -> Request {
        let Some(group) = mapping::group_of(filter) else {
            return Request::Bind(self.binding(filter, subscription));
        };
        let (source, key) = (SUBJECT_EXCHANGE.to_owned(), mapping::binding_key_of(filter.filter));
        let queue = self.queue_options();
        Request::JoinShared(Box::new(JoinShared { group, source, key, queue }))
    }

    /// What takes that back.
    fn leaving(&self, filter: &Filter<'_>, subscription: &Subscription) -> Request {
        match mapping::group_of(filter) {
            None => Request::Unbind(self.binding(filter, subscription)),
            Some(group) => Request::LeaveShared { group },
        }
    }

    /// The binding of the session's queue to a filter.
    fn binding(&self, filter: &Filter<'_>, subscription: &Subscription) -> Binding {
        Binding {
            source: SUBJECT_EXCHANGE.to_owned(),
            target: BindingTarget::Queue(self.queue.to_string()),
            key: mapping::binding_key_of(filter.filter),
            arguments: engine::Arguments::default(),
            filter: None,
            not_from: subscription.options.no_local.then(|| self.client_id.to_string()),
        }
    }

    /// Keeps the filters with the session, where that lives on.
    fn keep_subscriptions(&mut self, context: &mut Context<impl Host>) {
        let Some(subscribing) = &mut self.subscribing else { return };
        let (put, remove) =
            (std::mem::take(&mut subscribing.put), std::mem::take(&mut subscribing.remove));
        if self.is_kept() && !(put.is_empty() && remove.is_empty()) {
            let name = self.client_id.to_string();
            let change = ChangeSession { name, put, remove, ..ChangeSession::default() };
            let request = Request::ChangeSession(Box::new(change));
            self.ask(context, request, Pending::Subscribing(None));
        }
    }

    /// Subscribes to the direct messages of a filter.
    pub(super) fn listen(
        &self,
        context: &mut Context<impl Host>,
        text: &str,
        filter: &Filter<'_>,
    ) -> Result<(), Refusal> {
        let (pattern, above) = mapping::patterns_of(filter.filter);
        let group = mapping::group_of(filter);
        let above = above.map(|pattern| (pattern, name_above(text)));
        for (pattern, name) in std::iter::once((pattern, text.to_owned())).chain(above) {
            let subscribe = engine::Subscribe {
                subject: &pattern,
                group: group.as_deref(),
                name: &name,
                slow_consumer_policy: None,
            };
            let subscribed = context.engine.subscribe(self.channel(), subscribe, context.host);
            if let Err(refusal) = subscribed {
                self.stop_listening(context, text);
                return Err(refusal);
            }
        }
        Ok(())
    }

    fn stop_listening(&self, context: &mut Context<impl Host>, text: &str) {
        let above = text.ends_with('#').then(|| name_above(text));
        for name in [Some(text.to_owned()), above].into_iter().flatten() {
            context.engine.unsubscribe(self.channel(), &name, None, context.host);
        }
    }

    /// Takes UNSUBSCRIBE.
    pub(super) fn unsubscribe(
        &mut self,
        context: &mut Context<impl Host>,
        unsubscribe: &Unsubscribe<'_>,
    ) {
        let mut reasons = Vec::with_capacity(unsubscribe.filters.len());
        let mut remove = Vec::new();
        for text in &unsubscribe.filters {
            if self.drop_subscription(context, text) {
                remove.push(Bytes::copy_from_slice(text.as_bytes()));
                reasons.push(Reason::Success);
            } else {
                let malformed = Filter::read(text).err();
                let reason = malformed.map(|malformed| malformed.reason);
                reasons.push(reason.unwrap_or(Reason::NoSubscriptionExisted));
            }
        }
        let packet_type = PacketType::Unsuback;
        let answer = Answer { packet_type, packet_id: unsubscribe.packet_id, reasons };
        self.subscribing = Some(Box::new(Subscribing { remove, ..Subscribing::new(answer) }));
        self.keep_subscriptions(context);
    }

    /// Answers the packet at hand, once all that it takes is done, and all shards know it.
    pub(super) fn answer(&mut self, context: &mut Context<impl Host>) {
        let is_done = self.pending.is_empty() && context.host.are_requests_complete(self.id);
        if let Some(subscribing) = self.subscribing.take_if(|_| is_done) {
            let granted = |(at, _): &(usize, Box<str>)| {
                subscribing.answer.reasons.get(*at).is_some_and(|reason| !reason.is_error())
            };
            let replays = subscribing.replays.iter().filter(|it| granted(it));
            let replays: Vec<Box<str>> = replays.map(|(_, text)| text.clone()).collect();
            subscribing.answer.write(self.version, self.out(context));
            self.grant(context);
            for text in &replays {
                self.replay_broker_topics(context, text);
                self.replay(context, text);
            }
        }
    }
}

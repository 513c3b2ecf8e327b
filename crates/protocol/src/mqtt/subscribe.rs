//! SUBSCRIBE and UNSUBSCRIBE.

use super::answers::Answer;
use super::codec::{
    Filter, FilterOptions, Malformed, PropertyId, Qos, Reason, Subscribe, Unsubscribe,
};
use super::frame::PacketType;
use super::handler::Handler;
use super::mapping;
use super::subscriptions::Subscription;
use super::writer::name_above;
use crate::{Close, Context, Host};
use angarium_engine as engine;

impl Handler {
    /// Takes SUBSCRIBE.
    pub(super) fn subscribe(
        &mut self,
        context: &mut Context<impl Host>,
        subscribe: &Subscribe<'_>,
    ) -> Result<(), Close> {
        let identifier = subscribe.properties.number(PropertyId::SubscriptionIdentifier);
        let mut reasons = Vec::with_capacity(subscribe.filters.len());
        for (text, options) in &subscribe.filters {
            let filter = match Filter::read(text) {
                Ok(filter) => filter,
                // A filter that is none is refused alone where there is a code for it.
                Err(malformed) if self.version.has_properties() => {
                    reasons.push(malformed.reason);
                    continue;
                }
                Err(malformed) => return Err(self.refuse(context, malformed)),
            };
            let identifier = identifier.unwrap_or_default();
            let reason = self.subscribe_to(context, text, &filter, *options, identifier);
            reasons.push(reason);
        }
        let packet_type = PacketType::Suback;
        self.answers.push(Answer { packet_type, packet_id: subscribe.packet_id, reasons });
        Ok(())
    }

    fn subscribe_to(
        &mut self,
        context: &mut Context<impl Host>,
        text: &str,
        filter: &Filter<'_>,
        options: FilterOptions,
        identifier: u32,
    ) -> Reason {
        let options = FilterOptions { qos: Qos::AtMostOnce, ..options };
        if let Err(refusal) = self.listen(context, text, filter) {
            return mapping::subscription_refused(refusal.kind);
        }
        let (writer, _) = self.outgoing(context);
        writer.subscriptions.put(text, Subscription::new(filter, options, identifier));
        writer.subscriptions_changed();
        options.qos.granted()
    }

    /// Subscribes to the direct messages of a filter.
    fn listen(
        &self,
        context: &mut Context<impl Host>,
        text: &str,
        filter: &Filter<'_>,
    ) -> Result<(), engine::Refusal> {
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
        for text in &unsubscribe.filters {
            let (writer, _) = self.outgoing(context);
            let gone = writer.subscriptions.remove(text);
            writer.subscriptions_changed();
            if gone.is_some() {
                self.stop_listening(context, text);
            }
            reasons.push(match (gone, Filter::read(text)) {
                (Some(_), _) => Reason::Success,
                (None, Ok(_)) => Reason::NoSubscriptionExisted,
                (None, Err(Malformed { reason, .. })) => reason,
            });
        }
        let packet_type = PacketType::Unsuback;
        self.answers.push(Answer { packet_type, packet_id: unsubscribe.packet_id, reasons });
    }
}

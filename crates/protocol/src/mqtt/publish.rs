//! Messages from the client.

use super::codec::publish::next_plain;
use super::codec::{Ack, Malformed, PropertyId, Publish, Qos, Reason, topic};
use super::frame::PacketType;
use super::handler::Handler;
use super::incoming::Received;
use super::mapping::{self, Target};
use super::pending::Pending;
use super::stored::Stored;
use crate::{Close, Context, Host};
use angarium_engine as engine;
use angarium_engine::{BatchRoom, CachedRoute, Content, Emit, Reached, Request, Retain};
use std::time::Duration;

impl Handler {
    /// Takes a message; returns whether the next packet may be taken.
    #[inline]
    pub(super) fn publish(
        &mut self,
        context: &mut Context<impl Host>,
        publish: &Publish<'_>,
        cached_route: &mut Option<CachedRoute>,
    ) -> Result<bool, Close> {
        let is_offered = self.settings.retain_available;
        if publish.retain && !is_offered && self.version.has_properties() {
            let text = "retained messages are not offered";
            return Err(self.fail(context, Reason::RetainNotSupported, text));
        }
        let is_same = self.topic == publish.topic && !publish.topic.is_empty();
        if !is_same || !publish.properties.is_empty() {
            *cached_route = None;
            let resolved = self.resolve_topic(context, publish);
            if let Err(malformed) = resolved.and_then(|()| check_payload(publish)) {
                return Err(self.refuse(context, malformed));
            }
        }
        self.scratch.clear();
        let Publish { qos, retain, properties, .. } = *publish;
        Stored { qos, retain, properties }.write(&mut self.scratch);
        if qos == Qos::AtMostOnce {
            self.emit(context, publish, cached_route);
        } else {
            *cached_route = None;
            self.publish_surely(context, publish)?;
        }
        Ok(!context.engine.is_step_over())
    }

    /// Keeps the topic of a message, which an alias may stand for, and the subject that it is.
    fn resolve_topic(
        &mut self,
        context: &mut Context<impl Host>,
        publish: &Publish<'_>,
    ) -> Result<(), Malformed> {
        let alias = publish.properties.number(PropertyId::TopicAlias);
        let alias = alias.map(|alias| u16::try_from(alias).unwrap_or(u16::MAX));
        if alias.is_some_and(|alias| alias > self.settings.topic_alias_maximum) {
            let text = "a topic alias is greater than the maximum";
            return Err(Malformed::new(Reason::TopicAliasInvalid, text));
        }
        let known = match (publish.topic, alias) {
            (b"", Some(alias)) => {
                let known = self.aliases.as_ref().and_then(|aliases| aliases.get(alias));
                let text = "a topic alias stands for no topic";
                known.ok_or(Malformed::new(Reason::ProtocolError, text))?.to_vec()
            }
            (b"", None) if self.version.has_properties() => {
                let text = "a message has neither a topic nor an alias for one";
                return Err(Malformed::new(Reason::ProtocolError, text));
            }
            (topic, alias) => {
                topic::name(topic)?;
                if let Some(alias) = alias {
                    self.aliases.get_or_insert_default().set(alias, topic);
                }
                topic.to_vec()
            }
        };
        if self.topic != known {
            self.subject = mapping::subject_of(topic::name(&known)?);
            self.topic = known;
        }
        let _ = context;
        Ok(())
    }

    fn is_refused_topic(&self) -> bool {
        str::from_utf8(&self.topic).is_ok_and(mapping::is_brokers)
    }

    /// Publishes a message with QoS 0. What is refused is dropped: there is no answer.
    #[inline]
    fn emit(
        &mut self,
        context: &mut Context<impl Host>,
        publish: &Publish<'_>,
        cached_route: &mut Option<CachedRoute>,
    ) {
        if self.topic.first() == Some(&b'$') && self.is_refused_topic() {
            return;
        }
        let copy = context.engine.copy_of_large(publish.payload);
        let content = self.content(publish, copy.as_ref());
        let emit =
            Emit { subject: &self.subject, echo: true, is_response: false, asks: false, content };
        let (now, channel) = (context.now, self.channel());
        self.set_own(context, true);
        let emitted = context.engine.emit_next(now, channel, &emit, cached_route, context.host);
        self.set_own(context, false);
        if let Ok(reached) = emitted {
            self.note_reached(context, reached);
            if publish.retain {
                self.retain(context, publish, copy.as_ref());
            }
        }
    }

    /// Has a message of QoS 0 stay that was handed to those who subscribe.
    #[cold]
    fn retain(
        &self,
        context: &mut Context<impl Host>,
        publish: &Publish<'_>,
        copy: Option<&engine::Bytes>,
    ) {
        if !self.settings.retain_available {
            return;
        }
        let retain = Retain::Only;
        let message = engine::Publish { retain, ..self.message(publish, copy) };
        // What is refused is dropped.
        let _ = context.engine.publish(context.now, self.channel(), &message, context.host);
    }

    /// A message that goes through its exchange.
    fn message<'a>(
        &'a self,
        publish: &Publish<'a>,
        copy: Option<&'a engine::Bytes>,
    ) -> engine::Publish<'a> {
        let Target { exchange, routing_key } = Target::of(&self.subject);
        let is_retained = publish.retain && self.settings.retain_available;
        engine::Publish {
            exchange,
            routing_key,
            also_to: &[],
            mandatory: true,
            retain: if is_retained { Retain::Yes } else { Retain::No },
            not_before: None,
            transaction: None,
            content: self.content(publish, copy),
        }
    }

    /// What is published within this is the client's own.
    #[inline]
    fn set_own(&self, context: &mut Context<impl Host>, is_own: bool) {
        let (writer, _) = self.outgoing(context);
        writer.is_own = is_own;
    }

    fn content<'a>(
        &'a self,
        publish: &Publish<'a>,
        shared: Option<&'a engine::Bytes>,
    ) -> Content<'a> {
        let seconds = publish.properties.number(PropertyId::MessageExpiryInterval);
        Content {
            format: crate::format::MQTT,
            properties: &self.scratch,
            body: publish.payload,
            shared,
            persistent: publish.qos != Qos::AtMostOnce,
            priority: 0,
            ttl: seconds.map(|seconds| Duration::from_secs(seconds.into())),
        }
    }

    /// Publishes the following messages as a batch, where several differ from the last one in payload alone;
    /// returns their bytes.
    #[inline]
    pub(super) fn publish_batch(
        &mut self,
        context: &mut Context<impl Host>,
        input: &[u8],
        cached_route: &mut Option<CachedRoute>,
    ) -> usize {
        // After a message with properties, the next ones are likely to have them too.
        if !self.scratch.is_empty() {
            return 0;
        }
        let Some(mut room) =
            cached_route.as_ref().and_then(|cached_route| context.engine.batch_room(cached_route))
        else {
            return 0;
        };
        let mut bodies = [&[][..]; BatchRoom::MESSAGES_MAX];
        let (mut count, mut used) = (0, 0);
        let (version, most) = (self.version, self.settings.packet_bytes_max);
        for place in &mut bodies {
            let next = next_plain(&input[used..], &self.topic, version, most);
            let Some((body, bytes)) = next.filter(|(body, _)| room.take(body.len())) else { break };
            *place = body;
            (count, used) = (count + 1, used + bytes);
        }
        if count < BatchRoom::MESSAGES_MIN {
            return 0;
        }
        let content = Content {
            format: crate::format::MQTT,
            properties: &[],
            body: &[],
            shared: None,
            persistent: false,
            priority: 0,
            ttl: None,
        };
        let emit =
            Emit { subject: &self.subject, echo: true, is_response: false, asks: false, content };
        self.set_own(context, true);
        let (engine, bodies) = (&mut *context.engine, &bodies[..count]);
        let reached = engine.emit_batch(self.channel(), &emit, bodies, cached_route, context.host);
        self.set_own(context, false);
        self.note_reached(context, reached);
        used
    }

    /// Reports to the host whether the subscribers of the last message keep up.
    #[inline]
    fn note_reached(&self, context: &mut Context<impl Host>, reached: Reached) {
        if reached.crowded {
            context.host.stall(context.now, self.id);
        } else if reached.subscribers > 0 {
            context.host.note_quick(self.id);
        }
    }

    /// Publishes a message with QoS 1 or 2, whose acknowledgement follows once it is safe.
    fn publish_surely(
        &mut self,
        context: &mut Context<impl Host>,
        publish: &Publish<'_>,
    ) -> Result<(), Close> {
        let Publish { packet_id, qos, .. } = *publish;
        let is_exactly_once = qos == Qos::ExactlyOnce;
        let packet_type = if is_exactly_once { PacketType::Pubrec } else { PacketType::Puback };
        let (version, most) = (self.version, usize::from(self.settings.receive_maximum));
        let is_refused = self.is_refused_topic();
        let (writer, out) = self.outgoing(context);
        if is_exactly_once {
            match writer.incoming.receive(packet_id) {
                Received::New => {}
                Received::Underway => return Ok(()),
                Received::Again => {
                    Ack::plain(packet_type, packet_id).write(version, &mut out.bytes);
                    return Ok(());
                }
            }
        }
        if version.has_properties() && writer.incoming.len() >= most + usize::from(is_exactly_once)
        {
            let text = "more messages are on their way than the receive maximum allows";
            return Err(self.fail(context, Reason::ReceiveMaximumExceeded, text));
        }
        if is_refused {
            writer.incoming.release(packet_id);
            let reason = Reason::NotAuthorized;
            Ack { reason, ..Ack::plain(packet_type, packet_id) }.write(version, &mut out.bytes);
            return Ok(());
        }
        writer.incoming.push(packet_id, is_exactly_once);
        writer.is_own = true;
        let copy = context.engine.copy_of_large(publish.payload);
        let message = self.message(publish, copy.as_ref());
        let (now, channel) = (context.now, self.channel());
        let (engine, host) = (&mut *context.engine, &mut *context.host);
        let published = match is_exactly_once && self.has_state {
            true => engine.publish_once(now, channel, packet_id.into(), &message, host),
            false => engine.publish(now, channel, &message, host),
        };
        self.set_own(context, false);
        if let Err(refusal) = published {
            let reason = mapping::publish_refused(refusal.kind);
            let (writer, out) = self.outgoing(context);
            writer.incoming.pop();
            Ack { reason, ..Ack::plain(packet_type, packet_id) }.write(version, &mut out.bytes);
        }
        self.check_refused(context)
    }

    /// The client will not send a message of QoS 2 again.
    pub(super) fn release(&mut self, context: &mut Context<impl Host>, packet_id: u16) {
        let version = self.version;
        let (writer, _) = self.outgoing(context);
        let is_known = writer.incoming.release(packet_id);
        if self.has_state {
            // It may have come on an earlier connection.
            let request = Request::ForgetPublished { number: packet_id.into() };
            return self.ask(context, request, Pending::Complete(packet_id, Reason::Success));
        }
        let reason = if is_known { Reason::Success } else { Reason::PacketIdentifierNotFound };
        let (_, out) = self.outgoing(context);
        let plain = Ack::plain(PacketType::Pubcomp, packet_id);
        Ack { reason, ..plain }.write(version, &mut out.bytes);
    }
}

/// Whether a payload is the text that it is said to be.
fn check_payload(publish: &Publish<'_>) -> Result<(), Malformed> {
    let is_text = publish.properties.number(PropertyId::PayloadFormatIndicator) == Some(1);
    if is_text && str::from_utf8(publish.payload).is_err() {
        let text = "a payload is said to be UTF-8, and is not";
        return Err(Malformed::new(Reason::PayloadFormatInvalid, text));
    }
    Ok(())
}

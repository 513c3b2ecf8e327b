//! What the engine sends to a connection, written in MQTT into its output.

use super::aliases::{GivenAliases, Said};
use super::codec::property::put_number;
use super::codec::{Properties, PropertyId, PropertyValue, Publish, Qos, Version, property};
use super::frame::{PacketType, put_variable_integer};
use super::incoming::Incoming;
use super::outgoing::{Awaits, Outgoing, Sent, packet_id_of};
use super::replayed::Replayed;
use super::stored::Stored;
use super::subscriptions::{Matched, Subscription, Subscriptions};
use super::{mapping, shown};
use crate::names::SUBJECT_EXCHANGE;
use crate::output::{Output, ProtocolWriter};
use crate::shared_body::SharedBody;
use crate::translation::with_payload;
use angarium_engine::{
    Annotations, ChannelId, Confirm, Delivery, DirectMessage, MessageView, Subscribe,
};
use std::borrow::Cow;

/// The user property that tells a subscriber how many messages it missed before this one.
pub(super) const MISSED: &str = "angarium-missed";
/// What the name of a subscription ends with that stands for the level above a `#`.
const ABOVE: &str = "#/";

/// What MQTT needs to write to a connection, and what both halves of the connection know.
#[derive(Debug)]
pub struct Writer {
    pub(super) version: Version,
    /// Largest packet that the client takes.
    pub(super) packet_bytes_max: usize,
    pub(super) subscriptions: Subscriptions,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    /// Used for messages of the session's queue: none of those is dropped once it is written.
    pub(super) given_aliases: GivenAliases,
    /// The message that is being published is the client's own.
    pub(super) is_own: bool,
    /// The last message that was written, or was passed over, for several subscriptions.
    last_emission: u64,
    head: Head,
    // Kept for their memory.
    topic: Vec<u8>,
    properties: Vec<u8>,
}

impl Default for Writer {
    fn default() -> Self {
        Writer {
            version: Version::default(),
            packet_bytes_max: usize::MAX,
            subscriptions: Subscriptions::default(),
            incoming: Incoming::default(),
            outgoing: Outgoing::default(),
            given_aliases: GivenAliases::default(),
            is_own: false,
            last_emission: 0,
            head: Head::default(),
            topic: Vec::new(),
            properties: Vec::new(),
        }
    }
}

/// What a message of a cached route has between its fixed header and its payload, reused while the next ones
/// have the same.
#[derive(Debug, Default)]
struct Head {
    /// Its subscriber and cached route, as [`DirectMessage`] has both; zero: there is none.
    tag: u64,
    route: u64,
    bytes: Vec<u8>,
}

/// The name of the subscription to the level above a `#`.
pub(super) fn name_above(text: &str) -> String {
    format!("{text}/")
}

/// The subscription's own name.
fn text_of(name: &str) -> &str {
    if name.ends_with(ABOVE) { &name[..name.len() - 1] } else { name }
}

impl Writer {
    /// Forgets what was reused.
    pub(super) fn subscriptions_changed(&mut self) {
        self.head = Head::default();
    }

    /// Writes a message by what is known of the ones before it; false: it differs from them.
    #[inline]
    fn write_along(&self, out: &mut Output, direct: &DirectMessage<'_>) -> bool {
        let message = &direct.message;
        let is_along = direct.route != 0
            && self.head.route == direct.route
            && self.head.tag == direct.tag
            && message.properties.is_empty()
            && direct.missed == 0
            && message.ttl.is_none()
            && message.shared.is_none();
        if is_along {
            self.head.write(&mut out.bytes, message.body);
        }
        is_along
    }

    /// Writes a message for which everything is looked up.
    fn write_first(&mut self, out: &mut Output, direct: &DirectMessage<'_>) {
        let text = text_of(direct.subscription);
        self.topic.clear();
        mapping::put_topic(&mut self.topic, direct.message.routing_key);
        let Some(subscription) = self.subscriptions.get(text) else { return };
        let is_unwanted = self.is_own && subscription.options.no_local;
        if is_unwanted || mapping::is_told(&self.topic) || !subscription.takes(text, &self.topic) {
            return;
        }
        let mut matched = subscription.alone();
        let is_one_of_several = !subscription.is_shared && self.subscriptions.has_overlaps();
        if is_one_of_several && direct.emission != 0 {
            if std::mem::replace(&mut self.last_emission, direct.emission) == direct.emission {
                return;
            }
            let topic = str::from_utf8(&self.topic).unwrap_or_default();
            matched = self.subscriptions.matching(topic, self.is_own);
            // It comes from the session's queue, too.
            if matched.qos > Qos::AtMostOnce && direct.message.exchange == SUBJECT_EXCHANGE {
                return;
            }
            matched.qos = Qos::AtMostOnce;
        }
        let mut body = Cow::Borrowed(direct.message.body);
        let message = with_payload(&direct.message, &mut body);
        let is_plain = message.properties.is_empty() && direct.missed == 0 && message.ttl.is_none();
        let plain = Way { missed: direct.missed, ..Way::default() };
        self.write(out, &message, &matched, plain);
        if direct.route != 0 && is_plain && !is_one_of_several {
            self.keep_head(direct, &matched);
        }
    }

    /// Writes a message, unless it is larger than the client takes: then it returns false.
    fn write(
        &mut self,
        out: &mut Output,
        message: &MessageView<'_>,
        matched: &Matched,
        way: Way,
    ) -> bool {
        let mut properties = std::mem::take(&mut self.properties);
        properties.clear();
        if self.version.has_properties() {
            properties.extend_from_slice(&shown::shown(message));
            put_delivery(&mut properties, matched, way.missed);
            put_expiry(&mut properties, message);
        }
        let said = if way.is_queued { self.given_aliases.say(&self.topic) } else { Said::Named };
        if let Said::Introduced(alias) | Said::Aliased(alias) = said {
            put_number(&mut properties, PropertyId::TopicAlias, alias.into());
        }
        let was_retained =
            message.format == crate::format::MQTT && Stored::read(message.properties).retain;
        let publish = Publish {
            dup: way.dup,
            qos: way.qos,
            retain: way.is_replayed || was_retained && matched.retain_as_published,
            topic: if matches!(said, Said::Aliased(_)) { &[] } else { &self.topic },
            packet_id: way.packet_id,
            properties: Properties::of(&properties),
            payload: message.body,
        };
        let fits = publish.octets(self.version) <= self.packet_bytes_max;
        if fits {
            match message.shared {
                Some(body) => {
                    publish.write_before_payload(self.version, &mut out.bytes);
                    out.shared_body = Some(SharedBody::plain(body, b"").into());
                }
                None => publish.write(self.version, &mut out.bytes),
            }
        }
        if let (true, Said::Introduced(alias)) = (fits, said) {
            self.given_aliases.introduced(&self.topic, alias);
        }
        self.properties = properties;
        fits
    }

    /// Writes a message of the broker itself.
    pub(super) fn write_own(
        &mut self,
        out: &mut Output,
        topic: &str,
        payload: &[u8],
        matched: &Matched,
        is_replayed: bool,
    ) {
        self.topic.clear();
        self.topic.extend_from_slice(topic.as_bytes());
        let message = MessageView {
            exchange: "",
            routing_key: "",
            format: crate::format::MQTT,
            properties: &[],
            body: payload,
            shared: None,
            persistent: false,
            priority: 0,
            ttl: None,
            annotations: &Annotations::default(),
        };
        self.write(out, &message, matched, Way { is_replayed, ..Way::default() });
    }

    fn keep_head(&mut self, direct: &DirectMessage<'_>, matched: &Matched) {
        if self.packet_bytes_max < usize::MAX {
            return;
        }
        let Head { tag, route, bytes } = &mut self.head;
        (*tag, *route) = (direct.tag, direct.route);
        bytes.clear();
        bytes.extend_from_slice(&(self.topic.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&self.topic);
        if self.version.has_properties() {
            self.properties.clear();
            put_delivery(&mut self.properties, matched, 0);
            Properties::of(&self.properties).write(bytes);
        }
    }
}

/// How a message goes to the client.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    dup: bool,
    qos: Qos,
    packet_id: u16,
    /// Messages that the subscriber missed before it.
    missed: u64,
    /// It is of the session's queue.
    is_queued: bool,
    /// It was retained before the client subscribed.
    is_replayed: bool,
}

/// Appends what is left of a message's time to live, in seconds that have begun.
fn put_expiry(properties: &mut Vec<u8>, message: &MessageView<'_>) {
    if let Some(ttl) = message.ttl {
        let seconds = ttl.as_millis().div_ceil(1_000);
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        put_number(properties, PropertyId::MessageExpiryInterval, seconds);
    }
}

/// The QoS that a message was published with; another protocol's has one that says whether it is to be kept.
fn published_qos(message: &MessageView<'_>) -> Qos {
    match message.format {
        crate::format::MQTT => Stored::read(message.properties).qos,
        _ if message.persistent => Qos::AtLeastOnce,
        _ => Qos::AtMostOnce,
    }
}

/// Appends the properties that a message has for one receiver.
fn put_delivery(properties: &mut Vec<u8>, matched: &Matched, missed: u64) {
    for identifier in &matched.identifiers {
        put_number(properties, PropertyId::SubscriptionIdentifier, *identifier);
    }
    if missed > 0 {
        let missed = missed.to_string();
        let value = PropertyValue::Pair(MISSED, &missed);
        property::put(properties, PropertyId::UserProperty, value);
    }
}

impl Head {
    #[inline]
    fn write(&self, out: &mut Vec<u8>, body: &[u8]) {
        out.push(PacketType::Publish.first_octet(0));
        put_variable_integer(out, self.bytes.len() + body.len());
        out.extend_from_slice(&self.bytes);
        out.extend_from_slice(body);
    }
}

impl Writer {
    /// The subscriptions that a message of the session's queue matches: the shared one of that group, or
    /// those that are not shared.
    fn matched_by_queued(&self, group: Option<&str>) -> Matched {
        let topic = str::from_utf8(&self.topic).unwrap_or_default();
        let Some(group) = group else { return self.subscriptions.matching(topic, false) };
        let text = mapping::filter_of_group(group);
        let subscription = self.subscriptions.get(&text).filter(|it| it.takes(&text, &self.topic));
        subscription.map(Subscription::alone).unwrap_or_default()
    }

    /// Writes a message of the session's queue, or a retained one.
    fn write_queued(&mut self, out: &mut Output, delivery: &Delivery<'_>) {
        let Delivery { tag, place, redelivered, group, .. } = *delivery;
        self.topic.clear();
        mapping::put_topic(&mut self.topic, delivery.message.routing_key);
        let replayed = Replayed::of(delivery.message);
        let mut matched = match &replayed {
            Some(replayed) => replayed.matched(str::from_utf8(&self.topic).unwrap_or_default()),
            None => self.matched_by_queued(group),
        };
        let published = published_qos(delivery.message);
        let qos = match matched.count {
            0 => published,
            _ => published.min(matched.qos),
        };
        // A pattern of its binding matches more than the filter, or the filter is gone. What the client may
        // know already is completed.
        let is_unwanted = matched.count == 0 && !redelivered || mapping::is_told(&self.topic);
        matched.qos = qos;
        let packet_id = if qos == Qos::AtMostOnce { 0 } else { packet_id_of(place) };
        let dup = redelivered && qos > Qos::AtMostOnce;
        let mut body = Cow::Borrowed(delivery.message.body);
        let message = with_payload(delivery.message, &mut body);
        let is_replayed = replayed.is_some();
        let way = Way { dup, qos, packet_id, missed: 0, is_queued: true, is_replayed };
        let is_sent = !is_unwanted && self.write(out, &message, &matched, way);
        if place == 0 {
            // It is settled.
            return;
        }
        if !is_sent || qos == Qos::AtMostOnce {
            self.outgoing.pass(tag);
            out.calls_handler = true;
            return;
        }
        let awaits = if qos == Qos::AtLeastOnce { Awaits::Puback } else { Awaits::Pubrec };
        self.outgoing.send(packet_id, Sent { tag, place, awaits });
    }
}

impl ProtocolWriter for Writer {
    /// Writes PUBLISH.
    #[inline]
    fn deliver(&mut self, out: &mut Output, delivery: &Delivery<'_>) {
        self.write_queued(out, delivery);
    }

    /// Writes PUBLISH.
    #[inline]
    fn send_direct(&mut self, out: &mut Output, direct: &DirectMessage<'_>) {
        if !self.write_along(out, direct) {
            self.write_first(out, direct);
        }
    }

    fn send_direct_batch(
        &mut self,
        out: &mut Output,
        direct: &DirectMessage<'_>,
        bodies: &[&[u8]],
    ) {
        for (index, body) in (0..).zip(bodies) {
            let message = MessageView { body, ..direct.message };
            let emission = direct.emission + index;
            self.send_direct(out, &DirectMessage { message, emission, ..*direct });
        }
    }

    /// Messages without properties are the same for all that have no properties of their own for them.
    fn writes_batches_like(&self, other: &Writer) -> bool {
        let is_plain = |writer: &Writer| {
            !writer.subscriptions.has_identifiers()
                && !writer.subscriptions.has_overlaps()
                && !writer.is_own
                && writer.packet_bytes_max == usize::MAX
        };
        self.version == other.version && is_plain(self) && is_plain(other)
    }

    /// Writes PUBACK or PUBREC.
    #[inline]
    fn confirm(&mut self, out: &mut Output, _: ChannelId, confirm: Confirm<'_>) {
        self.incoming.confirm(self.version, confirm, &mut out.bytes);
        out.calls_handler |= self.incoming.refused.is_some();
    }

    fn subscription_revoked(&mut self, _: &mut Output, subscribed: &Subscribe<'_>) {
        self.subscriptions.remove(text_of(subscribed.name));
        self.subscriptions_changed();
    }

    fn has_subscribers(&self) -> bool {
        true
    }

    fn held_bytes(&self) -> usize {
        self.subscriptions.held_bytes()
            + self.incoming.held_bytes()
            + self.outgoing.held_bytes()
            + self.given_aliases.held_bytes()
            + self.topic.capacity()
            + self.properties.capacity()
            + self.head.bytes.capacity()
    }
}

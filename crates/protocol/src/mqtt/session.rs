//! The client's session: claimed at CONNECT, taken over, resumed with its subscriptions, given up.

use super::codec::{Ack, Disconnect, Filter, PropertyId, Qos, Will};
use super::frame::PacketType;
use super::handler::{Handler, State};
use super::mapping::{self, Target};
use super::pending::Pending;
use super::stored::Stored;
use super::subscriptions::Subscription;
use crate::{Context, Host};
use angarium_engine as engine;
use angarium_engine::{
    Bytes, ChangeSession, ClaimSession, ClaimedSession, Consume, Grant, Outcome, QueueOptions,
    Request, SessionExpiry,
};
use std::time::Duration;

/// The consumer of the session's queue.
const CONSUMER: &str = "session";

/// The expiry that a client asks for by that property.
pub(super) fn expiry_of(seconds: Option<u32>) -> SessionExpiry {
    match seconds {
        None | Some(0) => SessionExpiry::AtDetach,
        Some(u32::MAX) => SessionExpiry::Never,
        Some(seconds) => SessionExpiry::After(Duration::from_secs(seconds.into())),
    }
}

/// What the property says of an expiry.
fn seconds_of(expiry: SessionExpiry) -> u32 {
    match expiry {
        SessionExpiry::AtDetach => 0,
        SessionExpiry::Never => u32::MAX,
        SessionExpiry::After(expiry) => u32::try_from(expiry.as_secs()).unwrap_or(u32::MAX - 1),
    }
}

/// A client's will as the engine keeps it.
pub(super) fn will_of(will: &Will<'_>, may_be_retained: bool) -> engine::Will {
    let subject = mapping::subject_of(will.topic);
    let Target { exchange, routing_key } = Target::of(&subject);
    let Will { qos, retain, properties, payload, .. } = *will;
    let mut stored = Vec::new();
    Stored { qos, retain, properties }.write(&mut stored);
    let seconds = |id| will.properties.number(id).map(|it| Duration::from_secs(it.into()));
    engine::Will {
        exchange: exchange.to_owned(),
        routing_key: routing_key.to_owned(),
        format: crate::format::MQTT,
        properties: stored.into(),
        body: Bytes::copy_from_slice(payload),
        persistent: qos != Qos::AtMostOnce,
        priority: 0,
        retain: retain && may_be_retained,
        ttl: seconds(PropertyId::MessageExpiryInterval),
        delay: seconds(PropertyId::WillDelayInterval).unwrap_or_default(),
    }
}

impl Handler {
    /// Claims the session of the client's name; another connection that has it loses it.
    pub(super) fn claim(&mut self, context: &mut Context<impl Host>) {
        self.state = State::Preparing;
        let Some(beginning) = &self.beginning else { return };
        let (fresh, expiry) = (beginning.clean_start, beginning.expiry);
        // A session that lives on has its queue from the beginning, in the record that it begins with.
        let queue = (expiry != SessionExpiry::AtDetach).then(|| self.queue_options());
        let claim = ClaimSession { fresh, queue, ..self.claim_of(expiry) };
        self.ask(context, Request::ClaimSession(claim), Pending::Claim);
    }

    fn claim_of(&self, expiry: SessionExpiry) -> ClaimSession {
        ClaimSession {
            name: self.client_id.to_string(),
            expiry,
            recorded: expiry != SessionExpiry::AtDetach,
            ..ClaimSession::default()
        }
    }

    /// Whether the session lives on without the connection.
    pub(super) fn is_kept(&self) -> bool {
        self.expiry != SessionExpiry::AtDetach
    }

    /// The session is the client's: brings back what it has.
    pub(super) fn claimed(&mut self, context: &mut Context<impl Host>, claimed: ClaimedSession) {
        let Some(beginning) = &mut self.beginning else { return };
        beginning.is_resumed = claimed.is_resumed;
        beginning.is_expiry_ours = beginning.expiry != claimed.expiry;
        beginning.released = claimed.released;
        let will = beginning.will.take();
        self.expiry = claimed.expiry;
        self.has_state = self.is_kept() || claimed.is_resumed;
        let mut has_exactly_once = false;
        for (text, value) in &claimed.attributes {
            let Ok(text) = str::from_utf8(text) else { continue };
            let Ok(filter) = Filter::read(text) else { continue };
            let Some(subscription) = Subscription::decode(&filter, value) else { continue };
            has_exactly_once |= subscription.options.qos == Qos::ExactlyOnce;
            if subscription.is_direct() {
                // One that is forbidden by now is passed over.
                let _ = self.listen(context, text, &filter);
            }
            let (writer, _) = self.outgoing(context);
            writer.subscriptions.put(text, subscription);
            self.watch_broker_topics(context, text);
        }
        if !claimed.queue.is_empty() {
            self.queue = claimed.queue.into();
            self.wait_for_flush(context, has_exactly_once, Pending::Beginning);
            self.consume(context, Pending::Beginning);
        }
        match will {
            Some(will) => self.ask(context, Request::SetWill(will), Pending::Beginning),
            None if claimed.is_resumed => {
                self.ask(context, Request::ClearWill, Pending::Beginning);
            }
            None => {}
        }
    }

    /// Messages of QoS 2 are handed out once a crash cannot take them back: their identifiers would be those
    /// of others.
    pub(super) fn wait_for_flush(
        &mut self,
        context: &mut Context<impl Host>,
        waits: bool,
        pending: Pending,
    ) {
        if !waits || !self.has_state {
            return;
        }
        let name = self.client_id.to_string();
        let waits_for_flush = Some(true);
        let change = ChangeSession { name, waits_for_flush, ..ChangeSession::default() };
        self.ask(context, Request::ChangeSession(Box::new(change)), pending);
    }

    /// Gives the session a queue.
    pub(super) fn ask_for_queue(&mut self, context: &mut Context<impl Host>) {
        let queue = Some(self.queue_options());
        let claim = ClaimSession { queue, ..self.claim_of(self.expiry) };
        self.ask(context, Request::ClaimSession(claim), Pending::Queue);
    }

    pub(super) fn queue_options(&self) -> Box<QueueOptions> {
        Box::new(QueueOptions {
            length_max: self.settings.session_messages_max,
            bytes_max: self.settings.session_bytes_max,
            overflow: self.settings.session_overflow,
            ..QueueOptions::default()
        })
    }

    /// Begins to take from the session's queue; what is taken waits for the first grant.
    pub(super) fn consume(&mut self, context: &mut Context<impl Host>, pending: Pending) {
        let consume = Consume {
            queue: self.queue.to_string(),
            name: CONSUMER.to_owned(),
            is_granted: true,
            on_close: Outcome::REQUEUE,
            on_loss: Outcome::REQUEUE,
            ..Consume::default()
        };
        self.ask(context, Request::Consume(consume), pending);
    }

    /// Tells the client once more which messages were released, before it gets any other.
    pub(super) fn resend_releases(&mut self, context: &mut Context<impl Host>, places: &[u64]) {
        let version = self.version;
        let (writer, out) = self.outgoing(context);
        for place in places {
            let packet_id = writer.outgoing.resume_released(*place);
            Ack::plain(PacketType::Pubrel, packet_id).write(version, &mut out.bytes);
        }
    }

    /// Lets the queue hand out as many messages as the client takes.
    pub(super) fn grant(&mut self, context: &mut Context<impl Host>) {
        if self.queue.is_empty() || self.state != State::Open {
            return;
        }
        let (writer, _) = self.outgoing(context);
        if let Some(up_to) = writer.outgoing.next_grant() {
            let grant = Grant { up_to, drain: false };
            context.engine.grant(self.channel(), CONSUMER, grant, context.host);
        }
    }

    /// The expiry of the session, where the client is to be told.
    pub(super) fn granted_expiry(&self) -> Option<u32> {
        let is_ours = self.beginning.as_ref().is_some_and(|it| it.is_expiry_ours);
        is_ours.then(|| seconds_of(self.expiry))
    }

    /// The client ends the connection: it has no will then, unless it says otherwise. False: it asks for an
    /// expiry that it may not have.
    pub(super) fn give_up(
        &mut self,
        context: &mut Context<impl Host>,
        disconnect: &Disconnect<'_>,
        keeps_will: bool,
    ) -> bool {
        let expiry = disconnect.properties.number(PropertyId::SessionExpiryInterval);
        if expiry.is_some_and(|expiry| expiry > 0) && !self.is_kept() {
            return false;
        }
        if !keeps_will {
            self.ask(context, Request::ClearWill, Pending::Nothing);
        }
        let expiry = expiry.map(|expiry| expiry_of(Some(expiry)));
        let name = self.client_id.to_string();
        self.ask(context, Request::DetachSession { name, expiry }, Pending::Nothing);
        true
    }

    /// An attribute of the session for each subscription.
    pub(super) fn keep_subscription(
        &self,
        text: &str,
        subscription: &Subscription,
    ) -> (Bytes, Bytes) {
        (Bytes::copy_from_slice(text.as_bytes()), subscription.encode().into())
    }
}

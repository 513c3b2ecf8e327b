//! Messages from the peer: transfer frames, put together and published.

use super::address::{self, Address};
use super::anonymous::jms_kind;
use super::codec::{
    Condition, DeliveryState, Limits, Map, Properties, Sections, Timestamp, Transfer, Value,
};
use super::fault::{Fault, Reason};
use super::handler::{Handler, Waiting};
use super::link::{Begun, Node, Role, Target, Unfinished};
use super::management::Service;
use super::mapping;
use super::pending::Asked;
use super::sessions::{Place, Session};
use super::stored::{self, Taken};
use super::transactions;
use super::unconfirmed::{Run, Told, Unconfirmed};
use crate::names::SUBJECT_EXCHANGE;
use crate::{Context, Host};
use angarium_engine::{Bytes, Publish, Retain, Time, TransactionId};
use std::time::Duration;

/// The annotations of messages that are to be delivered later: when, in milliseconds since 1970, or how many
/// milliseconds after they came.
const DELIVERY_TIME: &str = "x-opt-delivery-time";
const DELIVERY_DELAY: &str = "x-opt-delivery-delay";
/// Octets of the unfinished messages of all links of a connection, in messages of the largest size.
const UNFINISHED_MAX: u64 = 4;

/// Why a message is not taken.
struct Refused {
    condition: Condition,
    text: String,
}

/// A message that is there whole.
#[derive(Clone, Copy)]
struct Arrived<'a> {
    delivery_id: u32,
    is_settled: bool,
    transaction: Option<TransactionId>,
    message: &'a [u8],
    /// The same, where it was put together.
    shared: Option<&'a Bytes>,
}

impl Handler {
    /// Takes a transfer frame.
    #[inline]
    pub(super) fn transfer(
        &mut self,
        context: &mut Context<impl Host>,
        number: u16,
        transfer: &Transfer<'_>,
        payload: &[u8],
    ) -> Result<(), Fault> {
        let Some(index) = self.usable(number, "transfer")? else { return Ok(()) };
        let handle = transfer.handle;
        let link = self.sessions.all[index].link_index(handle);
        if link.is_some_and(|at| self.sessions.all[index].links[at].is_attaching()) {
            // It came before our attach, and credit with that.
            self.waiting = Some(Waiting::Answers(Some(number)));
            return Ok(());
        }
        let (writer, out) = self.outgoing(context);
        let Some(state) = writer.session(number) else { return Ok(()) };
        if !state.take_frame(out) {
            let text = "more transfer frames than the session's incoming window allows";
            return Err(Fault::session(Condition::WindowViolation, text));
        }
        let Some(at) = link else { return Err(Fault::unattached("transfer", handle)) };
        let place = Place { session: index, link: at };
        let link = self.sessions.link_at(place);
        if link.role == Role::Sender {
            let text = format!("transfer for handle {handle}, on which the broker sends");
            return Err(Fault::session(Condition::IllegalState, text));
        }
        if !link.is_attached() {
            return Ok(());
        }
        let Some(receiver) = state.receiver(handle) else { return Ok(()) };
        if receiver.is_detached {
            // By the engine.
            link.unfinished = None;
            return Ok(());
        }
        if link.unfinished.is_some() {
            return self.continue_message(context, place, transfer, payload);
        }
        let Some(delivery_id) = transfer.delivery_id else {
            let text = "the first transfer of a delivery has no delivery-id";
            return Err(Fault::link(handle, Condition::InvalidField, text));
        };
        if !receiver.begin_delivery() {
            let text = "more deliveries than there was credit for";
            return Err(Fault::link(handle, Condition::TransferLimitExceeded, text));
        }
        if transfer.aborted || (transfer.resume && !transfer.more) {
            // No unsettled delivery of a former link is known here: those that are resumed are ignored (part
            // 2, 2.7.5).
            state.top_up(out, handle);
            return Ok(());
        }
        let is_settled = transfer.settled == Some(true);
        let transaction = transaction_of(handle, transfer.state)?;
        if transfer.more {
            let is_resumed = transfer.resume;
            let begun = Begun { delivery_id, is_resumed, is_settled, transaction };
            link.unfinished = Some(Unfinished { begun, ..Unfinished::default() }.into());
            return self.gather(place, payload);
        }
        let (message, shared) = (payload, None);
        let arrived = Arrived { delivery_id, is_settled, transaction, message, shared };
        self.message(context, place, arrived);
        Ok(())
    }

    /// Takes a further transfer frame of a message.
    fn continue_message(
        &mut self,
        context: &mut Context<impl Host>,
        place: Place,
        transfer: &Transfer<'_>,
        payload: &[u8],
    ) -> Result<(), Fault> {
        let number = self.sessions.all[place.session].number;
        let link = self.sessions.link_at(place);
        let Some(unfinished) = &mut link.unfinished else { return Ok(()) };
        if transfer.delivery_id.is_some_and(|id| id != unfinished.begun.delivery_id) {
            let text = "a delivery begins before the one before it on the link is complete";
            return Err(Fault::link(link.handle, Condition::IllegalState, text));
        }
        if transfer.aborted || (unfinished.begun.is_resumed && !transfer.more) {
            link.unfinished = None;
            let handle = link.handle;
            let (writer, out) = self.outgoing(context);
            if let Some(session) = writer.session(number) {
                session.top_up(out, handle);
            }
            return Ok(());
        }
        unfinished.begun.is_settled |= transfer.settled == Some(true);
        let transaction = transaction_of(transfer.handle, transfer.state)?;
        unfinished.begun.transaction = unfinished.begun.transaction.or(transaction);
        if transfer.more {
            return self.gather(place, payload);
        }
        self.gather(place, payload)?;
        let link = self.sessions.link_at(place);
        let Some(unfinished) = link.unfinished.take() else { return Ok(()) };
        let Unfinished { begun, message } = *unfinished;
        let Begun { delivery_id, is_settled, transaction, .. } = begun;
        let arrived = Arrived { delivery_id, is_settled, transaction, message: &[], shared: None };
        if message.len() < context.engine.large_body_bytes() {
            self.message(context, place, Arrived { message: &message, ..arrived });
        } else {
            let message = message.into_shared();
            let shared = Some(&message);
            self.message(context, place, Arrived { message: &message, shared, ..arrived });
        }
        Ok(())
    }

    /// Keeps a part of a message.
    fn gather(&mut self, place: Place, payload: &[u8]) -> Result<(), Fault> {
        let max = self.settings.body_bytes_max + self.settings.properties_bytes_max as u64;
        let all = self.unfinished_bytes() + payload.len() as u64;
        let link = self.sessions.link_at(place);
        let handle = link.handle;
        let Some(unfinished) = link.unfinished.as_mut().filter(|it| !it.begun.is_resumed) else {
            return Ok(());
        };
        let bytes = (unfinished.message.len() + payload.len()) as u64;
        if bytes > max {
            let most = self.settings.body_bytes_max;
            let text = format!("a message is larger than the limit of {most} octets");
            return Err(Fault::link(handle, Condition::MessageSizeExceeded, text));
        }
        if all > max.saturating_mul(UNFINISHED_MAX) {
            let text = "the unfinished messages of this connection leave no room for another one";
            return Err(Fault::link(handle, Condition::ResourceLimitExceeded, text));
        }
        if !unfinished.message.extend(payload, bytes) {
            let text = format!("the system refuses the memory for a message of {bytes} octets");
            return Err(Fault::link(handle, Condition::ResourceLimitExceeded, text));
        }
        Ok(())
    }

    fn unfinished_bytes(&self) -> u64 {
        let links = self.sessions.all.iter().flat_map(|session| &session.links);
        links.filter_map(|link| link.unfinished.as_ref()).map(|it| it.message.len() as u64).sum()
    }

    /// Memory is short: gives the messages up that have not come whole.
    pub(super) fn give_up_unfinished(&mut self, context: &mut Context<impl Host>) {
        let with_unfinished = |session: &Session| {
            let links = session.links.iter().filter(|link| link.unfinished.is_some());
            links.map(|link| (session.number, link.handle)).collect::<Vec<_>>()
        };
        let all: Vec<_> = self.sessions.all.iter().flat_map(with_unfinished).collect();
        for (number, handle) in all {
            let why = "memory is short: the message was given up before it had come whole";
            self.detach_with(context, number, handle, Condition::ResourceLimitExceeded, why);
        }
    }

    /// Takes a message that is there whole.
    #[inline]
    fn message(&mut self, context: &mut Context<impl Host>, place: Place, arrived: Arrived<'_>) {
        match self.sessions.link_at(place).node {
            Node::Service(service) => self.request(context, place, service, arrived),
            Node::Coordinator => {
                let number = self.sessions.all[place.session].number;
                let handle = self.sessions.link_at(place).handle;
                let Arrived { delivery_id, is_settled, message, .. } = arrived;
                let asked = Asked { handle, delivery_id, is_settled };
                self.coordinate(context, number, asked, message);
            }
            _ => self.publish(context, place, arrived),
        }
    }

    /// Takes a message that is a request.
    fn request(
        &mut self,
        context: &mut Context<impl Host>,
        place: Place,
        service: Service,
        arrived: Arrived<'_>,
    ) {
        let session = &self.sessions.all[place.session];
        let (number, handle) = (session.number, session.links[place.link].handle);
        let limits = Limits { properties_bytes_max: self.settings.properties_bytes_max };
        let taken = Sections::walk_request(arrived.message, limits)
            .and_then(|sections| self.call(context, number, handle, service, &sections));
        let (writer, out) = self.outgoing(context);
        let Some(session) = writer.session(number) else { return };
        if !arrived.is_settled {
            let run = Run::one(arrived.delivery_id, true);
            match &taken {
                Ok(()) => run.put_accepted(&mut out.bytes, number),
                Err(malformed) => {
                    let text = malformed.to_string();
                    let reason = Reason::new(malformed.condition(), &text);
                    run.put_rejected(&mut out.bytes, number, reason);
                }
            }
        }
        session.top_up(out, handle);
    }

    /// Publishes a message, or tells the peer why not.
    #[inline]
    fn publish(&mut self, context: &mut Context<impl Host>, place: Place, arrived: Arrived<'_>) {
        let session = &self.sessions.all[place.session];
        let link = &session.links[place.link];
        let (number, handle) = (session.number, link.handle);
        let told = match (arrived.is_settled, link.is_second) {
            (true, _) => Told::Not,
            (false, true) => Told::Unsettled,
            (false, false) => Told::Settled,
        };
        let (delivery_id, transaction) = (arrived.delivery_id, arrived.transaction);
        let waiting = Unconfirmed { delivery_id, handle, told, transaction };
        let (writer, _) = self.outgoing(context);
        if let Some(session) = writer.session(number) {
            session.publishing(waiting);
        }
        let mut kept = std::mem::take(&mut self.properties);
        let limits = Limits { properties_bytes_max: self.settings.properties_bytes_max };
        let taken = Sections::walk(arrived.message, limits)
            .and_then(|sections| stored::take(&sections, &mut kept));
        let published = match taken {
            Ok(taken) => {
                let node = &self.sessions.link_at(place).node;
                if matches!(node, Node::Target(Target::Anonymous)) {
                    self.make_queue_for(context, number, &taken);
                }
                self.try_publish(context, place, arrived, taken)
            }
            Err(malformed) => {
                Err(Refused { condition: malformed.condition(), text: malformed.to_string() })
            }
        };
        self.properties = kept;
        let (writer, out) = self.outgoing(context);
        let Some(session) = writer.session(number) else { return };
        match published {
            Ok(()) => session.top_up(out, handle),
            Err(Refused { condition, text }) => {
                session.not_published(out, Reason::new(condition, &text));
            }
        }
    }

    #[inline]
    fn try_publish(
        &self,
        context: &mut Context<impl Host>,
        place: Place,
        arrived: Arrived<'_>,
        taken: Taken<'_>,
    ) -> Result<(), Refused> {
        let Taken { mut content, properties, annotations } = taken;
        let copy = match arrived.shared {
            Some(message) => Some(message.slice_ref(content.body)),
            None => context.engine.copy_of_large(content.body),
        };
        content.shared =
            copy.as_ref().filter(|body| body.len() >= context.engine.large_body_bytes());
        let session = &self.sessions.all[place.session];
        let Node::Target(target) = &session.links[place.link].node else { return Ok(()) };
        self.check_user(&properties)?;
        let mut publish = Publish {
            exchange: "",
            routing_key: "",
            also_to: &[],
            mandatory: false,
            retain: Retain::No,
            not_before: delay(annotations, context.now),
            transaction: arrived.transaction,
            content,
        };
        let subject = properties.subject.unwrap_or_default();
        let to;
        (publish.exchange, publish.routing_key) = match target {
            Target::Exchange { exchange, key, must_arrive } => {
                publish.mandatory = *must_arrive;
                (&**exchange, key.as_deref().unwrap_or(subject))
            }
            Target::Anonymous => {
                to = address::parse(properties.to.unwrap_or_default(), jms_kind(annotations))
                    .map_err(|text| Refused { condition: Condition::NotFound, text })?;
                let route = route(&to, subject)?;
                publish.mandatory = route.0.is_empty();
                route
            }
        };
        let id = self.channel_id(session.number);
        let published = context.engine.publish(context.now, id, &publish, context.host);
        published.map_err(|refusal| Refused {
            condition: mapping::condition(refusal.kind),
            text: refusal.text,
        })
    }

    /// Refuses a message that names another user as its publisher.
    #[inline]
    fn check_user(&self, properties: &Properties<'_>) -> Result<(), Refused> {
        let Some(claimed) = properties.user_id else { return Ok(()) };
        if claimed == self.user.as_bytes() {
            return Ok(());
        }
        let claimed = String::from_utf8_lossy(claimed);
        let text = format!("user-id is '{claimed}', and the connection's user '{}'", self.user);
        Err(Refused { condition: Condition::UnauthorizedAccess, text })
    }
}

/// The transaction that a transfer is part of, as its state says.
#[inline]
fn transaction_of(
    handle: u32,
    state: Option<DeliveryState<'_>>,
) -> Result<Option<TransactionId>, Fault> {
    let Some(DeliveryState::TransactionalState(state)) = state else { return Ok(None) };
    transactions::id_of(state.txn_id).map(Some).ok_or_else(|| {
        let text = "there is no transaction of that id";
        Fault::link(handle, Condition::TransactionUnknownId, text)
    })
}

/// When a message may be delivered at the earliest, as its annotations say.
#[inline]
fn delay(annotations: Map<'_>, now: Time) -> Option<Time> {
    if annotations.is_empty() {
        return None;
    }
    let millis = |name| match annotations.get(name)? {
        Value::Timestamp(Timestamp(millis)) | Value::Long(millis) => u64::try_from(millis).ok(),
        Value::ULong(millis) => Some(millis),
        Value::Int(millis) => u64::try_from(millis).ok(),
        Value::UInt(millis) => Some(millis.into()),
        _ => None,
    };
    let due = match (millis(DELIVERY_TIME), millis(DELIVERY_DELAY)) {
        (Some(millis), _) => Time(millis.saturating_mul(1000)),
        (None, Some(millis)) => now.plus(Duration::from_millis(millis)),
        (None, None) => return None,
    };
    Some(due).filter(|due| *due > now)
}

/// The exchange and routing key of a message to an address.
fn route<'a>(address: &'a Address<'_>, subject: &'a str) -> Result<(&'a str, &'a str), Refused> {
    Ok(match address {
        Address::Queue(name) => ("", name.as_ref()),
        Address::Any(name) | Address::Subscription { queue: name, .. } => ("", *name),
        Address::Topic(subject) => (SUBJECT_EXCHANGE, subject.as_ref()),
        Address::Exchange { exchange, key } => {
            (exchange.as_ref(), key.as_deref().unwrap_or(subject))
        }
        Address::Management | Address::ReadOnlyManagement | Address::Claims => {
            let text = "requests to the broker need a link of their own".to_owned();
            return Err(Refused { condition: Condition::NotImplemented, text });
        }
    })
}

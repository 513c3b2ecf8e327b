//! What sources and targets of links stand for.

use super::address::{self, Address, NodeKind};
use super::codec::{
    AnyTarget, Attach, Condition, DistributionMode, Map, OwnedValue, Performative,
    SenderSettleMode, Source as WireSource, Symbols, TerminusDurability,
};
use super::fault::Fault;
use super::filters::{self, Filters};
use super::handler::Handler;
use super::link::{Node, Role, Source, SubscriptionName, Target, consumer_of};
use super::management::Service;
use super::mapping;
use crate::names::{NAMES, SUBJECT_EXCHANGE};
use crate::{Context, Host};
use angarium_engine::selector::{Filter, ParseOptions};
use angarium_engine::{
    CreateTemporary, OpenSubscription, QueueOptions, Request, TemporaryKind, fitting_name,
};
use std::borrow::Cow;

/// What separates a subscription's name from what tells its links apart.
const LINK_SUFFIX: char = '|';
/// The capabilities of shared subscriptions, and of those that all clients share.
const SHARED: &str = "shared";
const GLOBAL: &str = "global";
/// That of a node which goes with its link.
const TEMPORARY_QUEUE: &str = "temporary-queue";
const TEMPORARY_TOPIC: &str = "temporary-topic";

/// What has to be asked of the engine before a link can be used.
#[derive(Debug)]
pub(super) enum First {
    /// Whether the queue of that name is there; it is made where it is not.
    Queue(String),
    /// The same, for messages to it: another connection may have it to itself.
    QueueToWrite(String),
    /// Whether the exchange is there.
    Exchange(String),
    /// A queue or topic that goes by itself.
    Temporary(CreateTemporary),
    /// A named subscription.
    Subscription(Box<OpenSubscription>),
    /// Whether there is a durable subscription of that name.
    Find(SubscriptionName),
    /// Nothing.
    Nothing,
}

/// What a link stands for, and what has to be asked for it first.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) node: Node,
    pub(super) first: First,
    /// The filters that hold, as the answer has them.
    pub(super) taken: Option<OwnedValue>,
}

impl Resolved {
    fn new(node: Node, first: First) -> Resolved {
        Resolved { node, first, taken: None }
    }
}

impl Handler {
    /// Reads the source of a link on which we send.
    pub(super) fn source(&self, attach: &Attach<'_>) -> Result<Resolved, Fault> {
        let handle = attach.handle;
        let Some(source) = attach.source else {
            let name = self.subscription_name(attach.name, attach.desired_capabilities);
            let node = Source {
                is_presettled: attach.snd_settle_mode == SenderSettleMode::Settled,
                priority: mapping::priority(attach),
                subscription: Some(name.clone()),
                ..Source::default()
            };
            return Ok(Resolved::new(Node::Recovered(node), First::Find(name)));
        };
        let asked = filters::read(source.filter.unwrap_or_default())
            .map_err(|why| Fault::link(handle, Condition::InvalidField, why))?;
        let Filters { selector, no_local, key: own_key } = asked.filters;
        let filter = selector
            .map(|text| Filter::parse(&text, &ParseOptions::default()))
            .transpose()
            .map_err(|error| Fault::link(handle, Condition::InvalidField, error.to_string()))?;
        let mut node = Source {
            is_presettled: attach.snd_settle_mode == SenderSettleMode::Settled,
            default_outcome: source.default_outcome.map(mapping::outcome),
            priority: mapping::priority(attach),
            filter,
            not_from: no_local.then(|| self.container.to_string()),
            ..Source::default()
        };
        if source.dynamic {
            let (kind, properties) = (source.capabilities, source.dynamic_node_properties);
            let first = First::Temporary(temporary(handle, kind, properties)?);
            return Ok(Resolved::new(Node::Source(node), first));
        }
        let kind = NodeKind::of(source.capabilities);
        let parsed = address::parse(source.address.unwrap_or_default(), kind)
            .map_err(|why| Fault::link(handle, Condition::InvalidField, why))?;
        let first = match parsed {
            Address::Queue(name) => First::Queue(fitting_name(&name).into_owned()),
            Address::Any(name) => First::Queue(fitting_name(name).into_owned()),
            Address::Topic(pattern) => {
                self.subscription(attach, &source, &mut node, SUBJECT_EXCHANGE, &pattern)
            }
            Address::Exchange { exchange, key } => {
                let key = key.or(own_key.map(Cow::Owned)).unwrap_or_default();
                self.subscription(attach, &source, &mut node, &exchange, &key)
            }
            Address::Subscription { topic, queue } => {
                let key = fitting_name(topic).into_owned();
                node.binding = Some((SUBJECT_EXCHANGE.to_owned(), key));
                First::Queue(fitting_name(queue).into_owned())
            }
            Address::Management | Address::ReadOnlyManagement | Address::Claims => {
                let to = match attach.target {
                    Some(AnyTarget::Target(target)) => target.address.unwrap_or_default(),
                    _ => "",
                };
                return Ok(Resolved::new(Node::Answers { to: to.into() }, First::Nothing));
            }
        };
        let is_queue = matches!(first, First::Queue(_));
        if is_queue && source.distribution_mode == Some(DistributionMode::Copy) {
            node.browses = true;
            node.is_presettled = true;
        }
        let taken = Some(asked.taken).filter(|taken| !taken.as_map().is_empty());
        Ok(Resolved { taken, ..Resolved::new(Node::Source(node), first) })
    }

    /// The subscription of a link to what an exchange gets with a key: one that is durable or shared has a
    /// name of its own, any other goes with the link.
    fn subscription(
        &self,
        attach: &Attach<'_>,
        source: &WireSource<'_>,
        node: &mut Source,
        exchange: &str,
        key: &str,
    ) -> First {
        let (exchange, key) = (exchange.to_owned(), fitting_name(key).into_owned());
        let durable = source.durable != TerminusDurability::None;
        let shared = source.capabilities.contains(SHARED);
        if !durable && !shared {
            node.binding = Some((exchange, key));
            return First::Temporary(mapping::temporary(
                consumer_of(attach.handle),
                TemporaryKind::Queue(mapping::own_queue()),
                None,
            ));
        }
        let name = self.subscription_name(attach.name, source.capabilities);
        node.is_shared = shared;
        let SubscriptionName { owner, name } = name;
        if durable {
            node.subscription = Some(SubscriptionName { owner: owner.clone(), name: name.clone() });
        }
        First::Subscription(Box::new(OpenSubscription {
            owner,
            name,
            source: exchange,
            keys: vec![key],
            durable,
            shared,
            filter: node.filter.take(),
            not_from: node.not_from.take(),
            consumer: Some(consumer_of(attach.handle)),
            options: QueueOptions { durable, ..mapping::own_queue() },
        }))
    }

    /// What the subscription of a link is found by.
    fn subscription_name(&self, link: &str, capabilities: Symbols<'_>) -> SubscriptionName {
        let is_global = capabilities.contains(GLOBAL);
        let is_shared = is_global || capabilities.contains(SHARED);
        let name = match link.split_once(LINK_SUFFIX) {
            Some((name, _)) if is_shared => name,
            _ => link,
        };
        let owner = (!is_global).then(|| self.container.to_string());
        SubscriptionName { owner, name: name.to_owned() }
    }

    /// Reads the target of a link on which we receive.
    pub(super) fn target(
        &self,
        context: &mut Context<impl Host>,
        number: u16,
        attach: &Attach<'_>,
    ) -> Result<Resolved, Fault> {
        let handle = attach.handle;
        let refuse = |condition, text: &str| Err(Fault::link(handle, condition, text));
        let target = match attach.target {
            Some(AnyTarget::Target(target)) => target,
            Some(AnyTarget::Coordinator(_)) => {
                return Ok(Resolved::new(Node::Coordinator, First::Nothing));
            }
            None => return refuse(Condition::InvalidField, "the link has no target"),
        };
        if target.dynamic {
            let (kind, properties) = (target.capabilities, target.dynamic_node_properties);
            let first = First::Temporary(temporary(handle, kind, properties)?);
            // Its address is known once it is made.
            return Ok(Resolved::new(Node::Target(Target::Anonymous), first));
        }
        let Some(address) = target.address else {
            return Ok(Resolved::new(Node::Target(Target::Anonymous), First::Nothing));
        };
        let kind = NodeKind::of(target.capabilities);
        let parsed = address::parse(address, kind)
            .map_err(|why| Fault::link(handle, Condition::InvalidField, why))?;
        let queue = |name: &str| {
            let name = fitting_name(name).into_owned();
            let first = match NAMES.is_answer_address(&name) {
                // A client of another protocol waits there for its answer, without a queue.
                true => First::Nothing,
                false => First::QueueToWrite(name.clone()),
            };
            (String::new(), Some(name), first)
        };
        let (exchange, key, first) = match parsed {
            Address::Queue(name) => queue(&name),
            Address::Any(name) | Address::Subscription { queue: name, .. } => queue(name),
            Address::Topic(subject) => {
                let key = fitting_name(&subject).into_owned();
                (SUBJECT_EXCHANGE.to_owned(), Some(key), First::Nothing)
            }
            Address::Exchange { exchange, key } => {
                let exchange = exchange.into_owned();
                let first = match exchange.as_str() {
                    "" => First::Nothing,
                    _ => First::Exchange(exchange.clone()),
                };
                (exchange, key.map(|key| key.into_owned()), first)
            }
            Address::Management => return Ok(service(Service::Rabbitmq)),
            Address::ReadOnlyManagement => return Ok(service(Service::Queries)),
            Address::Claims => return Ok(service(Service::Claims)),
        };
        let id = self.channel_id(number);
        let routing_key = key.as_deref().unwrap_or_default();
        let right = context.engine.check_right_to_publish(id, &exchange, routing_key);
        right.map_err(|refusal| Fault::refused(handle, refusal))?;
        // Nobody may have subscribed to a topic.
        let is_topic = kind == Some(NodeKind::Topic) || exchange == SUBJECT_EXCHANGE;
        let target = Target::Exchange {
            exchange: exchange.into(),
            key: key.map(Into::into),
            must_arrive: !is_topic,
        };
        Ok(Resolved::new(Node::Target(target), first))
    }

    /// What makes a queue that a link names and that is not there; `None`: it is not made.
    pub(super) fn creation(&mut self, number: u16, handle: u32) -> Option<Request> {
        if !self.settings.creates_queues {
            return None;
        }
        let link = self.sessions.get(number)?.link(handle)?;
        let role = link.role;
        let Performative::Attach(attach) =
            Performative::decode_body(&link.attaching()?.frame).ok()?.0
        else {
            return None;
        };
        let (address, capabilities) = match (attach.source, attach.target, role) {
            (Some(source), _, Role::Sender) => (source.address, source.capabilities),
            (_, Some(AnyTarget::Target(it)), Role::Receiver) => (it.address, it.capabilities),
            _ => return None,
        };
        let kind = NodeKind::of(capabilities);
        let name = match address::parse(address?, kind).ok()? {
            Address::Queue(name) => fitting_name(&name).into_owned(),
            Address::Any(name) | Address::Subscription { queue: name, .. } => {
                fitting_name(name).into_owned()
            }
            _ => return None,
        };
        // A temporary queue that is gone does not come back.
        if name.starts_with(NAMES.reserved_prefix) || capabilities.contains(TEMPORARY_QUEUE) {
            return None;
        }
        let options = mapping::named_queue(kind == Some(NodeKind::Queue));
        Some(Request::DeclareQueue { name, options: Some(options) })
    }
}

/// A queue or topic that a link asks for without naming it.
fn temporary(
    handle: u32,
    capabilities: Symbols<'_>,
    properties: Option<Map<'_>>,
) -> Result<CreateTemporary, Fault> {
    let policy = mapping::lifetime_policy(properties.unwrap_or_default())
        .map_err(|it| Fault::link(handle, it.condition(), it.to_string()))?;
    let kind = match capabilities.contains(TEMPORARY_TOPIC) || capabilities.contains("topic") {
        true => TemporaryKind::Topic,
        false => TemporaryKind::Queue(mapping::own_queue()),
    };
    Ok(mapping::temporary(consumer_of(handle), kind, policy))
}

fn service(service: Service) -> Resolved {
    Resolved::new(Node::Service(service), First::Nothing)
}

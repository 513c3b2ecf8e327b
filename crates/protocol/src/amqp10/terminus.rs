//! What sources and targets of links stand for.

use super::address::{self, Address, NodeKind};
use super::codec::{
    AnyTarget, Attach, Condition, DistributionMode, Performative, SenderSettleMode,
};
use super::fault::Fault;
use super::handler::Handler;
use super::link::{Node, Role, Source, Target};
use super::mapping;
use crate::names::SUBJECT_EXCHANGE;
use crate::{Context, Host};
use angarium_engine::Request;

/// What has to be asked of the engine before a link can be used.
#[derive(Debug)]
pub(super) enum First {
    /// Whether the queue of that name is there; it is made where it is not.
    Queue(String),
    /// Whether the exchange is there.
    Exchange(String),
    /// A queue whose name the engine makes up.
    NewQueue,
    /// Nothing.
    Nothing,
}

impl Handler {
    /// Reads the source of a link on which we send.
    pub(super) fn source(&self, attach: &Attach<'_>) -> Result<(Node, First), Fault> {
        let handle = attach.handle;
        let refuse = |condition, text: &str| Err(Fault::link(handle, condition, text));
        let Some(source) = attach.source else {
            return refuse(Condition::NotFound, "there is no link of that name to recover");
        };
        if source.filter.is_some_and(|filters| !filters.is_empty()) {
            return refuse(Condition::NotImplemented, "filters are not offered");
        }
        let mut node = Source {
            is_presettled: attach.snd_settle_mode == SenderSettleMode::Settled,
            default_outcome: source.default_outcome.map(mapping::outcome),
            priority: mapping::priority(attach),
            ..Source::default()
        };
        if source.dynamic {
            node.is_dynamic = true;
            return Ok((Node::Source(node), First::NewQueue));
        }
        let kind = NodeKind::of(source.capabilities);
        let parsed = address::parse(source.address.unwrap_or_default(), kind)
            .map_err(|why| Fault::link(handle, Condition::InvalidField, why))?;
        let first = match parsed {
            Address::Queue(name) => First::Queue(name.into_owned()),
            Address::Any(name) => First::Queue(name.to_owned()),
            Address::Topic(pattern) => {
                node.binding = Some((SUBJECT_EXCHANGE.to_owned(), pattern.into_owned()));
                First::NewQueue
            }
            Address::Exchange { exchange, key } => {
                let key = key.unwrap_or_default().into_owned();
                node.binding = Some((exchange.into_owned(), key));
                First::NewQueue
            }
            Address::Subscription { topic, queue } => {
                node.binding = Some((SUBJECT_EXCHANGE.to_owned(), topic.to_owned()));
                First::Queue(queue.to_owned())
            }
            Address::Management | Address::ReadOnlyManagement => {
                return refuse(Condition::NotImplemented, "there is no management node");
            }
        };
        let is_queue = matches!(first, First::Queue(_));
        if is_queue && source.distribution_mode == Some(DistributionMode::Copy) {
            node.browses = true;
            node.is_presettled = true;
        }
        Ok((Node::Source(node), first))
    }

    /// Reads the target of a link on which we receive.
    pub(super) fn target(
        &self,
        context: &mut Context<impl Host>,
        number: u16,
        attach: &Attach<'_>,
    ) -> Result<(Node, First), Fault> {
        let handle = attach.handle;
        let refuse = |condition, text: &str| Err(Fault::link(handle, condition, text));
        let target = match attach.target {
            Some(AnyTarget::Target(target)) => target,
            Some(AnyTarget::Coordinator(_)) => {
                return refuse(Condition::NotImplemented, "transactions are not offered");
            }
            None => return refuse(Condition::InvalidField, "the link has no target"),
        };
        if target.dynamic {
            return Ok((Node::None, First::NewQueue));
        }
        let Some(address) = target.address else {
            return Ok((Node::Target(Target::Anonymous), First::Nothing));
        };
        let parsed = address::parse(address, NodeKind::of(target.capabilities))
            .map_err(|why| Fault::link(handle, Condition::InvalidField, why))?;
        let (exchange, key, first) = match parsed {
            Address::Queue(name) => {
                let name = name.into_owned();
                (String::new(), Some(name.clone()), First::Queue(name))
            }
            Address::Any(name) | Address::Subscription { queue: name, .. } => {
                (String::new(), Some(name.to_owned()), First::Queue(name.to_owned()))
            }
            Address::Topic(subject) => {
                (SUBJECT_EXCHANGE.to_owned(), Some(subject.into_owned()), First::Nothing)
            }
            Address::Exchange { exchange, key } => {
                let exchange = exchange.into_owned();
                let first = match exchange.as_str() {
                    "" => First::Nothing,
                    _ => First::Exchange(exchange.clone()),
                };
                (exchange, key.map(|key| key.into_owned()), first)
            }
            Address::Management | Address::ReadOnlyManagement => {
                return refuse(Condition::NotImplemented, "there is no management node");
            }
        };
        let id = self.channel_id(number);
        let right = context.engine.check_right_to_publish(
            id,
            &exchange,
            key.as_deref().unwrap_or_default(),
        );
        right.map_err(|refusal| Fault::refused(handle, refusal))?;
        let (exchange, key) = (exchange.into(), key.map(Into::into));
        Ok((Node::Target(Target::Exchange { exchange, key }), first))
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
            Address::Queue(name) => name.into_owned(),
            Address::Any(name) | Address::Subscription { queue: name, .. } => name.to_owned(),
            _ => return None,
        };
        let options = mapping::named_queue(kind == Some(NodeKind::Queue));
        Some(Request::DeclareQueue { name, options: Some(options) })
    }
}

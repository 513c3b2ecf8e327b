//! Links as the handler has them.

use super::codec::OwnedValue;
use super::management::Service;
use angarium_engine::selector::Filter;
use angarium_engine::{GatheredBody, Outcome, SubscriptionInfo, TransactionId};

/// Which end of a link the broker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Sender,
    Receiver,
}

/// How far a link has come.
#[derive(Debug)]
pub(super) enum LinkStage {
    /// The engine is at it; the attach is not answered.
    Attaching(Box<Attaching>),
    /// In use.
    Attached,
    /// The peer has detached it, and the engine is at that.
    Detaching,
    /// We have detached it; the peer has not answered.
    Detached,
}

/// A link that is being attached.
#[derive(Debug, Default)]
pub(super) struct Attaching {
    /// The peer's attach frame.
    pub(super) frame: Box<[u8]>,
    /// The address that a node was given which the peer has asked for without a name.
    pub(super) address: Option<String>,
    /// Of the filters that were asked for, those that hold.
    pub(super) filters: Option<OwnedValue>,
    /// The subscription that was found by the link's name.
    pub(super) recovered: Option<Box<SubscriptionInfo>>,
    /// What it asks for without a name is a topic.
    pub(super) is_topic: bool,
    /// Credit that came meanwhile.
    pub(super) flow: Option<Credit>,
    /// The peer has detached it meanwhile; whether it closes it.
    pub(super) detach: Option<bool>,
}

/// What a flow frame says of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    pub(super) delivery_count: Option<u32>,
    pub(super) link_credit: u32,
    pub(super) drain: bool,
    pub(super) echo: bool,
}

/// One link.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) handle: u32,
    pub(super) name: Box<str>,
    pub(super) role: Role,
    pub(super) stage: LinkStage,
    pub(super) node: Node,
    /// It holds a temporary queue or topic, or has a place of its client.
    pub(super) holds: bool,
    /// The receiver settles when the sender has (receiver settle mode `second`).
    pub(super) is_second: bool,
    /// A message that has come in part.
    pub(super) unfinished: Option<Box<Unfinished>>,
}

/// What a link leads to or from.
#[derive(Debug)]
pub(super) enum Node {
    /// A queue that messages come from.
    Source(Source),
    /// Where messages go.
    Target(Target),
    /// A durable subscription that the peer asks for by its link's name alone: it is consumed from once
    /// there is credit.
    Recovered(Source),
    /// What answers requests that come as messages.
    Service(Service),
    /// The way of its answers, to what the peer calls so.
    Answers { to: Box<str> },
    /// What begins and ends transactions.
    Coordinator,
}

/// What a named subscription is found by.
#[derive(Clone, Debug)]
pub(super) struct SubscriptionName {
    pub(super) owner: Option<String>,
    pub(super) name: String,
}

/// A queue that messages come from.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) queue: String,
    pub(super) is_presettled: bool,
    pub(super) browses: bool,
    pub(super) priority: i32,
    /// What becomes of deliveries that are settled without a state, or whose connection is lost.
    pub(super) default_outcome: Option<Outcome>,
    /// The messages that it is about.
    pub(super) filter: Option<Filter>,
    /// The client whose messages a subscription leaves out.
    pub(super) not_from: Option<String>,
    /// What the queue is bound to where it is made for the link: exchange and key.
    pub(super) binding: Option<(String, String)>,
    /// The named subscription that the queue is of; it is deleted where the link is closed.
    pub(super) subscription: Option<SubscriptionName>,
    /// Others consume from the same subscription.
    pub(super) is_shared: bool,
}

/// Where messages go.
#[derive(Debug)]
pub(super) enum Target {
    /// To an exchange; without a key it is the subject of each message. `must_arrive`: the outcome says so
    /// where no queue takes a message.
    Exchange { exchange: Box<str>, key: Option<Box<str>>, must_arrive: bool },
    /// Where each message says itself.
    Anonymous,
}

/// A message whose transfer frames have not all come. Its buffer grows with what comes.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    pub(super) begun: Begun,
    pub(super) message: GatheredBody,
}

/// What the frames of an unfinished message say of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Begun {
    pub(super) delivery_id: u32,
    /// It is the resumption of a delivery that is not known here, and is dropped.
    pub(super) is_resumed: bool,
    pub(super) is_settled: bool,
    pub(super) transaction: Option<TransactionId>,
}

impl Link {
    pub(super) fn is_attached(&self) -> bool {
        matches!(self.stage, LinkStage::Attached)
    }
    /// Whether a link of the same name in another session of the connection takes its place. Subscriptions
    /// are used by one link at a time, or shared.
    pub(super) fn may_be_stolen(&self) -> bool {
        let is_named = matches!(&self.node, Node::Source(source) if source.subscription.is_some());
        (self.is_attached() || self.is_attaching()) && !is_named
    }
    pub(super) fn is_attaching(&self) -> bool {
        matches!(self.stage, LinkStage::Attaching(_))
    }
    pub(super) fn attaching(&mut self) -> Option<&mut Attaching> {
        match &mut self.stage {
            LinkStage::Attaching(attaching) => Some(attaching),
            _ => None,
        }
    }
    /// Octets of memory that it takes, about.
    pub(super) fn held_bytes(&self) -> usize {
        let unfinished = self.unfinished.as_ref().map_or(0, |it| it.message.capacity());
        let attaching = match &self.stage {
            LinkStage::Attaching(attaching) => attaching.frame.len(),
            _ => 0,
        };
        let answers = match &self.node {
            Node::Answers { to } => to.len(),
            _ => 0,
        };
        size_of::<Link>() + self.name.len() + unfinished + attaching + answers
    }
}

/// The name of the consumer of a link.
#[inline]
pub(super) fn consumer_of(handle: u32) -> String {
    handle.to_string()
}

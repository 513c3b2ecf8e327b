//! Temporary queues and topics, and who holds them.
//!
//! A holder is a part of a channel, named by it, that keeps a temporary queue or topic. Those of queues are
//! counted here, those of topics by the router.

mod requests;
mod review;

use crate::{Lifetime, LifetimeEnd, Time};

/// A lifetime with those that hold what lives by it.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) lifetime: Lifetime,
    pub(crate) holders: u32,
    pub(crate) has_creator: bool,
    /// When a queue is looked at that goes once it is empty.
    pub(crate) checked_at: Option<Time>,
}

impl From<Lifetime> for Held {
    fn from(lifetime: Lifetime) -> Held {
        Held { lifetime, holders: 0, has_creator: false, checked_at: None }
    }
}

impl Held {
    /// One that its creator holds.
    pub(crate) fn by_creator(lifetime: Lifetime) -> Held {
        Held { holders: 1, has_creator: true, ..Held::from(lifetime) }
    }

    /// A holder has gone.
    pub(crate) fn released(&mut self, is_creator: bool) {
        self.holders = self.holders.saturating_sub(1);
        self.has_creator &= !is_creator;
    }

    /// Whether what is used, or not, has lived to its end.
    pub(crate) fn is_over(&self, is_used: bool) -> bool {
        match self.lifetime.until {
            LifetimeEnd::CreatorLeaves => !self.has_creator,
            LifetimeEnd::Unused => self.holders == 0 && !is_used,
        }
    }
}

/// What a channel holds.
#[derive(Debug)]
pub(crate) struct Hold {
    /// The holder's name; `None`: who opens a subscription without saying for whom.
    holder: Option<String>,
    node: HeldNode,
    is_creator: bool,
    /// It has opened a subscription and not begun to consume from it.
    opens: bool,
}

impl Hold {
    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let node = match &self.node {
            HeldNode::Queue(_) => 0,
            HeldNode::Topic(name) => name.len(),
        };
        size_of::<Hold>() + self.holder.as_ref().map_or(0, String::len) + node
    }
}

#[derive(Debug, PartialEq, Eq)]
enum HeldNode {
    /// The queue of that number.
    Queue(u64),
    Topic(String),
}

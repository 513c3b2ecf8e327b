//! What the handler remembers of a connection's sessions.

use super::fault::Fault;
use super::link::{Link, Node, Role};
use super::pending::Pending;
use std::collections::VecDeque;

/// The reply address that stands for the link that is paired with the request's.
pub(super) const PAIRED: &str = "$me";

/// How far a session has come.
#[derive(Debug)]
pub(super) enum SessionStage {
    /// In use.
    Open,
    /// Nothing is taken for it any more: it ends once what is underway is answered, with an error or at the
    /// peer's request.
    Ending(Option<Fault>),
    /// We have ended it; the peer has not answered.
    Ended,
}

/// A session, which is a channel of the engine.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u16,
    pub(super) stage: SessionStage,
    /// By handle.
    pub(super) links: Vec<Link>,
    /// What the engine's answers are for, in their order.
    pub(super) pending: VecDeque<Pending>,
}

impl Session {
    #[inline]
    pub(super) fn link_index(&self, handle: u32) -> Option<usize> {
        let guess = handle as usize;
        if self.links.get(guess).is_some_and(|link| link.handle == handle) {
            return Some(guess);
        }
        self.links.binary_search_by_key(&handle, |link| link.handle).ok()
    }
    pub(super) fn link(&mut self, handle: u32) -> Option<&mut Link> {
        let index = self.link_index(handle)?;
        self.links.get_mut(index)
    }
    pub(super) fn add_link(&mut self, link: Link) {
        if let Err(at) = self.links.binary_search_by_key(&link.handle, |it| it.handle) {
            self.links.insert(at, link);
        }
    }
    pub(super) fn remove_link(&mut self, handle: u32) -> Option<Link> {
        let index = self.link_index(handle)?;
        Some(self.links.remove(index))
    }
    pub(super) fn link_named(&mut self, name: &str, role: Role) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.role == role && *link.name == *name)
    }
    /// The link by which answers go to a reply address: the one that is paired with the request's (`$me`), or
    /// whose target the peer calls so.
    pub(super) fn link_for_answers(&self, request: u32, reply_to: &str) -> Option<u32> {
        let name = &self.links.iter().find(|link| link.handle == request)?.name;
        let is_it = |link: &&Link| match &link.node {
            Node::Answers { to } if link.role == Role::Sender => match reply_to {
                PAIRED => link.name == *name,
                _ => **to == *reply_to,
            },
            _ => false,
        };
        self.links.iter().find(is_it).map(|link| link.handle)
    }
    pub(super) fn is_open(&self) -> bool {
        matches!(self.stage, SessionStage::Open)
    }
}

impl Session {
    /// Octets of memory that it takes, about.
    pub(super) fn held_bytes(&self) -> usize {
        size_of::<Session>() + self.links.iter().map(Link::held_bytes).sum::<usize>()
    }
}

/// The sessions of a connection, by number.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    pub(super) all: Vec<Session>,
    /// Where the last one was found: the next frame is most likely for the same.
    last: usize,
}

/// Where a link is, for the time of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) session: usize,
    pub(super) link: usize,
}

impl Sessions {
    /// The link in that place.
    #[inline]
    pub(super) fn link_at(&mut self, place: Place) -> &mut Link {
        &mut self.all[place.session].links[place.link]
    }
    #[inline]
    pub(super) fn find(&mut self, number: u16) -> Option<usize> {
        if self.all.get(self.last).is_none_or(|session| session.number != number) {
            self.last = self.all.binary_search_by_key(&number, |session| session.number).ok()?;
        }
        Some(self.last)
    }
    #[inline]
    pub(super) fn get(&mut self, number: u16) -> Option<&mut Session> {
        let index = self.find(number)?;
        self.all.get_mut(index)
    }
    pub(super) fn insert(&mut self, session: Session) {
        if let Err(at) = self.all.binary_search_by_key(&session.number, |it| it.number) {
            self.all.insert(at, session);
        }
    }
    pub(super) fn remove(&mut self, number: u16) {
        if let Some(index) = self.find(number) {
            self.all.remove(index);
        }
    }
    /// Whether all is answered that this session has asked for, or all have.
    pub(super) fn are_answered(&self, number: Option<u16>) -> bool {
        let mut asking = self.all.iter().filter(|session| !session.pending.is_empty());
        asking.all(|session| number.is_some_and(|number| session.number != number))
    }
    /// Requests that the engine has not answered.
    pub(super) fn pending(&self) -> usize {
        self.all.iter().map(|session| session.pending.len()).sum()
    }
}

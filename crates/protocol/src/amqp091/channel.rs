//! What a connection remembers of each of its channels.

use super::fault::{Code, Fault};
use angarium_engine::{Credit, GatheredBody};

/// One channel.
#[derive(Debug, Default)]
pub(super) struct Channel {
    pub(super) number: u16,
    /// We sent channel.close and wait for channel.close-ok; everything else is ignored.
    pub(super) closing: bool,
    pub(super) mode: Mode,
    /// Credit that the next consumers get (basic.qos without global).
    pub(super) consumer_credit: Credit,
    /// What an empty queue name means.
    pub(super) last_queue: String,
    /// The method with which it last gave deliveries back: basic.reject (90) or basic.nack (120).
    pub(super) rejected_by: u16,
    /// The consumer of direct replies.
    pub(super) inbox: Option<Box<Inbox>>,
    /// A message that has begun and is not complete.
    pub(super) content: Option<Box<Content>>,
}

/// What publishes on a channel are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Plain,
    Confirm,
    Transaction,
}

/// The consumer of direct replies on a channel.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) consumer_tag: String,
    pub(super) address: String,
}

/// A message whose frames did not arrive in one piece. Its buffers grow with what arrives, never
/// with what is announced alone.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// The fields of basic.publish.
    pub(super) method: Vec<u8>,
    /// Octets of body that the header announced; `None`: no header yet.
    pub(super) body_bytes: Option<u64>,
    pub(super) properties: Vec<u8>,
    pub(super) body: GatheredBody,
}

impl Content {
    /// Octets of body still to come.
    pub(super) fn missing(&self) -> u64 {
        self.body_bytes.unwrap_or(0) - self.body.len() as u64
    }

    /// Takes a part of the body.
    pub(super) fn gather(&mut self, part: &[u8]) -> Result<(), Fault> {
        let all = self.body_bytes.unwrap_or(0);
        if self.body.extend(part, all) {
            return Ok(());
        }
        let text = format!("the system refuses the memory for a message of {all} bytes");
        Err(Fault::new(Code::RESOURCE_ERROR, text))
    }
}

/// The channels of a connection, by number.
#[derive(Debug, Default)]
pub(super) struct Channels {
    /// By number.
    pub(super) all: Vec<Channel>,
    /// Where the last one was found: the next frame is most likely for the same.
    last: usize,
}

impl Channels {
    #[inline]
    pub(super) fn find(&mut self, number: u16) -> Option<usize> {
        if self.all.get(self.last).is_some_and(|channel| channel.number == number) {
            return Some(self.last);
        }
        self.last = self.all.binary_search_by_key(&number, |channel| channel.number).ok()?;
        Some(self.last)
    }
    pub(super) fn get(&mut self, number: u16) -> Option<&mut Channel> {
        let index = self.find(number)?;
        self.all.get_mut(index)
    }
    pub(super) fn insert(&mut self, number: u16) {
        let Err(at) = self.all.binary_search_by_key(&number, |channel| channel.number) else {
            return;
        };
        // Most connections have one channel: room for exactly one is kept first.
        if self.all.is_empty() {
            self.all.reserve_exact(1);
        }
        self.all.insert(at, Channel { number, ..Channel::default() });
    }
    pub(super) fn remove(&mut self, number: u16) {
        if let Some(index) = self.find(number) {
            self.all.remove(index);
        }
    }
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
    /// Bytes of unfinished messages, and what each channel takes besides.
    pub(super) fn held_bytes(&self) -> usize {
        let contents = self.all.iter().filter_map(|channel| channel.content.as_ref());
        let bytes = |it: &Content| it.method.len() + it.properties.len() + it.body.len();
        size_of::<Channel>() * self.all.len()
            + contents.map(|content| bytes(content)).sum::<usize>()
    }
    /// Whether what comes for one of them is ignored.
    pub(super) fn are_closing(&self) -> bool {
        self.all.iter().any(|channel| channel.closing)
    }
    /// The numbers of channels with an unfinished message.
    pub(super) fn unfinished(&self) -> Vec<u16> {
        let unfinished = self.all.iter().filter(|channel| channel.content.is_some());
        unfinished.map(|channel| channel.number).collect()
    }
    /// Octets of body that unfinished messages have announced.
    pub(super) fn announced_bytes(&self) -> u64 {
        let contents = self.all.iter().filter_map(|channel| channel.content.as_ref());
        contents.filter_map(|content| content.body_bytes).sum()
    }
}

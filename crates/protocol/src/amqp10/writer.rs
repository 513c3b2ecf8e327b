//! What the engine sends to a connection, written in AMQP 1.0 into its output.
//!
//! A session is a channel of the engine, on both sides with the number of the peer's channel; a link that
//! sends is a consumer whose name is the link's handle.

use super::codec::Condition;
use super::fault::Reason;
use super::frame;
use super::session_state::{SessionState, handle_of};
use crate::output::{Output, ProtocolWriter};
use angarium_engine::{CancelReason, ChannelId, Confirm, Delivery};

/// Why a link ends whose place another connection has taken.
pub(super) const TAKEN_OVER: Reason<'static> = Reason {
    condition: Condition::LinkStolen,
    text: "the link was attached anew by another connection",
};

/// What AMQP 1.0 needs to write to a connection, and what both halves of the connection know of its sessions.
#[derive(Debug)]
pub struct Writer {
    /// By number.
    sessions: Vec<SessionState>,
    /// Where the last one was found.
    last: usize,
    /// Largest frame that the peer takes.
    pub(super) frame_bytes_max: usize,
}

impl Default for Writer {
    fn default() -> Self {
        Writer { sessions: Vec::new(), last: 0, frame_bytes_max: frame::MIN_MAX_BYTES as usize }
    }
}

impl Writer {
    /// The session of that number.
    #[inline]
    pub(super) fn session(&mut self, number: u16) -> Option<&mut SessionState> {
        let is_there = |session: &SessionState| session.number == number;
        if !self.sessions.get(self.last).is_some_and(is_there) {
            self.last = self.sessions.binary_search_by_key(&number, |it| it.number).ok()?;
        }
        self.sessions.get_mut(self.last)
    }
    /// A session begins.
    pub(super) fn begin(&mut self, session: SessionState) {
        if let Err(at) = self.sessions.binary_search_by_key(&session.number, |it| it.number) {
            self.sessions.insert(at, session);
        }
    }
    /// A session has ended.
    pub(super) fn end(&mut self, out: &mut Output, number: u16) {
        if let Some(session) = self.session(number) {
            session.end(out);
            self.sessions.remove(self.last);
        }
    }
    /// Stops credit for all links, or gives it again.
    pub(super) fn pause(&mut self, out: &mut Output, is_paused: bool) {
        self.sessions.iter_mut().for_each(|session| session.pause(out, is_paused));
    }
}

impl ProtocolWriter for Writer {
    #[inline]
    fn deliver(&mut self, out: &mut Output, delivery: &Delivery<'_>) {
        let frame_bytes_max = self.frame_bytes_max;
        if let Some(session) = self.session(delivery.channel.number) {
            session.deliver(out, delivery, frame_bytes_max);
        }
    }

    #[inline]
    fn confirm(&mut self, out: &mut Output, channel: ChannelId, confirm: Confirm<'_>) {
        if let Some(session) = self.session(channel.number) {
            session.confirm(out, confirm);
        }
    }

    fn congested(&mut self, _: &mut Output, channel: ChannelId, publish: u64, queue: u64) {
        if let Some(session) = self.session(channel.number) {
            session.congested(publish, queue);
        }
    }

    fn eased(&mut self, out: &mut Output, channel: ChannelId, queue: u64) {
        if let Some(session) = self.session(channel.number) {
            session.eased(out, queue);
        }
    }

    fn consumer_cancelled(
        &mut self,
        out: &mut Output,
        channel: ChannelId,
        consumer: &str,
        why: CancelReason,
    ) {
        let Some(handle) = handle_of(consumer) else { return };
        let (condition, text) = match why {
            CancelReason::QueueDeleted => (Condition::ResourceDeleted, "the queue was deleted"),
            CancelReason::QueueFailed => {
                (Condition::InternalError, "the queue has a message that cannot be read back")
            }
            CancelReason::Forbidden => {
                (Condition::UnauthorizedAccess, "the user may not read from the queue any more")
            }
            CancelReason::TakenOver => (TAKEN_OVER.condition, TAKEN_OVER.text),
        };
        if let Some(session) = self.session(channel.number) {
            session.end_link(out, handle, Reason::new(condition, text));
        }
    }

    fn drained(&mut self, out: &mut Output, channel: ChannelId, consumer: &str, _: u64) {
        let frame_bytes_max = self.frame_bytes_max;
        if let (Some(session), Some(handle)) = (self.session(channel.number), handle_of(consumer)) {
            session.drained(out, handle, frame_bytes_max);
        }
    }

    /// What is held back is counted with the output.
    fn held_bytes(&self) -> usize {
        self.sessions.iter().map(SessionState::held_bytes).sum()
    }

    fn send_held(&mut self, out: &mut Output) {
        let frame_bytes_max = self.frame_bytes_max;
        self.sessions.iter_mut().for_each(|session| session.send_held(out, frame_bytes_max));
    }
}

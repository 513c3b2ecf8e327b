//! What both halves of a connection know of a session: windows, delivery ids, its links, what is held back.

use super::codec::{Detach, Flow, write_frame};
use super::fault::Reason;
use super::held::{Held, Queue, Step, Waiting};
use super::link_state::{LinkState, Receiver, Sender};
use super::stored::{self, Delivered, Kept};
use super::transfer_frame::{self, Begun, FIRST_BYTES_MAX, First};
use super::unconfirmed::{Ring, Unconfirmed};
use super::{properties, translate};
use crate::output::Output;
use crate::properties::is_plain;
use angarium_engine::{Delivery, MessageView};
use std::borrow::Cow;

/// The outgoing window in our frames: we send as many as the peer allows.
const OUTGOING_WINDOW: u32 = i32::MAX as u32;
/// Messages of the broker itself that wait for credit on one link.
const ANSWERS_MAX: usize = 256;
/// Changes of the distance between delivery ids and tags in one session.
const BREAKS_MAX: usize = 4096;

/// From a delivery on, tags are that much more than they would be otherwise, modulo 2 to the 64.
#[derive(Clone, Copy, Debug)]
struct Break {
    /// How many deliveries began before.
    from: u64,
    /// `None`: the delivery is not one of the engine's.
    ahead: Option<u64>,
}

/// A session.
#[derive(Debug)]
pub(super) struct SessionState {
    pub(super) number: u16,
    /// The id of the next transfer frame.
    next_outgoing_id: u32,
    /// Transfer frames that the peer takes now.
    window: u32,
    /// The id of the peer's next transfer frame.
    next_incoming_id: u32,
    /// Transfer frames that the peer may send, and as many as it is allowed at most.
    incoming_window: u32,
    incoming_window_max: u32,
    /// Deliveries that have begun.
    begun: u64,
    /// Where their ids are not their tags less one: deliveries were dropped before they began.
    breaks: Vec<Break>,
    /// By handle.
    pub(super) links: Vec<LinkState>,
    /// Why links have to end whose attaches are not answered, by handle.
    ended: Vec<(u32, Reason<'static>)>,
    held: Queue,
    pub(super) unconfirmed: Ring,
}

/// The windows that a peer begins with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    /// The id of its first transfer frame.
    pub(super) next_outgoing_id: u32,
    /// Transfer frames that it takes.
    pub(super) incoming_window: u32,
}

impl SessionState {
    pub(super) fn new(number: u16, peer: Windows, incoming_window: u32) -> SessionState {
        SessionState {
            number,
            next_outgoing_id: 0,
            window: peer.incoming_window,
            next_incoming_id: peer.next_outgoing_id,
            incoming_window,
            incoming_window_max: incoming_window,
            begun: 0,
            breaks: Vec::new(),
            links: Vec::new(),
            ended: Vec::new(),
            held: Queue::default(),
            unconfirmed: Ring::default(),
        }
    }

    // ---- links ----

    #[inline]
    fn index(&self, handle: u32) -> Option<usize> {
        // Handles begin with 0 and are counted up: most are where they would be without gaps.
        let guess = handle as usize;
        if self.links.get(guess).is_some_and(|link| link.handle() == handle) {
            return Some(guess);
        }
        self.links.binary_search_by_key(&handle, LinkState::handle).ok()
    }
    pub(super) fn link(&self, handle: u32) -> Option<&LinkState> {
        self.links.get(self.index(handle)?)
    }
    #[inline]
    pub(super) fn link_mut(&mut self, handle: u32) -> Option<&mut LinkState> {
        let index = self.index(handle)?;
        self.links.get_mut(index)
    }
    pub(super) fn sender(&mut self, handle: u32) -> Option<&mut Sender> {
        match self.link_mut(handle)? {
            LinkState::Sender(link) => Some(link),
            LinkState::Receiver(_) => None,
        }
    }
    #[inline]
    pub(super) fn receiver(&mut self, handle: u32) -> Option<&mut Receiver> {
        match self.link_mut(handle)? {
            LinkState::Receiver(link) => Some(link),
            LinkState::Sender(_) => None,
        }
    }
    /// Adds a link, in place of one of its handle.
    pub(super) fn add_link(&mut self, link: LinkState) {
        match self.links.binary_search_by_key(&link.handle(), LinkState::handle) {
            Ok(index) => self.links[index] = link,
            Err(index) => self.links.insert(index, link),
        }
    }
    /// Ends a link with an error: now, or when its attach is answered ([`SessionState::take_ended`]).
    pub(super) fn end_link(&mut self, out: &mut Output, handle: u32, reason: Reason<'static>) {
        match self.link(handle) {
            Some(link) if link.is_detached() => {}
            Some(_) => self.detach(out, handle, reason),
            None if self.ended.iter().any(|(ended, _)| *ended == handle) => {}
            None => self.ended.push((handle, reason)),
        }
    }
    /// Why a link has to end that is being attached, if it has to.
    pub(super) fn take_ended(&mut self, handle: u32) -> Option<Reason<'static>> {
        let at = self.ended.iter().position(|(ended, _)| *ended == handle)?;
        Some(self.ended.swap_remove(at).1)
    }
    /// Removes a link, and what is held back for it.
    pub(super) fn remove_link(&mut self, handle: u32, out: &mut Output) {
        self.drop_held(handle, out);
        if let Some(index) = self.index(handle) {
            self.links.remove(index);
        }
    }
    /// Detaches a link with an error. It stays until the peer has answered.
    pub(super) fn detach(&mut self, out: &mut Output, handle: u32, reason: Reason<'_>) {
        self.drop_held(handle, out);
        match self.link_mut(handle) {
            Some(LinkState::Sender(link)) => link.is_detached = true,
            Some(LinkState::Receiver(link)) => link.is_detached = true,
            None => {}
        }
        let error = Some(reason.error());
        let detach = Detach { handle, closed: true, error };
        write_frame(&detach, self.number, &[], &mut out.bytes);
    }
    fn drop_held(&mut self, handle: u32, out: &mut Output) {
        let before = self.held.bytes();
        self.held.drop_link(handle);
        out.held = out.held.saturating_sub(before - self.held.bytes());
    }
    /// The session ends: what is held back is dropped.
    pub(super) fn end(&mut self, out: &mut Output) {
        out.held = out.held.saturating_sub(self.held.bytes());
    }
    /// Octets of memory that it takes, about.
    pub(super) fn held_bytes(&self) -> usize {
        size_of::<SessionState>()
            + self.links.len() * size_of::<LinkState>()
            + self.unconfirmed.len() * size_of::<Unconfirmed>()
            + self.breaks.len() * size_of::<Break>()
    }

    // ---- flow ----

    /// Takes the windows in a flow frame of the peer.
    pub(super) fn take_windows(&mut self, flow: &Flow<'_>) {
        let seen = flow.next_incoming_id.unwrap_or(0);
        let left = seen.wrapping_add(flow.incoming_window).wrapping_sub(self.next_outgoing_id);
        // Frames underway may be more than a window that was made smaller.
        self.window = if left > i32::MAX as u32 && left > flow.incoming_window { 0 } else { left };
    }

    /// Tells the peer the state of the session, and of a link.
    pub(super) fn put_flow(&mut self, out: &mut Output, handle: Option<u32>) {
        self.incoming_window = self.incoming_window_max;
        let mut flow = Flow {
            next_incoming_id: Some(self.next_incoming_id),
            incoming_window: self.incoming_window,
            next_outgoing_id: self.next_outgoing_id,
            outgoing_window: OUTGOING_WINDOW,
            ..Flow::default()
        };
        match handle.and_then(|handle| self.link(handle)) {
            None => {}
            Some(LinkState::Sender(link)) => {
                flow.handle = handle;
                flow.delivery_count = Some(link.delivery_count());
                flow.link_credit = Some(link.credit());
                flow.available = Some(link.unsent);
            }
            Some(LinkState::Receiver(link)) => {
                flow.handle = handle;
                flow.delivery_count = Some(link.count);
                flow.link_credit = Some(link.credit);
            }
        }
        write_frame(&flow, self.number, &[], &mut out.bytes);
    }

    /// Gives credit on a link where it is due.
    #[inline]
    pub(super) fn top_up(&mut self, out: &mut Output, handle: u32) {
        if self.receiver(handle).is_some_and(Receiver::top_up) {
            self.put_flow(out, Some(handle));
        }
    }

    /// Stops credit for all links, or gives it again.
    pub(super) fn pause(&mut self, out: &mut Output, is_paused: bool) {
        for index in 0..self.links.len() {
            if let LinkState::Receiver(link) = &mut self.links[index] {
                link.is_paused = is_paused;
                let handle = link.handle;
                self.top_up(out, handle);
            }
        }
    }

    /// The engine has nothing more for a link whose peer drains it.
    pub(super) fn drained(&mut self, out: &mut Output, handle: u32, frame_bytes_max: usize) {
        if self.held.is_empty() {
            return self.give_up_credit(out, handle);
        }
        self.held.push(Waiting::Drained(handle));
        self.send_held(out, frame_bytes_max);
    }

    fn give_up_credit(&mut self, out: &mut Output, handle: u32) {
        let Some(link) = self.sender(handle).filter(|link| !link.is_detached) else { return };
        link.give_up_credit();
        let (delivery_count, available) = (Some(link.delivery_count()), Some(0));
        let flow = Flow {
            next_incoming_id: Some(self.next_incoming_id),
            incoming_window: self.incoming_window,
            next_outgoing_id: self.next_outgoing_id,
            outgoing_window: OUTGOING_WINDOW,
            handle: Some(handle),
            delivery_count,
            link_credit: Some(0),
            available,
            drain: true,
            ..Flow::default()
        };
        write_frame(&flow, self.number, &[], &mut out.bytes);
    }

    // ---- deliveries ----

    #[inline]
    fn next_delivery_id(&self) -> u32 {
        self.begun as u32
    }

    /// A delivery begins; `tag`: the engine's, if it is one of the engine's.
    #[inline]
    fn count_begun(&mut self, tag: Option<u64>) {
        let ahead = tag.map(|tag| tag.wrapping_sub(self.begun + 1));
        if ahead != self.breaks.last().map_or(Some(0), |last| last.ahead) {
            self.breaks.push(Break { from: self.begun, ahead });
        }
        self.begun += 1;
    }

    /// Whether too many deliveries were dropped in too many places to remember where.
    pub(super) fn is_broken(&self) -> bool {
        self.breaks.len() > BREAKS_MAX
    }

    #[inline]
    fn count_frame(&mut self) {
        self.window -= 1;
        self.next_outgoing_id = self.next_outgoing_id.wrapping_add(1);
    }

    /// Sends a delivery, or holds it back where the peer has no room for it.
    #[inline]
    pub(super) fn deliver(
        &mut self,
        out: &mut Output,
        delivery: &Delivery<'_>,
        frame_bytes_max: usize,
    ) {
        let Some(handle) = handle_of(delivery.consumer) else { return };
        let Some(link) = self.sender(handle) else { return };
        if link.is_detached {
            return;
        }
        link.deliver();
        let (settled, tag, message) = (link.settles, delivery.tag, delivery.message);
        let tells_way = link.tells_way;
        if message.shared.is_some() || self.window == 0 || !self.held.is_empty() {
            return self.hold(out, handle, delivery, frame_bytes_max);
        }
        let delivery_id = self.next_delivery_id();
        let kept = kept(message, tells_way);
        let kept = Kept::of(&kept);
        out.bytes.reserve(
            FIRST_BYTES_MAX + stored::HEADS_BYTES_MAX + kept.sections.len() + message.body.len(),
        );
        let first = First { handle, delivery_id, tag, settled };
        let begun = transfer_frame::begin_first(&mut out.bytes, self.number, first);
        put_message(&mut out.bytes, &kept, message, delivery.redelivered);
        if out.bytes.len() - begun.start <= frame_bytes_max {
            transfer_frame::end(&mut out.bytes, begun, false);
            self.count_begun(Some(tag));
            self.count_frame();
            return;
        }
        self.hold_written(out, begun, first, frame_bytes_max);
    }

    /// Holds back a delivery whose message was written and does not fit a frame.
    #[cold]
    fn hold_written(
        &mut self,
        out: &mut Output,
        begun: Begun,
        First { handle, tag, settled, .. }: First,
        frame_bytes_max: usize,
    ) {
        let head = out.bytes.split_off(begun.payload);
        out.bytes.truncate(begun.start);
        let held = Held { handle, tag: Some(tag), settled, head, body: None, sent: 0 };
        self.keep(out, held, frame_bytes_max);
    }

    #[cold]
    fn hold(
        &mut self,
        out: &mut Output,
        handle: u32,
        delivery: &Delivery<'_>,
        frame_bytes_max: usize,
    ) {
        let message = delivery.message;
        let link = self.sender(handle).map(|link| (link.settles, link.tells_way));
        let (settled, tells_way) = link.unwrap_or_default();
        let mut head = Vec::new();
        let kept = kept(message, tells_way);
        let kept = Kept::of(&kept);
        let body = message.shared.cloned();
        match &body {
            Some(_) => {
                let delivered = Delivered::of(message, delivery.redelivered);
                stored::put_before_body(&mut head, &kept, delivered, message.body.len());
            }
            None => put_message(&mut head, &kept, message, delivery.redelivered),
        }
        let tag = Some(delivery.tag);
        let held = Held { handle, tag, settled, head, body, sent: 0 };
        self.keep(out, held, frame_bytes_max);
    }

    fn keep(&mut self, out: &mut Output, held: Held, frame_bytes_max: usize) {
        if let Some(link) = self.sender(held.handle) {
            link.unsent += 1;
        }
        let before = self.held.bytes();
        self.held.push(Waiting::Delivery(held));
        out.held += self.held.bytes() - before;
        self.send_held(out, frame_bytes_max);
    }

    /// Sends of what is held back as much as there is room for.
    pub(super) fn send_held(&mut self, out: &mut Output, frame_bytes_max: usize) {
        if self.held.is_empty() {
            return;
        }
        let before = self.held.bytes();
        while let Some(step) = self.held.step(
            &mut out.bytes,
            self.number,
            self.window,
            self.next_delivery_id(),
            frame_bytes_max,
        ) {
            match step {
                Step::Drained(handle) => self.give_up_credit(out, handle),
                Step::Frame { begins, handle } => {
                    self.count_frame();
                    if let Some(tag) = begins {
                        self.count_begun(tag);
                        if let Some(link) = self.sender(handle) {
                            link.unsent = link.unsent.saturating_sub(1);
                        }
                    }
                }
            }
        }
        out.held = out.held.saturating_sub(before - self.held.bytes());
    }

    /// Sends a message of the broker itself, settled, once the peer has credit for it.
    pub(super) fn send_own(
        &mut self,
        out: &mut Output,
        handle: u32,
        message: &[u8],
        frame_bytes_max: usize,
    ) {
        let Some(link) = self.sender(handle).filter(|link| !link.is_detached) else { return };
        if link.answers.len() < ANSWERS_MAX {
            link.answers.push_back(message.into());
        }
        self.send_answers(out, handle, frame_bytes_max);
    }

    /// Sends the broker's own messages as far as there is credit.
    pub(super) fn send_answers(&mut self, out: &mut Output, handle: u32, frame_bytes_max: usize) {
        while let Some(link) = self.sender(handle)
            && let Some(head) = link.take_answer()
        {
            let held = Held { handle, tag: None, settled: true, head, body: None, sent: 0 };
            self.keep(out, held, frame_bytes_max);
        }
    }

    /// The ranges of tags of the deliveries with ids from `first` to `last`, as far as they have begun.
    pub(super) fn tags(&self, first: u32, last: u32) -> Vec<(u64, u64)> {
        let Some(newest) = self.begun.checked_sub(1) else { return Vec::new() };
        let age = |id: u32| (newest as u32).wrapping_sub(id) as i32;
        let Ok(first_age) = u64::try_from(age(first)) else { return Vec::new() };
        let last_age = u64::try_from(age(last)).unwrap_or(0);
        let (first, last) = (newest.saturating_sub(first_age), newest.saturating_sub(last_age));
        if first > last {
            return Vec::new();
        }
        let range = |first: u64, last: u64, ahead: u64| {
            ((first + 1).wrapping_add(ahead), (last + 1).wrapping_add(ahead))
        };
        let mut ranges = Vec::new();
        let mut from = first;
        let next = self.breaks.partition_point(|it| it.from <= first);
        let mut ahead = next.checked_sub(1).map_or(Some(0), |at| self.breaks[at].ahead);
        for it in &self.breaks[next..] {
            if it.from > last {
                break;
            }
            ranges.extend(ahead.map(|ahead| range(from, it.from - 1, ahead)));
            (from, ahead) = (it.from, it.ahead);
        }
        ranges.extend(ahead.map(|ahead| range(from, last, ahead)));
        ranges
    }

    /// A transfer frame has come; false: there was no room for it.
    #[inline]
    pub(super) fn take_frame(&mut self, out: &mut Output) -> bool {
        let Some(left) = self.incoming_window.checked_sub(1) else { return false };
        self.incoming_window = left;
        self.next_incoming_id = self.next_incoming_id.wrapping_add(1);
        if left < self.incoming_window_max / 2 {
            self.put_flow(out, None);
        }
        true
    }
}

/// The handle of a link in the name of its consumer.
#[inline]
pub(super) fn handle_of(consumer: &str) -> Option<u32> {
    consumer.parse().ok()
}

/// The properties of a message in AMQP 1.0's format, as the broker has changed them.
#[inline]
fn kept<'a>(message: &MessageView<'a>, tells_way: bool) -> Cow<'a, [u8]> {
    let kept = if message.format != crate::format::AMQP10 {
        Cow::Owned(translate::translated(message))
    } else if is_plain(message.annotations) {
        Cow::Borrowed(message.properties)
    } else {
        Cow::Owned(properties::amended(message.properties, message.annotations))
    };
    if !tells_way {
        return kept;
    }
    Cow::Owned(properties::with_way(&kept, message.exchange, message.routing_key))
}

/// Appends a message.
#[inline]
fn put_message(out: &mut Vec<u8>, kept: &Kept<'_>, message: &MessageView<'_>, redelivered: bool) {
    let delivered = Delivered::of(message, redelivered);
    stored::put_before_body(out, kept, delivered, message.body.len());
    out.extend_from_slice(message.body);
}

//! What both halves of a connection know of a link: how many deliveries were counted, and credit.

use std::collections::VecDeque;

/// The broker's end of a link.
#[derive(Debug)]
pub(super) enum LinkState {
    /// The broker sends.
    Sender(Sender),
    /// The broker receives.
    Receiver(Receiver),
}

/// A link on which the broker sends.
#[derive(Debug, Default)]
pub(super) struct Sender {
    pub(super) handle: u32,
    /// Its deliveries are settled when they are sent.
    pub(super) settles: bool,
    /// Its deliveries say which exchange and routing key they were published with.
    pub(super) tells_way: bool,
    /// Deliveries that the engine has made, of its consumer.
    delivered: u64,
    /// Those of them that are not sent yet.
    pub(super) unsent: u32,
    /// Deliveries and credit that was given up: the delivery-count, were all of them sent.
    count: u32,
    /// Up to which count the peer takes deliveries.
    limit: u32,
    /// Messages of the broker itself that wait for credit.
    pub(super) answers: VecDeque<Vec<u8>>,
    /// We have detached it; the peer has not answered.
    pub(super) is_detached: bool,
}

impl Sender {
    /// A link that has just been attached.
    pub(super) fn new(handle: u32, settles: bool, tells_way: bool) -> Sender {
        Sender { handle, settles, tells_way, ..Sender::default() }
    }
    /// The engine has made a delivery.
    #[inline]
    pub(super) fn deliver(&mut self) {
        self.delivered += 1;
        self.count = self.count.wrapping_add(1);
    }
    /// The next message of the broker itself that there is credit for, which is counted.
    pub(super) fn take_answer(&mut self) -> Option<Vec<u8>> {
        if self.left() == 0 {
            return None;
        }
        let answer = self.answers.pop_front()?;
        self.count = self.count.wrapping_add(1);
        Some(answer)
    }
    /// Takes the peer's credit; returns how many deliveries it allows since the consumer began.
    pub(super) fn allow(&mut self, delivery_count: Option<u32>, credit: u32) -> u64 {
        let limit = delivery_count.unwrap_or(0).wrapping_add(credit);
        let left = u32::try_from(limit.wrapping_sub(self.count) as i32).unwrap_or(0);
        self.limit = self.count.wrapping_add(left);
        self.delivered + u64::from(left)
    }
    /// Credit that was not used is given up. More than the limit allows may have been delivered already: what
    /// was under way from another shard when the peer lowered its credit.
    pub(super) fn give_up_credit(&mut self) {
        if self.left() > 0 {
            self.count = self.limit;
        } else {
            self.limit = self.count;
        }
    }
    /// Deliveries that the limit allows still.
    fn left(&self) -> u32 {
        u32::try_from(self.limit.wrapping_sub(self.count).cast_signed()).unwrap_or(0)
    }
    /// The delivery-count, of what is sent.
    pub(super) fn delivery_count(&self) -> u32 {
        self.count.wrapping_sub(self.unsent)
    }
    /// Credit that is left, as the peer sees it.
    pub(super) fn credit(&self) -> u32 {
        u32::try_from(self.limit.wrapping_sub(self.delivery_count()).cast_signed()).unwrap_or(0)
    }
}

/// A link on which the broker receives.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    pub(super) handle: u32,
    /// Deliveries so far.
    pub(super) count: u32,
    /// Deliveries that the peer may still begin.
    pub(super) credit: u32,
    /// Most that it may have begun and not been told of.
    pub(super) window: u32,
    /// Deliveries that wait for their outcome.
    pub(super) unconfirmed: u32,
    /// It gets no more credit for now.
    pub(super) is_paused: bool,
    /// Numbers of queues because of which it gets none.
    pub(super) congested: Vec<u64>,
    /// What no queue takes is released and not rejected.
    pub(super) releases: bool,
    /// We have detached it; the peer has not answered.
    pub(super) is_detached: bool,
}

impl Receiver {
    /// A delivery begins; false: the peer had no credit for it.
    #[inline]
    pub(super) fn begin_delivery(&mut self) -> bool {
        let Some(left) = self.credit.checked_sub(1) else { return false };
        self.credit = left;
        self.count = self.count.wrapping_add(1);
        true
    }
    /// Gives more credit where half of it is used up; says whether the peer has to be told.
    #[inline]
    pub(super) fn top_up(&mut self) -> bool {
        let room = self.window.saturating_sub(self.unconfirmed);
        let is_due = !self.is_paused
            && self.congested.is_empty()
            && !self.is_detached
            && room > self.credit
            && room - self.credit >= self.window.div_ceil(2);
        if is_due {
            self.credit = room;
        }
        is_due
    }
}

impl LinkState {
    pub(super) fn handle(&self) -> u32 {
        match self {
            LinkState::Sender(link) => link.handle,
            LinkState::Receiver(link) => link.handle,
        }
    }
    pub(super) fn is_detached(&self) -> bool {
        match self {
            LinkState::Sender(link) => link.is_detached,
            LinkState::Receiver(link) => link.is_detached,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_is_absolute_and_may_be_lowered() {
        let mut link = Sender::new(0, false, false);
        assert_eq!(link.allow(None, 10), 10);
        (0..4).for_each(|_| link.deliver());
        // The peer had seen one when it said this.
        assert_eq!(link.allow(Some(1), 5), 6);
        assert_eq!(link.credit(), 2);
        assert_eq!(link.allow(Some(2), 1), 4);
        assert_eq!(link.credit(), 0);
        assert_eq!(link.allow(Some(4), 100), 104);
        link.give_up_credit();
        assert_eq!((link.delivery_count(), link.credit()), (104, 0));
        // Four deliveries were made; the next credit begins behind what was given up.
        assert_eq!(link.allow(Some(104), 1), 5);
    }

    #[test]
    fn what_was_under_way_when_credit_was_lowered_stays_counted() {
        let mut link = Sender::new(0, false, false);
        assert_eq!(link.allow(Some(0), 9), 9);
        assert_eq!(link.allow(Some(0), 4), 4);
        // The engine had made them before it knew of the lower credit.
        (0..6).for_each(|_| link.deliver());
        assert_eq!((link.delivery_count(), link.credit()), (6, 0));
        link.give_up_credit();
        assert_eq!((link.delivery_count(), link.credit()), (6, 0));
        assert_eq!(link.allow(Some(6), 3), 9);
    }

    #[test]
    fn the_delivery_count_wraps() {
        let mut link = Sender { count: u32::MAX, limit: u32::MAX, ..Sender::default() };
        assert_eq!(link.allow(Some(u32::MAX), 2), 2);
        link.deliver();
        assert_eq!((link.delivery_count(), link.credit()), (0, 1));
    }

    #[test]
    fn credit_is_topped_up_by_halves_and_bounds_what_waits() {
        let mut link = Receiver { window: 4, ..Receiver::default() };
        assert!(link.top_up());
        assert!(!link.top_up());
        for _ in 0..2 {
            assert!(link.begin_delivery());
            link.unconfirmed += 1;
        }
        assert!(!link.top_up(), "two wait and two may come");
        link.unconfirmed -= 2;
        assert!(link.top_up());
        assert_eq!((link.count, link.credit), (2, 4));
        (0..4).for_each(|_| assert!(link.begin_delivery()));
        assert!(!link.begin_delivery());
    }
}

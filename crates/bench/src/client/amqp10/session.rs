//! The counters of a session with one link: what the broker takes now, and when its credit is topped up.
//! Independent of sockets.

use angarium_protocol::amqp10::codec::{Begin, Flow};

/// What we grant, and the most that counts of what we are granted: serial numbers compare within half of
/// their range (RFC 1982).
pub(super) const WINDOW_MAX: u32 = i32::MAX as u32;
/// The first transfer-id of our sessions.
const FIRST_TRANSFER: u32 = 1;
/// Credit of a receiver without a limit on unsettled deliveries.
const CREDIT: u32 = 2_000;

/// How far a serial number is from another; 0 if it is behind.
fn distance(from: u32, to: u32) -> u32 {
    (to.wrapping_sub(from) as i32).max(0) as u32
}

/// A session and its link.
#[derive(Debug)]
pub(super) struct Session {
    /// The broker's channel; `None` until it has begun.
    pub(super) remote: Option<u16>,
    /// The transfer-id that we expect.
    next_incoming: u32,
    /// The transfer-id that we send next, and the first one that the broker does not take yet.
    next_outgoing: u32,
    outgoing_limit: u32,
    pub(super) end: End,
}

/// Our end of the link.
#[derive(Debug)]
pub(super) enum End {
    Sender(Sender),
    Receiver(Receiver),
}

/// Our end of a link that sends.
#[derive(Debug)]
pub(super) struct Sender {
    /// The address as the load names it.
    pub(super) name: String,
    /// Deliveries sent, which is the delivery-count.
    sent: u32,
    /// The delivery-count up to which the broker has given credit.
    credit_limit: u32,
    /// All tags up to this one are confirmed.
    pub(super) confirmed: u64,
}

/// Our end of a link that receives.
#[derive(Debug)]
pub(super) struct Receiver {
    /// Deliveries without an answer that the broker may send; 0 is no limit.
    prefetch: u32,
    /// Whether deliveries come settled.
    pub(super) settled: bool,
    /// Whether the subscription outlives the link.
    pub(super) durable: bool,
    /// The delivery-count: deliveries that have begun.
    delivered: u32,
    /// Deliveries that were settled here.
    settles: u32,
    /// The delivery-count up to which credit was given.
    granted: u32,
    /// The delivery-id from which on nothing is settled; `None` before the first delivery.
    pub(super) unsettled_from: Option<u32>,
}

impl Session {
    pub(super) fn sender(name: &str) -> Session {
        Session::new(End::Sender(Sender {
            name: name.to_owned(),
            sent: 0,
            credit_limit: 0,
            confirmed: 0,
        }))
    }

    pub(super) fn receiver(prefetch: u16, settled: bool, durable: bool) -> Session {
        Session::new(End::Receiver(Receiver {
            prefetch: prefetch.into(),
            settled,
            durable,
            delivered: 0,
            settles: 0,
            granted: 0,
            unsettled_from: None,
        }))
    }

    fn new(end: End) -> Session {
        Session {
            remote: None,
            next_incoming: 0,
            next_outgoing: FIRST_TRANSFER,
            outgoing_limit: FIRST_TRANSFER,
            end,
        }
    }

    /// The frame that begins it.
    pub(super) fn begin() -> Begin<'static> {
        Begin {
            next_outgoing_id: FIRST_TRANSFER,
            incoming_window: WINDOW_MAX,
            outgoing_window: WINDOW_MAX,
            handle_max: 1,
            ..Begin::default()
        }
    }

    /// Notes the broker's answer to it.
    pub(super) fn begun(&mut self, channel: u16, begin: &Begin<'_>) {
        self.remote = Some(channel);
        self.next_incoming = begin.next_outgoing_id;
        self.set_window(FIRST_TRANSFER, begin.incoming_window);
    }

    fn set_window(&mut self, next: u32, window: u32) {
        self.outgoing_limit = next.wrapping_add(window.min(WINDOW_MAX));
    }

    /// Notes what the broker takes from now on. Returns whether it asks for an answer.
    pub(super) fn flow(&mut self, flow: &Flow<'_>) -> bool {
        self.set_window(flow.next_incoming_id.unwrap_or(FIRST_TRANSFER), flow.incoming_window);
        if let (End::Sender(sender), Some(_)) = (&mut self.end, flow.handle) {
            let credit = flow.link_credit.unwrap_or(0).min(WINDOW_MAX);
            sender.credit_limit = flow.delivery_count.unwrap_or(0).wrapping_add(credit);
            if flow.drain {
                // There is nothing that could be sent at once: the credit is used up.
                sender.sent = sender.credit_limit;
                return true;
            }
        }
        flow.echo
    }

    /// How many messages of one frame the broker takes now.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        let End::Sender(sender) = &self.end else { return 0 };
        let frames = distance(self.next_outgoing, self.outgoing_limit);
        distance(sender.sent, sender.credit_limit).min(frames).into()
    }

    /// Counts a frame of a message before it is sent; `false` if the broker does not take it yet.
    #[inline]
    pub(super) fn admit(&mut self, is_first: bool) -> bool {
        if distance(self.next_outgoing, self.outgoing_limit) == 0 {
            return false;
        }
        if is_first && let End::Sender(sender) = &mut self.end {
            if distance(sender.sent, sender.credit_limit) == 0 {
                return false;
            }
            sender.sent = sender.sent.wrapping_add(1);
        }
        self.next_outgoing = self.next_outgoing.wrapping_add(1);
        true
    }

    /// Counts a received frame of a message.
    #[inline]
    pub(super) fn received(&mut self) {
        self.next_incoming = self.next_incoming.wrapping_add(1);
    }

    /// The frame that gives credit for one answer over the second link of a session for requests, after this
    /// many answers.
    pub(super) fn answer_credit(&self, answers: u32) -> Flow<'static> {
        Flow {
            next_incoming_id: Some(self.next_incoming.wrapping_add(answers)),
            incoming_window: WINDOW_MAX,
            next_outgoing_id: self.next_outgoing,
            outgoing_window: WINDOW_MAX,
            handle: Some(1),
            delivery_count: Some(answers),
            link_credit: Some(1),
            ..Flow::default()
        }
    }

    /// The frame that tells the state of session and link, with the credit of a receiver topped up.
    pub(super) fn state(&mut self) -> Flow<'static> {
        let flow = Flow {
            next_incoming_id: self.remote.map(|_| self.next_incoming),
            incoming_window: WINDOW_MAX,
            next_outgoing_id: self.next_outgoing,
            outgoing_window: WINDOW_MAX,
            handle: Some(0),
            ..Flow::default()
        };
        match &mut self.end {
            End::Sender(sender) => Flow {
                delivery_count: Some(sender.sent),
                link_credit: Some(distance(sender.sent, sender.credit_limit)),
                available: Some(0),
                ..flow
            },
            End::Receiver(receiver) => {
                receiver.granted = receiver.wanted();
                let link_credit = Some(distance(receiver.delivered, receiver.granted));
                Flow { delivery_count: Some(receiver.delivered), link_credit, ..flow }
            }
        }
    }
}

impl Sender {
    /// The tag that a delivery-id stands for: the one nearest to those that are confirmed.
    pub(super) fn tag(&self, delivery_id: u32) -> u64 {
        let ahead = delivery_id.wrapping_sub(self.confirmed as u32) as i32;
        self.confirmed.wrapping_add_signed(ahead.into())
    }
}

impl Receiver {
    /// Notes the broker's delivery-count at the start.
    pub(super) fn attached(&mut self, initial_delivery_count: u32) {
        self.delivered = initial_delivery_count;
        self.settles = initial_delivery_count;
        self.granted = initial_delivery_count;
    }

    /// Counts a delivery that begins.
    #[inline]
    pub(super) fn begins(&mut self, delivery_id: u32) {
        self.delivered = self.delivered.wrapping_add(1);
        self.unsettled_from.get_or_insert(delivery_id);
    }

    /// Counts deliveries that were settled here.
    #[inline]
    pub(super) fn settle(&mut self, count: u32) {
        self.settles = self.settles.wrapping_add(count);
    }

    fn credit(&self) -> u32 {
        if self.prefetch == 0 { CREDIT } else { self.prefetch }
    }

    /// The delivery-count up to which the broker may send.
    fn wanted(&self) -> u32 {
        let is_limited = self.prefetch > 0 && !self.settled;
        let from = if is_limited { self.settles } else { self.delivered };
        from.wrapping_add(self.credit())
    }

    /// Whether half of the credit or more is used up.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        distance(self.granted, self.wanted()) >= self.credit().div_ceil(2)
    }
}

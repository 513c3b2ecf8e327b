//! Output leaves as it was written, without the messages that were dropped; and what that costs in memory and
//! copied bytes.

use super::*;
use angarium_engine::{
    Annotations, Bytes, ChannelId, ConnectionId, Delivery, Format, Lost, MessageView,
};
use angarium_protocol::{AnyWriter, SharedBody, amqp091};
use std::collections::BTreeSet;

fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

/// Writes `writes` of `bytes` each, a turn after the other, with half of some of them as a large body, while
/// the peer takes what `takes` says; then all the rest is taken. It is to be what was written, and no buffer
/// is ever to become large.
#[track_caller]
fn check(writes: usize, bytes: usize, takes: fn(usize) -> usize) {
    let mut outbox = Outbox::default();
    let (mut written, mut taken) = (0, 0);
    let mut take = |outbox: &mut Outbox, most: usize| {
        let pending: Vec<u8> = outbox.parts().flatten().copied().collect();
        let pending =
            if outbox.pending_parts().is_some() { &pending[..] } else { outbox.pending() };
        assert!(pending.starts_with(outbox.pending()));
        let count = pending.len().min(most);
        assert!(pending[..count].iter().enumerate().all(|(at, &it)| it == byte(taken + at)));
        taken += count;
        let has_more = outbox.advance(count);
        assert!(!has_more || !outbox.pending().is_empty());
        taken
    };
    for context in 0..writes {
        let middle = written + bytes / 2;
        outbox.writer.output.bytes.extend((written..middle).map(byte));
        written += bytes;
        let second: Vec<u8> = (middle..written).map(byte).collect();
        if context % 3 == 1 {
            outbox.writer.output.shared_body =
                Some(SharedBody::plain(&Bytes::from(second), b"").into());
            outbox.end_with_large();
        } else {
            outbox.writer.output.bytes.extend(second);
        }
        outbox.part();
        assert!(outbox.writer.output.bytes.capacity() <= PIECE_CAPACITY * 2);
        let taken = take(&mut outbox, takes(context));
        assert_eq!(outbox.unsent(), written - taken);
    }
    while outbox.unsent() > 0 {
        take(&mut outbox, usize::MAX);
    }
    assert_eq!(taken, written);
    assert!(outbox.pending().is_empty() && outbox.pieces.is_empty());
}

/// AMQP's deliveries with large bodies, in frames, are the same bytes however much of them leaves at once.
#[test]
fn large_bodies_leave_whole_by_steps_of_any_size() {
    let body = Bytes::from((0..1_000).map(byte).collect::<Vec<u8>>());
    let written = |outbox: &mut Outbox, is_shared: bool| {
        outbox.writer.protocol = AnyWriter::Amqp091(amqp091::Writer::new(308, false));
        for tag in 1..=3 {
            let shared = is_shared.then_some(&body);
            deliver(&mut outbox.writer, tag, &body, shared);
            outbox.end_with_large();
            outbox.writer.output.bytes.extend(b"between");
        }
    };
    let mut copied = Outbox::default();
    written(&mut copied, false);
    let expected = copied.writer.output.bytes;
    for step in (1..400).chain([1_000, 5_000]) {
        let (mut outbox, mut taken) = (Outbox::default(), Vec::new());
        written(&mut outbox, true);
        while outbox.unsent() > 0 {
            assert_eq!(outbox.unsent(), expected.len() - taken.len());
            assert!(!outbox.pending().is_empty());
            let pending: Vec<u8> = outbox.parts().flatten().copied().collect();
            let pending =
                if outbox.pending_parts().is_some() { &pending[..] } else { outbox.pending() };
            let count = pending.len().min(step);
            taken.extend_from_slice(&pending[..count]);
            outbox.advance(count);
        }
        assert!(taken == expected, "by {step}");
    }
}

fn deliver(writer: &mut Writer, tag: u64, body: &[u8], shared: Option<&Bytes>) {
    static NOTHING_KNOWN: Annotations = Annotations {
        delivery_count: 0,
        deaths: Vec::new(),
        ttl_removed: false,
        further_keys_removed: false,
        delayed: false,
        dropped: 0,
        changed: Bytes::new(),
    };
    let message = &MessageView {
        exchange: "x",
        routing_key: "k",
        format: Format(1),
        properties: b"\0\0",
        body,
        shared,
        persistent: false,
        priority: 0,
        ttl: None,
        annotations: &NOTHING_KNOWN,
    };
    let channel = ChannelId { connection: ConnectionId(0), number: 1 };
    let (place, redelivered) = (tag, false);
    writer.deliver(&Delivery {
        channel,
        consumer: "c",
        tag,
        place,
        redelivered,
        group: None,
        message,
    });
}

#[test]
fn much_that_is_unsent_lies_in_pieces_and_leaves_in_order() {
    const TURN: usize = 65_000;
    check(50, TURN, |_| 0);
    check(50, TURN, |context| context * 1_000);
    check(50, TURN, |_| usize::MAX);
    check(50, TURN, |context| if context < 30 { 7 } else { usize::MAX });
    check(5, 2 * PIECE_BYTES, |_| PIECE_BYTES);
    check(5, 8 * PIECE_BYTES, |_| 3 * PIECE_BYTES);
}

/// One who reads what it gets, of messages that begin with their size and number; all others are zero.
#[derive(Default)]
struct Reader {
    input: Vec<u8>,
}

const MESSAGE_MIN: usize = 8;

fn message(number: u32, bytes: usize) -> Vec<u8> {
    let mut message = vec![0; bytes];
    message[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
    message[4..8].copy_from_slice(&number.to_le_bytes());
    message
}

/// What of a message may be shared.
fn large(message: &[u8]) -> Box<SharedBody> {
    SharedBody::plain(&Bytes::copy_from_slice(&message[MESSAGE_MIN..]), b"").into()
}

impl Reader {
    fn take(&mut self, outbox: &mut Outbox, most: usize) {
        let pending = outbox.pending();
        let count = pending.len().min(most);
        self.input.extend_from_slice(&pending[..count]);
        outbox.advance(count);
    }

    /// The numbers of all that came.
    #[track_caller]
    fn numbers(&self) -> Vec<u32> {
        let mut numbers = Vec::new();
        let mut rest = &self.input[..];
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let (bytes, number) = (word(0) as usize, word(4));
            assert_eq!(rest[..bytes], message(number, bytes));
            numbers.push(number);
            rest = &rest[bytes..];
        }
        numbers
    }
}

/// Output in which some messages may be taken out again, and what was.
struct Output {
    outbox: Outbox,
    next: u32,
    lost: BTreeSet<u32>,
    /// Those that may be.
    droppable: BTreeSet<u32>,
    missed: Lost,
}

impl Output {
    fn new(unsent_max: usize) -> Output {
        let outbox = Outbox { unsent_max, ..Outbox::default() };
        let (lost, droppable) = (BTreeSet::new(), BTreeSet::new());
        Output { outbox, next: 0, lost, droppable, missed: Lost::default() }
    }

    fn write_plain(&mut self, bytes: usize) {
        self.outbox.writer.output.bytes.extend(message(self.next, bytes));
        self.next += 1;
    }

    /// The same with a body that is shared.
    fn write_large(&mut self, bytes: usize) {
        let message = message(self.next, bytes);
        self.outbox.writer.output.bytes.extend(&message[..MESSAGE_MIN]);
        self.outbox.writer.output.shared_body = Some(large(&message));
        self.outbox.end_with_large();
        self.next += 1;
    }

    /// Writes a message whose subscription is its number; says whether there was room.
    fn write(&mut self, bytes: usize) -> bool {
        self.write_for(bytes, None)
    }

    /// The same for a subscription of many messages, where it is one.
    fn write_for(&mut self, bytes: usize, tag: Option<u64>) -> bool {
        self.write_as(bytes, tag, false)
    }

    /// The same with a body that is shared, where it is large.
    fn write_as(&mut self, bytes: usize, tag: Option<u64>, is_large: bool) -> bool {
        let Output { outbox, lost, droppable, missed, .. } = self;
        let newest_lost = lost.last().copied();
        outbox.drop_oldest(|whose, count| {
            *missed += count;
            if tag.is_none() {
                let number = whose.tag as u32;
                assert_eq!((count.messages, count.untold), (1, u64::from(number % 3)));
                assert!(droppable.remove(&number), "{number} was lost before, or may not be");
                assert!(newest_lost.is_none_or(|newest| newest < number), "the oldest go first");
                lost.insert(number);
            }
        });
        if outbox.held() >= outbox.unsent_max {
            return false;
        }
        let untold = if tag.is_none() { self.next % 3 } else { 0 };
        let whose = Whose { channel: 1, tag: tag.unwrap_or(self.next.into()) };
        let message = message(self.next, bytes);
        let start = outbox.prepare_droppable(bytes, is_large);
        if is_large {
            outbox.writer.output.bytes.extend(&message[..MESSAGE_MIN]);
            outbox.writer.output.shared_body = Some(large(&message));
        } else {
            outbox.writer.output.bytes.extend(message);
        }
        outbox.written_droppable(start, whose, untold.into());
        self.droppable.insert(self.next);
        self.next += 1;
        true
    }
}

#[test]
fn any_history_leaves_whole_messages_in_order_and_the_oldest_are_lost() {
    let mut random = 1_u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    let mut lost = 0;
    for _ in 0..400 {
        let mut output = Output::new(200 + draw(20_000) as usize);
        let (plain_part, large_part, takes) = (draw(20), draw(30).min(20), draw(600));
        let mut reader = Reader::default();
        for _ in 0..600 {
            let most = if draw(20) == 0 { 2_000 } else { 60 };
            let bytes = MESSAGE_MIN + draw(most) as usize;
            if draw(20) < plain_part {
                match draw(3) {
                    0 => output.write_large(bytes + 1),
                    _ => output.write_plain(bytes),
                }
            } else {
                output.write_as(bytes, None, draw(20) < large_part);
            }
            if draw(8) == 0 {
                output.outbox.part();
            }
            if draw(4) == 0 {
                reader.take(&mut output.outbox, draw(takes + 1) as usize);
            }
        }
        while output.outbox.unsent() > 0 {
            reader.take(&mut output.outbox, 1_000);
        }
        let expected: Vec<u32> = (0..output.next).filter(|it| !output.lost.contains(it)).collect();
        assert_eq!(reader.numbers(), expected);
        assert_eq!((output.outbox.held(), output.outbox.pieces.len()), (0, 0));
        lost += output.lost.len();
    }
    assert!(lost > 50_000, "{lost}");
}

#[test]
fn one_that_is_sent_in_part_stays_and_those_behind_it_go_first() {
    let mut output = Output::new(10_000);
    let mut reader = Reader::default();
    while output.lost.is_empty() {
        output.write(100);
        if output.next == 20 {
            reader.take(&mut output.outbox, 150);
        }
    }
    let lost: Vec<u32> = output.lost.iter().copied().collect();
    // A piece goes at once: a sixteenth of what may be unsent.
    assert_eq!(lost, [2, 3, 4, 5]);
    while output.outbox.unsent() > 0 {
        reader.take(&mut output.outbox, 1_000);
    }
    assert_eq!(reader.numbers()[..4], [0, 1, 6, 7]);
}

const BOUND: usize = 2 << 20;

/// Writes three times what may be unsent in messages of some bytes for subscriptions in turn: memory stays
/// within the bound, and what is copied for one message within a few pieces.
#[track_caller]
fn check_bound(sizes: &[usize], subscriptions: u64) {
    let mut output = Output::new(BOUND);
    let (mut written, mut room_max, mut copied_max, mut before) = (0, 0, 0, 0);
    for count in 0.. {
        let bytes = sizes[count % sizes.len()];
        assert!(output.write_for(bytes, Some(count as u64 % subscriptions)));
        written += bytes;
        if count % 100 == 0 {
            output.outbox.part();
        }
        let (room, copied) = output.outbox.room_and_copied();
        copied_max = copied_max.max(copied - std::mem::replace(&mut before, copied));
        room_max = room_max.max(room);
        if written > 3 * BOUND {
            let left = u64::from(output.next) - output.missed.messages;
            assert!(left as usize * sizes.iter().max().unwrap() > BOUND / 8, "{left}");
            break;
        }
    }
    assert!(room_max < BOUND + BOUND / 100 * 15, "{room_max} bytes for {BOUND}");
    assert!(copied_max <= 2 * (64 << 10), "{copied_max} bytes were copied for one");
}

#[test]
fn few_that_may_go_between_many_that_may_not_are_dropped_without_copying_those() {
    let mut output = Output::new(BOUND);
    while output.outbox.held() < BOUND - 61_000 {
        output.write(100);
        output.write_plain(60_000);
        output.outbox.part();
    }
    output.write_plain(BOUND - output.outbox.held());
    let (_, before) = output.outbox.room_and_copied();
    // Each piece has one.
    for _ in 0..25 {
        assert!(output.write(100));
    }
    assert!((25..30).contains(&output.lost.len()));
    let (room, copied) = output.outbox.room_and_copied();
    assert!(copied - before < 3 * (64 << 10), "{} bytes were copied", copied - before);
    assert!(room < BOUND + BOUND / 100 * 15, "{room} bytes for {BOUND}");
    // What is left in their places closes up as it is sent, piece by piece.
    let (mut reader, mut before) = (Reader::default(), copied);
    while output.outbox.unsent() > 0 {
        reader.take(&mut output.outbox, 1_000);
        let (_, copied) = output.outbox.room_and_copied();
        assert!(copied - std::mem::replace(&mut before, copied) <= 2 * (64 << 10));
    }
    let expected: Vec<u32> = (0..output.next).filter(|it| !output.lost.contains(it)).collect();
    assert_eq!(reader.numbers(), expected);
}

#[test]
fn answers_between_messages_that_go_leave_no_pieces_behind() {
    let mut output = Output::new(BOUND);
    for _ in 0..5 * BOUND / 10_000 {
        output.write(10_000);
        output.write_plain(MESSAGE_MIN);
    }
    let spent = output.outbox.pieces.iter().take_while(|piece| piece.len() < 30_000).count();
    assert!(spent <= 1 && output.lost.len() > 3 * BOUND / 10_000, "{spent}");
    let (room, _) = output.outbox.room_and_copied();
    assert!(room < BOUND + BOUND / 100 * 15, "{room} bytes for {BOUND}");
}

#[test]
fn memory_stays_within_the_bound_whatever_the_messages() {
    check_bound(&[14], 1);
    check_bound(&[14], 3);
    check_bound(&[9, 14, 200], 2);
    check_bound(&[1_020], 1);
    check_bound(&[1_020], 50);
    check_bound(&[5_000], 1);
    check_bound(&[40_000], 1);
    check_bound(&[40_000, 100], 1);
    check_bound(&[100_000, 10], 1);
}

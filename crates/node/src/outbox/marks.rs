//! Where in a piece of output the direct messages lie that may be taken out of it, and whose they are,
//! in one or two bytes for most: of small messages, some millions wait in the room of one slow consumer.

/// Which subscription a message is for: the number of its channel, and the tag of its deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Whose {
    pub(crate) channel: u16,
    pub(crate) tag: u64,
}

/// One message in a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Its first byte, counted from the piece's.
    pub(super) start: usize,
    pub(super) bytes: usize,
    pub(super) whose: Whose,
    /// How many messages it tells of that were missed before.
    pub(super) untold: u64,
}

/// What is said of a message beside its size.
const HAS_GAP: u64 = 1;
const IS_ANOTHERS: u64 = 2;
const TELLS: u64 = 4;
const FLAG_BITS: u32 = 3;

/// Room for marks that is kept while there is nothing to mark.
const KEPT_BYTES: usize = 1 << 10;

/// The messages of the piece that is being written, in their order.
#[derive(Debug, Default)]
pub(super) struct Marks {
    bytes: Vec<u8>,
    /// Where the last one ends, and whose it is.
    end: usize,
    whose: Option<Whose>,
}

impl Marks {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn push(&mut self, message: Message) {
        let gap = message.start - self.end;
        let mut head = (message.bytes as u64) << FLAG_BITS;
        let is_anothers = self.whose != Some(message.whose);
        for (flag, is_so) in
            [(HAS_GAP, gap > 0), (IS_ANOTHERS, is_anothers), (TELLS, message.untold > 0)]
        {
            head |= if is_so { flag } else { 0 };
        }
        put(&mut self.bytes, head);
        if gap > 0 {
            put(&mut self.bytes, gap as u64);
        }
        if is_anothers {
            put(&mut self.bytes, message.whose.channel.into());
            put(&mut self.bytes, message.whose.tag);
        }
        if message.untold > 0 {
            put(&mut self.bytes, message.untold);
        }
        self.end = message.start + message.bytes;
        self.whose = Some(message.whose);
    }

    /// The piece ends here: its marks, no larger than they have to be. Those of the next one follow.
    pub(super) fn close(&mut self) -> Box<[u8]> {
        let closed = self.bytes.as_slice().into();
        self.clear();
        closed
    }

    pub(super) fn all_left(&mut self) {
        self.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }

    fn clear(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        *self = Marks { bytes, ..Marks::default() };
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// The messages of a piece that has ended, as its marks say.
pub(super) struct Marked<'a> {
    rest: &'a [u8],
    end: usize,
    whose: Whose,
}

impl<'a> Marked<'a> {
    pub(super) fn new(marks: &'a [u8]) -> Marked<'a> {
        Marked { rest: marks, end: 0, whose: Whose { channel: 0, tag: 0 } }
    }

    fn take(&mut self) -> u64 {
        take(&mut self.rest).expect("marks are read as they were written")
    }
}

impl Iterator for Marked<'_> {
    type Item = Message;

    fn next(&mut self) -> Option<Message> {
        if self.rest.is_empty() {
            return None;
        }
        let head = self.take();
        let gap = if head & HAS_GAP == 0 { 0 } else { self.take() };
        if head & IS_ANOTHERS != 0 {
            let channel = u16::try_from(self.take()).expect("it was written from one");
            self.whose = Whose { channel, tag: self.take() };
        }
        let untold = if head & TELLS == 0 { 0 } else { self.take() };
        let (start, bytes) = (self.end + gap as usize, (head >> FLAG_BITS) as usize);
        self.end = start + bytes;
        Some(Message { start, bytes, whose: self.whose, untold })
    }
}

/// Appends a number in as few bytes as it needs: seven bits in each, the least ones first.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes the number that `bytes` begin with; `None`: they begin with none.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(start: usize, bytes: usize, tag: u64, untold: u64) -> Message {
        Message { start, bytes, whose: Whose { channel: (tag % 3) as u16, tag }, untold }
    }

    #[test]
    fn what_was_marked_is_read_in_the_same_order() {
        let pieces: [&[Message]; 4] = [
            &[],
            &[message(0, 14, 7, 0), message(14, 14, 7, 0), message(28, 14, 7, 5)],
            &[message(3, 1_000, 7, 0), message(2_000, 70_000, u64::MAX, u64::MAX)],
            &[message(0, 1, 0, 0), message(1, 1, 1, 0), message(2, 1, 0, 0), message(9, 0, 0, 1)],
        ];
        let mut marks = Marks::default();
        for piece in pieces {
            piece.iter().for_each(|message| marks.push(*message));
            assert_eq!(marks.is_empty(), piece.is_empty());
            assert!(Marked::new(&marks.close()).eq(piece.iter().copied()));
        }
    }

    #[test]
    fn most_take_one_byte_or_two() {
        let mut marks = Marks::default();
        marks.push(message(0, 14, u64::MAX, 0));
        for (bytes, expected) in [(14, 1), (15, 1), (16, 2), (2_000, 2), (200_000, 3)] {
            let before = marks.len();
            marks.push(message(marks.end, bytes, u64::MAX, 0));
            assert_eq!(marks.len() - before, expected, "{bytes}");
        }
    }

    #[test]
    fn a_number_comes_back_and_takes_what_it_needs() {
        for (number, expected) in
            [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10)]
        {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(bytes.len(), expected, "{number}");
            bytes.push(7);
            let mut rest = &bytes[..];
            assert_eq!((take(&mut rest), rest), (Some(number), &[7][..]));
        }
    }

    #[test]
    fn what_does_not_end_is_no_number() {
        for bytes in [&[][..], &[0x80], &[0xff; 11]] {
            assert_eq!(take(&mut &*bytes), None, "{bytes:?}");
        }
    }
}

//! Checks each delivery: whether it is undamaged, and which message it is. Independent of sockets.

use super::tally::Tally;
use crate::client::{Head, Receiver};
use crate::load::stamp::{self, IDENTITY_BYTES, Stamp, TIMED_BYTES};

/// Checks the deliveries of one consumer.
pub(in crate::load) struct Judge {
    size_bytes: u64,
    checksum: bool,
    /// Whether messages are long enough for a stamp.
    identified: bool,
    redelivered: bool,
    received: u64,
    /// Deliveries so far.
    pub(in crate::load) messages: u64,
    stamp: [u8; TIMED_BYTES],
    rest: crc32fast::Hasher,
    pub(in crate::load) tally: Tally,
}

impl Judge {
    pub(in crate::load) fn new(producers: usize, size_bytes: usize, checksum: bool) -> Judge {
        let identified = size_bytes >= IDENTITY_BYTES;
        Judge {
            size_bytes: size_bytes as u64,
            checksum: checksum && identified,
            identified,
            redelivered: false,
            received: 0,
            messages: 0,
            stamp: [0; TIMED_BYTES],
            rest: crc32fast::Hasher::new(),
            tally: Tally::new(producers),
        }
    }

    /// A delivery ends. Returns its stamp, if it is long enough to have one.
    #[inline]
    pub(in crate::load) fn finish(&mut self) -> Option<Stamp> {
        self.messages += 1;
        if !self.identified {
            match self.received == self.size_bytes {
                true => self.tally.record_bare(),
                false => self.tally.record_corrupt(),
            }
            return None;
        }
        let stamp = &self.stamp[..(self.received as usize).min(TIMED_BYTES)];
        let whole = Stamp::read(stamp).filter(|_| self.received == self.size_bytes);
        let Some(stamp) = whole else {
            // The next message is hashed from the start.
            self.rest.reset();
            self.tally.record_corrupt();
            return None;
        };
        self.tally.record(&stamp, self.redelivered);
        if self.checksum && !self.verify(&stamp) {
            self.tally.record_corrupt();
        }
        Some(stamp)
    }

    pub(in crate::load) fn judge(&mut self, body: &[u8]) {
        self.begin(Head::default());
        self.body(body);
        self.complete();
    }

    #[inline]
    fn verify(&mut self, stamp: &Stamp) -> bool {
        let rest = self.rest.clone().finalize();
        // A new hasher would detect the processor's features again.
        self.rest.reset();
        stamp::checksum(stamp, rest) == stamp.checksum
    }
}

impl Receiver for Judge {
    #[inline]
    fn begin(&mut self, head: Head) {
        (self.redelivered, self.received) = (head.redelivered, 0);
    }

    #[inline]
    fn body(&mut self, octets: &[u8]) {
        let at = self.received as usize;
        let mut rest = octets;
        if at < TIMED_BYTES {
            let take = octets.len().min(TIMED_BYTES - at);
            self.stamp[at..at + take].copy_from_slice(&octets[..take]);
            rest = &octets[take..];
        }
        if self.checksum {
            self.rest.update(rest);
        }
        self.received += octets.len() as u64;
    }

    #[inline]
    fn complete(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Verdict;
    use crate::load::message;

    /// The body of a message of producer 0, as published.
    fn sent(sequence: u64, size_bytes: usize) -> Vec<u8> {
        let mut body = message::body(size_bytes);
        let head = size_bytes.min(TIMED_BYTES);
        let mut stamp = Stamp::of(0, sequence);
        stamp.checksum = stamp::checksum(&stamp, crc32fast::hash(&body[head..]));
        stamp.write(&mut body[..head]);
        body
    }

    /// Judges these bodies, which arrive in pieces, of three that were published.
    fn verdict(size_bytes: usize, piece: usize, bodies: &[Vec<u8>]) -> Verdict {
        let mut judge = Judge::new(1, size_bytes, true);
        for body in bodies {
            judge.begin(Head::default());
            body.chunks(piece).for_each(|piece| judge.body(piece));
            judge.complete();
        }
        let mut verdict = Verdict::default();
        verdict.add_queue(&judge.tally, &[3]);
        verdict
    }

    #[test]
    fn what_is_whole_is_clean_in_whatever_pieces_it_comes() {
        for size_bytes in [1, 15, 16, 23, 24, 25, 100] {
            for piece in [1, 7, 24, 200] {
                let bodies = [0, 1, 2].map(|sequence| sent(sequence, size_bytes));
                let verdict = verdict(size_bytes, piece, &bodies);
                assert!(verdict.is_clean(), "{size_bytes} in {piece}: {verdict:?}");
                assert_eq!(verdict.delivered, 3);
            }
        }
    }

    #[test]
    fn one_that_is_harmed_harms_no_other() {
        let whole = || [0, 1, 2].map(|sequence| sent(sequence, 100)).to_vec();
        let counts = |bodies: &[Vec<u8>]| {
            let Verdict { lost, corrupt, .. } = verdict(100, 40, bodies);
            [lost, corrupt]
        };
        let mut bodies = whole();
        bodies[1][99] ^= 1;
        assert_eq!(counts(&bodies), [0, 1]);
        bodies = whole();
        bodies[1].truncate(80);
        assert_eq!(counts(&bodies), [1, 1], "one that is too short is none of ours");
        bodies = whole();
        bodies[1].push(b'x');
        assert_eq!(counts(&bodies), [1, 1]);
        bodies = whole();
        bodies[1].truncate(10);
        assert_eq!(counts(&bodies), [1, 1]);
    }
}

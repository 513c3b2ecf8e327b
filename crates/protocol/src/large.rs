//! Large bodies, which all who get them share, on their way out: a part at a time, from where they lie. All
//! at once would be the longest step of all, and a copy for each of them.

use angarium_engine::{Bytes, LARGE_BODY_BYTES};
use bytes::Buf;
use std::ops::Range;

/// A body that is large, for all who get it: one copy instead of one for each of them.
#[inline]
pub(crate) fn copy_of_large(body: &[u8]) -> Option<Bytes> {
    (body.len() >= LARGE_BODY_BYTES).then(|| Bytes::copy_from_slice(body))
}

/// Bytes of a part at most.
const PART_BYTES_MAX: usize = 256 << 10;

/// What is still to be sent of one, with what is around it.
#[derive(Debug)]
pub struct LargeBody {
    rest: Bytes,
    /// Bytes of that which belong to the frame that has begun.
    in_frame: usize,
    /// What comes behind those: the end of the frame, and the head of the next one.
    around: [u8; Frames::AROUND_BYTES],
    /// Where in that what is still to be sent begins and ends.
    unsent: Range<usize>,
    /// The frames that the body is divided into, where it is.
    frames: Option<Frames>,
    /// What comes behind all.
    tail: &'static [u8],
}

/// How a protocol divides bodies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frames {
    /// What is before each part but for its size, which is the last four bytes, most significant first.
    pub(crate) head: [u8; Frames::HEAD_BYTES],
    /// What is behind each.
    pub(crate) end: u8,
    /// Bytes of a part at most.
    pub(crate) bytes_max: usize,
}

impl Frames {
    const HEAD_BYTES: usize = 7;
    /// Bytes that a frame has beside its part of the body.
    const AROUND_BYTES: usize = Frames::HEAD_BYTES + 1;

    /// The head of one, where so much is left of the body.
    fn head(&self, left: usize) -> [u8; Frames::HEAD_BYTES] {
        let mut head = self.head;
        head[3..].copy_from_slice(&(left.min(self.bytes_max) as u32).to_be_bytes());
        head
    }
}

impl LargeBody {
    /// One in frames, of which the first begins in `out`.
    pub(crate) fn in_frames(body: &Bytes, frames: Frames, out: &mut Vec<u8>) -> LargeBody {
        out.extend_from_slice(&frames.head(body.len()));
        let mut large = LargeBody { frames: Some(frames), ..LargeBody::plain(body, b"") };
        large.begin_frame();
        large
    }

    /// One that is sent as it is, and then the tail.
    #[must_use]
    pub fn plain(body: &Bytes, tail: &'static [u8]) -> LargeBody {
        let around = [0; Frames::AROUND_BYTES];
        let (rest, in_frame) = (body.clone(), body.len());
        LargeBody { rest, in_frame, around, unsent: 0..0, frames: None, tail }
    }

    /// Bytes that are still to be sent.
    #[must_use]
    pub fn left(&self) -> usize {
        let behind = self.rest.len() - self.in_frame;
        let around = self.frames.map_or(0, |frames| {
            // The frame that comes next has its head already.
            behind.div_ceil(frames.bytes_max) * Frames::AROUND_BYTES
        });
        let ahead = if behind > 0 { Frames::HEAD_BYTES } else { 0 };
        self.rest.len() + self.unsent.len() + around.saturating_sub(ahead) + self.tail.len()
    }

    /// Those of them that come next, in a few parts; none only where none are left.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let (first, behind) = self.rest.split_at(self.in_frame);
        let second = &behind[..behind.len().min(self.frames.map_or(0, |frames| frames.bytes_max))];
        let tail = if behind.is_empty() { self.tail } else { &[] };
        // Where a part is not all there is, nothing follows it.
        let is_long = |part: &[u8]| part.len() > PART_BYTES_MAX;
        let count = if is_long(first) { 1 } else { 4 };
        let parts = [first, &self.around[self.unsent.clone()], second, tail];
        let parts = parts.into_iter().take(count).filter(|part| !part.is_empty());
        parts.map(|part| &part[..part.len().min(PART_BYTES_MAX)])
    }

    /// So many of them are sent; returns how many of these belong to what comes behind it.
    pub fn advance(&mut self, mut bytes: usize) -> usize {
        while bytes > 0 && self.left() > 0 {
            let part = bytes.min(self.in_frame);
            self.rest.advance(part);
            self.in_frame -= part;
            bytes -= part;
            if self.in_frame == 0 {
                let around = bytes.min(self.unsent.len());
                self.unsent.start += around;
                bytes -= around;
            }
            if self.in_frame == 0 && self.unsent.is_empty() {
                self.begin_frame();
            }
            if self.rest.is_empty() && self.unsent.is_empty() {
                let (_, tail) = self.tail.split_at(bytes.min(self.tail.len()));
                bytes -= self.tail.len() - tail.len();
                self.tail = tail;
            }
        }
        bytes
    }

    /// Begins the next frame, whose head was sent with the end of the one before.
    fn begin_frame(&mut self) {
        let Some(frames) = self.frames.filter(|_| !self.rest.is_empty()) else { return };
        self.in_frame = self.rest.len().min(frames.bytes_max);
        self.around[0] = frames.end;
        self.unsent = 0..1;
        let behind = self.rest.len() - self.in_frame;
        if behind > 0 {
            self.around[1..].copy_from_slice(&frames.head(behind));
            self.unsent = 0..self.around.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends so much at a time of the parts there are.
    #[track_caller]
    fn check(large: impl Fn(&mut Vec<u8>) -> LargeBody, expected: &[u8]) {
        for step in [1, 3, 8, 9, 1_000, PART_BYTES_MAX + 5, usize::MAX] {
            if expected.len() / step > 100_000 {
                continue;
            }
            let mut out = Vec::new();
            let mut large = large(&mut out);
            while large.left() > 0 {
                let left = large.left();
                assert_eq!(out.len() + left, expected.len());
                let parts: Vec<&[u8]> = large.parts().collect();
                assert!(parts.iter().all(|part| (1..=PART_BYTES_MAX).contains(&part.len())));
                let next = parts.concat();
                let sent = next.len().min(step);
                out.extend_from_slice(&next[..sent]);
                assert_eq!(large.advance(sent), 0);
                assert_eq!(left - large.left(), sent);
            }
            assert!(large.parts().next().is_none());
            assert_eq!(large.advance(3), 3);
            assert!(out == expected, "by {step}");
        }
    }

    #[test]
    fn its_parts_are_all_of_it() {
        let frame = |part: &[u8]| {
            let size = (part.len() as u32).to_be_bytes();
            [&[3, 0, 1][..], &size, part, &[206]].concat()
        };
        let long = vec![7; PART_BYTES_MAX];
        for (parts, bytes_max) in [
            (&[&b"abcd"[..], b"efgh", b"i"][..], 4),
            (&[b"abcd"], 4),
            (&[b"abc"], 4),
            (&[&long, &long, b"a"], long.len()),
            (&[&[&long[..], &long, b"a"].concat()], usize::MAX),
        ] {
            let frames = Frames { head: [3, 0, 1, 0, 0, 0, 0], end: 206, bytes_max };
            let expected: Vec<u8> = parts.iter().flat_map(|part| frame(part)).collect();
            let body = Bytes::from(parts.concat());
            check(|out| LargeBody::in_frames(&body, frames, out), &expected);
        }
        for body in [&b"body"[..], &[&long[..], b"a"].concat()] {
            let expected = [body, b"\r\n"].concat();
            let body = Bytes::copy_from_slice(body);
            check(|_| LargeBody::plain(&body, b"\r\n"), &expected);
        }
    }
}

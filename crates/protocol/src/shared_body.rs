//! Output of large bodies, which all receivers share: they are sent in parts from the one copy in memory.

use angarium_engine::Bytes;
use bytes::Buf;

/// Bytes of a part at most.
const PART_BYTES_MAX: usize = 256 << 10;
/// What a frame has before and behind its part of the body.
const AROUND_BYTES: usize = 8;

/// The unsent rest of a shared body, with its framing.
#[derive(Clone, Debug)]
pub struct SharedBody {
    rest: Bytes,
    /// Bytes of it that belong to the current frame.
    in_frame: usize,
    /// Sent bytes of the framing between the current frame and the next one.
    around_sent: usize,
    /// The framing, where the body is divided into frames.
    frames: Option<Frames>,
    /// What comes after the body.
    tail: &'static [u8],
}

/// The framing of bodies.
#[derive(Clone, Debug)]
struct Frames {
    /// The end of a frame and the head of a following full one.
    around: [u8; AROUND_BYTES],
    /// The end of a frame and the head of a following shorter one, the last.
    around_last: [u8; AROUND_BYTES],
    /// Bytes of the body in a frame at most.
    bytes_max: usize,
}

impl Frames {
    /// The framing after a frame behind which `left` bytes of the body follow.
    fn between(&self, left: usize) -> &[u8] {
        match left {
            0 => &self.around[..1],
            _ if left < self.bytes_max => &self.around_last,
            _ => &self.around,
        }
    }
}

impl SharedBody {
    /// A body in frames of at most `bytes_max` bytes of it each. Their head is `kind` and the size in four
    /// bytes, most significant first; that of the first one is appended to `out`.
    pub(crate) fn in_frames(
        body: &Bytes,
        [a, b, c]: [u8; 3],
        end: u8,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> SharedBody {
        let around = |bytes: usize| {
            let [s0, s1, s2, s3] = (bytes as u32).to_be_bytes();
            [end, a, b, c, s0, s1, s2, s3]
        };
        let in_frame = body.len().min(bytes_max);
        out.extend_from_slice(&around(in_frame)[1..]);
        let around_last = around(body.len() % bytes_max);
        let frames = Some(Frames { around: around(bytes_max), around_last, bytes_max });
        SharedBody { in_frame, frames, ..SharedBody::plain(body, b"") }
    }

    /// A body that is sent unframed, followed by `tail`.
    #[must_use]
    pub fn plain(body: &Bytes, tail: &'static [u8]) -> SharedBody {
        SharedBody { rest: body.clone(), in_frame: body.len(), around_sent: 0, frames: None, tail }
    }

    /// The unsent framing after the current frame.
    fn around(&self) -> &[u8] {
        let left = self.rest.len() - self.in_frame;
        self.frames.as_ref().map_or(&[], |frames| &frames.between(left)[self.around_sent..])
    }

    /// Unsent bytes.
    #[must_use]
    pub fn left(&self) -> usize {
        let behind = self.rest.len() - self.in_frame;
        let around = self.frames.as_ref().map_or(0, |frames| {
            behind.div_ceil(frames.bytes_max) * AROUND_BYTES + 1 - self.around_sent
        });
        self.rest.len() + around + self.tail.len()
    }

    /// The unsent bytes, part by part.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let first = self.rest[..self.in_frame].chunks(PART_BYTES_MAX).chain([self.around()]);
        let behind = &self.rest[self.in_frame..];
        let frames = self.frames.iter().flat_map(move |frames| {
            let mut left = behind.len();
            behind.chunks(frames.bytes_max).flat_map(move |frame| {
                left -= frame.len();
                frame.chunks(PART_BYTES_MAX).chain([frames.between(left)])
            })
        });
        first.chain(frames).chain([self.tail]).filter(|part| !part.is_empty())
    }

    /// Records that `bytes` bytes were sent; returns how many of them are beyond this body.
    pub fn advance(&mut self, mut bytes: usize) -> usize {
        while bytes > 0 && self.left() > 0 {
            let part = bytes.min(self.in_frame);
            self.rest.advance(part);
            self.in_frame -= part;
            bytes -= part;
            if self.in_frame > 0 {
                break;
            }
            let around = bytes.min(self.around().len());
            self.around_sent += around;
            bytes -= around;
            if self.around().is_empty() {
                self.begin_frame();
            }
            if self.rest.is_empty() && self.around().is_empty() {
                let sent = bytes.min(self.tail.len());
                self.tail = &self.tail[sent..];
                bytes -= sent;
            }
        }
        bytes
    }

    /// Begins the next frame, whose head was sent with the end of the previous one.
    fn begin_frame(&mut self) {
        if let Some(frames) = self.frames.as_ref().filter(|_| !self.rest.is_empty()) {
            self.in_frame = self.rest.len().min(frames.bytes_max);
            self.around_sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends so much at a time of the parts there are.
    #[track_caller]
    fn check(large: impl Fn(&mut Vec<u8>) -> SharedBody, expected: &[u8]) {
        for step in [1, 3, 8, 9, 1_000, PART_BYTES_MAX + 5, usize::MAX] {
            if expected.len() / step > 1_000 {
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
                assert_eq!(next.len(), left);
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
            (&[&[&long[..], &long, b"a"].concat()], u32::MAX as usize),
        ] {
            let expected: Vec<u8> = parts.iter().flat_map(|part| frame(part)).collect();
            let body = Bytes::from(parts.concat());
            check(|out| SharedBody::in_frames(&body, [3, 0, 1], 206, bytes_max, out), &expected);
        }
        for body in [&b"body"[..], &[&long[..], b"a"].concat()] {
            let expected = [body, b"\r\n"].concat();
            let body = Bytes::copy_from_slice(body);
            check(|_| SharedBody::plain(&body, b"\r\n"), &expected);
        }
    }
}

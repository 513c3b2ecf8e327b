//! Frames to a client: the header before what is sent at once, answers to pings, the close frame.
//!
//! Has no payload: that stays where it was written, and `payload_left` of it follow the head.

use super::header::{Code, Opcode, write_header};
use super::utf8::Utf8;

/// The longest payload of a frame. What is longer goes in several messages: none of the protocols inside
/// needs theirs and these to begin together.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// The frames for one client.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// What goes before the payload, and how much of it is sent.
    head: Vec<u8>,
    head_sent: usize,
    /// Bytes of the payload that belong to the frame that is being sent.
    payload_left: usize,
    /// Frames are text where they can be.
    is_text: bool,
    /// What answers a ping.
    pong: Option<Vec<u8>>,
    /// To be closed with that code, once all is sent.
    close: Option<Code>,
    /// The close frame is written, or nothing more is said at all.
    is_over: bool,
}

impl Outgoing {
    /// After the answer to the HTTP request, which goes first.
    #[must_use]
    pub fn new(answer: Vec<u8>) -> Outgoing {
        Outgoing { head: answer, ..Outgoing::default() }
    }

    /// What is to be sent before the payload.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head[self.head_sent..]
    }

    /// How much of the payload is to be sent then.
    #[must_use]
    pub fn payload_left(&self) -> usize {
        self.payload_left
    }

    fn is_idle(&self) -> bool {
        self.payload_left == 0 && self.head().is_empty()
    }

    /// Whether the last frame is sent.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_over && self.is_idle()
    }

    /// Frames are text from now on, where they are UTF-8.
    pub fn speak_text(&mut self) {
        self.is_text = true;
    }

    /// Answers a ping. Of several that wait only the last one is answered.
    pub fn answer(&mut self, ping: Vec<u8>) {
        self.pong = Some(ping);
    }

    /// To be closed, once all is sent. The first code stands.
    pub fn close(&mut self, code: Code) {
        self.close.get_or_insert(code);
    }

    /// Nothing more is sent.
    pub fn discard(&mut self) {
        *self = Outgoing { is_over: true, ..Outgoing::default() };
    }

    /// Begins the next frame, with the payload that is there in `parts`, if none is being sent; says
    /// whether there is something to send.
    pub fn begin<'a, I: Iterator<Item = &'a [u8]>>(&mut self, parts: impl Fn() -> I) -> bool {
        if !self.is_idle() || self.is_over {
            return !self.is_idle();
        }
        self.head.clear();
        self.head_sent = 0;
        if let Some(said) = self.pong.take() {
            write_header(&mut self.head, Opcode::Pong, said.len());
            self.head.extend_from_slice(&said);
        }
        let there = parts().map(<[u8]>::len).sum::<usize>().min(PAYLOAD_BYTES_MAX);
        if there > 0 {
            let text = if self.is_text { text_bytes(parts(), there) } else { 0 };
            let (opcode, length) =
                if text > 0 { (Opcode::Text, text) } else { (Opcode::Binary, there) };
            write_header(&mut self.head, opcode, length);
            self.payload_left = length;
        } else if let Some(Code(code)) = self.close {
            write_header(&mut self.head, Opcode::Close, size_of_val(&code));
            self.head.extend_from_slice(&code.to_be_bytes());
            self.is_over = true;
        }
        !self.is_idle()
    }

    /// Notes that `bytes` were sent; returns how many of these were payload.
    pub fn sent(&mut self, bytes: usize) -> usize {
        let of_head = bytes.min(self.head().len());
        self.head_sent += of_head;
        let of_payload = bytes - of_head;
        debug_assert!(of_payload <= self.payload_left);
        self.payload_left -= of_payload;
        of_payload
    }
}

/// How many of the first `most` bytes are whole characters; 0: they are not UTF-8.
fn text_bytes<'a>(parts: impl Iterator<Item = &'a [u8]>, most: usize) -> usize {
    let (mut utf8, mut left) = (Utf8::default(), most);
    for part in parts {
        let part = &part[..part.len().min(left)];
        if !utf8.push(part) {
            return 0;
        }
        left -= part.len();
    }
    most - utf8.begun()
}

//! A client's frames: their payload, unmasked, as it comes; and what control frames say.
//!
//! Keeps of a frame no more than its header, or what it is if it is a control frame.

use super::header::{
    CONTROL_BYTES_MAX, Code, Fault, HEADER_BYTES_MAX, Header, Opcode, TEXT_REFUSED, breach,
};
use super::utf8::Utf8;

/// The frames of one client.
#[derive(Debug, Default)]
pub struct Incoming {
    /// A header that has not come whole.
    begun: [u8; HEADER_BYTES_MAX],
    begun_len: u8,
    /// The frame whose payload comes, and how much of that is still to come.
    frame: Option<Header>,
    left: u64,
    /// The payload of a control frame.
    control: Vec<u8>,
    /// A message of several frames has begun and not ended.
    is_within_message: bool,
    /// The message is text.
    is_text: bool,
    utf8: Utf8,
    has_sent_text: bool,
    refuses_text: bool,
    is_closed: bool,
}

/// What has come besides payload.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// What the last ping said, which is to be said back.
    pub ping: Option<Vec<u8>>,
    /// Nothing more is taken.
    pub end: Option<End>,
}

/// Why nothing more is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client has closed, and gets this code back.
    Closed(Code),
    /// It did something wrong.
    Failed(Fault),
}

impl Incoming {
    /// Takes what has come, and appends the payload in it to `payload`.
    pub fn receive(&mut self, mut bytes: &[u8], payload: &mut Vec<u8>) -> Received {
        let mut received = Received::default();
        while received.end.is_none() && !self.is_closed {
            let step = match self.frame {
                None if bytes.is_empty() => break,
                None => self.take_header(&mut bytes).map(|()| None),
                Some(_) if self.left > 0 && bytes.is_empty() => break,
                Some(header) => self.take_payload(header, &mut bytes, payload, &mut received),
            };
            received.end = step.unwrap_or_else(|fault| Some(End::Failed(fault)));
        }
        self.is_closed |= received.end.is_some();
        received
    }

    /// Whether the client has sent text; what it is sent may be text then.
    #[must_use]
    pub fn has_sent_text(&self) -> bool {
        self.has_sent_text
    }

    /// The protocol inside is binary: text is refused from now on.
    pub fn refuse_text(&mut self) {
        self.refuses_text = true;
    }

    /// Whether nothing more is taken.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn take_header(&mut self, bytes: &mut &[u8]) -> Result<(), Fault> {
        let begun = usize::from(self.begun_len);
        let joined = bytes.len().min(HEADER_BYTES_MAX - begun);
        self.begun[begun..begun + joined].copy_from_slice(&bytes[..joined]);
        let Some((header, used)) = Header::parse(&self.begun[..begun + joined])? else {
            // A header is whole with as many bytes as fit.
            self.begun_len = (begun + joined) as u8;
            *bytes = &bytes[joined..];
            return Ok(());
        };
        *bytes = &bytes[used - begun..];
        self.begun_len = 0;
        self.begin(header)?;
        (self.frame, self.left) = (Some(header), header.length);
        Ok(())
    }

    /// Checks that the frame may come now.
    fn begin(&mut self, header: Header) -> Result<(), Fault> {
        match header.opcode {
            Opcode::Continuation if !self.is_within_message => {
                return Err(breach("a frame continues a message that has not begun"));
            }
            Opcode::Text | Opcode::Binary if self.is_within_message => {
                return Err(breach("a message begins within another one"));
            }
            Opcode::Text if self.refuses_text => return Err(TEXT_REFUSED),
            Opcode::Text | Opcode::Binary => {
                self.is_text = header.opcode == Opcode::Text;
                self.has_sent_text |= self.is_text;
            }
            Opcode::Continuation | Opcode::Close | Opcode::Ping | Opcode::Pong => {}
        }
        if !header.opcode.is_control() {
            self.is_within_message = !header.is_final;
        }
        Ok(())
    }

    /// Takes what is there of a frame's payload, and ends the frame if that is all.
    fn take_payload(
        &mut self,
        header: Header,
        bytes: &mut &[u8],
        payload: &mut Vec<u8>,
        received: &mut Received,
    ) -> Result<Option<End>, Fault> {
        let count = usize::try_from(self.left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let (masked, rest) = bytes.split_at(count);
        *bytes = rest;
        let done = (header.length - self.left) as usize;
        self.left -= count as u64;
        let is_over = self.left == 0;
        if is_over {
            self.frame = None;
        }
        if header.opcode.is_control() {
            unmask(masked, header.mask, done, &mut self.control);
            debug_assert!(self.control.len() <= CONTROL_BYTES_MAX);
            return if is_over { self.take_control(header.opcode, received) } else { Ok(None) };
        }
        let start = payload.len();
        unmask(masked, header.mask, done, payload);
        if self.is_text {
            let ends = is_over && header.is_final;
            let is_valid = self.utf8.push(&payload[start..]) && (!ends || self.utf8.begun() == 0);
            if !is_valid {
                return Err(Fault { code: Code::INVALID, text: "text is not UTF-8" });
            }
        }
        Ok(None)
    }

    fn take_control(
        &mut self,
        opcode: Opcode,
        received: &mut Received,
    ) -> Result<Option<End>, Fault> {
        let said = std::mem::take(&mut self.control);
        match opcode {
            Opcode::Ping => received.ping = Some(said),
            Opcode::Close => return closed(&said).map(|code| Some(End::Closed(code))),
            // One that nobody asked for is allowed.
            _ => {}
        }
        Ok(None)
    }
}

/// The code that answers a close frame.
fn closed(said: &[u8]) -> Result<Code, Fault> {
    let Some((code, reason)) = said.split_first_chunk() else {
        return match said.is_empty() {
            true => Ok(Code::NORMAL),
            false => Err(breach("a close frame has half a code")),
        };
    };
    let code = Code(u16::from_be_bytes(*code));
    if !code.is_sendable() {
        return Err(breach("a close frame has a code that is not sent"));
    }
    if str::from_utf8(reason).is_err() {
        return Err(Fault {
            code: Code::INVALID,
            text: "the reason of a close frame is not UTF-8",
        });
    }
    Ok(code)
}

/// Appends `masked` to `into` without its mask; `done` bytes of the frame came before.
fn unmask(masked: &[u8], mask: [u8; 4], done: usize, into: &mut Vec<u8>) {
    let mask = u32::from_ne_bytes(mask);
    let turned = u32::from_ne_bytes({
        let mut bytes = mask.to_ne_bytes();
        bytes.rotate_left(done % 4);
        bytes
    });
    let word = u64::from(turned) << 32 | u64::from(turned);
    let start = into.len();
    into.extend_from_slice(masked);
    let (words, rest) = into[start..].as_chunks_mut::<8>();
    for eight in words {
        *eight = (u64::from_ne_bytes(*eight) ^ word).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(word.to_ne_bytes()) {
        *byte ^= mask;
    }
}

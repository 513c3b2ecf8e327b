//! The header of a frame (RFC 6455, 5.2), and close codes (7.4).

/// The longest header.
pub(super) const HEADER_BYTES_MAX: usize = 14;
/// The longest payload of a control frame.
pub(super) const CONTROL_BYTES_MAX: usize = 125;
/// The longest payload of a frame that is taken. It is used as it comes, so that this bounds no memory;
/// messages have limits of their own.
pub(super) const PAYLOAD_BYTES_MAX: u64 = 1 << 30;

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u16);

impl Code {
    /// It has served its purpose.
    pub const NORMAL: Code = Code(1000);
    /// The broker stops.
    pub const GOING_AWAY: Code = Code(1001);
    /// The peer breaks the rules of the protocol.
    pub const PROTOCOL: Code = Code(1002);
    /// Text was sent where the protocol inside is binary.
    pub const UNSUPPORTED: Code = Code(1003);
    /// Text that is not UTF-8.
    pub const INVALID: Code = Code(1007);
    /// A frame that is too long.
    pub const TOO_BIG: Code = Code(1009);

    /// Whether a client may send it.
    pub(super) fn is_sendable(self) -> bool {
        matches!(self.0, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }
}

/// What a client did wrong, and the code by which it learns that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// For the client.
    pub code: Code,
    /// For the log.
    pub text: &'static str,
}

/// The fault of a client that sends text to a binary protocol.
pub const TEXT_REFUSED: Fault =
    Fault { code: Code::UNSUPPORTED, text: "the client sends text, and its protocol is binary" };

pub(super) const fn breach(text: &'static str) -> Fault {
    Fault { code: Code::PROTOCOL, text }
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl Opcode {
    fn of(byte: u8) -> Result<Opcode, Fault> {
        Ok(match byte & 0x0f {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return Err(breach("a frame has a reserved opcode")),
        })
    }

    pub(super) fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }
}

/// The header of a client's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) opcode: Opcode,
    pub(super) is_final: bool,
    pub(super) length: u64,
    pub(super) mask: [u8; 4],
}

impl Header {
    /// The header that `bytes` begin with, and its length; `None`: it has not come whole. What is wrong is
    /// said as soon as it has come.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Header, usize)>, Fault> {
        let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
        if first & RESERVED != 0 {
            return Err(breach("a frame has reserved bits, and no extension was agreed on"));
        }
        let opcode = Opcode::of(first)?;
        let is_final = first & FIN != 0;
        if opcode.is_control() && !is_final {
            return Err(breach("a control frame is fragmented"));
        }
        let Some((&second, rest)) = rest.split_first() else { return Ok(None) };
        if second & MASKED == 0 {
            return Err(breach("a client's frame is not masked"));
        }
        let short = second & !MASKED;
        if opcode.is_control() && usize::from(short) > CONTROL_BYTES_MAX {
            return Err(breach("a control frame is longer than 125 bytes"));
        }
        let (length, rest) = match short {
            LENGTH_16 => match rest.split_first_chunk() {
                Some((length, rest)) => (u64::from(u16::from_be_bytes(*length)), rest),
                None => return Ok(None),
            },
            LENGTH_64 => match rest.split_first_chunk() {
                Some((length, rest)) => (u64::from_be_bytes(*length), rest),
                None => return Ok(None),
            },
            short => (u64::from(short), rest),
        };
        check_length(short, length)?;
        let Some((&mask, rest)) = rest.split_first_chunk() else { return Ok(None) };
        Ok(Some((Header { opcode, is_final, length, mask }, bytes.len() - rest.len())))
    }
}

/// A length takes as few bytes as it can.
fn check_length(short: u8, length: u64) -> Result<(), Fault> {
    let least = match short {
        LENGTH_16 => u64::from(LENGTH_16),
        LENGTH_64 => 1 << 16,
        _ => 0,
    };
    if length < least {
        return Err(breach("a frame's length takes more bytes than it needs"));
    }
    if length >> 63 != 0 {
        return Err(breach("a frame's length has its highest bit set"));
    }
    if length > PAYLOAD_BYTES_MAX {
        return Err(Fault { code: Code::TOO_BIG, text: "a frame is longer than 1 GiB" });
    }
    Ok(())
}

/// Appends the header of the broker's frame: whole, and not masked.
pub(super) fn write_header(out: &mut Vec<u8>, opcode: Opcode, length: usize) {
    out.push(FIN | opcode as u8);
    match length {
        0..=125 => out.push(length as u8),
        126..=0xffff => {
            out.push(LENGTH_16);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(LENGTH_64);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

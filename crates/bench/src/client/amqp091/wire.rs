//! Bytes to and from AMQP 0-9-1 frames, for a client. Knows nothing about sockets.
//!
//! Frame (specification 4.2.3): `type(1) channel(2) size(4) payload(size) 0xCE`.

/// Frame type of a method (4.2.3).
pub const METHOD: u8 = 1;
/// Frame type of a content header.
pub const HEADER: u8 = 2;
/// Frame type of a content body.
pub const BODY: u8 = 3;
/// The octet that ends every frame.
pub const FRAME_END: u8 = 0xCE;
/// Octets of a frame beside its payload.
pub const FRAME_OVERHEAD: usize = 8;

/// Class and method numbers of the methods a load needs, as `class << 16 | method`.
pub mod method {
    /// `connection.start`
    pub const CONNECTION_START: u32 = 10 << 16 | 10;
    /// `connection.start-ok`
    pub const CONNECTION_START_OK: u32 = 10 << 16 | 11;
    /// `connection.tune`
    pub const CONNECTION_TUNE: u32 = 10 << 16 | 30;
    /// `connection.tune-ok`
    pub const CONNECTION_TUNE_OK: u32 = 10 << 16 | 31;
    /// `connection.open`
    pub const CONNECTION_OPEN: u32 = 10 << 16 | 40;
    /// `connection.open-ok`
    pub const CONNECTION_OPEN_OK: u32 = 10 << 16 | 41;
    /// `connection.close`
    pub const CONNECTION_CLOSE: u32 = 10 << 16 | 50;
    /// `connection.close-ok`
    pub const CONNECTION_CLOSE_OK: u32 = 10 << 16 | 51;
    /// `connection.blocked`
    pub const CONNECTION_BLOCKED: u32 = 10 << 16 | 60;
    /// `connection.unblocked`
    pub const CONNECTION_UNBLOCKED: u32 = 10 << 16 | 61;
    /// `channel.open`
    pub const CHANNEL_OPEN: u32 = 20 << 16 | 10;
    /// `channel.open-ok`
    pub const CHANNEL_OPEN_OK: u32 = 20 << 16 | 11;
    /// `channel.close`
    pub const CHANNEL_CLOSE: u32 = 20 << 16 | 40;
    /// `channel.close-ok`
    pub const CHANNEL_CLOSE_OK: u32 = 20 << 16 | 41;
    /// `exchange.declare`
    pub const EXCHANGE_DECLARE: u32 = 40 << 16 | 10;
    /// `exchange.declare-ok`
    pub const EXCHANGE_DECLARE_OK: u32 = 40 << 16 | 11;
    /// `exchange.delete`
    pub const EXCHANGE_DELETE: u32 = 40 << 16 | 20;
    /// `exchange.delete-ok`
    pub const EXCHANGE_DELETE_OK: u32 = 40 << 16 | 21;
    /// `queue.declare`
    pub const QUEUE_DECLARE: u32 = 50 << 16 | 10;
    /// `queue.declare-ok`
    pub const QUEUE_DECLARE_OK: u32 = 50 << 16 | 11;
    /// `queue.bind`
    pub const QUEUE_BIND: u32 = 50 << 16 | 20;
    /// `queue.bind-ok`
    pub const QUEUE_BIND_OK: u32 = 50 << 16 | 21;
    /// `queue.delete`
    pub const QUEUE_DELETE: u32 = 50 << 16 | 40;
    /// `queue.delete-ok`
    pub const QUEUE_DELETE_OK: u32 = 50 << 16 | 41;
    /// `basic.qos`
    pub const BASIC_QOS: u32 = 60 << 16 | 10;
    /// `basic.qos-ok`
    pub const BASIC_QOS_OK: u32 = 60 << 16 | 11;
    /// `basic.consume`
    pub const BASIC_CONSUME: u32 = 60 << 16 | 20;
    /// `basic.consume-ok`
    pub const BASIC_CONSUME_OK: u32 = 60 << 16 | 21;
    /// `basic.cancel`
    pub const BASIC_CANCEL: u32 = 60 << 16 | 30;
    /// `basic.publish`
    pub const BASIC_PUBLISH: u32 = 60 << 16 | 40;
    /// `basic.deliver`
    pub const BASIC_DELIVER: u32 = 60 << 16 | 60;
    /// `basic.ack`
    pub const BASIC_ACK: u32 = 60 << 16 | 80;
    /// `basic.nack`
    pub const BASIC_NACK: u32 = 60 << 16 | 120;
    /// `confirm.select`
    pub const CONFIRM_SELECT: u32 = 85 << 16 | 10;
    /// `confirm.select-ok`
    pub const CONFIRM_SELECT_OK: u32 = 85 << 16 | 11;
}

/// What the peer sent and this client cannot read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the broker sent {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// One frame, borrowed from the bytes it was read into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// `METHOD`, `HEADER`, `BODY`, or 8 for a heartbeat.
    pub kind: u8,
    /// The channel it belongs to.
    pub channel: u16,
    /// Everything between the frame header and the end octet.
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// The method's number as in [`method`], or 0 if this is no method.
    #[inline]
    pub fn method(&self) -> u32 {
        if self.kind != METHOD {
            return 0;
        }
        self.payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    /// The method's arguments.
    pub fn arguments(&self) -> Arguments<'_> {
        Arguments { bytes: self.payload.get(4..).unwrap_or(&[]) }
    }
}

/// Takes the first frame off `bytes`: the frame and the octets it took, or `None` if it is not whole yet.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, Malformed> {
    let Some(header) = bytes.first_chunk::<7>() else { return Ok(None) };
    let size = u32::from_be_bytes([header[3], header[4], header[5], header[6]]) as usize;
    let whole = size.saturating_add(FRAME_OVERHEAD);
    if whole > FRAME_BYTES_MAX {
        return Err(Malformed("a frame larger than the negotiated maximum"));
    }
    let Some(frame) = bytes.get(..whole) else { return Ok(None) };
    if frame[whole - 1] != FRAME_END {
        return Err(Malformed("a frame that does not end in 0xCE"));
    }
    let channel = u16::from_be_bytes([header[1], header[2]]);
    let payload = &frame[7..whole - 1];
    Ok(Some((Frame { kind: header[0], channel, payload }, whole)))
}

/// The largest frame this client takes, its overhead included.
pub const FRAME_BYTES_MAX: usize = 128 * 1024;

/// Reads a method's arguments in their order; what is missing reads as an error.
#[derive(Debug, Clone)]
pub struct Arguments<'a> {
    bytes: &'a [u8],
}

impl<'a> Arguments<'a> {
    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.bytes.split_first_chunk().ok_or(Malformed("a method cut short"))?;
        self.bytes = rest;
        Ok(*head)
    }

    /// One octet.
    #[inline]
    pub fn octet(&mut self) -> Result<u8, Malformed> {
        Ok(self.take::<1>()?[0])
    }

    /// Two octets, most significant first.
    pub fn short(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.take()?))
    }

    /// Four octets.
    pub fn long(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    /// Eight octets.
    #[inline]
    pub fn long_long(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    /// A string of up to 255 octets.
    #[inline]
    pub fn short_string(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::from(self.octet()?);
        let (head, rest) =
            self.bytes.split_at_checked(length).ok_or(Malformed("a method cut short"))?;
        self.bytes = rest;
        Ok(head)
    }
}

/// Appends one method frame; `arguments` writes what follows the method's number.
pub fn write_method(
    out: &mut Vec<u8>,
    channel: u16,
    number: u32,
    arguments: impl FnOnce(&mut Vec<u8>),
) {
    write_frame(out, METHOD, channel, |out| {
        out.extend_from_slice(&number.to_be_bytes());
        arguments(out);
    });
}

/// Appends one frame whose payload is what `payload` appends.
pub fn write_frame(out: &mut Vec<u8>, kind: u8, channel: u16, payload: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.push(kind);
    out.extend_from_slice(&channel.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    payload(out);
    let size = u32::try_from(out.len() - start - 7).expect("a payload is bounded by frame-max");
    out[start + 3..start + 7].copy_from_slice(&size.to_be_bytes());
    out.push(FRAME_END);
}

/// Appends a string of up to 255 octets; longer ones are cut, which the arguments' checks rule out.
pub fn write_short_string(out: &mut Vec<u8>, text: &str) {
    let bytes = &text.as_bytes()[..text.len().min(255)];
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

/// Appends a string with a four-octet length.
pub fn write_long_string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u32).to_be_bytes());
    out.extend_from_slice(text);
}

/// Appends a field table (4.2.5.5) of the given entries.
pub fn write_table(out: &mut Vec<u8>, entries: &[(String, Field)]) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    for (name, field) in entries {
        write_short_string(out, name);
        match field {
            Field::Text(text) => {
                out.push(b'S');
                write_long_string(out, text.as_bytes());
            }
            Field::Integer(value) => {
                out.push(b'l');
                out.extend_from_slice(&value.to_be_bytes());
            }
            Field::Boolean(value) => out.extend_from_slice(&[b't', u8::from(*value)]),
            Field::Table(entries) => {
                out.push(b'F');
                write_table(out, entries);
            }
        }
    }
    let size = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&size.to_be_bytes());
}

/// A value of a field table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// `S`
    Text(String),
    /// `l`
    Integer(i64),
    /// `t`
    Boolean(bool),
    /// `F`
    Table(Vec<(String, Field)>),
}

impl Field {
    /// Reads `value` as on a command line: a number, `true`/`false`, or text.
    pub fn from_argument(value: &str) -> Field {
        if let Ok(number) = value.parse() {
            return Field::Integer(number);
        }
        match value {
            "true" => Field::Boolean(true),
            "false" => Field::Boolean(false),
            text => Field::Text(text.to_owned()),
        }
    }
}

/// Where a message goes and how it is kept: all that its frames say beside the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The channel it is published on.
    pub channel: u16,
    /// The exchange; empty for the default one.
    pub exchange: &'a str,
    /// The routing key.
    pub key: &'a str,
    /// Delivery mode 2 rather than 1.
    pub persistent: bool,
}

/// Appends `basic.publish`, its content header and its body in frames of at most `frame_bytes_max`.
/// Returns where the body's first octet lies.
pub fn write_publish(
    out: &mut Vec<u8>,
    envelope: &Envelope<'_>,
    body: &[u8],
    frame_bytes_max: usize,
) -> usize {
    write_method(out, envelope.channel, method::BASIC_PUBLISH, |out| {
        out.extend_from_slice(&[0, 0]);
        write_short_string(out, envelope.exchange);
        write_short_string(out, envelope.key);
        out.push(0);
    });
    write_frame(out, HEADER, envelope.channel, |out| {
        out.extend_from_slice(&60u16.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&(body.len() as u64).to_be_bytes());
        // Bit 12 of the property flags announces the delivery mode (4.2.6.1).
        out.extend_from_slice(&0x1000u16.to_be_bytes());
        out.push(if envelope.persistent { 2 } else { 1 });
    });
    let body_at = out.len() + 7;
    for chunk in body.chunks(frame_bytes_max - FRAME_OVERHEAD) {
        write_frame(out, BODY, envelope.channel, |out| out.extend_from_slice(chunk));
    }
    body_at
}

/// Appends `basic.ack`.
#[inline]
pub fn write_ack(out: &mut Vec<u8>, channel: u16, tag: u64, multiple: bool) {
    let mut frame = [0u8; 21];
    frame[0] = METHOD;
    frame[1..3].copy_from_slice(&channel.to_be_bytes());
    frame[3..7].copy_from_slice(&13u32.to_be_bytes());
    frame[7..11].copy_from_slice(&method::BASIC_ACK.to_be_bytes());
    frame[11..19].copy_from_slice(&tag.to_be_bytes());
    frame[19] = u8::from(multiple);
    frame[20] = FRAME_END;
    out.extend_from_slice(&frame);
}

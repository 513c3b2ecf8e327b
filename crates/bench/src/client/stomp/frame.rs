//! Frames to and from bytes (STOMP 1.2, "STOMP Frames"). Knows no sockets.

/// The most octets of a frame's command and headers.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Octets of a receipt's number.
pub(in crate::client) const RECEIPT_DIGITS: usize = 12;

/// A command and its headers, and how many octets they took with the empty line behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHead<'a> {
    pub(super) command: &'a [u8],
    headers: &'a [u8],
    pub(super) octets: usize,
}

impl<'a> FrameHead<'a> {
    /// `Ok(None)` if more octets are needed. Line ends before a frame are heart-beats and taken with
    /// it.
    #[inline]
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Option<FrameHead<'a>>, &'static str> {
        let beats = bytes.iter().take_while(|octet| matches!(octet, b'\n' | b'\r')).count();
        let frame = &bytes[beats..];
        let Some(end) = find_end(&frame[..frame.len().min(HEAD_BYTES_MAX)]) else {
            return match frame.len() >= HEAD_BYTES_MAX {
                true => Err("headers without an end"),
                false => Ok(None),
            };
        };
        let head = &frame[..end.0];
        let line = head.iter().position(|octet| *octet == b'\n').unwrap_or(head.len());
        let headers = head.get(line + 1..).unwrap_or(&[]);
        Ok(Some(FrameHead { command: trim(&head[..line]), headers, octets: beats + end.1 }))
    }

    /// The first header of that name, as it is written.
    #[inline]
    pub(super) fn header(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.headers.split(|octet| *octet == b'\n').find_map(|line| {
            let (head, value) = line.split_at_checked(name.len())?;
            (head == name && value.first() == Some(&b':')).then(|| trim(&value[1..]))
        })
    }

    /// The body's length, if it says one.
    pub(super) fn content_length(&self) -> Option<usize> {
        number(self.header(b"content-length")?).map(|value| value as usize)
    }
}

/// Where the headers end, and where what follows the empty line begins.
#[inline]
fn find_end(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|octet| *octet == b'\n') {
        let at = from + at;
        match bytes.get(at + 1..)? {
            [b'\n', ..] => return Some((at, at + 2)),
            [b'\r', b'\n', ..] => return Some((at, at + 3)),
            _ => from = at + 1,
        }
    }
    None
}

fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A whole number in digits.
#[inline]
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    let add = |value: u64, digit: &u8| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    };
    (!digits.is_empty()).then_some(())?;
    digits.iter().try_fold(0, add)
}

/// Appends a frame without a body. Values are escaped.
pub(super) fn write(out: &mut Vec<u8>, command: &str, headers: &[(&str, &str)]) {
    out.extend_from_slice(command.as_bytes());
    out.push(b'\n');
    for (name, value) in headers {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        for octet in value.bytes() {
            match octet {
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b':' if !matches!(command, "CONNECT") => out.extend_from_slice(b"\\c"),
                b'\\' => out.extend_from_slice(b"\\\\"),
                octet => out.push(octet),
            }
        }
        out.push(b'\n');
    }
    out.extend_from_slice(b"\n\0");
}

/// Appends SEND. Returns where the digits of its receipt, if any, and its body lie.
pub(super) fn write_send(
    out: &mut Vec<u8>,
    destination: &str,
    persistent: bool,
    receipt: bool,
    body: &[u8],
) -> (Option<usize>, usize) {
    out.extend_from_slice(format!("SEND\ndestination:{destination}\n").as_bytes());
    if persistent {
        out.extend_from_slice(b"persistent:true\n");
    }
    let receipt_at = receipt.then(|| {
        out.extend_from_slice(b"receipt:");
        let at = out.len();
        out.extend_from_slice(&[b'0'; RECEIPT_DIGITS]);
        out.push(b'\n');
        at
    });
    out.extend_from_slice(format!("content-length:{}\n\n", body.len()).as_bytes());
    let body_at = out.len();
    out.extend_from_slice(body);
    out.push(0);
    (receipt_at, body_at)
}

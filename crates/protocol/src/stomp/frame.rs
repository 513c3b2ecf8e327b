//! What frames of STOMP are made of: a command, header lines, an empty line, a body and NUL. Independent of
//! what they mean.
//!
//! Lines end with LF or CR LF, in every version: clients that send CR LF do so before they know the version.

use std::borrow::Cow;

/// Longest command.
const COMMAND_BYTES_MAX: usize = 32;

/// A version of the protocol; the versions differ in how headers are escaped, and in what ACK says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 1.0: no escapes. CONNECT and CONNECTED are so in every version.
    #[default]
    V1_0,
    /// 1.1: `\n`, `\c`, `\\`.
    V1_1,
    /// 1.2: `\r` as well.
    V1_2,
}

impl Version {
    /// All of them.
    pub const ALL: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

    /// How it is called on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["1.0", "1.1", "1.2"][self as usize]
    }

    /// The one that is called so.
    #[must_use]
    pub fn named(name: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.name() == name)
    }
}

/// Limits on frames from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a command with its headers.
    pub head_bytes_max: usize,
    /// Bytes of a body.
    pub body_bytes_max: u64,
}

/// Why bytes are no frame, or none that is allowed; nothing behind them can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The first line is too long to be a command.
    Command,
    /// Command and headers are longer than allowed.
    HeadTooLong(usize),
    /// A header line has no colon, or nothing before it.
    HeaderLine,
    /// A header has a backslash that escapes nothing in this version.
    Escape,
    /// A header is not UTF-8.
    NotUtf8,
    /// `content-length` is no number.
    ContentLength,
    /// The body is longer than allowed.
    BodyTooLong(u64),
    /// Behind a body with a `content-length` comes no NUL.
    NoNul,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Malformed::Command => f.write_str("the first line is too long to be a command"),
            Malformed::HeadTooLong(most) => {
                write!(f, "command and headers are longer than {most} bytes")
            }
            Malformed::HeaderLine => f.write_str(
                "a header line is not of the form name:value (headers end with an empty line)",
            ),
            Malformed::Escape => f.write_str(
                "a header has a backslash that escapes nothing: \\n, \\c and \\\\ are known, \\r since 1.2",
            ),
            Malformed::NotUtf8 => f.write_str("a header is not UTF-8"),
            Malformed::ContentLength => f.write_str("content-length is not a number"),
            Malformed::BodyTooLong(most) => write!(f, "the body is longer than {most} bytes"),
            Malformed::NoNul => {
                f.write_str("behind the body, of as many bytes as content-length says, comes no NUL")
            }
        }
    }
}

/// The command and headers of a frame, where they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The command.
    pub command: &'a [u8],
    /// The header lines, each with its end.
    pub lines: &'a [u8],
    /// What the first `content-length` says.
    pub content_length: Option<u64>,
    /// Bytes of all this, with the empty line.
    pub bytes: usize,
}

impl<'a> Head<'a> {
    /// Reads what `input` begins with; `None`: it has not all arrived.
    #[inline]
    pub fn read(input: &'a [u8], limits: &Limits) -> Result<Option<Head<'a>>, Malformed> {
        let most = limits.head_bytes_max;
        let within = &input[..input.len().min(most)];
        let Some((command, begin)) = line(within, 0) else {
            return if within.len() > COMMAND_BYTES_MAX {
                Err(Malformed::Command)
            } else {
                Ok(None)
            };
        };
        if command.len() > COMMAND_BYTES_MAX {
            return Err(Malformed::Command);
        }
        let (mut at, mut content_length) = (begin, None);
        while let Some((header, next)) = line(within, at) {
            if header.is_empty() {
                let lines = &within[begin..at];
                return Ok(Some(Head { command, lines, content_length, bytes: next }));
            }
            let (name, value) = parted(header).ok_or(Malformed::HeaderLine)?;
            if name == b"content-length" && content_length.is_none() {
                content_length = Some(number(value).ok_or(Malformed::ContentLength)?);
            }
            at = next;
        }
        if input.len() >= most { Err(Malformed::HeadTooLong(most)) } else { Ok(None) }
    }
}

/// The line that begins at `at`, without its end, and where the next one begins; `None`: its end is missing.
#[inline]
fn line(input: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = &input[at..];
    let end = memchr::memchr(b'\n', rest)?;
    let line = &rest[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), at + end + 1))
}

/// Name and value of a header line.
#[inline]
fn parted(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line).filter(|colon| *colon > 0)?;
    Some((&line[..colon], &line[colon + 1..]))
}

/// The header lines of a frame, name and value each, as they are.
#[inline]
pub fn lines(block: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let (line, next) = line(block, at)?;
            at = next;
            if let Some(parts) = parted(line) {
                return Some(parts);
            }
        }
    })
}

/// A decimal number.
#[must_use]
pub fn number(digits: &[u8]) -> Option<u64> {
    let digits = digits.trim_ascii();
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    digits.iter().try_fold(0, |number: u64, digit| {
        let value = digit.wrapping_sub(b'0');
        (value <= 9).then(|| number * 10 + u64::from(value))
    })
}

/// Bytes of what may be between frames: line ends, which are heart-beats, and lone NULs.
#[inline]
#[must_use]
pub fn gap(input: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match input[at..] {
            [b'\n' | 0, ..] => at += 1,
            [b'\r', b'\n', ..] => at += 2,
            _ => return at,
        }
    }
}

/// A header's name as it is compared and kept: 1.0 knows no escapes, and its clients put spaces in front.
#[inline]
pub(super) fn plain_name(raw: &[u8], version: Version) -> &[u8] {
    if version == Version::V1_0 { raw.trim_ascii_start() } else { raw }
}

/// The text of a header's name or value.
#[inline]
pub fn unescaped(raw: &[u8], version: Version) -> Result<Cow<'_, str>, Malformed> {
    if version == Version::V1_0 {
        // Clients of that time put a space behind the colon.
        return str::from_utf8(raw.trim_ascii_start())
            .map(Cow::Borrowed)
            .map_err(|_| Malformed::NotUtf8);
    }
    let text = str::from_utf8(raw).map_err(|_| Malformed::NotUtf8)?;
    if memchr::memchr(b'\\', raw).is_none() {
        return Ok(Cow::Borrowed(text));
    }
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        plain.push(match letters.next() {
            Some('n') => '\n',
            Some('c') => ':',
            Some('\\') => '\\',
            Some('r') if version == Version::V1_2 => '\r',
            _ => return Err(Malformed::Escape),
        });
    }
    Ok(Cow::Owned(plain))
}

/// Appends a text as the name of a header.
pub fn put_name(out: &mut Vec<u8>, text: &str, version: Version) {
    put_escaped(out, text, version, true);
}

/// Appends a text as the value of a header.
#[inline]
pub fn put_value(out: &mut Vec<u8>, text: &str, version: Version) {
    if text.bytes().all(|byte| !matches!(byte, b'\n' | b'\r' | b'\\' | b':')) {
        return out.extend_from_slice(text.as_bytes());
    }
    put_escaped(out, text, version, false);
}

/// What has no escape in a version cannot be said there: a line end becomes a space, and a colon of a name
/// `_`.
#[cold]
fn put_escaped(out: &mut Vec<u8>, text: &str, version: Version, is_name: bool) {
    for byte in text.bytes() {
        match (byte, version) {
            (b'\n' | b'\r', Version::V1_0) | (b'\r', Version::V1_1) => out.push(b' '),
            (b':', Version::V1_0) if is_name => out.push(b'_'),
            (_, Version::V1_0) => out.push(byte),
            (b'\n', _) => out.extend_from_slice(b"\\n"),
            (b'\r', _) => out.extend_from_slice(b"\\r"),
            (b'\\', _) => out.extend_from_slice(b"\\\\"),
            (b':', _) => out.extend_from_slice(b"\\c"),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { head_bytes_max: 64, body_bytes_max: 1_000 };

    #[test]
    fn heads_are_read() {
        let head = |text: &'static str| Head::read(text.as_bytes(), &LIMITS);
        let found =
            head("SEND\na:b\r\ncontent-length:12\ncontent-length:9\n\nbody").unwrap().unwrap();
        assert_eq!(found.command, b"SEND");
        assert_eq!(found.lines, b"a:b\r\ncontent-length:12\ncontent-length:9\n");
        assert_eq!((found.content_length, found.bytes), (Some(12), 46));
        for text in ["", "SEND", "SEND\n", "SEND\na:b\n", "SEND\r\n\r"] {
            assert_eq!(head(text), Ok(None), "{text:?}");
        }
        assert_eq!(head("BEGIN\r\n\r\n").unwrap().unwrap().bytes, 9);
    }

    #[test]
    fn what_is_no_head_says_why() {
        let long = format!("SEND\na:{}", "b".repeat(100));
        for (text, expected) in [
            ("X".repeat(33).as_str(), Malformed::Command),
            (&format!("{}\n", "X".repeat(33)), Malformed::Command),
            (&long, Malformed::HeadTooLong(64)),
            ("SEND\nno colon\n\n", Malformed::HeaderLine),
            ("SEND\n:empty\n\n", Malformed::HeaderLine),
            ("SEND\ncontent-length:-1\n\n", Malformed::ContentLength),
            ("SEND\ncontent-length:\n\n", Malformed::ContentLength),
            ("SEND\ncontent-length:99999999999999999999\n\n", Malformed::ContentLength),
        ] {
            assert_eq!(Head::read(text.as_bytes(), &LIMITS), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn escapes_are_those_of_the_version() {
        use Version::{V1_0, V1_1, V1_2};
        let is = |raw: &'static str, version, expected: Result<&'static str, Malformed>| {
            let found = unescaped(raw.as_bytes(), version);
            assert_eq!(
                found.as_deref(),
                expected.as_ref().map(|text| *text),
                "{raw:?} in {version:?}"
            );
        };
        is("a\\nb\\cc\\\\d", V1_2, Ok("a\nb:c\\d"));
        is("a\\nb\\cc\\\\d", V1_1, Ok("a\nb:c\\d"));
        is("a\\nb\\cc\\\\d", V1_0, Ok("a\\nb\\cc\\\\d"));
        is("a\\rb", V1_2, Ok("a\rb"));
        is("a\\rb", V1_1, Err(Malformed::Escape));
        is("a\\tb", V1_2, Err(Malformed::Escape));
        is("a\\", V1_2, Err(Malformed::Escape));
        is(" a ", V1_0, Ok("a "));
        is(" a ", V1_1, Ok(" a "));
        is("raw:colon", V1_2, Ok("raw:colon"));
        assert_eq!(unescaped(b"\xff", V1_2), Err(Malformed::NotUtf8));
    }

    #[test]
    fn what_is_put_is_read_back() {
        for text in ["", "plain", "a:b", "a\nb", "back\\slash", "\\n", "é\u{10fffe}", " a "] {
            for version in [Version::V1_1, Version::V1_2] {
                let mut out = Vec::new();
                put_value(&mut out, text, version);
                assert_eq!(unescaped(&out, version).unwrap(), text);
                assert!(!out.contains(&b'\n'));
                out.clear();
                put_name(&mut out, text, version);
                assert_eq!(unescaped(&out, version).unwrap(), text);
                assert!(!out.contains(&b':'));
            }
        }
        let said = |text, version| {
            let mut out = Vec::new();
            put_value(&mut out, text, version);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(said("a\r\nb", Version::V1_2), "a\\r\\nb");
        assert_eq!(said("a\r\nb", Version::V1_1), "a \\nb");
        assert_eq!(said("a\r\nb:c\\", Version::V1_0), "a  b:c\\");
    }

    #[test]
    fn between_frames_there_are_heart_beats() {
        for (text, expected) in
            [("", 0), ("SEND", 0), ("\n", 1), ("\r\n\n\0SEND", 4), ("\r", 0), ("\n\rX", 1)]
        {
            assert_eq!(gap(text.as_bytes()), expected, "{text:?}");
        }
    }
}

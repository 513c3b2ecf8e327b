//! Header blocks: `NATS/1.0`, a status perhaps, `Name: value` lines, an empty line.

use std::borrow::Cow;

/// What every header block begins with.
pub const VERSION: &[u8] = b"NATS/1.0";

/// A header block, read where it lies. Servers hand blocks on without looking inside, so that a line
/// which is none is passed over, not refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    status: &'a [u8],
    lines: &'a [u8],
}

impl<'a> Headers<'a> {
    /// The headers in a block; none where it is no block.
    #[must_use]
    pub fn read(block: &'a [u8]) -> Headers<'a> {
        let Some(rest) = block.strip_prefix(VERSION) else { return Headers::default() };
        let (first, lines) = split_line(rest);
        Headers { status: first.trim_ascii(), lines }
    }

    /// The status code and its description, where the block says one: (`503`, `No Responders`).
    #[must_use]
    pub fn status(&self) -> Option<(&'a [u8], &'a [u8])> {
        if self.status.is_empty() {
            return None;
        }
        let end = self.status.iter().position(u8::is_ascii_whitespace);
        let (code, description) = self.status.split_at(end.unwrap_or(self.status.len()));
        Some((code, description.trim_ascii()))
    }

    /// Names and values in their order; a name may come several times.
    pub fn entries(&self) -> impl Iterator<Item = (&'a [u8], Cow<'a, [u8]>)> + use<'a> {
        let mut lines = self.lines;
        std::iter::from_fn(move || {
            while !lines.is_empty() {
                let (field, rest) = split_field(lines);
                lines = rest;
                if let Some(end) = field.iter().position(|byte| matches!(byte, b':' | b'\n'))
                    && end > 0
                    && field[end] == b':'
                {
                    return Some((field[..end].trim_ascii(), unfolded(&field[end + 1..])));
                }
            }
            None
        })
    }

    /// The first value of that name, whose case counts.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        self.entries().find(|(found, _)| *found == name.as_bytes()).map(|(_, value)| value)
    }
}

/// The first line without its line end, and what follows it.
fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|&byte| byte == b'\n');
    let (line, rest) = end.map_or((bytes, &[][..]), |end| (&bytes[..end], &bytes[end + 1..]));
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}

/// The first line, with those behind it that begin with a blank and so continue it, and what follows them.
fn split_field(bytes: &[u8]) -> (&[u8], &[u8]) {
    let ends = |at: &usize| bytes[*at] == b'\n' && !matches!(bytes.get(at + 1), Some(b' ' | b'\t'));
    let end = (0..bytes.len()).find(ends).map_or(bytes.len(), |at| at + 1);
    bytes.split_at(end)
}

/// A value without the blanks around it, in one line: what continued it follows a space.
fn unfolded(value: &[u8]) -> Cow<'_, [u8]> {
    let value = value.trim_ascii();
    if !value.contains(&b'\n') {
        return Cow::Borrowed(value);
    }
    let lines: Vec<&[u8]> = value.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).collect();
    Cow::Owned(lines.join(&b' '))
}

/// Appends a header block piece by piece; nothing where nothing is put in.
#[derive(Debug)]
pub struct HeadersWriter<'o> {
    out: &'o mut Vec<u8>,
    begun: bool,
}

impl<'o> HeadersWriter<'o> {
    /// Begins at the end of `out`.
    pub fn new(out: &'o mut Vec<u8>) -> HeadersWriter<'o> {
        HeadersWriter { out, begun: false }
    }

    fn begin(&mut self) {
        if !self.begun {
            self.begun = true;
            self.out.extend_from_slice(b"NATS/1.0\r\n");
        }
    }

    /// A header. Each byte that a name cannot have becomes `_`, as does an empty name; line ends and other
    /// control characters in the value become spaces.
    pub fn put(&mut self, name: &[u8], value: &[u8]) {
        self.begin();
        let name = if name.is_empty() { b"_" } else { name };
        self.out.extend(name.iter().map(|&byte| if is_name(byte) { byte } else { b'_' }));
        self.out.extend_from_slice(b": ");
        self.out.extend(value.iter().map(|&byte| if byte < b' ' { b' ' } else { byte }));
        self.out.extend_from_slice(b"\r\n");
    }

    /// Ends the block.
    pub fn end(self) {
        if self.begun {
            self.out.extend_from_slice(b"\r\n");
        }
    }
}

/// Whether names can have it: client libraries pass headers over, or refuse all of them, for anything else.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b':'
}

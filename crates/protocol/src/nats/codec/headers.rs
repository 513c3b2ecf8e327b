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
        fields(self.lines).filter_map(split_name).map(|(name, value)| (name, unfolded(value)))
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

/// Lines, each with those behind it that begin with a blank and so continue it.
fn fields(mut lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let ends =
            |at: &usize| lines[*at] == b'\n' && !matches!(lines.get(at + 1), Some(b' ' | b'\t'));
        let end = (0..lines.len()).find(ends).map_or(lines.len(), |at| at + 1);
        let (field, rest) = lines.split_at(end);
        lines = rest;
        (!field.is_empty()).then_some(field)
    })
}

/// Name and value of a header, with the blanks around the value; `None`: it is none.
fn split_name(field: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = field.iter().position(|byte| matches!(byte, b':' | b'\n'))?;
    (end > 0 && field[end] == b':').then(|| (field[..end].trim_ascii(), &field[end + 1..]))
}

/// A header block without the headers of such names, and else as it is; nothing where nothing is left.
#[must_use]
pub fn without(block: &[u8], is_gone: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let lines = Headers::read(block).lines;
    let mut kept = block[..block.len() - lines.len()].to_vec();
    for field in fields(lines) {
        if !split_name(field).is_some_and(|(name, _)| is_gone(name)) {
            kept.extend_from_slice(field);
        }
    }
    if kept == b"NATS/1.0\r\n\r\n" { Vec::new() } else { kept }
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

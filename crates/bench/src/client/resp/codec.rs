//! Commands and replies to and from bytes (Redis serialization protocol, version 3). Independent of
//! sockets.

/// The commands that begin and commit a transaction.
pub(super) const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
pub(super) const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// The largest reply that is parsed as a whole: everything except message bodies.
pub(super) const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The largest body; servers accept bulk strings of 512 MiB by default.
const BODY_BYTES_MAX: usize = 512 << 20;
/// The most elements of one reply.
const ELEMENTS_MAX: usize = 1 << 20;
/// The deepest nesting of replies: HELLO's has lists in a map.
const DEPTH_MAX: u32 = 4;
/// The longest simple line.
const LINE_BYTES_MAX: usize = 8 * 1024;
/// The longest entry identifier: two 64-bit numbers and a dash.
const ID_BYTES_MAX: usize = 41;

/// The identifier of a stream entry, as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id {
    length: u8,
    octets: [u8; ID_BYTES_MAX],
}

impl Id {
    pub(super) fn new(text: &[u8]) -> Option<Id> {
        let mut octets = [0; ID_BYTES_MAX];
        octets.get_mut(..text.len())?.copy_from_slice(text);
        Some(Id { length: text.len() as u8, octets })
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.octets[..usize::from(self.length)]
    }
}

/// A parsed piece of a reply. Bodies follow the heads that give their size, and end with CRLF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item<'a> {
    /// A channel message begins.
    Message { size: usize },
    /// A stream read begins, with this many entries.
    Entries(usize),
    /// A stream entry begins.
    Entry { id: Id, size: usize },
    /// A read timed out, or a claimed entry no longer exists.
    Nothing,
    /// A published message was added to its stream.
    Added,
    /// A number, such as the count of acknowledged entries.
    Number,
    /// All commands before PING are processed.
    Pong,
    /// The results of a transaction begin; their count.
    Results(usize),
    /// An error reply.
    Refused(&'a [u8]),
    /// Anything else, such as a subscription notice.
    Other,
}

/// Why parsing stopped.
#[derive(Debug)]
enum Stop {
    /// The reply is incomplete.
    More,
    Wrong(&'static str),
}

/// A parsed value and the bytes it took; `Ok(None)` if more bytes are needed.
type Taken<T> = Result<Option<(T, usize)>, &'static str>;

fn taken<'a, T>(
    bytes: &'a [u8],
    parse: impl FnOnce(&mut Cursor<'a>) -> Result<T, Stop>,
) -> Taken<T> {
    let mut cursor = Cursor { bytes, at: 0 };
    match parse(&mut cursor) {
        Ok(value) => Ok(Some((value, cursor.at))),
        Err(Stop::More) if bytes.len() > ANSWER_BYTES_MAX + LINE_BYTES_MAX => {
            Err("an answer that is too long")
        }
        Err(Stop::More) => Ok(None),
        Err(Stop::Wrong(what)) => Err(what),
    }
}

/// Parses the next piece; `in_stream` is set while entries of a stream are still to come.
#[inline]
pub(super) fn next(bytes: &[u8], in_stream: bool) -> Taken<Item<'_>> {
    if let Some(found) = if in_stream { usual_entry(bytes) } else { usual_message(bytes) } {
        return Ok(Some(found));
    }
    taken(bytes, |cursor| match (in_stream, cursor.kind()?) {
        (true, _) => cursor.entry(),
        (_, b'>') => cursor.push(),
        (_, b'%') => cursor.entries(),
        (_, b'$') => cursor.bulk().map(|_| Item::Added),
        (_, b':') => cursor.value(0).map(|_| Item::Number),
        (_, b'+') => cursor.line().map(|text| match text {
            b"PONG" => Item::Pong,
            // `OK`, or `QUEUED` within a transaction.
            _ => Item::Other,
        }),
        (_, b'*') => cursor.length(b'*', ELEMENTS_MAX).map(Item::Results),
        (_, b'-') => cursor.line().map(Item::Refused),
        (_, b'_') => cursor.line().map(|_| Item::Nothing),
        _ => cursor.value(0).map(|_| Item::Other),
    })
}

/// Fast path: the head of an entry published by this tool. [`Cursor`] handles anything else.
#[inline]
fn usual_entry(bytes: &[u8]) -> Option<(Item<'_>, usize)> {
    let (id, rest) = usual_bulk(bytes.strip_prefix(b"*2\r\n")?)?;
    let (size, body) = usual_length(rest.strip_prefix(b"*2\r\n$1\r\nb\r\n")?)?;
    let id = Id::new(id)?;
    Some((Item::Entry { id, size }, bytes.len() - body.len()))
}

/// Fast path: a channel message of a subscription by name.
#[inline]
fn usual_message(bytes: &[u8]) -> Option<(Item<'_>, usize)> {
    let (_, rest) = usual_bulk(bytes.strip_prefix(b">3\r\n$7\r\nmessage\r\n")?)?;
    let (size, body) = usual_length(rest)?;
    Some((Item::Message { size }, bytes.len() - body.len()))
}

/// A bulk string, and the rest.
#[inline]
fn usual_bulk(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = usual_length(bytes)?;
    let (text, rest) = rest.split_at_checked(length)?;
    Some((text, rest.strip_prefix(b"\r\n")?))
}

/// A bulk string's length, and the rest.
#[inline]
fn usual_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let digits = bytes.strip_prefix(b"$")?;
    let (mut at, mut value) = (0, 0);
    // The largest body has nine digits.
    while at < 9
        && let Some(digit) = digits.get(at).map(|octet| octet.wrapping_sub(b'0'))
        && digit < 10
    {
        value = value * 10 + usize::from(digit);
        at += 1;
    }
    let rest = digits[at..].strip_prefix(b"\r\n")?;
    (at > 0 && value <= BODY_BYTES_MAX).then_some((value, rest))
}

/// The head of an XAUTOCLAIM reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claimed {
    /// Where the next claim continues; 0-0 after the last.
    pub(super) next: Id,
    /// Number of entries that follow.
    pub(super) entries: usize,
    /// Whether the identifiers of deleted entries follow them (since Redis 7).
    pub(super) names_gone: bool,
}

/// Parses the head of an XAUTOCLAIM reply; the inner `None` is another reply, of which nothing is taken.
pub(super) fn claimed(bytes: &[u8]) -> Taken<Option<Claimed>> {
    taken(bytes, |cursor| {
        if cursor.kind()? != b'*' {
            return Ok(None);
        }
        let parts = cursor.length(b'*', ELEMENTS_MAX)?;
        // Acknowledgements within a transaction have one result, a number.
        if !matches!(parts, 2 | 3) || cursor.kind()? != b'$' {
            cursor.at = 0;
            return Ok(None);
        }
        let next = cursor.bulk()?;
        let next = Id::new(next).ok_or(Stop::Wrong("an identifier that is too long"))?;
        let entries = cursor.length(b'*', ELEMENTS_MAX)?;
        Ok(Some(Claimed { next, entries, names_gone: parts == 3 }))
    })
}

/// Parses any whole reply. Returns its kind, and its text if it has one.
pub(super) fn answer(bytes: &[u8]) -> Taken<(u8, &[u8])> {
    taken(bytes, |cursor| {
        let kind = cursor.kind()?;
        match kind {
            b'+' | b'-' => cursor.line().map(|text| (kind, text)),
            b'$' => cursor.bulk().map(|text| (kind, text)),
            // The text follows three letters for its format and a colon.
            b'=' => cursor.string(b'=').map(|text| (kind, text.get(4..).unwrap_or(text))),
            _ => cursor.value(0).map(|()| (kind, &[][..])),
        }
    })
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    #[inline]
    fn kind(&self) -> Result<u8, Stop> {
        self.bytes.get(self.at).copied().ok_or(Stop::More)
    }

    /// Parses the length after this kind byte.
    #[inline]
    fn length(&mut self, kind: u8, max: usize) -> Result<usize, Stop> {
        let rest = &self.bytes[self.at..];
        match rest.first() {
            None => return Err(Stop::More),
            Some(first) if *first != kind => return Err(Stop::Wrong("an unexpected reply")),
            Some(_) => {}
        }
        let mut value = 0;
        for (at, octet) in rest.iter().enumerate().skip(1) {
            match octet {
                // Exceeds every limit long before it could overflow.
                b'0'..=b'9' if value <= max => value = value * 10 + usize::from(octet - b'0'),
                b'\r' if at > 1 && value <= max => {
                    self.at += at;
                    self.end()?;
                    return Ok(value);
                }
                b'0'..=b'9' | b'\r' => return Err(Stop::Wrong("a length above the limit")),
                _ => return Err(Stop::Wrong("an invalid length")),
            }
            if at > 20 {
                return Err(Stop::Wrong("an invalid length"));
            }
        }
        Err(Stop::More)
    }

    #[inline]
    fn end(&mut self) -> Result<(), Stop> {
        match self.bytes.get(self.at..self.at + 2) {
            Some(b"\r\n") => {
                self.at += 2;
                Ok(())
            }
            Some(_) => Err(Stop::Wrong("a line without its end")),
            None => Err(Stop::More),
        }
    }

    /// A short bulk string.
    #[inline]
    fn bulk(&mut self) -> Result<&'a [u8], Stop> {
        self.string(b'$')
    }

    #[inline]
    fn string(&mut self, kind: u8) -> Result<&'a [u8], Stop> {
        let length = self.length(kind, ANSWER_BYTES_MAX)?;
        let text = self.bytes.get(self.at..self.at + length).ok_or(Stop::More)?;
        self.at += length;
        self.end()?;
        Ok(text)
    }

    /// The text between the kind byte and the line end.
    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.bytes[self.at..];
        let looked = &rest[..rest.len().min(LINE_BYTES_MAX)];
        match looked.iter().position(|octet| *octet == b'\r') {
            Some(0) => Err(Stop::Wrong("an empty line")),
            Some(length) => {
                self.at += length;
                self.end()?;
                Ok(&looked[1..length])
            }
            None if rest.len() >= LINE_BYTES_MAX => Err(Stop::Wrong("a line without its end")),
            None => Err(Stop::More),
        }
    }

    /// Skips a whole value of any kind.
    fn value(&mut self, depth: u32) -> Result<(), Stop> {
        let kind = self.kind()?;
        // RESP2's null has length -1; some replies still use it.
        if self.bytes[self.at + 1..].first() == Some(&b'-') && matches!(kind, b'$' | b'*') {
            return self.line().map(drop);
        }
        let elements = match kind {
            b'$' | b'!' | b'=' => return self.string(kind).map(drop),
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => return self.line().map(drop),
            b'*' | b'~' | b'>' => self.length(kind, ELEMENTS_MAX)?,
            b'%' => self.length(kind, ELEMENTS_MAX)? * 2,
            _ => return Err(Stop::Wrong("an invalid value")),
        };
        if depth == DEPTH_MAX {
            return Err(Stop::Wrong("a reply nested too deeply"));
        }
        (0..elements).try_for_each(|_| self.value(depth + 1))
    }

    /// A push message.
    #[inline]
    fn push(&mut self) -> Result<Item<'a>, Stop> {
        let elements = self.length(b'>', ELEMENTS_MAX)?;
        let names = match (self.bulk()?, elements) {
            (b"message", 3) => 1,
            (b"pmessage", 4) => 2,
            _ => {
                (1..elements).try_for_each(|_| self.value(1))?;
                return Ok(Item::Other);
            }
        };
        for _ in 0..names {
            self.bulk()?;
        }
        Ok(Item::Message { size: self.length(b'$', BODY_BYTES_MAX)? })
    }

    /// A read of one stream, up to its first entry.
    fn entries(&mut self) -> Result<Item<'a>, Stop> {
        if self.length(b'%', ELEMENTS_MAX)? != 1 {
            return Err(Stop::Wrong("entries of more than one stream"));
        }
        self.bulk()?;
        Ok(Item::Entries(self.length(b'*', ELEMENTS_MAX)?))
    }

    /// An entry's identifier and its one field, up to the field's value.
    #[inline]
    fn entry(&mut self) -> Result<Item<'a>, Stop> {
        if self.kind()? == b'_' {
            return self.line().map(|_| Item::Nothing);
        }
        let parts = self.length(b'*', ELEMENTS_MAX)?;
        let id = self.bulk()?;
        let fields = self.length(b'*', ELEMENTS_MAX)?;
        if (parts, fields) != (2, 2) {
            return Err(Stop::Wrong("an entry that was not published here"));
        }
        self.bulk()?;
        let size = self.length(b'$', BODY_BYTES_MAX)?;
        let id = Id::new(id).ok_or(Stop::Wrong("an identifier that is too long"))?;
        Ok(Item::Entry { id, size })
    }
}

/// Appends a command.
pub(super) fn write<'a>(out: &mut Vec<u8>, words: impl ExactSizeIterator<Item = &'a [u8]>) {
    write_head(out, words.len());
    words.for_each(|word| write_bulk(out, word));
}

/// Appends a command's word count.
pub(super) fn write_head(out: &mut Vec<u8>, words: usize) {
    out.push(b'*');
    write_number(out, words as u64);
    out.extend_from_slice(b"\r\n");
}

/// Appends one word.
pub(super) fn write_bulk(out: &mut Vec<u8>, word: &[u8]) {
    out.push(b'$');
    write_number(out, word.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// Appends a number as a word.
pub(super) fn write_number_bulk(out: &mut Vec<u8>, number: u64) {
    let digits = number.checked_ilog10().map_or(1, |log| log + 1);
    out.push(b'$');
    write_number(out, u64::from(digits));
    out.extend_from_slice(b"\r\n");
    write_number(out, number);
    out.extend_from_slice(b"\r\n");
}

fn write_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [b'0'; 20];
    let (mut at, mut left) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

//! What shards send each other: parcels, which are words one after the other, and the words' bytes.
//!
//! Parcels never leave the process, so their layout has no version. Knows nothing of what is done
//! about a word.

use angarium_engine::{ConnectionId, Forward};

/// One word of a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    /// Something that every shard has to know, for [`angarium_engine::Engine::told`].
    News(&'a [u8]),
    /// A direct message, as [`Forward::parse`] reads it.
    Forward(&'a [u8]),
    /// All news up to this number are known, and so many bytes of messages were taken since the last
    /// word of this kind.
    Taken { news: u64, bytes: u64 },
    /// All who hear what a connection of the receiver emits have much unsent: it is to wait.
    Crowded(ConnectionId),
    /// It may go on.
    Relieved(ConnectionId),
    /// A connection that was told to wait has gone.
    Forgotten(ConnectionId),
    /// Nobody took a request that a connection of the receiver has emitted.
    Unheard { publisher: ConnectionId, subject: &'a str, reply: &'a str },
    /// Connections of a user, or to a virtual host, end.
    Ended { whose: Whose<'a>, why: &'a str },
}

/// Whose connections end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose<'a> {
    User(&'a str),
    Vhost(&'a str),
}

const NEWS: u8 = 0;
const FORWARD: u8 = 1;
const TAKEN: u8 = 2;
const CROWDED: u8 = 3;
const RELIEVED: u8 = 4;
const FORGOTTEN: u8 = 5;
const UNHEARD: u8 = 6;
const USER_ENDED: u8 = 7;
const VHOST_ENDED: u8 = 8;

/// Bytes before each word: its kind, and how many follow.
const HEAD_BYTES: usize = 5;

impl Word<'_> {
    /// Appends it to a parcel.
    pub(crate) fn write(&self, parcel: &mut Vec<u8>) {
        match *self {
            Word::News(news) => put(parcel, NEWS, &[news]),
            Word::Forward(message) => put(parcel, FORWARD, &[message]),
            Word::Taken { news, bytes } => {
                put(parcel, TAKEN, &[&news.to_le_bytes(), &bytes.to_le_bytes()]);
            }
            Word::Crowded(connection) => put(parcel, CROWDED, &[&connection.0.to_le_bytes()]),
            Word::Relieved(connection) => put(parcel, RELIEVED, &[&connection.0.to_le_bytes()]),
            Word::Forgotten(connection) => put(parcel, FORGOTTEN, &[&connection.0.to_le_bytes()]),
            Word::Unheard { publisher, subject, reply } => {
                let publisher = publisher.0.to_le_bytes();
                put(parcel, UNHEARD, &[&publisher, &text(subject), &text(reply)]);
            }
            Word::Ended { whose, why } => {
                let (kind, name) = match whose {
                    Whose::User(name) => (USER_ENDED, name),
                    Whose::Vhost(name) => (VHOST_ENDED, name),
                };
                put(parcel, kind, &[&text(name), &text(why)]);
            }
        }
    }
}

/// Appends [`Word::Forward`] of a message that has no bytes yet; returns how many it took.
#[inline]
pub(crate) fn write_forward(forward: &Forward<'_>, parcel: &mut Vec<u8>) -> usize {
    let start = parcel.len();
    parcel.extend_from_slice(&[FORWARD, 0, 0, 0, 0]);
    forward.write(parcel);
    let bytes = parcel.len() - start;
    parcel[start + 1..start + HEAD_BYTES].copy_from_slice(&length(bytes - HEAD_BYTES));
    bytes
}

fn put(parcel: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    parcel.push(kind);
    parcel.extend_from_slice(&length(parts.iter().map(|part| part.len()).sum()));
    for part in parts {
        parcel.extend_from_slice(part);
    }
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).expect("limits keep words below 4 GiB").to_le_bytes()
}

/// A text with its length before it.
fn text(text: &str) -> Vec<u8> {
    [&length(text.len()), text.as_bytes()].concat()
}

/// Takes a parcel apart. It comes from this very program, so what it cannot read is a bug, which is
/// said and ends the parcel.
#[derive(Debug)]
pub(crate) struct Words<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = Result<(Word<'a>, usize), &'static str>;

    /// The next word and how many bytes it took.
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let before = self.0.len();
        let word = self.read();
        if word.is_none() {
            self.0 = &[];
        }
        Some(word.map(|word| (word, before - self.0.len())).ok_or("a parcel is malformed"))
    }
}

impl<'a> Words<'a> {
    fn read(&mut self) -> Option<Word<'a>> {
        let (&kind, rest) = self.0.split_first()?;
        let mut fields = Fields(rest);
        let bytes = fields.u32()? as usize;
        let (content, rest) = fields.0.split_at_checked(bytes)?;
        self.0 = rest;
        let mut fields = Fields(content);
        Some(match kind {
            NEWS => Word::News(content),
            FORWARD => Word::Forward(content),
            TAKEN => Word::Taken { news: fields.u64()?, bytes: fields.u64()? },
            CROWDED => Word::Crowded(ConnectionId(fields.u32()?)),
            RELIEVED => Word::Relieved(ConnectionId(fields.u32()?)),
            FORGOTTEN => Word::Forgotten(ConnectionId(fields.u32()?)),
            UNHEARD => Word::Unheard {
                publisher: ConnectionId(fields.u32()?),
                subject: fields.text()?,
                reply: fields.text()?,
            },
            USER_ENDED => Word::Ended { whose: Whose::User(fields.text()?), why: fields.text()? },
            VHOST_ENDED => Word::Ended { whose: Whose::Vhost(fields.text()?), why: fields.text()? },
            _ => return None,
        })
    }
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.u32()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        str::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let words = [
            Word::News(b"news"),
            Word::Forward(b""),
            Word::Taken { news: u64::MAX, bytes: 7 },
            Word::Crowded(ConnectionId(3)),
            Word::Relieved(ConnectionId(u32::MAX)),
            Word::Forgotten(ConnectionId(0)),
            Word::Unheard { publisher: ConnectionId(1), subject: "a.b", reply: "_INBOX.1" },
            Word::Ended { whose: Whose::User("guest"), why: "deleted" },
            Word::Ended { whose: Whose::Vhost("/"), why: "" },
        ];
        let mut parcel = Vec::new();
        for word in &words {
            word.write(&mut parcel);
        }
        let read: Vec<_> = Words(&parcel).map(|word| word.map(|(word, _)| word)).collect();
        assert_eq!(read, words.map(Ok));
        let bytes: usize = Words(&parcel).map(|word| word.map_or(0, |(_, bytes)| bytes)).sum();
        assert_eq!(bytes, parcel.len());
    }

    #[test]
    fn what_cannot_be_read_ends_a_parcel() {
        let mut parcel = Vec::new();
        Word::Crowded(ConnectionId(3)).write(&mut parcel);
        for cut in 1..parcel.len() {
            let words: Vec<_> = Words(&parcel[..cut]).collect();
            assert_eq!(words, [Err("a parcel is malformed")], "{cut}");
        }
        assert_eq!(Words(&[99, 0, 0, 0, 0, 1]).count(), 1);
    }
}

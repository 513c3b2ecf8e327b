//! A RESP connection: handshake, channels, streams with consumer groups, and parsing of the input.

use super::codec::{self, EXEC, Id, Item, MULTI};
use super::group_consumer::GroupConsumer;
use crate::client::{
    Confirm, Encoded, Error, Head, Receiver, Route, Session, Source, Target, Wire,
};
use std::io;

/// The field name of entries published by this tool.
const FIELD: &[u8] = b"b";
/// Subscriptions are written in pieces of this many bytes.
const WRITE_BYTES: usize = 64 * 1024;

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) wire: Wire,
    /// Commands to send before the next read.
    requests: Vec<u8>,
    confirms: bool,
    /// CLIENT REPLY OFF is set.
    unanswered: bool,
    /// Publishes and acknowledgements are in transactions.
    transacted: bool,
    subscriptions: Vec<(String, bool)>,
    /// The consumer group membership, if this connection consumes a stream.
    member: Option<GroupConsumer>,
    /// Bytes of the current body still to come.
    body_left: Option<usize>,
    /// Entries still to come of the current read.
    entries_left: usize,
    /// Results still to come of the current transaction.
    results_left: usize,
    /// Messages added to their stream.
    added: u64,
    /// Delivered entries.
    delivered: u64,
}

impl Connection {
    /// Connects, authenticates, and waits until the server has loaded its data.
    pub fn open(target: &Target) -> Result<Connection, Error> {
        let mut connection = Connection {
            wire: Wire::open(target)?,
            requests: Vec::new(),
            confirms: false,
            unanswered: false,
            transacted: false,
            subscriptions: Vec::new(),
            member: None,
            body_left: None,
            entries_left: 0,
            results_left: 0,
            added: 0,
            delivered: 0,
        };
        let mut hello = vec!["HELLO", "3"];
        if let Some(login) = &target.login {
            let user = if login.user.is_empty() { "default" } else { &login.user };
            hello.extend(["AUTH", user, login.password()]);
        }
        connection.ask(&hello).map_err(|error| match error {
            Error::Closed(text) if text.contains("unknown command") => {
                Error::Closed(format!("{text}: Redis 6.2 or later is needed"))
            }
            error => error,
        })?;
        // A loading server answers HELLO but refuses PING.
        connection.ask(&["PING"]).map_err(|error| match error {
            Error::Closed(text) if text.starts_with("LOADING") => io::Error::other(text).into(),
            error => error,
        })?;
        Ok(connection)
    }

    /// Sends a command and waits for its reply. Returns the reply's text, if it has any.
    pub fn ask(&mut self, words: &[&str]) -> Result<String, Error> {
        self.push(words.iter().map(|word| word.as_bytes()));
        self.flush()?;
        self.expect_answer()
    }

    fn push<'a>(&mut self, words: impl ExactSizeIterator<Item = &'a [u8]>) {
        codec::write(&mut self.requests, words);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.wire.flush(&mut self.requests)
    }

    /// Waits for a reply; drops push messages before it.
    fn expect_answer(&mut self) -> Result<String, Error> {
        self.wire.expect(|bytes| {
            let answer = codec::answer(bytes).map_err(Error::invalid)?;
            let Some(((kind, text), octets)) = answer else { return Ok(None) };
            let text = String::from_utf8_lossy(text).into_owned();
            match kind {
                b'-' => Err(Error::Closed(text)),
                _ => Ok(Some(((kind != b'>').then_some(text), octets))),
            }
        })
    }

    /// Publishes to streams and expects replies from now on.
    pub(crate) fn select_confirms(&mut self) -> Result<(), Error> {
        self.confirms = true;
        Ok(())
    }

    /// Publishes without replies until [`Connection::send_end`]: a server buffers unread replies in
    /// memory.
    pub(crate) fn disable_replies(&mut self) -> Result<(), Error> {
        self.unanswered = true;
        self.push([&b"CLIENT"[..], b"REPLY", b"OFF"].into_iter());
        Ok(self.flush()?)
    }

    /// Acknowledges in transactions from now on, and publishes in them once one has begun.
    pub(crate) fn select_transactions(&mut self) -> Result<(), Error> {
        self.transacted = true;
        Ok(())
    }

    /// Begins the first transaction.
    pub(crate) fn begin(&mut self) -> Result<(), Error> {
        self.ask(&["MULTI"]).map(drop)
    }

    /// Appends a commit and the start of the next transaction. Acknowledgements carry their own commit.
    pub(crate) fn encode_commit(&self, out: &mut Vec<u8>) {
        if self.member.is_none() {
            out.extend_from_slice(EXEC);
            out.extend_from_slice(MULTI);
        }
    }

    /// Creates a stream and a group that receives everything added from now on.
    pub(crate) fn declare_session(&mut self, session: &Session<'_>) -> Result<(), Error> {
        match self.ask(&["XGROUP", "CREATE", session.filter, session.name, "$", "MKSTREAM"]) {
            Err(Error::Closed(text)) if text.starts_with("BUSYGROUP") => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Deletes a stream and its groups.
    pub(crate) fn delete(&mut self, stream: &str) -> Result<(), Error> {
        self.ask(&["UNLINK", stream]).map(drop)
    }

    /// Consumes a stream as a member of a group from now on; or subscribes to a channel, or to a pattern with
    /// `*`, and waits for the server's answer.
    pub(crate) fn subscribe(&mut self, source: &Source<'_>, prefetch: u16) -> Result<(), Error> {
        let Some(group) = source.session else {
            return self.subscribe_many([source.name.to_owned()].into_iter());
        };
        self.member = Some(GroupConsumer::new(source.name, group, source.auto_ack, prefetch));
        Ok(())
    }

    /// Subscribes to many channels and patterns.
    pub(crate) fn subscribe_many(
        &mut self,
        channels: impl Iterator<Item = String>,
    ) -> Result<(), Error> {
        for channel in channels {
            let is_pattern = channel.contains('*');
            let command = if is_pattern { &b"PSUBSCRIBE"[..] } else { b"SUBSCRIBE" };
            self.push([command, channel.as_bytes()].into_iter());
            self.subscriptions.push((channel, is_pattern));
            if self.requests.len() >= WRITE_BYTES {
                self.ask(&["PING"])?;
            }
        }
        // All subscription notices precede this reply.
        self.ask(&["PING"]).map(drop)
    }

    /// Appends a message.
    pub(crate) fn encode(&self, route: &Route<'_>, body: &[u8], out: &mut Vec<u8>) -> Encoded {
        let key = route.key.as_bytes();
        if route.persistent || self.confirms {
            codec::write(out, [&b"XADD"[..], key, b"*", FIELD, body].into_iter());
        } else {
            codec::write(out, [&b"PUBLISH"[..], key, body].into_iter());
        }
        Encoded::body_at(out.len() - body.len() - b"\r\n".len())
    }

    /// Acknowledges a delivery; with `multiple`, all up to it. Sent before the next read.
    pub(crate) fn encode_ack(&mut self, _: &mut Vec<u8>, tag: u64, multiple: bool) {
        if let Some(member) = &mut self.member {
            member.acknowledge(tag, multiple, self.transacted, &mut self.requests);
        }
    }

    /// Ends subscriptions and asks for a reply to everything sent before.
    pub(crate) fn send_end(&mut self) -> Result<(), Error> {
        if let Some(member) = &mut self.member {
            member.end();
        }
        for (channel, is_pattern) in std::mem::take(&mut self.subscriptions) {
            let command = if is_pattern { &b"PUNSUBSCRIBE"[..] } else { b"UNSUBSCRIBE" };
            self.push([command, channel.as_bytes()].into_iter());
        }
        if std::mem::take(&mut self.unanswered) {
            self.push([&b"CLIENT"[..], b"REPLY", b"ON"].into_iter());
        }
        if std::mem::take(&mut self.transacted) && self.member.is_none() {
            // An empty transaction is open.
            self.push([&b"DISCARD"[..]].into_iter());
        }
        self.push([&b"PING"[..]].into_iter());
        Ok(self.flush()?)
    }

    /// Closes the connection once the last acknowledgements are processed.
    pub(crate) fn close(mut self) -> Result<(), Error> {
        if self.requests.is_empty() {
            return Ok(());
        }
        self.push([&b"QUIT"[..]].into_iter());
        self.flush()?;
        // The server hangs up after its replies.
        while self.wire.fill()? > 0 {
            self.parse(&mut ())?;
        }
        Ok(())
    }

    /// Sends pending commands and the next stream read, and reads the socket once.
    #[inline]
    pub(crate) fn fill(&mut self) -> io::Result<usize> {
        if let Some(member) = &mut self.member {
            member.read(&mut self.requests);
        }
        self.flush()?;
        self.wire.fill()
    }

    /// Hands everything received to `receiver`.
    #[inline]
    pub(crate) fn parse(&mut self, receiver: &mut impl Receiver) -> Result<(), Error> {
        let before = self.added;
        let parsed = self.parse_items(receiver);
        if self.added > before {
            // Replies come in the order of the messages.
            receiver.confirm(Confirm { tag: self.added, multiple: true, refused: false })?;
        }
        parsed
    }

    #[inline]
    fn parse_items(&mut self, receiver: &mut impl Receiver) -> Result<(), Error> {
        loop {
            if let Some(left) = self.body_left
                && !self.parse_body(left, receiver)?
            {
                return Ok(());
            }
            if self.entries_left == 0
                && self.member.as_ref().is_some_and(GroupConsumer::is_claiming)
            {
                match self.parse_claim()? {
                    None => return Ok(()),
                    Some(true) => continue,
                    Some(false) => {}
                }
            }
            let in_stream = self.entries_left > 0;
            let next = |bytes| {
                let Some((item, octets)) = codec::next(bytes, in_stream).map_err(Error::invalid)?
                else {
                    return Ok(None);
                };
                match item {
                    Item::Refused(text) => {
                        Err(Error::Closed(String::from_utf8_lossy(text).into_owned()))
                    }
                    item => Ok(Some((item, octets))),
                }
            };
            match self.wire.incoming.take(next)? {
                None => return Ok(()),
                Some(Item::Message { size }) => {
                    receiver.begin(Head { size: size as u64, ..Head::default() });
                    self.body_left = Some(size);
                }
                Some(Item::Entry { id, size }) => {
                    let (tag, redelivered) = self.begin_entry(id, size);
                    receiver.begin(Head { tag, redelivered, size: size as u64 });
                    self.body_left = Some(size);
                }
                Some(Item::Entries(count)) => {
                    self.entries_left = count;
                    self.answered(count == 0);
                }
                Some(Item::Nothing) if in_stream => {
                    // A claimed entry that no longer exists.
                    self.entries_left -= 1;
                    self.answered(self.entries_left == 0);
                }
                Some(Item::Nothing) => {
                    if let Some(member) = &mut self.member {
                        member.found_nothing();
                    }
                    self.answered(true);
                }
                Some(Item::Results(0)) => receiver.committed(),
                Some(Item::Results(count)) => self.results_left = count,
                Some(Item::Added | Item::Number) if self.results_left > 0 => {
                    self.results_left -= 1;
                    if self.results_left == 0 {
                        receiver.committed();
                    }
                }
                Some(Item::Added) => self.added += 1,
                Some(Item::Pong) => receiver.ended(),
                Some(Item::Refused(_) | Item::Number | Item::Other) => {}
            }
        }
    }

    /// Hands over the received part of a body with `left` bytes to come. Returns whether the body is
    /// complete.
    #[inline]
    fn parse_body(&mut self, mut left: usize, receiver: &mut impl Receiver) -> Result<bool, Error> {
        loop {
            let piece = |bytes: &[u8]| match bytes.get(left..left + 2) {
                Some(b"\r\n") => {
                    receiver.body(&bytes[..left]);
                    Ok(Some((None, left + 2)))
                }
                Some(_) => Err(Error::invalid("a body without its end")),
                None => {
                    let count = bytes.len().min(left);
                    receiver.body(&bytes[..count]);
                    Ok((count > 0).then_some((Some(left - count), count)))
                }
            };
            let Some(taken) = self.wire.incoming.take(piece)? else { return Ok(false) };
            self.body_left = taken;
            let Some(rest) = taken else { break };
            left = rest;
        }
        receiver.complete();
        self.answered(self.entries_left == 0);
        Ok(true)
    }

    /// Parses the head or the tail of an XAUTOCLAIM reply, if that is next; `None` if more bytes are
    /// needed to tell.
    fn parse_claim(&mut self) -> Result<Option<bool>, Error> {
        let Some(member) = &mut self.member else { return Ok(Some(false)) };
        if member.awaits_gone() {
            let gone =
                self.wire.incoming.take(|bytes| codec::answer(bytes).map_err(Error::invalid))?;
            if gone.is_some() {
                member.claimed();
            }
            return Ok(gone.map(|_| true));
        }
        match self.wire.incoming.take(|bytes| codec::claimed(bytes).map_err(Error::invalid))? {
            None => Ok(None),
            Some(None) => Ok(Some(false)),
            Some(Some(claimed)) => {
                self.entries_left = claimed.entries;
                member.claims(&claimed);
                if claimed.entries == 0 {
                    self.answered(true);
                }
                Ok(Some(true))
            }
        }
    }

    /// Notes an entry. Returns its tag, and whether another member had it before.
    #[inline]
    fn begin_entry(&mut self, id: Id, size: usize) -> (u64, bool) {
        self.entries_left -= 1;
        self.delivered += 1;
        let redelivered =
            self.member.as_mut().is_some_and(|member| member.delivered(self.delivered, id, size));
        (self.delivered, redelivered)
    }

    /// Notes that a stream read is answered, if `is_whole`.
    #[inline]
    fn answered(&mut self, is_whole: bool) {
        if let Some(member) = &mut self.member
            && is_whole
        {
            member.answered();
        }
    }
}

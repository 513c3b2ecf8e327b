//! The bytes of a chunk in memory. A large body is not copied but shared: it lies beside the rest of its
//! record, in a chunk of its own.

use super::record::{self, Recipient, Record};
use angarium_engine::{Bytes, MessageView, Time, share};

/// A full chunk's.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// All of it, or what comes before the body.
    bytes: Bytes,
    /// A body, and what comes behind it.
    apart: Option<(Bytes, Bytes)>,
}

impl Content {
    pub(super) fn whole(bytes: Bytes) -> Content {
        Content { bytes, apart: None }
    }

    pub(super) fn len(&self) -> usize {
        let apart = self.apart.as_ref().map_or(0, |(body, behind)| body.len() + behind.len());
        self.bytes.len() + apart
    }

    /// The record that begins there.
    pub(super) fn record(&self, offset: usize) -> Option<Record<'_>> {
        let apart = self.apart.as_ref().map(|(body, behind)| (&body[..], &behind[..]));
        Record::read(self.bytes.get(offset..)?, apart)
    }

    /// The body of one of its records, to be shared, if it has at least `least` bytes: it keeps all of the
    /// chunk in memory.
    pub(super) fn share(&self, record: &Record<'_>, least: usize) -> Option<Bytes> {
        match &self.apart {
            Some((body, _)) => Some(body.clone()),
            None => {
                let body = record.message.body;
                (body.len() >= least).then(|| self.bytes.slice_ref(body))
            }
        }
    }

    /// All of it in one. Where the body lies apart, it is copied.
    pub(super) fn into_whole(self) -> Bytes {
        match self.apart {
            None => self.bytes,
            Some((body, behind)) => share([self.bytes, body, behind].concat()),
        }
    }
}

/// The one that is being filled.
#[derive(Debug, Default)]
pub(super) struct Filling {
    bytes: Vec<u8>,
    /// The body of its only message where that lies apart, and where among the bytes it belongs.
    pub(super) apart: Option<(usize, Bytes)>,
    /// Where its last record begins, and which message that is.
    pub(super) record: usize,
    emission: u64,
}

impl Filling {
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + self.apart.as_ref().map_or(0, |(_, body)| body.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether its last message is that one.
    pub(super) fn ends_with(&self, emission: u64) -> bool {
        !self.is_empty() && self.emission == emission
    }

    /// Begins the record of a message, with its body beside it where that is shared and the chunk is to have
    /// no other; `false`: it has a part that is too long.
    pub(super) fn begin(
        &mut self,
        now: Time,
        message: &MessageView<'_>,
        emission: u64,
        is_alone: bool,
    ) -> bool {
        let start = self.bytes.len();
        if !record::begin(&mut self.bytes, now, message) {
            return false;
        }
        match message.shared.filter(|_| is_alone && start == 0) {
            Some(body) => self.apart = Some((self.bytes.len(), body.clone())),
            None => self.bytes.extend_from_slice(message.body),
        }
        (self.record, self.emission) = (start, emission);
        true
    }

    pub(super) fn add_recipient(&mut self, recipient: Recipient) {
        let apart = self.apart.as_ref().map_or(0, |(_, body)| body.len());
        record::add_recipient(&mut self.bytes, self.record, apart, recipient);
    }

    /// The record that begins there.
    pub(super) fn read(&self, offset: usize) -> Option<Record<'_>> {
        Record::read(self.bytes.get(offset..)?, None)
    }

    pub(super) fn close(&mut self) -> Content {
        let Filling { mut bytes, apart, .. } = std::mem::take(self);
        let apart = apart.map(|(at, body)| (body, share(bytes.split_off(at))));
        Content { bytes: share(bytes), apart }
    }
}

//! A message's bytes in memory, shared by the queues that hold it.

use std::ops::Deref;
use std::sync::Arc;

/// A message as [`super::stored`] describes it. One that was read back stays inside the record that
/// it came in: nothing is copied.
#[derive(Clone, Debug)]
pub(crate) struct Blob {
    record: Arc<[u8]>,
    /// Bytes before the message.
    start: u32,
}

impl Blob {
    /// The message that a record ends with.
    pub(crate) fn at_end_of(record: &Arc<[u8]>, message_bytes: usize) -> Blob {
        let start = u32::try_from(record.len() - message_bytes).expect("records are below 1 GiB");
        Blob { record: Arc::clone(record), start }
    }
}

impl From<&[u8]> for Blob {
    #[inline]
    fn from(message: &[u8]) -> Blob {
        Blob { record: Arc::from(message), start: 0 }
    }
}

impl Deref for Blob {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.record[self.start as usize..]
    }
}

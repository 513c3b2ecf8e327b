//! Large bodies: one buffer that all holders of a message share, and how a body that arrives in
//! parts is gathered.

use crate::Content;
use crate::foundation::deferred_drop::drop_elsewhere;
use bytes::Bytes;

/// There is room for so much of a body from the beginning and, once so much has arrived, for all that is
/// announced: to move what has come, again and again, would take longer than all else. Until it arrives it
/// takes no memory but addresses.
const TRUSTED_BYTES: usize = 256 << 10;

/// To give so much memory back to the system takes its time: a millisecond for 10 MB or so.
const FREED_ELSEWHERE_BYTES: usize = 4 << 20;

/// Where one message is copied for many, so much in all is a long step: they share one copy.
const COPIES_BYTES_MAX: usize = 256 << 10;
/// To share less than that takes longer than to copy it.
const SHARED_BYTES_MIN: usize = 4 << 10;

/// A shared copy of a body for `receivers` receivers, where copies for each would be large in
/// all.
#[inline]
pub(crate) fn copy_for(body: &[u8], receivers: usize) -> Option<Bytes> {
    let is_much = body.len() >= SHARED_BYTES_MIN && body.len() * receivers > COPIES_BYTES_MAX;
    is_much.then(|| Bytes::copy_from_slice(body))
}

/// A shared copy of a body for `queues` queues, where copies for each would be large in all.
#[inline]
pub(crate) fn copy_for_queues(content: &Content<'_>, queues: usize) -> Option<Bytes> {
    if queues < 2 || content.shared.is_some() {
        return None;
    }
    copy_for(content.body, queues)
}

/// A body that arrives in parts.
#[derive(Debug, Default)]
pub struct GatheredBody(Vec<u8>);

impl GatheredBody {
    /// Takes a part of it; `all` is how many bytes were announced. False: the system refuses the memory for
    /// it, and it is not taken.
    #[must_use]
    pub fn extend(&mut self, part: &[u8], all: u64) -> bool {
        let bytes = &mut self.0;
        let length = bytes.len() + part.len();
        if length > bytes.capacity() {
            let most = if length > TRUSTED_BYTES { usize::MAX } else { TRUSTED_BYTES };
            let room = usize::try_from(all).unwrap_or(usize::MAX).min(most);
            // Where there is no room for all, there may be for what comes.
            let reserved = bytes.try_reserve_exact(room.saturating_sub(bytes.len()));
            if (reserved.is_err() || length > room) && bytes.try_reserve(part.len()).is_err() {
                return false;
            }
        }
        bytes.extend_from_slice(part);
        true
    }

    /// Bytes that it has room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// All of it, to be shared.
    #[must_use]
    pub fn into_shared(mut self) -> Bytes {
        share(std::mem::take(&mut self.0))
    }
}

impl std::ops::Deref for GatheredBody {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for GatheredBody {
    fn drop(&mut self) {
        drop(Freed(Some(std::mem::take(&mut self.0))));
    }
}

/// What a buffer has, to be shared. Where it is large it is freed elsewhere ([`drop_elsewhere`]).
pub fn share<T: AsRef<[u8]> + Send + 'static>(buffer: T) -> Bytes {
    Bytes::from_owner(Freed(Some(buffer)))
}

/// A buffer that is freed elsewhere, where it is large.
struct Freed<T: AsRef<[u8]> + Send + 'static>(Option<T>);

impl<T: AsRef<[u8]> + Send + 'static> AsRef<[u8]> for Freed<T> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], AsRef::as_ref)
    }
}

impl<T: AsRef<[u8]> + Send + 'static> Drop for Freed<T> {
    fn drop(&mut self) {
        let Some(buffer) = self.0.take() else { return };
        if buffer.as_ref().len() >= FREED_ELSEWHERE_BYTES {
            drop_elsewhere(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(parts: &[usize], all: usize, capacity_max: usize) {
        let mut body = GatheredBody::default();
        let mut expected = Vec::new();
        for (number, bytes) in parts.iter().enumerate() {
            let part = vec![number as u8; *bytes];
            assert!(body.extend(&part, all as u64));
            expected.extend_from_slice(&part);
        }
        assert_eq!(*body, *expected);
        assert!(body.capacity() <= capacity_max, "room for {}", body.capacity());
        assert_eq!(body.into_shared(), expected);
    }

    #[test]
    fn room_is_for_what_has_come_and_then_for_all() {
        check(&[], 1 << 30, 0);
        check(&[100, 100], 250, 250);
        check(&[100, 100], 1 << 30, TRUSTED_BYTES);
        check(&[TRUSTED_BYTES - 1, 1], 1 << 30, TRUSTED_BYTES);
        let all = 3 * TRUSTED_BYTES + 5;
        check(&[TRUSTED_BYTES, 1], all, all);
        check(&[100_000; 7], all, all);
        // One that is longer than it was said to be is none of this one's business.
        check(&[TRUSTED_BYTES, TRUSTED_BYTES], 10, 4 * TRUSTED_BYTES);
    }
}

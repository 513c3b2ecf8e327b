//! A chunk as it is stored: bytes of its own and, where other shards' chunks have stored some of it already,
//! a list of what is a copy of what.
//!
//! Stored bytes are not trusted: what does not fit together is no chunk.

use crate::shard::varint::{put, take};
use angarium_engine::Bytes;

/// Where bytes are that were stored for a chunk: behind so many others of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) chunk: u64,
    pub(super) offset: usize,
}

/// A part of a chunk that is the same as bytes of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copy {
    /// Where in the chunk it begins.
    pub(super) at: usize,
    pub(super) bytes: usize,
    pub(super) origin: Origin,
}

/// What is left of a chunk without its copies, which are in their order.
pub(super) fn own_bytes(chunk: &[u8], copies: &[Copy]) -> Vec<u8> {
    let copied: usize = copies.iter().map(|copy| copy.bytes).sum();
    let mut own = Vec::with_capacity(chunk.len() - copied);
    let mut end = 0;
    for copy in copies {
        own.extend_from_slice(&chunk[end..copy.at]);
        end = copy.at + copy.bytes;
    }
    own.extend_from_slice(&chunk[end..]);
    own
}

/// The list of a chunk's copies, for the disk. What they are copies of was stored before `chunk`.
pub(super) fn write(chunk: u64, copies: &[Copy]) -> Vec<u8> {
    let (mut list, mut end) = (Vec::new(), 0);
    for Copy { at, bytes, origin } in copies {
        for number in [at - end, *bytes, origin.offset] {
            put(&mut list, number as u64);
        }
        put(&mut list, chunk - origin.chunk);
        end = at + bytes;
    }
    list
}

/// Reads a list that [`write`] wrote.
pub(super) fn read(chunk: u64, mut list: &[u8]) -> Option<Vec<Copy>> {
    let (mut copies, mut end) = (Vec::new(), 0_usize);
    while !list.is_empty() {
        let mut next = || take(&mut list);
        let (gap, bytes, offset) = (next()? as usize, next()? as usize, next()? as usize);
        let origin = Origin { chunk: chunk.checked_sub(next()?)?, offset };
        let at = end.checked_add(gap)?;
        end = at.checked_add(bytes)?;
        copies.push(Copy { at, bytes, origin });
    }
    Some(copies)
}

/// Puts a chunk of so many bytes together again; `own_of` has the bytes of other chunks.
pub(super) fn assemble(
    own: &[u8],
    copies: &[Copy],
    bytes: usize,
    mut own_of: impl FnMut(u64) -> Option<Bytes>,
) -> Option<Vec<u8>> {
    let mut whole = Vec::with_capacity(bytes);
    let mut rest = own;
    for copy in copies {
        let (before, behind) = rest.split_at_checked(copy.at.checked_sub(whole.len())?)?;
        rest = behind;
        whole.extend_from_slice(before);
        if copy.bytes > bytes.checked_sub(whole.len())? {
            return None;
        }
        let Origin { chunk, offset } = copy.origin;
        let origin = own_of(chunk)?;
        whole.extend_from_slice(origin.get(offset..)?.get(..copy.bytes)?);
    }
    whole.extend_from_slice(rest);
    (whole.len() == bytes).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u64 = 9;

    fn copy(at: usize, bytes: usize, chunk: u64, offset: usize) -> Copy {
        Copy { at, bytes, origin: Origin { chunk, offset } }
    }

    /// What was stored before.
    fn own_of(chunk: u64) -> Option<Bytes> {
        match chunk {
            1 => Some(Bytes::from_static(b"first chunk")),
            7 => Some(Bytes::from_static(b"seventh")),
            _ => None,
        }
    }

    #[test]
    fn a_chunk_comes_back_from_what_is_its_own_and_what_it_copies() {
        let chunk = b"the first and the seventh chunk";
        for (copies, own) in [
            (vec![], &chunk[..]),
            (vec![copy(4, 5, 1, 0)], b"the  and the seventh chunk"),
            (vec![copy(4, 5, 1, 0), copy(18, 7, 7, 0), copy(25, 6, 1, 5)], b"the  and the "),
            (vec![copy(18, 4, 7, 0), copy(22, 3, 7, 4)], b"the first and the  chunk"),
        ] {
            assert_eq!(own_bytes(chunk, &copies), own);
            let list = write(CHUNK, &copies);
            assert!(list.len() <= 4 * copies.len(), "{list:?}");
            assert_eq!(read(CHUNK, &list).as_ref(), Some(&copies));
            let whole = assemble(own, &copies, chunk.len(), own_of);
            assert_eq!(whole.as_deref(), Some(&chunk[..]));
        }
    }

    #[test]
    fn nonsense_is_no_chunk() {
        let bytes = b"the first and the seventh chunk".len();
        let own = b"the  and the seventh chunk";
        for copies in [
            vec![],
            vec![copy(4, 4, 1, 0)],
            vec![copy(4, 5, 2, 0)],
            vec![copy(4, 5, 1, 8)],
            vec![copy(4, 5, 1, usize::MAX)],
            vec![copy(27, 5, 1, 0)],
            vec![copy(4, 3, 1, 0), copy(4, 2, 1, 0)],
            vec![copy(4, usize::MAX, 1, 0)],
        ] {
            assert_eq!(assemble(own, &copies, bytes, own_of), None, "{copies:?}");
        }
        for list in [&[0x80][..], &[4, 5], &[4, 5, 0, 10], &[0xff; 44]] {
            assert_eq!(read(CHUNK, list), None, "{list:?}");
        }
    }
}

//! The smallest encoding of what has a size or a count, and of what is encoded already.

use super::value::{Array, Described, Descriptor, List, Map};
use super::wire;

/// The format codes of the short and the long form of a type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forms {
    pub(super) short: u8,
    pub(super) long: u8,
}

pub(super) const BINARY: Forms = Forms { short: wire::BINARY8, long: wire::BINARY32 };
pub(super) const STRING: Forms = Forms { short: wire::STRING8, long: wire::STRING32 };
pub(super) const SYMBOL: Forms = Forms { short: wire::SYMBOL8, long: wire::SYMBOL32 };
pub(super) const LIST: Forms = Forms { short: wire::LIST8, long: wire::LIST32 };
pub(super) const MAP: Forms = Forms { short: wire::MAP8, long: wire::MAP32 };
pub(super) const ARRAY: Forms = Forms { short: wire::ARRAY8, long: wire::ARRAY32 };

/// A size or count that goes on the wire.
pub(super) fn number(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("what we write is below 4 GiB")
}

/// Appends octets with their size.
#[inline]
pub(super) fn put_bytes(out: &mut Vec<u8>, forms: Forms, bytes: &[u8]) {
    match u8::try_from(bytes.len()) {
        Ok(size) => out.extend_from_slice(&[forms.short, size]),
        Err(_) => {
            out.push(forms.long);
            out.extend_from_slice(&number(bytes.len()).to_be_bytes());
        }
    }
    out.extend_from_slice(bytes);
}

/// Appends a `ulong`.
#[inline]
pub(super) fn put_ulong(out: &mut Vec<u8>, value: u64) {
    match u8::try_from(value) {
        Ok(0) => out.push(wire::ULONG0),
        Ok(small) => out.extend_from_slice(&[wire::SMALL_ULONG, small]),
        Err(_) => put_wide(out, wire::ULONG, value.to_be_bytes()),
    }
}

/// Appends a format code and what has its width.
#[inline]
pub(super) fn put_wide<const N: usize>(out: &mut Vec<u8>, code: u8, bytes: [u8; N]) {
    out.push(code);
    out.extend_from_slice(&bytes);
}

/// Appends a described value; `put` writes what is behind the descriptor.
#[inline]
pub(super) fn put_described(out: &mut Vec<u8>, code: u64, put: impl FnOnce(&mut Vec<u8>)) {
    out.push(wire::DESCRIBED);
    put_ulong(out, code);
    put(out);
}

/// Appends a compound value; `fill` writes what is in it and returns how many values that is.
#[inline]
pub(super) fn put_counted(out: &mut Vec<u8>, forms: Forms, fill: impl FnOnce(&mut Vec<u8>) -> u32) {
    let at = out.len();
    out.extend_from_slice(&[forms.short, 0, 0]);
    let count = fill(out);
    let items = out.len() - at - 3;
    if let (Ok(size), Ok(count)) = (u8::try_from(items + 1), u8::try_from(count)) {
        out[at + 1..at + 3].copy_from_slice(&[size, count]);
        return;
    }
    // Both numbers take four octets: what is written moves on by six.
    out.extend_from_slice(&[0; 6]);
    out.copy_within(at + 3..at + 3 + items, at + 9);
    out[at] = forms.long;
    out[at + 1..at + 5].copy_from_slice(&number(items + 4).to_be_bytes());
    out[at + 5..at + 9].copy_from_slice(&count.to_be_bytes());
}

/// Appends a list with these contents.
pub(super) fn put_list_as_is(out: &mut Vec<u8>, list: List<'_>) {
    if list.is_empty() {
        return out.push(wire::LIST0);
    }
    put_counted(out, LIST, |out| {
        out.extend_from_slice(list.bytes());
        number(list.len())
    });
}

/// Appends a map with these contents.
pub(super) fn put_map_as_is(out: &mut Vec<u8>, map: Map<'_>) {
    put_counted(out, MAP, |out| {
        out.extend_from_slice(map.bytes());
        map.count()
    });
}

/// Appends an array with these contents.
pub(super) fn put_array_as_is(out: &mut Vec<u8>, array: Array<'_>) {
    put_counted(out, ARRAY, |out| {
        array.parts().iter().for_each(|part| out.extend_from_slice(part));
        number(array.len())
    });
}

/// Appends a described value; what is behind the descriptor stays as it is.
pub(super) fn put_described_as_is(out: &mut Vec<u8>, described: Described<'_>) {
    out.push(wire::DESCRIBED);
    match described.descriptor() {
        Descriptor::Code(code) => put_ulong(out, code),
        Descriptor::Name(name) => put_bytes(out, SYMBOL, name.0.as_bytes()),
    }
    described.parts().iter().for_each(|part| out.extend_from_slice(part));
}

//! Names that are longer than those of queues and exchanges may be.

use crate::interface::limits::NAME_BYTES_MAX;
use std::borrow::Cow;

/// Hexadecimal digits of the hash in a name that was shortened.
const HASH_DIGITS: usize = 16;

/// A name that fits a queue, an exchange or a routing key: `name` itself, or its beginning, `#` and a hash of
/// all of it. The same name always leads to the same one.
#[must_use]
pub fn fitting_name(name: &str) -> Cow<'_, str> {
    if name.len() <= NAME_BYTES_MAX {
        return Cow::Borrowed(name);
    }
    let mut end = NAME_BYTES_MAX - HASH_DIGITS - 1;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(format!("{}#{:016x}", &name[..end], fnv_1a(name.as_bytes())))
}

/// The FNV-1a hash of 64 bits: tells apart what nobody chooses to look alike.
#[must_use]
pub fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened_and_stay_apart() {
        let longest = "x".repeat(NAME_BYTES_MAX);
        assert_eq!(fitting_name(&longest), longest);
        let (one, other) = (format!("{longest}1"), format!("{longest}2"));
        let short = fitting_name(&one);
        assert_eq!(short.len(), NAME_BYTES_MAX);
        assert!(short.starts_with(&"x".repeat(238)), "{short}");
        assert_eq!(short, fitting_name(&one));
        assert_ne!(short, fitting_name(&other));
        // No character is cut in two.
        assert!(fitting_name(&"ü".repeat(200)).len() <= NAME_BYTES_MAX);
        // What is stored under such a name is found again by later versions.
        assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}

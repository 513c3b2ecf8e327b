//! Ways to cut a session's bytes into pieces: each must give the same output as the whole.

use super::random::Random;

/// Two pieces, with the cut at every place.
pub(crate) fn cut_anywhere(bytes: &[u8], output: impl Fn(&[&[u8]]) -> Vec<u8>) {
    let whole = output(&[bytes]);
    for cut in 1..bytes.len() {
        assert_eq!(output(&[&bytes[..cut], &bytes[cut..]]), whole, "cut at {cut}");
    }
}

/// As many pieces as there are bytes.
pub(crate) fn byte_by_byte(bytes: &[u8], output: impl Fn(&[&[u8]]) -> Vec<u8>) {
    let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(output(&pieces), output(&[bytes]));
}

/// Pieces of random sizes, many times.
pub(crate) fn random_pieces(bytes: &[u8], bytes_max: usize, output: impl Fn(&[&[u8]]) -> Vec<u8>) {
    let whole = output(&[bytes]);
    let mut random = Random(3);
    for _ in 0..50 {
        assert_eq!(output(&random.pieces(bytes, bytes_max)), whole);
    }
}

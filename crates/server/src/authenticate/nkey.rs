//! Nkeys: Ed25519 public keys that name users, and the signatures that prove them.
//!
//! Written form: base32 of a byte that says what the key is for, the key, and a CRC-16 of both.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::signature::{ED25519, UnparsedPublicKey};

/// The first byte of a user's key: its written form begins with `U`.
const USER: u8 = 20 << 3;
const KEY_BYTES: usize = 32;

/// Whether `signature`, in base64 of either alphabet, is that of `nonce` by `user_key`. Takes some
/// tens of microseconds: less than what a TLS handshake takes of a shard's time.
pub(super) fn is_signed(user_key: &str, nonce: &str, signature: &str) -> bool {
    let Some(key) = public_key(user_key) else { return false };
    let standard = signature.trim_end_matches('=').replace('-', "+").replace('_', "/");
    let Ok(signature) = STANDARD_NO_PAD.decode(standard) else { return false };
    UnparsedPublicKey::new(&ED25519, key).verify(nonce.as_bytes(), &signature).is_ok()
}

/// Whether a name looks like a user's nkey and is none, because a letter of it is wrong, for instance. No
/// signature fits it.
pub fn is_mistyped(name: &str) -> bool {
    let is_alike = name.starts_with('U') && base32(name, KEY_BYTES + 3).is_some();
    is_alike && public_key(name).is_none()
}

/// The key in a user's nkey.
fn public_key(text: &str) -> Option<[u8; KEY_BYTES]> {
    let bytes = base32(text, KEY_BYTES + 3)?;
    let (body, sum) = bytes.split_at(KEY_BYTES + 1);
    if crc16(body).to_le_bytes() != sum || body[0] != USER {
        return None;
    }
    body[1..].try_into().ok()
}

/// Decodes exactly `length` bytes of base32 without padding (RFC 4648).
fn base32(text: &str, length: usize) -> Option<Vec<u8>> {
    if text.len() != (length * 8).div_ceil(5) {
        return None;
    }
    let mut bytes = Vec::with_capacity(length);
    let (mut pending, mut bits) = (0u16, 0);
    for letter in text.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'2'..=b'7' => letter - b'2' + 26,
            _ => return None,
        };
        pending = pending << 5 | u16::from(value);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((pending >> bits) as u8);
            pending &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

/// CRC-16 with the polynomial x^16 + x^12 + x^5 + 1, beginning at 0 (XMODEM).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0u16, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| {
            if sum & 0x8000 != 0 { sum << 1 ^ 0x1021 } else { sum << 1 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{Ed25519KeyPair, KeyPair};

    /// RFC 4648's alphabet, the other way round.
    fn written(body: &[u8]) -> String {
        let mut bytes = body.to_vec();
        bytes.extend_from_slice(&crc16(body).to_le_bytes());
        let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
        let groups = bits.as_bytes().chunks(5);
        let values = groups.map(|group| {
            let digits = format!("{:0<5}", str::from_utf8(group).unwrap());
            usize::from_str_radix(&digits, 2).unwrap()
        });
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        values.map(|value| char::from(alphabet[value])).collect()
    }

    fn nkey(kind: u8, pair: &Ed25519KeyPair) -> String {
        written(&[&[kind], pair.public_key().as_ref()].concat())
    }

    #[test]
    fn a_signature_fits_its_key_and_its_nonce_alone() {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let key = nkey(USER, &pair);
        assert!(key.starts_with('U') && key.len() == 56, "{key}");
        let bytes = pair.sign(b"nonce");
        let url = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes.as_ref());
        let padded = base64::engine::general_purpose::STANDARD.encode(bytes.as_ref());
        assert!(is_signed(&key, "nonce", &url));
        assert!(is_signed(&key, "nonce", &padded));
        assert!(!is_signed(&key, "other", &url));
        assert!(!is_signed(&key, "nonce", &url[1..]));
        assert!(!is_signed(&key, "nonce", ""));
        assert!(!is_signed(&key, "nonce", "ü"));
        let other = Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap();
        assert!(!is_signed(&nkey(USER, &other), "nonce", &url));
        assert!(!is_signed(&nkey(0, &pair), "nonce", &url), "an account's key is no user's");
        assert!(!is_signed(&key[..55], "nonce", &url));
        assert!(!is_signed(&key.to_lowercase(), "nonce", &url));
        let mistyped = key.replace(&key[9..10], if &key[9..10] == "A" { "B" } else { "A" });
        assert!(!is_signed(&mistyped, "nonce", &url));
        assert!(is_mistyped(&mistyped));
        for name in [&key[..], &key[..55], &nkey(0, &pair), "ada", ""] {
            assert!(!is_mistyped(name), "{name}");
        }
    }

    /// The check value of CRC-16/XMODEM, and a key from the documentation of nkeys.
    #[test]
    fn keys_are_written_as_everywhere() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert!(public_key("UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4").is_some());
    }
}

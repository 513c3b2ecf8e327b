//! Passwords and what is stored of them: an argon2 hash, as a PHC string, and behind a space the verifier by
//! which clients log in that do not send their password (SCRAM).

use crate::allocator::with_reserve_of_passwords;
use angarium_protocol::scram::{ITERATIONS, SALT_BYTES, Verifier};
use argon2::password_hash::Error;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::digest;

/// What is stored of `guest`, the default user's password. It is public, so that a work factor would
/// protect nothing: with the cheapest parameters a new broker serves its first client sooner.
pub const GUEST: &str = "$argon2id$v=19$m=8,t=1,p=1$Z3Vlc3QncyBzYWx0$\
    Rp+rENEHTvvDhbwdoyLI1By0Wx16Hjdcek5QCE9vC2U \
    SCRAM-SHA-256$4096:Z3Vlc3QncyBzYWx0IQ==$\
    oVeVEoW4QChaa21sUCwupeMrKOef74nu6s/y/V1aqVo=:\
    cybdbHgp+NAMXO+eYeEUzG1dMDhfl7ltERrhbikEZ9Q=";

/// What is stored of a user without a password, which logs in by other means.
pub const NO_PASSWORD: &str = "";

/// What is stored of a new password, with random salts; takes tens of milliseconds.
pub fn hash(password: &str) -> Result<String, String> {
    let hashed = with_reserve_of_passwords(|| Argon2::default().hash_password(password.as_bytes()));
    let hash = hashed.map_err(|error| format!("cannot hash: {error}"))?;
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(|error| format!("no random numbers: {error}"))?;
    Ok(format!("{hash} {}", Verifier::of_password(password, &salt, ITERATIONS)))
}

/// The algorithms of RabbitMQ's hashes that passwords are checked against: a salt of four bytes, and the
/// digest of it and the password, in base64.
const IMPORTED: [(&str, &digest::Algorithm); 2] = [
    ("rabbit_password_hashing_sha256", &digest::SHA256),
    ("rabbit_password_hashing_sha512", &digest::SHA512),
];
const IMPORTED_SALT_BYTES: usize = 4;
/// What the algorithm of other hashes is called where they are exported.
const OWN_ALGORITHM: &str = "angarium_argon2id";

/// What is stored of a hash of RabbitMQ's, or of one that [`exported`] gave out. Such a password is checked,
/// and cannot be used by SCRAM, until it is changed.
pub fn imported(algorithm: Option<&str>, hash: &str) -> Result<String, String> {
    let algorithm = algorithm.unwrap_or(IMPORTED[0].0);
    if algorithm == OWN_ALGORITHM {
        let is_own = hash.starts_with("$argon2id$") && Verifier::find(hash).is_some();
        return if is_own {
            Ok(hash.to_owned())
        } else {
            Err("password_hash: none of ours".into())
        };
    }
    let known = IMPORTED.iter().find(|(name, _)| *name == algorithm);
    let (name, digest) =
        known.ok_or_else(|| format!("hashing_algorithm: '{algorithm}' is unknown"))?;
    let bytes = BASE64_STANDARD.decode(hash);
    let bytes = bytes.map_err(|error| format!("password_hash: no base64: {error}"))?;
    if bytes.len() != IMPORTED_SALT_BYTES + digest.output_len() {
        return Err(format!("password_hash: {} bytes are no hash of {name}", bytes.len()));
    }
    Ok(format!("{name} {hash}"))
}

/// The algorithm and the hash of what is stored, as [`imported`] takes it; empty for no password.
pub fn exported(stored: &str) -> (&str, &str) {
    match stored.split_once(' ') {
        Some((name, hash)) if IMPORTED.iter().any(|(it, _)| *it == name) => (name, hash),
        _ if stored == NO_PASSWORD => (IMPORTED[0].0, NO_PASSWORD),
        _ => (OWN_ALGORITHM, stored),
    }
}

/// Whether the password has this hash of RabbitMQ's; none: it is another hash.
fn is_right_imported(password: &str, stored: &str) -> Option<bool> {
    let (name, hash) = stored.split_once(' ')?;
    let (_, algorithm) = IMPORTED.iter().find(|(it, _)| *it == name)?;
    let bytes = BASE64_STANDARD.decode(hash).ok()?;
    let (salt, expected) = bytes.split_at_checked(IMPORTED_SALT_BYTES)?;
    let found = digest::digest(algorithm, &[salt, password.as_bytes()].concat());
    // In a time that does not tell how much of it is right.
    let differences = found.as_ref().iter().zip(expected).map(|(one, other)| one ^ other);
    let is_same = differences.fold(0, |all, bits| all | bits) == 0;
    Some(is_same && expected.len() == found.as_ref().len())
}

/// Whether the password has this hash; that takes as long where it has not. None: the system refuses the
/// memory that it takes.
pub(super) fn is_right(password: &str, stored: &str) -> Option<bool> {
    if stored == NO_PASSWORD {
        return Some(false);
    }
    if let Some(is_right) = is_right_imported(password, stored) {
        return Some(is_right);
    }
    let hash = stored.split(' ').next().unwrap_or_default();
    let verify = || Argon2::default().verify_password(password.as_bytes(), hash);
    match with_reserve_of_passwords(verify) {
        Err(Error::OutOfMemory) => None,
        result => Some(result.is_ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As RabbitMQ's documentation computes it: the password `test12` with the salt 908DC60A.
    const SHA256: &str = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";

    #[test]
    fn hashes_of_rabbitmq_are_checked_and_given_out_again() {
        let stored = imported(None, SHA256).unwrap();
        assert_eq!(is_right("test12", &stored), Some(true));
        assert_eq!(is_right("test13", &stored), Some(false));
        assert_eq!(exported(&stored), ("rabbit_password_hashing_sha256", SHA256));
        let salted = digest::digest(&digest::SHA512, b"salt\xc3\xa4");
        let hash = BASE64_STANDARD.encode([b"salt", salted.as_ref()].concat());
        let stored = imported(Some("rabbit_password_hashing_sha512"), &hash).unwrap();
        assert_eq!(is_right("ä", &stored), Some(true));
        assert_eq!(exported(NO_PASSWORD).1, "");
    }

    #[test]
    fn own_hashes_go_out_and_in() {
        let stored = hash("secret").unwrap();
        let (algorithm, shown) = exported(&stored);
        assert_eq!(imported(Some(algorithm), shown).unwrap(), stored);
        assert!(imported(Some(algorithm), "$argon2id$ none").is_err());
    }

    #[test]
    fn what_is_no_hash_is_refused() {
        for (algorithm, hash) in [
            (Some("rabbit_password_hashing_md5"), SHA256),
            (None, "not base64!"),
            (None, "AAAA"),
            (Some("rabbit_password_hashing_sha512"), SHA256),
        ] {
            assert!(imported(algorithm, hash).is_err(), "{algorithm:?} {hash}");
        }
    }
}

//! Passwords and what is stored of them: an argon2 hash, as a PHC string, and behind a space the verifier by
//! which clients log in that do not send their password (SCRAM).

use crate::allocator::with_reserve_of_passwords;
use angarium_protocol::scram::{ITERATIONS, SALT_BYTES, Verifier};
use argon2::password_hash::Error;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};

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

/// Whether the password has this hash; that takes as long where it has not. None: the system refuses the
/// memory that it takes.
pub(super) fn is_right(password: &str, stored: &str) -> Option<bool> {
    if stored == NO_PASSWORD {
        return Some(false);
    }
    let hash = stored.split(' ').next().unwrap_or_default();
    let verify = || Argon2::default().verify_password(password.as_bytes(), hash);
    match with_reserve_of_passwords(verify) {
        Err(Error::OutOfMemory) => None,
        result => Some(result.is_ok()),
    }
}

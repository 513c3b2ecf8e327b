//! Passwords and their argon2 hashes, as PHC strings.

use crate::allocator::with_reserve_of_passwords;
use argon2::password_hash::Error;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};

/// The hash of `guest`, the default user's password. It is public, so that a work factor would
/// protect nothing: with the cheapest parameters a new broker serves its first client sooner.
pub const GUEST: &str =
    "$argon2id$v=19$m=8,t=1,p=1$Z3Vlc3QncyBzYWx0$Rp+rENEHTvvDhbwdoyLI1By0Wx16Hjdcek5QCE9vC2U";

/// What is stored of a user without a password, which logs in by other means.
pub const NO_PASSWORD: &str = "";

/// Hashes a new password with a random salt; takes tens of milliseconds.
pub fn hash(password: &str) -> Result<String, String> {
    let hashed = with_reserve_of_passwords(|| Argon2::default().hash_password(password.as_bytes()));
    hashed.map(|hash| hash.to_string()).map_err(|error| format!("cannot hash: {error}"))
}

/// Whether the password has this hash; that takes as long where it has not. None: the system refuses the
/// memory that it takes.
pub(super) fn is_right(password: &str, stored: &str) -> Option<bool> {
    if stored == NO_PASSWORD {
        return Some(false);
    }
    let verify = || Argon2::default().verify_password(password.as_bytes(), stored);
    match with_reserve_of_passwords(verify) {
        Err(Error::OutOfMemory) => None,
        result => Some(result.is_ok()),
    }
}

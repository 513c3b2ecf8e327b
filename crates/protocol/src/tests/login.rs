//! How clients of tests log in.

use crate::{Authentication, Credentials, Identity};

/// The password is the name, and the signature what had to be signed.
pub(super) fn login(credentials: Credentials, stored: &str) -> Authentication {
    match credentials {
        Credentials::Scram { user, proof } if proof.is_right(stored) => Ok(Identity { user }),
        Credentials::Scram { user, .. } => Err(format!("wrong proof of '{user}'")),
        Credentials::Password { user, password } if user == password => Ok(Identity { user }),
        Credentials::Password { user, .. } => Err(format!("wrong password for '{user}'")),
        Credentials::Certificate { user } | Credentials::Anonymous { user } => {
            Ok(Identity { user })
        }
        Credentials::NKey { user_key, nonce, signature } if signature == nonce => {
            Ok(Identity { user: user_key })
        }
        Credentials::NKey { .. } => Err("wrong signature".to_owned()),
    }
}

//! The secret from which is made up what logins say of users that are not there. It is kept in a file: were
//! it another one after each start, it would show which users are there.

use crate::hints;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The file's name, in the data folder.
const NAME: &str = "login-secret";

/// The secret of the broker with this data folder; made at its first start.
pub fn login_secret(data: &Path) -> Result<[u8; 32], String> {
    let path = data.join(NAME);
    let failed = |error| hints::in_data_folder(&path, &error);
    match fs::read(&path) {
        Ok(bytes) => {
            if let Ok(secret) = bytes.try_into() {
                return Ok(secret);
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| format!("no random numbers: {error}"))?;
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
    file.and_then(|mut file| file.write_all(&secret)).map_err(failed)?;
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let secret = login_secret(folder.path()).unwrap();
        assert_ne!(secret, [0; 32]);
        assert_eq!(login_secret(folder.path()), Ok(secret));
        // One that was not written whole is made anew.
        fs::write(folder.path().join(NAME), b"short").unwrap();
        assert_ne!(login_secret(folder.path()), Ok(secret));
        assert!(login_secret(&folder.path().join("nowhere")).is_err());
    }
}

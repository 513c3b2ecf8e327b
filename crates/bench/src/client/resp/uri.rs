//! `redis://user:password@host:port`, or `redis://:password@host:port` for the default user.

use crate::client::authority::{Authority, decode};
use std::str::FromStr;

/// Where a server listens and as whom to speak to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// Name and password, if any.
    pub login: Option<Login>,
    /// Host name or address.
    pub host: String,
    /// TCP port; 6379 unless given.
    pub port: u16,
}

/// Who one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// Empty for the user that is there by default.
    pub user: String,
    /// What proves it.
    pub password: String,
}

impl FromStr for Uri {
    type Err = String;

    fn from_str(text: &str) -> Result<Uri, String> {
        let rest = text
            .strip_prefix("redis://")
            .ok_or_else(|| format!("`{text}` does not start with `redis://`"))?;
        let Authority { credentials, host, port } =
            Authority::parse(rest.strip_suffix('/').unwrap_or(rest))?;
        let login = match credentials {
            None => None,
            Some((user, password)) => {
                Some(Login { user: decode(user)?, password: decode(password.unwrap_or(""))? })
            }
        };
        Ok(Uri { login, host: host.to_owned(), port: port.unwrap_or(6379) })
    }
}

impl std::fmt::Display for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The password stays out: this goes into reports.
        write!(f, "redis://{}:{}", self.host, self.port)
    }
}

//! `redis://user:password@host:port`, or `redis://:password@host:port` for the default user.

use crate::client::authority::{Authority, Login};
use std::str::FromStr;

/// A server's address and login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// Name and password, if any.
    pub login: Option<Login>,
    /// Host name or address.
    pub host: String,
    /// TCP port; 6379 unless given.
    pub port: u16,
}

impl FromStr for Uri {
    type Err = String;

    fn from_str(text: &str) -> Result<Uri, String> {
        let rest = text
            .strip_prefix("redis://")
            .ok_or_else(|| format!("`{text}` does not start with `redis://`"))?;
        let Authority { credentials, host, port } =
            Authority::parse(rest.strip_suffix('/').unwrap_or(rest))?;
        let login = credentials.map(Login::decode).transpose()?;
        Ok(Uri { login, host: host.to_owned(), port: port.unwrap_or(6379) })
    }
}

impl std::fmt::Display for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the password: reports show this.
        write!(f, "redis://{}:{}", self.host, self.port)
    }
}

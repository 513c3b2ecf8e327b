//! `stomp://user:password@host:port/host`.

use crate::client::target::{Authority, decode};
use std::str::FromStr;

/// Where a broker listens and as whom to speak to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// The user's name; `guest` unless given.
    pub user: String,
    /// The password; `guest` unless given.
    pub password: String,
    /// Host name or address.
    pub host: String,
    /// TCP port; 61613 unless given.
    pub port: u16,
    /// The virtual host; `/` unless given.
    pub virtual_host: String,
}

impl FromStr for Uri {
    type Err = String;

    fn from_str(text: &str) -> Result<Uri, String> {
        let rest = text
            .strip_prefix("stomp://")
            .ok_or_else(|| format!("`{text}` does not start with `stomp://`"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let Authority { credentials, host, port } = Authority::parse(authority)?;
        let (user, password) = match credentials {
            Some((user, password)) => (user, password.unwrap_or("")),
            None => ("guest", "guest"),
        };
        Ok(Uri {
            user: decode(user)?,
            password: decode(password)?,
            host: host.to_owned(),
            port: port.unwrap_or(61_613),
            virtual_host: if path.is_empty() { "/".to_owned() } else { decode(path)? },
        })
    }
}

impl std::fmt::Display for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The password stays out: this goes into reports.
        write!(f, "stomp://{}:{}", self.host, self.port)
    }
}

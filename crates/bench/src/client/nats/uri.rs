//! `nats://user:password@host:port` or `nats://token@host:port`, as NATS clients have it, and
//! `jetstream://` in the same way.

use crate::client::authority::{Authority, decode};
use std::str::FromStr;

/// Where a broker listens and as whom to speak to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// How to prove who one is.
    pub login: Login,
    /// Host name or address.
    pub host: String,
    /// TCP port; 4222 unless given.
    pub port: u16,
}

/// How to prove who one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// Not at all.
    None,
    /// By a token.
    Token(String),
    /// By name and password.
    User(String, String),
}

impl FromStr for Uri {
    type Err = String;

    fn from_str(text: &str) -> Result<Uri, String> {
        Uri::parse(text, "nats://")
    }
}

impl Uri {
    /// Reads one that starts with `scheme`.
    pub(in crate::client) fn parse(text: &str, scheme: &str) -> Result<Uri, String> {
        let rest = text
            .strip_prefix(scheme)
            .ok_or_else(|| format!("`{text}` does not start with `{scheme}`"))?;
        let Authority { credentials, host, port } =
            Authority::parse(rest.strip_suffix('/').unwrap_or(rest))?;
        let login = match credentials {
            None => Login::None,
            Some((token, None)) => Login::Token(decode(token)?),
            Some((user, Some(password))) => Login::User(decode(user)?, decode(password)?),
        };
        Ok(Uri { login, host: host.to_owned(), port: port.unwrap_or(4222) })
    }
}

impl std::fmt::Display for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What proves who one is stays out: this goes into reports.
        write!(f, "nats://{}:{}", self.host, self.port)
    }
}

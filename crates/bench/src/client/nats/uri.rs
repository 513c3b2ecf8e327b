//! `nats://user:password@host:port` or `nats://token@host:port`, like other NATS clients, and
//! `jetstream://` likewise.

use crate::client::authority::{Authority, Credentials, decode};
use std::str::FromStr;

/// A broker's address and login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// How to authenticate.
    pub login: Login,
    /// Host name or address.
    pub host: String,
    /// TCP port; 4222 unless given.
    pub port: u16,
}

/// How to authenticate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// No authentication.
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
    /// Parses an address with this scheme.
    pub(in crate::client) fn parse(text: &str, scheme: &str) -> Result<Uri, String> {
        let rest = text
            .strip_prefix(scheme)
            .ok_or_else(|| format!("`{text}` does not start with `{scheme}`"))?;
        let Authority { credentials, host, port } =
            Authority::parse(rest.strip_suffix('/').unwrap_or(rest))?;
        let login = match credentials {
            None => Login::None,
            Some(Credentials { user: token, password: None }) => Login::Token(decode(token)?),
            Some(Credentials { user, password: Some(password) }) => {
                Login::User(decode(user)?, decode(password)?)
            }
        };
        Ok(Uri { login, host: host.to_owned(), port: port.unwrap_or(4222) })
    }
}

impl std::fmt::Display for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the login: reports show this.
        write!(f, "nats://{}:{}", self.host, self.port)
    }
}

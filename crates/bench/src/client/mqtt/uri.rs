//! `mqtt://user:password@host:port` for MQTT 3.1.1, `mqtt5://` for MQTT 5.

use crate::client::authority::{Authority, Login};
use std::str::FromStr;

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// MQTT 3.1.1.
    V3,
    /// MQTT 5.
    V5,
}

/// A broker's address and login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// The protocol version.
    pub version: Version,
    /// Name and password, if any.
    pub login: Option<Login>,
    /// Host name or address.
    pub host: String,
    /// TCP port; 1883 unless given.
    pub port: u16,
}

impl FromStr for Uri {
    type Err = String;

    fn from_str(text: &str) -> Result<Uri, String> {
        let (version, rest) = match text.split_once("://") {
            Some(("mqtt", rest)) => (Version::V3, rest),
            Some(("mqtt5", rest)) => (Version::V5, rest),
            _ => return Err(format!("`{text}` starts with neither `mqtt://` nor `mqtt5://`")),
        };
        let Authority { credentials, host, port } =
            Authority::parse(rest.strip_suffix('/').unwrap_or(rest))?;
        let login = credentials.map(Login::decode).transpose()?;
        Ok(Uri { version, login, host: host.to_owned(), port: port.unwrap_or(1883) })
    }
}

impl std::fmt::Display for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = match self.version {
            Version::V3 => "mqtt",
            Version::V5 => "mqtt5",
        };
        // Without the password: reports show this.
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

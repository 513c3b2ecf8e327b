//! `mqtt://user:password@host:port` for MQTT 3.1.1, `mqtt5://` for MQTT 5.

use crate::client::authority::{Authority, decode};
use std::str::FromStr;

/// Which version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// MQTT 3.1.1.
    V3,
    /// MQTT 5.
    V5,
}

/// Where a broker listens and as whom to speak to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// Which version is spoken.
    pub version: Version,
    /// Name and password, if any.
    pub login: Option<(String, String)>,
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
        let login = match credentials {
            None => None,
            Some((user, password)) => Some((decode(user)?, decode(password.unwrap_or(""))?)),
        };
        Ok(Uri { version, login, host: host.to_owned(), port: port.unwrap_or(1883) })
    }
}

impl std::fmt::Display for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = match self.version {
            Version::V3 => "mqtt",
            Version::V5 => "mqtt5",
        };
        // The password stays out: this goes into reports.
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

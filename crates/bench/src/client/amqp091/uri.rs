//! `amqp://user:password@host:port/vhost`, as RabbitMQ's URI specification has it.

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
    /// TCP port; 5672 unless given.
    pub port: u16,
    /// The virtual host; `/` unless given.
    pub virtual_host: String,
}

impl FromStr for Uri {
    type Err = String;

    fn from_str(text: &str) -> Result<Uri, String> {
        let rest = text
            .strip_prefix("amqp://")
            .ok_or_else(|| format!("`{text}` does not start with `amqp://`"))?;
        let (authority, path) = match rest.split_once('/') {
            Some((authority, path)) => (authority, Some(path)),
            None => (rest, None),
        };
        let Authority { credentials, host, port } = Authority::parse(authority)?;
        let (user, password) = match credentials {
            Some((user, password)) => (user, password.unwrap_or("")),
            None => ("guest", "guest"),
        };
        Ok(Uri {
            user: decode(user)?,
            password: decode(password)?,
            host: host.to_owned(),
            port: port.unwrap_or(5672),
            // An empty name is what the specification has for a path of `/`, and nobody's wish.
            virtual_host: match path {
                None | Some("") => "/".to_owned(),
                Some(path) => decode(path)?,
            },
        })
    }
}

impl std::fmt::Display for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The password stays out: this goes into reports.
        write!(f, "amqp://{}:{}", self.host, self.port)?;
        if self.virtual_host != "/" {
            write!(f, "/{}", self.virtual_host)?;
        }
        Ok(())
    }
}

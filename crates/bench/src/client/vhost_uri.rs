//! Addresses with a virtual host: `amqp://user:password@host:port/vhost`, as in RabbitMQ's URI
//! specification, and `stomp://` likewise.

use crate::client::authority::{Authority, Login, decode};
use std::str::FromStr;

/// A broker's address and login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VhostUri {
    /// `amqp` or `stomp`.
    pub scheme: &'static str,
    /// The user's name; `guest` unless given.
    pub user: String,
    /// The password; `guest` unless given.
    pub password: String,
    /// Host name or address.
    pub host: String,
    /// TCP port; unless given, 5672 for AMQP and 61613 for STOMP.
    pub port: u16,
    /// The virtual host; `/` unless given.
    pub virtual_host: String,
}

impl FromStr for VhostUri {
    type Err = String;

    fn from_str(text: &str) -> Result<VhostUri, String> {
        let (scheme, usual_port, rest) = match text.split_once("://") {
            Some(("amqp", rest)) => ("amqp", 5672, rest),
            Some(("stomp", rest)) => ("stomp", 61_613, rest),
            _ => return Err(format!("`{text}` starts with neither `amqp://` nor `stomp://`")),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let Authority { credentials, host, port } = Authority::parse(authority)?;
        let login = match credentials {
            Some(credentials) => Login::decode(credentials)?,
            None => Login { user: "guest".to_owned(), password: "guest".to_owned() },
        };
        Ok(VhostUri {
            scheme,
            user: login.user,
            password: login.password,
            host: host.to_owned(),
            port: port.unwrap_or(usual_port),
            // The specification maps a path of `/` to an empty name, which is never what the user means.
            virtual_host: if path.is_empty() { "/".to_owned() } else { decode(path)? },
        })
    }
}

impl std::fmt::Display for VhostUri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the password: reports show this.
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)?;
        if self.virtual_host != "/" {
            write!(f, "/{}", self.virtual_host)?;
        }
        Ok(())
    }
}

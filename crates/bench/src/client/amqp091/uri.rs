//! `amqp://user:password@host:port/vhost`, as RabbitMQ's URI specification has it.

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
        let (credentials, address) = match authority.rsplit_once('@') {
            Some((credentials, address)) => (credentials, address),
            None => ("guest:guest", authority),
        };
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) => {
                (host, port.parse().map_err(|_| format!("`{port}` is not a port"))?)
            }
            None => (address, 5672),
        };
        if host.is_empty() {
            return Err(format!("`{text}` names no host"));
        }
        Ok(Uri {
            user: decode(user)?,
            password: decode(password)?,
            host: host.to_owned(),
            port,
            virtual_host: path.map_or_else(|| Ok("/".to_owned()), decode)?,
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

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let octet = digits.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        bytes.push(octet.ok_or_else(|| format!("`{text}` has a broken percent-encoding"))?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| format!("`{text}` is not UTF-8"))
}

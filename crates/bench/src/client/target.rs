//! Where a broker listens and which protocol it speaks there, from the scheme of its address.

use super::{amqp091, nats};
use std::str::FromStr;

/// A protocol that loads can be made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// AMQP 0-9-1: queues, acknowledgements, confirms.
    Amqp091,
    /// NATS: subjects, at most once.
    Nats,
}

/// A broker's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `amqp://`
    Amqp091(amqp091::Uri),
    /// `nats://`
    Nats(nats::Uri),
}

impl Target {
    /// Which protocol is spoken there.
    pub fn protocol(&self) -> Protocol {
        match self {
            Target::Amqp091(_) => Protocol::Amqp091,
            Target::Nats(_) => Protocol::Nats,
        }
    }

    /// Host name or address.
    pub fn host(&self) -> &str {
        match self {
            Target::Amqp091(uri) => &uri.host,
            Target::Nats(uri) => &uri.host,
        }
    }

    /// TCP port.
    pub fn port(&self) -> u16 {
        match self {
            Target::Amqp091(uri) => uri.port,
            Target::Nats(uri) => uri.port,
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        match text.split_once("://") {
            Some(("amqp", _)) => text.parse().map(Target::Amqp091),
            Some(("nats", _)) => text.parse().map(Target::Nats),
            _ => Err(format!("`{text}` starts with neither `amqp://` nor `nats://`")),
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Amqp091(uri) => uri.fmt(f),
            Target::Nats(uri) => uri.fmt(f),
        }
    }
}

/// The part of an address between its scheme and its path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Authority<'a> {
    /// What stands before `@`, the password after a colon if there is one; still encoded.
    pub(super) credentials: Option<(&'a str, Option<&'a str>)>,
    pub(super) host: &'a str,
    pub(super) port: Option<u16>,
}

impl<'a> Authority<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Authority<'a>, String> {
        let (credentials, address) = match text.rsplit_once('@') {
            Some((credentials, address)) => (Some(credentials), address),
            None => (None, text),
        };
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) => {
                (host, Some(port.parse().map_err(|_| format!("`{port}` is not a port"))?))
            }
            None => (address, None),
        };
        if host.is_empty() {
            return Err(format!("`{text}` names no host"));
        }
        let credentials = credentials.map(|text| match text.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (text, None),
        });
        Ok(Authority { credentials, host, port })
    }
}

/// Undoes percent-encoding.
pub(super) fn decode(text: &str) -> Result<String, String> {
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

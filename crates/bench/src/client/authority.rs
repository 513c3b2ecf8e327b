//! User, password, host and port of a broker address, and percent-encoding.

/// The part of an address between its scheme and its path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Authority<'a> {
    /// The part before `@`, still percent-encoded.
    pub(super) credentials: Option<Credentials<'a>>,
    pub(super) host: &'a str,
    pub(super) port: Option<u16>,
}

/// The part of an address before `@`, percent-encoded. The password follows a colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Credentials<'a> {
    pub(super) user: &'a str,
    pub(super) password: Option<&'a str>,
}

/// A user name and a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The name; empty for the default user, where a protocol has one.
    pub user: String,
    /// The password.
    pub password: String,
}

impl Login {
    /// Decodes the credentials of an address; the password is empty unless given.
    pub(super) fn decode(credentials: Credentials<'_>) -> Result<Login, String> {
        let Credentials { user, password } = credentials;
        Ok(Login { user: decode(user)?, password: decode(password.unwrap_or(""))? })
    }
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
            Some((user, password)) => Credentials { user, password: Some(password) },
            None => Credentials { user: text, password: None },
        });
        Ok(Authority { credentials, host, port })
    }
}

/// Percent-encodes all but letters, digits and four marks (RFC 3986, 2.3).
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for octet in text.bytes() {
        match octet {
            b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(octet)),
            _ if octet.is_ascii_alphanumeric() => encoded.push(char::from(octet)),
            _ => encoded += &format!("%{octet:02X}"),
        }
    }
    encoded
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

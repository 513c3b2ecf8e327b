//! User, password, host and port of a broker address, and percent-encoding.

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

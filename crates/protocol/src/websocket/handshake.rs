//! The HTTP request that opens a WebSocket (RFC 6455, 4.2), its answer, and what is spoken inside.

use super::settings::Settings;
use crate::TurnedAway;
use crate::peer::Protocol;
use crate::web_origin;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use httparse::{EMPTY_HEADER, Header, Request, Status};
use ring::digest;

/// Bytes of the request at most.
const REQUEST_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;
/// What a key is hashed with (1.3).
const KEY_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const KEY_BYTES: usize = 16;
/// What stands for the pages of all sites.
const ANY: &str = "*";

/// What is spoken inside, by subprotocol.
const SUBPROTOCOLS: [(&str, Protocol); 7] = [
    ("mqtt", Protocol::Mqtt),
    ("mqttv3.1", Protocol::Mqtt),
    ("v12.stomp", Protocol::Stomp),
    ("v11.stomp", Protocol::Stomp),
    ("v10.stomp", Protocol::Stomp),
    ("amqp", Protocol::Amqp),
    ("nats", Protocol::Nats),
];

/// What is spoken inside, by path; `None`: the first bytes say it.
const PATHS: [(&str, Option<Protocol>); 6] = [
    ("/", None),
    ("/ws", None),
    ("/mqtt", Some(Protocol::Mqtt)),
    ("/stomp", Some(Protocol::Stomp)),
    ("/amqp", Some(Protocol::Amqp)),
    ("/nats", Some(Protocol::Nats)),
];

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// It has not come whole.
    Incomplete,
    /// The WebSocket is open.
    Open {
        /// For the client, before any frame.
        answer: Vec<u8>,
        /// What is spoken inside; `None`: the first bytes say it.
        protocol: Option<Protocol>,
        /// How long the request was.
        used: usize,
    },
    /// It is refused.
    Refused {
        /// For the client, and nothing after it.
        answer: Vec<u8>,
        /// For the log.
        why: String,
    },
}

/// Why a request is refused: status, further headers, and a text for people.
#[derive(Debug)]
struct Refusal {
    status: &'static str,
    headers: &'static str,
    text: String,
}

fn refuse(status: &'static str, text: impl Into<String>) -> Refusal {
    Refusal { status, headers: "", text: text.into() }
}

impl Refusal {
    fn with(self, headers: &'static str) -> Refusal {
        Refusal { headers, ..self }
    }

    fn answer(&self) -> Vec<u8> {
        let Refusal { status, headers, text } = self;
        let length = text.len() + 1;
        format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n\
             X-Content-Type-Options: nosniff\r\n{headers}Content-Length: {length}\r\n\r\n{text}\n"
        )
        .into_bytes()
    }
}

/// Judges a request of which `input` has come.
#[must_use]
pub fn open(input: &[u8], settings: &Settings) -> Opening {
    match judge(input, settings) {
        Ok(None) => Opening::Incomplete,
        Ok(Some((used, agreed))) => {
            Opening::Open { answer: agreed.answer(), protocol: agreed.protocol, used }
        }
        Err(refusal) => Opening::Refused { answer: refusal.answer(), why: refusal.text },
    }
}

/// The answer to a client that is refused before it says anything.
#[must_use]
pub fn turned_away(why: TurnedAway) -> Vec<u8> {
    let text = match why {
        TurnedAway::TooMany => "there are as many connections as there may be",
        TurnedAway::TooFast => "as many connections have begun in this second as may",
        TurnedAway::NoMemory => "the system refuses memory",
    };
    refuse("503 Service Unavailable", text).answer()
}

/// What was agreed on.
struct Agreed<'a> {
    key: &'a str,
    subprotocol: Option<&'static str>,
    protocol: Option<Protocol>,
}

impl Agreed<'_> {
    fn answer(&self) -> Vec<u8> {
        let mut hash = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
        hash.update(self.key.as_bytes());
        hash.update(KEY_SUFFIX);
        let accept = BASE64.encode(hash.finish());
        let subprotocol =
            self.subprotocol.map(|name| format!("Sec-WebSocket-Protocol: {name}\r\n"));
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n{}\r\n",
            subprotocol.unwrap_or_default()
        )
        .into_bytes()
    }
}

fn judge<'a>(input: &'a [u8], settings: &Settings) -> Result<Option<(usize, Agreed<'a>)>, Refusal> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut request = Request::new(&mut headers);
    let too_large = || {
        let text = format!("the request is longer than {REQUEST_BYTES_MAX} bytes");
        refuse("431 Request Header Fields Too Large", text)
    };
    let used = match request.parse(input) {
        Ok(Status::Complete(used)) if used <= REQUEST_BYTES_MAX => used,
        Ok(Status::Partial) if input.len() < REQUEST_BYTES_MAX => return Ok(None),
        Ok(_) => return Err(too_large()),
        Err(httparse::Error::TooManyHeaders) => {
            let text = format!("the request has more than {HEADERS_MAX} headers");
            return Err(refuse("431 Request Header Fields Too Large", text));
        }
        Err(error) => {
            let text = format!("this is no HTTP request: {error}");
            return Err(refuse("400 Bad Request", text));
        }
    };
    agree(&request, settings).map(|agreed| Some((used, agreed)))
}

fn agree<'a>(request: &Request<'_, 'a>, settings: &Settings) -> Result<Agreed<'a>, Refusal> {
    if request.version != Some(1) {
        return Err(refuse("505 HTTP Version Not Supported", "WebSocket begins with HTTP/1.1"));
    }
    if request.method != Some("GET") {
        let refusal = refuse("405 Method Not Allowed", "a WebSocket begins with GET");
        return Err(refusal.with("Allow: GET\r\n"));
    }
    let (authority, path) = target(request.path.unwrap_or_default());
    check_site(request.headers, authority, settings)?;
    check_upgrade(request.headers)?;
    let key = one(request.headers, "Sec-WebSocket-Key")?.unwrap_or_default().trim();
    if !BASE64.decode(key).is_ok_and(|bytes| bytes.len() == KEY_BYTES) {
        let text = "Sec-WebSocket-Key is not 16 bytes in base64";
        return Err(refuse("400 Bad Request", text));
    }
    let subprotocol = named(request.headers, "Sec-WebSocket-Protocol")
        .flat_map(tokens)
        .find_map(|asked| SUBPROTOCOLS.iter().find(|(name, _)| *name == asked));
    let by_path = PATHS.iter().find(|(known, _)| *known == path);
    let protocol = match (subprotocol, by_path) {
        (Some((_, protocol)), _) => Some(*protocol),
        (None, Some((_, protocol))) => *protocol,
        (None, None) => return Err(unknown_path(path)),
    };
    Ok(Agreed { key, subprotocol: subprotocol.map(|(name, _)| *name), protocol })
}

fn unknown_path(path: &str) -> Refusal {
    let paths: Vec<&str> = PATHS.iter().map(|(path, _)| *path).collect();
    let names: Vec<&str> = SUBPROTOCOLS.iter().map(|(name, _)| *name).collect();
    let text = format!(
        "nothing is at '{}': the paths are {}; with one of the subprotocols {} any path will do",
        path.escape_debug(),
        paths.join(" "),
        names.join(" ")
    );
    refuse("404 Not Found", text)
}

/// The authority in a request's target, where it has one, and the path without the query.
fn target(target: &str) -> (Option<&str>, &str) {
    let (authority, path) = match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (Some(authority), path)
        }
        _ => (None, target),
    };
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    (authority, if path.is_empty() { "/" } else { path })
}

/// Refuses what is addressed to another name, or sent by another site's page.
fn check_site(
    headers: &[Header<'_>],
    authority: Option<&str>,
    settings: &Settings,
) -> Result<(), Refusal> {
    let Some(host) = one(headers, "Host")? else {
        return Err(refuse("400 Bad Request", "the Host header is missing"));
    };
    let host = authority.unwrap_or(host).trim();
    if !web_origin::is_ours(host, &settings.names) {
        let text = format!(
            "'{}' is no name of this broker: address it by an IP address or as localhost, or add the name \
             to the setting http-hosts",
            host.escape_debug()
        );
        return Err(refuse("421 Misdirected Request", text));
    }
    if let Some(origin) = one(headers, "Origin")?
        && !settings.origins.iter().any(|own| own == ANY)
        && !web_origin::is_own_page(origin.trim(), host, &settings.origins)
    {
        let text = format!(
            "pages of {} may not connect here: add it to the setting ws-origins",
            origin.trim().escape_debug()
        );
        return Err(refuse("403 Forbidden", text));
    }
    Ok(())
}

fn check_upgrade(headers: &[Header<'_>]) -> Result<(), Refusal> {
    let has_token = |name, token: &str| {
        named(headers, name).flat_map(tokens).any(|it| it.eq_ignore_ascii_case(token))
    };
    if !has_token("Upgrade", "websocket") {
        let refusal = refuse(
            "426 Upgrade Required",
            "WebSocket is spoken here, and the request has no 'Upgrade: websocket'",
        );
        return Err(refusal.with("Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"));
    }
    if !has_token("Connection", "upgrade") {
        return Err(refuse("400 Bad Request", "the Connection header does not say 'Upgrade'"));
    }
    if one(headers, "Sec-WebSocket-Version")?.is_none_or(|version| version.trim() != "13") {
        let refusal = refuse("426 Upgrade Required", "version 13 of WebSocket is spoken here");
        return Err(refusal.with("Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"));
    }
    Ok(())
}

/// The values of the headers of that name that are text.
fn named<'a>(headers: &[Header<'a>], name: &str) -> impl Iterator<Item = &'a str> {
    let values = headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
    values.filter_map(|header| str::from_utf8(header.value).ok())
}

/// The value of the header of that name, of which there is at most one.
fn one<'a>(headers: &[Header<'a>], name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    let (first, second) = (values.next(), values.next());
    if second.is_some() {
        let text = format!("there is more than one {name} header");
        return Err(refuse("400 Bad Request", text));
    }
    let value = first.map(|header| str::from_utf8(header.value)).transpose();
    value.map_err(|_| refuse("400 Bad Request", format!("the {name} header is not UTF-8")))
}

/// The elements of a list in a header.
fn tokens(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim)
}

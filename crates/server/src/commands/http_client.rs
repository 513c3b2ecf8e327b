//! Asks a running broker: one HTTP request over its Unix socket or over TCP.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Largest answer.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// Which broker, and who asks.
#[derive(Clone, Debug)]
pub(super) enum Broker {
    /// By the socket in its data folder.
    Socket(PathBuf),
    /// By `HOST:PORT`.
    Address { address: String, user: String, password: String },
}

impl Broker {
    /// Makes a request; an answer other than success is an error with the broker's words.
    pub(super) fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, String> {
        let request = self.request(method, path, body);
        let answer = match self {
            Broker::Socket(file) => {
                let stream = UnixStream::connect(file).map_err(|error| {
                    format!(
                        "no broker at '{}': {error}\n(start one with `angarium`, or name its data \
                         folder with --data or its address with --admin http://HOST:PORT)",
                        file.display()
                    )
                })?;
                let limits = [
                    stream.set_read_timeout(Some(TIMEOUT)),
                    stream.set_write_timeout(Some(TIMEOUT)),
                ];
                exchange(stream, &limits, &request)?
            }
            Broker::Address { address, .. } => {
                let stream = TcpStream::connect(address.as_str())
                    .map_err(|error| format!("no broker at '{address}': {error}"))?;
                let limits = [
                    stream.set_read_timeout(Some(TIMEOUT)),
                    stream.set_write_timeout(Some(TIMEOUT)),
                ];
                exchange(stream, &limits, &request)?
            }
        };
        read_answer(&answer)
    }

    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
        let (host, authorization) = match self {
            Broker::Socket(_) => ("localhost", String::new()),
            Broker::Address { address, user, password } => {
                let encoded = BASE64_STANDARD.encode(format!("{user}:{password}"));
                (address.as_str(), format!("Authorization: Basic {encoded}\r\n"))
            }
        };
        let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{authorization}Connection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(&body);
        request
    }
}

fn exchange(
    mut stream: impl Read + Write,
    limits: &[std::io::Result<()>],
    request: &[u8],
) -> Result<Vec<u8>, String> {
    if let Some(error) = limits.iter().find_map(|limit| limit.as_ref().err()) {
        return Err(format!("cannot set a timeout: {error}"));
    }
    let mut answer = Vec::new();
    stream
        .write_all(request)
        .and_then(|()| stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer))
        .map_err(|error| format!("the broker does not answer: {error}"))?;
    Ok(answer)
}

/// Takes an HTTP answer with a body of known length apart.
pub(super) fn read_answer(answer: &[u8]) -> Result<Value, String> {
    const STRANGE: &str = "the answer is not that of an Angarium broker";
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or(STRANGE)?;
    let head = std::str::from_utf8(&answer[..end]).map_err(|_| STRANGE)?;
    let status: u16 =
        head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or(STRANGE)?;
    let body = &answer[end + 4..];
    let value: Result<Value, _> = serde_json::from_slice(body);
    match (status, value) {
        (200..=299, Ok(value)) => Ok(value),
        (200..=299, Err(_)) => Err(STRANGE.into()),
        (_, Ok(value)) => match value["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Err(format!("the broker answers with status {status}")),
        },
        (_, Err(_)) => Err(format!(
            "the broker answers with status {status}: {}",
            String::from_utf8_lossy(body).trim()
        )),
    }
}

/// Escapes a name for a path (RFC 3986 2.1).
pub(super) fn escaped(name: &str) -> String {
    name.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

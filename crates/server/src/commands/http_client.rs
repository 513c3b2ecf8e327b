//! Asks a running broker: one HTTP request over its Unix socket or over TCP, by hyper.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST};
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// How long an answer may take: twice what the broker gives a request.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Largest answer.
const ANSWER_BYTES_MAX: usize = 1 << 30;

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
        let request = self.request(method, path, body)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot ask a broker: {error}"))?;
        runtime.block_on(async {
            let answer = tokio::time::timeout(TIMEOUT, self.exchange(request)).await;
            answer
                .map_err(|_| format!("the broker does not answer within {} s", TIMEOUT.as_secs()))?
        })
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Value, String> {
        match self {
            Broker::Socket(file) => {
                let stream = UnixStream::connect(file).await.map_err(|error| {
                    let file = file.display();
                    format!(
                        "no broker at '{file}': {error}\n(start one with `angarium`, or name its data \
                         folder with --data or its address with --admin http://HOST:PORT)"
                    )
                })?;
                exchange(stream, request).await
            }
            Broker::Address { address, .. } => {
                let stream = TcpStream::connect(address.as_str())
                    .await
                    .map_err(|error| format!("no broker at '{address}': {error}"))?;
                exchange(stream, request).await
            }
        }
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Request<Full<Bytes>>, String> {
        let mut request = Request::builder().method(method).uri(path);
        request = match self {
            Broker::Socket(_) => request.header(HOST, "localhost"),
            Broker::Address { address, user, password } => {
                let encoded = BASE64_STANDARD.encode(format!("{user}:{password}"));
                request.header(HOST, address).header(AUTHORIZATION, format!("Basic {encoded}"))
            }
        };
        let body = body.map(Value::to_string).unwrap_or_default();
        request
            .header(CONNECTION, "close")
            .header(CONTENT_TYPE, "application/json")
            .body(body.into())
            .map_err(|error| format!("cannot ask for '{path}': {error}"))
    }
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Value, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let failed = |error: &dyn std::error::Error| match error.source() {
        Some(source) => format!("the broker does not answer: {error}: {source}"),
        None => format!("the broker does not answer: {error}"),
    };
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| failed(&error))?;
    // Its errors are those of the request, too.
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    read_answer(status, &body.map_err(|error| failed(&*error))?.to_bytes())
}

/// Takes an answer apart.
pub(super) fn read_answer(status: u16, body: &[u8]) -> Result<Value, String> {
    let value: Result<Value, _> = serde_json::from_slice(body);
    let is_success = (200..300).contains(&status);
    match value {
        Ok(value) if is_success => Ok(value),
        Err(_) if is_success => Err("the answer is not that of an Angarium broker".into()),
        Ok(value) => Err(match value["error"].as_str() {
            Some(error) => value["reason"].as_str().unwrap_or(error).to_owned(),
            None => format!("the broker answers with status {status}"),
        }),
        Err(_) => {
            let text = String::from_utf8_lossy(body);
            Err(format!("the broker answers with status {status}: {}", text.trim()))
        }
    }
}

/// Escapes a name for a path (RFC 3986 2.1).
pub(super) fn escaped(name: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_speak_http_is_no_broker() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answering = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            std::io::Write::write_all(&mut client, b"SSH-2.0\r\n\r\n").unwrap();
        });
        let (user, password) = (String::new(), String::new());
        let error =
            Broker::Address { address, user, password }.ask("GET", "/v1/users", None).unwrap_err();
        assert!(error.starts_with("the broker does not answer: "), "{error}");
        answering.join().unwrap();
    }
}

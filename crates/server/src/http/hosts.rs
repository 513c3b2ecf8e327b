//! Which requests are meant for this broker, as [`web_origin`] judges their `Host` and `Origin`; others are
//! refused.

use super::api::Failure;
use super::auth::Caller;
use super::mailboxes::State;
use angarium_protocol::web_origin::{self, is_own_page};
use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Refuses what is addressed to another name, or sent by another site's page.
pub(super) async fn check(
    axum::extract::State(state): axum::extract::State<State>,
    axum::Extension(caller): axum::Extension<Caller>,
    request: Request,
    next: Next,
) -> Response {
    if let Caller::Remote(_) = caller
        && let Err(failure) =
            meant(&state.settings.http_hosts, &state.settings.http_origins, &request)
    {
        return failure.into_response();
    }
    next.run(request).await
}

fn meant(hosts: &[String], origins: &[String], request: &Request) -> Result<(), Failure> {
    let host = addressed(request.uri(), request.headers())?;
    if !is_ours(host, hosts) {
        let text = format!(
            "'{}' is no name of this broker: address it by an IP address or as localhost, or add the name \
             to the setting http-hosts",
            host.escape_debug()
        );
        return Err(Failure::new(StatusCode::MISDIRECTED_REQUEST, text));
    }
    for origin in request.headers().get_all(ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        if !is_own_page(origin, host, origins) {
            let text = format!(
                "requests of the web page {} are refused: if it is the broker's own behind a proxy, add it \
                 to the setting http-origins",
                origin.escape_debug()
            );
            return Err(Failure::new(StatusCode::FORBIDDEN, text));
        }
    }
    Ok(())
}

/// The host and port that a request is addressed to (RFC 9112 3.2).
fn addressed<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str, Failure> {
    let wrong = |text: &str| Failure::new(StatusCode::BAD_REQUEST, text);
    let mut named = headers.get_all(HOST).into_iter();
    let host = match (named.next(), named.next()) {
        (Some(host), None) => host.to_str().map_err(|_| wrong("the Host header is no name"))?,
        (None, _) => return Err(wrong("the Host header is missing")),
        (Some(_), Some(_)) => return Err(wrong("there is more than one Host header")),
    };
    Ok(uri.authority().map_or(host, |authority| authority.as_str()))
}

/// Whether this broker is meant by `host`, with or without a port.
fn is_ours(host: &str, names: &[String]) -> bool {
    web_origin::is_ours(host, names)
        || machine_name().is_some_and(|name| web_origin::is_ours(host, &[name]))
}

/// What the machine is called.
pub(crate) fn machine_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_in_the_request_line_counts_and_one_host_is_needed() {
        let read = |uri: &str, hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, host.parse().unwrap());
            }
            let uri: Uri = uri.parse().unwrap();
            addressed(&uri, &headers).map(str::to_owned).map_err(|failure| failure.status.as_u16())
        };
        assert_eq!(read("/v1/users", &["a:1"]), Ok("a:1".to_owned()));
        assert_eq!(read("http://evil/v1/users", &["localhost"]), Ok("evil".to_owned()));
        assert_eq!(read("/", &[]), Err(400));
        assert_eq!(read("/", &["a", "b"]), Err(400));
    }
}

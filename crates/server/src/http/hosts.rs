//! Which requests are meant for this broker: the names in `Host` and `Origin`, compared with its own.
//!
//! A web page can make a browser send requests to any address, also to one that only this machine reaches,
//! and a page whose name is rebound to that address (DNS rebinding) may read the answers. Such requests carry
//! the page's name: as `Origin`, or as `Host` after rebinding. An IP address as `Host` cannot be rebound.

use super::api::Failure;
use super::auth::Caller;
use super::mailboxes::State;
use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;

/// The setting value that accepts every name.
const ANY: &str = "*";

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

/// Whether a broker with these further names is meant by `host`, with or without a port.
fn is_ours(host: &str, names: &[String]) -> bool {
    let name = without_port(host).trim_end_matches('.');
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let is_called = |own: &str| name.eq_ignore_ascii_case(own);
    bare.parse::<IpAddr>().is_ok()
        || is_called("localhost")
        || rustix::system::uname().nodename().to_str().is_ok_and(is_called)
        || names.iter().any(|own| own == ANY || is_called(own))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Whether a page of that origin was served under the address that the request is sent to.
fn is_own_page(origin: &str, host: &str, origins: &[String]) -> bool {
    let same = |own: &str| origin.eq_ignore_ascii_case(own.trim_end_matches('/'));
    if origins.iter().any(|own| same(own)) {
        return true;
    }
    [("http://", ":80"), ("https://", ":443")].into_iter().any(|(scheme, port)| {
        let place = origin.strip_prefix(scheme).map(|place| place.trim_end_matches(port));
        place.is_some_and(|place| place.eq_ignore_ascii_case(host.trim_end_matches(port)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_addressed_to_an_address_or_a_known_name() {
        let names = ["mq.example.com".to_owned()];
        for ours in [
            "localhost",
            "LocalHost:15672",
            "127.0.0.1",
            "10.1.2.3:80",
            "[::1]",
            "[fe80::1]:15672",
            "mq.example.com",
            "MQ.example.com.:15672",
        ] {
            assert!(is_ours(ours, &names), "{ours}");
        }
        for other in [
            "evil.example",
            "evil.example:15672",
            "",
            ":",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "mq.example.com.evil",
            "example.com",
        ] {
            assert!(!is_ours(other, &names), "{other}");
            assert!(is_ours(other, &[ANY.to_owned()]), "{other}");
        }
    }

    #[test]
    fn a_page_may_ask_the_address_that_it_came_from() {
        let origins = ["https://mq.example.com".to_owned()];
        for (origin, host) in [
            ("http://localhost:15672", "localhost:15672"),
            ("http://127.0.0.1", "127.0.0.1:80"),
            ("https://10.0.0.1", "10.0.0.1"),
            ("https://mq.example.com", "127.0.0.1:15672"),
        ] {
            assert!(is_own_page(origin, host, &origins), "{origin} {host}");
        }
        for (origin, host) in [
            ("null", "localhost:15672"),
            ("", "localhost:15672"),
            ("http://evil.example", "localhost:15672"),
            ("http://localhost:8080", "localhost:15672"),
            ("http://mq.example.com", "127.0.0.1:15672"),
            ("file://localhost:15672", "localhost:15672"),
        ] {
            assert!(!is_own_page(origin, host, &origins), "{origin} {host}");
        }
    }

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

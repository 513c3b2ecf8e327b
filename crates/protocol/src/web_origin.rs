//! Which HTTP requests are meant for this broker: the names in `Host` and `Origin`, compared with its own.
//!
//! A web page can make a browser send requests to any address, also to one that only this machine reaches,
//! and a page whose name is rebound to that address (DNS rebinding) may read the answers. Such requests carry
//! the page's name: as `Origin`, or as `Host` after rebinding. An IP address as `Host` cannot be rebound.

use std::net::IpAddr;

/// The setting value that accepts every name.
const ANY: &str = "*";

/// Whether a broker with these further names is meant by `host`, with or without a port.
#[must_use]
pub fn is_ours(host: &str, names: &[String]) -> bool {
    let name = without_port(host).trim_end_matches('.');
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let is_called = |own: &str| name.eq_ignore_ascii_case(own);
    bare.parse::<IpAddr>().is_ok()
        || is_called("localhost")
        || names.iter().any(|own| own == ANY || is_called(own))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Whether a page of that origin was served under the address that the request is sent to, or has one of
/// these origins.
#[must_use]
pub fn is_own_page(origin: &str, host: &str, origins: &[String]) -> bool {
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
}

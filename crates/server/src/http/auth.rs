//! Access to the administration API: for the operator through the socket in the data folder, for
//! administrators with a password.

use super::api::Failure;
use super::mailboxes::State;
use super::views;
use angarium_protocol::Credentials;
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::net::IpAddr;

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Caller {
    /// Through the Unix socket that only the operator can open.
    Operator,
    /// Over TCP.
    Remote(IpAddr),
}

/// Lets administrators through.
pub(super) async fn authorize(
    axum::extract::State(state): axum::extract::State<State>,
    axum::Extension(caller): axum::Extension<Caller>,
    request: Request,
    next: Next,
) -> Response {
    let Caller::Remote(address) = caller else { return next.run(request).await };
    match check(&state, address, request.headers()).await {
        Ok(()) => next.run(request).await,
        Err(failure) if failure.status == StatusCode::UNAUTHORIZED => {
            ([(WWW_AUTHENTICATE, "Basic realm=\"angarium\"")], failure).into_response()
        }
        Err(failure) => failure.into_response(),
    }
}

async fn check(state: &State, address: IpAddr, headers: &HeaderMap) -> Result<(), Failure> {
    let denied = |text: &str| Failure::new(StatusCode::UNAUTHORIZED, text);
    // A foreign web page can make a browser send requests that carry remembered passwords; such
    // requests name that page.
    if headers.contains_key("origin") {
        return Err(Failure::new(StatusCode::FORBIDDEN, "requests of web pages are refused"));
    }
    let (user, password) = credentials(headers)
        .ok_or_else(|| denied("an administrator's name and password are needed"))?;
    if !address.is_loopback() && state.loopback_users.contains(&user) {
        return Err(denied("this user can only connect from the broker's own host"));
    }
    let home = state.mailboxes.home();
    let is_administrator = home.ask_later(move |shard, answer| {
        let credentials = Credentials::Password { user, password };
        shard.authenticate(credentials, address.to_string(), |shard, login| {
            let user = login.ok().map(|identity| identity.user);
            // The caller may have gone.
            let _ = answer.send(user.map(|user| views::is_administrator(shard, &user)));
        });
    });
    match is_administrator.await? {
        Some(true) => Ok(()),
        Some(false) => Err(Failure::new(StatusCode::FORBIDDEN, "only administrators may")),
        None => Err(denied("wrong user name or password")),
    }
}

/// The name and password of HTTP basic authentication (RFC 7617).
pub(super) fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(BASE64_STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

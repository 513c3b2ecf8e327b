//! Access to the administration API: for the operator through the socket in the data folder, for
//! administrators with a password.

use super::State;
use super::api::Failure;
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
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
        Err(failure) => {
            let is_unauthorized = failure.status == StatusCode::UNAUTHORIZED;
            let mut response = failure.into_response();
            if is_unauthorized {
                let challenge = HeaderValue::from_static("Basic realm=\"angarium\"");
                response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
            response
        }
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
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let name = user.clone();
    let asked = state.mailboxes.home().tell(move |shard| {
        shard.check_password(&address.to_string(), name, password, move |right| {
            // The caller may have gone.
            let _ = sender.send(right);
        });
    });
    asked.map_err(Failure::gone)?;
    // The sender is dropped unused where too many checks wait.
    if !receiver.await.unwrap_or(false) {
        return Err(denied("wrong user name or password"));
    }
    let is_administrator = state
        .mailboxes
        .home()
        .ask(move |shard| super::views::is_administrator(shard, &user))
        .await
        .map_err(Failure::gone)?;
    if is_administrator {
        Ok(())
    } else {
        Err(Failure::new(StatusCode::FORBIDDEN, "only administrators may"))
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

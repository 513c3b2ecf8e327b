//! Access to the administration API and to metrics: for the operator through the socket in the data folder,
//! for others with a password.

use super::api::Failure;
use super::audit::Administrator;
use super::mailboxes::State;
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
    Operator {
        /// The user of the operating system.
        uid: Option<u32>,
    },
    /// Over TCP.
    Remote(IpAddr),
}

impl Caller {
    /// Its address; none for the operator.
    pub(crate) fn address(self) -> Option<IpAddr> {
        match self {
            Caller::Operator { .. } => None,
            Caller::Remote(address) => Some(address),
        }
    }
}

/// Lets administrators through.
pub(super) async fn authorize(
    axum::extract::State(state): axum::extract::State<State>,
    axum::Extension(caller): axum::Extension<Caller>,
    mut request: Request,
    next: Next,
) -> Response {
    let administrator = match caller {
        Caller::Operator { uid } => {
            let from = uid.map_or_else(String::new, |uid| format!(", uid {uid}"));
            Administrator { user: None, from: format!("admin.sock{from}") }
        }
        Caller::Remote(address) => match check(&state, address, request.headers()).await {
            Ok(user) => Administrator { user: Some(user), from: address.to_string() },
            Err(failure) => return challenge(failure),
        },
    };
    request.extensions_mut().insert(administrator);
    next.run(request).await
}

/// Asks for a password where one was missing or wrong.
pub(super) fn challenge(failure: Failure) -> Response {
    match failure.status {
        StatusCode::UNAUTHORIZED => {
            ([(WWW_AUTHENTICATE, "Basic realm=\"angarium\"")], failure).into_response()
        }
        _ => failure.into_response(),
    }
}

/// The administrator's name.
async fn check(state: &State, address: IpAddr, headers: &HeaderMap) -> Result<String, Failure> {
    match log_in(state, address, headers).await? {
        User { is_administrator: true, name } => Ok(name),
        User { name, .. } => {
            let why = format!("user '{}' from {address} is no administrator", name.escape_debug());
            state.mailboxes.home().tell(move |shard| shard.complain(&why))?;
            Err(Failure::new(StatusCode::FORBIDDEN, "only administrators may"))
        }
    }
}

/// A user whose password was right.
#[derive(Debug)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) is_administrator: bool,
}

/// Checks the name and password of a request.
pub(super) async fn log_in(
    state: &State,
    address: IpAddr,
    headers: &HeaderMap,
) -> Result<User, Failure> {
    let denied = |text: &str| Failure::new(StatusCode::UNAUTHORIZED, text);
    let (user, password) =
        credentials(headers).ok_or_else(|| denied("a user's name and password are needed"))?;
    if !address.is_loopback() && state.settings.loopback_users.contains(&user) {
        return Err(denied("this user can only connect from the broker's own host"));
    }
    let home = state.mailboxes.home();
    let known = home.ask_later(move |shard, answer| {
        let credentials = Credentials::Password { user, password };
        shard.authenticate(credentials, address.to_string(), |shard, login| {
            if let Err(why) = &login {
                shard.complain(why);
            }
            let user = login.ok().map(|identity| identity.user);
            // The caller may have gone.
            let _ = answer.send(user.map(|name| {
                let is_administrator = shard.node.engine().is_administrator(&name);
                User { name, is_administrator }
            }));
        });
    });
    known.await?.ok_or_else(|| denied("wrong user name or password"))
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

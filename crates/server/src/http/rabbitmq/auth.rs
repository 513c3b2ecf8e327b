//! Who may ask for what, in RabbitMQ's tags: administrators everything; users of the setting `metrics-users`
//! are `monitoring` and see everything but users and definitions; others nothing.

use super::super::audit::Administrator;
use super::super::auth::{self, Caller};
use super::super::mailboxes::State;
use super::answer::Refused;
use axum::extract::Request;
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Where all addresses are.
pub(in super::super) const PREFIX: &str = "/api";
/// RabbitMQ's tags that there are.
pub(super) const ADMINISTRATOR: &str = "administrator";
pub(super) const MONITORING: &str = "monitoring";

/// What only administrators see: it has what passwords are checked against.
const SECRET: [&str; 2] = ["/users", "/definitions"];

/// The tags of a user.
pub(super) fn tags(state: &State, user: &str, is_administrator: bool) -> Vec<&'static str> {
    let is_monitoring = state.settings.metrics_users.iter().any(|it| it == user);
    let administrator = is_administrator.then_some(ADMINISTRATOR);
    administrator.into_iter().chain(is_monitoring.then_some(MONITORING)).collect()
}

/// The tags of who asks.
#[derive(Clone, Debug)]
pub(super) struct Tags(pub(super) Vec<&'static str>);

/// Lets those through who may.
pub(super) async fn authorize(
    axum::extract::State(state): axum::extract::State<State>,
    axum::Extension(caller): axum::Extension<Caller>,
    mut request: Request,
    next: Next,
) -> Response {
    let (asks, tags) = match caller {
        Caller::Operator { uid } => {
            let from = uid.map_or_else(String::new, |uid| format!(", uid {uid}"));
            let asks = Administrator { user: None, from: format!("admin.sock{from}") };
            (asks, vec![ADMINISTRATOR])
        }
        Caller::Remote(address) => match auth::log_in(&state, address, request.headers()).await {
            Ok(user) => {
                let tags = tags(&state, &user.name, user.is_administrator);
                (Administrator { user: Some(user.name), from: address.to_string() }, tags)
            }
            Err(failure) => return Refused::from(failure).into_response(),
        },
    };
    if let Err(refused) = may(&tags, request.method(), request.uri().path()) {
        let (user, from) = (asks.user.unwrap_or_default(), asks.from);
        let why = format!("user '{}' from {from}: {}", user.escape_debug(), refused.reason);
        // The log line is lost where the broker ends.
        let _ = state.mailboxes.home().tell(move |shard| shard.complain(&why));
        return refused.into_response();
    }
    request.extensions_mut().insert(asks);
    request.extensions_mut().insert(Tags(tags));
    next.run(request).await
}

fn may(tags: &[&str], method: &Method, path: &str) -> Result<(), Refused> {
    if tags.contains(&ADMINISTRATOR) {
        return Ok(());
    }
    if !tags.contains(&MONITORING) {
        return Err(Refused::forbidden("Not management user"));
    }
    let path = path.strip_prefix(PREFIX).unwrap_or(path);
    let is_secret = SECRET.iter().any(|it| path.starts_with(it));
    if *method == Method::GET && !is_secret {
        return Ok(());
    }
    Err(Refused::forbidden("Not administrator user"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_say_who_may_what() {
        let get = Method::GET;
        for (tags, method, path, expected) in [
            (&[ADMINISTRATOR][..], Method::DELETE, "/users/ada", true),
            (&[MONITORING], get.clone(), "/queues/%2F", true),
            (&[MONITORING], get.clone(), "/api/users", false),
            (&[MONITORING], get.clone(), "/definitions/%2F", false),
            (&[MONITORING], Method::PUT, "/queues/%2F/q", false),
            (&[MONITORING], Method::POST, "/queues/%2F/q/get", false),
            (&[], get, "/overview", false),
        ] {
            assert_eq!(may(tags, &method, path).is_ok(), expected, "{tags:?} {method} {path}");
        }
    }
}

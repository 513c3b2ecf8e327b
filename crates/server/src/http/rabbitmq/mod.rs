//! RabbitMQ's management interface: its addresses, parameters, fields and errors, for its tools.
//!
//! What this broker does not have is refused with the reason, or is an empty list.

mod access;
mod answer;
mod auth;
mod broker;
mod client_lists;
mod client_rows;
mod close;
mod definitions;
mod health;
mod import;
mod limits;
mod list;
mod lists;
mod messages;
mod metrics;
mod page;
mod parameters;
mod policies;
mod properties;
mod rates;
mod read;
mod rows;
mod topic_permissions;
mod topology;

use super::mailboxes::State;
use angarium_engine::PolicyKind;
use answer::Refused;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::{delete, get, post, put};
use axum::{Router, middleware};

pub(super) use auth::PREFIX;
pub(super) use broker::channels;
pub(super) use import::take_file;
pub(super) use metrics::Figures;
pub(super) use properties::message_properties;
pub(super) use rates::Rates;

/// Largest body of what carries many definitions, or a message.
pub(super) const LARGE_BODY_BYTES_MAX: usize = 20 << 20;

/// Whether a request's body may be large.
pub(super) fn takes_large_body(path: &str) -> bool {
    path.strip_prefix(PREFIX).is_some_and(|path| {
        let publishes = path.starts_with("/exchanges/") && path.ends_with("/publish");
        publishes || path.starts_with("/definitions")
    })
}

/// Every address below `/api`, for those who may.
pub(super) fn routes(state: State) -> Router<State> {
    let authorize = middleware::from_fn_with_state(state, auth::authorize);
    let none = || async { Refused::none("Not Found") };
    let wrong_method = || async {
        Refused::new(StatusCode::METHOD_NOT_ALLOWED, "this address is not asked that way")
    };
    broker_routes()
        .merge(topology_routes())
        .merge(client_routes())
        .merge(access_routes())
        .merge(limit_routes())
        .merge(policy_routes("/policies", PolicyKind::Ordinary))
        .merge(policy_routes("/operator-policies", PolicyKind::Operator))
        .merge(large_routes())
        .merge(missing_routes())
        .method_not_allowed_fallback(wrong_method)
        .fallback(none)
        .layer(authorize)
}

fn broker_routes() -> Router<State> {
    let checks = Router::new()
        .route("/alarms", get(health::check_alarms))
        .route("/local-alarms", get(health::check_alarms))
        .route("/virtual-hosts", get(health::check_vhosts))
        .route("/node-is-quorum-critical", get(health::check_quorum))
        .route("/port-listener/{port}", get(health::check_port))
        .route("/protocol-listener/{name}", get(health::check_protocol))
        .route("/certificate-expiration/{count}/{unit}", get(health::check_certificate));
    Router::new()
        .route("/overview", get(broker::overview))
        .route("/whoami", get(broker::whoami))
        .route("/cluster-name", get(broker::cluster_name))
        .route("/nodes", get(broker::nodes))
        .route("/nodes/{name}", get(broker::one_node))
        .route("/nodes/{name}/memory", get(broker::node_memory))
        .route("/auth/attempts/{node}", get(broker::login_attempts))
        .route("/aliveness-test/{vhost}", get(health::aliveness))
        .nest("/health/checks", checks)
}

fn topology_routes() -> Router<State> {
    let one_exchange =
        get(lists::exchange).put(topology::put_exchange).delete(topology::delete_exchange);
    let one_queue = get(lists::queue).put(topology::put_queue).delete(topology::delete_queue);
    let between = get(topology::bindings_between).post(topology::bind);
    let one_binding = get(topology::binding).delete(topology::unbind);
    Router::new()
        .route("/exchanges", get(lists::exchanges))
        .route("/exchanges/{vhost}", get(lists::exchanges))
        .route("/exchanges/{vhost}/{name}", one_exchange)
        .route("/exchanges/{vhost}/{name}/bindings/source", get(lists::from_exchange))
        .route("/exchanges/{vhost}/{name}/bindings/destination", get(lists::to_exchange))
        .route("/queues", get(lists::queues))
        .route("/queues/detailed", get(lists::queues))
        .route("/queues/{vhost}", get(lists::queues))
        .route("/queues/{vhost}/{name}", one_queue)
        .route("/queues/{vhost}/{name}/bindings", get(lists::queue_bindings))
        .route("/queues/{vhost}/{name}/contents", delete(topology::purge_queue))
        .route("/queues/{vhost}/{name}/get", post(messages::get))
        .route("/bindings", get(lists::bindings))
        .route("/bindings/{vhost}", get(lists::bindings))
        .route("/bindings/{vhost}/e/{source}/{kind}/{name}", between)
        .route("/bindings/{vhost}/e/{source}/{kind}/{name}/{key}", one_binding)
}

fn client_routes() -> Router<State> {
    let one = get(client_lists::connection).delete(close::connection);
    let of_user = get(client_lists::user_connections).delete(close::of_user);
    Router::new()
        .route("/connections", get(client_lists::connections))
        .route("/connections/{name}", one)
        .route("/connections/{name}/channels", get(client_lists::connection_channels))
        .route("/connections/username/{user}", of_user)
        .route("/vhosts/{vhost}/connections", get(client_lists::vhost_connections))
        .route("/vhosts/{vhost}/channels", get(client_lists::vhost_channels))
        .route("/channels", get(client_lists::channels))
        .route("/channels/{name}", get(client_lists::channel))
        .route("/consumers", get(client_lists::consumers))
        .route("/consumers/{vhost}", get(client_lists::consumers))
}

fn access_routes() -> Router<State> {
    let one_vhost = get(access::vhost).put(access::put_vhost).delete(access::delete_vhost);
    let one_user = get(access::user).put(access::put_user).delete(access::delete_user);
    let permission =
        get(access::permission).put(access::put_permission).delete(access::delete_permission);
    let topics =
        get(topic_permissions::one).put(topic_permissions::put).delete(topic_permissions::delete);
    Router::new()
        .route("/vhosts", get(access::vhosts))
        .route("/vhosts/{vhost}", one_vhost)
        .route("/vhosts/{vhost}/permissions", get(access::vhost_permissions))
        .route("/vhosts/{vhost}/topic-permissions", get(topic_permissions::of_vhost))
        .route("/users", get(access::users))
        .route("/users/without-permissions", get(access::users_without_permissions))
        .route("/users/bulk-delete", post(access::delete_users))
        .route("/users/{user}", one_user)
        .route("/users/{user}/permissions", get(access::user_permissions))
        .route("/users/{user}/topic-permissions", get(topic_permissions::of_user))
        .route("/permissions", get(access::permissions))
        .route("/permissions/{vhost}/{user}", permission)
        .route("/topic-permissions", get(topic_permissions::all))
        .route("/topic-permissions/{vhost}/{user}", topics)
}

fn limit_routes() -> Router<State> {
    let of_vhost = put(limits::put_vhost_limit).delete(limits::delete_vhost_limit);
    let parameter = get(parameters::one).put(parameters::put).delete(parameters::delete);
    let of_user = put(limits::put_user_limit).delete(limits::delete_user_limit);
    Router::new()
        .route("/vhost-limits", get(limits::of_vhosts))
        .route("/vhost-limits/{vhost}", get(limits::of_vhost))
        .route("/vhost-limits/{vhost}/{name}", of_vhost)
        .route("/user-limits", get(limits::of_users))
        .route("/user-limits/{user}", get(limits::of_user))
        .route("/user-limits/{user}/{name}", of_user)
        .route("/parameters", get(parameters::all))
        .route("/parameters/{component}", get(parameters::of_component))
        .route("/parameters/{component}/{vhost}", get(parameters::of_vhost))
        .route("/parameters/{component}/{vhost}/{name}", parameter)
}

fn policy_routes(path: &str, kind: PolicyKind) -> Router<State> {
    let all = move |state, query| policies::list(state, kind, None, query);
    let of_vhost = move |state, vhost, query| policies::list(state, kind, Some(vhost), query);
    let one = get(move |state, place| policies::one(state, kind, place))
        .put(move |state, place, body| policies::put(state, kind, place, body))
        .delete(move |state, place| policies::delete(state, kind, place));
    Router::new()
        .route(path, get(all))
        .route(&format!("{path}/{{vhost}}"), get(of_vhost))
        .route(&format!("{path}/{{vhost}}/{{name}}"), one)
}

fn large_routes() -> Router<State> {
    let of_vhost = get(definitions::export_vhost).post(import::into_vhost);
    Router::new()
        .route("/definitions", get(definitions::export).post(import::all))
        .route("/definitions/{vhost}", of_vhost)
        .route("/exchanges/{vhost}/{name}/publish", post(messages::publish))
        .layer(DefaultBodyLimit::max(LARGE_BODY_BYTES_MAX))
}

/// What there is none of: it lists as empty, and cannot be set.
fn missing_routes() -> Router<State> {
    let parameters = || async { Refused::not_offered("global parameters are not offered") };
    let none = || async { Refused::none("there is none of that name") };
    Router::new()
        .route("/feature-flags", get(broker::empty))
        .route("/deprecated-features", get(broker::empty))
        .route("/deprecated-features/used", get(broker::empty))
        .route("/global-parameters", get(broker::empty))
        .route("/global-parameters/{name}", get(none).put(parameters).delete(none))
}

//! Every address below `/v1`: one table, from which the router and its description are made.

use super::api::{self, Outcome, Parameters};
use super::audit::Shared;
use super::explain::{self, Explanation};
use super::mailboxes::State;
use super::openapi::{self, Describe, Operation};
use super::policies::{self, PolicyBody, PolicyView};
use super::request_types::{
    AdministratorBody, BindingBody, ExchangeBody, PasswordBody, PermissionBody, QueueBody,
    QuotaBody, SubscriptionBody, UserBody,
};
use super::subjects::{KeysBody, SubjectsBody};
use super::views::{
    self, BindingView, ConnectionView, ExchangeView, Overview, PermissionView, QueueView,
    SessionView, SubscriptionView, UserView, VhostView,
};
use axum::http::StatusCode;
use axum::routing::{MethodRouter, delete, get, put};
use axum::{Json, Router};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;
use std::future::{Ready, ready};

/// Where all of these are.
pub(super) const PREFIX: &str = "/v1";

type Route = fn() -> MethodRouter<State>;

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Shows something.
const fn shows(path: &'static str, what: &'static str, gives: Describe, route: Route) -> Operation {
    Operation { method: "get", path, what, parameters: &[], takes: None, gives, route }
}

/// Changes something, as the body says.
const fn puts(path: &'static str, what: &'static str, takes: Describe, route: Route) -> Operation {
    let gives = schema::<Outcome>;
    Operation { method: "put", path, what, parameters: &[], takes: Some(takes), gives, route }
}

/// Takes something away.
const fn deletes(path: &'static str, what: &'static str, route: Route) -> Operation {
    let gives = schema::<Outcome>;
    Operation { method: "delete", path, what, parameters: &[], takes: None, gives, route }
}

impl Operation {
    const fn with(self, parameters: &'static [&'static str]) -> Operation {
        Operation { parameters, ..self }
    }
}

/// Only those of one virtual host are listed.
const OF_ONE: &[&str] = &["vhost"];

const OPERATIONS: &[Operation] = &[
    shows("/openapi.json", "This description.", schema::<Value>, || get(description)),
    shows("/overview", "The broker in short.", schema::<Overview>, || get(api::overview)),
    shows("/vhosts", "Virtual hosts.", schema::<Vec<VhostView>>, || {
        get(|state: Shared| api::view(state, views::vhosts))
    }),
    Operation {
        takes: None,
        ..puts("/vhosts/{vhost}", "Creates a virtual host.", schema::<Value>, || {
            put(api::create_vhost)
        })
    },
    deletes("/vhosts/{vhost}", "Deletes one, with all in it.", || delete(api::delete_vhost)),
    puts(
        "/vhosts/{vhost}/quota",
        "Sets what all in it may use; what is not said is as for everybody.",
        schema::<QuotaBody>,
        || put(api::set_vhost_quota),
    ),
    shows("/users", "Users.", schema::<Vec<UserView>>, || {
        get(|state: Shared| api::view(state, views::users))
    }),
    puts("/users/{user}", "Creates a user.", schema::<UserBody>, || put(api::create_user)),
    deletes("/users/{user}", "Deletes a user, and ends its connections.", || {
        delete(api::delete_user)
    }),
    puts(
        "/users/{user}/password",
        "Changes its password, and ends its connections.",
        schema::<PasswordBody>,
        || put(api::change_password),
    ),
    puts(
        "/users/{user}/administrator",
        "Says whether it may administer.",
        schema::<AdministratorBody>,
        || put(api::change_administrator),
    ),
    puts(
        "/users/{user}/quota",
        "Sets what it may use; what is not said is as for everybody.",
        schema::<QuotaBody>,
        || put(api::set_quota),
    ),
    shows("/permissions", "What users may do.", schema::<Vec<PermissionView>>, || {
        get(|state: Shared| api::view(state, views::permissions))
    }),
    puts(
        "/permissions/{vhost}/{user}",
        "Sets what a user may do: regular expressions over names.",
        schema::<PermissionBody>,
        || put(api::set_permissions),
    ),
    deletes("/permissions/{vhost}/{user}", "Takes all rights in a virtual host away.", || {
        delete(api::clear_permissions)
    }),
    puts(
        "/permissions/{vhost}/{user}/subjects",
        "Narrows which subjects it may use.",
        schema::<SubjectsBody>,
        || put(api::subjects),
    ),
    puts(
        "/permissions/{vhost}/{user}/subjects/{exchange}",
        "Narrows which routing keys of an exchange it may use.",
        schema::<KeysBody>,
        || put(api::exchange_keys),
    ),
    shows("/policies", "Policies.", schema::<Vec<PolicyView>>, || get(policies::list)).with(OF_ONE),
    puts(
        "/policies/{vhost}/{name}",
        "Sets a policy: options for what has a name that its pattern matches.",
        schema::<PolicyBody>,
        || put(policies::put),
    ),
    deletes("/policies/{vhost}/{name}", "Takes a policy away.", || delete(policies::delete)),
    puts(
        "/operator-policies/{vhost}/{name}",
        "Sets an operator policy, which bounds what others say.",
        schema::<PolicyBody>,
        || put(policies::put_operators),
    ),
    deletes("/operator-policies/{vhost}/{name}", "Takes an operator policy away.", || {
        delete(policies::delete_operators)
    }),
    shows(
        "/explain/queue/{vhost}/{name}",
        "Why a queue holds what it holds, and what has to happen for it to move.",
        schema::<Explanation>,
        || get(explain::queue),
    ),
    shows(
        "/explain/message/{vhost}/{queue}/{place}",
        "Why a message waits where it does; place 1 is handed out first.",
        schema::<Explanation>,
        || get(explain::message),
    ),
    shows(
        "/explain/connection/{id}",
        "Why a connection is held, and what it has open.",
        schema::<Explanation>,
        || get(explain::connection),
    ),
    shows(
        "/explain/publish/{vhost}/{exchange}",
        "Where a message would go, and who would be refused; nothing is sent.",
        schema::<Explanation>,
        || get(explain::publish),
    )
    .with(&["key", "headers", "user"]),
    shows("/exchanges", "Exchanges.", schema::<Vec<ExchangeView>>, || get(api::exchanges))
        .with(OF_ONE),
    puts("/exchanges/{vhost}/{name}", "Declares an exchange.", schema::<ExchangeBody>, || {
        put(api::put_exchange)
    }),
    deletes("/exchanges/{vhost}/{name}", "Deletes an exchange.", || delete(api::delete_exchange))
        .with(&["if_unused"]),
    shows("/queues", "Queues.", schema::<Vec<QueueView>>, || get(api::queues)).with(OF_ONE),
    puts("/queues/{vhost}/{name}", "Declares a queue.", schema::<QueueBody>, || {
        put(api::put_queue)
    }),
    deletes("/queues/{vhost}/{name}", "Deletes a queue.", || delete(api::delete_queue))
        .with(&["if_unused", "if_empty"]),
    deletes("/queues/{vhost}/{name}/messages", "Drops the messages that wait in it.", || {
        delete(api::purge_queue)
    }),
    shows("/subscriptions", "Named subscriptions.", schema::<Vec<SubscriptionView>>, || {
        get(api::subscriptions)
    })
    .with(OF_ONE),
    puts(
        "/subscriptions/{vhost}/{name}",
        "Makes a durable named subscription.",
        schema::<SubscriptionBody>,
        || put(api::put_subscription),
    ),
    deletes("/subscriptions/{vhost}/{name}", "Deletes one that nobody consumes from.", || {
        delete(api::delete_subscription)
    })
    .with(&["client"]),
    shows("/sessions", "Sessions.", schema::<Vec<SessionView>>, || get(api::sessions)).with(OF_ONE),
    deletes("/sessions/{vhost}/{name}", "Ends a session.", || delete(api::end_session)),
    shows("/bindings", "Bindings.", schema::<Vec<BindingView>>, || get(api::bindings)).with(OF_ONE),
    puts("/bindings/{vhost}", "Binds.", schema::<BindingBody>, || put(api::bind)),
    Operation {
        takes: Some(schema::<BindingBody>),
        ..deletes("/bindings/{vhost}", "Takes a binding away.", || delete(api::unbind))
    },
    shows("/connections", "Connections.", schema::<Vec<ConnectionView>>, || get(api::connections)),
    deletes("/connections/{id}", "Ends a connection.", || delete(api::close_connection))
        .with(&["reason"]),
];

/// All of them.
pub(super) fn routes() -> Router<State> {
    let none = || async { api::Failure::new(StatusCode::NOT_FOUND, "no such address") };
    let add = |router: Router<State>, it: &Operation| router.route(it.path, (it.route)());
    OPERATIONS.iter().fold(Router::new(), add).fallback(none)
}

fn description() -> Ready<Json<Value>> {
    ready(Json(openapi::document(OPERATIONS, schema::<Parameters>, PREFIX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_operation_is_described_once_and_names_what_exists() {
        let document = openapi::document(OPERATIONS, schema::<Parameters>, PREFIX);
        let mut seen = BTreeSet::new();
        for operation in OPERATIONS {
            assert!(seen.insert((operation.method, operation.path)), "{operation:?}");
            let described = &document["paths"][format!("{PREFIX}{}", operation.path)];
            let described = &described[operation.method];
            assert_eq!(described["summary"], operation.what);
            let parameters = described["parameters"].as_array().unwrap();
            assert!(
                parameters
                    .iter()
                    .all(|it| it["schema"]["type"].is_string() || it["schema"]["type"].is_array()),
                "{described}"
            );
        }
        let paths = document["paths"].as_object().unwrap();
        let described: usize = paths.values().map(|path| path.as_object().unwrap().len()).sum();
        assert_eq!(described, OPERATIONS.len());
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let document = openapi::document(OPERATIONS, schema::<Parameters>, PREFIX);
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
        let fields = &document["components"]["schemas"]["QueueBody"]["properties"];
        assert_eq!(fields["max_length"]["type"], "integer");
        assert!(
            document["components"]["schemas"]["UserBody"]["properties"]["password"].is_object()
        );
    }
}

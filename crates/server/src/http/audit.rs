//! Who asks the administration API for something, and the log lines of what administrators change.

use super::mailboxes::State;
use super::request_types::QuotaBody;
use super::subjects;
use crate::authenticate::NO_PASSWORD;
use angarium_engine::{Binding, BindingTarget, Policy, PolicyKind, Request};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::convert::Infallible;
use std::ops::Deref;

/// The administrator of a request, put there by [`super::auth::authorize`].
#[derive(Clone, Debug)]
pub(super) struct Administrator {
    /// The user's name; none for the socket in the data folder, which only its owner opens.
    pub(super) user: Option<String>,
    /// Its address, or the socket and the user of the operating system.
    pub(super) from: String,
}

/// What handlers share, and who asks.
#[derive(Debug)]
pub(super) struct Shared {
    state: State,
    pub(super) administrator: Administrator,
}

impl Shared {
    /// What is asked for by the broker itself.
    pub(super) fn of(state: State, administrator: Administrator) -> Shared {
        Shared { state, administrator }
    }
}

impl Deref for Shared {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl FromRequestParts<State> for Shared {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Infallible> {
        let known = parts.extensions.get::<Administrator>();
        let unknown = || Administrator { user: None, from: String::new() };
        let administrator = known.cloned().unwrap_or_else(unknown);
        Ok(Shared { state: state.clone(), administrator })
    }
}

/// A change, as the log shows it.
#[derive(Debug, PartialEq)]
pub(super) struct Change {
    action: &'static str,
    /// What is changed.
    name: String,
    /// Where that is no virtual host of its own.
    vhost: Option<String>,
    detail: Option<String>,
}

impl Change {
    /// What a request changes, without secrets; none where it only asks.
    pub(super) fn of(request: &Request, asked_in: &str) -> Option<Change> {
        let at = |vhost: &str| Some(vhost.to_owned());
        let change = |action, name: &str, vhost, detail| {
            Some(Change { action, name: name.to_owned(), vhost, detail })
        };
        let here = || at(asked_in);
        match request {
            Request::CreateVhost { name } => change("create virtual host", name, None, None),
            Request::DeleteVhost { name } => change("delete virtual host", name, None, None),
            Request::CreateUser { name, administrator, .. } => {
                change("create user", name, None, Some(administers(*administrator)))
            }
            Request::ChangeUser { name, password_hash: Some(hash), .. } => {
                let is_taken_away = hash == NO_PASSWORD;
                let action = if is_taken_away { "take password away" } else { "change password" };
                change(action, name, None, None)
            }
            Request::ChangeUser { name, administrator, .. } => {
                change("change user", name, None, administrator.map(administers))
            }
            Request::DeleteUser { name } => change("delete user", name, None, None),
            Request::SetPermissions { user, vhost, configure, write, read } => {
                let rights = format!("configure '{configure}', write '{write}', read '{read}'");
                change("set permissions", user, at(vhost), Some(rights))
            }
            Request::SetSubjectPermissions { user, vhost, subjects } => {
                let lists = on_one_line(&subjects::described(Some(subjects)));
                change("set subjects", user, at(vhost), Some(lists))
            }
            Request::SetExchangeRules { user, vhost, exchange, rules } => {
                let lists = on_one_line(&subjects::described_keys(Some(rules)));
                let detail = format!("exchange '{exchange}'; {lists}");
                change("set routing keys", user, at(vhost), Some(detail))
            }
            Request::ClearPermissions { user, vhost } => {
                change("clear permissions", user, at(vhost), None)
            }
            Request::SetQuota { user, quota } => {
                let now = QuotaBody::of(quota).described();
                change("set quota", user, None, Some(now).filter(|it| !it.is_empty()))
            }
            Request::SetVhostQuota { vhost, quota } => {
                let now = QuotaBody::of(quota).described();
                let now = Some(now).filter(|it| !it.is_empty());
                change("set quota of virtual host", vhost, None, now)
            }
            Request::DeclareExchange { name, options: Some(options) } => {
                let kind = options.kind.name().to_owned();
                change("declare exchange", name, here(), Some(kind))
            }
            Request::DeleteExchange { name, .. } => change("delete exchange", name, here(), None),
            Request::DeclareQueue { name, options: Some(_) } => {
                change("declare queue", name, here(), None)
            }
            Request::DeleteQueue { name, .. } => change("delete queue", name, here(), None),
            Request::PurgeQueue { name } => change("purge queue", name, here(), None),
            Request::OpenSubscription(open) => {
                change("add subscription", &open.name, here(), client(&open.owner))
            }
            Request::DeleteSubscription { owner, name } => {
                change("delete subscription", name, here(), client(owner))
            }
            Request::EndSession { name } => change("end session", name, here(), None),
            Request::Bind(binding) => change("bind", &binding.source, here(), Some(ends(binding))),
            Request::Unbind(binding) => {
                change("unbind", &binding.source, here(), Some(ends(binding)))
            }
            _ => Change::of_policy(request),
        }
    }

    fn of_policy(request: &Request) -> Option<Change> {
        let change = |action, name: &str, vhost: &str, detail| {
            Some(Change { action, name: name.to_owned(), vhost: Some(vhost.to_owned()), detail })
        };
        match request {
            Request::SetPolicy { vhost, kind, name, policy } => {
                let action = match kind {
                    PolicyKind::Ordinary => "set policy",
                    PolicyKind::Operator => "set operator policy",
                };
                change(action, name, vhost, Some(says(policy)))
            }
            Request::ClearPolicy { vhost, kind, name } => {
                let action = match kind {
                    PolicyKind::Ordinary => "clear policy",
                    PolicyKind::Operator => "clear operator policy",
                };
                change(action, name, vhost, None)
            }
            _ => None,
        }
    }

    /// Writes the line; `refused`: why it was not carried out.
    pub(super) fn log(&self, by: &Administrator, refused: Option<&str>) {
        let Change { action, name, vhost, detail } = self;
        let (user, from) = (by.user.as_deref(), by.from.as_str());
        let (vhost, detail) = (vhost.as_deref(), detail.as_deref());
        match refused {
            None => tracing::info!(user, from, action, name, vhost, detail, "administration"),
            Some(refused) => tracing::warn!(
                user,
                from,
                action,
                name,
                vhost,
                detail,
                refused,
                "administration refused"
            ),
        }
    }
}

/// Whose subscription it is.
fn client(owner: &Option<String>) -> Option<String> {
    owner.as_ref().map(|client| format!("client '{client}'"))
}

fn on_one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

/// What a policy says.
fn says(policy: &Policy) -> String {
    let Policy { pattern, applies_to, priority, definition } = policy;
    let set = definition.iter().map(|(name, value)| match value.as_int() {
        Some(number) => format!("{name} {number}"),
        None => format!("{name} '{}'", value.as_text().unwrap_or_default()),
    });
    let set: Vec<String> = set.collect();
    let about = applies_to.name();
    format!("'{pattern}' of {about}, priority {priority}: {}", set.join(", "))
}

fn administers(is_administrator: bool) -> String {
    if is_administrator { "administrator" } else { "no administrator" }.to_owned()
}

fn ends(binding: &Binding) -> String {
    let target = match &binding.target {
        BindingTarget::Queue(name) => format!("queue '{name}'"),
        BindingTarget::Exchange(name) => format!("exchange '{name}'"),
    };
    format!("{target}, key '{}'", binding.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use angarium_engine::{AppliesTo, Bound, ExchangeRules, Quota, Value};

    #[test]
    fn changes_are_logged_without_secrets() {
        let name = || "ada".to_owned();
        let (user, vhost) = (name(), "v".to_owned());
        for (request, expected) in [
            (
                Request::CreateUser {
                    name: name(),
                    password_hash: "secret".into(),
                    administrator: true,
                },
                Some(("create user", "ada", None, Some("administrator"))),
            ),
            (
                Request::ChangeUser {
                    name: name(),
                    password_hash: Some("secret".into()),
                    administrator: None,
                },
                Some(("change password", "ada", None, None)),
            ),
            (
                Request::ChangeUser {
                    name: name(),
                    password_hash: None,
                    administrator: Some(false),
                },
                Some(("change user", "ada", None, Some("no administrator"))),
            ),
            (
                Request::SetQuota {
                    user: name(),
                    quota: Quota::default().with(Bound::Connections, 7),
                },
                Some(("set quota", "ada", None, Some("connections 7"))),
            ),
            (
                Request::ClearPermissions { user, vhost },
                Some(("clear permissions", "ada", Some("v"), None)),
            ),
            (
                Request::SetExchangeRules {
                    user: name(),
                    vhost: "v".to_owned(),
                    exchange: "e".to_owned(),
                    rules: ExchangeRules::default(),
                },
                Some((
                    "set routing keys",
                    "ada",
                    Some("v"),
                    Some("exchange 'e'; publish: all; subscribe: all"),
                )),
            ),
            (
                Request::PurgeQueue { name: name() },
                Some(("purge queue", "ada", Some("here"), None)),
            ),
            (Request::DeclareQueue { name: name(), options: None }, None),
        ] {
            let found = Change::of(&request, "here");
            let found = found
                .as_ref()
                .map(|it| (it.action, it.name.as_str(), it.vhost.as_deref(), it.detail.as_deref()));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn policies_are_logged_with_what_they_say() {
        let definition = [("max-length".to_owned(), Value::Int(3))].into();
        let (pattern, applies_to) = ("^a".to_owned(), AppliesTo::Queues);
        let policy = Policy { pattern, applies_to, priority: 2, definition };
        let (kind, vhost, name) = (PolicyKind::Operator, "v".to_owned(), "p".to_owned());
        let request = Request::SetPolicy { vhost, kind, name, policy: Box::new(policy) };
        let change = Change::of(&request, "here").unwrap();
        assert_eq!((change.action, change.name.as_str()), ("set operator policy", "p"));
        assert_eq!(change.vhost.as_deref(), Some("v"));
        assert_eq!(change.detail.as_deref(), Some("'^a' of queues, priority 2: max-length 3"));
    }
}

//! What RabbitMQ calls parameters: limits of virtual hosts, and operator policies.

use super::super::api::ANY_VHOST;
use super::super::audit::Shared;
use super::answer::{Answer, Refused, carry_out, changed};
use super::limits;
use super::list::{Parameters, check_vhost, page};
use super::policies::{self, PolicyBody, Row};
use super::read::Body;
use angarium_engine::{PolicyKind, Request};
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What the limits of a virtual host are.
pub(super) const LIMITS: &str = "vhost-limits";
/// Their name, which is always the same.
const LIMITS_NAME: &str = "limits";

/// Component, virtual host and name.
type Place = Path<(String, String, String)>;

/// A parameter to be set.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ParameterBody {
    value: Value,
}

/// All of them, or those of one virtual host.
pub(super) async fn rows(state: &Shared, vhost: Option<&str>) -> Answer<Vec<Value>> {
    let mut limited = limits::vhost_rows(state).await?;
    limited.retain(|row| vhost.is_none_or(|vhost| row["vhost"] == vhost));
    let limited = limited.into_iter().map(|mut row| {
        json!({
            "component": LIMITS, "name": LIMITS_NAME, "vhost": row["vhost"].take(),
            "value": row["value"].take(),
        })
    });
    let operators = policies::rows(state, PolicyKind::Operator, vhost).await?;
    Ok(limited.chain(operators.into_iter().map(Row::parameter)).collect())
}

pub(super) async fn all(state: Shared, query: Parameters) -> Answer {
    page(&query, rows(&state, None).await?)
}

pub(super) async fn of_component(
    state: Shared,
    Path(component): Path<String>,
    query: Parameters,
) -> Answer {
    let mut rows = rows(&state, None).await?;
    rows.retain(|row| row["component"] == component);
    page(&query, rows)
}

pub(super) async fn of_vhost(
    state: Shared,
    Path((component, vhost)): Path<(String, String)>,
    query: Parameters,
) -> Answer {
    check_vhost(&state, &vhost).await?;
    let mut rows = rows(&state, Some(&vhost)).await?;
    rows.retain(|row| row["component"] == component);
    page(&query, rows)
}

/// Names a parameter.
#[derive(Debug)]
struct Named {
    component: String,
    vhost: String,
    name: String,
}

impl Named {
    fn of(Path((component, vhost, name)): Place) -> Named {
        Named { component, vhost, name }
    }
}

async fn find(state: &Shared, named: &Named) -> Answer<Value> {
    let Named { component, vhost, name } = named;
    let rows = rows(state, Some(vhost)).await?;
    let found = rows.into_iter().find(|row| row["component"] == *component && row["name"] == *name);
    found.ok_or_else(|| Refused::none(format!("no parameter '{name}' of '{component}'")))
}

pub(super) async fn one(state: Shared, place: Place) -> Answer {
    Ok(Json(find(&state, &Named::of(place)).await?))
}

pub(super) async fn put(
    state: Shared,
    place: Place,
    Body(ParameterBody { value }): Body<ParameterBody>,
) -> Answer<StatusCode> {
    let named = Named::of(place);
    check_vhost(&state, &named.vhost).await?;
    let was_there = find(&state, &named).await.is_ok();
    let Named { component, vhost, name } = named;
    match component.as_str() {
        LIMITS => {
            let given = value.as_object().ok_or_else(|| Refused::bad("value: is no object"))?;
            limits::replace_vhost_limits(&state, vhost, given).await?;
        }
        policies::COMPONENT => {
            let body: PolicyBody =
                serde_json::from_value(value).map_err(|why| format!("value: {why}"))?;
            policies::set(&state, PolicyKind::Operator, vhost, name, &body).await?;
        }
        other => {
            return Err(Refused::not_offered(format!("parameters of '{other}' are not offered")));
        }
    }
    Ok(changed(was_there))
}

pub(super) async fn delete(state: Shared, place: Place) -> Answer<StatusCode> {
    let named = Named::of(place);
    find(&state, &named).await?;
    let Named { component, vhost, name } = named;
    if component == LIMITS {
        limits::replace_vhost_limits(&state, vhost, &Map::new()).await?;
    } else {
        let request = Request::ClearPolicy { vhost, kind: PolicyKind::Operator, name };
        carry_out(&state, ANY_VHOST, request).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

//! Connections closed by name, or all of a user.

use super::super::api;
use super::super::audit::Shared;
use super::answer::{Answer, Refused};
use super::client_lists::connection_rows;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};

/// The header that says why.
const REASON: &str = "x-reason";

pub(super) async fn connection(
    state: Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Answer<StatusCode> {
    let rows = connection_rows(&state).await?;
    let found = rows.iter().find(|row| row.name == name);
    let none = || Refused::none(format!("no connection '{name}'"));
    close(&state, found.ok_or_else(none)?.number, &headers).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn of_user(
    state: Shared,
    Path(user): Path<String>,
    headers: HeaderMap,
) -> Answer<StatusCode> {
    let rows = connection_rows(&state).await?;
    for row in rows.iter().filter(|row| row.user == user) {
        close(&state, row.number, &headers).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// One that is gone already is closed, too.
async fn close(state: &Shared, number: u64, headers: &HeaderMap) -> Answer<()> {
    let reason = headers.get(REASON).and_then(|it| it.to_str().ok());
    let reason = reason.unwrap_or("closed by an operator").to_owned();
    api::end_connection(state, number, reason).await?;
    Ok(())
}

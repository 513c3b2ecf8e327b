//! Answers as RabbitMQ's management gives them: JSON, and refusals as a word and a reason.

use super::super::api::{self, Failure};
use super::super::audit::Shared;
use crate::reactor::Gone;
use angarium_engine::{Refusal, RefusalKind, Reply, Request};
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::WWW_AUTHENTICATE;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// A request that was not carried out.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) reason: String,
}

pub(super) type Answer<T = Json<Value>> = Result<T, Refused>;

impl Refused {
    pub(super) fn new(status: StatusCode, reason: impl Into<String>) -> Refused {
        Refused { status, reason: reason.into() }
    }

    /// What is asked for makes no sense.
    pub(super) fn bad(reason: impl Into<String>) -> Refused {
        Refused::new(StatusCode::BAD_REQUEST, reason)
    }

    /// There is no such thing.
    pub(super) fn none(reason: impl Into<String>) -> Refused {
        Refused::new(StatusCode::NOT_FOUND, reason)
    }

    /// The caller may not.
    pub(super) fn forbidden(reason: impl Into<String>) -> Refused {
        Refused::new(StatusCode::UNAUTHORIZED, reason)
    }

    /// What this broker does not do.
    pub(super) fn not_offered(reason: impl Into<String>) -> Refused {
        Refused::new(StatusCode::NOT_IMPLEMENTED, reason)
    }

    fn word(&self) -> &'static str {
        match self.status {
            StatusCode::BAD_REQUEST => "bad_request",
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "not_authorized",
            StatusCode::NOT_FOUND => "Object Not Found",
            StatusCode::METHOD_NOT_ALLOWED => "method_not_allowed",
            StatusCode::NOT_IMPLEMENTED => "not_implemented",
            StatusCode::SERVICE_UNAVAILABLE => "unavailable",
            _ => "refused",
        }
    }
}

impl From<Gone> for Refused {
    fn from(gone: Gone) -> Refused {
        Failure::from(gone).into()
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Refused {
        Refused::new(failure.status, failure.text)
    }
}

/// What is wrong with what was sent.
impl From<String> for Refused {
    fn from(reason: String) -> Refused {
        Refused::bad(reason)
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        match refusal.kind {
            // RabbitMQ says so with 400, and tools tell by it.
            RefusalKind::PreconditionFailed
            | RefusalKind::ResourceLocked
            | RefusalKind::NotAllowed
            | RefusalKind::LimitExceeded => Refused::bad(refusal.text),
            _ => Failure::from(refusal).into(),
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = Json(json!({ "error": self.word(), "reason": self.reason }));
        let response = (self.status, body).into_response();
        if self.status != StatusCode::UNAUTHORIZED {
            return response;
        }
        ([(WWW_AUTHENTICATE, "Basic realm=\"RabbitMQ Management\"")], response).into_response()
    }
}

/// Has home carry a request out.
pub(super) async fn carry_out(state: &Shared, vhost: &str, request: Request) -> Answer<Reply> {
    Ok(api::perform(state, vhost, request).await??)
}

/// The answer to a change: whether it made something new.
pub(super) fn changed(was_there: bool) -> StatusCode {
    if was_there { StatusCode::NO_CONTENT } else { StatusCode::CREATED }
}

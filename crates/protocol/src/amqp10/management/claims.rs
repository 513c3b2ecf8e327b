//! `$cbs`: clients that know claims-based security (OASIS, AMQP Claims-based Security, working draft) hand a
//! token over before they attach links, and wait until it is accepted. It grants nothing here: what a
//! connection may goes by its login.

use super::super::codec::{
    Field, Malformed, Properties, SectionKind, Sections, Value, put_map_section, put_section,
};
use super::step::{Begun, Step};
use super::values::put;
use std::convert::Infallible;

/// Takes a request, and answers it at once.
pub(super) fn begin(request: &Sections<'_>) -> Result<Begun<Infallible>, Malformed> {
    let properties = request.properties()?;
    let asked = request.application_properties()?;
    let text = |name| match asked.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    };
    let has_token = matches!(request.amqp_value()?, Some(Value::String(_) | Value::Binary(_)));
    let (status, description): (i32, &str) = match text("operation") {
        Some("put-token") if text("name").is_none() => (400, "put-token needs a `name`"),
        Some("put-token") if text("type").is_none() => (400, "put-token needs a `type`"),
        Some("put-token") if !has_token => (400, "the body of put-token is no token"),
        Some("put-token") => (202, "Accepted"),
        Some(_) => (501, "there is no such operation"),
        None => (400, "the request has no `operation`"),
    };
    let mut answer = Vec::new();
    let correlation_id = properties.message_id;
    Properties { correlation_id, ..Properties::default() }.write(&mut answer);
    put_map_section(&mut answer, SectionKind::ApplicationProperties, |map| {
        put(map, "status-code", &status);
        put(map, "status-description", &description);
    });
    put_section(&mut answer, SectionKind::Value, &Value::Null);
    let reply_to = properties.reply_to.map(str::to_owned);
    Ok(Begun { call: None, step: Step::Answer(answer), reply_to })
}

//! Reads bodies as RabbitMQ's management does: an empty one is an empty object, and flags may be texts.

use super::super::mailboxes::State;
use super::answer::Refused;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A body of JSON, whatever its type is said to be.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<State> for Body<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, state: &State) -> Result<Self, Refused> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error| Refused::new(error.status(), error.body_text()))?;
        Ok(Body(parsed(&bytes)?))
    }
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refused> {
    let bytes = if bytes.trim_ascii().is_empty() { b"{}" } else { bytes };
    serde_json::from_slice(bytes).map_err(|error| Refused::bad(format!("body: {error}")))
}

/// A truth value, or the text of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flag(pub(super) bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Flag, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(value) => Ok(Flag(value)),
            Value::String(text) if text == "true" => Ok(Flag(true)),
            Value::String(text) if text == "false" => Ok(Flag(false)),
            other => Err(D::Error::custom(format!("{other} is neither true nor false"))),
        }
    }
}

/// Tags: a list, or texts with commas between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TagList(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for TagList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TagList, D::Error> {
        let wrong = || D::Error::custom("tags are texts, in a list or with commas between");
        let tags: Vec<String> = match Value::deserialize(deserializer)? {
            Value::String(text) => text.split(',').map(|tag| tag.trim().to_owned()).collect(),
            Value::Array(items) => {
                let text = |item: Value| item.as_str().map(str::to_owned).ok_or_else(wrong);
                items.into_iter().map(text).collect::<Result<_, _>>()?
            }
            Value::Null => Vec::new(),
            _ => return Err(wrong()),
        };
        Ok(TagList(tags.into_iter().filter(|tag| !tag.is_empty()).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_tags_come_in_several_forms() {
        let flag = |text: &str| parsed::<Flag>(text.as_bytes()).ok().map(|Flag(value)| value);
        for (text, expected) in [
            ("true", Some(true)),
            ("\"true\"", Some(true)),
            ("\"false\"", Some(false)),
            ("1", None),
            ("\"yes\"", None),
        ] {
            assert_eq!(flag(text), expected, "{text}");
        }
        let tags = |text: &str| parsed::<TagList>(text.as_bytes()).unwrap().0;
        assert_eq!(tags("\"administrator, monitoring\""), ["administrator", "monitoring"]);
        assert_eq!(tags("[\"administrator\"]"), ["administrator"]);
        assert!(tags("\"\"").is_empty() && tags("[]").is_empty() && tags("null").is_empty());
        assert!(parsed::<TagList>(b"3").is_err());
    }

    #[test]
    fn an_empty_body_is_an_empty_object() {
        assert_eq!(parsed::<Value>(b" \n").unwrap(), serde_json::json!({}));
        assert!(parsed::<Value>(b"{").is_err());
    }
}

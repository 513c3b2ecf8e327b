//! What requests to the administration API carry, and the engine's words for it.

use crate::settings::DIRECT_BYTES_LEAST;
use angarium_engine::limits::PRIORITY_MAX;
use angarium_engine::{
    Binding, BindingTarget, Bound, Durability, ExchangeKind, ExchangeOptions, Overflow,
    QueueOptions, Quota, SlowConsumerPolicy, Value,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The field of a quota that says what becomes of slow clients.
const SLOW_CONSUMER_POLICY: &str = "slow_consumer_policy";

/// A user to be created or changed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UserBody {
    /// Null, and said so, where it has none.
    #[serde(deserialize_with = "Option::deserialize")]
    pub(super) password: Option<String>,
    #[serde(default)]
    pub(super) administrator: bool,
}

/// What a user may do in a virtual host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PermissionBody {
    #[serde(default)]
    pub(super) configure: String,
    #[serde(default)]
    pub(super) write: String,
    #[serde(default)]
    pub(super) read: String,
}

/// What a user may use: its policy for slow clients, and numbers by the names of their bounds. What
/// is not said is as for everybody.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct QuotaBody(BTreeMap<String, serde_json::Value>);

impl QuotaBody {
    pub(super) fn of(quota: &Quota) -> QuotaBody {
        let policy = quota
            .slow_consumer_policy
            .map(|policy| (SLOW_CONSUMER_POLICY.to_owned(), policy.name().into()));
        let bounds = Bound::NAMES
            .into_iter()
            .filter_map(|(bound, name)| Some((name.replace('-', "_"), quota.get(bound)?.into())));
        QuotaBody(policy.into_iter().chain(bounds).collect())
    }

    /// What is said, as a person reads it.
    pub(super) fn described(&self) -> String {
        let show = |(field, value): (&String, &serde_json::Value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{} {value}", field.replace('_', "-"))
        };
        self.0.iter().map(show).collect::<Vec<String>>().join(", ")
    }

    pub(super) fn quota(self) -> Result<Quota, String> {
        let mut quota = Quota::default();
        for (field, value) in self.0 {
            if field == SLOW_CONSUMER_POLICY {
                let policy = value.as_str().and_then(SlowConsumerPolicy::named);
                let names = SlowConsumerPolicy::NAMES.map(|(_, name)| name).join(", ");
                quota.slow_consumer_policy =
                    Some(policy.ok_or_else(|| {
                        format!("{SLOW_CONSUMER_POLICY}: expected one of {names}")
                    })?);
                continue;
            }
            let mut known = Bound::NAMES.into_iter();
            let found = known.find(|(_, name)| name.replace('-', "_") == field);
            let (bound, _) = found.ok_or_else(|| format!("no field '{field}'"))?;
            let number = value.as_u64().ok_or_else(|| format!("{field}: expected a number"))?;
            let (least, instead) = least(bound);
            if number < least {
                return Err(format!("{field}: must be at least {least}; {instead}"));
            }
            quota.set(bound, Some(number));
        }
        Ok(quota)
    }
}

/// The least that a bound may say, and what to do instead of less, which would mean nothing or something
/// that nobody expects: a rate of 0 could never be waited for, and whoever may have but a few bytes unsent
/// is too slow with its first messages.
fn least(bound: Bound) -> (u64, &'static str) {
    match bound {
        Bound::Connections => (
            1,
            "to keep a user out take its rights away (`angarium permission clear`) or delete it",
        ),
        Bound::Messages | Bound::Bytes | Bound::ConnectionMessages | Bound::ConnectionBytes => (
            1,
            "to keep a user from publishing use `angarium permission set --write ''`; without the \
             field it is bounded as everybody is",
        ),
        Bound::UnsentBytes => {
            (DIRECT_BYTES_LEAST.0, "without the field it is bounded as everybody is")
        }
        // Who is to listen to nothing may well be told so.
        Bound::Subscribers | Bound::ConnectionSubscriptions => (0, ""),
    }
}

/// An exchange to be declared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExchangeBody {
    #[serde(rename = "type")]
    kind: ExchangeKindBody,
    #[serde(default = "yes")]
    durable: bool,
    #[serde(default)]
    auto_delete: bool,
    #[serde(default)]
    internal: bool,
    #[serde(default)]
    delaying: bool,
    alternate: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ExchangeKindBody {
    Direct,
    Fanout,
    Topic,
    Headers,
}

/// A queue to be declared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueueBody {
    #[serde(default = "yes")]
    durable: bool,
    #[serde(default)]
    auto_delete: bool,
    message_ttl_ms: Option<u64>,
    expires_ms: Option<u64>,
    length_max: Option<u64>,
    bytes_max: Option<u64>,
    #[serde(default)]
    overflow: OverflowBody,
    #[serde(default)]
    durability: DurabilityBody,
    dead_letter_exchange: Option<String>,
    dead_letter_routing_key: Option<String>,
    #[serde(default, deserialize_with = "priority_max")]
    priority_max: Option<u8>,
    #[serde(default)]
    single_active: bool,
    #[serde(default, deserialize_with = "delivery_limit")]
    delivery_limit: Option<u32>,
}

fn priority_max<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u8>, D::Error> {
    whole_number(from, "priority_max", PRIORITY_MAX)
}

fn delivery_limit<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    whole_number(from, "delivery_limit", u32::MAX)
}

/// A number that is refused with its range where it is outside.
fn whole_number<'de, D: Deserializer<'de>, T: TryFrom<u64> + std::fmt::Display>(
    from: D,
    field: &str,
    most: T,
) -> Result<Option<T>, D::Error> {
    let Some(value) = Option::<serde_json::Value>::deserialize(from)? else { return Ok(None) };
    let number = value.as_u64().and_then(|number| T::try_from(number).ok());
    let wrong = || D::Error::custom(format!("{field}: expected a whole number from 0 to {most}"));
    number.map(Some).ok_or_else(wrong)
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OverflowBody {
    #[default]
    DropHead,
    RejectPublish,
    RejectPublishDlx,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DurabilityBody {
    #[default]
    Flushed,
    Buffered,
    Memory,
}

/// A binding to be made or taken away.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BindingBody {
    pub(super) source: String,
    queue: Option<String>,
    exchange: Option<String>,
    #[serde(default)]
    pub(super) key: String,
    #[serde(default)]
    arguments: BTreeMap<String, serde_json::Value>,
}

fn yes() -> bool {
    true
}

impl ExchangeBody {
    pub(super) fn options(self) -> ExchangeOptions {
        ExchangeOptions {
            kind: match self.kind {
                ExchangeKindBody::Direct => ExchangeKind::Direct,
                ExchangeKindBody::Fanout => ExchangeKind::Fanout,
                ExchangeKindBody::Topic => ExchangeKind::Topic,
                ExchangeKindBody::Headers => ExchangeKind::Headers,
            },
            delaying: self.delaying,
            durable: self.durable,
            auto_delete: self.auto_delete,
            internal: self.internal,
            alternate: self.alternate,
        }
    }
}

impl QueueBody {
    pub(super) fn options(self) -> QueueOptions {
        QueueOptions {
            durable: self.durable,
            auto_delete: self.auto_delete,
            message_ttl: self.message_ttl_ms.map(Duration::from_millis),
            expires: self.expires_ms.map(Duration::from_millis),
            length_max: self.length_max,
            bytes_max: self.bytes_max,
            overflow: match self.overflow {
                OverflowBody::DropHead => Overflow::DropHead,
                OverflowBody::RejectPublish => Overflow::RejectPublish,
                OverflowBody::RejectPublishDlx => Overflow::RejectPublishDeadLetter,
            },
            durability: match self.durability {
                DurabilityBody::Flushed => Durability::Flushed,
                DurabilityBody::Buffered => Durability::Buffered,
                DurabilityBody::Memory => Durability::Memory,
            },
            dead_letter_exchange: self.dead_letter_exchange,
            dead_letter_routing_key: self.dead_letter_routing_key,
            priority_max: self.priority_max,
            single_active: self.single_active,
            delivery_limit: self.delivery_limit,
            ..QueueOptions::default()
        }
    }
}

impl BindingBody {
    pub(super) fn binding(self) -> Result<Binding, &'static str> {
        let target = match (self.queue, self.exchange) {
            (Some(queue), None) => BindingTarget::Queue(queue),
            (None, Some(exchange)) => BindingTarget::Exchange(exchange),
            _ => return Err("a binding leads to either a queue or an exchange"),
        };
        let arguments = self.arguments.iter();
        let arguments = arguments.map(|(name, value)| (name.clone(), engine_value(value)));
        let arguments = arguments.collect();
        Ok(Binding { source: self.source, target, key: self.key, arguments })
    }
}

fn engine_value(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::Text(text.clone()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(engine_value).collect()),
        serde_json::Value::Object(entries) => Value::Map(
            entries.iter().map(|(name, value)| (name.clone(), engine_value(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_to_have_no_password_is_said() {
        let password = |body: &str| serde_json::from_str(body).map(|user: UserBody| user.password);
        assert_eq!(password(r#"{"password":"x"}"#).unwrap().as_deref(), Some("x"));
        assert_eq!(password(r#"{"password":null}"#).unwrap(), None);
        let error = password(r#"{"administrator":true}"#).unwrap_err().to_string();
        assert!(error.contains("missing field `password`"), "{error}");
    }

    #[test]
    fn too_small_a_quota_is_refused_with_what_to_do_instead() {
        for (bound, name) in Bound::NAMES {
            let field = name.replace('-', "_");
            let quota = |number: u64| {
                let body = serde_json::json!({ field.as_str(): number });
                serde_json::from_value::<QuotaBody>(body).unwrap().quota()
            };
            let least = if bound == Bound::UnsentBytes { 65_536 } else { 1 };
            assert_eq!(quota(least).unwrap().get(bound), Some(least));
            match (bound, quota(least - 1)) {
                (Bound::Subscribers | Bound::ConnectionSubscriptions, quota) => {
                    assert_eq!(quota.unwrap().get(bound), Some(0))
                }
                (_, quota) => {
                    let why = quota.unwrap_err();
                    let start = format!("{field}: must be at least {least}; ");
                    assert!(why.starts_with(&start), "{why}");
                }
            }
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused_with_the_range() {
        let refused = |body: &str| serde_json::from_str::<QueueBody>(body).unwrap_err().to_string();
        let (priority, limit) = ("from 0 to 255", "from 0 to 4294967295");
        for (body, range) in [
            (r#"{"priority_max":256}"#, priority),
            (r#"{"priority_max":-1}"#, priority),
            (r#"{"priority_max":"high"}"#, priority),
            (r#"{"delivery_limit":4294967296}"#, limit),
            (r#"{"delivery_limit":1.5}"#, limit),
        ] {
            let said = refused(body);
            let field = body.split('"').nth(1).unwrap();
            let expected = format!("{field}: expected a whole number {range}");
            assert!(said.contains(&expected), "{body}: {said}");
        }
        for (body, priority) in [
            ("{}", None),
            (r#"{"priority_max":null}"#, None),
            (r#"{"priority_max":0}"#, Some(0)),
            (r#"{"priority_max":255}"#, Some(255)),
        ] {
            let queue: QueueBody = serde_json::from_str(body).unwrap();
            assert_eq!(queue.options().priority_max, priority, "{body}");
        }
    }
}

//! What requests to the administration API carry, and the engine's words for it.

use crate::settings::DIRECT_BYTES_LEAST;
use angarium_engine::selector::{Filter, ParseOptions};
use angarium_engine::{
    Arguments, Binding, BindingTarget, Bound, EXCHANGE_OPTIONS, ExchangeKind, ExchangeOptions,
    OpenSubscription, OptionDefinition, OptionType, QUEUE_OPTIONS, QueueOptions, Quota,
    SlowConsumerPolicy, Value,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The field of a quota that says what becomes of slow clients.
const SLOW_CONSUMER_POLICY: &str = "slow_consumer_policy";

/// A user to be created.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UserBody {
    /// An explicit null: it has none.
    #[serde(deserialize_with = "Option::deserialize")]
    pub(super) password: Option<String>,
    #[serde(default)]
    pub(super) administrator: bool,
}

/// A user's new password.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PasswordBody {
    /// An explicit null: it has none any more.
    #[serde(deserialize_with = "Option::deserialize")]
    pub(super) password: Option<String>,
}

/// Whether a user may administer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AdministratorBody {
    pub(super) administrator: bool,
}

/// A durable named subscription to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscriptionBody {
    /// The client it belongs to.
    #[serde(default)]
    client: Option<String>,
    source: String,
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    shared: bool,
    #[serde(default)]
    selector: Option<String>,
}

impl SubscriptionBody {
    pub(super) fn open(self, name: String) -> Result<OpenSubscription, String> {
        let SubscriptionBody { client: owner, source, mut keys, shared, selector } = self;
        if keys.is_empty() {
            keys.push(String::new());
        }
        let parsed = selector.map(|text| Filter::parse(&text, &ParseOptions::default()));
        let filter = parsed.transpose().map_err(|why| format!("selector: {why}"))?;
        let open =
            OpenSubscription { owner, name, source, keys, shared, filter, ..Default::default() };
        Ok(OpenSubscription { durable: true, ..open })
    }
}

/// What a user may do in a virtual host.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PermissionBody {
    pub(super) configure: String,
    pub(super) write: String,
    pub(super) read: String,
}

/// What a user may use: its policy for slow clients, and numbers by the names of their bounds. What
/// is not said is as for everybody.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct QuotaBody(BTreeMap<String, serde_json::Value>);

impl QuotaBody {
    pub(super) fn of(quota: &Quota) -> QuotaBody {
        let policy = quota.slow_consumer_policy;
        let policy = policy.map(|policy| (SLOW_CONSUMER_POLICY.to_owned(), policy.name().into()));
        let bound =
            |(bound, name): (Bound, &str)| Some((name.replace('-', "_"), quota.get(bound)?.into()));
        let bounds = Bound::NAMES.into_iter().filter_map(bound);
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

    /// As the quota of a virtual host.
    pub(super) fn of_vhost(self) -> Result<Quota, String> {
        let is_known = |field: &str| {
            let mut names =
                Bound::NAMES.into_iter().filter(|(it, _)| Bound::OF_VHOSTS.contains(it));
            names.any(|(_, name)| name.replace('-', "_") == field)
        };
        match self.0.keys().find(|field| !is_known(field)) {
            Some(field) => Err(format!("the quota of a virtual host has no field '{field}'")),
            None => self.quota(),
        }
    }

    pub(super) fn quota(self) -> Result<Quota, String> {
        let mut quota = Quota::default();
        for (field, value) in self.0 {
            if field == SLOW_CONSUMER_POLICY {
                let policy = value.as_str().and_then(SlowConsumerPolicy::named);
                let names = SlowConsumerPolicy::NAMES.map(|(_, name)| name).join(", ");
                let expected = || format!("{SLOW_CONSUMER_POLICY}: expected one of {names}");
                quota.slow_consumer_policy = Some(policy.ok_or_else(expected)?);
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

/// The least value of a bound, and what to do instead of a lower one: with a rate of 0 a publisher would wait
/// for ever, and with a few unsent bytes every client would be a slow consumer.
pub(super) fn least(bound: Bound) -> (u64, &'static str) {
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
        // 0 is a way to forbid subscriptions.
        Bound::Subscriptions | Bound::ConnectionSubscriptions => (0, ""),
        // 0 is a way to forbid queues.
        Bound::Queues | Bound::StoredBytes => (0, ""),
    }
}

/// A queue or an exchange to be declared: flags, a field for each of [`QUEUE_OPTIONS`] or
/// [`EXCHANGE_OPTIONS`], and an exchange's `type`. Fields are taken out one after the other.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Declaration(BTreeMap<String, serde_json::Value>);

impl Declaration {
    pub(super) fn exchange_options(mut self) -> Result<ExchangeOptions, String> {
        let kind = self.0.remove("type").ok_or("type: is missing")?;
        let kind = kind.as_str().and_then(ExchangeKind::named);
        let known = || format!("type: must be one of {}", ExchangeKind::NAMES.join(", "));
        let mut options = ExchangeOptions {
            kind: kind.ok_or_else(known)?,
            delaying: self.flag("delaying", false)?,
            durable: self.flag("durable", true)?,
            auto_delete: self.flag("auto_delete", false)?,
            internal: self.flag("internal", false)?,
            alternate: None,
        };
        self.options(EXCHANGE_OPTIONS, &mut options)?;
        Ok(options)
    }

    pub(super) fn queue_options(mut self) -> Result<QueueOptions, String> {
        let mut options = QueueOptions {
            durable: self.flag("durable", true)?,
            auto_delete: self.flag("auto_delete", false)?,
            ..QueueOptions::default()
        };
        self.options(QUEUE_OPTIONS, &mut options)?;
        Ok(options)
    }

    /// A flag and its default.
    fn flag(&mut self, name: &str, default: bool) -> Result<bool, String> {
        match self.0.remove(name) {
            None | Some(serde_json::Value::Null) => Ok(default),
            Some(value) => value.as_bool().ok_or_else(|| format!("{name}: must be true or false")),
        }
    }

    /// Sets all options of a table; no other field may be left. Errors name the field.
    fn options<O>(mut self, table: &[OptionDefinition<O>], options: &mut O) -> Result<(), String> {
        for option in table {
            let field = option.name.replace('-', "_");
            let value = self.0.remove(&field).filter(|value| !value.is_null());
            if let Some(value) = value {
                let set = option.set(options, &engine_value(&value));
                set.map_err(|why| format!("{field}: {why}"))?;
            }
        }
        self.0.keys().next().map_or(Ok(()), |field| Err(format!("no field '{field}'")))
    }
}

/// A queue to be declared.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct QueueBody(pub(super) Declaration);

/// An exchange to be declared.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct ExchangeBody(pub(super) Declaration);

/// An object without other fields than these.
fn object(what: &str, properties: serde_json::Map<String, serde_json::Value>) -> Schema {
    json_schema!({
        "type": "object", "description": what, "properties": properties,
        "additionalProperties": false,
    })
}

/// The properties of flags and of a table of options, as [`Declaration`] reads them.
fn declared<O>(
    flags: &[&str],
    table: &[OptionDefinition<O>],
) -> serde_json::Map<String, serde_json::Value> {
    let flags = flags.iter().map(|flag| ((*flag).to_owned(), json!({ "type": "boolean" })));
    let options = table.iter().map(|option| {
        let mut schema = match option.kind {
            OptionType::Count { min, max } => {
                json!({ "type": "integer", "minimum": min, "maximum": max })
            }
            OptionType::Millis { min } => json!({ "type": "integer", "minimum": min }),
            OptionType::Text => json!({ "type": "string" }),
            OptionType::Choice(names) => json!({ "type": "string", "enum": names }),
            OptionType::Flag => json!({ "type": "boolean" }),
        };
        schema["description"] = option.what.into();
        (option.name.replace('-', "_"), schema)
    });
    flags.chain(options).collect()
}

impl JsonSchema for QueueBody {
    fn schema_name() -> Cow<'static, str> {
        "QueueBody".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        object("A queue to be declared.", declared(&["durable", "auto_delete"], QUEUE_OPTIONS))
    }
}

impl JsonSchema for ExchangeBody {
    fn schema_name() -> Cow<'static, str> {
        "ExchangeBody".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let flags = ["delaying", "durable", "auto_delete", "internal"];
        let mut properties = declared(&flags, EXCHANGE_OPTIONS);
        let kinds = json!({ "type": "string", "enum": ExchangeKind::NAMES });
        properties.insert("type".to_owned(), kinds);
        let mut schema = object("An exchange to be declared.", properties);
        schema.insert("required".to_owned(), json!(["type"]));
        schema
    }
}

impl JsonSchema for QuotaBody {
    fn schema_name() -> Cow<'static, str> {
        "QuotaBody".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let policies = SlowConsumerPolicy::NAMES.map(|(_, name)| name);
        let policy = json!({ "type": "string", "enum": policies });
        let policy = (SLOW_CONSUMER_POLICY.to_owned(), policy);
        let bounds = Bound::NAMES.into_iter().map(|(bound, name)| {
            let schema = json!({ "type": "integer", "minimum": least(bound).0 });
            (name.replace('-', "_"), schema)
        });
        let what = "What a user, or all in a virtual host, may use; without a field: as everybody.";
        object(what, std::iter::once(policy).chain(bounds).collect())
    }
}

/// A binding to be made or taken away.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BindingBody {
    pub(super) source: String,
    queue: Option<String>,
    exchange: Option<String>,
    #[serde(default)]
    pub(super) key: String,
    #[serde(default)]
    arguments: BTreeMap<String, serde_json::Value>,
    filter: Option<String>,
    not_from: Option<String>,
}

impl BindingBody {
    pub(super) fn binding(self) -> Result<Binding, String> {
        let target = match (self.queue, self.exchange) {
            (Some(queue), None) => BindingTarget::Queue(queue),
            (None, Some(exchange)) => BindingTarget::Exchange(exchange),
            _ => return Err("a binding leads to either a queue or an exchange".to_owned()),
        };
        let arguments = engine_values(&self.arguments);
        let filter = self.filter.as_deref();
        let filter = filter.map(|text| Filter::parse(text, &ParseOptions::default()));
        let filter = filter.transpose().map_err(|error| format!("filter: {error}"))?;
        let (source, key, not_from) = (self.source, self.key, self.not_from);
        Ok(Binding { source, target, key, arguments, filter, not_from })
    }
}

pub(super) fn engine_value(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::Text(text.clone()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(engine_value).collect()),
        serde_json::Value::Object(entries) => Value::Map(engine_values(entries)),
    }
}

pub(super) fn engine_values<'a>(
    entries: impl IntoIterator<Item = (&'a String, &'a serde_json::Value)>,
) -> Arguments {
    entries.into_iter().map(|(name, value)| (name.clone(), engine_value(value))).collect()
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
                (
                    Bound::Subscriptions
                    | Bound::ConnectionSubscriptions
                    | Bound::Queues
                    | Bound::StoredBytes,
                    quota,
                ) => {
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
    fn wrong_options_are_refused_by_field() {
        let options =
            |body: &str| serde_json::from_str::<Declaration>(body).unwrap().queue_options();
        for (body, expected) in [
            (r#"{"max_priority":256}"#, "max_priority: 256 is not between 0 and 255"),
            (r#"{"max_priority":-1}"#, "max_priority: -1 is negative"),
            (r#"{"max_priority":"high"}"#, "max_priority: must be an integer"),
            (r#"{"delivery_limit":1.5}"#, "delivery_limit: must be an integer"),
            (r#"{"durable":1}"#, "durable: must be true or false"),
            (r#"{"length":1}"#, "no field 'length'"),
        ] {
            assert_eq!(options(body).unwrap_err(), expected, "{body}");
        }
        for (body, priority) in [
            ("{}", None),
            (r#"{"max_priority":null}"#, None),
            (r#"{"max_priority":0}"#, Some(0)),
            (r#"{"max_priority":255}"#, Some(255)),
        ] {
            assert_eq!(options(body).unwrap().priority_max, priority, "{body}");
        }
    }
}

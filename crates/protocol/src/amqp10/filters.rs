//! Filter sets of sources (part 3, 3.5.8): what is understood of them becomes one selector.
//!
//! | filter | descriptor |
//! |---|---|
//! | a selector, as JMS has it | `apache.org:selector-filter:string`, 0x468C00000004 |
//! | nothing of one's own client | `apache.org:no-local-filter:list`, 0x468C00000003 |
//! | a key of a direct or pattern of a topic exchange | `apache.org:legacy-amqp-…-binding:string` |
//! | headers, as a headers exchange has them | `apache.org:legacy-amqp-headers-binding:map`, 0x468C00000002 |
//! | an SQL expression | `amqp:sql-filter`, 0x120 |
//! | fields of the properties | `amqp:properties-filter`, 0x173 |
//! | application properties | `amqp:application-properties-filter`, 0x174 |
//!
//! The last three are AMQP Filter Expressions 1.0 (OASIS, committee specification draft 01): a text that
//! begins with `&p:` or `&s:` stands for all that begin or end with the rest of it, `&&` for a `&`.

use super::codec::{Described, Descriptor, Map, OwnedValue, Symbol, Timestamp, Value};

/// What a filter set asks for, as far as it is understood.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Filters {
    /// All conditions, as a selector's text.
    pub(super) selector: Option<String>,
    /// Messages that the client itself has published are left out.
    pub(super) no_local: bool,
    /// The key or pattern to bind with.
    pub(super) key: Option<String>,
}

/// A filter that is understood.
enum Kind {
    Selector,
    NoLocal,
    Key,
    Headers,
    Properties,
    ApplicationProperties,
}

impl Kind {
    fn of(descriptor: Descriptor<'_>) -> Option<Kind> {
        Some(match descriptor {
            Descriptor::Code(0x0000_468c_0000_0004 | 0x120)
            | Descriptor::Name(Symbol("apache.org:selector-filter:string" | "amqp:sql-filter")) => {
                Kind::Selector
            }
            Descriptor::Code(0x0000_468c_0000_0003)
            | Descriptor::Name(Symbol("apache.org:no-local-filter:list")) => Kind::NoLocal,
            Descriptor::Code(0x0000_468c_0000_0000 | 0x0000_468c_0000_0001)
            | Descriptor::Name(Symbol(
                "apache.org:legacy-amqp-direct-binding:string"
                | "apache.org:legacy-amqp-topic-binding:string",
            )) => Kind::Key,
            Descriptor::Code(0x0000_468c_0000_0002)
            | Descriptor::Name(Symbol("apache.org:legacy-amqp-headers-binding:map")) => {
                Kind::Headers
            }
            Descriptor::Code(0x173) | Descriptor::Name(Symbol("amqp:properties-filter")) => {
                Kind::Properties
            }
            Descriptor::Code(0x174)
            | Descriptor::Name(Symbol("amqp:application-properties-filter")) => {
                Kind::ApplicationProperties
            }
            _ => return None,
        })
    }
}

/// What was understood, and the filters of the set that were.
#[derive(Debug)]
pub(super) struct Understood {
    pub(super) filters: Filters,
    /// As the answer to the attach has them.
    pub(super) taken: OwnedValue,
}

/// Reads a filter set.
///
/// # Errors
/// A filter that is understood has a value that makes no sense, and why.
pub(super) fn read(set: Map<'_>) -> Result<Understood, String> {
    let mut filters = Filters::default();
    let mut conditions = Vec::new();
    let mut failed = None;
    let taken = OwnedValue::map(|taken| {
        for (key, value) in set.entries() {
            let Value::Described(described) = value else { continue };
            let Some(kind) = Kind::of(described.descriptor()) else { continue };
            match take(&kind, described, &mut filters, &mut conditions) {
                Ok(true) => taken.put(&key, &value),
                Ok(false) => {}
                Err(why) => failed = Some(why),
            }
        }
    });
    if let Some(why) = failed {
        return Err(why);
    }
    filters.selector = match conditions.len() {
        0 => None,
        1 => conditions.pop(),
        _ => Some(format!("({})", conditions.join(") AND ("))),
    };
    Ok(Understood { filters, taken })
}

/// Adds a filter; false: it is one of those that are not understood.
fn take(
    kind: &Kind,
    described: Described<'_>,
    filters: &mut Filters,
    conditions: &mut Vec<String>,
) -> Result<bool, String> {
    match (kind, described.value()) {
        (Kind::Selector, Value::String(text)) => conditions.push(text.to_owned()),
        (Kind::NoLocal, _) => filters.no_local = true,
        (Kind::Key, Value::String(key)) => filters.key = Some(key.to_owned()),
        (Kind::Headers, Value::Map(headers)) => return add_headers(headers, conditions),
        (Kind::Properties, Value::Map(fields)) => {
            let section = |name: &str| format!("properties.{}", name.replace('-', "_"));
            return add_fields(fields, &section, conditions);
        }
        (Kind::ApplicationProperties, Value::Map(fields)) => {
            return add_fields(
                fields,
                &|name| format!("application_properties.{name}"),
                conditions,
            );
        }
        (Kind::Selector | Kind::Key, _) => return Err("the filter is no string".to_owned()),
        (Kind::Headers | Kind::Properties | Kind::ApplicationProperties, _) => {
            return Err("the filter is no map".to_owned());
        }
    }
    Ok(true)
}

/// Adds which headers a message has to have, as a binding to a headers exchange says it: all of them, or any
/// where `x-match` says so; a header without a value has to be there. False: a value is of a type that is not
/// compared.
fn add_headers(headers: Map<'_>, conditions: &mut Vec<String>) -> Result<bool, String> {
    let mut all = Vec::new();
    let mut between = " AND ";
    for (key, value) in headers.entries() {
        let (Value::Symbol(Symbol(name)) | Value::String(name)) = key else {
            return Err("the filter has a key that is neither symbol nor string".to_owned());
        };
        match (name, value) {
            ("x-match", Value::String(how) | Value::Symbol(Symbol(how))) => {
                between = match how {
                    "all" => " AND ",
                    "any" => " OR ",
                    other => return Err(format!("x-match is '{other}', and neither all nor any")),
                };
            }
            ("x-match", _) => return Err("x-match is neither 'all' nor 'any'".to_owned()),
            _ if name.starts_with("x-") => {}
            _ => {
                let name = in_brackets(&format!("application_properties.{name}"));
                all.push(match value {
                    Value::Null => format!("{name} IS NOT NULL"),
                    Value::String(text) | Value::Symbol(Symbol(text)) => {
                        format!("{name} = {}", quoted(text))
                    }
                    value => match condition(&name, value)? {
                        Some(condition) => condition,
                        None => return Ok(false),
                    },
                });
            }
        }
    }
    match all.is_empty() {
        false => conditions.push(all.join(between)),
        true if between == " OR " => conditions.push("FALSE".to_owned()),
        true => {}
    }
    Ok(true)
}

/// Adds what fields have to be; false: a value is of a type that is not compared.
fn add_fields(
    fields: Map<'_>,
    path: &dyn Fn(&str) -> String,
    conditions: &mut Vec<String>,
) -> Result<bool, String> {
    let mut all = Vec::new();
    for (key, value) in fields.entries() {
        let (Value::Symbol(Symbol(name)) | Value::String(name)) = key else {
            return Err("the filter has a key that is neither symbol nor string".to_owned());
        };
        match condition(&in_brackets(&path(name)), value)? {
            Some(condition) => all.push(condition),
            None => return Ok(false),
        }
    }
    if !all.is_empty() {
        conditions.push(all.join(" AND "));
    }
    Ok(true)
}

/// What a field has to be; `None`: values of that type are not compared.
fn condition(name: &str, value: Value<'_>) -> Result<Option<String>, String> {
    let text = match value {
        Value::Null => return Ok(Some(format!("{name} IS NULL"))),
        Value::String(text) | Value::Symbol(Symbol(text)) => text_condition(name, text)?,
        Value::Boolean(value) => format!("{name} = {}", if value { "TRUE" } else { "FALSE" }),
        Value::UByte(value) => format!("{name} = {value}"),
        Value::UShort(value) => format!("{name} = {value}"),
        Value::UInt(value) => format!("{name} = {value}"),
        Value::Byte(value) => format!("{name} = {value}"),
        Value::Short(value) => format!("{name} = {value}"),
        Value::Int(value) => format!("{name} = {value}"),
        Value::Long(value) | Value::Timestamp(Timestamp(value)) => format!("{name} = {value}"),
        Value::ULong(value) => match i64::try_from(value) {
            Ok(value) => format!("{name} = {value}"),
            Err(_) => return Ok(None),
        },
        Value::Float(value) if value.is_finite() => format!("{name} = {:?}", f64::from(value)),
        Value::Double(value) if value.is_finite() => format!("{name} = {value:?}"),
        _ => return Ok(None),
    };
    Ok(Some(text))
}

/// What a text has to be, or begin or end with.
fn text_condition(name: &str, text: &str) -> Result<String, String> {
    let Some(modified) = text.strip_prefix('&') else {
        return Ok(format!("{name} = {}", quoted(text)));
    };
    if modified.starts_with('&') {
        return Ok(format!("{name} = {}", quoted(modified)));
    }
    let pattern = |part: &str| part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    let like = if let Some(prefix) = modified.strip_prefix("p:") {
        format!("{}%", pattern(prefix))
    } else if let Some(suffix) = modified.strip_prefix("s:") {
        format!("%{}", pattern(suffix))
    } else {
        return Err(format!("'{text}' begins with & and neither &p:, &s: nor &&"));
    };
    Ok(format!("{name} LIKE {} ESCAPE '\\'", quoted(&like)))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn in_brackets(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp10::codec::{Field, wire};
    use angarium_engine::selector::Selector;

    /// A described value.
    fn described<'v>(code: u64, value: &impl Field<'v>) -> OwnedValue {
        let mut bytes = vec![wire::DESCRIBED];
        code.write(&mut bytes);
        value.write(&mut bytes);
        OwnedValue::decode(&bytes).unwrap()
    }

    fn set(filters: &[(&str, OwnedValue)]) -> OwnedValue {
        OwnedValue::map(|map| {
            filters.iter().for_each(|(name, value)| map.put(&Symbol(name), &value.value()));
        })
    }

    #[track_caller]
    fn check(filters: &[(&str, OwnedValue)], selector: &str, taken: usize) {
        let set = set(filters);
        let understood = read(set.as_map()).unwrap();
        let text = understood.filters.selector.unwrap_or_default();
        assert_eq!(text, selector);
        Selector::parse(&text).unwrap();
        assert_eq!(understood.taken.as_map().len(), taken);
    }

    #[test]
    fn filters_become_one_selector() {
        let selector = described(0x0000_468c_0000_0004, &"colour = 'red'");
        check(&[("jms-selector", selector.clone())], "colour = 'red'", 1);
        let own = OwnedValue::map(|map| {
            map.put(&"size", &7_i32);
            map.put(&"new", &true);
        });
        let own = described(0x174, &own.value());
        check(
            &[("jms-selector", selector), ("a", own)],
            "(colour = 'red') AND ([application_properties.size] = 7 AND \
             [application_properties.new] = TRUE)",
            2,
        );
        let fields = OwnedValue::map(|map| {
            map.put(&Symbol("subject"), &"&p:50%_");
            map.put(&Symbol("reply-to"), &"&s:'x");
            map.put(&Symbol("to"), &"&&a");
            map.put(&Symbol("group-id"), &Value::Null);
        });
        check(
            &[("p", described(0x173, &fields.value()))],
            "[properties.subject] LIKE '50\\%\\_%' ESCAPE '\\' AND [properties.reply_to] LIKE \
             '%''x' ESCAPE '\\' AND [properties.to] = '&a' AND [properties.group_id] IS NULL",
            1,
        );
    }

    #[test]
    fn headers_are_matched_as_a_headers_exchange_does() {
        let headers = |fill: &dyn Fn(&mut crate::amqp10::codec::MapWriter<'_>)| {
            let map = OwnedValue::map(|map| fill(map));
            [("headers", described(0x0000_468c_0000_0002, &map.value()))]
        };
        let two = |map: &mut crate::amqp10::codec::MapWriter<'_>| {
            map.put(&"colour", &"&red");
            map.put(&"size", &7_i64);
            map.put(&"new", &Value::Null);
            map.put(&"x-other", &1_u32);
        };
        check(
            &headers(&two),
            "[application_properties.colour] = '&red' AND [application_properties.size] = 7 AND \
             [application_properties.new] IS NOT NULL",
            1,
        );
        check(
            &headers(&|map| {
                map.put(&"x-match", &"any");
                map.put(&"a", &true);
                map.put(&"b", &1_i32);
            }),
            "[application_properties.a] = TRUE OR [application_properties.b] = 1",
            1,
        );
        check(&headers(&|map| map.put(&"x-match", &"any")), "FALSE", 1);
        let set = set(&headers(&|map| map.put(&"x-match", &"some")));
        assert_eq!(read(set.as_map()).unwrap_err(), "x-match is 'some', and neither all nor any");
    }

    #[test]
    fn what_is_not_understood_is_not_taken() {
        check(&[("x", described(99, &"a"))], "", 0);
        let odd = OwnedValue::map(|map| map.put(&"id", &Value::Binary(b"1")));
        check(&[("a", described(0x174, &odd.value()))], "", 0);
        let wrong = set(&[("jms-selector", described(0x0000_468c_0000_0004, &7_i32))]);
        assert!(read(wrong.as_map()).is_err());
        let odd = OwnedValue::map(|map| map.put(&"a", &"&q:"));
        assert!(read(set(&[("a", described(0x174, &odd.value()))]).as_map()).is_err());
    }

    #[test]
    fn one_s_own_messages_may_be_left_out() {
        let local = described(0x0000_468c_0000_0003, &Value::List(Default::default()));
        let key = described(0x0000_468c_0000_0001, &"a.#");
        let set = set(&[("no-local", local), ("key", key)]);
        let filters = read(set.as_map()).unwrap().filters;
        assert_eq!(filters, Filters { selector: None, no_local: true, key: Some("a.#".into()) });
    }
}

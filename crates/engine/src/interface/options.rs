//! Every option that an argument of a declaration sets, defined once: name, type, bounds, number in
//! records. Protocols, the HTTP API, the command line, records, comparisons and docs follow these
//! tables.

use crate::{Durability, ExchangeKind, ExchangeOptions, Overflow, QueueOptions, Value};
use std::time::Duration;

/// Bytes of an option that is a text.
const TEXT_BYTES_MAX: usize = 255;

/// Which values an option can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionType {
    /// True or false.
    Flag,
    /// A whole number within these bounds, both included.
    Count {
        /// The least.
        min: i64,
        /// The most.
        max: i64,
    },
    /// A time span in whole milliseconds.
    Millis {
        /// The shortest.
        min: i64,
    },
    /// A text of at most 255 bytes.
    Text,
    /// One of these names; the first is the default.
    Choice(&'static [&'static str]),
}

/// One option of what is declared with an `O`.
#[derive(Debug)]
pub struct OptionDefinition<O> {
    /// Its name, in words joined by `-`. Faces derive theirs from it: `x-NAME` in arguments,
    /// `--NAME` on the command line, with `_` for `-` in JSON.
    pub name: &'static str,
    /// What it does, for help and docs.
    pub what: &'static str,
    /// Which values it can have.
    pub kind: OptionType,
    /// Names it in records. Never reused.
    pub(crate) code: u8,
    get: fn(&O) -> Option<Value>,
    set: fn(&mut O, &Value),
}

impl<O> OptionDefinition<O> {
    /// Its value; `None`: the default.
    #[must_use]
    pub fn get(&self, options: &O) -> Option<Value> {
        (self.get)(options)
    }

    /// Sets it. Errors: why the value is none of its type, or out of bounds, as in `must be an integer`.
    pub fn set(&self, options: &mut O, value: &Value) -> Result<(), String> {
        self.kind.check(value)?;
        (self.set)(options, value);
        Ok(())
    }
}

impl OptionType {
    fn check(self, value: &Value) -> Result<(), String> {
        match (self, value) {
            (OptionType::Flag, Value::Bool(_)) => Ok(()),
            (OptionType::Flag, _) => Err("must be true or false".to_owned()),
            (OptionType::Count { min, max }, Value::Int(value)) => check_bounds(*value, min, max),
            (OptionType::Millis { min }, Value::Int(value)) => check_bounds(*value, min, i64::MAX),
            (OptionType::Count { .. } | OptionType::Millis { .. }, _) => {
                Err("must be an integer".to_owned())
            }
            (OptionType::Text | OptionType::Choice(_), Value::Text(text))
                if text.len() > TEXT_BYTES_MAX =>
            {
                Err(format!("is longer than {TEXT_BYTES_MAX} bytes"))
            }
            (OptionType::Text, Value::Text(_)) => Ok(()),
            (OptionType::Choice(names), Value::Text(text)) => {
                let is_known = names.contains(&text.as_str());
                is_known
                    .then_some(())
                    .ok_or_else(|| format!("'{text}' is none of {}", names.join(", ")))
            }
            (OptionType::Text | OptionType::Choice(_), _) => Err("must be a string".to_owned()),
        }
    }
}

fn check_bounds(value: i64, min: i64, max: i64) -> Result<(), String> {
    if value >= min && value <= max {
        return Ok(());
    }
    Err(match (value < 0, max) {
        (true, _) => format!("{value} is negative"),
        (false, i64::MAX) => format!("{value} is less than {min}"),
        (false, _) => format!("{value} is not between {min} and {max}"),
    })
}

/// A whole number from 0.
const COUNT: OptionType = OptionType::Count { min: 0, max: i64::MAX };

/// The options of queues.
pub const QUEUE_OPTIONS: &[OptionDefinition<QueueOptions>] = &[
    OptionDefinition {
        name: "durability",
        what: "how well its persistent messages are kept",
        kind: OptionType::Choice(Durability::NAMES),
        code: 1,
        get: |queue| queue.durability.is_set().then(|| text(queue.durability.name())),
        set: |queue, value| {
            queue.durability = value.as_text().and_then(Durability::named).unwrap_or_default()
        },
    },
    OptionDefinition {
        name: "message-ttl",
        what: "time to live of its messages, in milliseconds",
        kind: OptionType::Millis { min: 0 },
        code: 2,
        get: |queue| queue.message_ttl.map(millis),
        set: |queue, value| queue.message_ttl = span(value),
    },
    OptionDefinition {
        name: "expires",
        what: "it is deleted after this long without use, in milliseconds",
        kind: OptionType::Millis { min: 1 },
        code: 3,
        get: |queue| queue.expires.map(millis),
        set: |queue, value| queue.expires = span(value),
    },
    OptionDefinition {
        name: "max-length",
        what: "most messages ready in it",
        kind: COUNT,
        code: 4,
        get: |queue| queue.length_max.map(number),
        set: |queue, value| queue.length_max = value.as_int().map(i64::cast_unsigned),
    },
    OptionDefinition {
        name: "max-length-bytes",
        what: "most payload bytes ready in it",
        kind: COUNT,
        code: 5,
        get: |queue| queue.bytes_max.map(number),
        set: |queue, value| queue.bytes_max = value.as_int().map(i64::cast_unsigned),
    },
    OptionDefinition {
        name: "overflow",
        what: "what happens beyond those",
        kind: OptionType::Choice(Overflow::NAMES),
        code: 6,
        get: |queue| queue.overflow.is_set().then(|| text(queue.overflow.name())),
        set: |queue, value| {
            queue.overflow = value.as_text().and_then(Overflow::named).unwrap_or_default()
        },
    },
    OptionDefinition {
        name: "dead-letter-exchange",
        what: "where dead letters go",
        kind: OptionType::Text,
        code: 7,
        get: |queue| queue.dead_letter_exchange.as_deref().map(text),
        set: |queue, value| queue.dead_letter_exchange = value.as_text().map(str::to_owned),
    },
    OptionDefinition {
        name: "dead-letter-routing-key",
        what: "with which routing key; their own without it",
        kind: OptionType::Text,
        code: 8,
        get: |queue| queue.dead_letter_routing_key.as_deref().map(text),
        set: |queue, value| queue.dead_letter_routing_key = value.as_text().map(str::to_owned),
    },
    OptionDefinition {
        name: "max-priority",
        what: "highest priority it tells apart",
        kind: OptionType::Count { min: 0, max: 255 },
        code: 9,
        get: |queue| queue.priority_max.map(|most| number(most.into())),
        set: |queue, value| {
            queue.priority_max = value.as_int().and_then(|most| u8::try_from(most).ok())
        },
    },
    OptionDefinition {
        name: "single-active-consumer",
        what: "one of its consumers gets everything until it goes",
        kind: OptionType::Flag,
        code: 10,
        get: |queue| queue.single_active.then_some(Value::Bool(true)),
        set: |queue, value| queue.single_active = *value == Value::Bool(true),
    },
    OptionDefinition {
        name: "delivery-limit",
        what: "requeues after which a message is dead-lettered; negative: no limit of its own",
        kind: OptionType::Count { min: i64::MIN, max: i64::MAX },
        code: 11,
        get: |queue| queue.delivery_limit.map(|limit| number(limit.into())),
        set: |queue, value| {
            let limit = value.as_int().unwrap_or(-1).min(i64::from(u32::MAX));
            queue.delivery_limit = u32::try_from(limit).ok();
        },
    },
    OptionDefinition {
        name: "consumer-timeout",
        what: "how long a delivery may stay unsettled, in milliseconds",
        kind: OptionType::Millis { min: 1 },
        code: 12,
        get: |queue| queue.settle_timeout.map(millis),
        set: |queue, value| queue.settle_timeout = span(value),
    },
];

/// The options of exchanges.
pub const EXCHANGE_OPTIONS: &[OptionDefinition<ExchangeOptions>] = &[OptionDefinition {
    name: "alternate-exchange",
    what: "where messages go that it leads nowhere",
    kind: OptionType::Text,
    code: 1,
    get: |exchange| exchange.alternate.as_deref().map(text),
    set: |exchange, value| exchange.alternate = value.as_text().map(str::to_owned),
}];

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn millis(span: Duration) -> Value {
    number(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

fn span(value: &Value) -> Option<Duration> {
    value.as_int().map(|millis| Duration::from_millis(millis.max(0).cast_unsigned()))
}

/// Gives an enum's variants names, in the order of their numbers in records; the first one is the default.
macro_rules! named {
    ($type:ident: $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// The names, in the order of the variants' numbers in records.
            pub const NAMES: &'static [&'static str] = &[$($name),+];
            const ALL: &'static [$type] = &[$($type::$variant),+];

            /// Its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                $type::NAMES[self.number() as usize]
            }
            /// The one of that name.
            #[must_use]
            pub fn named(name: &str) -> Option<$type> {
                $type::NAMES.iter().position(|it| *it == name).map(|index| $type::ALL[index])
            }
            /// Its number in records.
            pub(crate) fn number(self) -> u8 {
                self as u8
            }
            /// The one of that number.
            #[allow(dead_code, reason = "only exchange kinds are recorded by number")]
            pub(crate) fn numbered(number: u8) -> Option<$type> {
                $type::ALL.get(number as usize).copied()
            }
            /// Whether it is not the default.
            #[allow(dead_code, reason = "exchange kinds have no default")]
            fn is_set(self) -> bool {
                self.number() != 0
            }
        }
    };
}

named!(Overflow: DropHead = "drop-head", RejectPublish = "reject-publish",
    RejectPublishDeadLetter = "reject-publish-dlx");
named!(Durability: Flushed = "flushed", Buffered = "buffered", Memory = "memory");
named!(ExchangeKind: Direct = "direct", Fanout = "fanout", Topic = "topic", Headers = "headers");

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[track_caller]
    fn check(name: &str, value: Value, expected: Result<Option<Value>, &str>) {
        let mut options = QueueOptions::default();
        let option = QUEUE_OPTIONS.iter().find(|option| option.name == name).unwrap();
        let found = option.set(&mut options, &value).map(|()| option.get(&options));
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn what_is_set_is_shown_unless_it_is_the_default() {
        check("message-ttl", Value::Int(60), Ok(Some(Value::Int(60))));
        check("overflow", text("reject-publish"), Ok(Some(text("reject-publish"))));
        check("overflow", text("drop-head"), Ok(None));
        check("durability", text("memory"), Ok(Some(text("memory"))));
        check("single-active-consumer", Value::Bool(false), Ok(None));
        check("delivery-limit", Value::Int(-1), Ok(None));
        check("delivery-limit", Value::Int(1 << 40), Ok(Some(Value::Int(u32::MAX.into()))));
        check("max-priority", Value::Int(0), Ok(Some(Value::Int(0))));
    }

    #[test]
    fn what_is_wrong_is_refused_with_why() {
        check("message-ttl", text("60"), Err("must be an integer"));
        check("message-ttl", Value::Int(-1), Err("-1 is negative"));
        check("expires", Value::Int(0), Err("0 is less than 1"));
        check("max-priority", Value::Int(256), Err("256 is not between 0 and 255"));
        check(
            "overflow",
            text("x"),
            Err("'x' is none of drop-head, reject-publish, reject-publish-dlx"),
        );
        check("dead-letter-exchange", Value::Int(1), Err("must be a string"));
        check("dead-letter-exchange", text(&"x".repeat(256)), Err("is longer than 255 bytes"));
        check("single-active-consumer", Value::Int(1), Err("must be true or false"));
    }

    #[test]
    fn names_and_codes_are_unique() {
        let names: BTreeSet<_> = QUEUE_OPTIONS.iter().map(|option| option.name).collect();
        let codes: BTreeSet<_> = QUEUE_OPTIONS.iter().map(|option| option.code).collect();
        assert_eq!((names.len(), codes.len()), (QUEUE_OPTIONS.len(), QUEUE_OPTIONS.len()));
    }
}

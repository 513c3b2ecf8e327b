//! Every option that an argument of a declaration sets, defined once: name, type, bounds, number in
//! records. Protocols, the HTTP API, the command line, records, comparisons and docs follow these
//! tables.

use crate::interface::refusal::DifferentOption;
use crate::{Durability, ExchangeKind, ExchangeOptions, Overflow, QueueOptions, QueueType, Value};
use std::borrow::Cow;
use std::time::Duration;

/// The longest time span that can be asked for: ten years.
pub const MILLIS_MAX: u64 = 315_360_000_000;
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
    /// A time span in whole milliseconds, at most [`MILLIS_MAX`].
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
    /// Its name, in words joined by `-`. Others derive theirs from it: `x-NAME` in arguments, `--NAME`
    /// on the command line, with `_` for `-` in JSON.
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
    pub(crate) fn check(self, value: &Value) -> Result<(), String> {
        match (self, value) {
            (OptionType::Count { min, max }, Value::Int(value)) => check_bounds(*value, min, max),
            (OptionType::Millis { min }, Value::Int(value)) => {
                check_bounds(*value, min, MILLIS_MAX as i64)
            }
            (OptionType::Text | OptionType::Choice(_), Value::Text(text))
                if text.len() > TEXT_BYTES_MAX =>
            {
                Err(format!("is longer than {TEXT_BYTES_MAX} bytes"))
            }
            (OptionType::Choice(names), Value::Text(text)) if !names.contains(&text.as_str()) => {
                Err(format!("'{text}' is none of {}", names.join(", ")))
            }
            (OptionType::Text | OptionType::Choice(_), Value::Text(_))
            | (OptionType::Flag, Value::Bool(_)) => Ok(()),
            (OptionType::Text | OptionType::Choice(_), _) => Err("must be a string".to_owned()),
            (OptionType::Flag, _) => Err("must be true or false".to_owned()),
            (OptionType::Count { .. } | OptionType::Millis { .. }, _) => {
                Err("must be an integer".to_owned())
            }
        }
    }
}

fn check_bounds(value: i64, min: i64, max: i64) -> Result<(), String> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(match value {
        ..0 => format!("{value} is negative"),
        _ if value < min => format!("{value} is less than {min}"),
        _ => format!("{value} is not between {min} and {max}"),
    })
}

/// A whole number from 0.
const COUNT: OptionType = OptionType::Count { min: 0, max: i64::MAX };

/// The options, each with its number in records, its name, and the field that has its value.
macro_rules! options {
    ($($code:literal $name:literal $field:ident: $kind:expr, $what:literal;)+) => {
        &[$(OptionDefinition {
            name: $name,
            what: $what,
            kind: $kind,
            code: $code,
            get: |options| options.$field.shown(),
            set: |options, value| options.$field = Field::of(value),
        }),+]
    };
}

/// The options of queues.
pub const QUEUE_OPTIONS: &[OptionDefinition<QueueOptions>] = options! {
    1 "durability" durability: OptionType::Choice(Durability::NAMES),
        "how well its persistent messages are kept";
    2 "message-ttl" message_ttl: OptionType::Millis { min: 0 },
        "time to live of its messages, in milliseconds";
    3 "expires" expires: OptionType::Millis { min: 1 },
        "it is deleted after this long without use, in milliseconds";
    4 "max-length" length_max: COUNT, "most messages ready in it";
    5 "max-length-bytes" bytes_max: COUNT, "most payload bytes ready in it";
    6 "overflow" overflow: OptionType::Choice(Overflow::NAMES), "what happens beyond those";
    7 "dead-letter-exchange" dead_letter_exchange: OptionType::Text, "where dead letters go";
    8 "dead-letter-routing-key" dead_letter_routing_key: OptionType::Text,
        "with which routing key; their own without it";
    9 "max-priority" priority_max: OptionType::Count { min: 0, max: 255 },
        "highest priority it tells apart";
    10 "single-active-consumer" single_active: OptionType::Flag,
        "one of its consumers gets everything until it goes";
    11 "delivery-limit" delivery_limit: OptionType::Count { min: i64::MIN, max: i64::MAX },
        "requeues after which a message is dead-lettered; negative: no limit";
    12 "consumer-timeout" settle_timeout: OptionType::Millis { min: 1 },
        "how long a delivery may stay unsettled before its channel is closed, in milliseconds";
    13 "queue-type" queue_type: OptionType::Choice(QueueType::NAMES),
        "what its declarer asks for; all types are kept on one node";
    14 "message-groups" message_groups: OptionType::Flag,
        "messages of one group (JMSXGroupID) go to the same consumer, in order";
};

/// The options of exchanges.
pub const EXCHANGE_OPTIONS: &[OptionDefinition<ExchangeOptions>] = options! {
    1 "alternate-exchange" alternate: OptionType::Text, "where messages go that it leads nowhere";
};

/// A field that an option sets.
trait Field {
    /// Its value; `None`: the default.
    fn shown(&self) -> Option<Value>;
    /// What a value of the option's type sets it to.
    fn of(value: &Value) -> Self;
}

impl Field for bool {
    fn shown(&self) -> Option<Value> {
        self.then_some(Value::Bool(true))
    }

    fn of(value: &Value) -> bool {
        *value == Value::Bool(true)
    }
}

impl Field for Option<String> {
    fn shown(&self) -> Option<Value> {
        self.clone().map(Value::Text)
    }

    fn of(value: &Value) -> Option<String> {
        value.as_text().map(str::to_owned)
    }
}

impl Field for Option<Duration> {
    fn shown(&self) -> Option<Value> {
        self.map(|span| Value::Int(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    fn of(value: &Value) -> Option<Duration> {
        <Option<u64>>::of(value).map(Duration::from_millis)
    }
}

macro_rules! number_fields {
    ($($type:ty)+) => { $(
        /// None where the number is negative; at most what fits.
        impl Field for Option<$type> {
            fn shown(&self) -> Option<Value> {
                self.map(|number| Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
            }

            fn of(value: &Value) -> Option<$type> {
                let number = value.as_int().filter(|number| *number >= 0)?;
                Some(<$type>::try_from(number).unwrap_or(<$type>::MAX))
            }
        }
    )+ };
}

number_fields!(u8 u64);

/// A limit: negative, or more than fits, is no limit, which is not the same as none of its own.
impl Field for Option<u32> {
    fn shown(&self) -> Option<Value> {
        self.map(|limit| Value::Int(if limit == u32::MAX { -1 } else { limit.into() }))
    }

    fn of(value: &Value) -> Option<u32> {
        Some(value.as_int()?.try_into().unwrap_or(u32::MAX))
    }
}

/// Gives an enum's variants names, in the order of their numbers in records.
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
            #[allow(dead_code, reason = "few are recorded by number")]
            pub(crate) fn numbered(number: u8) -> Option<$type> {
                $type::ALL.get(number as usize).copied()
            }
        }
    };
}

pub(crate) use named;

named!(Overflow: DropHead = "drop-head", RejectPublish = "reject-publish",
    RejectPublishDeadLetter = "reject-publish-dlx");
named!(QueueType: Classic = "classic", Quorum = "quorum");
named!(Durability: Flushed = "flushed", Buffered = "buffered", Memory = "memory");
named!(ExchangeKind: Direct = "direct", Fanout = "fanout", Topic = "topic", Headers = "headers",
    Filtered = "filtered");

macro_rules! choice_fields {
    ($($type:ty)+) => { $(
        impl Field for $type {
            fn shown(&self) -> Option<Value> {
                (*self != <$type>::default()).then(|| text(self.name()))
            }

            fn of(value: &Value) -> $type {
                value.as_text().and_then(<$type>::named).unwrap_or_default()
            }
        }
    )+ };
}

choice_fields!(Overflow Durability QueueType);

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

impl QueueOptions {
    /// The first option in which a declaration differs from that of the queue that exists. Arguments that
    /// set no option are not compared.
    pub(crate) fn difference(&self, received: &QueueOptions) -> Option<DifferentOption> {
        let fixed = |it: &QueueOptions| {
            let flags = [("durable", it.durable), ("auto_delete", it.auto_delete)];
            flags.map(|(name, flag)| (name, Value::Bool(flag)))
        };
        let mut all = compared(QUEUE_OPTIONS, fixed, self, received);
        all.find(|option| option.received != option.current)
    }
}

impl ExchangeOptions {
    /// The first option in which a declaration differs from that of the exchange that exists.
    pub(crate) fn difference(&self, received: &ExchangeOptions) -> Option<DifferentOption> {
        let fixed = |it: &ExchangeOptions| {
            // A delaying exchange is a type of its own over another.
            let base = it.kind.name();
            [
                ("type", text(if it.delaying { "delayed-message" } else { base })),
                ("durable", Value::Bool(it.durable)),
                ("auto_delete", Value::Bool(it.auto_delete)),
                ("internal", Value::Bool(it.internal)),
                ("delayed-type", text(base)),
            ]
        };
        let mut all = compared(EXCHANGE_OPTIONS, fixed, self, received);
        all.find(|option| option.received != option.current)
    }
}

/// All options with both values, in the order in which they are compared: those that no argument sets,
/// which `fixed` lists, then those of the table.
fn compared<O, const N: usize>(
    table: &'static [OptionDefinition<O>],
    fixed: fn(&O) -> [(&'static str, Value); N],
    current: &O,
    received: &O,
) -> impl Iterator<Item = DifferentOption> {
    let fixed = fixed(received).into_iter().zip(fixed(current));
    let fixed = fixed.map(|((name, received), (_, current))| (name, Some(received), Some(current)));
    let set = table.iter().map(|it| (it.name, it.get(received), it.get(current)));
    fixed.chain(set).map(|(name, received, current)| {
        let name = Cow::Borrowed(name);
        DifferentOption { name, received, current }
    })
}

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
        check("delivery-limit", Value::Int(7), Ok(Some(Value::Int(7))));
        check("delivery-limit", Value::Int(-5), Ok(Some(Value::Int(-1))));
        check("delivery-limit", Value::Int(1 << 40), Ok(Some(Value::Int(-1))));
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

    #[test]
    fn the_first_difference_is_found() {
        let plain = QueueOptions::default;
        assert_eq!(plain().difference(&plain()), None);
        let declared = QueueOptions { length_max: Some(6), single_active: true, ..plain() };
        let found = plain().difference(&declared).unwrap();
        let expected = DifferentOption {
            name: "max-length".into(),
            received: Some(Value::Int(6)),
            current: None,
        };
        assert_eq!(found, expected);
    }
}

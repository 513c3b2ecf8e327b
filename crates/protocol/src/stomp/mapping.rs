//! Where STOMP's words meet the engine's: what headers of SEND and SUBSCRIBE say of queues.

use super::codec::Headers;
use super::fault::Fault;
use super::frame::unescaped;
use angarium_engine::selector::{Filter, ParseOptions};
use angarium_engine::{OptionType, QUEUE_OPTIONS, QueueOptions, Value};

/// Headers with the name of a durable subscription: Artemis's and ActiveMQ's.
pub(super) const SUBSCRIPTION_NAMES: [&str; 3] =
    ["durable-subscriber-name", "durable-subscription-name", "activemq.subscriptionName"];
/// Headers that say that a subscription is durable.
pub(super) const DURABLE: [&str; 2] = ["durable", "persistent"];

/// What headers say of a queue.
#[derive(Debug, Default)]
pub(super) struct QueueHeaders {
    /// The options of `x-…` headers.
    pub(super) options: QueueOptions,
    /// There are some.
    pub(super) has_options: bool,
    pub(super) durable: Option<bool>,
    pub(super) auto_delete: Option<bool>,
    pub(super) exclusive: Option<bool>,
    /// The name of a queue that is made for a subscription.
    pub(super) name: Option<String>,
}

impl QueueHeaders {
    /// Reads headers; `is_subscription`: `persistent` speaks of the queue.
    pub(super) fn read(
        headers: &Headers<'_>,
        is_subscription: bool,
    ) -> Result<QueueHeaders, Fault> {
        let mut read = QueueHeaders::default();
        for (name, value) in headers.raw() {
            let flag = match name {
                b"durable" => &mut read.durable,
                b"persistent" if is_subscription => &mut read.durable,
                b"auto-delete" => &mut read.auto_delete,
                b"exclusive" => &mut read.exclusive,
                b"x-queue-name" => {
                    read.name.get_or_insert(unescaped(value, headers.version())?.into_owned());
                    continue;
                }
                _ => {
                    if let Some(option) = name.strip_prefix(b"x-") {
                        read.option(option, &unescaped(value, headers.version())?)?;
                    }
                    continue;
                }
            };
            if flag.is_none() {
                *flag = truth(&unescaped(value, headers.version())?);
            }
        }
        Ok(read)
    }

    /// Takes the header `x-` and this, if it is an option of queues.
    fn option(&mut self, name: &[u8], value: &str) -> Result<(), Fault> {
        let found = QUEUE_OPTIONS.iter().find(|option| option.name.as_bytes() == name);
        let Some(option) = found else { return Ok(()) };
        if option.name == "queue-type" && value == "stream" {
            let text = "NOT_IMPLEMENTED - queues of type stream are not offered";
            return Err(Fault::new("not_implemented", text));
        }
        let read = match option.kind {
            OptionType::Flag => truth(value).map(Value::Bool),
            OptionType::Count { .. } | OptionType::Millis { .. } => {
                value.trim().parse().ok().map(Value::Int)
            }
            OptionType::Text | OptionType::Choice(_) => Some(Value::Text(value.to_owned())),
        };
        self.has_options = true;
        // What is of another type is refused as that.
        let read = read.unwrap_or_else(|| Value::Text(value.to_owned()));
        option.set(&mut self.options, &read).map_err(|why| {
            let text = format!("PRECONDITION_FAILED - invalid header 'x-{}': {why}", option.name);
            Fault::new("precondition_failed", text)
        })
    }

    /// The headers say anything of what the queue is to be like.
    pub(super) fn is_explicit(&self) -> bool {
        let flags = [self.durable, self.auto_delete, self.exclusive];
        self.has_options || flags.iter().any(Option::is_some)
    }

    /// What the queue of a destination is declared with.
    pub(super) fn of_queue(&self) -> QueueOptions {
        self.with_defaults(QueueDefaults { durable: true, auto_delete: false, exclusive: false })
    }

    /// What the queue of a subscription to an exchange is declared with.
    pub(super) fn of_subscription(&self) -> QueueOptions {
        let exclusive = self.name.is_none() && self.durable != Some(true);
        self.with_defaults(QueueDefaults { durable: false, auto_delete: true, exclusive })
    }

    fn with_defaults(&self, defaults: QueueDefaults) -> QueueOptions {
        let exclusive = self.exclusive.unwrap_or(defaults.exclusive);
        QueueOptions {
            // A queue that goes with its connection does not outlive the broker.
            durable: self.durable.unwrap_or(defaults.durable) && !exclusive,
            auto_delete: self.auto_delete.unwrap_or(defaults.auto_delete),
            exclusive,
            ..self.options.clone()
        }
    }
}

struct QueueDefaults {
    durable: bool,
    auto_delete: bool,
    exclusive: bool,
}

/// A truth value, as all libraries write it; `None`: it is none.
pub(super) fn truth(text: &str) -> Option<bool> {
    let text = text.trim();
    [(true, "true"), (false, "false")]
        .into_iter()
        .find_map(|(value, name)| text.eq_ignore_ascii_case(name).then_some(value))
}

/// Whether any of these headers is `true`.
pub(super) fn is_true(headers: &Headers<'_>, names: &[&str]) -> Result<bool, Fault> {
    for name in names {
        if let Some(value) = headers.get(name)? {
            return Ok(truth(&value) == Some(true));
        }
    }
    Ok(false)
}

/// The first of these headers that is there.
pub(super) fn first_of(headers: &Headers<'_>, names: &[&str]) -> Result<Option<String>, Fault> {
    for name in names {
        if let Some(value) = headers.get(name)? {
            return Ok(Some(value.into_owned()));
        }
    }
    Ok(None)
}

/// The first of these headers that is there, as a number.
pub(super) fn number_of(headers: &Headers<'_>, names: &[&str]) -> Result<Option<i64>, Fault> {
    for name in names {
        let Some(value) = headers.get(name)? else { continue };
        let number = value.trim().parse().map_err(|_| {
            Fault::new(
                "Malformed frame",
                format!("header '{name}' is '{value}', which is no number"),
            )
        });
        return number.map(Some);
    }
    Ok(None)
}

/// The selector of a subscription.
pub(super) fn filter(headers: &Headers<'_>) -> Result<Option<Filter>, Fault> {
    let Some(text) = headers.get("selector")?.filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    let filter = Filter::parse(&text, &ParseOptions::default());
    filter.map(Some).map_err(|error| {
        Fault::new("Invalid selector", format!("selector '{text}' is not valid: {error}"))
    })
}

//! `angarium consume`: prints messages as they come, and settles them once they are printed.

use super::amqp::{Client, Event, Message, Target};
use super::output;
use angarium_protocol::amqp091::codec::table::put_table;
use angarium_protocol::amqp091::codec::wire::Reader;
use angarium_protocol::amqp091::codec::{FieldValue, Method, Properties, Table};
use clap::Args;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// Unsettled messages at once.
const PREFETCH: u16 = 200;
/// Bytes of output that are printed at once.
const BATCH_BYTES_MAX: usize = 64 << 10;

const EXAMPLES: &str = "Examples:
  angarium consume hello
  angarium consume hello --count 10 --json
  angarium consume hello --idle 1 --peek";

/// Prints a queue's messages, one a line, and settles them.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Consume {
    #[command(flatten)]
    target: Target,
    /// The queue
    queue: String,
    /// Declare the queue first: durable, without arguments
    #[arg(long)]
    declare: bool,
    /// End after this number of messages
    #[arg(long, short)]
    count: Option<u64>,
    /// End when no message came for this time
    #[arg(long, value_name = "SECONDS")]
    idle: Option<f64>,
    /// Messages per second, at most
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Show the messages and leave them in the queue as they are
    #[arg(long)]
    peek: bool,
    /// Print one JSON object a message, with properties
    #[arg(long)]
    json: bool,
}

/// Carries it out.
pub(super) fn run(arguments: &Consume) -> Result<(), String> {
    let mut client = Client::connect(&arguments.target)?;
    if arguments.peek && !client.can_browse {
        return Err("--peek: this broker cannot show messages and leave them as they are".into());
    }
    if arguments.declare {
        client.declare(&arguments.queue)?;
    }
    let most = arguments.count.unwrap_or(u64::MAX);
    let prefetch_count = u16::try_from(most).unwrap_or(u16::MAX).clamp(1, PREFETCH);
    if !arguments.peek {
        client.put(&Method::BasicQos { prefetch_size: 0, prefetch_count, global: false });
        client.expect("basic.qos-ok")?;
    }
    consume(&mut client, &arguments.queue, arguments.peek);
    client.flush()?;
    let idle = arguments.idle.map(Duration::try_from_secs_f64).transpose();
    let idle = idle.map_err(|_| "--idle: expected seconds, such as 0.5")?;
    let started = Instant::now();
    let mut printed = 0;
    let mut batch = Batch::default();
    while printed < most {
        // What came together is printed and settled together, before more is waited for.
        let is_due = !client.has_message() || batch.lines.len() > BATCH_BYTES_MAX;
        if is_due && !batch.finish(&mut client)? {
            break;
        }
        let message = match client.next(idle.map(|idle| Instant::now() + idle))? {
            Some(Event::Delivered(message)) => message,
            Some(Event::Cancelled) => return Err("the queue is gone".into()),
            Some(_) => continue,
            None => break,
        };
        if let Some(rate) = arguments.rate {
            let due = started + Duration::from_secs_f64(printed as f64 / f64::from(rate));
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        batch.add(&message, arguments.json, !arguments.peek);
        printed += 1;
        if arguments.rate.is_some() && !batch.finish(&mut client)? {
            break;
        }
    }
    batch.finish(&mut client)?;
    client.close()
}

/// Begins to consume, or to browse.
fn consume(client: &mut Client, queue: &str, peek: bool) {
    let mut entries = Vec::new();
    put_table(&mut entries, |table| {
        if peek {
            table.bool("x-browse", true);
        }
    });
    client.put(&Method::BasicConsume {
        ticket: 0,
        queue,
        consumer_tag: "",
        no_local: false,
        no_ack: peek,
        exclusive: false,
        no_wait: true,
        arguments: Table::read(&mut Reader::new(&entries)).unwrap_or_default(),
    });
}

/// Messages that are neither printed nor settled yet.
#[derive(Default)]
struct Batch {
    lines: Vec<u8>,
    /// The last one, where they are to be settled.
    delivery_tag: Option<u64>,
}

impl Batch {
    fn add(&mut self, message: &Message, as_json: bool, is_settled: bool) {
        if as_json {
            self.lines.extend_from_slice(described(message).to_string().as_bytes());
        } else {
            self.lines.extend_from_slice(&message.body);
        }
        self.lines.push(b'\n');
        self.delivery_tag = is_settled.then_some(message.delivery_tag);
    }

    /// Prints them, then settles them; says whether the output still has a reader. What was not printed stays
    /// in the queue.
    fn finish(&mut self, client: &mut Client) -> Result<bool, String> {
        if self.lines.is_empty() {
            return Ok(true);
        }
        if !output::put(&self.lines)? {
            return Ok(false);
        }
        self.lines.clear();
        if let Some(delivery_tag) = self.delivery_tag.take() {
            client.put(&Method::BasicAck { delivery_tag, multiple: true });
            client.flush()?;
        }
        Ok(true)
    }
}

/// A message with all that is known about it.
fn described(message: &Message) -> Value {
    let mut all = json!({
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "redelivered": message.redelivered,
    });
    match std::str::from_utf8(&message.body) {
        Ok(text) => all["body"] = text.into(),
        Err(_) => {
            use base64::Engine as _;
            all["body_base64"] = base64::prelude::BASE64_STANDARD.encode(&message.body).into();
        }
    }
    let Ok(properties) = Properties::decode(&message.properties) else { return all };
    let text = |text: Option<&str>| text.map(Value::from);
    for (name, value) in [
        ("content_type", text(properties.content_type)),
        ("correlation_id", text(properties.correlation_id)),
        ("reply_to", text(properties.reply_to)),
        ("expiration", text(properties.expiration)),
        ("message_id", text(properties.message_id)),
        ("persistent", properties.delivery_mode.map(|mode| (mode == 2).into())),
        ("priority", properties.priority.map(Value::from)),
        ("headers", properties.headers.map(table)),
    ] {
        if let Some(value) = value {
            all[name] = value;
        }
    }
    all
}

fn table(headers: Table<'_>) -> Value {
    let entries = headers.entries().map(|entry| (entry.name.to_owned(), field(&entry.value)));
    Value::Object(entries.collect::<Map<String, Value>>())
}

fn field(value: &FieldValue<'_>) -> Value {
    match value {
        FieldValue::Void => Value::Null,
        FieldValue::Bool(value) => (*value).into(),
        FieldValue::Int(value) => (*value).into(),
        FieldValue::Float(value) => (*value).into(),
        FieldValue::Decimal { scale, value } => {
            (f64::from(*value) / 10f64.powi(i32::from(*scale))).into()
        }
        FieldValue::LongStr(bytes) | FieldValue::Bytes(bytes) => {
            String::from_utf8_lossy(bytes).into_owned().into()
        }
        FieldValue::Timestamp(seconds) => (*seconds).into(),
        FieldValue::Array(items) => items.values().map(|item| field(&item)).collect(),
        FieldValue::Table(entries) => table(*entries),
    }
}

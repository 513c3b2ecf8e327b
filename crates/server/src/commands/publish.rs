//! `angarium publish`: sends messages from arguments or lines, and waits until they are safe.

use super::amqp::{Client, Event, Target};
use super::output;
use angarium_protocol::amqp091::codec::{Method, Properties};
use clap::Args;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::BufRead;
use std::time::{Duration, Instant};

/// Publishes not yet confirmed at once.
const WINDOW: usize = 1_000;
/// Unsent output from which on it is sent.
const OUTPUT_BYTES: usize = 64 << 10;
/// How long a confirm may take.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(60);

const EXAMPLES: &str = "Examples:
  angarium publish --queue hello --declare 'good day'
  seq 1000 | angarium publish --queue numbers --rate 100
  angarium publish --exchange amq.topic --key orders.new '{\"id\": 1}' --count 10 --json";

/// Publishes messages and waits until they are safe.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Publish {
    #[command(flatten)]
    target: Target,
    /// Messages; without any, each line of standard input is one
    #[arg(value_name = "MESSAGE")]
    messages: Vec<String>,
    /// To this queue, through the default exchange
    #[arg(long, short, conflicts_with_all = ["exchange", "key"])]
    queue: Option<String>,
    /// To this exchange
    #[arg(long, short, default_value = "")]
    exchange: String,
    /// With this routing key
    #[arg(long, short, default_value = "")]
    key: String,
    /// Declare the queue first: durable, without arguments
    #[arg(long, requires = "queue")]
    declare: bool,
    /// Not to survive a restart
    #[arg(long)]
    transient: bool,
    /// Publish all messages this often
    #[arg(long, short, default_value_t = 1)]
    count: u64,
    /// Messages per second, at most
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Content type, such as application/json
    #[arg(long)]
    content_type: Option<String>,
    /// Print a JSON object with the totals
    #[arg(long)]
    json: bool,
}

/// What became of what was published.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    published: u64,
    confirmed: u64,
    refused: u64,
    returned: u64,
}

/// Carries it out.
pub(super) fn run(arguments: &Publish) -> Result<(), String> {
    let mut client = Client::connect(&arguments.target)?;
    if let (Some(queue), true) = (&arguments.queue, arguments.declare) {
        client.declare(queue)?;
    }
    client.put(&Method::ConfirmSelect { no_wait: false });
    client.expect("confirm.select-ok")?;
    let (totals, outstanding, started) = (Totals::default(), BTreeSet::new(), Instant::now());
    let (blocked, why_refused) = (None, None);
    let mut publisher =
        Publisher { client, totals, blocked, why_refused, outstanding, arguments, started };
    if arguments.messages.is_empty() {
        for line in std::io::stdin().lock().lines() {
            let line = line.map_err(|error| format!("standard input: {error}"))?;
            for _ in 0..arguments.count {
                publisher.publish(line.as_bytes())?;
            }
        }
    } else {
        for _ in 0..arguments.count {
            for message in &arguments.messages {
                publisher.publish(message.as_bytes())?;
            }
        }
    }
    publisher.finish()
}

struct Publisher<'a> {
    client: Client,
    totals: Totals,
    /// Why the broker takes no messages now.
    blocked: Option<String>,
    /// Why it took none when it refused some; it says so before it refuses them.
    why_refused: Option<String>,
    /// Numbers of publishes that are neither confirmed nor refused.
    outstanding: BTreeSet<u64>,
    arguments: &'a Publish,
    started: Instant,
}

impl Publisher<'_> {
    fn publish(&mut self, body: &[u8]) -> Result<(), String> {
        self.pace()?;
        let arguments = self.arguments;
        let (exchange, key) = match &arguments.queue {
            Some(queue) => ("", queue.as_str()),
            None => (arguments.exchange.as_str(), arguments.key.as_str()),
        };
        let properties = Properties {
            content_type: arguments.content_type.as_deref(),
            delivery_mode: Some(if arguments.transient { 1 } else { 2 }),
            ..Properties::default()
        };
        self.client.put_message(exchange, key, &properties, body);
        self.totals.published += 1;
        self.outstanding.insert(self.totals.published);
        if self.client.unsent() >= OUTPUT_BYTES {
            self.client.flush()?;
        }
        while self.outstanding.len() >= WINDOW {
            self.client.flush()?;
            self.take(Instant::now() + CONFIRM_TIMEOUT)?;
        }
        Ok(())
    }

    /// Waits until the next message is due, taking confirms meanwhile.
    fn pace(&mut self) -> Result<(), String> {
        let Some(rate) = self.arguments.rate else { return Ok(()) };
        let after = self.totals.published as f64 / f64::from(rate);
        let due = self.started + Duration::from_secs_f64(after);
        while Instant::now() < due {
            self.client.flush()?;
            if let Some(event) = self.client.next(Some(due))? {
                self.note(event);
            }
        }
        Ok(())
    }

    fn take(&mut self, until: Instant) -> Result<(), String> {
        if let Some(event) = self.client.next(Some(until))? {
            self.note(event);
            return Ok(());
        }
        let why = self.blocked.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        Err(format!(
            "the broker does not confirm{why} (see `angarium status` and the broker's log)"
        ))
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Confirmed { number, multiple, accepted } => {
                let count = if multiple {
                    let later = self.outstanding.split_off(&(number + 1));
                    std::mem::replace(&mut self.outstanding, later).len() as u64
                } else {
                    u64::from(self.outstanding.remove(&number))
                };
                let Totals { confirmed, refused, .. } = &mut self.totals;
                let total = if accepted { confirmed } else { refused };
                *total += count;
                if !accepted && self.blocked.is_some() {
                    self.why_refused.clone_from(&self.blocked);
                }
            }
            Event::Blocked(why) => self.blocked = why,
            Event::Returned { code, text } => {
                if self.totals.returned == 0 {
                    output::complain(&format!("a message was returned: {code} {text}"));
                }
                self.totals.returned += 1;
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Result<(), String> {
        self.client.flush()?;
        while !self.outstanding.is_empty() {
            self.take(Instant::now() + CONFIRM_TIMEOUT)?;
        }
        self.client.close()?;
        let Totals { published, confirmed, refused, returned } = self.totals;
        let seconds = self.started.elapsed().as_secs_f64();
        let text = if self.arguments.json {
            let totals = json!({
                "published": published, "confirmed": confirmed, "refused": refused,
                "returned": returned, "seconds": seconds,
            });
            format!("{totals}\n")
        } else {
            format!("published {published}, confirmed {confirmed}, in {seconds:.3} s\n")
        };
        output::put(text)?;
        self.totals.complaint(self.why_refused.as_deref()).map_or(Ok(()), Err)
    }
}

impl Totals {
    /// What to say about messages that were not taken. `why`: why the broker took none.
    fn complaint(self, why: Option<&str>) -> Option<String> {
        let refused = match why {
            Some(why) => format!("refused: {why} (see `angarium status` and the broker's log)"),
            None => "refused: a queue is full or more than its owner may store (see `angarium queue list` \
                     and `angarium user list`)"
                .to_owned(),
        };
        let returned = "returned: no queue takes them (see `angarium binding list`, or declare a queue \
                        with --queue NAME --declare)";
        let all = [(self.refused, &*refused), (self.returned, returned)];
        let some = all.into_iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = some.map(|(count, what)| format!("{count} {what}")).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_and_what_is_returned_are_told_apart() {
        for (refused, returned, says) in [
            (0, 0, &[][..]),
            (2, 0, &["2 refused"]),
            (0, 3, &["3 returned"]),
            (2, 3, &["2 r", "3 r"]),
        ] {
            let totals = Totals { published: 5, confirmed: 0, refused, returned };
            let complaint = totals.complaint(None).unwrap_or_default();
            assert_eq!(complaint.is_empty(), says.is_empty(), "{complaint}");
            assert!(says.iter().all(|part| complaint.contains(part)), "{complaint}");
            assert_eq!(complaint.contains("refused"), refused > 0, "{complaint}");
            assert_eq!(complaint.contains("returned"), returned > 0, "{complaint}");
        }
    }
}

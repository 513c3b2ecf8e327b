//! How fast counters grow: those of the broker, and of queues unless there are very many, looked at every
//! some seconds.

use super::super::listings::{self, Part};
use super::super::mailboxes::Mailboxes;
use super::super::measured::{Measured, measured};
use crate::reactor::{Gone, Shard};
use angarium_engine::QueueCounters;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often counters are looked at.
const PERIOD: Duration = Duration::from_secs(5);
/// Places of queues up to which single queues have rates.
const QUEUE_PLACES_MAX: usize = 1_024;

/// What messages did, as counters: RabbitMQ's name of each, and its value.
pub(super) type Counts = Vec<(&'static str, u64)>;

/// A queue, by virtual host and name.
type QueueName = (String, String);
type Growth = HashMap<&'static str, f64>;

/// The rates of now; clones are the same.
#[derive(Clone, Debug)]
pub(in super::super) struct Rates {
    samples: Arc<Mutex<Samples>>,
    /// When the broker began to serve here.
    pub(super) began: Instant,
}

#[derive(Debug, Default)]
struct Samples {
    at: Option<Instant>,
    last: Sample,
    broker: Growth,
    queues: HashMap<QueueName, Growth>,
}

#[derive(Debug, Default)]
struct Sample {
    broker: Counts,
    queues: HashMap<QueueName, Counts>,
}

impl Rates {
    /// None yet.
    pub(in super::super) fn new() -> Rates {
        Rates { samples: Arc::default(), began: Instant::now() }
    }

    /// Looks at counters until the broker ends.
    pub(in super::super) async fn measure(self, mailboxes: Mailboxes) {
        while let Ok(sample) = sample(&mailboxes).await {
            self.lock().take(sample, Instant::now());
            tokio::time::sleep(PERIOD).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counters of the broker with their rates, as `message_stats` has them.
    pub(super) fn of_broker(&self, counts: &Counts) -> Map<String, Value> {
        with_rates(counts, &self.lock().broker)
    }

    /// Those of a queue.
    pub(super) fn of_queue(&self, vhost: &str, name: &str, counts: &Counts) -> Map<String, Value> {
        let none = HashMap::new();
        let samples = self.lock();
        let rates = samples.queues.get(&(vhost.to_owned(), name.to_owned()));
        with_rates(counts, rates.unwrap_or(&none))
    }
}

fn with_rates(counts: &Counts, rates: &Growth) -> Map<String, Value> {
    let pairs = counts.iter().flat_map(|(name, count)| {
        let rate = rates.get(name).copied().unwrap_or(0.0);
        [((*name).to_owned(), json!(count)), (format!("{name}_details"), json!({ "rate": rate }))]
    });
    pairs.collect()
}

impl Samples {
    fn take(&mut self, sample: Sample, now: Instant) {
        let seconds = self.at.map(|at| now.duration_since(at).as_secs_f64());
        if let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) {
            self.broker = growth(&self.last.broker, &sample.broker, seconds);
            let queues = sample.queues.iter().filter_map(|(name, counts)| {
                let before = self.last.queues.get(name)?;
                Some((name.clone(), growth(before, counts, seconds)))
            });
            self.queues = queues.collect();
        }
        self.at = Some(now);
        self.last = sample;
    }
}

/// How fast each counter has grown; a length may have shrunk.
fn growth(before: &Counts, now: &Counts, seconds: f64) -> Growth {
    let grown = now.iter().filter_map(|(name, count)| {
        let (_, last) = before.iter().find(|(it, _)| it == name)?;
        Some((*name, (*count as f64 - *last as f64) / seconds))
    });
    grown.collect()
}

async fn sample(mailboxes: &Mailboxes) -> Result<Sample, Gone> {
    let shards = mailboxes.ask_all(measured).await?;
    let home = mailboxes.home();
    let places = home.ask(|shard| shard.node.engine().queue_places()).await?;
    let mut broker = broker_counts(&shards);
    let queues = if places > QUEUE_PLACES_MAX {
        Vec::new()
    } else {
        listings::rows(std::slice::from_ref(home), queue_counts).await?
    };
    let queues: HashMap<QueueName, Counts> = queues.into_iter().collect();
    for (name, _) in lengths(0, 0) {
        let of_queue = |counts: &Counts| counts.iter().find(|(it, _)| *it == name).map(|it| it.1);
        broker.push((name, queues.values().filter_map(of_queue).sum()));
    }
    Ok(Sample { broker, queues })
}

fn queue_counts(shard: &mut Shard, places: Range<usize>) -> Part<(QueueName, Counts)> {
    let engine = shard.node.engine();
    let rows = engine.list_queues_in(places).map(|queue| {
        let mut counts = counts_of_queue(&queue.counters);
        counts.extend(lengths(queue.ready, queue.unsettled));
        ((queue.vhost.to_owned(), queue.name.to_owned()), counts)
    });
    Part { rows: rows.collect(), places: engine.queue_places() }
}

/// What has happened to messages of a queue.
pub(super) fn counts_of_queue(counters: &QueueCounters) -> Counts {
    vec![
        ("publish", counters.published),
        ("deliver_get", counters.delivered),
        ("ack", counters.accepted),
        ("redeliver", counters.requeued),
    ]
}

/// How many messages there are.
pub(super) fn lengths(ready: u64, unsettled: u64) -> [(&'static str, u64); 3] {
    let all = ready + unsettled;
    [("messages", all), ("messages_ready", ready), ("messages_unacknowledged", unsettled)]
}

/// What has happened to messages of the broker.
pub(super) fn broker_counts(shards: &[Measured]) -> Counts {
    let sum = |value: fn(&Measured) -> u64| shards.iter().map(value).sum::<u64>();
    let (unroutable, returned) = (sum(|it| it.engine.unroutable), sum(|it| it.engine.returned));
    vec![
        ("publish", sum(|it| it.engine.published)),
        ("confirm", sum(|it| it.engine.confirmed)),
        ("deliver_get", sum(|it| it.engine.delivered)),
        ("ack", sum(|it| it.engine.accepted)),
        ("redeliver", sum(|it| it.engine.requeued)),
        ("return_unroutable", returned),
        ("drop_unroutable", unroutable.saturating_sub(returned)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_differences_of_the_last_two_samples() {
        let began = Instant::now();
        let sample = |publish, queue| Sample {
            broker: vec![("publish", publish)],
            queues: HashMap::from([(("/".to_owned(), "q".to_owned()), vec![("messages", queue)])]),
        };
        let rates = Rates::new();
        let at = |seconds| began + Duration::from_secs(seconds);
        rates.lock().take(sample(10, 50), at(0));
        let shown = rates.of_broker(&vec![("publish", 10)]);
        assert_eq!(shown["publish_details"]["rate"], 0.0);
        rates.lock().take(sample(110, 40), at(5));
        let shown = rates.of_broker(&vec![("publish", 111)]);
        assert_eq!(shown["publish"], 111);
        assert_eq!(shown["publish_details"]["rate"], 20.0);
        let queue = rates.of_queue("/", "q", &vec![("messages", 40)]);
        assert_eq!(queue["messages_details"]["rate"], -2.0);
        let other = rates.of_queue("/", "other", &vec![("messages", 1)]);
        assert_eq!(other["messages_details"]["rate"], 0.0);
        rates.lock().take(Sample::default(), at(10));
        assert!(rates.lock().queues.is_empty(), "what is gone is forgotten");
    }
}

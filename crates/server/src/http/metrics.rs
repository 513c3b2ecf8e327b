//! Metrics in Prometheus' text format (OpenMetrics): looked up on the shards' threads, written on this one.

use super::api::Failure;
use super::auth::{self, Caller};
use super::listings;
use super::mailboxes::State;
use super::measured::{COUNTERS, GAUGES, Measured, measured, resident_bytes};
use super::rabbitmq::{self, Figures};
use super::views::{self, QueueView};
use crate::reactor::Shard;
use crate::settings::MetricsAccess;
use angarium_engine::{DiscardReason, MemoryKind};
use angarium_journal::State as Journal;
use angarium_node::SpillLoss;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::collections::HashMap;
use std::fmt;

const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers `/metrics`.
pub(super) async fn metrics(
    axum::extract::State(state): axum::extract::State<State>,
    axum::Extension(caller): axum::Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    page(&state, caller, &headers, false).await
}

/// Answers `/metrics/per-object`: queues one by one under RabbitMQ's names too, to those who may see them.
pub(super) async fn per_object(
    axum::extract::State(state): axum::extract::State<State>,
    axum::Extension(caller): axum::Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    page(&state, caller, &headers, true).await
}

async fn page(state: &State, caller: Caller, headers: &HeaderMap, per_object: bool) -> Response {
    let page = async {
        let shows_names = may_see_names(state, caller, headers).await?;
        if per_object && !shows_names {
            let text =
                "queues are shown to administrators and the users of the setting metrics-users";
            return Err(Failure::new(StatusCode::UNAUTHORIZED, text));
        }
        let shards = state.mailboxes.ask_all(measured).await?;
        let look = |shard: &mut Shard, places| views::queues(shard, places, None);
        let queues = listings::rows(std::slice::from_ref(state.mailboxes.home()), look).await?;
        let memory_max = state.mailboxes.home().ask(|shard| shard.node.memory_limits().all).await?;
        let channels = listings::rows(state.mailboxes.all(), rabbitmq::channels).await?;
        let channels = channels.into_iter().sum();
        let resident_bytes = resident_bytes();
        let scrape = Scrape {
            shards,
            queues,
            channels,
            shows_names,
            per_object,
            resident_bytes,
            memory_max,
        };
        Ok::<_, Failure>(([(CONTENT_TYPE, FORMAT)], scrape.written()))
    };
    page.await.map_or_else(auth::challenge, IntoResponse::into_response)
}

/// Whether a caller sees each queue with its name, or totals alone; the error: it may not see metrics.
pub(super) async fn may_see_names(
    state: &State,
    caller: Caller,
    headers: &HeaderMap,
) -> Result<bool, Failure> {
    let settings = &state.settings;
    let Caller::Remote(address) = caller else { return Ok(true) };
    match settings.metrics_access {
        MetricsAccess::Open => return Ok(true),
        MetricsAccess::Totals if !headers.contains_key(AUTHORIZATION) => return Ok(false),
        MetricsAccess::Totals | MetricsAccess::Users => {}
    }
    let user = auth::log_in(state, address, headers).await?;
    let may = user.is_administrator || settings.metrics_users.contains(&user.name);
    let text = "only administrators and the users of the setting metrics-users may";
    if may { Ok(true) } else { Err(Failure::new(StatusCode::FORBIDDEN, text)) }
}

/// One scrape.
#[derive(Debug)]
struct Scrape {
    /// Home's first.
    shards: Vec<Measured>,
    queues: Vec<QueueView>,
    channels: u64,
    /// Each queue is shown, and not only all together.
    shows_names: bool,
    /// Under RabbitMQ's names, too.
    per_object: bool,
    resident_bytes: u64,
    memory_max: u64,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, text, value) in COUNTERS {
            let family = encoder.encode_descriptor(name, text, None, MetricType::Counter)?;
            ConstCounter::new(self.sum(value)).encode(family)?;
        }
        for (name, text, value) in GAUGES {
            let family = encoder.encode_descriptor(name, text, None, MetricType::Gauge)?;
            ConstGauge::new(self.sum(value)).encode(family)?;
        }
        self.encode_spill_missed(&mut encoder)?;
        self.encode_discarded(&mut encoder)?;
        let (name, text) = ("angarium_memory_resident_bytes", "Memory of the process.");
        let family = encoder.encode_descriptor(name, text, None, MetricType::Gauge)?;
        ConstGauge::new(self.resident_bytes).encode(family)?;
        self.encode_held(&mut encoder)?;
        self.encode_journal(&mut encoder)?;
        self.encode_totals(&mut encoder)?;
        self.as_rabbitmq().encode(&mut encoder)?;
        if self.shows_names { self.encode_queues(&mut encoder) } else { Ok(()) }
    }
}

impl Scrape {
    /// The page.
    fn written(self) -> String {
        let mut page = String::with_capacity(8192 + self.queues.len() * 512);
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        encode(&mut page, &registry).expect("writing to a String succeeds");
        page
    }

    fn as_rabbitmq(&self) -> Figures<'_> {
        Figures {
            shards: &self.shards,
            queues: &self.queues,
            channels: self.channels,
            resident_bytes: self.resident_bytes,
            memory_max: self.memory_max,
            per_object: self.per_object,
        }
    }

    fn sum(&self, value: impl Fn(&Measured) -> u64) -> u64 {
        self.shards.iter().map(value).sum()
    }

    /// One series for each reason.
    fn encode_spill_missed(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (name, text) = ("angarium_spill_missed", "Missed though they were to be spooled.");
        let mut family = encoder.encode_descriptor(name, text, None, MetricType::Counter)?;
        for loss in SpillLoss::ALL {
            let messages = self.sum(|shard| shard.spill_missed[loss as usize]);
            let label = [("reason", loss.name())];
            ConstCounter::new(messages).encode(family.encode_family(&label)?)?;
        }
        Ok(())
    }

    /// One series for each kind of memory.
    fn encode_held(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (name, text) = ("angarium_memory_held_bytes", "Held for clients, by kind.");
        let mut family = encoder.encode_descriptor(name, text, None, MetricType::Gauge)?;
        for (kind, name) in MemoryKind::NAMES {
            let bytes = self.sum(|shard| shard.held.get(kind));
            ConstGauge::new(bytes).encode(family.encode_family(&[("kind", name)])?)?;
        }
        let (name, text) = ("angarium_memory_max_bytes", "What they may hold together.");
        let family = encoder.encode_descriptor(name, text, None, MetricType::Gauge)?;
        ConstGauge::new(self.memory_max).encode(family)
    }

    /// One series for each reason.
    fn encode_discarded(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (name, text) = ("angarium_messages_discarded", "Gone for good, by reason.");
        let mut family = encoder.encode_descriptor(name, text, None, MetricType::Counter)?;
        for reason in DiscardReason::ALL {
            let messages = self.sum(|shard| shard.engine.discarded.of(reason));
            let label = [("reason", reason.name())];
            ConstCounter::new(messages).encode(family.encode_family(&label)?)?;
        }
        Ok(())
    }

    /// One series for each queue and reason that there was.
    fn encode_discarded_by_queue(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (name, text) = ("angarium_queue_messages_discarded", "The same of single queues.");
        let mut family = encoder.encode_descriptor(name, text, None, MetricType::Counter)?;
        for queue in &self.queues {
            for (reason, messages) in queue.discarded.iter() {
                let (vhost, name) = (queue.vhost.as_str(), queue.name.as_str());
                let labels = [("vhost", vhost), ("queue", name), ("reason", reason.name())];
                ConstCounter::new(messages).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    /// One series for each state of the journal, 1 for the present one; and the times of its flushes.
    fn encode_journal(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let home = &self.shards[0];
        if let Some(state) = &home.state {
            let (name, text) =
                ("angarium_journal_state", "1 for the state that the journal is in.");
            let mut family = encoder.encode_descriptor(name, text, None, MetricType::Gauge)?;
            for (name, is_present) in [
                ("ready", *state == Journal::Ready),
                ("full", *state == Journal::Full),
                ("failed", matches!(state, Journal::Failed(_))),
            ] {
                let label = [("state", name)];
                ConstGauge::new(u64::from(is_present)).encode(family.encode_family(&label)?)?;
            }
        }
        let times = &home.reactor.flush_times;
        let text = "How long flushes of the journal took.";
        let name = "angarium_journal_flush_seconds";
        encoder.encode_descriptor(name, text, None, MetricType::Histogram)?.encode_histogram(
            times.sum_seconds(),
            times.total(),
            &times.buckets().collect::<Vec<_>>(),
            None::<&HashMap<usize, Exemplar<NoLabelSet, f64>>>,
        )
    }

    /// What all queues have together.
    fn encode_totals(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Value = fn(&QueueView) -> u64;
        let series: [(&str, &str, Value); 5] = [
            ("angarium_messages_ready", "Messages ready in all queues.", |queue| queue.ready),
            ("angarium_messages_unsettled", "Messages out and unsettled.", |it| it.unsettled),
            ("angarium_consumers", "Consumers of all queues.", |queue| queue.consumers),
            ("angarium_messages_ready_bytes", "Payload bytes ready.", |queue| queue.bytes),
            ("angarium_queues_stopped", "Queues stopped at unreadable data.", |queue| {
                u64::from(queue.stopped_at.is_some())
            }),
        ];
        for (name, text, value) in series {
            let family = encoder.encode_descriptor(name, text, None, MetricType::Gauge)?;
            ConstGauge::new(self.queues.iter().map(value).sum::<u64>()).encode(family)?;
        }
        Ok(())
    }

    fn encode_queues(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Value = fn(&QueueView) -> u64;
        let series: [(&str, &str, Value); 5] = [
            ("angarium_queue_messages_ready", "Messages ready in a queue.", |queue| queue.ready),
            ("angarium_queue_messages_unsettled", "Messages out and unsettled.", |q| q.unsettled),
            ("angarium_queue_consumers", "Consumers of a queue.", |queue| queue.consumers),
            ("angarium_queue_bytes", "Payload bytes ready in a queue.", |queue| queue.bytes),
            ("angarium_queue_stopped", "1 where a queue stopped at unreadable data.", |queue| {
                u64::from(queue.stopped_at.is_some())
            }),
        ];
        for (name, text, value) in series {
            let mut family = encoder.encode_descriptor(name, text, None, MetricType::Gauge)?;
            for queue in &self.queues {
                let labels = [("vhost", queue.vhost.as_str()), ("queue", queue.name.as_str())];
                ConstGauge::new(value(queue)).encode(family.encode_family(&labels)?)?;
            }
        }
        self.encode_discarded_by_queue(encoder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angarium_engine::Discards;

    #[test]
    fn what_is_discarded_is_shown_by_its_reason_in_all_and_of_queues() {
        let discarded = Discards::from([(DiscardReason::Purged, 2)]);
        let mut shard = Measured::default();
        shard.engine.discarded = discarded;
        let queue = QueueView { name: "q".to_owned(), discarded, ..Default::default() };
        let page = page(vec![shard], vec![queue]);
        for line in [
            "angarium_messages_discarded_total{reason=\"purged\"} 2\n",
            "angarium_messages_discarded_total{reason=\"expired\"} 0\n",
            "angarium_queue_messages_discarded_total{vhost=\"\",queue=\"q\",reason=\"purged\"} 2\n",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
    }

    fn scrape(shards: Vec<Measured>, queues: Vec<QueueView>, shows_names: bool) -> Scrape {
        let (channels, per_object, resident_bytes, memory_max) = (3, false, 5, 9);
        Scrape { shards, queues, channels, shows_names, per_object, resident_bytes, memory_max }
    }

    fn page(shards: Vec<Measured>, queues: Vec<QueueView>) -> String {
        scrape(shards, queues, true).written()
    }

    #[test]
    fn what_is_missed_is_shown_by_its_reason() {
        let shard = |limit, slow_disk| Measured {
            spill_missed: SpillLoss::ALL.map(|loss| match loss {
                SpillLoss::Limit => limit,
                SpillLoss::SlowDisk => slow_disk,
                _ => 0,
            }),
            ..Measured::default()
        };
        let page = page(vec![shard(1, 0), shard(2, 7)], Vec::new());
        for (reason, value) in [("limit", 3), ("slow_disk", 7)] {
            let line = format!("angarium_spill_missed_total{{reason=\"{reason}\"}} {value}\n");
            assert!(page.contains(&line), "{line}: {page}");
        }
    }

    #[test]
    fn memory_is_shown_by_kind() {
        let mut shard = Measured::default();
        shard.held.add(MemoryKind::Transactions, 7);
        let page = page(vec![shard.clone(), shard], Vec::new());
        let line = "angarium_memory_held_bytes{kind=\"transactions\"} 14\n";
        assert!(page.contains(line) && page.contains("angarium_memory_max_bytes 9\n"), "{page}");
    }

    #[test]
    fn every_family_is_named_once_and_labels_are_escaped() {
        let queue = |name: &str| QueueView { name: name.to_owned(), ..Default::default() };
        let queues = vec![queue("q\"\\\n"), queue("r")];
        let mut shards = vec![Measured::default(), Measured::default()];
        shards[0].reactor.turns = 3;
        shards[1].reactor.turns = 4;
        let page = page(shards, queues);
        let turns = "# TYPE angarium_reactor_turns counter\nangarium_reactor_turns_total 7\n";
        assert!(page.contains(turns), "{page}");
        let ready = "angarium_queue_messages_ready{vhost=\"\",queue=\"q\\\"\\\\\\n\"} 0\n";
        assert!(page.contains(ready), "{page}");
        let mut heads: Vec<&str> = page.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let count = heads.len();
        heads.sort_unstable();
        heads.dedup();
        assert_eq!(heads.len(), count, "{page}");
        assert!(page.contains("angarium_journal_flush_seconds_bucket{le=\"+Inf\"} 0\n"), "{page}");
        assert!(page.ends_with("# EOF\n"), "{page}");
    }

    #[test]
    fn totals_name_no_queue() {
        let queue =
            |name: &str, ready| QueueView { name: name.to_owned(), ready, ..Default::default() };
        let queues = vec![queue("secret", 2), queue("other", 3)];
        let shards = vec![Measured::default()];
        let page = scrape(shards, queues, false).written();
        assert!(page.contains("angarium_messages_ready 5\n"), "{page}");
        assert!(!page.contains("secret") && !page.contains("angarium_queue_messages"), "{page}");
    }

    #[test]
    fn rabbitmq_s_names_have_totals_or_each_queue() {
        let queue =
            |name: &str, ready| QueueView { name: name.to_owned(), ready, ..Default::default() };
        let queues = || vec![queue("one", 2), queue("other", 3)];
        let shard = || {
            let mut shard = Measured::default();
            (shard.engine.published, shard.engine.unroutable, shard.engine.returned) = (9, 4, 1);
            vec![shard]
        };
        let totals = scrape(shard(), queues(), false).written();
        for line in [
            "rabbitmq_queue_messages_ready 5\n",
            "rabbitmq_queues 2\n",
            "rabbitmq_channels 3\n",
            "rabbitmq_global_messages_received_total 9\n",
            "rabbitmq_global_messages_routed_total 5\n",
            "rabbitmq_global_messages_unroutable_dropped_total 3\n",
        ] {
            assert!(totals.contains(line), "{line}: {totals}");
        }
        assert!(totals.contains("rabbitmq_identity_info{rabbitmq_node=\"angarium@"), "{totals}");
        assert!(totals.contains("rabbitmq_build_info{rabbitmq_version=\""), "{totals}");
        let each = Scrape { per_object: true, ..scrape(shard(), queues(), true) }.written();
        let line = "rabbitmq_queue_messages_ready{vhost=\"\",queue=\"other\"} 3\n";
        assert!(each.contains(line) && !each.contains("rabbitmq_queue_messages_ready 5"), "{each}");
    }

    #[test]
    fn the_state_of_the_journal_is_shown_by_name() {
        for (state, values) in [
            (Journal::Ready, [1, 0, 0]),
            (Journal::Full, [0, 1, 0]),
            (Journal::Failed("broken".to_owned()), [0, 0, 1]),
        ] {
            let shard = Measured { state: Some(state), ..Measured::default() };
            let page = page(vec![shard], Vec::new());
            for (name, value) in ["ready", "full", "failed"].into_iter().zip(values) {
                let line = format!("angarium_journal_state{{state=\"{name}\"}} {value}\n");
                assert!(page.contains(&line), "{line}: {page}");
            }
        }
    }
}

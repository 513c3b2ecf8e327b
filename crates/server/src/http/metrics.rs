//! Metrics in Prometheus' text format (OpenMetrics): looked up on the shards' threads, written on this one.

use super::api::Failure;
use super::listings;
use super::views::{self, Measured};
use crate::http::mailboxes::Mailboxes;
use crate::reactor::{Gone, Shard};
use angarium_journal::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::collections::HashMap;
use std::fmt;

/// Answers `/metrics`.
pub(super) async fn metrics(state: axum::extract::State<super::State>) -> Response {
    match measured(&state.mailboxes).await {
        Ok(measured) => {
            let text = written(measured, resident_bytes());
            ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
                .into_response()
        }
        Err(gone) => Failure::gone(gone).into_response(),
    }
}

async fn measured(mailboxes: &Mailboxes) -> Result<Measured, Gone> {
    let sum = Measured::sum(mailboxes.ask_all(views::measured).await?);
    let look = |shard: &mut Shard, places| views::queues(shard, places, None);
    Ok(Measured { queues: listings::rows(mailboxes.home(), look).await?, ..sum })
}

/// Memory of the process, from the kernel.
pub(super) fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// The page.
pub(super) fn written(measured: Measured, resident_bytes: u64) -> String {
    let mut page = String::with_capacity(8192 + measured.queues.len() * 512);
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape { measured, resident_bytes }));
    encode(&mut page, &registry).expect("writing to a String succeeds");
    page
}

/// One scrape. Counters are named without the `_total` that the format appends.
#[derive(Debug)]
struct Scrape {
    measured: Measured,
    resident_bytes: u64,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, text, value) in &self.measured.counters {
            ConstCounter::new(*value).encode(counter(&mut encoder, name, text)?)?;
        }
        for (name, text, value) in &self.measured.gauges {
            ConstGauge::new(*value).encode(gauge(&mut encoder, name, text)?)?;
        }
        self.encode_spill_missed(&mut encoder)?;
        let memory =
            gauge(&mut encoder, "angarium_memory_resident_bytes", "Memory of the process.")?;
        ConstGauge::new(self.resident_bytes).encode(memory)?;
        self.encode_journal(&mut encoder)?;
        self.encode_queues(&mut encoder)
    }
}

impl Scrape {
    /// One series for each reason.
    fn encode_spill_missed(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let text = "Missed though they were to be spooled.";
        let mut family = counter(encoder, "angarium_spill_missed", text)?;
        for (reason, messages) in &self.measured.spill_missed {
            ConstCounter::new(*messages).encode(family.encode_family(&[("reason", *reason)])?)?;
        }
        Ok(())
    }

    /// One series for each state of the journal, 1 for the present one; and the times of its flushes.
    fn encode_journal(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if let Some(state) = &self.measured.journal {
            let text = "1 for the state that the journal is in.";
            let mut family = gauge(encoder, "angarium_journal_state", text)?;
            for (name, is_present) in [
                ("ready", *state == State::Ready),
                ("full", *state == State::Full),
                ("failed", matches!(state, State::Failed(_))),
            ] {
                let label = [("state", name)];
                ConstGauge::new(u64::from(is_present)).encode(family.encode_family(&label)?)?;
            }
        }
        let times = &self.measured.flush_times;
        let text = "How long flushes of the journal took.";
        let name = "angarium_journal_flush_seconds";
        encoder.encode_descriptor(name, text, None, MetricType::Histogram)?.encode_histogram(
            times.sum_seconds(),
            times.total(),
            &times.buckets().collect::<Vec<_>>(),
            None::<&HashMap<usize, Exemplar<NoLabelSet, f64>>>,
        )
    }

    fn encode_queues(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Value = fn(&views::QueueView) -> u64;
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
            let mut family = gauge(encoder, name, text)?;
            for queue in &self.measured.queues {
                let labels = [("vhost", queue.vhost.as_str()), ("queue", queue.name.as_str())];
                ConstGauge::new(value(queue)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

fn counter<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    text: &str,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, text, None, MetricType::Counter)
}

fn gauge<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    text: &str,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, text, None, MetricType::Gauge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missed_is_shown_by_its_reason() {
        let shard = |limit, slow_disk| Measured {
            spill_missed: vec![("limit", limit), ("slow_disk", slow_disk)],
            ..Measured::default()
        };
        let page = written(Measured::sum(vec![shard(1, 0), shard(2, 7)]), 0);
        for (reason, value) in [("limit", 3), ("slow_disk", 7)] {
            let line = format!("angarium_spill_missed_total{{reason=\"{reason}\"}} {value}\n");
            assert!(page.contains(&line), "{line}: {page}");
        }
    }

    #[test]
    fn every_family_is_named_once_and_labels_are_escaped() {
        let queue = |name: &str| views::QueueView { name: name.to_owned(), ..Default::default() };
        let queues = vec![queue("q\"\\\n"), queue("r")];
        let counters = vec![("angarium_turns", "Turns.", 7)];
        let page = written(Measured { counters, queues, ..Measured::default() }, 5);
        assert!(page.contains("# TYPE angarium_turns counter\nangarium_turns_total 7\n"), "{page}");
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
    fn the_state_of_the_journal_is_shown_by_name() {
        for (state, values) in [
            (State::Ready, [1, 0, 0]),
            (State::Full, [0, 1, 0]),
            (State::Failed("broken".to_owned()), [0, 0, 1]),
        ] {
            let page = written(Measured { journal: Some(state), ..Measured::default() }, 0);
            for (name, value) in ["ready", "full", "failed"].into_iter().zip(values) {
                let line = format!("angarium_journal_state{{state=\"{name}\"}} {value}\n");
                assert!(page.contains(&line), "{line}: {page}");
            }
        }
    }
}

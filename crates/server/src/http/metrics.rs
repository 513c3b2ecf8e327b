//! Metrics in Prometheus' text format: looked up on the shard's thread, written on this one.

use super::api::Failure;
use super::listings;
use super::views::{self, Measured};
use crate::http::mailboxes::Mailboxes;
use crate::reactor::{Gone, Shard};
use angarium_journal::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use std::fmt::Write;

/// Answers `/metrics`.
pub(super) async fn metrics(state: axum::extract::State<super::State>) -> Response {
    match measured(&state.mailboxes).await {
        Ok(measured) => {
            let text = written(&measured, resident_bytes());
            ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
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
pub(super) fn written(measured: &Measured, resident_bytes: u64) -> String {
    let mut page = Page(String::with_capacity(4096 + measured.queues.len() * 512));
    for (name, text, value) in &measured.counters {
        page.head(name, "counter", text);
        page.line(name, "", value);
    }
    for (name, text, value) in &measured.gauges {
        page.head(name, "gauge", text);
        page.line(name, "", value);
    }
    write_spill_missed(&mut page, &measured.spill_missed);
    page.head("angarium_memory_resident_bytes", "gauge", "Memory of the process.");
    page.line("angarium_memory_resident_bytes", "", &resident_bytes);
    if let Some(state) = &measured.journal {
        write_journal_state(&mut page, state);
    }
    write_flush_times(&mut page, measured);
    write_queues(&mut page, measured);
    page.0
}

/// One series for each reason.
fn write_spill_missed(page: &mut Page, missed: &[(&str, u64)]) {
    const NAME: &str = "angarium_spill_missed_total";
    page.head(NAME, "counter", "Missed though they were to be spooled.");
    for (why, messages) in missed {
        page.line(NAME, &format!("{{reason=\"{why}\"}}"), messages);
    }
}

/// One series for each state that the journal can be in: 1 where it is in it.
fn write_journal_state(page: &mut Page, state: &State) {
    const NAME: &str = "angarium_journal_state";
    page.head(NAME, "gauge", "1 for the state that the journal is in.");
    for (name, is_in_it) in [
        ("ready", *state == State::Ready),
        ("full", *state == State::Full),
        ("failed", matches!(state, State::Failed(_))),
    ] {
        page.line(NAME, &format!("{{state=\"{name}\"}}"), &u64::from(is_in_it));
    }
}

fn write_flush_times(page: &mut Page, measured: &Measured) {
    const NAME: &str = "angarium_journal_flush_seconds";
    page.head(NAME, "histogram", "How long flushes of the journal took.");
    let times = &measured.flush_times;
    for (bound, count) in times.cumulative() {
        page.line(&format!("{NAME}_bucket"), &format!("{{le=\"{bound}\"}}"), &count);
    }
    page.line(&format!("{NAME}_bucket"), "{le=\"+Inf\"}", &times.total());
    page.line(&format!("{NAME}_sum"), "", &times.sum_seconds());
    page.line(&format!("{NAME}_count"), "", &times.total());
}

fn write_queues(page: &mut Page, measured: &Measured) {
    let labels: Vec<String> = measured
        .queues
        .iter()
        .map(|queue| {
            format!("{{vhost=\"{}\",queue=\"{}\"}}", label(&queue.vhost), label(&queue.name))
        })
        .collect();
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
        page.head(name, "gauge", text);
        for (queue, labels) in measured.queues.iter().zip(&labels) {
            page.line(name, labels, &value(queue));
        }
    }
}

struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, text: &str) {
        writeln!(self.0, "# HELP {name} {text}\n# TYPE {name} {kind}")
            .expect("writing to a String succeeds");
    }

    fn line(&mut self, name: &str, labels: &str, value: &dyn std::fmt::Display) {
        writeln!(self.0, "{name}{labels} {value}").expect("writing to a String succeeds");
    }
}

/// Escapes a label's value: a client chose it.
pub(super) fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
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
        let page = written(&Measured::sum(vec![shard(1, 0), shard(2, 7)]), 0);
        for (reason, value) in [("limit", 3), ("slow_disk", 7)] {
            let line = format!("angarium_spill_missed_total{{reason=\"{reason}\"}} {value}\n");
            assert!(page.contains(&line), "{line}: {page}");
        }
    }

    #[test]
    fn the_state_of_the_journal_is_shown_by_name() {
        for (state, values) in [
            (State::Ready, [1, 0, 0]),
            (State::Full, [0, 1, 0]),
            (State::Failed("broken".to_owned()), [0, 0, 1]),
        ] {
            let page = written(&Measured { journal: Some(state), ..Measured::default() }, 0);
            for (name, value) in ["ready", "full", "failed"].into_iter().zip(values) {
                let line = format!("angarium_journal_state{{state=\"{name}\"}} {value}\n");
                assert!(page.contains(&line), "{line}: {page}");
            }
        }
    }
}

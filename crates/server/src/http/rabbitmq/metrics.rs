//! Metrics under the names of RabbitMQ's, so that its dashboards show this broker.

use super::super::measured::Measured;
use super::super::views::QueueView;
use super::broker::{PRODUCT, RABBITMQ_VERSION, VERSION, node_name};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

/// Queues that are shown one by one, at most.
const QUEUES_MAX: usize = 10_000;

/// What they show.
#[derive(Debug)]
pub(in super::super) struct Figures<'a> {
    pub(in super::super) shards: &'a [Measured],
    pub(in super::super) queues: &'a [QueueView],
    pub(in super::super) channels: u64,
    pub(in super::super) resident_bytes: u64,
    pub(in super::super) memory_max: u64,
    /// Queues are shown one by one.
    pub(in super::super) per_object: bool,
}

type Value = fn(&Measured) -> u64;

/// What has happened to messages; names are without the `_total` that the format appends.
const MESSAGES: [(&str, &str, Value); 8] = [
    ("received", "Messages in.", |it| it.engine.published),
    ("received_confirm", "Messages in that are confirmed.", |it| it.engine.confirmed),
    ("confirmed", "Messages confirmed.", |it| it.engine.confirmed),
    ("routed", "Messages that queues took.", |it| {
        it.engine.published.saturating_sub(it.engine.unroutable)
    }),
    ("unroutable_dropped", "Dropped: no queue took them.", |it| {
        it.engine.unroutable.saturating_sub(it.engine.returned)
    }),
    ("unroutable_returned", "Returned: no queue took them.", |it| it.engine.returned),
    ("delivered", "Messages out.", |it| it.engine.delivered),
    ("acknowledged", "Messages acknowledged.", |it| it.engine.accepted),
];

impl Figures<'_> {
    fn sum(&self, value: impl Fn(&Measured) -> u64) -> u64 {
        self.shards.iter().map(value).sum()
    }

    fn all(&self, value: fn(&QueueView) -> u64) -> u64 {
        self.queues.iter().map(value).sum()
    }

    /// Writes them.
    pub(in super::super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_names(encoder)?;
        self.encode_totals(encoder)?;
        self.encode_queues(encoder)?;
        for (name, text, value) in MESSAGES {
            let name = format!("rabbitmq_global_messages_{name}");
            let family = encoder.encode_descriptor(&name, text, None, MetricType::Counter)?;
            ConstCounter::new(self.sum(value)).encode(family)?;
        }
        let now = self.sum(|it| it.node.connections);
        let opened = self.sum(|it| it.node.connections_total);
        for (name, text, value) in [
            ("rabbitmq_connections_opened", "Connections opened.", opened),
            ("rabbitmq_connections_closed", "Connections closed.", opened.saturating_sub(now)),
        ] {
            let family = encoder.encode_descriptor(name, text, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(family)?;
        }
        Ok(())
    }

    /// By their labels dashboards find the node and its version.
    fn encode_names(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let node = node_name();
        let identity = [
            ("rabbitmq_node", node.as_str()),
            ("rabbitmq_cluster", node.as_str()),
            ("rabbitmq_cluster_permanent_id", node.as_str()),
        ];
        let build = [
            ("rabbitmq_version", RABBITMQ_VERSION),
            ("product_name", PRODUCT),
            ("product_version", VERSION),
        ];
        let name = "rabbitmq_identity_info";
        let mut family = encoder.encode_descriptor(name, "The node.", None, MetricType::Gauge)?;
        ConstGauge::new(1).encode(family.encode_family(&identity)?)?;
        let name = "rabbitmq_build_info";
        let mut family = encoder.encode_descriptor(name, "Versions.", None, MetricType::Gauge)?;
        ConstGauge::new(1).encode(family.encode_family(&build)?)
    }

    fn encode_totals(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (name, text, value) in [
            ("rabbitmq_connections", "Connections.", self.sum(|it| it.node.connections)),
            ("rabbitmq_channels", "Channels.", self.channels),
            ("rabbitmq_queues", "Queues.", self.queues.len() as u64),
            ("rabbitmq_consumers", "Consumers.", self.all(|it| it.consumers)),
            ("rabbitmq_process_resident_memory_bytes", "Memory.", self.resident_bytes),
            ("rabbitmq_resident_memory_limit_bytes", "Its limit.", self.memory_max),
        ] {
            let family = encoder.encode_descriptor(name, text, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(family)?;
        }
        Ok(())
    }

    /// All together, or one by one.
    fn encode_queues(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Value = fn(&QueueView) -> u64;
        let series: [(&str, &str, Value); 4] = [
            ("rabbitmq_queue_messages", "Messages.", |it| it.ready + it.unsettled),
            ("rabbitmq_queue_messages_ready", "Messages ready.", |it| it.ready),
            ("rabbitmq_queue_messages_unacked", "Messages unacknowledged.", |it| it.unsettled),
            ("rabbitmq_queue_consumers", "Consumers of queues.", |it| it.consumers),
        ];
        for (name, text, value) in series {
            let mut family = encoder.encode_descriptor(name, text, None, MetricType::Gauge)?;
            if !self.per_object {
                ConstGauge::new(self.all(value)).encode(family)?;
                continue;
            }
            for queue in self.queues.iter().take(QUEUES_MAX) {
                let labels = [("vhost", queue.vhost.as_str()), ("queue", queue.name.as_str())];
                ConstGauge::new(value(queue)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
